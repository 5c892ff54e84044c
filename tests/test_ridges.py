"""Posteriors of channels, whatever their shape, against integration on a grid that follows them.

Sightings at long ages tell the long-run share and little else: the posterior is a thin ridge. Those
at even ages leave two modes. Seven priors, five patterns of gaps, seven numbers of sightings; the
tests take a few of the 245, `make soak` all (RESTIVE_RIDGES=1).
"""

from __future__ import annotations

import os
from itertools import product

import numpy as np
import pytest

import restive as rs
from oracles.posterior_naive import Quadrature, Ridge
from particle_cases import Follower, cells_of, evidence_of

PRIORS = {  # parameters of p01 and p11
    "uniform": ((1, 1), (1, 1)),
    "jeffreys": ((0.5, 0.5), (0.5, 0.5)),
    "sparse": ((0.1, 0.3), (0.3, 0.1)),
    "humps": ((2, 2), (2, 2)),
    "sticky": ((1, 9), (9, 1)),
    "alternating": ((6, 2), (2, 6)),
    "tight": ((20, 30), (40, 20)),
}
GAPS = {  # ages, and the channel (p01, p11) that is seen
    "one": (lambda count, rng: np.ones(count, dtype=np.int64), (0.3, 0.7)),
    "short": (
        lambda count, rng: np.where(rng.random(count) < 0.5, 1, 1 + rng.geometric(0.25, count)),
        (0.1, 0.6),
    ),
    "two": (lambda count, rng: np.full(count, 2), (0.3, 0.7)),
    "long": (lambda count, rng: np.full(count, 99), (0.38, 0.38)),
    "any": (lambda count, rng: rng.integers(1, 201, count), (0.02, 0.97)),
}
SIZES = (1, 5, 30, 100, 1_000, 10_000, 100_000)
FOLLOWED = 10_000  # sightings, up to which a learner's particles are compared too
FULL = os.environ.get("RESTIVE_RIDGES", "0") != "0"

FEW = [
    *product(("uniform", "jeffreys"), ("long",), (30, 10_000)),
    *product(("sparse", "tight"), ("two", "long"), (30,)),
    *(("sticky", "one", 1), ("alternating", "short", 100), ("humps", "two", 10_000)),
]
CASES = list(product(PRIORS, GAPS, SIZES)) if FULL else FEW


def columns_of(gap, count, rng):
    """Sightings: state, age, next state; each drawn from what is believed after the last one."""
    make, (p01, p11) = GAPS[gap]
    ages = make(count, rng)
    rho, states = p11 - p01, [1]
    share = p01 / (1 - rho)
    for age, u in zip(ages.tolist(), rng.random(count).tolist(), strict=True):
        states.append(int(u < share + (states[-1] - share) * rho**age))
    return np.array(states[:-1]), ages, np.array(states[1:])


def errors_of(exact, matrices, weights):
    """Largest errors of the distribution functions of four numbers."""
    p01, p11, p10 = matrices[0, 1], matrices[1, 1], matrices[1, 0]
    found = {"p01": p01, "p11": p11, "share": p01 / (p01 + p10), "rho": p11 - p01}
    return {name: exact.cdf_error(name, values, weights) for name, values in found.items()}


@pytest.mark.parametrize(("name", "gap", "size"), CASES)
def test_distribution_functions_are_within_a_tenth(name, gap, size):
    """Of p01, p11, the long-run share and rho.

    .08 where the evidence is given at once, .05 if gaps are short and the prior has no spikes; of a
    learner's particles, of which up to two thirds may be worn, .1, and .12 if it has high ones.
    """
    first, second = PRIORS[name]
    columns = columns_of(gap, size, np.random.default_rng([size, len(name), len(gap)]))
    exact = Ridge(cells_of(columns), first, second)
    prior = rs.beta_prior(1, p01=first, p11=second).arms[0]
    drawn = prior.given(evidence_of(columns)).drawn
    given = errors_of(exact, drawn.matrices, drawn.weights)
    plain = gap in ("one", "short") and min(*first, *second) >= 1
    assert max(given.values()) < (0.05 if plain else 0.08), given
    assert drawn.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)
    for key in range(2 if size <= FOLLOWED else 0):
        arm = Follower(prior, 50 + key).see(columns).arm
        followed = errors_of(exact, arm.matrices, arm.weights)
        assert max(followed.values()) < (0.1 if min(*first, *second) >= 0.5 else 0.12), followed


def test_quantiles_on_a_ridge():
    """10,000 sightings at age 99: intervals hold what they say, to five points."""
    evidence = rs.Evidence(2)
    cells = {(0, 99, 0): 3844, (0, 99, 1): 2356, (1, 99, 0): 2356, (1, 99, 1): 1444}
    evidence.add(*zip(*cells, strict=True), count=list(cells.values()))
    exact = Ridge(cells, (1, 1), (1, 1))
    posterior = rs.beta_prior(1).arms[0].given(evidence).particles()
    for q in (0.05, 0.25, 0.5, 0.75, 0.95):
        at = posterior.quantile(q).active
        for name, value in (("p01", at[0, 1]), ("p11", at[1, 1])):
            below = exact.weights[exact.values[name] <= value].sum()
            assert below == pytest.approx(q, abs=0.05)
    assert posterior.log_evidence == pytest.approx(exact.log_evidence, abs=0.05)


def test_both_ways_of_integrating_agree():
    columns = columns_of("short", 300, np.random.default_rng(1))
    one, other = (
        Ridge(cells_of(columns), (1, 1), (2, 3)),
        Quadrature(cells_of(columns), (1, 1), (2, 3)),
    )
    assert one.log_evidence == pytest.approx(other.log_evidence, abs=1e-3)
    means = [(one.weights * one.values[name]).sum() for name in ("p01", "p11")]
    np.testing.assert_allclose(means, other.means, atol=1e-4)


@pytest.mark.parametrize("count", [16, 64, 100, 128, 256, 512])
def test_points_of_the_prior_are_even_across_diagonals(count):
    """Under the uniform prior half the chains have a share below 1/2, and half rho < 0."""
    prior = rs.DirichletArmPrior([[1, 1], [1, 1]], rewards=[0, 1], particles=count)
    matrices = prior.rows.first_matrices
    p01, p10, p11 = matrices[0, 1], matrices[1, 0], matrices[1, 1]
    assert (p01 < p10).mean() == 0.5
    assert (p01 < p11).mean() == 0.5
    if count >= 128:  # after a sighting of bad after good: 2/3
        assert (p10 * (p01 < p10)).sum() / p10.sum() == pytest.approx(2 / 3, abs=0.01)
