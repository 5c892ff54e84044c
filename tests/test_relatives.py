"""TSDE's relatives: engine, online agent and a plain Python version take the same decisions."""

from itertools import pairwise, product

import numpy as np
import pytest

import restive as rs
from learning_cases import (
    CASES,
    as_lists,
    chooser_of,
    groups_of,
    posed,
    start_of,
    trace,
    true_bandit,
)
from oracles import tsde_naive as naive
from restive.learn.learners import learner
from restive.learn.make import make_learner
from restive.measure.replication import replicate

STEPS = 200
EVERY_STEP = {"length": 1, "doubling_rule": False}

# What each relative is, in the words of the plain Python version.
RELATIVES = {
    "tsde": ({}, {}),
    "tsde_doubling_only": ({}, {"length_rule": False}),
    "tsde_length_only": ({}, {"doubling_rule": False}),
    "thompson_every_step": ({}, EVERY_STEP),
    "episodic_thompson": ({"length": 7}, {"length": 7, "doubling_rule": False}),
    "certainty_equivalence": ({}, EVERY_STEP | {"most_likely": True}),
    "epsilon_greedy": ({"epsilon": 0.3}, EVERY_STEP | {"most_likely": True, "exploring": 0.3}),
}


def naive_relative(prior, num_pulls, mapping, horizon, seed, **rules):
    start = start_of(prior)
    return naive.NaiveTSDE(
        groups_of(prior), num_pulls, chooser_of(prior, num_pulls, mapping), horizon,
        start.last_state.tolist(), start.elapsed.tolist(), seed, 0, None, **rules,
    )  # fmt: skip


def driven(agent, world, steps, episode):
    """Run an agent in a world: arms, states and the number of the episode of each step."""
    arms, states, episodes = [], [], []
    for _ in range(steps):
        arms.append(list(map(int, agent.select())))
        episodes.append(episode(agent))
        states.append(list(map(int, world.pull(arms[-1])[0])))
        agent.observe(states[-1])
    return arms, states, episodes


@pytest.mark.parametrize("horizon", [STEPS, None])
@pytest.mark.parametrize("mapping", ["myopic", "whittle"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", RELATIVES)
def test_engine_agent_and_oracle_agree(name, case, mapping, horizon):
    prior, num_pulls = CASES[case]()
    truth = true_bandit(prior, num_pulls)
    options, rules = RELATIVES[name]
    oracle = naive_relative(prior, num_pulls, mapping, horizon, 5, **rules)
    start = start_of(prior)
    naive_world = naive.NaiveWorld(
        [as_lists(arm) for arm in truth.arms], start.last_state, start.elapsed, 5, 0
    )
    expected = driven(oracle, naive_world, STEPS, lambda agent: agent.episode)
    agent = make_learner(name, prior, num_pulls, mapping, horizon, seed=5, **options)
    world = rs.World(truth, seed=5)
    assert driven(agent, world, STEPS, lambda agent: agent.episode.number) == expected
    setup = posed(
        prior, num_pulls, mapping, horizon, true_bandit=truth, learner=learner(name, **options)
    )
    arms, states = trace(setup, STEPS, 5)
    assert arms.tolist() == expected[0]
    assert states.tolist() == expected[1]
    times = np.array([1, 13, STEPS])
    done = replicate(*setup, times, 1, 5, with_oracle=False)
    assert done.episodes[0].tolist() == [expected[2][t - 1] for t in times]


def run(name, horizon=2000, steps=300, case="channels", seed=1, **options):
    """Return the arms, the episode numbers and the agent of a run."""
    prior, num_pulls = CASES[case]()
    agent = make_learner(name, prior, num_pulls, "myopic", horizon, seed=seed, **options)
    world = rs.World(true_bandit(prior, num_pulls), seed=2)
    arms, _, episodes = driven(agent, world, steps, lambda agent: agent.episode.number)
    return arms, np.array(episodes), agent


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("horizon", [300, None])
def test_epsilon_0_is_certainty_equivalence(case, horizon):
    greedy = run("epsilon_greedy", horizon, case=case, epsilon=0)
    certain = run("certainty_equivalence", horizon, case=case)
    assert greedy[0] == certain[0]
    assert greedy[1].tolist() == certain[1].tolist()


def test_epsilon_1_pulls_every_set_of_arms_equally_often():
    """Chi-square; the seed is fixed and the chance of a false alarm 1e-6."""
    from scipy import stats

    arms, _, _ = run("epsilon_greedy", steps=6000, epsilon=1)
    counts = np.unique([10 * a + b for a, b in arms], return_counts=True)[1]
    assert len(counts) == 6  # of four arms two
    assert stats.chisquare(counts).pvalue > 1e-6


def test_a_share_epsilon_of_the_steps_is_random():
    """Compared with a step of certainty equivalence from the same knowledge; 5 sigma."""
    prior, num_pulls = CASES["channels"]()
    greedy = make_learner("epsilon_greedy", prior, num_pulls, "myopic", seed=4, epsilon=0.2)
    certain = make_learner("certainty_equivalence", prior, num_pulls, "myopic", seed=9)
    world = rs.World(true_bandit(prior, num_pulls), seed=2)
    steps, other = 4000, 0
    for _ in range(steps):
        arms = greedy.select()
        other += int(arms.tolist() != certain.select().tolist())
        certain.pull(arms)  # so that both learn the same
        states, _, _ = world.pull(arms)
        greedy.observe(states)
        certain.observe(states)
    chance = 0.2 * 5 / 6  # a random pair is the greedy one in a sixth of the cases
    assert abs(other - chance * steps) < 5 * np.sqrt(steps * chance * (1 - chance))


def test_of_equally_likely_candidates_the_first_is_taken():
    """Staying has likelihood 0.8 under the first and 0.2 under the other, moving the reverse."""
    candidates = [rs.gilbert_elliott(0.2, 0.8), rs.gilbert_elliott(0.8, 0.2)]
    prior = rs.IndependentPrior([rs.ArmPrior(candidates)])
    for moves in product((0, 1), repeat=6):
        agent = make_learner("certainty_equivalence", prior, 1, "myopic", 100)
        state = 1  # the start
        for move in moves:
            agent.select()
            state ^= move
            agent.observe([state])
        agent.select()
        assert agent.sampled_bandit.arms[0] == candidates[int(sum(moves) > 3)]


def test_certainty_equivalence_draws_nothing():
    runs = [run("certainty_equivalence", seed=seed, steps=200)[0] for seed in (1, 2)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("horizon", [300, None])
@pytest.mark.parametrize("name", ["thompson_every_step", "certainty_equivalence", "epsilon_greedy"])
def test_a_new_system_in_every_step(name, horizon):
    _, episodes, agent = run(name, horizon)
    assert episodes.tolist() == list(range(1, 301))
    assert agent.episode.length == 1


def test_every_step_draws_for_every_group():
    """Each draw is another one: under a flat posterior systems change nearly always."""
    prior = rs.grid_prior(np.arange(1, 10) / 10, 6)
    agent = make_learner("thompson_every_step", prior, 1, "myopic", 1000, seed=1)
    drawn = []
    for _ in range(50):
        agent.select()
        drawn.append(tuple(agent.sampled_bandit.arms))
        agent.observe([1])
    assert len(set(drawn)) == 50


def lengths(episodes):
    """Return the lengths of all episodes but the last, which may not have ended."""
    return np.unique(episodes, return_counts=True)[1][:-1].tolist()


@pytest.mark.parametrize(
    ("horizon", "given", "length"), [(2000, None, 45), (2025, None, 45), (2026, None, 46),
                                     (1, None, 1), (100, 33, 33), (100, 1, 1)]
)  # fmt: skip
def test_episodes_of_one_length(horizon, given, length):
    """By default sqrt(T), rounded up."""
    _, episodes, _ = run("episodic_thompson", horizon, steps=200, length=given)
    assert lengths(episodes) == [length] * ((200 - 1) // length)


def test_length_only_episodes_grow_by_a_step():
    _, episodes, _ = run("tsde_length_only")
    assert lengths(episodes) == list(range(1, len(lengths(episodes)) + 1))


def test_doubling_only_episodes_may_grow_by_more_than_a_step():
    _, episodes, agent = run("tsde_doubling_only", steps=2000)
    found = lengths(episodes)
    assert max(b - a for a, b in pairwise(found)) > 1
    assert agent.episode.last_ended == "a counter more than doubled"
    both = lengths(run("tsde", steps=2000)[1])
    assert all(b - a <= 1 for a, b in pairwise(both))


def test_relatives_ask_any_mapping():
    """Mappings of whole systems run step by step, with the same rules."""
    prior, num_pulls = CASES["channels"]()
    truth = true_bandit(prior, num_pulls)

    def myopic_of(bandit):
        return rs.myopic(bandit)

    for name, (options, _) in RELATIVES.items():
        found = []
        for mapping in ("myopic", myopic_of):
            agent = make_learner(name, prior, num_pulls, mapping, 100, seed=3, **options)
            world = rs.World(truth, seed=3)
            found.append(driven(agent, world, 100, lambda agent: agent.episode.number))
        assert found[0] == found[1]
