"""Particles that follow what is seen: close to the exact posterior, renewed ever more rarely."""

from __future__ import annotations

import os
import subprocess
import sys
from math import log

import numpy as np
import pytest

import restive as rs
from oracles.posterior_naive import Quadrature, metropolis
from particle_cases import Follower, cells_of, evidence_of, sightings, some_ages
from restive.kernels.learn.likelihood import add_log_likelihood
from restive.learn.particles.arm import count_evidence, counts_of, fresh_arm
from restive.learn.particles.drawing import ONE_T, SLICES

UNIFORM = rs.beta_prior(1).arms[0]
THREE = rs.DirichletArmPrior(np.ones((3, 3)), np.ones((3, 3)), rewards=[0, 0.5, 1])


def random_channel(rng):
    return rs.gilbert_elliott(*rng.random(2))


@pytest.mark.parametrize("t", [100, 1_000, 10_000, 100_000])
def test_means_and_deviations_two_states(t):
    """Twelve data sets: means within .05 posterior standard deviations, and far closer mostly."""
    rng = np.random.default_rng(t)
    errors, wide, renewals = [], [], []
    for key in range(12):
        seen = sightings(random_channel(rng), some_ages(t, rng), rng)
        exact = Quadrature(cells_of(seen))
        found = Follower(UNIFORM, key).see(seen)
        for p, mean, deviation in zip(
            (found.p01, found.p11), exact.means, exact.deviations, strict=True
        ):
            errors.append((found.mean(p) - mean) / deviation)
            spread = np.sqrt(found.mean((p - found.mean(p)) ** 2))
            wide.append(spread / deviation - 1)
        renewals.append(int(found.arm.renewals[0]))
        assert renewals[-1] <= 4 + 1.5 * log(t)
    assert np.abs(errors).max() < 0.05
    assert np.sqrt(np.mean(np.square(errors))) < 0.015
    assert np.abs(wide).max() < 0.06
    assert np.mean(renewals) <= 1 + log(t)


@pytest.mark.parametrize(
    ("age", "channel", "t"),
    [
        (2, (0.3, 0.7), 1_000),
        (2, (0.3, 0.7), 10_000),
        (8, (0.1, 0.9), 1_000),
        (8, (0.1, 0.9), 10_000),
        (20, (0.3, 0.8), 1_000),
        (20, (0.3, 0.8), 10_000),
    ],
)
def test_hard_posteriors(age, channel, t):
    """Even ages only: two modes, or a curved ridge. The chance that rho > 0, over 10 runs."""
    rng = np.random.default_rng(5)
    seen = sightings(rs.gilbert_elliott(*channel), np.full(t, age), rng)
    exact = Quadrature(cells_of(seen), points=600)
    chance = exact.mean(exact.p11 > exact.p01)
    runs = [Follower(UNIFORM, 100 + key).see(seen) for key in range(10)]
    found = np.array([run.mean(run.p11 > run.p01) for run in runs])
    assert np.sqrt(np.mean((found - chance) ** 2)) < 0.04
    assert all(SLICES in run.rungs for run in runs)


def test_one_t_mostly_suffices_where_ages_are_mixed():
    rng, rungs = np.random.default_rng(8), []
    for key in range(10):
        seen = sightings(random_channel(rng), some_ages(2_000, rng), rng)
        rungs += Follower(UNIFORM, key).see(seen).rungs
    assert set(rungs) <= {ONE_T, SLICES}
    assert rungs.count(ONE_T) > 0.9 * len(rungs)


def test_a_renewal_depends_on_its_key_and_number_alone():
    rng = np.random.default_rng(3)
    seen = sightings(rs.gilbert_elliott(0.3, 0.6), some_ages(500, rng), rng)
    one, two, other = Follower(UNIFORM, 7), Follower(UNIFORM, 7), Follower(UNIFORM, 8)
    one.see(seen)
    for first in range(0, 500, 50):  # in parts, as after a restore
        two.see(tuple(column[first : first + 50] for column in seen))
        two.arm.matrices[:] = two.prior.matrices(two.arm.logits)
    other.see(seen)
    for field in one.arm._fields:
        np.testing.assert_array_equal(getattr(one.arm, field), getattr(two.arm, field))
    assert not np.array_equal(one.arm.logits, other.arm.logits)


def test_weights_agree_with_the_count_table():
    """Products of likelihoods, one sighting at a time, are the likelihood of the counts."""
    rng = np.random.default_rng(2)
    seen = sightings(rs.gilbert_elliott(0.02, 0.97), rng.integers(1, 60, 12), rng)
    follower = Follower(UNIFORM, 1)
    follower.see(seen)
    assert follower.arm.renewals[0] == 0
    logs = np.zeros(128)
    add_log_likelihood(counts_of(follower.arm), follower.arm.matrices, logs)
    ratio = np.log(follower.arm.weights) - logs
    np.testing.assert_allclose(ratio, ratio[0], atol=1e-11)


def test_likelihood_at_any_age_agrees_with_matrix_powers():
    rng = np.random.default_rng(4)
    evidence = rs.Evidence(3)
    evidence.add(rng.integers(0, 3, 40), rng.integers(1, 3000, 40), rng.integers(0, 3, 40))
    prior = THREE.rows
    counts = counts_of(count_evidence(fresh_arm(prior), evidence))
    logs = np.zeros(prior.count)
    add_log_likelihood(counts, prior.first_matrices, logs)
    for m in (0, 17, 255):
        active, passive = prior.first_matrices[:3, :, m], prior.first_matrices[3:, :, m]
        expected = sum(
            c * np.log((active @ np.linalg.matrix_power(passive, n - 1))[s, t])
            for s, n, t, c in zip(*(column.tolist() for column in evidence.cells()), strict=True)
        )
        assert logs[m] == pytest.approx(expected, rel=1e-10)


def test_interpolated_ages_move_a_sticky_posterior_little():
    """Old sightings of a slow chain, most between nodes: within .05 deviations of exact ages."""
    rng = np.random.default_rng(6)
    ages = np.where(rng.random(3_000) < 0.7, rng.integers(60, 400, 3_000), 1)
    seen = sightings(rs.gilbert_elliott(0.003, 0.995), ages, rng)
    exact = Quadrature(cells_of(seen))
    found = UNIFORM.given(evidence_of(seen)).particles().mean().active[:, 1]
    assert (np.abs(found - exact.means) / exact.deviations).max() < 0.05


@pytest.mark.parametrize("t", [100, 1_000])
def test_three_states_unequal_matrices(t):
    """Twelve free numbers against long chains: root mean square error below .3 deviations."""
    rng = np.random.default_rng(t)
    truth = rs.Arm(rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3), [0, 0.5, 1])
    seen = sightings(truth, some_ages(t, rng), rng)
    mean, deviation = metropolis(np.ones((3, 3)), np.ones((3, 3)), cells_of(seen), rng)
    runs = [Follower(THREE, key).see(seen) for key in range(4)]
    followed = np.array([run.arm.matrices @ run.weights for run in runs])
    at_once = THREE.given(evidence_of(seen, 3)).particles().mean()
    for found in (followed, np.concatenate([at_once.active, at_once.passive])):
        errors = (found - mean) / deviation
        assert np.sqrt(np.mean(errors**2)) < 0.3
    for run in runs:
        assert run.arm.renewals[0] <= 4 + 6 * 1.5 * log(t)  # d/2 times as often as two numbers


def test_zeros_stay_zero():
    prior = rs.DirichletArmPrior([[1, 1, 0], [0, 1, 1], [1, 0, 1]], rewards=[0, 0.5, 1])
    rng = np.random.default_rng(1)
    truth = rs.Arm([[0.6, 0.4, 0], [0, 0.7, 0.3], [0.5, 0, 0.5]], rewards=[0, 0.5, 1])
    found = Follower(prior, 1).see(sightings(truth, some_ages(800, rng), rng))
    assert found.arm.renewals[0] > 0
    assert (found.arm.matrices[prior.active == 0] == 0).all()
    np.testing.assert_allclose(found.arm.matrices.sum(axis=1), 1)
    means = found.arm.matrices @ found.weights
    assert np.abs(means - truth.active).max() < 0.15


PROGRAM = """
import numpy as np, restive as rs
evidence = rs.Evidence(2)
evidence.add([0, 0, 1, 1, 0], [1, 2, 1, 70, 4], [0, 1, 1, 0, 0], [9, 4, 30, 3, 6])
prior = rs.DirichletArmPrior([[1, 1], [1, 1]], rewards=[0, 1], particles=16)
drawn = prior.given(evidence).drawn
print(drawn.way, (drawn.logits.tobytes() + drawn.weights.tobytes()).hex())
"""


def test_without_the_compiler_the_bytes_are_the_same():
    def output(**more):
        environment = {**os.environ, **more}
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True,
            check=True,
        ).stdout  # fmt: skip

    compiled = output()
    assert compiled.split()[0] == str(SLICES)
    assert compiled == output(NUMBA_DISABLE_JIT="1")
