"""Forgetting in a live file: posteriors next to an agent that never saw what is forgotten."""

import itertools
import json
import shutil

import numpy as np
import pytest
from scipy.stats import entropy
from typer.testing import CliRunner

import restive as rs
from live_cases import PRIORS, created, fingerprint, reply, run
from restive.cli import app
from restive.errors import ConflictError, ProblemError, RestiveError, StoreError
from restive.live.checking import check
from restive.live.creating import create_file, rebuild_file
from restive.live.journal.events import Journal, copy_journal
from restive.live.people.roster import NewArm
from restive.live.settings import Settings
from restive.live.told.answers import causes
from restive.live.told.onset import onset
from restive.problem.beliefs import BeliefState

KINDS = [kind for kind in PRIORS if kind != "joint"]
GIVEN = {"clock": rs.Clock.given()}
WEEKS = {"clock": rs.Clock.given("2026-11-16", "P7D")}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def played(live, ticks, first=0):
    """Decide ticks and record their results, but for one in four, which come two ticks late."""
    waiting = {}
    for tick in range(first, first + ticks):
        arms = live.decide(tick=tick).arms
        late = {a for a in arms if (tick + int(a)) % 4 == 0}
        waiting[tick] = late
        live.record({a: reply(tick, a) for a in arms if a not in late})
        if waiting.get(tick - 2):
            live.record({a: reply(tick - 2, a) for a in waiting[tick - 2]}, tick - 2)


def sightings(live, name):
    """Ticks and states that were learned from, in the order of time."""
    return [(row["tick"], row["state"]) for row in live.history(name)
            if row["state"] is not None and row["status"] != "superseded"
            and row["tick"] < live.tick]  # fmt: skip


def weights(live, names=None):
    names = map(str, range(6)) if names is None else names
    found = {name: live._session.memory.agent.posterior(int(name)) for name in names}
    return {name: (one.weights.tobytes(), one.active.tobytes()) for name, one in found.items()}


def alone(live, kind, names, before):
    """Return an agent that has seen nothing of an arm but what was seen of it from a tick on.

    It begins knowing where the arm was seen last before, as one does of an arm that joins.
    """
    told = {name: sightings(live, name) for name in names}
    states, ages = [1] * 6, [1] * 6
    for name, seen in told.items():
        earlier = [(tick, state) for tick, state in seen if tick < before]
        tick, state = earlier[-1] if earlier else (-(1 << 20), 1)
        states[int(name)], ages[int(name)] = state, before - tick
    agent = rs.TSDE(PRIORS[kind](6), 2, seed=3, start=BeliefState(states, ages), max_elapsed=None)
    by_tick = {}
    for name, seen in told.items():
        for tick, state in seen:
            if tick >= before:
                by_tick.setdefault(tick, {})[int(name)] = state
    for tick in range(before, live.tick):
        now = dict(sorted(by_tick.get(tick, {}).items()))
        agent.pull(list(now))
        agent.observe(list(now.values()))
    return agent


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_believed_is_that_of_an_agent_that_never_saw_it(path, kind):
    live = created(path, kind, **GIVEN)
    played(live, 14)
    # of identical arms one tells of all
    names = [*map(str, range(6))] if kind == "pooled" else ["0", "1", "3"]
    others = [name for name in map(str, range(6)) if name not in names]
    kept, before = weights(live, others), weights(live, names)
    done = live.forget(6, names)
    assert (done.before, done.arms) == (6, len(names))
    found = weights(live, names)
    assert found != before
    assert weights(live, others) == kept
    agent = alone(live, kind, names, 6)
    for name in names:
        one = agent.posterior(int(name))
        assert found[name] == (one.weights.tobytes(), one.active.tobytes())
    played(live, 3, 14)  # it goes on from there
    agent = alone(live, kind, names, 6)
    for name in names:
        one = live._session.memory.agent.posterior(int(name))
        np.testing.assert_allclose(one.weights, agent.posterior(int(name)).weights, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_forgets_is_the_same_wherever_it_is_read(path, tmp_path, kind):
    live = created(path, kind, **GIVEN)
    played(live, 9)
    live.forget(5)
    live.forget(7, kind=live.kinds[-1])
    expected = fingerprint(live)
    assert fingerprint(rs.LiveAgent.open(path)) == expected  # replayed
    live.snapshot()
    again = rs.LiveAgent.open(path)
    assert again.events_replayed == 0
    assert fingerprint(again) == expected
    played(live, 4, 9)
    live.check()
    copied = tmp_path / "copy.db"
    journal = Journal(path)
    copy_journal(journal, copied)
    journal.close()
    assert fingerprint(rs.LiveAgent.open(copied)) == fingerprint(live)
    told = [(one.kind, one.body) for one in live.events() if one.kind == "forget"]
    rebuild_file(path, tmp_path / "new.db")
    new = rs.LiveAgent.open(tmp_path / "new.db")
    assert check(new._session.journal)[0] == len(new.events())
    again = [(one.kind, one.body) for one in new.events() if one.kind == "forget"]
    assert [body["arms"] for _, body in again] == [body["arms"] for _, body in told]
    for name in map(str, range(6)):
        if any(row["status"] == "superseded" for row in live.history(name)):
            continue  # a rebuilt file begins with where it was seen then
        mine, its = (one._session.memory.agent.posterior(int(name)) for one in (live, new))
        np.testing.assert_allclose(mine.weights, its.weights, atol=1e-12)
    assert [one.before for one in new.status().forgotten] == [
        one.before for one in live.status().forgotten
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_undo_leaves_no_trace(path, kind, tmp_path):
    live = created(path, kind, **GIVEN)
    played(live, 8)
    expected = fingerprint(live)
    live.forget(4, ["2"] if kind != "pooled" else None)
    live.forget(6)
    live.undo()
    live.undo()
    assert fingerprint(live) == expected
    assert fingerprint(rs.LiveAgent.open(path)) == expected
    assert live.status().forgotten == ()
    live.check()


def test_acts_of_all_sorts_are_undone_in_their_order(path):
    """Forgetting between other acts: each prefix of history comes back, to the bit."""
    live = created(path, **GIVEN)
    played(live, 6)
    acts = [
        lambda: live.forget(3, ["1", "2"]),
        lambda: live.record(dict.fromkeys(live.decision(6).arms, 1)),
        lambda: live.remember(30),
        lambda: live.forget(5),
        lambda: live.remember(None),
    ]
    live.decide(tick=6)
    states = []
    for act in acts:
        states.append(fingerprint(live))
        act()
    live.check()
    for state in reversed(states):
        live.undo()
        assert fingerprint(live) == state
        assert fingerprint(rs.LiveAgent.open(path)) == state
    live.check()


def test_results_of_the_open_tick_are_taken_back_though_something_was_forgotten(path):
    live = created(path, **GIVEN)
    played(live, 6)
    arm, *_ = live.decide(tick=6).arms
    other = created(path.with_name("b.db"), **GIVEN)
    played(other, 6)
    other.decide(tick=6)
    live.record({arm: 0})
    ((_, event),) = live.changeable().items()
    for one in (live, other):
        one.forget(4)
    assert list(live.changeable().values()) == [event]
    live.undo(event)
    assert fingerprint(live) == fingerprint(other)
    live.check()


def test_a_late_result_that_still_counts_cannot_be_taken_back_alone(path):
    live = created(path, **GIVEN)
    played(live, 6)
    arms = live.decide(tick=6).arms
    live.decide(tick=7)
    late = next(arm for arm in arms if not live._session.memory.seen_since(int(arm), 6))
    live.record({late: 1}, 6)
    (event,) = live.changeable().values()
    live.forget(5)
    assert live.changeable() == {}
    with pytest.raises(ConflictError, match="undo the forgetting of what was seen of all arms"):
        live.undo(event)
    live.undo()
    assert list(live.changeable().values()) == [event]


def test_what_comes_late_from_before_is_kept_and_not_used(path):
    live = created(path, **GIVEN)
    played(live, 6)
    arms = live.decide(tick=6).arms
    live.decide(tick=7)
    live.decide(tick=8)
    live.forget(7)
    before = fingerprint(live)
    receipt = live.record({arms[0]: 1}, 6)
    assert (receipt.late, receipt.superseded) == (0, 1)
    assert fingerprint(live) == before
    assert "too late to be used" in receipt.text()
    live.decide(tick=9)
    live.check()


def test_it_can_be_forgotten_again_from_a_later_tick_and_never_less(path):
    live = created(path, **GIVEN)
    played(live, 8)
    live.forget(6)
    later = weights(live)
    with pytest.raises(ProblemError, match=r"nothing that counts was seen before tick 4: .*"):
        live.forget(4)
    live.forget(7, ["1"])
    assert weights(live)["0"] == later["0"]
    with pytest.raises(ProblemError, match="forgotten already"):
        live.forget(7, ["1"])
    live.forget(7)  # of those of whom something counts still
    assert len(live.events()[-1].body["arms"]) == 5
    twice = weights(live)
    live.undo()
    live.undo()
    live.undo()
    live.forget(7)
    assert weights(live) == twice


def test_what_a_log_said_is_forgotten_too(path):
    kind = rs.grid_prior([0.2, 0.5, 0.8], 1).arms[0]
    cells = ((1, 1, 1, 9), (1, 1, 0, 3), (0, 1, 0, 2))
    people = [NewArm(str(k), "all", 1, 2, cells) for k in range(4)]
    create_file(path, Settings(2, clock=rs.Clock.given()), {"all": kind}, people, "a test")
    live = rs.LiveAgent.open(path)
    assert not np.array_equal(live.posterior("0").weights, kind.weights)
    played(live, 5)
    live.decide(tick=5)
    live.decide(tick=6)
    live.forget(6)
    assert np.array_equal(live.posterior("0").weights, kind.weights)
    live.snapshot()
    again = rs.LiveAgent.open(path)
    assert again.events_replayed == 0
    assert fingerprint(again) == fingerprint(live)
    live.check()
    live.decide(tick=7)
    live.join({"A": "all"})
    live.decide(tick=8)  # which makes an agent of more arms
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    assert np.array_equal(live.posterior("0").weights, kind.weights)
    for _ in range(4):
        live.undo()
    assert not np.array_equal(live.posterior("0").weights, kind.weights)


def test_arms_that_are_always_seen(path):
    prior = rs.zoo.load("calls-8").prior
    live = rs.LiveAgent.create(
        path, prior, 3, clock=rs.Clock.given(), seed=1, missing="refuse", durability="process",
        start=BeliefState([0] * 8, [1] * 8),
    )  # fmt: skip
    rng = np.random.default_rng(4)
    told = []
    last = [0] * 8
    for tick in range(12):
        arms = live.decide(tick=tick).arms
        new = rng.integers(0, live.num_states("0"), 8).tolist()
        live.record({str(k): state for k, state in enumerate(new)})
        told.append((set(map(int, arms)), last, new))
        last = new
    live.decide(tick=12)
    live.forget(8, ["0", "5"])
    for k in (0, 5):
        alphas = prior.arms[k].posterior_alphas.copy()
        size = alphas.shape[-1]
        rows = alphas.reshape(-1, size)
        for pulled, before, after in told[8:]:
            rows[before[k] + (0 if k in pulled or len(rows) == size else size), after[k]] += 1
        groups = live._session.memory.agent._particle_keeper.conjugates
        found = groups._part(groups.groups.counts + groups.groups.alphas, k).reshape(-1, size)
        np.testing.assert_array_equal(found, rows)
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    live.check()


def test_a_forged_forgetting_is_found(path):
    live = created(path, **GIVEN)
    played(live, 8)
    live.forget(4)
    seq = live.events()[-1].seq
    body = live.events()[-1].body
    body["kept"]["state"][0] = 1 - body["kept"]["state"][0]
    live.close()
    journal = Journal(path)
    event = next(journal.events(seq - 1, 1))
    text = json.dumps(body, separators=(",", ":"), sort_keys=True)
    forged = event._replace(text=text)
    before = next(journal.events(seq - 2, 1)).digest
    digest = forged.expected_digest(before)
    journal.connection.execute(
        "UPDATE event SET body = ?, digest = ? WHERE seq = ?", (text, digest, seq)
    )
    journal.close()
    with pytest.raises(StoreError, match=rf"event {seq} does not say what was seen since tick 4"):
        check(Journal(path))


# ---------------------------------------------------------------- how long to remember


def test_a_memory_is_changed_while_it_runs(path):
    live = created(path, learner="tsde(forget_after=40)", **GIVEN)
    assert live.settings.learner == {"name": "tsde", "forget_after": 40}
    played(live, 5)
    live.remember(10)
    assert live.settings.learner["forget_after"] == 10
    assert live._session.memory.agent.learner.forget_after == 10
    played(live, 3, 5)
    live.snapshot()
    played(live, 2, 8)
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    live.check()
    assert live.status().forget_after == 10
    live.remember(None)
    assert live._session.memory.agent.learner.forget_after is None
    assert "forget_after" not in live.settings.learner
    live.undo()
    assert live.settings.learner["forget_after"] == 10
    assert rs.LiveAgent.open(path).settings == live.settings


def test_a_memory_that_is_set_from_the_first_tick_is_that_of_the_learner(path, tmp_path):
    one = created(path, learner={"name": "tsde", "forget_after": 7}, **GIVEN)
    two = created(tmp_path / "b.db", **GIVEN)
    two.remember(7)
    for live in (one, two):
        played(live, 30)
    assert [one.decision(t) for t in range(30)] == [two.decision(t) for t in range(30)]
    assert weights(one) == weights(two)
    rebuild_file(tmp_path / "b.db", tmp_path / "c.db")
    new = rs.LiveAgent.open(tmp_path / "c.db")
    assert new.settings == two.settings
    new.check()


def test_init_takes_a_learner_with_options(path, tmp_path):
    people = tmp_path / "people.csv"
    people.write_text("arm\nann\nbob\n")
    done = CliRunner().invoke(
        app, ["live", "init", str(path), "--pulls", "1", "--levels", "0.2,0.8", "--arms",
              str(people), "--learner", "tsde(forget_after=1000)"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "learner: tsde(forget_after=1000)" in done.output
    live = rs.LiveAgent.open(path)
    assert live._session.memory.agent.learner.forget_after == 1000
    other = tmp_path / "b.db"
    done = CliRunner().invoke(
        app, ["live", "init", str(other), "--pulls", "1", "--states", "missed,taken", "--arms",
              str(people), "--learner", "mean_index(forget_after=26)"],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "learner: mean_index(forget_after=26), kinds learnt as you go" in done.output
    assert rs.LiveAgent.open(other).settings.learner == {
        "name": "mean_index", "forget_after": 26, "learn_kinds": "epochs",
    }  # fmt: skip


def test_of_identical_arms_all_are_forgotten(path):
    live = created(path, "pooled", **GIVEN)
    played(live, 8)
    assert live.forget(5, ["0"]).arms == 2
    assert live.events()[-1].body["arms"] == [0, 2]


@pytest.mark.parametrize("ticks", [0, 0.5, -1, "long", float("nan"), True])
def test_wrong_memories_change_nothing(path, ticks):
    live = created(path, **GIVEN)
    before = len(live.events())
    with pytest.raises(ProblemError, match=r"forget_after must be a number from 1"):
        live.remember(ticks)
    with pytest.raises(ProblemError, match="old results count as much as new ones already"):
        live.remember(None)
    assert len(live.events()) == before
    played(live, 2)


@pytest.mark.parametrize(
    ("learner", "said"),
    [
        ("tsde(forget_after=0)", "from 1 to"),
        ("tsde(forget_after=1000", "a name with options such as"),
        ("tsde(forget_after)", "a name with options such as"),
        ("tsde(forgets=3)", "unknown option 'forgets'"),
        ("ucb1(forget_after=3)", "forget_after"),
        ("ucb1", "one that has a posterior"),
    ],
)
def test_wrong_learners_get_a_sentence(path, learner, said):
    with pytest.raises(ProblemError, match=said) as error:
        created(path, learner=learner)
    assert "\n" not in str(error.value)
    assert not path.exists()


# ---------------------------------------------------------------- bad input


def test_bad_input_changes_nothing(path):
    live = rs.LiveAgent.create(
        path, rs.grid_prior([0.2, 0.8], 4), 2, names=["ann", "bob", "cy", "di"],
        words={"arm": "patient", "tick": "week"}, **WEEKS,
    )  # fmt: skip
    with pytest.raises(ProblemError, match="nothing has been decided yet"):
        live.forget(1)
    for tick in range(4):
        live.record({a: reply(tick, a) for a in live.decide(tick=tick).arms})
    live.join({"eve": live.kinds[0]})
    before = fingerprint(live), len(live.events())
    for call, said in [
        (lambda: live.forget(2, ["dan"]), "there is no patient 'dan'"),
        (lambda: live.forget(2, ["eve"]), "'eve' joins with the next decision"),
        (lambda: live.forget(2, kind="town"), "there is no kind 'town'"),
        (lambda: live.forget(2, ["ann"], kind="all"), "of some patients or of a kind, not both"),
        (lambda: live.forget(2, []), "no patient is named"),
        (lambda: live.forget(2, "ann"), "must be a list of names"),
        (lambda: live.forget(9), r"week 9 \(2027-01-18\) has no list yet: say week 3"),
        (lambda: live.forget(0), r"nothing was seen before week 0 \(2026-11-16\), the first week"),
        (lambda: live.forget(-1), "before"),
        (lambda: live.forget(1.5), "before"),
        (lambda: live.forget("2026-01-01"), "before the start, 2026-11-16"),
        (lambda: live.forget("soon"), "must be year-month-day"),
    ]:
        with pytest.raises(RestiveError, match=said) as error:
            call()
        assert "\n" not in str(error.value)
        assert (fingerprint(live), len(live.events())) == before
    named = live.settings.clock.tick_named
    assert named("2026-12-01") == named("2") == named(2) == 2


def test_a_joint_prior_forgets_nothing(path):
    live = created(path, "joint")
    run(live, 4)
    before = fingerprint(live)
    with pytest.raises(ProblemError, match=r"joint prior .* nothing was changed"):
        live.forget(2)
    assert fingerprint(live) == before


def test_a_request_is_answered_once(path):
    live = created(path, **GIVEN)
    played(live, 5)
    first = live.forget(3, request="one")
    assert live.forget(3, request="one") == first
    live.remember(50, request="two")
    live.remember(50, request="two")
    assert [one.kind for one in live.events()[-2:]] == ["forget", "remember"]
    with pytest.raises(ConflictError):
        live.forget(4, request="one")


# ---------------------------------------------------------------- after an alarm


def test_since_when_is_the_bet_that_would_have_earned_the_most():
    rng = np.random.default_rng(1)
    for _ in range(40):
        gains = [(int(tick), rng.normal(size=3).tolist()) for tick in range(3, 12)]
        sums = {
            first: max(sum(row[bet] for tick, row in gains if tick >= first) for bet in range(3))
            for first, _ in gains
        }
        assert onset(gains) == max(sums, key=lambda first: (sums[first], first))


def changed(path, at=30, ticks=60, until="", **options):
    """Run a file of two kinds of channels; those of "town" are good no more from a tick on."""
    kinds = {"town": 0.9, "rural": 0.85}
    arms = [rs.ArmPrior([rs.gilbert_elliott(0.6, p)]) for p in kinds.values()]
    people = [NewArm(f"{kind} {k}", kind, 1, 1) for kind in kinds for k in range(6)]
    priors = dict(zip(kinds, arms, strict=True))
    settings = Settings(12, clock=rs.Clock.given("2026-11-16", "P7D"), **options)
    create_file(path, settings, priors, people, "a test")
    live = rs.LiveAgent.open(path)
    rng = np.random.default_rng(5)
    for tick in range(ticks):
        arms = live.decide(tick=tick).arms
        good = {a: 0.2 if a.startswith("town") and tick >= at else 0.84 for a in arms}
        live.record({a: int(rng.random() < good[a]) for a in arms})
        if any(one.name == (until or one.name) for one in live.alarms()):
            break
    return live


def test_an_alarm_leads_to_what_may_be_forgotten(path):
    live = changed(path)
    found = {one.name: one for one in live.alarms()}
    town = found["reward too low: town"]
    assert town.kind == "town"
    assert 28 <= town.began <= town.tick  # it began in 30
    assert town.began_label == live.settings.clock.label(town.began)
    assert "if arms of kind 'town' have changed for good" in town.remedy()
    shown = CliRunner().invoke(app, ["live", "status", str(path)], env={"COLUMNS": "400"})
    command = f"restive live forget {path} --kind town --before {town.began_label}"
    assert command in shown.output.replace("\n", " ")
    done = CliRunner().invoke(app, command.split()[1:])
    assert done.exit_code == 0, done.output
    (told,) = live.status().forgotten
    assert (told.kind, told.before, told.actor) == ("town", town.began, "command line")


def test_alarms_of_one_cause_are_one_line_and_answered_and_undone_together(path):
    live = changed(path, until="reward too low")  # of all arms, since it is off in town
    everyone, town = (
        next(one for one in live.alarms() if one.name == name)
        for name in ("reward too low", "reward too low: town")
    )
    shown = CliRunner().invoke(app, ["live", "status", str(path)], env={"COLUMNS": "400"})
    said = [line for line in shown.output.splitlines() if line.startswith("ALARM")]
    assert len(said) == len(causes(live.alarms())) < len(live.alarms())
    (line,) = [one for one in said if "reward too low" in one]
    assert line.startswith(f"ALARM {everyone.seq} and {town.seq}, reward too low")
    assert f"({town.seq}: of kind 'town' by itself, too), noticed in tick" in line
    assert f"{town.seq}: if only arms of kind 'town' have changed for good: " in shown.output
    live.acknowledge([everyone.seq, town.seq], "the export")
    assert not {everyone, town} & {*live.alarms()}
    assert "the answer to the alarms “reward too low” and “reward too low: town”" in str(
        live.undo()
    )
    assert {everyone, town} <= {*live.alarms()}


def test_forgetting_by_itself_after_an_alarm(path, tmp_path):
    by_hand, live = changed(tmp_path / "b.db"), changed(path, on_alarm="forget")
    assert by_hand.status().forgotten == ()
    (told,) = live.status().forgotten  # not of all: one kind is off, and the other is not
    assert live.explain("town 0").known_now, "the list was made before that"
    alarm = next(one for one in live.alarms() if one.kind == "town")
    assert (told.kind, told.before, told.actor) == ("town", alarm.began, "restive")
    by_hand.forget(alarm.began, kind="town")
    assert weights(live, ["0", "7"]) == weights(by_hand, ["0", "7"])
    assert fingerprint(rs.LiveAgent.open(path)) == fingerprint(live)
    live.check()
    assert live.last_act().kind == "record"
    live.undo()
    assert live.last_act().kind == "forget"
    live.undo()
    assert live.status().forgotten == ()
    assert live.alarms() != ()  # which still rings, with the list that stands
    assert live.last_act().kind == "decide"


def test_on_alarm_is_forget_or_nothing(path):
    with pytest.raises(ProblemError, match="on_alarm must be 'forget', or be left out, got 'ask'"):
        created(path, on_alarm="ask")


# ---------------------------------------------------------------- in words


def told_on(path, *more):
    return CliRunner().invoke(app, ["live", *more[:1], str(path), *more[1:]])


def test_commands(path):
    live = rs.LiveAgent.create(
        path, rs.grid_prior([0.2, 0.8], 4), 2, names=["ann", "bob", "cy", "di"],
        words={"arm": "patient", "tick": "week"}, **WEEKS,
    )  # fmt: skip
    for tick in range(5):
        live.record({a: reply(tick, a) for a in live.decide(tick=tick).arms})
    done = told_on(path, "forget", "ann", "bob", "--before", "2026-11-30")
    assert (
        done.output.split()
        == (
            "what was seen of 2 patients before week 2 (2026-11-30) is forgotten; if that was not "
            f"meant: restive live undo {path}"
        ).split()
    )
    done = told_on(path, "forget", "--all", "--before", "3", "--json")
    assert json.loads(done.output) == {
        "event": len(live.events()), "before": 3, "label": "2026-12-07", "arms": 4, "kind": None,
        "name": None, "everyone": True, "actor": "command line",
    }  # fmt: skip
    for wrong in ([], ["ann", "--all"], ["--kind", "all", "ann"]):
        done = told_on(path, "forget", *wrong, "--before", "3")
        assert done.exit_code != 0
        assert "say of whom" in str(done.exception or done.output)
    assert "old results count as much" in told_on(path, "remember").output
    done = told_on(path, "remember", "--for", "26")
    said = " ".join(done.output.split())
    assert said == "results count less as they grow old: 37% after 26 weeks"
    status = " ".join(told_on(path, "status").output.split())
    assert "what was seen of all patients before week 3 (2026-12-07) is forgotten" in status
    assert "results count less as they grow old: 37% after 26 weeks" in status
    why = " ".join(told_on(path, "explain", "ann").output.split())
    assert "What was seen before week 3 (2026-12-07) is forgotten." in why
    assert "Results count less as they grow old: 37% after 26 weeks." in why
    done = told_on(path, "undo", "--yes")
    assert "withdrawn: the setting that results count less as they grow old" in " ".join(
        done.output.split()
    )
    done = told_on(path, "undo", "--yes")
    assert "withdrawn: the forgetting of what was seen of all patients before week 3" in " ".join(
        done.output.split()
    )
    assert rs.LiveAgent.open(path).explain("ann").forgotten == 2
    both = told_on(path, "remember", "--for", "3", "--for-ever")
    assert both.exit_code != 0


def test_only_what_is_not_part_of_more_is_told(path):
    live = created(path, num_arms=6, **GIVEN)
    played(live, 9)
    for before, names in itertools.product((3, 4), (["1"], ["2"])):
        live.forget(before, names)
    assert [one.text() for one in live.status().forgotten] == [
        "what was seen of 1 before tick 4 is forgotten",
        "what was seen of 2 before tick 4 is forgotten",
    ]
    live.forget(6)
    live.forget(8, ["5"])
    assert [one.what() for one in live.status().forgotten] == [
        "what was seen of all arms before tick 6", "what was seen of 5 before tick 8",
    ]  # fmt: skip


def test_a_copy_of_the_file_forgets_the_same(path, tmp_path):
    live = created(path, **GIVEN)
    played(live, 6)
    live.forget(4)
    live.backup(tmp_path / "b.db")
    assert fingerprint(rs.LiveAgent.open(tmp_path / "b.db")) == fingerprint(live)
    live.close()
    shutil.copy(path, tmp_path / "c.db")
    assert rs.LiveAgent.open(tmp_path / "c.db").status().forgotten[0].before == 4


@pytest.mark.parametrize("kind", ["equal", "controlled", "pooled"])
def test_the_curve_of_entropy_ends_with_what_is_believed(path, kind):
    live = created(path, kind, **GIVEN)
    played(live, 8)
    (first, *_) = live.entropy()
    live.forget(5)
    live.forget(6, ["0"])
    played(live, 3, 8)
    arms = live.decide(tick=11).arms
    assert arms
    (found, *_) = live.entropy()
    names = [name for name in map(str, range(6)) if live.arm(name).last_tick is not None]
    names = [name for name in names if live.arm(name).kind == found.kind]
    bits = [entropy(live.posterior(name).weights, base=2) for name in names]
    assert found.bits[-1] == pytest.approx(np.mean(bits), abs=1e-9)
    assert found.bits[found.ticks == 7] == pytest.approx(_as_it_was(path, kind), abs=1e-9)
    assert first.bits[-1] == pytest.approx(_as_it_was(path, kind, 0), abs=1e-9)
    if kind != "pooled":
        live.remember(20)
        assert live.entropy() == []


def _as_it_was(path, kind, forgets=2):
    """Entropy of what was believed in tick 7, when something was forgotten or before."""
    other = created(path.with_name(f"{kind} {forgets}.db"), kind, **GIVEN)
    played(other, 8)
    if forgets:
        other.forget(5)
        other.forget(6, ["0"])
    own = [name for name in map(str, range(6)) if other.arm(name).kind == other.arm("0").kind]
    seen = [name for name in own if other.arm(name).last_tick is not None]
    return np.mean([entropy(other.posterior(name).weights, base=2) for name in seen])


def test_an_alarm_says_where_weeks_before_were_not_watched(path):
    live = changed(path)
    first = next(one for one in live.alarms() if one.kind == "town")
    assert not first.watched_since, "it was watched from the first tick on"
    for one in live.alarms():
        live.acknowledge(one.seq, "looked")
    rng = np.random.default_rng(6)
    while not [one for one in live.alarms() if one.kind == "town"]:
        arms = live.decide(tick=live.tick + 1).arms
        live.record({a: int(rng.random() < (0.0 if a.startswith("town") else 0.84)) for a in arms})
    again = next(one for one in live.alarms() if one.kind == "town")
    assert again.began == first.tick, "the first that is watched anew"
    assert again.watched_since
    said = f"likely since tick {again.began} ({again.began_label}) or earlier, since ticks before "
    assert again.remedy().startswith(f"{said}{again.began} were not watched; if arms of kind")
    live.forget(again.began, kind="town")
    told = next(one for one in live.alarms() if one.kind == "town")
    assert told.forgotten
    assert told.remedy().endswith("is forgotten; now say what was found")
    shown = " ".join(told_on(path, "status").output.split())
    assert "is forgotten; now say what was found" in shown
    assert "--kind town --before" not in shown
    live.undo()
    assert not any(one.forgotten for one in live.alarms())
