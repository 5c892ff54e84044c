"""Live agents of arms that are seen in every tick: results of all, and nothing guessed."""

import re

import numpy as np
import pytest

import restive as rs
from live_cases import fingerprint, memory_of
from restive.errors import JumpError, ProblemError
from restive.live.creating import rebuild_file
from restive.live.people.operator_files import record_sheet
from restive.live.people.sheets import parse_sheet
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
    live, *_ = begun(tmp_path / "a.db")
    listed = live.decide().arms
    other = next(str(k) for k in range(8) if str(k) not in listed)
    with pytest.raises(ProblemError, match="was not on the list, so give its state, or 'unseen'"):
        live.record({other: "not-pulled"})
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
    with pytest.raises(JumpError, match="nobody was seen, so arms that are seen every tick are on"):
        live.decide(tick=2)
    assert live.decide(tick=1, num_pulls=0).arms == ()
    live.record({str(k): 0 for k in range(8)})
    assert len(live.decide(tick=2).arms) == 3


@pytest.mark.parametrize("name", SYSTEMS)
def test_in_a_skipped_tick_nobody_was_seen(tmp_path, name):
    """As an agent that is told so; one that was decided with no pulls makes all known again."""
    live, bandit, prior, start = begun(tmp_path / "a.db", name, clock=rs.Clock.given())
    agent = rs.TSDE(prior, bandit.num_pulls, seed=5, start=start)
    always = [k for k, arm in enumerate(bandit.arms) if arm.always_seen]
    tick, lost = 0, set()
    for turn in range(20):
        if turn % 3 == 2:  # three ticks pass; the last one has a list of nobody, and states
            for _ in range(3):
                agent.select(0)
                agent.observe([], [], lost=always)
            lost, tick = set(always), tick + 3
        wanted = 0 if turn % 6 == 5 else bandit.num_pulls
        mask = [k not in lost for k in range(bandit.num_arms)]
        wanted = min(wanted, sum(mask))
        decision = live.decide(tick=tick, num_pulls=None if wanted else 0, skip=True)
        assert [int(arm) for arm in decision.arms] == agent.select(wanted, mask).tolist()
        shown = awaited(live, bandit)
        seen = answers(tick, shown, bandit)
        agent.observe(
            [seen[k] for k in shown if k not in lost], [k for k in shown if k not in lost],
            lost=sorted(lost), missing="not pulled",
        )  # fmt: skip
        if lost:
            agent.place(sorted(lost), [seen[k] for k in sorted(lost)])
        lost = set()
        if turn == 8:
            live.snapshot()
            live = rs.LiveAgent.open(tmp_path / "a.db")
        assert live.record({str(k): state for k, state in seen.items()}).closed
        tick += 1
    assert live.check() == len(live.events())
    live.decide(tick=tick, num_pulls=0)
    for k in range(bandit.num_arms):
        assert live.posterior(str(k)).weights.tolist() == agent.posterior(k).weights.tolist()
    rebuild_file(tmp_path / "a.db", tmp_path / "b.db")
    again = rs.LiveAgent.open(tmp_path / "b.db")
    assert again.check() == len(again.events())
    assert again.posterior("0").weights.tolist() == live.posterior("0").weights.tolist()


def test_a_wall_clock_does_not_pass_by_itself(tmp_path):
    """Weeks in which nobody looked are said to have passed, or are decided late."""
    live, *_ = begun(tmp_path / "a.db", clock=rs.Clock.wall("2020-01-06", "P7D"))
    with pytest.raises(JumpError, match="would pass without a list"):
        live.decide()
    assert len(live.decide(tick=0).arms) == 3
    live.record({str(k): 1 for k in range(8)})
    now = live.settings.clock.tick_at(live._session.at)
    assert live.decide(tick=now - 1, num_pulls=0, skip=True).arms == ()
    live.record({str(k): 0 for k in range(8)})
    assert len(live.decide().arms) == 3


@pytest.mark.parametrize("name", ["finite", "dirichlet"])
def test_who_joins_is_on_no_list_until_first_seen(tmp_path, name):
    live, bandit, *_ = begun(tmp_path / "a.db", name)
    play(live, bandit, 3)
    live.decide()
    kind = live.kinds[0]
    live.join({"new": kind, "known": kind}, {"known": (1, 1)})
    with pytest.raises(ProblemError, match="it joins with the next decision"):
        live.record({"new": 1})
    old = {str(k): 1 for k in range(8)}
    assert live.record(old).closed
    posteriors = []
    for tick in range(6):
        listed = live.decide().arms
        assert tick > 0 or not {"new", "known"}.intersection(listed)
        posteriors.append(live.posterior("new").weights.tolist())
        assert not live.record(old).closed
        assert live.record({"new": tick % 2, "known": 0}).closed
    prior_of = live.posterior("new")
    assert posteriors[0] == posteriors[1]  # nothing is learned from the first sighting
    if name == "finite":
        assert posteriors[0] == pytest.approx([0.2] * 5)
        assert posteriors[2] != posteriors[1]
    assert len(prior_of.weights)
    assert live.check() == len(live.events())
    assert fingerprint(rs.LiveAgent.open(tmp_path / "a.db")) == fingerprint(live)
    agent = memory_of(live).agent
    assert agent.evidence(8).total == 4  # of six sightings the first is no move, the last is open
    learned = live.posterior("known").weights.tolist()
    assert live.undo().count == 2
    live.record({"new": 1, "known": 0})
    rebuild_file(tmp_path / "a.db", tmp_path / "b.db")
    again = rs.LiveAgent.open(tmp_path / "b.db")
    assert again.posterior("known").weights.tolist() == learned


def test_at_first_nobody_is_known(tmp_path):
    """No states at the beginning: the first list is empty, and the second has three."""
    _, prior = SYSTEMS["dirichlet"]()
    live = rs.LiveAgent.create(tmp_path / "a.db", prior, 3, seed=1)
    assert live.decide().arms == ()
    assert live.record({str(k): k % 2 for k in range(8)}).closed
    assert len(live.decide().arms) == 3
    assert memory_of(live).agent.evidence(0).total == 0


def stubborn():
    """Two arms that stay where they are, or that leave nearly always; nobody knows which."""
    moves = [[[0.95, 0.05], [0.05, 0.95]], [[0.1, 0.9], [0.9, 0.1]]]
    arms = [rs.Arm(p, p, [0, 1], [0, 1], seen="always") for p in moves]
    return rs.IndependentPrior([rs.ArmPrior(arms, [0.25, 0.75])] * 2), moves


def test_forecasts_of_arms_that_are_always_seen(tmp_path):
    """All are pulled, so means are those of powers of the chains; within five standard errors."""
    prior, moves = stubborn()
    start = rs.BeliefState([1, 0], [1, 1])
    live = rs.LiveAgent.create(tmp_path / "a.db", prior, 2, "myopic", seed=1, start=start)
    live.decide()
    found = live.forecast(6, paths=1000, seed=3)
    for i in range(6):  # the state at tick i + 1, of which the pull then is paid
        powers = [np.linalg.matrix_power(np.array(move), i + 1) for move in moves]
        mean = sum(w * (p[1, 1] + p[0, 1]) for w, p in zip((0.25, 0.75), powers, strict=True))
        assert found.mean[i] == pytest.approx(mean, abs=5 * np.sqrt(0.5 / 1000))
    assert (found.low >= 0).all()
    assert found.ticks == (1, 2, 3, 4, 5, 6)
    # what is recorded is known: an arm that stays in its state is of the first sort
    live.record({"0": 1, "1": 0})
    after = live.forecast(3, paths=1000, seed=3)
    assert after.mean[0] == 1  # the states at the next tick are known
    weights = np.array([0.25, 0.75]) * [0.95, 0.1]
    stay = [0.95, 0.1] @ weights / weights.sum()
    assert after.mean[1] == pytest.approx(stay + (1 - stay), abs=1e-9 + 5 * np.sqrt(0.5 / 1000))
    # one arm's futures go together: it stays for ever, or it does not
    alone = rs.LiveAgent.create(
        tmp_path / "b.db", rs.IndependentPrior(prior.arms[:1]), 1, "myopic", seed=1,
        start=rs.BeliefState([1], [1]),
    )  # fmt: skip
    _, low, high = alone.forecast(10, paths=1000, seed=3).total
    assert low <= 6
    assert high == 10
    before = fingerprint(live)
    live.forecast(2, paths=2)
    assert fingerprint(live) == before


def test_who_is_lost_stays_so_in_a_forecast(tmp_path):
    live, _bandit, *_ = begun(tmp_path / "a.db", "mixed")
    live.decide()
    live.record({"0": "unseen", "1": 1, "2": "unseen"} if "1" in live.decision().arms else
                {"0": "unseen", "2": "unseen"})  # fmt: skip
    found = live.forecast(3, paths=50)
    # arm 1, seen when pulled, is all that can be pulled
    most = mixed().arms[1].rewards.max()
    assert (found.high <= most + 1e-12).all()


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
