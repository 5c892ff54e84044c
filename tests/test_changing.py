"""Worlds whose arms change: their law in the loop, and the policy that is told of the changes."""

import doctest
import importlib
import json
from pathlib import Path

import numpy as np
import pytest

import restive as rs
from learning_cases import random_arm
from oracles import changing_naive as naive
from restive.learn.learner_state import LearnerState
from restive.learn.learners import learner_of
from restive.learn.task import make_task
from restive.measure.changes import changing_world, with_phases
from restive.measure.loop import drive
from restive.measure.replication import replicate
from restive.plan.actors import make_record, make_trace
from restive.problem.changing import ChangingBandit
from restive.studies.spec import study_from_toml


def changing_arms(rng, sizes, changes, *, pays=False, seen="pulled", num_pulls=1):
    """Return arms of these sizes that change, those at even places only, at these steps."""

    def arm(size, rewards):
        made = random_arm(rng, size, rewards, spread=0.1)
        passive = rewards / 2 if pays else None
        return rs.Arm(made.active, made.passive, rewards, passive, seen=seen)

    rewards = [rng.random(size) for size in sizes]
    first = [arm(size, paid) for size, paid in zip(sizes, rewards, strict=True)]
    phases = [first]
    for _ in changes:
        phases.append(
            [
                arm(size, paid) if k % 2 == 0 or rng.random() < 0.3 else phases[-1][k]
                for k, (size, paid) in enumerate(zip(sizes, rewards, strict=True))
            ]
        )
    bandits = [rs.RestlessBandit(arms, num_pulls) for arms in phases]
    return ChangingBandit(bandits[0], list(zip(changes, bandits[1:], strict=True)))


def prior_of(changing):
    """Return a prior that holds the arms of all phases possible."""
    return rs.IndependentPrior(
        [
            rs.ArmPrior(list(dict.fromkeys(bandit.arms[k] for bandit in changing.bandits)))
            for k in range(changing.num_arms)
        ]
    )


def posed(changing, mapping="whittle", start=None, horizon=1000):
    task = make_task(
        prior_of(changing), changing.num_pulls, mapping, horizon, start=start,
        true_bandit=changing.first,
    )  # fmt: skip
    return with_phases(task, changing)


class Turns:
    """Somebody in Python who pulls arms in turn and writes down what is shown."""

    def __init__(self, num_arms, num_pulls):
        self.shown, self._time = [], 0
        self._num_arms, self._num_pulls = num_arms, num_pulls

    def select(self):
        first = self._time * self._num_pulls
        return np.sort((first + np.arange(self._num_pulls)) % self._num_arms)

    def observe(self, states):
        self._time += 1
        self.shown.append(states.tolist())


def run(task, phases, horizon, seed, learner=None, player=None, replication=0):
    """Return the record and the trace of one replication of a learner, or of who knows."""
    spec = None if learner is None else learner_of(learner)
    knows = learner is None and player is None
    state = LearnerState(task, spec, horizon, knows=knows)
    record = make_record(
        task.num_pulls, task.start, np.array([horizon // 2, horizon]),
        task.choices.true_kinds[None], seed, replication,
        memory=None if learner is None else state.actor.memory,
    )  # fmt: skip
    happened = make_trace(horizon, task.num_pulls)
    drive(state, changing_world(task, phases, horizon), record, happened, player)
    return record, happened


CASES = {
    "abrupt": {"sizes": [2, 3, 2], "changes": [20]},
    "often": {"sizes": [2, 2, 3, 2], "changes": [2, 3, 9, 10, 11, 30, 60], "num_pulls": 2},
    "one arm of many": {"sizes": [2] * 7, "changes": [31, 40]},
    "paid always": {"sizes": [3, 2, 2], "changes": [5, 6, 25], "pays": True},
    "seen always": {"sizes": [3, 2, 2], "changes": [4, 40], "pays": True, "seen": "always"},
}


@pytest.mark.parametrize("who", ["turns", "whittle", "tsde", "ucb1"])
@pytest.mark.parametrize("case", CASES)
def test_expected_rewards_are_those_of_the_filter_step_by_step(case, who):
    horizon, always = 80, case == "seen always"
    if always and who != "turns":
        return  # what the others were shown of arms that they did not pull is in no trace
    for seed in range(3):
        changing = changing_arms(np.random.default_rng(seed), **CASES[case])
        start = rs.BeliefState([0] * changing.num_arms, range(1, changing.num_arms + 1))
        task, phases = posed(changing, start=None if always else start, horizon=horizon)
        player = Turns(changing.num_arms, changing.num_pulls) if who == "turns" else None
        learner = None if who in ("turns", "whittle") else who
        record, happened = run(task, phases, horizon, seed, learner, player)
        filtered = naive.Filter(changing, task.start)
        arms, states = (part.reshape(horizon, -1) for part in happened[:2])
        expected = []
        for t in range(horizon):
            known = dict(zip(arms[t].tolist(), states[t].tolist(), strict=True))
            shown = player.shown[t] if always else known
            expected.append(filtered.step(arms[t], shown)[0])
        np.testing.assert_allclose(happened.expected, expected, rtol=0, atol=1e-11)
        halves = [np.sum(expected[: horizon // 2]), np.sum(expected)]
        np.testing.assert_allclose(record.expected, halves, rtol=1e-11)


def small_world(seed=5):
    """K=2, N=1: rewards tell the states apart; the first arm changes at step 3, both at step 5."""
    rng = np.random.default_rng(seed)
    changing = changing_arms(rng, [2, 2], [3, 5])
    start = rs.BeliefState([0, 1], [1, 2])
    task, phases = posed(changing, start=start, horizon=6)
    return changing, start, task, phases


def chosen_by_whittle(changing):
    """Return the arms that who knows pulls, as a function of phase, last states and ages."""
    policies = {
        id(bandit): rs.registry.policy_mapping("whittle")(bandit) for bandit in changing.bandits
    }

    def choose(bandit, last, elapsed):
        return policies[id(bandit)].select(rs.BeliefState(last, elapsed)).tolist()

    return choose


def enumerated(changing, start, horizon):
    """Return each history of (arm, state) that may be seen: its chance, and what was expected."""
    choose = chosen_by_whittle(changing)
    found = {}

    def go_on(history, chance, expected):
        filtered, state = naive.Filter(changing, start), start
        for arm, seen in history:
            filtered.step([arm], {arm: seen})
            state = state.updated([arm], [seen])
        if len(history) == horizon:
            found[history] = (chance, expected)
            return
        bandit = naive.phase_of(changing, len(history) + 1)
        (arm,) = choose(bandit, state.last_state, state.elapsed)
        law = filtered.laws[arm]
        mean = float(law @ bandit.arms[arm].rewards)
        for seen in range(2):
            go_on((*history, (arm, seen)), chance * law[seen], expected + mean)

    go_on((), 1.0, 0.0)
    return found


def beyond_chance(counts, chances):
    """Whether counts are not of a law: chi-square at 1e-4 (Wilson and Hilferty), cells of 5."""
    total = counts.sum()
    rare = chances * total < 5
    cells = [*zip(counts[~rare], chances[~rare] * total, strict=True)]
    if rare.any():
        cells.append((counts[rare].sum(), max(chances[rare].sum() * total, 1e-9)))
    degrees = len(cells) - 1
    statistic = sum((seen - mean) ** 2 / mean for seen, mean in cells)
    spread = 2 / (9 * degrees)
    return statistic > degrees * (1 - spread + 3.72 * np.sqrt(spread)) ** 3


def test_what_is_seen_has_the_exact_law_and_the_mean_of_the_expected_rewards_is_exact():
    # false alarms: 1e-4 of each chi-square, 1e-5 of the mean
    changing, start, task, phases = small_world()
    exact = enumerated(changing, start, 6)
    assert sum(chance for chance, _ in exact.values()) == pytest.approx(1)
    runs = 20_000
    done = replicate(task, learner_of("ucb1"), np.arange(1, 7), runs, seed=1, phases=phases)
    paid = np.diff(done.oracle_realised, axis=1, prepend=0)
    places = {
        tuple(round(float(changing.arms[arm].rewards[state]), 9) for arm, state in history): at
        for at, history in enumerate(exact)
    }
    assert len(places) == len(exact)  # rewards tell histories apart
    counts = np.zeros(len(exact))
    for row in paid:
        counts[places[tuple(round(float(one), 9) for one in row)]] += 1
    chances = np.array([chance for chance, _ in exact.values()])
    assert not beyond_chance(counts, chances)
    assert beyond_chance(counts, np.full(len(chances), 1 / len(chances)))  # it can tell
    mean = sum(chance * expected for chance, expected in exact.values())
    final = done.oracle_expected[:, -1]
    assert abs(final.mean() - mean) < 4.42 * final.std() / np.sqrt(runs)


def test_the_oracle_of_this_page_has_the_law_of_arms_that_move_every_step():
    # false alarms: 1e-4
    changing, start, _, _ = small_world()
    exact = enumerated(changing, start, 6)
    rng = np.random.default_rng(3)
    counts = dict.fromkeys(exact, 0)
    for _ in range(1500):
        arms, states, _ = naive.simulate(changing, start, chosen_by_whittle(changing), 6, rng)
        counts[tuple(zip(arms[:, 0].tolist(), states[:, 0].tolist(), strict=True))] += 1
    chances = np.array([chance for chance, _ in exact.values()])
    assert not beyond_chance(np.array(list(counts.values())), chances)


class LongestStay:
    """A policy without an index: the arms that stay good for longest, some good state in sight."""

    def __init__(self, bandit):
        self.bandit = bandit

    def select(self, state):
        stays = [arm.passive[-1, -1] for arm in self.bandit.arms]
        order = np.argsort(np.array(stays) + 0.1 * np.array(state.last_state), kind="stable")
        return np.sort(order[::-1][: self.bandit.num_pulls])


def longest_stay(bandit):
    return LongestStay(rs.RestlessBandit(bandit.arms, bandit.num_pulls))


@pytest.mark.parametrize("mapping", ["whittle", "myopic", longest_stay])
def test_who_knows_follows_the_policy_of_the_phase(mapping):
    changing = changing_arms(np.random.default_rng(2), [2, 3, 2, 2], [11, 30, 31], num_pulls=2)
    task, phases = posed(changing, mapping, horizon=50)
    _, happened = run(task, phases, 50, seed=4)
    arms, states = (part.reshape(50, -1) for part in happened[:2])
    state = task.start
    make = rs.registry.policy_mapping(mapping) if isinstance(mapping, str) else mapping
    policies = [make(bandit) for bandit in changing.bandits]
    for t in range(50):
        phase = int(np.searchsorted(changing.begins, t + 1, side="right")) - 1
        assert arms[t].tolist() == policies[phase].select(state).tolist()
        state = state.updated(arms[t], states[t])


@pytest.mark.parametrize("seen", ["pulled", "always"])
@pytest.mark.parametrize("pays", [False, True])
def test_changes_to_the_same_arms_change_nothing(seen, pays):
    before = changing_arms(np.random.default_rng(8), [2, 3, 2], [9], pays=pays, seen=seen).first
    prior = rs.IndependentPrior(
        [rs.ArmPrior([arm, rs.Arm(arm.passive, arm.active, arm.rewards, arm.passive_rewards,
                                  seen=seen)]) for arm in before.arms]
    )  # fmt: skip
    options = {"horizon": 60, "replications": 5, "seed": 2, "baseline": "coupled"}
    same = rs.frequentist_regret(before, prior, **options)
    changing = ChangingBandit(before, [(9, before), (10, before), (40, before)])
    again = rs.frequentist_regret(changing, prior, **options)
    np.testing.assert_allclose(same.samples, again.samples, rtol=0, atol=1e-10)
    assert (same.num_episodes == again.num_episodes).all()


def test_threads_and_chunks_change_no_bit():
    changing = changing_arms(np.random.default_rng(3), [2, 3, 2], [5, 6, 25], pays=True)
    task, phases = posed(changing, horizon=60)
    times = np.array([10, 60])
    ways = [{"threads": 1}, {"threads": 2, "chunk": 3}, {"threads": 1, "chunk": 1}]
    found = [
        replicate(task, learner_of("tsde"), times, 10, 3, phases=phases, **way) for way in ways
    ]
    for other in found[1:]:
        for name in ("true_kinds", "expected", "realised", "oracle_expected", "oracle_realised"):
            assert getattr(found[0], name).tobytes() == getattr(other, name).tobytes()
    part = replicate(task, learner_of("tsde"), times, 4, 3, first=6, phases=phases)
    assert part.expected.tobytes() == found[0].expected[6:].tobytes()


FILE = """num_pulls = 1
pay = "always"

[[arm]]
name = "line"
p01 = 0.3
p11 = 0.7
count = 3

[[change]]
at = 50
[[change.arm]]
arms = [0, 2]
p01 = 0.1
p11 = 0.2

[[change]]
at = 70
[[change.arm]]
arms = [1]
active = [[0.5, 0.5], [0.1, 0.9]]
passive = [[0.6, 0.4], [0.1, 0.9]]
"""


def test_a_file_says_what_changes_and_the_rest_stays():
    changing = ChangingBandit.from_toml(FILE)
    assert changing.begins == (1, 50, 70)
    line = rs.gilbert_elliott(0.3, 0.7, (0, 1), (0, 1), name="line")
    low = rs.gilbert_elliott(0.1, 0.2, (0, 1), (0, 1), name="line")
    other = rs.Arm([[0.5, 0.5], [0.1, 0.9]], [[0.6, 0.4], [0.1, 0.9]], (0, 1), (0, 1), name="line")
    assert [bandit.arms for bandit in changing.bandits] == [
        (line, line, line), (low, line, low), (low, other, low),
    ]  # fmt: skip
    again = ChangingBandit.from_toml(changing.to_toml())
    assert again == changing
    assert again.to_toml() == changing.to_toml()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_what_is_written_reads_back_equal(case, seed):
    changing = changing_arms(np.random.default_rng(seed), **CASES[case])
    assert ChangingBandit.from_toml(changing.to_toml()) == changing


@pytest.mark.parametrize(
    ("was", "written", "message"),
    [
        ("at = 70", "at = 50", "[[change]] number 2, line 18: at must rise from change to change"),
        ("at = 50\n", "", "[[change]] number 1, line 10: at is missing: the first step of the new"),
        ("at = 50", "at = 1", "[[change]] number 1, line 11: at must be a whole number from 2 to"),
        ("at = 50", "at = '50'", "line 11: at must be a whole number from 2"),
        ("arms = [1]", "arms = [3]", "of change 2, line 20: arms must be numbers from 0 to 2"),
        ("arms = [1]", "arms = []", "line 20: arms must be a list of numbers of arms, got []"),
        ("arms = [0, 2]", "arms = [0, 0]", "line 13: arm 0 is named twice in this change"),
        ("arms = [1]\n", "", "arms must be a list of numbers of arms, got None"),
        ("p01 = 0.1", "p01 = 1.1", "[[change.arm]] number 1 of change 1, line 14: p01 is 1.1"),
        ("p01 = 0.1\n", "", "p11 is given without p01"),
        ("p01 = 0.1\np11 = 0.2", "", "needs p01 and p11, or active"),
        ("p01 = 0.1", "p01 = 0.1\nrewards = [0, 2]", "unknown key 'rewards'"),
        ("at = 70", "at = 70\nwhen = 3", "[[change]] number 2, line 19: unknown key 'when'"),
        ("[[0.5, 0.5], [0.1, 0.9]]", "[[1.0]]", "of change 2"),
        ("[[change.arm]]\narms = [1]", "[change.arm]\narms = [1]", "needs [[change.arm]]"),
    ],
)
def test_mistakes_in_a_file_are_said_with_their_place(was, written, message):
    assert was in FILE
    with pytest.raises(rs.errors.ProblemError) as raised:
        ChangingBandit.from_toml(FILE.replace(was, written, 1))
    assert message in str(raised.value)


def test_what_cannot_change_is_refused_in_a_sentence():
    one, two = rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.7)
    before = rs.RestlessBandit([one, one], 1)
    paid = rs.RestlessBandit([one, rs.gilbert_elliott(0.3, 0.7, (0, 2))], 1)
    for changes, message in (
        ([], "none were given"),
        ([(5, rs.RestlessBandit([two], 1))], "from step 5 on num_arms is 1, before it is 2"),
        ([(5, rs.RestlessBandit([two, two], 2))], "from step 5 on num_pulls is 2"),
        ([(5, paid)], r"arm 1: from step 5 on rewards is \[0.0, 2.0\], before it is \[0.0, 1.0\]"),
        ([(5, before), (5, before)], "at must rise from change to change, got 5 after 5"),
        ([(5, "x")], "the bandit from step 5 on must be a RestlessBandit"),
        (7, "changes must be a list of pairs"),
        ([(True, before)], "at must be a whole number from 2"),
    ):
        with pytest.raises(rs.errors.ProblemError, match=message):
            ChangingBandit(before, changes)


def test_who_is_for_arms_that_stay_says_so(tmp_path):
    path = tmp_path / "changing.toml"
    path.write_text(FILE)
    changing = ChangingBandit.load(path)
    for call in (
        lambda: rs.load_problem(path),
        lambda: rs.RestlessBandit.from_toml(FILE),
    ):
        with pytest.raises(rs.errors.ProblemError, match="`restive compare`, studies and Changing"):
            call()
    for call in (
        lambda: rs.evaluate(changing, "whittle"),
        lambda: rs.relaxation_bound(changing),
        lambda: rs.simulate(changing, "whittle", 10),
    ):
        with pytest.raises(rs.errors.ProblemError, match="arms change: take those of one phase"):
            call()
    stays = tmp_path / "stays.toml"
    stays.write_text(changing.first.to_toml())
    with pytest.raises(rs.errors.ProblemError, match=r"stays.toml: there is no \[\[change\]\]"):
        ChangingBandit.load(stays)
    with pytest.raises(rs.errors.ProblemError, match=r"there is no \[\[change\]\]"):
        ChangingBandit.from_toml("num_pulls = 1\n[[arm]]\np01 = 0.1\np11 = 0.2")


STUDY = """kind = "frequentist"
learners = ["tsde", "ucb1"]
horizon = 90
replications = 8
times = [20, 49, 50, 90]

[problem]
file = "changing.toml"

[prior]
levels = [0.1, 0.5, 0.9]
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "changing.toml").write_text(FILE)
    (tmp_path / "study.toml").write_text(STUDY)
    return tmp_path


def test_a_study_measures_against_who_is_told(folder):
    study = rs.load_study(folder / "study.toml")
    assert study_from_toml(study.to_toml()).hash == study.hash  # whole without the file
    rs.run_study(study, folder / "out")
    changing = ChangingBandit.load(folder / "changing.toml")
    prior = rs.grid_prior([0.1, 0.5, 0.9], like=changing.first)
    for found, learner in zip(rs.load_results(folder / "out"), ("tsde", "ucb1"), strict=True):
        curve = rs.frequentist_regret(
            changing, prior, horizon=90, learner=learner, replications=8, times=[20, 49, 50, 90]
        )
        assert found.baseline == curve.baseline
        assert "is told of every change" in curve.baseline
        np.testing.assert_allclose(found.regret.mean, curve.mean, rtol=1e-12)
        assert found.relaxation_bound is None
    page = rs.write_report(folder / "out").read_text()
    assert "it is what the policy that is told of every change earned in the same world" in page
    assert "relaxation bound" not in page.replace("has no relaxation bound", "")


@pytest.mark.parametrize(
    ("was", "written", "message"),
    [
        ("horizon = 90", 'horizon = 90\nbaseline = "exact"', "where arms change there is no J"),
        ("horizon = 90", "horizon = 90\nposterior = true", "is for a truth that stays"),
        ('file = "changing.toml"', 'zoo = "calls-8"\nchange = []', "says how they change"),
    ],
)
def test_a_study_refuses_what_is_about_a_truth_that_stays(folder, was, written, message):
    (folder / "study.toml").write_text(STUDY.replace(was, written))
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.load_study(folder / "study.toml")


def test_a_mistake_in_a_study_is_said_with_its_line(folder):
    text = FILE.replace("[[arm]]", "[[problem.arm]]").replace("[[change", "[[problem.change")
    text = "[problem]\n" + text.replace("p11 = 0.2", "p11 = 2")
    (folder / "study.toml").write_text(STUDY.replace('[problem]\nfile = "changing.toml"\n', text))
    with pytest.raises(rs.errors.ProblemError) as raised:
        rs.load_study(folder / "study.toml")
    assert "problem.change[0].arm[0].p11 (line 22): p11 is 2, expected a prob" in str(raised.value)


def test_exact_is_refused_where_there_is_no_average_reward():
    changing = rs.zoo.load("calls-8-switch")
    with pytest.raises(rs.errors.ProblemError, match="where arms change there is no J"):
        rs.frequentist_regret(changing.bandit, changing.prior, baseline="exact")


def test_compare_takes_files_and_instances_that_change(folder, monkeypatch):
    from typer.testing import CliRunner

    from restive.cli import app

    monkeypatch.chdir(folder)
    (folder / "pulled.toml").write_text(FILE.replace('pay = "always"\n', ""))
    words = ["compare", "pulled.toml", "channels-16-switch", "--learners", "tsde,ucb1"]
    done = CliRunner().invoke(
        app, [*words, "--horizon", "90", "--replications", "4"], catch_exceptions=False
    )
    assert done.exit_code == 0
    said = " ".join(done.output.replace("│", " ").split())
    assert "is told of every change of the arms" in said


def test_python_compares_them_too():
    changing = changing_arms(np.random.default_rng(1), [2, 2, 2], [30])
    (found,) = rs.compare([(changing, prior_of(changing))], ["tsde", "ucb1"], horizon=60)
    assert all("every change" in curve.baseline for curve in found.curves)
    assert found.bandit is changing


def test_environments_refuse_them():
    gymnasium = pytest.importorskip("gymnasium")
    assert gymnasium
    from restive.gym.problems import played

    with pytest.raises(rs.errors.ProblemError, match="take those of one phase"):
        played("calls-8-switch", None)


def test_the_example_prints_what_it_shows():
    (test,) = doctest.DocTestFinder(recurse=False).find(ChangingBandit, "it", globs={})
    assert doctest.DocTestRunner().run(test).failed == 0


@pytest.fixture
def tables(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "docs"))
    return importlib.import_module("changing_tables")


def test_the_page_says_what_its_script_makes_of_the_stored_numbers(tables):
    stored = json.loads(tables.STORED.read_text(encoding="utf-8"))
    page = tables.PAGE.read_text(encoding="utf-8")
    for make in (tables.regrets, tables.verdicts, tables.goals, tables.calibration):
        assert "\n".join(make(stored)).strip() in page


def test_the_scripts_sentences_follow_from_intervals(tables):
    def world(*pairs):
        seeds = {str(at): {"300": {"ratio": list(pair)}} for at, pair in enumerate(pairs)}
        return {"seeds": seeds, "curves": {"never": [], "300": []}}

    said = list(
        tables.verdicts(
            {
                "less": world((0.5, 0.1), (0.9, 0.09)),
                "more": world((1.5, 0.1), (1.2, 0.1)),
                "open": world((0.5, 0.1), (1.0, 0.1)),
            }
        )
    )
    assert [text.split("steps ")[1].split(" (")[0] for text in said] == [
        "loses less with every seed",
        "loses more with every seed",
        "is not told apart from never forgetting with every seed",
    ]
    rng = np.random.default_rng(0)
    others = 100 + 10 * rng.standard_normal(400)
    some = 0.5 * others + rng.standard_normal(400)
    value, half = tables.ratio(some, others)
    left = np.arange(400)
    jackknife = [np.delete(some, at).mean() / np.delete(others, at).mean() for at in left]
    assert value == pytest.approx(some.mean() / others.mean(), rel=1e-12)
    error = np.sqrt(399 / 400 * np.square(np.array(jackknife) - np.mean(jackknife)).sum())
    assert half == pytest.approx(1.966 * error, rel=0.01)
