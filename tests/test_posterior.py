"""The posterior: against every hidden path, against logarithms, and calibrated."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

import restive as rs
from learning_cases import (
    CASES,
    agent_with,
    channels,
    controlled,
    groups_of,
    joint,
    posed,
    random_arm,
    run_engine,
)
from oracles import tsde_naive as naive
from restive.measure.replication import replicate
from restive.measure.world import World


def path_weights(arm, pulls, start_state, start_elapsed, num_steps):
    """Probability of what was seen of one arm together with each state at time num_steps + 1.

    Every path of hidden states is walked, from the time at which the arm was seen before the
    start. `pulls` is {time: state seen}; the matrix of a step is that of whether it was pulled.
    """
    times = range(1 - start_elapsed, num_steps + 2)
    totals = np.zeros(arm.num_states)
    for later in product(range(arm.num_states), repeat=len(times) - 1):
        path = dict(zip(times, (start_state, *later), strict=True))
        if any(path[t] != state for t, state in pulls.items()):
            continue
        weight = 1.0
        for t in times[:-1]:
            matrix = arm.active if t in pulls or t == times[0] else arm.passive
            weight *= matrix[path[t], path[t + 1]]
        totals[path[times[-1]]] += weight
    return totals


def enumerated(prior, history, start, num_steps):
    """Return posterior and law of the state now, per arm, by walking every hidden path."""
    per_arm = []
    for k in range(prior.num_arms):
        pulls = {t: states[k] for t, states in history.items() if k in states}
        start_of_arm = int(start.last_state[k]), int(start.elapsed[k])
        per_arm.append(
            np.array(
                [path_weights(arm, pulls, *start_of_arm, num_steps) for arm in prior.candidates(k)]
            )
        )  # [candidates, states]
    posteriors, laws = [], []
    whole = [weights.sum(axis=1) for weights in per_arm]
    for k, weights in enumerate(per_arm):
        if isinstance(prior, rs.JointPrior):
            evidence = prior.weights * np.prod(whole, axis=0)
        else:
            evidence = prior.arms[k].weights * whole[k]
        posteriors.append(evidence / evidence.sum())
        known = np.divide(
            weights, whole[k][:, None], out=np.zeros_like(weights), where=whole[k][:, None] > 0
        )
        laws.append(posteriors[-1] @ known)
    return posteriors, laws


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_the_posterior_is_that_of_every_hidden_path(case, seed):
    prior, num_pulls = CASES[case]()
    rng = np.random.default_rng(seed)
    num_arms, num_steps = prior.num_arms, 5
    start = rs.BeliefState([0] * num_arms, rng.integers(1, 4, num_arms))
    agent = rs.TSDE(prior, num_pulls, "myopic", start=start, seed=seed)
    history = {}
    for t in range(1, num_steps + 1):
        mask = np.zeros(num_arms, dtype=bool)
        mask[rng.choice(num_arms, num_pulls, replace=False)] = True
        arms = agent.select(available=mask)
        assert arms.tolist() == np.flatnonzero(mask).tolist()
        states = [int(rng.choice(len(agent.belief(k)), p=agent.belief(k))) for k in arms]
        agent.observe(states)
        history[t] = dict(zip(arms.tolist(), states, strict=True))
    posteriors, laws = enumerated(prior, history, start, num_steps)
    for k in range(num_arms):
        np.testing.assert_allclose(agent.posterior(k).weights, posteriors[k], rtol=1e-12, atol=0)
        np.testing.assert_allclose(agent.belief(k), laws[k], rtol=1e-11, atol=1e-15)
        assert agent.posterior(k).weights.sum() == pytest.approx(1, abs=1e-15)


def test_before_anything_is_seen_the_posterior_is_the_prior():
    for case in CASES.values():
        prior, num_pulls = case()
        agent = rs.TSDE(prior, num_pulls)
        for k in range(prior.num_arms):
            weights = prior.weights if isinstance(prior, rs.JointPrior) else prior.arms[k].weights
            np.testing.assert_allclose(agent.posterior(k).weights, weights, rtol=1e-15)


def test_the_law_of_a_state_is_the_mixture_of_the_candidates_beliefs():
    for case in CASES.values():
        prior, num_pulls = case()
        agent = rs.TSDE(prior, num_pulls, "whittle", seed=4)
        rng = np.random.default_rng(0)
        for _ in range(120):
            arms = agent.select()
            agent.observe([rng.choice(len(agent.belief(k)), p=agent.belief(k)) for k in arms])
        now = agent.belief_state
        for k in range(prior.num_arms):
            age = int(now.elapsed[k])
            beliefs = [
                rs.theory.belief_table(arm, age)[now.last_state[k], age - 1]
                for arm in prior.candidates(k)
            ]
            law = agent.posterior(k).weights @ np.array(beliefs)
            np.testing.assert_allclose(agent.belief(k), law, rtol=1e-10)


def test_when_the_posterior_is_asked_for_does_not_change_a_bit_of_it():
    for case in (channels, controlled, joint):
        prior, num_pulls = case()
        agents = [rs.TSDE(prior, num_pulls, "myopic", horizon=500, seed=8) for _ in range(2)]
        world = World(rs.RestlessBandit([prior.candidates(k)[0] for k in range(prior.num_arms)], 1))
        for t in range(700):
            arms = agents[0].select()
            assert agents[1].select().tolist() == arms.tolist()
            states, _, _ = world.pull(arms)
            for agent in agents:
                agent.observe(states)
            agents[0].posterior(t % prior.num_arms)
        for k in range(prior.num_arms):
            assert (
                agents[0].posterior(k).weights.tobytes() == agents[1].posterior(k).weights.tobytes()
            )


def test_a_returned_posterior_is_the_callers_own():
    agent = rs.TSDE(*channels())
    before = agent.posterior(0).weights
    agent.posterior(0).weights[:] = 0
    assert np.array_equal(agent.posterior(0).weights, before)


NEAR = [
    (0.3, 0.7), (0.301, 0.7), (0.3, 0.699), (0.2992, 0.7005), (0.31, 0.71), (0.304, 0.7),
    (0.5, 0.5), (0.1, 0.9), (1.0, 0.7), (0.3, 0.7004), (0.296, 0.7), (0.4, 0.7),
]  # fmt: skip


def after_a_million(prior, num_pulls, truth, steps=1_000_000):
    """Run the engine for long, and return an agent that stands where it ended, and its trace."""
    setup = posed(prior, num_pulls, "best_fixed", steps, true_bandit=truth)
    learner_state, arms, seen = run_engine(setup, steps, seed=2)
    agent = agent_with(learner_state, 2)
    assert agent.time == steps + 1
    return agent, arms, seen


def log_likelihoods(candidates, pulled, states):
    """Sum of log b(s, n)[s'] of each candidate; `pulled` are the times of one arm's pulls."""
    ages = np.diff(pulled, prepend=0)
    last = np.concatenate([[candidates[0].num_states - 1], states[:-1]])
    cells, counts = np.unique(
        (last * 500 + np.minimum(ages, 500) - 1) * 3 + states, return_counts=True
    )
    s, n, seen = cells // 1500, cells // 3 % 500, cells % 3
    found = []
    for arm in candidates:
        likelihood = rs.theory.belief_table(arm, 500)[s, n, seen]
        with np.errstate(divide="ignore"):
            found.append(np.sum(counts * np.log(likelihood)))
    return np.array(found)


def assert_is(posterior, logs):
    """Compare with logarithms: what a float can hold to nine digits, the rest is zero."""
    exact = np.exp(np.maximum(logs - logs.max(), -700))
    exact /= exact.sum()
    told_apart = logs - logs.max() > -690
    assert (posterior[~told_apart] < 1e-299).all()
    np.testing.assert_allclose(posterior[told_apart], exact[told_apart], rtol=1e-9)


def test_after_a_million_observations_of_independent_arms():
    near = [rs.gilbert_elliott(*pair) for pair in NEAR]
    prior = rs.IndependentPrior([rs.ArmPrior(near, [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 0])] * 2)
    truth = rs.RestlessBandit([near[0], rs.gilbert_elliott(0.9, 0.05)], 1)
    agent, arms, states = after_a_million(prior, 1, truth)
    for k in range(2):
        pulled = np.flatnonzero(arms[:, 0] == k) + 1
        logs = log_likelihoods(near, pulled, states[pulled - 1, 0])
        with np.errstate(divide="ignore"):
            logs += np.log(prior.arms[k].weights)
        assert_is(agent.posterior(k).weights, logs)
    posterior = agent.posterior(0).weights
    assert (posterior > 0.001).sum() >= 3  # several are still possible
    assert (posterior == 0).sum() >= 3  # some are far too small for a float
    assert posterior[8] == posterior[11] == 0  # one was ruled out, one never possible


def test_after_a_million_observations_of_joint_systems():
    rng = np.random.default_rng(3)
    base = [random_arm(rng, 3, [0.2, 0.1, 0.9]), random_arm(rng, 2, [0, 1])]

    def moved(arm, by):
        shift = by * rng.standard_normal((2, arm.num_states, arm.num_states))
        active, passive = np.clip(np.array([arm.active, arm.passive]) + shift, 1e-3, None)
        return rs.Arm(
            active / active.sum(axis=1, keepdims=True),
            passive / passive.sum(axis=1, keepdims=True),
            arm.rewards,
        )

    sizes = [0, 3e-4, 3e-4, 6e-4, 6e-4, 1e-3, 5e-3, 0.1, 0.3]
    bandits = [rs.RestlessBandit([moved(arm, by) for arm in base], 2) for by in sizes]
    prior = rs.JointPrior(bandits)
    agent, _, states = after_a_million(prior, 2, bandits[0])
    times = np.arange(1, len(states) + 1)
    logs = sum(
        log_likelihoods([bandit.arms[k] for bandit in bandits], times, states[:, k])
        for k in range(2)
    )
    assert_is(agent.posterior(0).weights, logs)
    assert (agent.posterior(1).weights > 0.001).sum() >= 2


def test_a_hopeless_candidate_comes_back_when_all_evidence_says_so_and_not_before():
    good, poor = rs.gilbert_elliott(0.1, 0.9), rs.gilbert_elliott(0.9, 0.1)
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior([good, poor])]), 1)
    for t in range(3000):  # the poor one would have a weight of 9^-3000
        agent.select()
        agent.observe([1])
        if t == 150:
            assert agent.posterior(0).weights[1] == pytest.approx(9.0**-151, rel=1e-12)
    assert agent.posterior(0).weights.tolist() == [1, 0]
    for t in range(3150):  # each of them 9 times likelier under the poor one
        agent.select()
        agent.observe([t % 2])
        exact = 1 / (1 + 9.0 ** np.clip(3000 - (t + 1), -300, 300))
        assert agent.posterior(0).weights[1] == pytest.approx(exact, rel=1e-9, abs=1e-280)


def test_a_candidate_that_is_ruled_out_stays_out():
    never_twice_bad, other = rs.gilbert_elliott(1.0, 0.5), rs.gilbert_elliott(0.2, 0.5)
    weights = [0.999, 0.001]
    prior = rs.IndependentPrior([rs.ArmPrior([never_twice_bad, other], weights)])
    agent = rs.TSDE(prior, 1)
    for state in (1, 0, 0):
        agent.select()
        agent.observe([state])
    assert agent.posterior(0).weights.tolist() == [0, 1]
    for t in range(1500):  # all of them likelier under the one that is out
        agent.select()
        agent.observe([t % 2])
        assert agent.sampled_bandit.arms[0] == other or t == 0
    assert agent.posterior(0).weights.tolist() == [0, 1]


def test_a_candidate_without_weight_is_never_drawn():
    arms = [rs.gilbert_elliott(0.1 * j, 0.5) for j in range(1, 10)]
    weights = [0, 0, 1, 0, 0, 1, 0, 0, 0]
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior(arms, weights)] * 3), 1, seed=3)
    rng = np.random.default_rng(1)
    drawn = set()
    for _ in range(300):
        agent.select()
        drawn |= {arms.index(arm) for arm in agent.sampled_bandit.arms}
        agent.observe([int(rng.random() < 0.5)])
    assert drawn == {2, 5}


def calibration_values(prior, num_pulls, replications, steps, seed):
    """Return the truth's place in the posterior, two ways: each is uniform on [0, 1].

    Given what was seen, the truth of a group is drawn from its posterior. So the weight before it,
    plus a random share of its own, is uniform, with the candidates in any order that what was seen
    decides: here their own order and that of their weights.
    """
    setup = posed(prior, num_pulls, "whittle")
    rng = np.random.default_rng(seed)
    groups = groups_of(prior)
    values = [[], []]
    for replication in range(replications):
        truth = naive.drawn_truth(groups, prior.num_arms, seed, replication)
        bandit = rs.RestlessBandit([prior.candidates(k)[c] for k, c in enumerate(truth)], num_pulls)
        agent = rs.types.Agent(*setup, seed, replication)
        world = World(bandit, seed=seed, replication=replication)
        for _ in range(steps):
            agent.observe(world.pull(agent.select())[0])
        for group in range(len(groups)):
            posterior = agent.posterior(group).weights
            place = np.argsort(np.argsort(-posterior, kind="stable"))
            before = [np.arange(len(place)) < truth[group], place < place[truth[group]]]
            share = rng.random() * posterior[truth[group]]
            for order in range(2):
                values[order].append(posterior[before[order]].sum() + share)
    return np.array(values)


@pytest.mark.parametrize("case", [channels, controlled, joint])
def test_the_truth_is_where_the_posterior_says(case):
    # false-alarm rate 1e-4 per order of the candidates
    prior, num_pulls = case()
    replications = 300 if case is not joint else 900
    for values in calibration_values(prior, num_pulls, replications, 25, seed=31):
        assert ((values >= 0) & (values <= 1 + 1e-12)).all()
        bins = np.bincount((values * 20).astype(int).clip(0, 19), minlength=20)
        assert bins.sum() >= 900
        assert stats.chisquare(bins).pvalue > 1e-4


def test_a_candidate_of_tiny_prior_weight_is_not_lost():
    never_bad_twice = rs.gilbert_elliott(1.0, 0.5)
    prior = rs.ArmPrior([rs.gilbert_elliott(0.5, 0.5), never_bad_twice], [1e-300, 1])
    agent = rs.TSDE(rs.IndependentPrior([prior]), 1)
    for state in [1] * 100 + [0, 0]:
        agent.select()
        agent.observe([state])
    assert agent.posterior(0).weights.tolist() == [1, 0]


def test_a_candidate_that_thinks_little_of_what_is_seen_is_not_lost():
    sure = rs.Arm([[0.5, 0.5], [1, 0]], rewards=[0, 1])
    doubtful = rs.Arm([[1 - 1e-15, 1e-200], [0.5, 0.5]], rewards=[0, 1])
    agent = rs.TSDE(
        rs.IndependentPrior([rs.ArmPrior([sure, doubtful])]), 1, mixing_time=10, max_elapsed=5
    )
    for state in [0, 1] * 4 + [1]:
        agent.select()
        agent.observe([state])
    assert agent.posterior(0).weights.tolist() == [0, 1]


def test_the_engine_minds_an_impossible_end_too():
    prior = rs.IndependentPrior([rs.ArmPrior([rs.gilbert_elliott(1.0, 0.5)])])
    truth = rs.RestlessBandit([rs.gilbert_elliott(0.1, 0.5)], 1)
    with pytest.raises(rs.errors.ProblemError, match="the prior rules out the true bandit"):
        rs.frequentist_regret(truth, prior, horizon=2, replications=30)


# Exact for any history.


class Exact:
    """The posterior of independent candidates of one arm, by logarithms."""

    def __init__(self, candidates, weights, last_state=1):
        self.tables = [rs.theory.belief_table(arm, 60) for arm in candidates]
        with np.errstate(divide="ignore"):
            self.logs = np.log(np.asarray(weights, dtype=float))
        self.last_state, self.age = last_state, 1

    def see(self, state):
        with np.errstate(divide="ignore"):
            self.logs = self.logs + [
                np.log(table[self.last_state, self.age - 1, state]) for table in self.tables
            ]
        self.last_state, self.age = state, 1

    @property
    def weights(self):
        with np.errstate(under="ignore"):
            found = np.exp(np.maximum(self.logs - self.logs.max(), -745))
        found[self.logs == -np.inf] = 0
        return found / found.sum()

    def check(self, weights):
        np.testing.assert_allclose(weights, self.weights, rtol=1e-9, atol=1e-299)


def test_evidence_is_not_forgotten_however_much_spoke_against_it():
    """2,000 sightings of the first and 4,000 of the second: exactly, the third is left."""
    pairs = [(0.1, 0.9), (0.9, 0.1), (0.5, 0.5)]
    candidates = [rs.gilbert_elliott(*pair) for pair in pairs]
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior(candidates)]), 1)
    exact = Exact(candidates, [1, 1, 1])
    rng = np.random.default_rng(4)
    state, among = 1, set()
    for t in range(6000):
        p01, p11 = pairs[0 if t < 2000 else 1]
        state = int(rng.random() < (p11 if state else p01))
        agent.select()
        agent.observe([state])
        exact.see(state)
        if t % 50 == 0:
            exact.check(agent.posterior(0).weights)
            among.add(int(exact.weights.argmax()))
    exact.check(agent.posterior(0).weights)
    assert agent.posterior(0).weights.tolist() == [0, 0, 1]
    assert {0, 2} <= among


RELATIVES = ["tsde", "thompson_every_step", "certainty_equivalence", "epsilon_greedy"]


@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize("seed", range(3))
def test_long_adversarial_histories(name, seed):
    """Now one candidate speaks, now another, now nobody; some are ruled out on the way.

    What is drawn is likely, exactly: below 1e-12 a draw would happen in one of 10^8 such tests.
    """
    rng = np.random.default_rng([seed, 71])
    size = 3
    candidates = [random_arm(rng, size, [0, 0.5, 1], spread=0.02) for _ in range(8)]
    for k in (0, 3, 5):  # these rule something out
        active = candidates[k].active.copy()
        active[k % size, (k + 1) % size] = 0
        active /= active.sum(axis=1, keepdims=True)
        candidates[k] = rs.Arm(active, active, [0, 0.5, 1])
    weights = rng.random(8) * 10.0 ** -rng.integers(0, 250, 8)
    agent = rs.make_learner(
        name, rs.IndependentPrior([rs.ArmPrior(candidates, weights)]), 1, "myopic", seed=seed
    )
    exact = Exact(candidates, weights, last_state=2)
    state, leaders, ruled_out = 2, set(), 0
    for t in range(2500):
        speaker = (t // 400) % 8
        possible = np.isfinite(exact.logs)
        law = np.full(size, 1 / size) if t % 1000 > 900 else candidates[speaker].active[state]
        allowed = (np.array([table[state, 0] for table in exact.tables])[possible] > 0).any(axis=0)
        law = law * allowed
        state = int(rng.choice(size, p=law / law.sum()))
        agent.select()
        drawn = candidates.index(agent.sampled_bandit.arms[0])
        if agent.episode.length == 0:
            assert exact.weights[drawn] > 1e-12
        agent.observe([state])
        exact.see(state)
        if t % 20 == 0:
            exact.check(agent.posterior(0).weights)
        leaders.add(int(exact.weights.argmax()))
        ruled_out = int((exact.logs == -np.inf).sum())
    exact.check(agent.posterior(0).weights)
    assert len(leaders) >= 2
    assert ruled_out >= 2


FAVOURITE, SECOND, THIRD = (1.0, 0.5), (0.02, 0.97), (0.005, 0.96)


@pytest.mark.parametrize("asked", [False, True])
@pytest.mark.parametrize("name", RELATIVES)
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_left_when_the_favourite_is_ruled_out(name, shared, asked):
    """All others are hopeless by then, and by how much still decides between them."""
    candidates = [rs.gilbert_elliott(*pair) for pair in (THIRD, SECOND, FAVOURITE)]
    if shared:
        prior = rs.JointPrior([rs.RestlessBandit([arm], 1) for arm in candidates], [2, 1, 1])
    else:
        prior = rs.IndependentPrior([rs.ArmPrior(candidates, [2, 1, 1])])
    agent = rs.make_learner(name, prior, 1, "myopic", seed=3)
    exact = Exact(candidates, [2, 1, 1])
    for state in [0, 1] * 300 + [0]:  # the second falls to 2^-2900, the third to 2^-3400
        agent.select()
        agent.observe([state])
        exact.see(state)
    assert agent.posterior(0).weights.tolist() == [0, 0, 1]
    for t in range(60):
        agent.select()
        agent.observe([0])  # twice bad: not with the favourite
        exact.see(0)
        if asked:
            exact.check(agent.posterior(0).weights)
        if t > 1 and agent.episode.start > 602:
            assert agent.sampled_bandit.arms[0] == candidates[1]
    exact.check(agent.posterior(0).weights)
    assert agent.posterior(0).weights[1:].tolist() == [1, 0]


def test_what_is_left_of_a_prior_whose_favourite_is_ruled_out_at_once():
    candidates = [rs.gilbert_elliott(*pair) for pair in (THIRD, SECOND, FAVOURITE)]
    weights = [1e-300, 1e-290, 1]
    agent = rs.TSDE(rs.IndependentPrior([rs.ArmPrior(candidates, weights)]), 1)
    exact = Exact(candidates, weights)
    for state in (0, 0):
        agent.select()
        agent.observe([state])
        exact.see(state)
    exact.check(agent.posterior(0).weights)
    assert agent.posterior(0).weights[0] == pytest.approx(
        1e-10 * 0.04 / 0.03 * 0.995 / 0.98, rel=1e-9
    )


@pytest.mark.parametrize("joined", [False, True])
def test_engine_and_agent_agree_when_the_favourite_is_ruled_out(joined):
    """The truth is near the favourite, which it contradicts late: in one of 700 steps."""
    near = rs.Arm([[1 / 700, 699 / 700], [0.5, 0.5]], rewards=[0, 1])
    candidates = [rs.gilbert_elliott(*pair) for pair in (THIRD, SECOND, FAVOURITE)]
    truth = rs.RestlessBandit([near, near], 1)
    if joined:
        prior = rs.JointPrior([rs.RestlessBandit([arm, arm], 1) for arm in candidates])
    else:
        prior = rs.IndependentPrior([rs.ArmPrior(candidates)] * 2)
    setup = posed(prior, 1, "myopic", 4000, true_bandit=truth)
    ruled_out = 0
    for seed in range(4):
        learner_state, arms, states = run_engine(setup, 4000, seed)
        agent, engine = rs.types.Agent(*setup, seed), agent_with(learner_state, seed)
        for t in range(4000):
            assert agent.select().tolist() == arms[t].tolist()
            agent.observe(states[t])
        evidence = [agent.evidence(k) for k in range(2)]
        given = prior.given(evidence)
        for k in range(2):
            expected = given.weights if joined else given.arms[k].weights
            for found in (agent, engine):
                weights = found.posterior(k).weights
                np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-299)
            assert weights.tobytes() == agent.posterior(k).weights.tobytes()
        ruled_out += min(engine.posterior(k).weights[2] for k in range(2)) == 0
    assert ruled_out >= 3


def test_the_weight_of_the_truth_is_exact_too():
    """What a study records, when the favourite was ruled out."""
    candidates = [rs.gilbert_elliott(*pair) for pair in (THIRD, SECOND, FAVOURITE)]
    near = rs.Arm([[1 / 300, 299 / 300], [0.5, 0.5]], rewards=[0, 1])
    prior = rs.IndependentPrior([rs.ArmPrior([*candidates, near], [1, 1, 1, 1e-300])])
    setup = posed(prior, 1, "myopic", 2000, true_bandit=rs.RestlessBandit([near], 1))
    times = np.array([10, 300, 2000])
    done = replicate(*setup, times, 5, seed=2, with_posterior=True)
    for r in range(5):
        _, _, states = run_engine(setup, 2000, 2, r)
        exact = Exact([*candidates, near], prior.arms[0].weights)
        for t, state in enumerate(states[:, 0].tolist(), start=1):
            exact.see(state)
            if t in times:
                found = done.truth_weights[r, times.tolist().index(t), 0]
                assert found == pytest.approx(exact.weights[3], rel=1e-9, abs=1e-290)
