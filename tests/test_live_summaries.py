"""What is kept of ticks that are over is what a fresh look at the file says."""

from random import Random

import numpy as np
import pytest

import restive as rs
from live_cases import created, reply
from restive.live.creating import rebuild_file
from restive.live.told import summaries


@pytest.mark.parametrize("kind", ["equal", "mixed", "joint"])
def test_sums_that_are_kept_are_those_of_a_fresh_look(tmp_path, kind, monkeypatch):
    monkeypatch.setattr(summaries, "RECENT", 3)
    monkeypatch.setattr(summaries, "AT_LEAST", 2)
    path, rng = tmp_path / "a.db", Random(7)
    live = created(path, kind, clock=rs.Clock.given(), audit_pulls=1)
    waiting, looks, kept = [], 0, 0
    for tick in range(40):
        decision = live.decide(tick=tick)
        for name in decision.arms:
            if rng.random() < 0.7:
                live.record({name: reply(tick, name)})
            else:
                waiting.append((tick, name))
        if waiting and rng.random() < 0.3:  # of a tick that may be long over
            at, name = waiting.pop(rng.randrange(len(waiting)))
            live.record({name: reply(at, name)}, at)
        if rng.random() < 0.1:
            live.undo()
        if tick == 30:
            rebuild_file(path, None)
        if rng.random() < 0.6:
            looks += 1
            found = live.status(), live.rewards()
            kept += live._session.summaries._until > 0
            with rs.LiveAgent.open(path, durability="process") as fresh:
                monkeypatch.setattr(summaries, "AT_LEAST", 10**9)
                assert (fresh.status(), fresh.rewards()) == found
                monkeypatch.setattr(summaries, "AT_LEAST", 2)
        if live.tick < tick:
            live.decide(tick=tick)
    assert looks > 15
    assert kept > 10


def test_where_all_stands_is_told_without_what_each_decision_foretold(tmp_path, monkeypatch):
    live = created(tmp_path / "a.db", clock=rs.Clock.given())
    for tick in range(5):
        live.record({name: reply(tick, name) for name in live.decide(tick=tick).arms})
    with monkeypatch.context() as patched:  # nothing of a long file's decisions is parsed
        patched.setattr(summaries.json, "loads", None)
        found = live._session.summaries
        with live._session.reading():
            before = found.totals(live._session)
    table = live.reward_table()
    assert (before.decisions, before.reward) == (len(table.tick), sum(table.reward))
    assert table.pulls.tolist() == [2] * 5
    assert not np.isnan(table.mean).any()
    with live._session.reading():
        assert found.totals(live._session) == before
    live.close()
