"""Live agents of arms that are seen in every tick: results of all, and nothing guessed."""

import re

import numpy as np
import pytest

import restive as rs
from live_cases import fingerprint, memory_of
from restive.errors import ProblemError
from restive.live.operator_files import record_sheet
from restive.live.sheets import parse_sheet
from test_always_learning import dirichlet, finite, mixed
from test_always_seen import calls

SYSTEMS = {
    "finite": lambda: (calls(), finite(calls())),
    "dirichlet": lambda: (calls(), dirichlet(calls())),
    "mixed": lambda: (mixed(), finite(mixed())),
}


def begun(path, name="finite", **options):
    bandit, prior = SYSTEMS[name]()
    start = rs.BeliefState([0] * bandit.num_arms, [1] * bandit.num_arms)
    given = {"seed": 5, "missing": "refuse", "start": start, "durability": "process", **options}
    return rs.LiveAgent.create(path, prior, bandit.num_pulls, **given), bandit, prior, start


def answers(tick, arms, bandit):
    return {k: int(np.random.default_rng([tick, k]).integers(bandit.arms[k].num_states))
            for k in arms}  # fmt: skip


def awaited(live, bandit):
    """Arms whose results are wanted: those on the list, and those seen in every tick."""
    listed = {int(name) for name in live.decision().arms}
    return sorted(listed | {k for k, arm in enumerate(bandit.arms) if arm.always_seen})


def play(live, bandit, ticks):
    for _ in range(ticks):
        tick = live.decide().tick
        seen = answers(tick, awaited(live, bandit), bandit)
        live.record({str(k): state for k, state in seen.items()})


@pytest.mark.parametrize("name", SYSTEMS)
def test_decisions_are_those_of_an_agent_that_is_shown_the_same(tmp_path, name):
    live, bandit, prior, start = begun(tmp_path / "a.db", name)
    agent = rs.TSDE(prior, bandit.num_pulls, seed=5, start=start)
    for tick in range(40):
        decision = live.decide()
        assert [int(arm) for arm in decision.arms] == agent.select().tolist()
        shown = agent.awaited.tolist()
        assert shown == awaited(live, bandit)
        seen = answers(tick, shown, bandit)
        agent.observe([seen[k] for k in shown])
        half = {str(k): seen[k] for k in shown[::2]}
        assert not live.record(half).closed or len(half) == len(shown)
        receipt = live.record({str(k): state for k, state in seen.items()})
        assert (receipt.new, receipt.known) == (len(shown) - len(half), len(half))
        assert receipt.closed
    assert live.check() == len(live.events())
    again = rs.LiveAgent.open(tmp_path / "a.db")
    assert fingerprint(again) == fingerprint(live)
    live.snapshot()
    assert fingerprint(rs.LiveAgent.open(tmp_path / "a.db")) == fingerprint(live)
    assert live.check() == len(live.events())
    row = live.status()
    assert (row.open, row.unshown) == (0, 0)
    if name != "mixed":
        assert row.reward == row.forecast
    for k in range(bandit.num_arms):
        assert live.explain(str(k)).arm == str(k)
        assert live.posterior(str(k)).weights.sum() == pytest.approx(1)
    assert live.known()
    assert live.arms(by="belief")


@pytest.mark.parametrize("name", ["finite", "dirichlet"])
def test_undo_of_states_leaves_no_trace(tmp_path, name):
    live, bandit, *_ = begun(tmp_path / "a.db", name)
    play(live, bandit, 3)
    live.decide()
    before = fingerprint(live)
    seen = answers(3, awaited(live, bandit), bandit)
    live.record({str(k): 1 - state for k, state in seen.items()})
    assert live.undo().count == bandit.num_arms
    assert fingerprint(live) == before
    live.record({str(k): state for k, state in seen.items()})
    other, *_ = begun(tmp_path / "b.db", name)
    play(other, bandit, 4)
    assert fingerprint(live) == fingerprint(other)
    assert live.check() == len(live.events())


def test_what_cannot_be_is_said_in_a_sentence(tmp_path):
    live, _bandit, prior, _ = begun(tmp_path / "a.db")
    with pytest.raises(ProblemError, match="say in which state it is when the first list is made"):
        rs.LiveAgent.create(tmp_path / "b.db", prior, 3, missing="refuse")
    listed = live.decide().arms
    other = next(str(k) for k in range(8) if str(k) not in listed)
    with pytest.raises(ProblemError, match="was not on the list, so give its state, or 'unseen'"):
        live.record({other: "not-pulled"})
    with pytest.raises(ProblemError, match="cannot join a file that runs"):
        live.join({"new": live.kinds[0]}, {"new": (0, 1)})
    with pytest.raises(ProblemError, match="cannot be foretold yet"):
        live.forecast()
    live.record(dict.fromkeys(listed, 1))
    assert live.decide().tick == 0  # the states of the others are awaited
    assert live.status().unshown == 5
    live.record({other: 1})
    with pytest.raises(ProblemError, match="was recorded for tick 0 already"):
        live.record({other: 0})
    with pytest.raises(ProblemError, match="only the state of a pull can be corrected"):
        live.correct({other: 0}, 0, "a slip")
    live.record({str(k): 1 for k in range(8) if str(k) not in (*listed, other)})
    assert live.decide().tick == 1
    with pytest.raises(ProblemError, match=re.escape("tick 0 is over: its state then cannot come")):
        live.record({other: 1}, 0)


def test_no_tick_passes_unseen(tmp_path):
    live, _bandit, *_ = begun(tmp_path / "a.db", clock=rs.Clock.given())
    live.decide(tick=0)
    with pytest.raises(ProblemError, match="no state yet for 8 arms of tick 0"):
        live.decide(tick=1)
    live.record({str(k): 1 for k in range(8)})
    with pytest.raises(ProblemError, match=r"tick 1 has no list yet.*decide it first"):
        live.decide(tick=2, skip=True)
    assert live.decide(tick=1, num_pulls=0).arms == ()
    live.record({str(k): 0 for k in range(8)})
    assert len(live.decide(tick=2).arms) == 3


def test_a_file_of_all_arms(tmp_path):
    live, _bandit, *_ = begun(tmp_path / "a.db", "dirichlet")
    live.decide()
    text = "arm,state\n" + "".join(f"{k},{k % 2}\n" for k in range(8))
    done = record_sheet(live, parse_sheet(text.encode(), "all"))
    assert (done.receipt.new, done.receipt.closed, done.rejected) == (8, True, ())
    assert memory_of(live).open.missing == []
    again = record_sheet(live, parse_sheet(text.encode(), "all"))
    assert again.repeated == 0


@pytest.mark.parametrize("name", SYSTEMS)
def test_who_was_not_seen_is_on_no_list_until_seen_again(tmp_path, name):
    """As an agent that is told so: nothing is learned of the gap, nor of the return."""
    live, bandit, prior, start = begun(tmp_path / "a.db", name)
    agent = rs.TSDE(prior, bandit.num_pulls, seed=5, start=start)
    before: set[int] = set()
    lost: set[int] = set()
    for tick in range(40):
        mask = [k not in lost for k in range(bandit.num_arms)]
        count = min(bandit.num_pulls, sum(mask))
        listed = agent.select(count, mask).tolist() if lost else agent.select().tolist()
        assert [int(arm) for arm in live.decide().arms] == listed
        assert not lost.intersection(listed)
        shown = awaited(live, bandit)
        seen = answers(tick, shown, bandit)
        missing = {k for k in shown if bandit.arms[k].always_seen and (3 * tick + k) % 5 == 0}
        known = [k for k in shown if k not in missing and k not in lost]
        agent.observe([seen[k] for k in known], known, lost=sorted(missing | lost))
        back = sorted(lost - missing)
        if back:
            agent.place(back, [seen[k] for k in back])
        before, lost = lost, missing
        live.record({str(k): "unseen" if k in missing else seen[k] for k in shown})
        if tick % 10 == 5:
            live.snapshot()
            live = rs.LiveAgent.open(tmp_path / "a.db")
    assert live.check() == len(live.events())
    for k in range(bandit.num_arms):
        if k in before:  # seen again in the open tick: nothing is learned from that
            stays = memory_of(live).agent.posterior(k).weights
            assert live.posterior(str(k)).weights.tolist() == stays.tolist()
    live.decide()  # the open tick is learned from
    for k in range(bandit.num_arms):
        assert live.posterior(str(k)).weights.tolist() == agent.posterior(k).weights.tolist()


@pytest.mark.parametrize("name", ["finite", "dirichlet"])
def test_who_has_left_is_awaited_no_longer(tmp_path, name):
    live, bandit, *_ = begun(tmp_path / "a.db", name)
    play(live, bandit, 2)
    listed = live.decide().arms
    gone = next(str(k) for k in range(8) if str(k) not in listed)
    live.leave([gone])
    others = [str(k) for k in range(8) if str(k) != gone]
    assert live.record(dict.fromkeys(others, 1)).closed
    for _ in range(5):
        assert gone not in live.decide().arms
        assert live.record(dict.fromkeys(others, 1)).closed
    assert live.check() == len(live.events())
    assert fingerprint(rs.LiveAgent.open(tmp_path / "a.db")) == fingerprint(live)
