"""What operators do to a live agent: late, missing, wrong, pulled instead, joined, left."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import PRIORS, created, fingerprint, memory_of, reply, run
from restive.cli import app
from restive.errors import ConflictError, ProblemError
from restive.learn.make import with_more_arms
from restive.live.acts.recording import Batch
from restive.live.creating import rebuild_file
from restive.live.people.operator_files import record_sheet
from restive.live.people.roster import LONG_AGO
from restive.live.people.sheets import parse_sheet
from restive.live.told.answers import RefusedError
from restive.live.told.status import status_lines
from restive.logs.fitting import write_fit


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.db"


def weights(live, name):
    return live.posterior(name).weights.tobytes()


# ---------------------------------------------------------------- late and missing


def test_late_results_that_come_before_the_arm_is_seen_again_lose_nothing(path):
    """Posterior and meta-state are those of no delay, to the byte."""
    late = created(path, num_arms=12, clock=rs.Clock.given())
    waiting: list[tuple[int, str, int]] = []
    seen: list[tuple[int, str, int]] = []
    rng = np.random.default_rng(5)
    receipts = []
    for tick in range(40):
        decision = late.decide(tick=tick)
        due = [row for row in waiting if row[1] in decision.arms or rng.random() < 0.3]
        for row in due:  # at the latest when the arm is pulled again
            waiting.remove(row)
            receipts.append(late.record({row[1]: row[2]}, tick=row[0]))
        for name in decision.arms:
            row = (tick, name, reply(tick, name))
            seen.append(row)
            if rng.random() < 0.5:
                waiting.append(row)
            else:
                late.record({name: row[2]})
    for tick, name, state in waiting:
        late.record({name: state}, tick=tick)
    late.decide(tick=40)
    assert sum(receipt.late for receipt in receipts) > 20
    assert late.status().superseded == 0
    agent = rs.TSDE(PRIORS["equal"](12), 2, seed=3, start=rs.BeliefState([1] * 12, [LONG_AGO] * 12))
    for tick in range(40):
        agent.pull(sorted(int(name) for at, name, _ in seen if at == tick))
        of_tick = sorted((int(name), state) for at, name, state in seen if at == tick)
        agent.observe([state for _, state in of_tick])
    for k in range(12):
        assert weights(late, str(k)) == agent.posterior(k).weights.tobytes()
        assert memory_of(late).agent.last_seen(k) == agent.last_seen(k)
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(late)


def test_a_late_result_of_an_arm_seen_since_is_journaled_and_not_used(path):
    live = created(path, num_arms=2, num_pulls=2, clock=rs.Clock.given())
    live.decide(tick=0)
    live.decide(tick=1)
    live.record({"0": 1, "1": 1})
    live.decide(tick=2)
    before = weights(live, "0")
    assert live.record({"0": 0}, tick=0) == rs.types.Receipt(superseded=1)
    assert weights(live, "0") == before
    assert live.results(0) == {"0": 0, "1": "unseen"}
    assert live.record({"0": 0}, tick=0) == rs.types.Receipt(known=1)
    status = live.status()
    assert (status.superseded, status.late, status.unseen) == (1, 0, 1)
    assert live.record({"1": 1}, tick=0).superseded == 1
    assert live.check() == len(live.events())


def test_what_is_missing_becomes_unseen_and_its_age_grows(path):
    live = created(path, clock=rs.Clock.given())
    decision = live.decide(tick=0)
    live.record({decision.arms[0]: 1})
    agent = memory_of(live).agent
    live.decide(tick=1)
    missing = int(decision.arms[1])
    assert live.results(0)[decision.arms[1]] == "unseen"
    assert agent.last_seen(missing) == (1, 1 - LONG_AGO)


def test_unseen_may_become_a_state_but_not_the_other_way_round(path):
    live = created(path)
    decision = live.decide()
    live.record(dict.fromkeys(decision.arms, "unseen"))
    again = live.record(dict.fromkeys(decision.arms, "unseen"))
    assert again == rs.types.Receipt(known=2, closed=True)
    assert live.record({decision.arms[0]: 1}) == rs.types.Receipt(new=1, closed=True)
    with pytest.raises(RefusedError, match="1 was recorded"):
        live.record({decision.arms[0]: "unseen"})
    live.record({decision.arms[1]: "unseen"})
    following = live.decide()
    assert live.results(0) == {decision.arms[0]: 1, decision.arms[1]: "unseen"}
    live.record(dict.fromkeys(following.arms, "not-pulled"))
    with pytest.raises(RefusedError, match="'not-pulled' was recorded"):
        live.record({following.arms[0]: 1})


def test_arms_that_pulling_moves_need_a_choice(path):
    with pytest.raises(ProblemError, match="missing='refuse' or missing='as-not-pulled'"):
        created(path, "controlled", missing=None)
    live = created(path, "controlled", missing="refuse", clock=rs.Clock.given())
    decision = live.decide(tick=0)
    with pytest.raises(RefusedError, match="this file refuses pulls without a state"):
        live.record({decision.arms[0]: "unseen"})
    live.record({decision.arms[0]: 1})
    with pytest.raises(ProblemError, match=r"no result yet for 1 pull of tick 0 \('\d'\)"):
        live.decide(tick=1)
    live.record({decision.arms[1]: "not-pulled"})
    assert live.decide(tick=1).tick == 1
    assert not live.status().approximate
    other = created(path.with_name("b.db"), "controlled", missing="as-not-pulled")
    assert other.status().approximate


def test_not_pulled_is_exact_for_arms_that_pulling_moves(path):
    live = created(path, "controlled", clock=rs.Clock.given())
    agent = rs.TSDE(
        PRIORS["controlled"](6), 2, seed=3, start=rs.BeliefState([1] * 6, [LONG_AGO] * 6)
    )
    for tick in range(12):
        decision = live.decide(tick=tick)
        assert decision.arms == tuple(map(str, agent.select()))
        first, second = decision.arms
        live.record({first: 1, second: "not-pulled"})
        agent.observe([1], [int(first)], missing="not pulled")


# ---------------------------------------------------------------- mistakes


def test_every_mistake_is_named_and_nothing_is_recorded(path):
    live = created(path)
    with pytest.raises(RefusedError, match="nothing has been decided yet"):
        live.record({"0": 1})
    with pytest.raises(ProblemError, match="nothing has been decided yet"):
        live.step({"0": 1})
    decision = live.decide()
    other = next(name for name in "012345" if name not in decision.arms)
    count = len(live.events())
    with pytest.raises(RefusedError) as refused:
        live.record({decision.arms[0]: 7, "Z": 1, other: 1, decision.arms[1]: 0})
    reasons = {mistake.arm: mistake.reason for mistake in refused.value.mistakes}
    assert reasons == {
        decision.arms[0]: "state 7 is none of its states 0 to 1",
        "Z": "there is no arm 'Z'; known are 0, 1, 2, 3, 4, 5",
        other: "it was not on the list of tick 0",
    }
    for bad in (1.5, True, None, "good", -1):
        with pytest.raises(RefusedError):
            live.record({decision.arms[0]: bad})
    with pytest.raises(RefusedError, match="tick 3 is not decided yet"):
        live.record({decision.arms[0]: 1}, tick=3)
    for call in (lambda: live.record([1]), lambda: live.decide(unavailable="0")):
        with pytest.raises(ProblemError):
            call()
    assert len(live.events()) == count
    receipt, mistakes = live.record_batches(
        [Batch(None, {decision.arms[0]: 7, decision.arms[1]: 0})], accept_good=True
    )
    assert receipt == rs.types.Receipt(new=1)
    assert [mistake.arm for mistake in mistakes] == [decision.arms[0]]


@pytest.mark.parametrize("kind", ["one", "joint"])
def test_a_state_that_the_prior_rules_out_is_refused(path, kind):
    up, down = rs.gilbert_elliott(1.0, 0.5), rs.gilbert_elliott(0.5, 0.0)
    mixed = rs.gilbert_elliott(0.5, 0.5)
    if kind == "one":  # which leaves the bad state at once
        prior = rs.IndependentPrior([rs.ArmPrior([up])] * 2 + [rs.ArmPrior([mixed])])
    else:  # who stays good tells that the other leaves the bad state
        prior = rs.JointPrior([rs.RestlessBandit([one, one, mixed], 2) for one in (up, down)])
    live = rs.LiveAgent.create(
        path, prior, 3 if kind == "one" else 2, durability="process",
        start=rs.BeliefState([0, 1, 1], [1, 1, 1]),
    )  # fmt: skip
    live.decide(unavailable=() if kind == "one" else ["2"])
    if kind == "one":
        with pytest.raises(RefusedError, match="'0': state 0 has probability zero") as refused:
            live.record({"0": 0, "1": 1, "2": 0})
        assert len(refused.value.mistakes) == 1
    else:
        live.record({"1": 1})
        with pytest.raises(RefusedError, match="'0': state 0 has probability zero"):
            live.record({"0": 0})
    live.record({"0": 1})


def test_a_late_state_that_contradicts_the_open_tick_is_refused(path):
    """An arm that leaves the bad state at once cannot be seen bad twice in a row."""
    up = rs.ArmPrior([rs.gilbert_elliott(1.0, 0.5)])
    live = rs.LiveAgent.create(
        path, rs.IndependentPrior([up, up]), 2, durability="process", clock=rs.Clock.given(),
        start=rs.BeliefState([1, 1], [1, 1]),
    )  # fmt: skip
    live.decide(tick=0)
    live.decide(tick=1)
    live.record({"0": 0, "1": 0})
    before = fingerprint(live)
    with pytest.raises(RefusedError, match="'1': it contradicts what was recorded for the open"):
        live.record({"1": 0}, tick=0)
    assert fingerprint(live) == before
    assert live.record({"1": 1}, tick=0) == rs.types.Receipt(late=1, closed=True)
    live.decide(tick=2)
    live.decide(tick=3)
    with pytest.raises(RefusedError, match="'0': state 0 has probability zero"):
        live.record({"0": 0, "1": 1}, tick=2)  # one step after it was bad
    assert live.record({"0": 1, "1": 1}, tick=2).late == 2


# ---------------------------------------------------------------- somebody's own choice


def test_arms_pulled_instead_are_learned_from(path):
    live = created(path)
    decision = live.decide()
    others = [name for name in "012345" if name not in decision.arms]
    receipt = live.record(
        dict.fromkeys(decision.arms, "not-pulled"), instead={others[0]: 1, others[1]: 0}
    )
    assert receipt == rs.types.Receipt(new=4, closed=True)
    assert live.record({}, instead={others[0]: 1}) == rs.types.Receipt(known=1, closed=True)
    with pytest.raises(RefusedError, match="1 was recorded for tick 0"):
        live.record({}, instead={others[0]: 0})
    with pytest.raises(RefusedError, match="it was among those decided"):
        live.record({}, instead={decision.arms[0]: 1})
    with pytest.raises(RefusedError, match="leave this row out"):
        live.record({}, instead={others[2]: "unseen"})
    live.decide()
    agent = rs.TSDE(PRIORS["equal"](6), 2, seed=3, start=rs.BeliefState([1] * 6, [LONG_AGO] * 6))
    agent.select()
    agent.pull([int(others[0]), int(others[1])])
    agent.observe([1, 0])
    for k in range(6):
        assert weights(live, str(k)) == agent.posterior(k).weights.tobytes()
    assert live.record({}, tick=0, instead={others[2]: 1}) == rs.types.Receipt(late=1)
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    assert live.check() == len(live.events())
    assert live.status().pulls == 4  # of ours


# ---------------------------------------------------------------- arms come and go


def test_an_agent_with_more_arms_remembers_what_it_knew():
    arm = PRIORS["equal"](1).arms[0]
    agent = rs.TSDE(rs.IndependentPrior([arm] * 4), 2, seed=1)
    for t in range(30):
        agent.observe([reply(t, str(k)) for k in agent.select()])
    grown = with_more_arms(agent, rs.IndependentPrior([arm] * 7), [0, 1, 1], [1, 5, LONG_AGO])
    assert grown.time == agent.time == 31
    for k in range(4):
        assert grown.posterior(k).weights.tobytes() == agent.posterior(k).weights.tobytes()
        assert grown.last_seen(k) == agent.last_seen(k)
        assert grown.evidence(k) == agent.evidence(k)
    assert [grown.last_seen(k) for k in (4, 5, 6)] == [(0, 30), (1, 26), (1, 31 - LONG_AGO)]
    episode = agent.episode.number
    assert len(grown.select()) == 2
    assert grown.episode.number == episode + 1  # the system has changed
    again = rs.restore(grown.snapshot())
    for t in range(30, 60):
        states = [reply(t, str(k)) for k in grown.select()]
        assert grown.select().tolist() == again.select().tolist()
        grown.observe(states)
        again.observe(states)


def test_a_new_arm_has_numbers_of_its_own_in_the_draw():
    """Arms of equal priors that join are drawn independently of those that are there."""
    arm = PRIORS["equal"](1).arms[0]
    equal = 0
    for seed in range(100):
        agent = rs.TSDE(rs.IndependentPrior([arm] * 2), 1, seed=seed)
        agent.observe([1] * len(agent.select()))
        grown = with_more_arms(agent, rs.IndependentPrior([arm] * 4), [1, 1], [9, 9])
        grown.select()
        drawn = [tuple(a.active.ravel()) for a in grown.sampled_bandit.arms]
        equal += drawn[2] == drawn[0]
    assert 1 <= equal <= 27  # 100 / 9 are expected; outside with probability below 1e-4


def test_arms_join_with_the_next_decision(path):
    live = created(path, num_arms=3)
    first = live.decide()
    assert live.join(["new", "old"], {"old": (0, 2)}) == rs.types.Receipt(new=2)
    assert live.join(["new", "old"], {"old": (0, 2)}) == rs.types.Receipt(known=2)
    assert live.status().waiting == 2
    with pytest.raises(ProblemError, match="arm 'new' joins with the next decision"):
        live.belief("new")
    with pytest.raises(RefusedError, match="joins with the next decision"):
        live.record({}, instead={"new": 1})
    live.record(dict.fromkeys(first.arms, 0))
    live.decide(unavailable=["0", "1", "2"])
    assert live.decision().arms == ("new", "old")
    assert memory_of(live).agent.last_seen(4) == (0, -1)  # two ticks before tick 0, time 1
    assert live.status().arms == 5
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    with pytest.raises(ProblemError, match="there is no kind 'rural'"):
        live.join({"z": "rural"})
    with pytest.raises(ProblemError, match="does not join"):
        live.join(["z"], {"y": (1, 1)})
    for bad in ("", " a", "a\nb", "x" * 201):
        with pytest.raises(ProblemError, match="name"):
            live.join([bad])


def test_arms_cannot_join_a_joint_prior(path):
    live = created(path, "joint")
    with pytest.raises(ProblemError, match="under a joint prior"):
        live.join(["x"])


def test_arms_that_have_left_are_never_pulled_and_their_names_never_used(path):
    live = created(path, num_arms=4)
    decision = live.decide()
    assert live.leave(decision.arms) == rs.types.Receipt(new=2)
    assert live.leave(decision.arms) == rs.types.Receipt(known=2)
    assert live.record(dict.fromkeys(decision.arms, 1)).new == 2  # what was pulled may be seen
    for _ in range(10):
        decided = live.decide()
        assert not set(decided.arms) & set(decision.arms)
        live.record(dict.fromkeys(decided.arms, 1))
    live.leave([decided.arms[0]])
    assert live.decide().arms == (decided.arms[1],)  # one arm is left, and N is 2
    live.record({decided.arms[1]: 1})
    with pytest.raises(ProblemError, match="only 1 arm can be chosen"):
        live.decide(num_pulls=2)


def test_who_left_by_mistake_comes_back_by_joining_again(path, tmp_path):
    live = created(path, clock=rs.Clock.given())
    gone = live.decide(tick=0).arms[0]
    live.record({gone: 1})
    live.leave([gone])
    live.decide(tick=1)
    assert live.arm(gone).left == 0
    assert live.join([gone]) == rs.types.Receipt(new=1)
    assert live.arm(gone).left is None
    assert live.last_act().what() == f"the return of {gone} in tick 1"
    assert live.join([gone]) == rs.types.Receipt(known=1)
    assert live.arm(gone).last_state == 1  # it is who it was
    live.undo()
    assert live.arm(gone).left == 0
    live.join([gone])
    live.check()
    live.close()
    rebuild_file(path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert new.arm(gone).left is None
        new.decide(tick=2, num_pulls=6)
        assert gone in new.decision().arms
        new.check()


@pytest.mark.parametrize("late", [False, True])
def test_who_left_by_a_wrong_result_comes_back_by_the_right_one(path, late):
    """Typed anew, from whatever: the result that is true says that they have not left."""
    live = created(path, clock=rs.Clock.given())
    gone = live.decide(tick=0).arms[0]
    live.record({gone: "leave"})
    assert live.arm(gone).left == 0
    if late:
        live.decide(tick=1)
    receipt = live.record({gone: 1}, 0)
    assert (receipt.late, receipt.new) == ((1, 0) if late else (0, 1))
    assert live.arm(gone).left is None
    assert live.results(0)[gone] == 1
    live.check()
    live.undo()
    assert live.arm(gone).left == 0
    live.leave([gone])
    assert live.record({gone: "unseen"}, 0).known == 1  # it says nothing new
    assert live.arm(gone).left == 0


def test_one_result_of_a_file_is_changed_and_the_others_stay(path):
    live = created(path, num_pulls=3, clock=rs.Clock.given())
    a, b, _ = live.decide(tick=0).arms
    live.decide(tick=1)
    now = live.decision().arms
    live.record_batches(
        [Batch(0, {a: 1, b: 0}), Batch(1, dict.fromkeys(now, 0))],
        actor="office",
    )
    assert set(live.changeable()) == {(0, a), (0, b), *((1, one) for one in now)}
    live.change(now[1], 1, 1, actor="desk")
    assert live.results(1) == {now[0]: 0, now[1]: 1, now[2]: 0}
    live.change(b, "leave", 0)
    assert (live.results(0)[a], live.results(0)[b], live.arm(b).left) == (1, "unseen", 1)
    assert set(live.changeable()) == {(0, a), (0, b), *((1, one) for one in now)}
    live.change(b, 1, 0)
    assert (live.results(0)[b], live.arm(b).left) == (1, None)
    before = live.events()
    with pytest.raises(ProblemError, match="state 7"):
        live.change(now[0], 7, 1)  # nothing is taken back before another can be recorded
    assert live.events() == before
    live.check()
    live.decide(tick=2)
    with pytest.raises(ConflictError, match="older than the last list"):
        live.change(now[0], 1, 1)


def test_a_late_result_by_which_somebody_left_can_be_changed(path):
    live = created(path, clock=rs.Clock.given())
    gone = live.decide(tick=0).arms[0]
    live.decide(tick=1)
    live.record({gone: "leave"}, 0)
    assert live.last_act().kind == "record"
    assert (0, gone) in live.changeable()
    live.change(gone, 1, 0)
    assert (live.results(0)[gone], live.arm(gone).left) == (1, None)
    live.check()


def test_a_correction_may_say_that_somebody_left(path, tmp_path):
    live = created(path, clock=rs.Clock.given())
    one = live.decide(tick=0).arms[0]
    live.record({one: 1})
    live.decide(tick=1)
    live.correct({one: "leave"}, 0, "a wrong number")
    assert live.arm(one).left == 1
    live.check()
    live.close()
    rebuild_file(path, tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert (new.arm(one).left, new.results(0)[one]) == (1, "unseen")
        assert new.left_with([one]) == {one: 0}
        with pytest.raises(ProblemError, match="What a rebuild took over stands"):
            new.undo()
        new.correct({one: 0}, 0, "it was right")
        assert new.arm(one).left is None
        new.check()


def test_a_result_may_say_that_an_arm_leaves(path):
    live = created(path)
    decision = live.decide()
    live.record({decision.arms[0]: "leave", decision.arms[1]: 1})
    assert live.arm(decision.arms[0]).left == 0
    assert live.results()[decision.arms[0]] == "unseen"
    assert decision.arms[0] not in live.decide().arms
    assert live.check() == len(live.events())


# ---------------------------------------------------------------- audit pulls


def test_audit_pulls_are_drawn_evenly(path):
    """Each arm's count is binomial; the chi-squared value exceeds 32.9 with probability 1e-4."""
    live = created(path, num_arms=10, num_pulls=3, audit_pulls=1)
    counts = np.zeros(10)
    for _ in range(300):
        decision = live.decide()
        assert len(decision.arms) == len(set(decision.arms)) == 3
        (audit,) = decision.audit
        counts[int(audit)] += 1
        live.record({name: reply(decision.tick, name) for name in decision.arms})
    assert ((counts - 30) ** 2 / 30).sum() < 33.7
    rows = [row for row in live.table("pulls")[1] if row[5]]
    assert live.status().audit_mean == np.mean([row[4] for row in rows])
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)


# ---------------------------------------------------------------- correcting


def test_a_rebuilt_file_knows_better(path, tmp_path):
    live = created(path, clock=rs.Clock.given())
    decided = {}
    for tick in range(12):
        decided[tick] = live.decide(tick=tick).arms
        wrong = tick == 5
        live.record({n: 1 - reply(tick, n) if wrong else reply(tick, n) for n in decided[tick]})
        if tick == 6:
            live.join(["x"])
            live.leave(["5"])
    truth = {n: reply(5, n) for n in decided[5]}
    live.correct(truth, 5, "the columns were swapped")
    assert live.status().corrections == 2
    digest = live.events()[-1].digest.hex()
    live.close()
    rebuild_file(path, tmp_path / "new.db")
    new = rs.LiveAgent.open(tmp_path / "new.db")
    assert new.events()[0].body["parent"] == digest
    assert [new.decision(tick).arms for tick in range(12)] == list(decided.values())
    assert new.results(5) == truth
    assert new.check() == len(new.events())
    new.decide(tick=12)
    agent = rs.TSDE(PRIORS["equal"](6), 2, seed=3, start=rs.BeliefState([1] * 6, [LONG_AGO] * 6))
    for tick in range(12):
        arms = [int(n) for n in decided[tick] if n != "x"]
        agent.pull(arms)
        agent.observe([reply(tick, str(k)) for k in arms])
    for k in range(6):
        assert weights(new, str(k)) == agent.posterior(k).weights.tobytes()
    assert fingerprint(rs.LiveAgent.open(tmp_path / "new.db")) == fingerprint(new)
    assert new.alarms() == ()


def test_a_rebuilt_file_uses_what_was_superseded(path, tmp_path):
    live = created(path, num_arms=2, num_pulls=2, clock=rs.Clock.given())
    for tick in range(3):
        live.decide(tick=tick)
        if tick != 1:
            live.record({"0": 1, "1": 0})
    live.record({"0": 0}, tick=1)
    live.decide(tick=5, skip=True)
    live.decide(tick=6)
    live.record({}, tick=3, instead={"0": 1})
    rebuild_file(path, tmp_path / "new.db")
    new = rs.LiveAgent.open(tmp_path / "new.db")
    assert new.status().superseded == 0
    assert new.results(1) == {"0": 0, "1": "unseen"}
    assert [row["state"] for row in new.history("0")] == [1, 0, 1, 1, None, None]
    assert memory_of(new).agent.evidence(0).total == 4


def test_a_correction_may_be_of_a_pull_that_showed_nothing_or_should_not_have(path, tmp_path):
    live = created(
        path, num_arms=3, num_pulls=3, clock=rs.Clock.given(), outcomes={"away": "unseen"}
    )
    live.decide(tick=0)
    live.record({"0": "not-pulled", "1": "away", "2": 1})
    live.decide(tick=1)
    live.correct({"0": 1, "1": 0, "2": "away"}, 0, "the export was broken")
    rebuild_file(path, tmp_path / "new.db")
    new = rs.LiveAgent.open(tmp_path / "new.db")
    assert new.results(0) == {"0": 1, "1": 0, "2": "unseen"}
    assert new.check() == len(new.events())


def test_corrections_that_cannot_be(path):
    live = created(path)
    decision = live.decide()
    with pytest.raises(ProblemError, match="nothing was recorded for tick 0"):
        live.correct({decision.arms[0]: 1}, 0, "why")
    live.record(dict.fromkeys(decision.arms, 1))
    with pytest.raises(ProblemError, match="9 is no result: say 0, 1, unseen, not-pulled"):
        live.correct({decision.arms[0]: 9}, 0, "why")
    with pytest.raises(ProblemError, match="the note on why"):
        live.correct({decision.arms[0]: 0}, 0, "")


# ---------------------------------------------------------------- reading


def test_forecasts_are_of_what_comes(path):
    """With chains that are known, the mean reward is known: that of the stationary law."""
    arm = rs.gilbert_elliott(0.3, 0.6)
    live = rs.LiveAgent.create(
        path, rs.IndependentPrior([rs.ArmPrior([arm])] * 2), 2, durability="process"
    )
    good = 0.3 / 0.7
    found = live.forecast(ticks=3, paths=400, seed=2)
    assert found.ticks == (0, 1, 2)
    # a binomial of 800 coins has a standard error below 0.036 a tick; four of them
    np.testing.assert_allclose(found.mean, 2 * good, atol=4 * 0.0354)
    assert (found.low <= found.mean).all()
    assert found.total[0] == pytest.approx(found.mean.sum())
    decision = live.decide()
    live.record({decision.arms[0]: 1})
    assert live.forecast(ticks=1, paths=5).ticks == (1,)
    live.join(["x"])
    live.leave(["0"])
    live.step({decision.arms[1]: 1})
    assert live.forecast(ticks=2, paths=5).mean.max() <= 2
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)  # nothing was learned from it


def test_forecasts_know_audit_pulls(path):
    """All pulls are drawn evenly among good arms and bad ones, and the draws are the seed's."""
    arms = [rs.ArmPrior([rs.Arm([[1 - p, p]] * 2, rewards=[0, 1])]) for p in (0.9, 0.1)]
    prior = rs.IndependentPrior([arms[0]] * 10 + [arms[1]] * 10)
    live = rs.LiveAgent.create(path, prior, 4, audit_pulls=4, durability="process")
    found = live.forecast(ticks=10, paths=200, seed=1)
    for tick in range(10):
        decision = live.decide()
        assert decision.audit == decision.arms
        # 800 coins of .9 or .1 have a standard error of 0.042; four of them
        assert found.mean[tick] == pytest.approx(sum(decision.expected), abs=4 * 0.0425)
        live.record(dict.fromkeys(decision.arms, 1))
    assert found.total[0] < 28  # the best arms alone would earn 36


def test_status_says_whose_rewards_these_are_where_all_arms_pay(path):
    arm = rs.Arm([[0.6, 0.4], [0.3, 0.7]], rewards=[0, 1], passive_rewards=[0, 1])
    live = rs.LiveAgent.create(
        path, rs.IndependentPrior([rs.ArmPrior([arm])] * 3), 1, durability="process",
        words={"arm": "patient", "pull": "call"},
    )  # fmt: skip
    assert live.status().pulled_only
    lines = status_lines(live.status(), live.settings)
    said = "reward, forecast and alarms are of calls alone: patients count without one, too, and"
    assert any(line.startswith(said) for line in lines)
    assert not created(path.with_name("other.db")).status().pulled_only


def test_pages_of_arms_tables_and_rewards(path):
    live = created(path, num_arms=30, names=[f"line {k:02}" for k in range(30)])
    run(live, 20)
    live.decide()
    first = live.arms(limit=7)
    assert [row.name for row in first] == [f"line {k:02}" for k in range(7)]
    assert [row.name for row in live.arms("line 06", 7)] == [f"line {k:02}" for k in range(7, 14)]
    by_index = [*live.arms(None, 20, "index"), *live.arms(20, 20, "index")]
    assert len({row.name for row in by_index}) == 30
    index = [row.index for row in by_index]
    assert index == sorted(index, reverse=True)
    assert sum(row.pulls for row in by_index) == 40  # the last tick is open
    row = live.arm(live.decision(19).arms[0])
    assert (row.last_tick, row.last_state) == (19, reply(19, row.name))
    assert row.good == live.belief(row.name)[1]
    history = live.history(row.name)
    assert history[-1]["status"] in ("seen", "open")
    assert len(live.to_pandas("pulls")) == 42
    assert list(live.to_pandas("beliefs").columns[-2:]) == ["belief_0", "belief_1"]
    rewards = live.rewards()
    assert sum(row["reward"] for row in rewards) == live.status().reward
    assert rewards[3]["mean"] == pytest.approx(sum(live.decision(3).expected))
    assert live.status().forecast == pytest.approx(sum(row["forecast"] for row in rewards))
    for call in (
        lambda: live.table("nothing"),
        lambda: live.arms(by="colour"),
        lambda: live.arms(limit=5000),
        lambda: live.arm("nobody"),
    ):
        with pytest.raises(ProblemError):
            call()
    assert live.decision(77) is None
    assert [event.seq for event in live.events(since=3, limit=2)] == [4, 5]


def test_a_prior_file_brings_names_kinds_and_what_was_seen(path, tmp_path):
    rows = [
        {"name": "A", "kind": 0, "last_state": 1, "elapsed": 3, "evidence": [[1, 1, 1, 4]]},
        {"name": "B", "kind": 1, "last_state": 0, "elapsed": 1, "evidence": []},
        {"name": "C", "kind": 0, "last_state": 0, "elapsed": 2, "evidence": [[0, 2, 0, 3]]},
    ]
    matrices = [[[0.7, 0.3], [0.2, 0.8]], [[0.4, 0.6], [0.5, 0.5]]]
    data = {
        "format": "restive prior 2", "pulls": 1, "states": ["bad", "good"], "rewards": [0, 1],
        "kinds": [{"name": kind, "candidates": matrices, "weights": [0.5, 0.5]}
                  for kind in ("town", "rural")],
        "arms": rows,
    }  # fmt: skip
    file = tmp_path / "prior.json"
    file.write_text(json.dumps(data))
    found = rs.load_prior(file)
    live = rs.LiveAgent.create(path, found, 1, durability="process")
    assert live.kinds == ("town", "rural")
    for k, name in enumerate("ABC"):
        assert weights(live, name) == found.prior.arms[k].weights.tobytes()
    assert live.arm("A").last_tick == -3
    live.join({"D": "rural"})
    with pytest.raises(ProblemError, match="say each arm's kind: one of town, rural"):
        live.join(["E"])
    decision = live.decide()
    live.step(dict.fromkeys(decision.arms, 1))
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    live.snapshot()
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)


def test_an_arm_cannot_be_seen_before_it_joined(path, tmp_path):
    """Such a sighting could not be put in the order of time."""
    live = created(path, num_arms=2, clock=rs.Clock.given())
    for tick in range(4):
        live.decide(tick=tick)
        if tick == 2:
            live.join(["A"], {"A": (0, 9)})
    with pytest.raises(RefusedError, match="arm 'A': it joined in tick 2 and cannot be seen"):
        live.record({}, tick=1, instead={"A": 1})
    live.record({}, tick=2, instead={"A": 1})
    rebuild_file(path, tmp_path / "new.db")


# ---------------------------------------------------------------- files


def test_a_file_equal_to_an_earlier_one_is_of_its_own_tick(path):
    live = created(path, num_arms=2, num_pulls=2, clock=rs.Clock.given())
    sheet = parse_sheet(b"arm,state\n0,1\n1,0\n", "r.csv")
    for tick in range(3):
        live.decide(tick=tick)
        done = record_sheet(live, sheet)
        assert (done.receipt.new, done.repeated) == (2, None)
        again = record_sheet(live, sheet)
        assert (again.receipt, again.repeated) == (done.receipt, tick)
        assert live.results(tick) == {"0": 1, "1": 0}
    assert record_sheet(live, sheet, 1).repeated == 1
    live.undo()
    assert live.results() == {"0": "open", "1": "open"}
    assert record_sheet(live, sheet).receipt.new == 2


def test_how_a_file_is_read_is_part_of_its_request(path):
    live = created(path, num_arms=3, num_pulls=2, clock=rs.Clock.given())
    decided = live.decide(tick=0).arms
    other = next(name for name in "012" if name not in decided)
    sheet = parse_sheet(f"arm,state\n{decided[0]},1\n{other},0\n".encode(), "r.csv")
    assert record_sheet(live, sheet, accept_good=True).receipt.new == 1
    done = record_sheet(live, sheet, pulled_instead=True)
    assert (done.receipt.new, done.receipt.known, done.repeated) == (1, 1, None)


def test_a_clients_key_is_not_taken_for_a_files(path):
    live = created(path, num_arms=2, num_pulls=2, clock=rs.Clock.given())
    sheet = parse_sheet(b"arm,state\n0,1\n1,0\n", "r.csv")
    live.decide(f"file {sheet.digest} tick 0", tick=0)
    assert record_sheet(live, sheet).receipt.new == 2
    (own,) = [event.request for event in live.events() if event.kind == "record"]
    assert own.endswith("tick 0")
    with pytest.raises(ProblemError, match="must not begin with a blank"):
        live.decide(own, tick=1)


def test_a_file_is_opened_through_a_link_while_others_write(path, tmp_path):
    live = created(path, clock=rs.Clock.given())
    live.decide(tick=0)  # which is in the log beside the file
    link = tmp_path / "elsewhere"
    link.mkdir()
    (link / "link.db").symlink_to(path)
    with rs.LiveAgent.open(link / "link.db") as again:
        assert again.tick == 0
        again.decide(tick=1)
    assert live.tick == 1


# ---------------------------------------------------------------- what a log saw before


@pytest.fixture
def prior_file(tmp_path):
    """A weekly log until 2025-12-22, in which A was seen in the last week and B two before."""
    weeks = ["2025-12-01", "2025-12-08", "2025-12-15", "2025-12-22"]
    rows = [(week, "A", k % 2) for k, week in enumerate(weeks)]
    rows += [(week, "B", 1) for week in weeks[:2]]
    log = tmp_path / "log.csv"
    log.write_text("week,arm,state\n" + "".join(f"{w},{a},{s}\n" for w, a, s in rows))
    found = rs.load_log(log, time="week", arm="arm", state="state", step="1w")
    write_fit(rs.fit_log(found), tmp_path / "fit")
    return rs.load_prior(tmp_path / "fit" / "prior.json")


@pytest.mark.parametrize(
    ("clock", "ages"),
    [
        (rs.Clock.given("2025-12-29", "P7D"), {"A": 1, "B": 3}),
        (rs.Clock.given("2026-11-16", "P7D"), {"A": 47, "B": 49}),
        (rs.Clock.given(), {"A": 1, "B": 3}),
        (rs.Clock.calls(), {"A": 1, "B": 3}),
    ],
)
def test_arms_grow_older_between_the_logs_end_and_the_first_tick(path, prior_file, clock, ages):
    live = rs.LiveAgent.create(path, prior_file, 1, clock=clock, durability="process")
    found = memory_of(live).agent.belief_state.elapsed.tolist()
    assert dict(zip(("A", "B"), found, strict=True)) == ages


def test_a_start_before_the_logs_end_is_an_error(path, prior_file):
    for start in ("2025-12-22", "2025-12-01"):
        with pytest.raises(ProblemError, match=f"until 2025-12-22, but .* begins {start}; say a l"):
            rs.LiveAgent.create(path, prior_file, 1, clock=rs.Clock.wall(start, "P7D"))
    assert not path.exists()


def test_who_has_left_is_on_no_list_that_is_written_again(tmp_path):
    live = created(tmp_path / "a.db", num_pulls=3, clock=rs.Clock.given())
    gone, told, other = live.decide(tick=0).arms
    live.record({told: 1})
    live.leave([gone, told])
    out = tmp_path / "list.csv"
    said = CliRunner().invoke(
        app, ["live", "next", str(tmp_path / "a.db"), "--tick", "0", "--out", str(out)]
    )
    assert "list.csv: 2 arms for tick 0" in said.output.replace("\n", "")
    rows = parse_sheet(out.read_bytes(), "list.csv").rows
    assert [(row["arm"], row["outcome"]) for row in rows] == [(told, "1"), (other, "")]
    assert live.uncalled(0) == {gone}
