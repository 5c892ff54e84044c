"""What is kept of ticks that are over is what a fresh look at the file says."""

from random import Random

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
