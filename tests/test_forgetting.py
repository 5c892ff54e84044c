"""Forgetting: evidence that decays, next to an oracle that decays it in plain numpy."""

import json

import numpy as np
import pytest
from scipy.stats import beta

import restive as rs
from oracles.posterior_naive import Ridge
from restive.kernels.learn.likelihood import add_log_likelihood
from restive.learn.particles.arm import counts_of
from restive.learn.relearning import relearnt, with_memory
from restive.learn.slots import lane_places

RELATIVES = (
    "tsde", "mean_index", "tsde_doubling_only", "tsde_length_only", "thompson_every_step",
    "episodic_thompson", "certainty_equivalence", "epsilon_greedy",
)  # fmt: skip


def channels(num_arms=5):
    return rs.grid_prior([0.1, 0.3, 0.5, 0.7, 0.9], num_arms=num_arms)


def played(agent, steps, seed=0):
    """Play an agent in a world of coins; return (time, arm, last state, age, state) of all seen."""
    rng = np.random.default_rng(seed)
    last = dict.fromkeys(range(agent.task.num_arms), (1, 0))  # state, time
    told = []
    for t in range(1, steps + 1):
        arms = agent.select().tolist()
        shown = agent.awaited.tolist()
        states = rng.integers(0, 2, len(shown)).tolist()
        for k, state in zip(shown, states, strict=True):
            before, at = last[k]
            told.append((t, k, before, t - at, state, k in arms))
            last[k] = (state, t)
        agent.observe(states)
    return told


def share_left(seen, now, forget_after):
    """Weight at time `now`, after its step began, of what was seen at time `seen`."""
    steps = max(1, int(forget_after) // 20)
    times = [t for t in range(1 + steps, now + 1, steps) if t > seen]
    return np.exp(-steps / forget_after) ** len(times)


def likelihood(arm, before, age, state):
    return np.linalg.matrix_power(arm.active, age)[before, state]


@pytest.mark.parametrize("forget_after", [1, 3.5, 7, 40, 200])
def test_finite_posterior_is_the_prior_given_decayed_evidence(forget_after):
    prior = channels()
    agent = rs.TSDE(prior, 2, horizon=1000, seed=3, forget_after=forget_after)
    told = played(agent, 90)
    agent.select()  # at which evidence decays, if it is due
    for k, arm in enumerate(prior.arms):
        logs = np.log(arm.weights)
        for t, who, before, age, state, _ in told:
            if who == k:
                seen = [likelihood(one, before, age, state) for one in arm.candidates]
                logs = logs + share_left(t, 91, forget_after) * np.log(seen)
        expected = np.exp(logs - logs.max())
        expected /= expected.sum()
        np.testing.assert_allclose(agent.posterior(k).weights, expected, rtol=0, atol=1e-9)


def test_joint_posterior_decays_too():
    bandits = [
        rs.RestlessBandit([rs.gilbert_elliott(p, 0.8), rs.gilbert_elliott(0.3, q)], 1)
        for p in (0.1, 0.4)
        for q in (0.5, 0.9)
    ]
    agent = rs.TSDE(rs.JointPrior(bandits), 1, horizon=1000, seed=1, forget_after=30)
    told = played(agent, 70)
    agent.select()
    logs = np.zeros(4)
    for t, k, before, age, state, _ in told:
        seen = [likelihood(one.arms[k], before, age, state) for one in bandits]
        logs += share_left(t, 71, 30) * np.log(seen)
    expected = np.exp(logs - logs.max())
    expected /= expected.sum()
    np.testing.assert_allclose(agent.posterior(0).weights, expected, rtol=0, atol=1e-9)


def test_counts_of_arms_that_are_always_seen_decay():
    prior = rs.zoo.load("calls-8").prior
    agent = rs.TSDE(prior, 3, horizon=1000, seed=1, forget_after=40)
    told = played(agent, 90)
    agent.select()
    groups = agent._particle_keeper.conjugates
    for k in range(8):
        alphas = prior.arms[k].posterior_alphas.copy()
        size = alphas.shape[-1]
        rows = alphas.reshape(-1, size)
        for t, who, before, _, state, pulled in told:
            if who == k:
                row = before if pulled or len(rows) == size else size + before
                rows[row, state] += share_left(t, 91, 40)
        found = groups._part(groups.groups.counts + groups.groups.alphas, k).reshape(-1, size)
        np.testing.assert_allclose(found, rows, rtol=1e-12)


@pytest.mark.parametrize("name", RELATIVES)
def test_snapshots_go_on_with_the_same_bits(name):
    prior = channels()
    one = rs.make_learner(name, prior, 2, seed=5, forget_after=23)
    played(one, 37)
    two = rs.restore(json.loads(json.dumps(one.snapshot())))
    for seed in range(3):
        assert played(one, 30, seed) == played(two, 30, seed)
    assert one.snapshot() == two.snapshot()
    one.select()
    again = rs.restore(json.loads(json.dumps(one.snapshot())))
    assert one.snapshot() == again.snapshot()


@pytest.mark.parametrize(
    "prior",
    [
        rs.zoo.load("calls-8").prior,
        rs.beta_prior(num_arms=4),
        rs.IndependentPrior([*rs.beta_prior(3).arms], [[0, 1]]),
        rs.IndependentPrior([*rs.beta_prior(2).arms, *rs.zoo.load("calls-8").prior.arms[:2]]),
        rs.spread_prior(num_arms=4, points=64),
    ],
    ids=["always seen", "particles", "pools", "mixed", "spread"],
)
def test_snapshots_of_other_priors(prior):
    one = rs.TSDE(prior, 3, seed=5, forget_after=23, mixing_time=3)
    played(one, 37)
    for seed in range(4):
        two = rs.restore(json.loads(json.dumps(one.snapshot())))
        assert played(one, 30, seed) == played(two, 30, seed)
        assert one.snapshot() == two.snapshot()


@pytest.mark.parametrize("due", [0, 36, 39, 100, "soon", 2.5])
def test_a_forged_time_of_forgetting_is_refused(due):
    agent = rs.TSDE(channels(), 2, seed=5, forget_after=60)
    played(agent, 37)
    data = agent.snapshot()
    assert data["episodes"]["fading_due"] == 40
    data["episodes"]["fading_due"] = due
    data["checksum"] = rs_checksum(data)
    with pytest.raises(rs.RestiveError):
        rs.restore(data)


def rs_checksum(data):
    from restive.learn.snapshots import checksum

    return checksum({key: value for key, value in data.items() if key != "checksum"})


def test_a_very_long_memory_is_hardly_another_posterior():
    prior = channels()
    kept, faded = (
        rs.TSDE(prior, 2, horizon=400, seed=3, forget_after=after) for after in (None, 1e12)
    )
    assert played(kept, 200) == played(faded, 200)


def test_what_was_ruled_out_stays_so_and_small_weights_come_back():
    arms = [rs.gilbert_elliott(p, 0.9) for p in (0.001, 0.5)]
    sure = rs.Arm([[1.0, 0.0], [0.5, 0.5]], rewards=[0.0, 1.0])  # never leaves its bad state
    prior = rs.IndependentPrior([rs.ArmPrior([*arms, sure])])
    agent = rs.TSDE(prior, 1, horizon=1000, seed=0, forget_after=100)
    for state in [0, 1] * 400:
        agent.select()
        agent.observe([state])
    before = agent.posterior(0).weights
    assert before[0] < 1e-20
    assert before[2] == 0
    for _ in range(600):
        agent.select()
        agent.observe([0])
    after = agent.posterior(0).weights
    assert after[0] > 0.9  # seldom leaves: what was seen long ago does not count
    assert after[2] == 0


@pytest.mark.parametrize("wrong", [0, 0.5, -1, float("nan"), float("inf"), "long", True])
@pytest.mark.parametrize("name", RELATIVES)
def test_wrong_memories_get_a_sentence(name, wrong):
    with pytest.raises(rs.RestiveError, match=r"forget_after must be a number from 1 to"):
        rs.make_learner(name, channels(), 2, forget_after=wrong)


@pytest.mark.parametrize("name", sorted(set(rs.registry.LEARNERS) - set(RELATIVES)))
def test_learners_without_a_posterior_have_nothing_to_forget(name):
    with pytest.raises(rs.RestiveError, match=f"{name} has no posterior, so it has nothing to for"):
        rs.make_learner(name, channels(), 2, horizon=100, forget_after=10)


def test_comparisons_take_it():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(p, 0.8) for p in (0.1, 0.3)], 1)
    learners = ["tsde", {"name": "tsde", "forget_after": 20}]
    (found,) = rs.compare((bandit, channels(2)), learners, horizon=60, replications=3)
    assert {curve.learner for curve in found.curves} == {"tsde", "tsde(forget_after=20)"}


def decayed_cells(told, arm, now, forget_after, first=()):
    """Counts by (last state, age, state) that are left of what was seen of an arm."""
    cells = dict(first)
    for t, k, before, age, state, _ in told:
        if k == arm:
            cell = (before, age, state)
            cells[cell] = cells.get(cell, 0) + share_left(t, now, forget_after)
    return cells


def cdf_errors(agent, k, cells, first=(1, 1), second=(1, 1)):
    found = agent.posterior(k)
    up, stay = found.active[:, 0, 1], found.active[:, 1, 1]
    held = {cell: number for cell, number in cells.items() if number > 1e-4}
    exact = Ridge(held, first, second, along=200, across=100)
    numbers = {"p01": up, "p11": stay, "share": up / (up + 1 - stay), "rho": stay - up}
    return [exact.cdf_error(name, one, found.weights) for name, one in numbers.items()]


def inexactness(agent, k):
    """How far log weights are from those without sightings plus the decayed log likelihood."""
    keeper = agent._particle_keeper
    agent._count_notes()
    weights, arm = agent.posterior(k).weights, keeper._arm(k)
    logs = np.zeros(len(weights))
    add_log_likelihood(counts_of(arm), np.ascontiguousarray(keeper.matrices(k)), logs)
    if arm.renewals[0]:
        logs += keeper._bases(k)[lane_places(len(weights))]
    off = np.log(weights) - logs
    return off.max() - off.min()


@pytest.mark.parametrize("forget_after", [3, 40, 300])
def test_particles_follow_decayed_counts(forget_after):
    """Weights are exact, and distribution functions as near to integration as without forgetting.

    Of 24 arms each the largest error is .05 on average, with and without, and .11 at most.
    """
    agent = rs.TSDE(rs.beta_prior(num_arms=3), 2, horizon=1000, seed=3, forget_after=forget_after)
    told = played(agent, 200)
    agent.select()
    assert agent._particle_keeper.particles.renewals.min() > (0 if forget_after > 3 else -1)
    for k in range(3):
        assert inexactness(agent, k) < 1e-9
    cells = [decayed_cells(told, k, 201, forget_after) for k in range(3)]
    errors = [max(cdf_errors(agent, k, cells[k])) for k in range(3)]
    assert max(errors) < 0.15
    assert np.mean(errors) < 0.09


def test_counts_of_particles_decay():
    agent = rs.TSDE(rs.beta_prior(num_arms=4), 2, horizon=1000, seed=3, forget_after=60)
    told = played(agent, 400)
    agent.select()
    agent._count_notes()
    for k in range(4):
        found = counts_of(agent._particle_keeper._arm(k))
        held = {
            (s, int(age), t): found.cells[i, s, t]
            for i, age in enumerate(found.ages)
            for s in (0, 1)
            for t in (0, 1)
            if found.cells[i, s, t] > 1e-6
        }
        cells = {c: n for c, n in decayed_cells(told, k, 401, 60).items() if n > 1e-6}
        assert held.keys() == cells.keys()
        for cell, number in cells.items():
            assert held[cell] == pytest.approx(number, abs=1e-9)


def test_evidence_that_the_prior_was_given_is_not_forgotten():
    evidence = rs.Evidence(2)
    evidence.add([0, 0, 1, 1], [1, 1, 2, 1], [0, 1, 1, 0], [6, 2, 5, 1])
    first = {(0, 1, 0): 6, (0, 1, 1): 2, (1, 2, 1): 5, (1, 1, 0): 1}
    prior = rs.beta_prior(2).given([evidence] * 2)
    agent = rs.TSDE(prior, 1, horizon=1000, seed=3, forget_after=50)
    told = played(agent, 300)
    agent.select()
    assert agent._particle_keeper.particles.renewals.max() > 0
    for k in range(2):
        assert max(cdf_errors(agent, k, decayed_cells(told, k, 301, 50, first))) < 0.1
    again = rs.restore(json.loads(json.dumps(agent.snapshot())))
    assert again.snapshot() == agent.snapshot()
    kept = with_memory(with_memory(agent, None), 50)
    for k in range(2):
        assert max(cdf_errors(kept, k, decayed_cells(told, k, 301, 50, first))) < 0.1


def test_particles_of_three_states_forget():
    """Moves of arms that are pulled in every step: each row's law is Dirichlet, decayed."""
    agent = rs.TSDE(
        rs.dirichlet_prior(1, [0.0, 0.5, 1.0]), 1, horizon=1000, seed=3, forget_after=40
    )
    rng = np.random.default_rng(5)
    last, counts = 2, np.ones((3, 3))
    for t in range(1, 201):
        agent.select()
        state = int(rng.integers(0, 3))
        counts[last, state] += share_left(t, 201, 40)
        last = state
        agent.observe([state])
    agent.select()
    posterior = agent.posterior(0)
    mean = counts / counts.sum(axis=1, keepdims=True)
    deviations = np.sqrt(mean * (1 - mean) / (1 + counts.sum(axis=1, keepdims=True)))
    # an effective size above 60: six standard errors
    assert posterior.effective > 60
    assert (np.abs(posterior.mean().active - mean) < 6 / np.sqrt(60) * deviations).all()


@pytest.mark.parametrize("forget_after", [2, 30, 300])
def test_rows_of_arms_that_are_always_seen_have_decayed_dirichlet_laws(forget_after):
    """Decayed counts are no whole numbers: mean, deviation and quantiles are those of Beta laws."""
    rewards, ones = [0.0, 0.5, 1.0], np.ones((3, 3))
    arm = rs.DirichletArmPrior(ones, 2 * ones, rewards, particles=4096, seen="always")
    prior = rs.IndependentPrior([arm] * 2)
    agent = rs.TSDE(prior, 1, horizon=1000, seed=3, forget_after=forget_after)
    rng, last = np.random.default_rng(5), agent.belief_state.last_state.tolist()
    alphas = np.repeat([[ones, 2 * ones]], 2, axis=0)  # [K, pulled or not, S, S]
    for t in range(1, 61):
        pulled = agent.select().tolist()
        states = rng.choice(3, 2, p=[0.2, 0.3, 0.5]).tolist()
        for k in range(2):
            alphas[k, int(k not in pulled), last[k], states[k]] += share_left(t, 61, forget_after)
        agent.observe(states)
        last = states
    agent.select()
    for k in range(2):
        found = agent.posterior(k)
        for chains, alpha in zip((found.active, found.passive), alphas[k], strict=True):
            law = beta(alpha, alpha.sum(axis=1, keepdims=True) - alpha)
            mean = np.einsum("m,mij->ij", found.weights, chains)
            square = np.einsum("m,mij->ij", found.weights, (chains - mean) ** 2)
            assert (np.abs(mean - law.mean()) < 0.02 * law.std()).all()
            assert (np.abs(np.sqrt(square) / law.std() - 1) < 0.03).all()
            for q in (0.1, 0.5, 0.9):
                below = np.einsum("m,mij->ij", found.weights, chains <= law.ppf(q))
                assert (np.abs(below - q) < 0.02).all()


@pytest.mark.parametrize("make", [lambda: channels(3), lambda: rs.beta_prior(num_arms=3)])
def test_a_late_sighting_weighs_what_its_time_deserves(make):
    """As if it had come in time: the other order of factors alone makes a difference."""
    one, two = (rs.TSDE(make(), 2, horizon=1000, seed=4, forget_after=25) for _ in range(2))
    for agent in (one, two):
        for t in range(1, 91):
            agent.pull([0] if t <= 30 or (agent is one and t == 31) else [1])
            agent.observe([t % 2])
    two.observe_late(0, 31 % 2, 31)
    two.select()
    one.select()
    np.testing.assert_allclose(one.belief(0), two.belief(0), atol=0.05)
    found = [agent.posterior(0) for agent in (one, two)]
    if not one._particle_keeper.has(0):
        np.testing.assert_allclose(found[0].weights, found[1].weights, rtol=0, atol=1e-12)
    else:
        told = [(t, 0, 1 if t == 1 else (t - 1) % 2, 1, t % 2, True) for t in range(1, 32)]
        cells = decayed_cells(told, 0, 91, 25)
        for agent in (one, two):
            assert max(cdf_errors(agent, 0, cells)) < 0.1
    again = rs.restore(json.loads(json.dumps(two.snapshot())))
    assert again.snapshot() == two.snapshot()


def test_threads_give_the_same_bits():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(p, 0.8) for p in (0.1, 0.3, 0.5)], 1)
    prior = channels(3)
    spec = {"name": "tsde", "forget_after": 12}
    one, two = (
        rs.frequentist_regret(
            bandit, prior, horizon=300, learner=spec, replications=6, seed=2, threads=threads
        )
        for threads in (1, 2)
    )
    assert one.samples.tobytes() == two.samples.tobytes()


def test_sightings_shown_again_weigh_what_their_times_deserve():
    prior = channels()
    agent = rs.TSDE(prior, 2, horizon=1000, seed=3, forget_after=30)
    told = played(agent, 90)
    agent.select()
    rows = [(k, before, age, state, t, 1) for t, k, before, age, state, _ in told]
    shown = relearnt(agent, range(5), rows)
    for k in range(5):
        np.testing.assert_allclose(
            shown.posterior(k).weights, agent.posterior(k).weights, rtol=0, atol=1e-12
        )
    moves = rs.TSDE(rs.zoo.load("calls-8").prior, 3, horizon=1000, seed=1, forget_after=40)
    told = played(moves, 90)
    moves.select()
    rows = [(k, before, 1, state, t, int(pulled)) for t, k, before, _, state, pulled in told]
    shown = relearnt(moves, range(8), rows)
    counts = [one._particle_keeper.conjugates.groups.counts for one in (moves, shown)]
    np.testing.assert_allclose(*counts, rtol=1e-12)


def test_laws_of_kinds_are_kept_where_arms_forget():
    prior = rs.spread_prior(num_arms=6, points=64)
    one = rs.TSDE(prior, 2, seed=5, learn_kinds="epochs", forget_after=20, draws=2)
    played(one, 60)
    two = rs.restore(json.loads(json.dumps(one.snapshot())))
    assert played(one, 60, 2) == played(two, 60, 2)
    assert one.snapshot() == two.snapshot()
    assert one.kinds_learnt > 3


def test_particles_forget_the_same_on_any_number_of_threads():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(p, 0.8) for p in (0.1, 0.3, 0.5)], 1)
    spec = {"name": "tsde", "forget_after": 30}
    one, two = (
        rs.frequentist_regret(
            bandit, rs.beta_prior(3), horizon=300, learner=spec, replications=4, seed=2,
            threads=threads,
        )
        for threads in (1, 2)
    )  # fmt: skip
    assert one.samples.tobytes() == two.samples.tobytes()
