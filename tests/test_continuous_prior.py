"""Continuous priors: their posteriors at once, what they refuse, and what they are to others."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import restive as rs
from oracles.posterior_naive import Quadrature
from particle_cases import cells_of, evidence_of, sightings, some_ages
from restive.kernels.random import TRUTH, stream_key

UNIFORM = rs.beta_prior(1).arms[0]

C = {(0, 2, 0): 4, (0, 2, 1): 2, (1, 2, 0): 1, (1, 2, 1): 5, (1, 6, 1): 2, (0, 6, 1): 1}
# Cells, Beta parameters of p01 and p11; then means, variances, covariance and log evidence by exact
# rational integration.
TABLES = {
    "A": ({(0, 1, 1): 2, (1, 1, 1): 3, (1, 1, 0): 1}, (1, 1), (1, 1),
          (0.75, 2 / 3, 0.0375, 0.031746032, 0.0, -4.094344562)),
    "B": ({(0, 1, 0): 1, (0, 2, 1): 3, (0, 3, 1): 1, (1, 1, 1): 4, (1, 2, 0): 2, (1, 4, 1): 1},
          (1, 1), (1, 1),
          (0.567860852, 0.765407569, 0.030031276, 0.014592034, 0.000695108, -8.176055450)),
    "C": (C, (1, 1), (1, 1),
          (0.591726224, 0.607947275, 0.079273539, 0.083060831, -0.060497992, -9.537414923)),
    "D": (C, (2, 3), (4, 1),
          (0.334332571, 0.875912982, 0.020559112, 0.010121519, -0.006838518, -8.835100071)),
}  # fmt: skip


def prior_of(first, second, particles=None):
    """Dirichlet rows for Beta laws of p01 and p11."""
    rows = [[first[1], first[0]], [second[1], second[0]]]
    return rs.DirichletArmPrior(rows, rewards=[0, 1], particles=particles)


def posterior_of(cells, first=(1, 1), second=(1, 1), particles=None):
    evidence = rs.Evidence(2)
    for cell, count in cells.items():
        evidence.add(*cell, count)
    return prior_of(first, second, particles).given(evidence).particles()


def moments(posterior):
    p = posterior.active[:, :, 1]
    mean = (posterior.weights[:, None] * p).sum(axis=0)
    return mean, (posterior.weights[:, None, None] * _squares(p - mean)).sum(axis=0)


def _squares(apart):
    return apart[:, :, None] * apart[:, None, :]


@pytest.mark.parametrize("name", TABLES)
def test_tables_with_exact_moments(name):
    cells, first, second, exact = TABLES[name]
    oracle = Quadrature(cells, first, second)
    np.testing.assert_allclose(oracle.means, exact[:2], atol=1e-8)
    np.testing.assert_allclose(oracle.deviations**2, exact[2:4], atol=1e-8)
    assert oracle.log_evidence == pytest.approx(exact[5], abs=1e-8)

    posterior = posterior_of(cells, first, second)
    mean, covariance = moments(posterior)
    deviations = np.sqrt(exact[2:4])
    assert (np.abs(mean - exact[:2]) / deviations).max() < 0.05
    np.testing.assert_allclose(np.sqrt(covariance.diagonal()), deviations, rtol=0.05)
    assert abs(covariance[0, 1] - exact[4]) < 0.1 * deviations.prod()
    assert posterior.log_evidence == pytest.approx(exact[5], abs=0.05)
    np.testing.assert_array_equal(posterior.mean().active[:, 1], posterior.mean().passive[:, 1])
    np.testing.assert_allclose(posterior.mean().active[:, 1], mean)


def random_table(rng):
    """Cells that need not come from any chain: such posteriors have modes in odd places."""
    cells = {}
    for _ in range(rng.integers(1, 13)):
        age = rng.integers(1, 13) if rng.random() < 0.7 else rng.integers(1, 300)
        most = 1 + int(10 ** rng.uniform(0.5, 2.5))
        cell = (int(rng.integers(2)), int(age), int(rng.integers(2)))
        cells[cell] = int(rng.integers(1, most))
    return cells


def test_random_tables():
    """A hundred tables against quadrature.

    Particles that are worth n estimate a mean with a standard error of about n^(-1/2) posterior
    deviations; five are exceeded in any of 200 means with a chance of about 1e-4. Cells that
    contradict each other leave modes where hardly any particle lands, hence the log evidence.
    """
    rng = np.random.default_rng(0)
    errors = []
    for _ in range(100):
        a, b, c, d = rng.choice([0.5, 1, 1, 2, 5], 4)
        cells = random_table(rng)
        exact = Quadrature(cells, (a, b), (c, d))
        found = posterior_of(cells, (a, b), (c, d))
        error = np.abs(moments(found)[0] - exact.means) / exact.deviations
        assert (error * np.sqrt(found.effective) < 5).all(), (cells, (a, b, c, d), error)
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.5)
        errors.append(error)
    assert np.sqrt(np.mean(np.square(errors))) < 0.1
    assert np.median(errors) < 0.02


@pytest.mark.parametrize("t", [100, 10_000, 100_000])
def test_much_at_once(t):
    rng = np.random.default_rng(t)
    for channel in ((0.3, 0.7), (0.02, 0.97), (0.9, 0.2)):
        seen = sightings(rs.gilbert_elliott(*channel), some_ages(t, rng), rng)
        exact = Quadrature(cells_of(seen))
        found = UNIFORM.given(evidence_of(seen)).particles()
        assert (np.abs(moments(found)[0] - exact.means) / exact.deviations).max() < 0.05
        assert found.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
        assert found.effective > 50


@pytest.mark.parametrize(("age", "channel"), [(2, (0.3, 0.7)), (8, (0.1, 0.9))])
def test_much_at_once_finds_both_modes(age, channel):
    rng = np.random.default_rng(age)
    seen = sightings(rs.gilbert_elliott(*channel), np.full(20_000, age), rng)
    exact = Quadrature(cells_of(seen), points=600)
    found = UNIFORM.given(evidence_of(seen)).particles()
    p = found.active[:, :, 1]
    chance = found.weights[p[:, 1] > p[:, 0]].sum()
    assert chance == pytest.approx(exact.mean(exact.p11 > exact.p01), abs=0.05)


def test_four_times_the_particles_halve_the_error_at_least():
    """Chance would halve it; the lattice does better, and over eight tables this is sure."""
    rng = np.random.default_rng(11)
    few, many = [], []
    for _ in range(8):
        seen = sightings(rs.gilbert_elliott(*rng.random(2)), some_ages(200, rng), rng)
        exact = Quadrature(cells_of(seen))
        for errors, count in ((few, 64), (many, 256)):
            found = posterior_of(cells_of(seen), particles=count)
            errors.append((moments(found)[0] - exact.means) / exact.deviations)
    assert np.square(many).sum() < np.square(few).sum() / 4


def test_evidence_adds_up_in_any_order():
    rng = np.random.default_rng(1)
    seen = [
        evidence_of(sightings(rs.gilbert_elliott(0.2, 0.8), some_ages(30, rng), rng))
        for _ in range(2)
    ]
    one, two = UNIFORM.given(seen[0]).given(seen[1]), UNIFORM.given(seen[1] + seen[0])
    assert one == two == UNIFORM.given(seen[1]).given(seen[0])
    assert hash(one) == hash(two)
    assert one != UNIFORM
    np.testing.assert_array_equal(one.particles().active, two.particles().active)
    np.testing.assert_array_equal(one.particles().weights, two.particles().weights)
    assert UNIFORM.evidence.total == 0
    prior = rs.beta_prior(2).given(seen)
    assert [arm.evidence for arm in prior.arms] == seen


def test_a_posterior_reads_out():
    posterior = posterior_of(TABLES["A"][0])  # Beta(3, 1) and Beta(4, 2)
    assert len(posterior) == 128
    assert posterior.weights.sum() == pytest.approx(1)
    assert posterior.effective == pytest.approx(1 / (posterior.weights**2).sum())
    for q in (0.05, 0.5, 0.95):
        found = posterior.quantile(q).active
        assert stats.beta(3, 1).cdf(found[0, 1]) == pytest.approx(q, abs=0.03)
        assert stats.beta(4, 2).cdf(found[1, 1]) == pytest.approx(q, abs=0.03)
    assert "128 chains of 2 states" in repr(posterior)


@pytest.mark.parametrize(
    ("alphas", "expected"),
    [
        ([[1, 1], [1, 1]], {0.5: 2, 0.95: 7, 0.99: 16}),
        ([[2, 2], [2, 2]], {0.95: 4}),
        ([[0.5, 0.5], [0.5, 0.5]], {0.95: 21}),
    ],
)
def test_mixing_times_of_two_states(alphas, expected):
    """|rho|^t times the larger L1 distance of a state from the stationary law is at most 1/4."""
    prior = rs.DirichletArmPrior(alphas, rewards=[0, 1])
    rng = np.random.default_rng(0)
    p01 = rng.beta(alphas[0][1], alphas[0][0], 400_000)
    p10 = rng.beta(alphas[1][0], alphas[1][1], 400_000)
    rho = np.abs(1 - p01 - p10)
    distance = 2 * np.maximum(p01, p10) / (p01 + p10)
    times = np.maximum(1, np.ceil(np.log(0.25 / distance) / np.log(rho)))
    for share, value in expected.items():
        assert prior.mixing_time(share) == value
        below, above = np.quantile(times, [share - 0.004, share + 0.004])
        assert below <= value <= above


def test_mixing_time_of_three_states_and_of_evidence():
    three = rs.DirichletArmPrior(np.ones((3, 3)), rewards=[0, 0.5, 1])
    draws = [
        rs.theory.mixing_time(three.draw(np.uint64(stream_key(np.uint64(1), r, TRUTH))))
        for r in range(1_000)
    ]
    below, above = np.quantile(draws, [0.93, 0.97])
    assert below <= three.mixing_time() <= above
    evidence = rs.Evidence(2)
    evidence.add([0, 0, 1, 1], 1, [0, 1, 0, 1], [990, 10, 10, 990])
    slow = UNIFORM.given(evidence).mixing_time()
    assert 80 < slow < 200  # of (.01, .99): 104


def test_nothing_free():
    prior = rs.DirichletArmPrior([[0, 2], [3, 0]], rewards=[0, 1])
    evidence = rs.Evidence(2)
    evidence.add(0, 3, 1, 4)
    posterior = prior.given(evidence).particles()
    assert posterior.active.tolist() == [[[0, 1], [1, 0]]]
    assert posterior.log_evidence == 0
    with pytest.raises(rs.errors.AssumptionError, match=r"periodic.*pass mixing_time"):
        prior.mixing_time()


def test_impossible_evidence_names_the_sighting():
    prior = rs.DirichletArmPrior([[1, 1, 0], [0, 1, 1], [1, 0, 1]], rewards=[0, 0.5, 1])
    evidence = rs.Evidence(3)
    evidence.add([0, 0], [2, 1], [2, 2])
    with pytest.raises(
        rs.errors.ProblemError, match="state 2, seen 1 steps after state 0, is impossible"
    ):
        prior.given(evidence)
    turning = rs.DirichletArmPrior([[0, 1], [1, 0]], rewards=[0, 1])
    odd = rs.Evidence(2)
    odd.add(0, 10**12 + 1, 0)
    with pytest.raises(rs.errors.ProblemError, match="impossible"):
        turning.given(odd)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"active": [[1, 1]]}, r"active must be a square matrix .* got shape \(1, 2\)"),
        ({"active": [[1, 0.01], [1, 1]]}, r"row 0 of active holds 0.01, expected 0 .* from 0.05"),
        ({"active": [[1, 1], [1, -1]]}, "row 1 of active holds -1"),
        ({"active": [[1, np.inf], [1, 1]]}, "row 0 of active holds inf"),
        ({"active": [[1, 1], [0, 0]]}, "row 1 of active is all zero"),
        ({"passive": [[1]]}, "active has 2 states and passive 1"),
        ({"passive": [["x", 1], [1, 1]]}, "passive must be numbers"),
        ({"rewards": None}, "rewards are missing"),
        ({"rewards": [0, 1, 1]}, "rewards"),
        ({"passive_rewards": [0, 1, 1]}, "passive_rewards must be 2 finite numbers"),
        ({"particles": 3}, "particles must be at least 16"),
        ({"particles": 1.5}, "particles must be a whole number"),
    ],
)
def test_mistakes_are_named(arguments, message):
    right = {"active": [[1, 1], [1, 1]], "rewards": [0, 1]}
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.DirichletArmPrior(**{**right, **arguments})


def test_other_mistakes():
    with pytest.raises(rs.errors.TooLargeError, match="transition probabilities are free"):
        rs.DirichletArmPrior(np.ones((40, 40)), rewards=np.zeros(40))
    with pytest.raises(rs.errors.ProblemError, match="p01 must be two positive Beta parameters"):
        rs.beta_prior(2, p01=(0, 1))
    with pytest.raises(rs.errors.ProblemError, match="evidence is about an arm of 3 states"):
        UNIFORM.given(rs.Evidence(3))
    with pytest.raises(rs.errors.ProblemError, match="expected Evidence, got int"):
        UNIFORM.given(3)
    with pytest.raises(rs.errors.ProblemError, match="share must be a number between 0 and 1"):
        UNIFORM.mixing_time(2)
    with pytest.raises(rs.errors.ProblemError, match="arm 0 has a continuous prior"):
        rs.beta_prior(2).candidates(0)
    with pytest.raises(rs.errors.ProblemError, match="truth must be an arm of 2 states"):
        UNIFORM.particles().plot(truth=rs.Arm(np.eye(3), rewards=[0, 0, 1]))


def test_beta_prior_orders_its_numbers():
    """Beta(a, b) of p01 has mean a / (a + b)."""
    prior = rs.beta_prior(3, p01=(2, 3), p11=(4, 1), rewards=(0.2, 0.9)).arms[0]
    mean = prior.particles().mean().active
    np.testing.assert_allclose(mean[:, 1], [0.4, 0.8], atol=1e-3)
    assert prior.rewards.tolist() == [0.2, 0.9]


def test_pictures():
    pytest.importorskip("matplotlib")
    axes = posterior_of(C).plot(truth=rs.gilbert_elliott(0.3, 0.7))
    assert axes.get_xlabel().startswith("p01")
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["chains", "truth"]
    three = rs.DirichletArmPrior(np.ones((3, 3)), np.ones((3, 3)), rewards=[0, 0.5, 1])
    axes = three.particles().plot()
    assert len(axes.get_yticks()) == 9  # a row each, with its name beside
    assert axes.get_xlabel() == "transition probability"


def test_a_posterior_that_nothing_vouches_for_says_so():
    """Ridges of channels are compared with integration (test_ridges); others cannot be."""
    square, three = np.ones((2, 2)), np.ones((3, 3))
    for unchecked, prior in [
        (False, rs.DirichletArmPrior(square, rewards=[0, 1])),
        (False, rs.DirichletArmPrior(square, square, [0, 1], seen="always")),
        (True, rs.DirichletArmPrior(square, square, [0, 1])),
        (True, rs.DirichletArmPrior(three, rewards=[0, 1, 2])),
    ]:
        agent = rs.TSDE(rs.IndependentPrior([prior] * 2), 1, seed=1)
        for _ in range(3):
            agent.select()
            agent.observe([0] * len(agent.awaited))
        for found in (agent.posterior(0), prior.particles()):
            assert found.unchecked is unchecked
            assert ("unchecked" in repr(found)) is unchecked
            assert len(repr(found)) <= 100
