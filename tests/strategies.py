"""Random problems: for hypothesis (laws) and from a numpy generator (comparisons with oracles)."""

import numpy as np
from hypothesis import strategies as st

import restive as rs


@st.composite
def stochastic_matrices(draw, size, spread=0.0):
    """Draw a row-stochastic matrix with some zeros; `spread` is mixed in from the uniform law.

    With spread > 0 the chain is ergodic and forgets its past by a factor 1 - spread a step.
    """
    row = st.lists(st.integers(0, 12), min_size=size, max_size=size).filter(any)
    weights = np.array(draw(st.lists(row, min_size=size, max_size=size)), dtype=float)
    matrix = weights / weights.sum(axis=1, keepdims=True)
    return (1 - spread) * matrix + spread / size


@st.composite
def arms(draw, sizes=(2, 3), spread=0.5, controlled=None):
    """Draw an arm; its matrices are equal or not, as `controlled` says (None: either)."""
    size = draw(st.sampled_from(sizes))
    active = draw(stochastic_matrices(size, spread))
    if controlled is None:
        controlled = draw(st.booleans())
    passive = draw(stochastic_matrices(size, spread)) if controlled else None
    tenths = st.integers(0, 10)
    alike = tenths.map(lambda reward: [reward] * size)
    rewards = draw(st.lists(tenths, min_size=size, max_size=size) | alike)
    return rs.Arm(active, passive, np.array(rewards) / 10)


@st.composite
def bandits(draw, num_arms=(2, 3), sizes=(2, 3), spread=0.6):
    """Draw a bandit that is small enough for exact values and for the optimum."""
    count = draw(st.sampled_from(num_arms))
    chosen = [draw(arms(sizes, spread)) for _ in range(count)]
    return rs.RestlessBandit(chosen, draw(st.integers(1, count - 1)))


@st.composite
def states_of(draw, bandit, most_elapsed=30):
    """Draw a meta-state of a bandit."""
    return rs.BeliefState(
        [draw(st.integers(0, arm.num_states - 1)) for arm in bandit.arms],
        [draw(st.integers(1, most_elapsed)) for _ in bandit.arms],
    )


def random_arm(rng, size, spread=0.5, controlled=True):
    """Return an arm with matrices from Dirichlet laws, the uniform law mixed in by `spread`."""

    def matrix():
        return (1 - spread) * rng.dirichlet(np.full(size, 0.6), size) + spread / size

    active = matrix()
    return rs.Arm(active, matrix() if controlled else None, rng.random(size))


def as_oracle(arm):
    """Return the arm as the oracles take it."""
    return arm.active, arm.passive, arm.rewards


def random_paying_bandit(rng, sizes, num_pulls, spread=0.5):
    """Return a bandit whose arms pay in every step: rewards of either kind, of either sign."""
    chosen = []
    for size in sizes:
        arm = random_arm(rng, size, spread)
        rewards = rng.normal(size=(2, size))
        chosen.append(rs.Arm(arm.active, arm.passive, *rewards))
    return rs.RestlessBandit(chosen, num_pulls)


def as_paying_oracle(arm):
    """Return the arm as the oracle of arms that pay in every step takes it."""
    return arm.active, arm.passive, arm.rewards, arm.passive_rewards
