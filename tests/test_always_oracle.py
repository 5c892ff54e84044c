"""Learners of arms that are always seen, or some of them, decide as naive oracles do."""

import numpy as np
import pytest

import restive as rs
from learning_cases import naive_run, posed
from oracles.always_learning_naive import NaiveDirichlet, NaiveUCWhittle, indices_of_two
from oracles.tsde_naive import NaiveWorld
from restive.learn.learners.ucwhittle import two_state_indices
from restive.measure.replication import replicate
from test_always_learning import dirichlet, finite, mixed
from test_always_seen import calls, random_arm

STEPS = 300


def joint():
    """Three systems of one arm that is always seen and two that are not."""
    rng = np.random.default_rng(17)
    kinds = ("always", "pulled", "pulled")
    paid = [random_arm(rng, 2, seen) for seen in kinds]
    systems = []
    for _ in range(3):
        arms = []
        for like in paid:
            other = random_arm(rng, 2)
            arms.append(
                rs.Arm(other.active, other.passive, like.rewards, like.passive_rewards,
                       seen=like.seen)
            )  # fmt: skip
        systems.append(rs.RestlessBandit(arms, 1))
    return systems[1], rs.JointPrior(systems)


FINITE = {
    "always": lambda: (calls(), finite(calls())),
    "mixed": lambda: (mixed(), finite(mixed())),
    "joint": joint,
}


@pytest.mark.parametrize("horizon", [STEPS, None])
@pytest.mark.parametrize("mapping", ["whittle", "myopic", "best_fixed", "lp_priority"])
@pytest.mark.parametrize("case", FINITE)
def test_tsde_with_candidates_is_the_oracle_s(case, mapping, horizon):
    bandit, prior = FINITE[case]()
    start = rs.BeliefState([0] * bandit.num_arms, [1] * bandit.num_arms)
    pulls = bandit.num_pulls
    if mapping == "lp_priority" and (case == "always" or horizon is None):
        return  # five candidates of each of eight arms: too many systems to plan for
    run = naive_run(prior, pulls, mapping, horizon, STEPS, 3, 2, bandit, start)
    setup = posed(prior, pulls, mapping, horizon, true_bandit=bandit, start=start)
    agent = rs.types.Agent(*setup, 3, 2)
    world = rs.World(bandit, start=start, seed=3, replication=2)
    for t in range(STEPS):
        assert agent.select().tolist() == run.arms[t]
        assert agent.episode.number == run.episodes[t]
        states, *_ = world.pull(np.array(run.arms[t]))
        assert states.tolist() == run.states[t]
        agent.observe(states)
    times = np.array([1, 2, STEPS])
    done = replicate(*setup, times, 1, 3, first=2)
    assert done.episodes[0].tolist() == [run.episodes[t - 1] for t in times]
    assert done.realised[0, -1] == pytest.approx(run.realised, rel=1e-12)
    assert done.expected[0, -1] == pytest.approx(run.expected, rel=1e-9)
    rules = set().union(*run.ended_by)
    assert rules >= {"doubling", "length"}


def world_of(bandit, seed, replication=0):
    """The oracle's world of arms that are all seen, in state 0 at first."""
    return NaiveWorld(
        [(arm.active.tolist(), arm.passive.tolist(), arm.rewards.tolist()) for arm in bandit.arms],
        [0] * bandit.num_arms, [1] * bandit.num_arms, seed, replication,
        [arm.passive_rewards.tolist() for arm in bandit.arms], set(range(bandit.num_arms)),
    )  # fmt: skip


def three_states(pooled):
    """Five arms of three states, with rows that rule moves out and entries below 1."""
    rng = np.random.default_rng(6)
    prior = rs.DirichletArmPrior(
        [[0.5, 1, 1], [0, 2, 0.7], [1, 1, 1]], [[1, 0.3, 0], [1, 1, 1], [0.4, 0.4, 3]],
        [0, 0.4, 1], [0.1, 0.3, 0.9], seen="always",
    )  # fmt: skip
    arms = []
    for _ in range(5):
        rows = [
            [rng.dirichlet(row + 1e-9) for row in rows] for rows in (prior.active, prior.passive)
        ]
        active, passive = (
            np.where(alphas > 0, row, 0) / np.where(alphas > 0, row, 0).sum(axis=1, keepdims=True)
            for row, alphas in zip(rows, (prior.active, prior.passive), strict=True)
        )
        arms.append(rs.Arm(active, passive, prior.rewards, prior.passive_rewards, seen="always"))
    pools = {"pooled": [[0, 2, 3]]} if pooled else {}
    if pooled:
        arms[2] = arms[3] = arms[0]
    return rs.RestlessBandit(arms, 2), rs.IndependentPrior([prior] * 5, **pools)


DIRICHLET = {
    "calls": lambda: (calls(), dirichlet(calls())),
    "three states": lambda: three_states(False),
    "pooled": lambda: three_states(True),
}


@pytest.mark.parametrize("name", ["tsde", "certainty_equivalence"])
@pytest.mark.parametrize("mapping", ["whittle", "myopic"])
@pytest.mark.parametrize("case", DIRICHLET)
def test_tsde_with_dirichlet_rows_is_the_oracle_s(case, mapping, name):
    bandit, prior = DIRICHLET[case]()
    rule = rs.registry.policy_mapping(mapping).rule

    def index(active, passive, k):
        arm = bandit.arms[k]
        own = rs.Arm(active, passive, arm.rewards, arm.passive_rewards, seen="always")
        return np.asarray(rule(own))[:, 0].tolist()

    groups = []
    for group in range(prior.groups.max() + 1):
        arms = np.flatnonzero(prior.groups == group).tolist()
        law = prior.arms[arms[0]]
        groups.append((law.active.tolist(), law.passive.tolist(), arms))
    more = {}
    if name == "certainty_equivalence":
        more = {"length": 1, "doubling_rule": False, "most_likely": True}
    steps = STEPS if name == "tsde" else 80
    start = [0] * bandit.num_arms
    oracle = NaiveDirichlet(groups, index, bandit.num_pulls, steps, start, 9, 0, **more)
    agent = rs.make_learner(
        name, prior, bandit.num_pulls, mapping, steps, seed=9,
        start=rs.BeliefState(start, [1] * len(start)),
    )  # fmt: skip
    world = world_of(bandit, 9)
    for _ in range(steps):
        chosen = oracle.select()
        assert agent.select().tolist() == chosen
        assert agent.episode.number == oracle.episode
        states, *_ = world.pull(chosen)
        oracle.observe(states)
        agent.observe(states)


def test_indices_of_two_states_are_where_the_best_of_four_policies_turns():
    rng = np.random.default_rng(4)
    for _ in range(300):
        chances, pay, unpulled = rng.random(4), rng.random(2), rng.random(2)
        found = two_state_indices(chances, pay, unpulled)
        assert found == pytest.approx(indices_of_two(chances, pay, unpulled), abs=1e-9)


@pytest.mark.parametrize("scale", [1.0, 0.1])
def test_ucwhittle_is_the_oracle_s(scale):
    bandit = calls()
    oracle = NaiveUCWhittle([[0, 1]] * 8, [[0, 1]] * 8, 3, [0] * 8, scale=scale)
    agent = rs.make_learner(
        "ucwhittle",
        dirichlet(bandit),
        3,
        seed=2,
        scale=scale,
        start=rs.BeliefState([0] * 8, [1] * 8),
    )
    world = world_of(bandit, 2)
    for _ in range(400):
        chosen = oracle.select()
        assert agent.select().tolist() == chosen
        states, *_ = world.pull(chosen)
        oracle.observe(states)
        agent.observe(states)
    floats = agent._actor.memory.floats.reshape(8, 2)
    assert floats == pytest.approx(np.array(oracle.indices), rel=1e-9)
