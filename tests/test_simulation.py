"""The world's law, visible trajectories, and what `simulate` refuses."""

import subprocess
import sys

import numba
import numpy as np
import pytest
from scipy import stats

import restive as rs
from learning_cases import CASES, as_lists, channels, random_arm, true_bandit
from oracles import tsde_naive as naive
from restive.kernels.random import stream, uniform_at
from restive.measure.world import World


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("gaps", [(1, 1, 1), (1, 2, 5), (3, 4, 2)])
def test_states_follow_the_beliefs(size, gaps):
    """Arm k is pulled every gaps[k] steps, and its states must have the law b(s, gap).

    All rows (arm, last state) together; false-alarm rate 1e-4 per case.
    """
    rng = np.random.default_rng(10 * size + sum(gaps))
    bandit = rs.RestlessBandit(
        [random_arm(rng, size, np.linspace(0, 1, size), spread=0.1) for _ in gaps], 1
    )
    world = World(bandit, seed=77)
    counts = np.zeros((3, size, size))
    last = {}
    for t in range(1, 15_001):
        arms = np.array([k for k in range(3) if t % gaps[k] == 0], dtype=np.int64)
        states, _, _ = world.pull(arms)
        for k, state in zip(arms.tolist(), states.tolist(), strict=True):
            if k in last:
                counts[k, last[k], state] += 1
            last[k] = state
    statistic, freedom = 0.0, 0
    for k, gap in enumerate(gaps):
        for s in range(size):
            law = np.array(naive.start_belief(as_lists(bandit.arms[k]), s, gap))
            expected = counts[k, s].sum() * law
            assert expected.min() > 10
            statistic += ((counts[k, s] - expected) ** 2 / expected).sum()
            freedom += size - 1
    assert stats.chi2.sf(statistic, freedom) > 1e-4


@numba.njit  # not kept on disk, where a change in what it calls would not be seen
def uniform(key, place):
    return uniform_at(key, place)


def test_random_numbers_are_those_of_the_definition():
    for seed, replication, name in [(0, 0, 0), (2**64 - 1, 3, 1), (12345, 10**9, 2)]:
        key = naive.stream_key(seed, replication, name)
        assert int(stream(seed, replication, name)) == key
        with np.errstate(over="ignore"):
            for place in (0, 1, 10**12):
                assert uniform(np.uint64(key), place) == naive.uniform(key, place)


def test_random_numbers_are_uniform_and_streams_apart():
    # 20 bins x 5 streams; false-alarm rate 1e-4 for uniformity and for each correlation
    keys = [naive.stream_key(*name) for name in [(0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)]]
    values = np.array([[naive.uniform(key, place) for place in range(5000)] for key in keys])
    assert values.min() >= 0
    assert values.max() < 1
    for row in values:
        assert stats.chisquare(np.bincount((row * 20).astype(int))).pvalue > 1e-4
    for i in range(len(keys)):
        for j in range(i):
            assert stats.pearsonr(values[i], values[j]).pvalue > 1e-4


def test_luck_belongs_to_the_time_and_the_arm():
    """Two policies that pull an arm at the same time in the same state see the same."""
    bandit = true_bandit(*channels())
    one, two = World(bandit, seed=4), World(bandit, seed=4)
    for t in range(200):
        pulled = [0, 1, 2, 3] if t % 2 else [0, 3]
        states, _, _ = one.pull(np.array(pulled))
        others, _, _ = two.pull(np.array([0]))
        assert others[0] == states[0]


@pytest.mark.parametrize("case", CASES)
def test_the_world_is_the_oracles(case):
    prior, num_pulls = CASES[case]()
    bandit = true_bandit(prior, num_pulls)
    start = rs.BeliefState([0] * bandit.num_arms, np.arange(bandit.num_arms) + 1)
    world = World(bandit, start=start, seed=6, replication=2)
    oracle = naive.NaiveWorld(
        [as_lists(arm) for arm in bandit.arms], start.last_state, start.elapsed, 6, 2
    )
    rng = np.random.default_rng(0)
    for _ in range(300):
        arms = np.flatnonzero(rng.random(bandit.num_arms) < 0.4)
        states, earned, expected = world.pull(arms)
        seen, paid, hoped = oracle.pull(arms.tolist())
        assert states.tolist() == seen
        assert earned == pytest.approx(paid, rel=1e-14)
        assert expected == pytest.approx(hoped, rel=1e-9)


def test_a_trajectory_holds_together():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    start = rs.BeliefState([0, 1, 0, 1], [2, 9, 1, 4])
    for agent in (rs.TSDE(prior, num_pulls, "whittle", start=start), rs.whittle(bandit)):
        ran = rs.simulate(bandit, agent, 80, seed=3, start=start)
        now = start
        for t in range(80):
            assert rs.BeliefState(ran.last_state[t], ran.elapsed[t]) == now
            arms, states = ran.arms[t], ran.states[t]
            earned = sum(bandit.arms[k].rewards[s] for k, s in zip(arms, states, strict=True))
            assert ran.rewards[t] == pytest.approx(earned)
            laws = [
                naive.start_belief(as_lists(bandit.arms[k]), now.last_state[k], int(now.elapsed[k]))
                for k in arms
            ]
            hoped = sum(
                np.dot(law, bandit.arms[k].rewards) for k, law in zip(arms, laws, strict=True)
            )
            assert ran.expected_rewards[t] == pytest.approx(hoped, rel=1e-9)
            now = now.updated(arms, states)
        is_agent = isinstance(agent, rs.types.Agent)
        assert (ran.episode > 0).all() == is_agent
        assert (np.diff(ran.episode) >= 0).all()


def test_a_policy_is_asked_with_the_state():
    bandit = true_bandit(*channels())
    policy = rs.whittle(bandit)
    ran = rs.simulate(bandit, policy, 50, seed=1)
    for t in range(50):
        state = rs.BeliefState(ran.last_state[t], ran.elapsed[t])
        assert ran.arms[t].tolist() == policy.select(state).tolist()


class Fixed:
    """An agent of the user's: always the same arms."""

    def __init__(self, *arms):
        self.arms, self.seen = np.array(arms), []

    def select(self):
        return self.arms

    def observe(self, states):
        self.seen.append(states.tolist())


def test_any_agent_can_be_simulated():
    bandit = true_bandit(*channels())
    agent = Fixed(1, 3)
    ran = rs.simulate(bandit, agent, 30, seed=2)
    assert agent.seen == ran.states.tolist()
    assert (ran.arms == [1, 3]).all()
    assert (ran.episode == 0).all()


def test_the_same_seed_gives_the_same_trajectory():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    runs = [
        rs.simulate(bandit, rs.TSDE(prior, num_pulls, seed=agent_seed), 100, seed=seed)
        for agent_seed, seed in [(1, 1), (1, 1), (1, 2), (2, 1)]
    ]
    assert runs[0].states.tobytes() == runs[1].states.tobytes()
    assert runs[0].states.tobytes() != runs[2].states.tobytes()
    assert runs[0].arms.tobytes() != runs[3].arms.tobytes()


def test_states_of_probability_zero_are_never_seen():
    arm = rs.Arm([[0, 0.5, 0.5, 0], [0, 0, 1, 0], [0.1, 0.2, 0.7, 0], [0.3, 0.3, 0.4, 0]],
                 [[0, 0.3, 0.7, 0], [0.5, 0.25, 0.25, 0], [1, 0, 0, 0], [0.2, 0, 0.8, 0]],
                 [0, 0.2, 0.4, 1])  # fmt: skip
    start = rs.BeliefState([0, 0], [1, 1])
    world = World(rs.RestlessBandit([arm, arm], 1), start=start, seed=3, max_elapsed=40)
    last, seen = {}, set()
    for t in range(4000):
        arms = np.array([0, 1] if t % 3 == 0 else [0])
        states, _, _ = world.pull(arms)
        for k, state in zip(arms.tolist(), states.tolist(), strict=True):
            if k == 0 and k in last:
                assert arm.active[last[k], state] > 0
            last[k] = state
            seen.add(state)
    assert seen == {0, 1, 2}


def test_what_simulate_refuses():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    with pytest.raises(rs.errors.ProblemError, match="horizon must be at least 1, got 0"):
        rs.simulate(bandit, rs.whittle(bandit), 0)
    with pytest.raises(rs.errors.ProblemError, match="seed must be a whole number"):
        rs.simulate(bandit, rs.whittle(bandit), 5, seed=-3)
    with pytest.raises(
        rs.errors.ProblemError, match="2 arms are pulled each step, 1 were selected"
    ):
        rs.simulate(bandit, rs.TSDE(prior, 1), 5)
    with pytest.raises(rs.errors.ProblemError, match="the state is for 1 arms, the bandit has 4"):
        rs.simulate(bandit, rs.whittle(bandit), 5, start=rs.BeliefState([0], [1]))


WRONG_ARMS = """
import numpy as np
import restive as rs
from learning_cases import channels
from test_simulation import Fixed
bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 2, 2)
prior, num_pulls = channels()
for agent in (Fixed(0, 2), Fixed(-1, 0), Fixed(1, 1), Fixed(0, 10**9), rs.TSDE(prior, num_pulls)):
    try:
        rs.simulate(bandit, agent, 50)
    except rs.errors.ProblemError:
        print("refused")
"""


def test_arms_that_are_none_are_refused():
    # apart, since what a kernel does to memory must not end the other tests
    folder = __file__.rsplit("/", 1)[0]
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {folder!r})\n{WRONG_ARMS}"]
    ran = subprocess.run(command, capture_output=True, check=False, text=True)
    assert ran.returncode == 0, ran.stderr[-2000:]
    assert ran.stdout.split() == ["refused"] * 5
