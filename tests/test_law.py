"""One law of a population: against numerical integration, enumeration and its own likelihood."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats

import restive as rs
from log_cases import log_of
from restive.kernels.random import stream
from restive.learn import law as laws
from restive.learn.law import ArmCells, Law, Points, fit_law

ONE = np.ones((1, 1))


def logistic(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def cells(rows, num_arms, num_states=2):
    """What was seen of arms, from rows (arm, row, age, next state)."""
    found, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    return ArmCells.of(num_states, num_arms, *found.T, counts)


def chance_of(cell, theta):
    """The chance of a cell by powers of matrices, for theta [4] of a two-state arm."""
    row, age, state = cell
    pulled, alone = (
        np.array([[1 - p, p] for p in logistic(odds)])
        for odds in (theta[:2] + theta[2:], theta[:2])
    )
    if row == 4:
        values, vectors = np.linalg.eig(alone.T)
        start = np.real(vectors[:, np.argmax(np.real(values))])
        return (start / start.sum())[state]
    first = np.concatenate([pulled, alone])[row]
    return (first @ np.linalg.matrix_power(alone, age - 1))[state]


def some_arms(seed, num_arms, seen):
    """Cells of arms that were seen so often each, and their theta [K, 4]."""
    rng = np.random.default_rng([seed, 43])
    theta = np.array([-1.2, 1.0, 0.5, 0.4]) + rng.normal(size=(num_arms, 4)) * [0.9, 0.9, 0.4, 0.4]
    rows = []
    for k in range(num_arms):
        last = int(rng.random() < chance_of((4, 1, 1), theta[k]))
        rows.append((k, 4, 1 + int(rng.integers(5)), last))
        for _ in range(seen):
            row, age = last + 2 * int(rng.random() < 0.3), int(rng.integers(1, 9))
            last = int(rng.random() < chance_of((row, age, 1), theta[k]))
            rows.append((k, row, age, last))
    return rows, theta


def target_of(seen, points=4096, controlled=True):
    d = 4 if controlled else 2
    prior = laws._Prior.of(d, 1, 2)
    placed = Points.placed(points, d, seen.base(controlled))
    starts = np.array([0, seen.num_arms])
    return laws._Target(placed, *laws._likelihoods(placed, None, seen), ONE, starts, prior)


def test_likelihoods_are_products_of_matrices():
    rows, _ = some_arms(1, 5, 6)
    seen = cells(rows, 5)
    points = Points.placed(64, 4, seen.base(True))
    found, tops = laws._likelihoods(points, None, seen)
    for m, k in product(range(0, 64, 9), range(5)):
        chances = [chance_of(row[1:], points.theta[:, m]) for row in rows if row[0] == k]
        assert np.log(found[m, k]) + tops[k] == pytest.approx(np.log(chances).sum(), abs=1e-9)


def test_the_start_may_be_a_share_of_good_arms():
    """A first sighting three steps after the log began, with 80% good then."""
    seen = cells([(0, 4, 4, 1)], 1)
    points = Points.placed(16, 4, seen.base(True))
    found, tops = laws._likelihoods(points, np.array([0.2, 0.8]), seen)
    for m in range(16):
        alone = points.matrices[1][m]
        chance = (np.array([0.2, 0.8]) @ np.linalg.matrix_power(alone, 3))[1]
        assert np.log(found[m, 0]) + tops[0] == pytest.approx(np.log(chance), abs=1e-9)


def test_evidence_is_an_integral():
    """Arms that nobody pulls, theta of two numbers: against cubature, within 1%."""
    rows = [(0, 0, 1, 0), (0, 0, 2, 1), (0, 1, 1, 1), (1, 1, 3, 0), (1, 0, 1, 0), (1, 4, 1, 1)]
    target = target_of(cells(rows, 2), controlled=False)
    base = target_of(cells([(0, 4, 1, 1)], 1), controlled=False)
    for eta in ([-0.7, 0.9, -0.4, -0.2, 0.3], [0.2, 0.4, 0.1, -0.6, -0.5]):
        evidence, _ = target.evidence(np.array([eta]))
        sd, rho = 0.1 + np.exp(eta[2:4]), np.tanh(eta[4])
        cov = np.outer(sd, sd) * [[1, rho], [rho, 1]]
        law = stats.multivariate_normal(eta[:2], cov)
        assert base.likelihoods.shape == (4096, 1)
        for k in range(2):
            own = [row[1:] for row in rows if row[0] == k]

            def density(b, a, own=own, law=law):
                theta = np.array([a, b, 0.0, 0.0])
                return law.pdf([a, b]) * np.prod([chance_of(cell, theta) for cell in own])

            edge = laws.EDGE
            exact = integrate.dblquad(density, -edge, edge, -edge, edge, epsabs=1e-6)[0]
            assert evidence[0, k] + target.tops[k] == pytest.approx(np.log(exact), abs=0.01)


def test_evidence_of_four_numbers_is_a_mean_over_draws_of_them():
    """300,000 draws of theta: a standard error below 0.2%; points of 4,096 within 2%."""
    rows, _ = some_arms(2, 3, 5)
    target, rng = target_of(cells(rows, 3)), np.random.default_rng(5)
    eta = np.array([-1.0, 0.8, 0.3, 0.2, -0.3, -0.4, -1.0, -0.8, 0.3, 0.2, 0, 0, -0.2, 0.3])
    root = laws.covariance_root(eta, 4)
    theta = eta[:4] + rng.normal(size=(300_000, 4)) @ root.T
    theta = theta[np.abs(theta[:, :2]).max(axis=1) < laws.EDGE]
    points = Points(np.ascontiguousarray(theta.T), np.zeros(len(theta)), target.points.base)
    likelihoods, tops = laws._likelihoods(points, None, cells(rows, 3))
    exact = np.log(likelihoods.mean(axis=0)) + tops
    evidence, _ = target.evidence(eta[None])
    np.testing.assert_allclose(evidence[0] + target.tops, exact, atol=0.02)


PARTIAL = np.array([0.4, -0.2, 0.1, 0.3, 0.2, -0.5])


def test_the_covariance_is_that_of_partial_correlations():
    eta = np.concatenate(
        [np.zeros(4), np.log([0.5, 1, 0.3, 0.7]), [0.4, -0.2, 0.1, 0.3, 0.2, -0.5]]
    )
    root = laws.covariance_root(eta, 4)
    cov = root @ root.T
    sd = laws.FLOOR + np.array([0.5, 1, 0.3, 0.7])
    np.testing.assert_allclose(np.sqrt(np.diag(cov)), sd, rtol=1e-12)
    for i, j, at in ((1, 0, 0), (2, 0, 1), (2, 1, 2), (3, 0, 3), (3, 1, 4), (3, 2, 5)):
        given = list(range(j))  # the correlation of i and j once those before j are known
        part = cov[np.ix_([i, j], [i, j])]
        if given:
            across = cov[np.ix_([i, j], given)]
            part = part - across @ np.linalg.inv(cov[np.ix_(given, given)]) @ across.T
        found = part[0, 1] / np.sqrt(part[0, 0] * part[1, 1])
        assert found == pytest.approx(np.tanh(eta[8 + at]), abs=1e-12)


def test_the_sample_of_eta_is_that_of_a_long_chain():
    """Means and deviations of eta against 60,000 plain Metropolis steps: within .3 deviations."""
    rows, _ = some_arms(3, 60, 6)
    seen = cells(rows, 60)
    found = fit_law(seen, draws=400)
    prior = laws._Prior.of(4, 1, 2)
    target = laws._Target(
        found.points, *laws._likelihoods(found.points, found.share, seen), ONE,
        np.array([0, 60]), prior,
    )  # fmt: skip
    rng, chains = np.random.default_rng(1), found.draws[:200].copy()
    values, kept = target.values(chains), []
    root = np.linalg.cholesky(np.cov(found.draws.T)) * 0.6
    for step in range(300):
        new = chains + rng.normal(size=chains.shape) @ root.T
        there = target.values(new)
        taken = np.log(rng.random(len(chains))) < there - values
        chains[taken], values[taken] = new[taken], there[taken]
        if step >= 100 and step % 10 == 0:
            kept.append(chains.copy())
    long = np.concatenate(kept)
    assert np.abs((found.draws.mean(axis=0) - long.mean(axis=0)) / long.std(axis=0)).max() < 0.3
    np.testing.assert_allclose(found.draws.std(axis=0), long.std(axis=0), rtol=0.25)


def test_arms_are_drawn_from_their_posteriors():
    """Shares of 400 draws against exact weights: within 5 standard errors, cell by cell."""
    rows, _ = some_arms(4, 3, 4)
    seen = cells(rows, 3)
    found = fit_law(seen, draws=40)
    draws = np.array(list(found.drawn(seen, ONE, np.zeros(3, np.int64), 400, stream(1, 0, 0))))
    likelihoods, _ = found.likelihoods(seen, found.points)
    exact = np.zeros((3, 4096))
    for weights in found.laws(found.points, ONE):
        own = weights[0] * likelihoods.T
        exact += own / own.sum(axis=1, keepdims=True) / 40
    good = found.points.matrices[1][:, 0, 1] > 0.3
    for k in range(3):
        share = exact[k, good].sum()
        error = np.sqrt(share * (1 - share) / 400)
        assert abs(good[draws[:, k]].mean() - share) < 5 * error + 1e-9


def test_traits_tell_groups_apart():
    """150 arms of two kinds whose levels differ by 1.5: the law's means do, too."""
    rng = np.random.default_rng(8)
    kind = np.arange(150) % 2
    rows = []
    for k in range(150):
        theta = np.array([-1.5 + 1.5 * kind[k], 1.0, 0.4, 0.4]) + 0.3 * rng.normal(size=4)
        last = 0
        for _ in range(8):
            age = int(rng.integers(1, 6))
            state = int(rng.random() < chance_of((last, age, 1), theta))
            rows.append((k, last, age, state))
            last = state
    traits = np.stack([np.ones(150), kind - 0.5], axis=1)
    found = fit_law(cells(rows, 150), traits)
    low, high = np.quantile(found.draws[:, 1], [0.025, 0.975])  # B[0, 1]
    assert 0 < low < 1.5 < high + 0.5
    first, second = (
        found.weights(np.array([[1, -0.5], [1, 0.5]])) @ found.shared.matrices[1][:, 0, 1]
    )
    assert second - first > 0.1


def test_threads_and_order_change_no_bit(monkeypatch):
    rows, _ = some_arms(5, 40, 5)
    one = fit_law(cells(rows, 40), draws=20)
    again = fit_law(cells(rows[::-1], 40), draws=20)
    assert np.array_equal(one.draws, again.draws)
    monkeypatch.setattr(laws, "AT_ONCE", 7)
    assert np.array_equal(fit_law(cells(rows, 40), draws=20).draws, one.draws)
    assert not np.array_equal(fit_law(cells(rows, 40), draws=20, seed=1).draws, one.draws)


def test_matrices_of_three_states_move_the_shared_odds():
    """Shared odds are those of moves that all arms made; theta moves both ends of the states."""
    rng = np.random.default_rng(3)
    truth = np.array([[0.7, 0.2, 0.1], [0.25, 0.5, 0.25], [0.1, 0.3, 0.6]])
    state, rows = 0, []
    for _ in range(4000):
        age = int(rng.integers(1, 4))
        following = int(rng.choice(3, p=np.linalg.matrix_power(truth, age)[state]))
        rows.append((0, state, age, following))
        state = following
    seen = cells(rows, 1, 3)
    base = seen.base(False)
    points = Points(np.array([[0.0, 1.0], [0.0, -1.0]]), np.zeros(2), base)
    pulled, alone = points.matrices
    np.testing.assert_array_equal(pulled, alone)
    np.testing.assert_allclose(alone[0], truth, atol=0.05)
    odds = np.log(alone[:, :, 2] / (1 - alone[:, :, 2]))
    np.testing.assert_allclose(odds[1] - odds[0], [1, 0, -1], atol=1e-9)
    np.testing.assert_allclose(alone.sum(axis=2), 1)


def test_a_law_of_all_arms_is_public_through_a_fit():
    log = log_of([0, 0, 1, 1] * 3, [0, 1, 0, 1, 2, 3, 2, 3, 4, 5, 4, 5], [0, 1, 1, 1] * 3)
    found = rs.fit_log(log, checks=False)
    assert isinstance(found.population.law, Law)
