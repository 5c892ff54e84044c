"""Worlds whose arms change: their law in the loop, and the policy that is told of the changes."""

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
    policies = {id(bandit): rs.policies.whittle(bandit) for bandit in changing.bandits}

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
    for _ in range(3000):
        arms, states, _ = naive.simulate(changing, start, chosen_by_whittle(changing), 6, rng)
        counts[tuple(zip(arms[:, 0].tolist(), states[:, 0].tolist(), strict=True))] += 1
    chances = np.array([chance for chance, _ in exact.values()])
    assert not beyond_chance(np.array(list(counts.values())), chances)


@pytest.mark.parametrize("mapping", ["whittle", "myopic", "round_robin"])
def test_who_knows_follows_the_policy_of_the_phase(mapping):
    changing = changing_arms(np.random.default_rng(2), [2, 3, 2, 2], [11, 30, 31], num_pulls=2)
    task, phases = posed(changing, mapping, horizon=50)
    _, happened = run(task, phases, 50, seed=4)
    arms, states = (part.reshape(50, -1) for part in happened[:2])
    state = task.start
    policies = [rs.registry.policy_mapping(mapping)(bandit) for bandit in changing.bandits]
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
