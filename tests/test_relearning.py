"""Agents to which some arms are new again, and agents whose memory gets longer or shorter."""

import json

import numpy as np
import pytest

import restive as rs
from restive.learn.relearning import relearnt, with_memory

PRIORS = {
    "finite": lambda: rs.grid_prior([0.1, 0.3, 0.5, 0.7, 0.9], num_arms=5),
    "pools": lambda: rs.IndependentPrior(
        [rs.grid_prior([0.2, 0.8], num_arms=1).arms[0]] * 5, [[0, 1], [2, 3]]
    ),
    "channels": lambda: rs.beta_prior(num_arms=5),
    "dirichlet": lambda: rs.dirichlet_prior(5, [0.0, 0.5, 1.0]),
    "always seen": lambda: rs.IndependentPrior(rs.zoo.load("calls-8").prior.arms[:5]),
    "mixed": lambda: rs.IndependentPrior(
        [
            *rs.grid_prior([0.2, 0.8], num_arms=2).arms,
            *rs.beta_prior(num_arms=1).arms,
            *rs.zoo.load("calls-8").prior.arms[:2],
        ]
    ),
}


def play(agent, steps, seed=0):
    """Play an agent in a world of coins; return its sightings as `relearnt` takes them."""
    rng = np.random.default_rng(seed)
    before = {k: agent.last_seen(k) for k in range(agent.task.num_arms)}
    always = set(agent.task.always_seen.tolist())
    rows = []
    for _ in range(steps):
        pulled = agent.select().tolist()
        shown = agent.awaited.tolist()
        states = rng.integers(0, 2, len(shown)).tolist()
        t = agent.time
        for k, state in zip(shown, states, strict=True):
            elapsed = 1 if k in always else t - before[k][1]
            rows.append((k, before[k][0], elapsed, state, t, int(k in pulled)))
            before[k] = (state, t)
        agent.observe(states)
    return rows


def again(agent):
    return rs.restore(json.loads(json.dumps(agent.snapshot())))


def only(rows, arms, since=0):
    return [row for row in rows if row[0] in arms and row[4] >= since]


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_nothing_is_left_but_the_sightings_shown(name, selected):
    agent = rs.TSDE(PRIORS[name](), 2, seed=5, mixing_time=3)
    rows = play(agent, 60)
    if selected:
        agent.select()
    before = agent.snapshot()
    arms = [2, 3]
    kept, none, all_of_it = (relearnt(agent, arms, only(rows, arms, t)) for t in (40, 99, 0))
    assert agent.snapshot() == before
    fresh = rs.TSDE(PRIORS[name](), 2, seed=5, mixing_time=3)
    for k in range(5):
        assert kept.last_seen(k) == agent.last_seen(k)
        same = agent if k not in arms else fresh
        np.testing.assert_allclose(
            none.posterior(k).mean().active, same.posterior(k).mean().active, rtol=1e-12
        )
        assert all_of_it.evidence(k) == agent.evidence(k)
    for k in arms:
        assert none.evidence(k).total == 0
        assert kept.evidence(k).total == len(only(rows, [k], 40))
    assert none.episode.number == agent.episode.number
    for new in (kept, none, all_of_it):
        other = again(new)
        assert new.snapshot() == other.snapshot()
        if selected:
            for one in (new, other):
                one.observe([0] * len(one.awaited))
        assert play(new, 40, 3) == play(other, 40, 3)
        assert new.snapshot() == other.snapshot()
        assert new.episode.number > agent.episode.number


def test_all_sightings_shown_again_give_the_same_weights():
    agent = rs.TSDE(PRIORS["finite"](), 2, seed=5)
    rows = play(agent, 60)
    shown = relearnt(agent, range(5), rows)
    for k in range(5):
        np.testing.assert_array_equal(shown.posterior(k).weights, agent.posterior(k).weights)


def test_an_agent_that_began_then_has_the_same_weights():
    prior = PRIORS["finite"]()
    agent = rs.TSDE(prior, 2, seed=5)
    play(agent, 30)
    later = rs.TSDE(prior, 2, seed=5, start=agent.belief_state)
    rows = play(agent, 25, 1)
    told = {}
    for k, *_, state, time, _ in rows:
        told.setdefault(time - 30, {})[k] = state
    for states in told.values():
        later.pull(list(states))
        later.observe(list(states.values()))
    shown = relearnt(agent, range(5), rows)
    for k in range(5):
        np.testing.assert_array_equal(shown.posterior(k).weights, later.posterior(k).weights)


def test_a_joint_prior_forgets_all_arms_or_none():
    bandits = [
        rs.RestlessBandit([rs.gilbert_elliott(p, 0.8), rs.gilbert_elliott(0.3, q)], 1)
        for p in (0.1, 0.4)
        for q in (0.5, 0.9)
    ]
    agent = rs.TSDE(rs.JointPrior(bandits), 1, seed=1)
    rows = play(agent, 30)
    with pytest.raises(rs.RestiveError, match=r"arm 1 cannot be forgotten without arm 0: a joint"):
        relearnt(agent, [1], [])
    shown = relearnt(agent, [0, 1], rows[-5:])
    logs = np.zeros(4)
    for k, last, age, state, _, _ in rows[-5:]:
        chances = [np.linalg.matrix_power(one.arms[k].active, age)[last, state] for one in bandits]
        logs += np.log(chances)
    expected = np.exp(logs) / np.exp(logs).sum()
    np.testing.assert_allclose(shown.posterior(0).weights, expected, rtol=1e-9)


def test_a_pool_goes_together():
    agent = rs.TSDE(PRIORS["pools"](), 2, seed=5)
    with pytest.raises(rs.RestiveError, match=r"arm 2 cannot be forgotten without arm 3: it is in"):
        relearnt(agent, [2], [])


def test_another_prior_for_the_arms_that_are_new():
    prior = PRIORS["finite"]()
    agent = rs.TSDE(prior, 2, seed=5)
    play(agent, 40)
    weights = np.arange(1, 26) / 325
    arms = [arm.with_weights(weights) if k == 2 else arm for k, arm in enumerate(prior.arms)]
    new = relearnt(agent, [2], [], rs.IndependentPrior(arms))
    np.testing.assert_allclose(new.posterior(2).weights, weights, rtol=1e-15)
    np.testing.assert_array_equal(new.posterior(1).weights, agent.posterior(1).weights)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ((1, 0, 1, 1, 5, 1), "arm 1 was sighted, but is not one"),
        ((2, 0, 1, 1), r"a sighting must be \(arm, last state, elapsed, state, time, pulled\)"),
        ((2, 0, 1, 7, 5, 1), "state 7 is not one of its states"),
        ((2, 0, 0, 1, 5, 1), "elapsed must be"),
        ((2, 0, 1, 1, 41, 1), "time 41 of a sighting is not before the present step"),
        ((2, 0, 1, 1, 5, 0), "pulled must be 1"),
        ((9, 0, 1, 1, 5, 1), "arm 9 is not one of the arms 0 to 4"),
    ],
)
def test_wrong_sightings_get_a_sentence(row, said):
    agent = rs.TSDE(PRIORS["finite"](), 2, seed=5)
    play(agent, 40)
    with pytest.raises(rs.RestiveError, match=said):
        relearnt(agent, [2], [row])


def test_impossible_sightings_are_refused():
    sure = rs.Arm([[1.0, 0.0], [0.5, 0.5]], rewards=[0.0, 1.0])
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior([sure])] * 2), 1, seed=0)
    for _ in range(3):
        agent.select()
        agent.observe([0])
    with pytest.raises(rs.RestiveError, match="probability zero"):
        relearnt(agent, [0], [(0, 0, 1, 1, 2, 1)])


def test_long_ages_get_room():
    prior = PRIORS["finite"]()
    from restive.learn.snapshots import learned_data, load_snapshot

    agent = rs.TSDE(prior, 2, seed=5)
    agent.skip(300)
    short = load_snapshot(learned_data(agent), None, prior, 4)
    row = (1, 0, 9, 1, 290, 1)
    one, two = (relearnt(some, [1], [row]) for some in (agent, short))
    np.testing.assert_array_equal(one.posterior(1).weights, two.posterior(1).weights)


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize("name", PRIORS)
def test_memory_changes_while_an_agent_runs(name, selected):
    agent = rs.TSDE(PRIORS[name](), 2, seed=5, mixing_time=3)
    play(agent, 60)
    if selected:
        agent.select()
    for pace in (30, 7, None, 1, 1e6):
        agent = with_memory(agent, pace)
        assert agent.learner.forget_after == pace
        other = again(agent)
        if agent.selected is not None:
            for one in (agent, other):
                one.observe([0] * len(one.awaited))
        assert play(agent, 45, 3) == play(other, 45, 3)
        assert agent.snapshot() == other.snapshot()


def test_a_memory_from_the_start_is_one_set_at_once():
    prior = PRIORS["finite"]()
    one, two = rs.TSDE(prior, 2, seed=5, forget_after=25), rs.TSDE(prior, 2, seed=5)
    two = with_memory(two, 25)
    assert play(one, 90) == play(two, 90)
    assert one.snapshot() == two.snapshot()


def test_memories_that_cannot_be():
    with pytest.raises(rs.RestiveError, match="no posterior, so it has nothing to forget"):
        with_memory(rs.make_learner("ucb1", PRIORS["finite"](), 2), 10)
    with pytest.raises(rs.RestiveError, match="not of TSDE's family"):
        relearnt(rs.make_learner("ucb1", PRIORS["finite"](), 2), [0], [])
    with pytest.raises(rs.RestiveError, match=r"must be a number from 1 to"):
        with_memory(rs.TSDE(PRIORS["finite"](), 2), 0.5)
