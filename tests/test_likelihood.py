"""The likelihood of count tables against plain sums of logarithms."""

import numpy as np
import pytest

import restive as rs
from restive.kernels.learn.likelihood import MOST_FACTORS, Counts, add_log_likelihood

ROWS = rs.DirichletArmPrior([[1, 1], [1, 1]], rewards=[0, 1]).rows


def plain(counts, matrices):
    total = np.zeros(matrices.shape[2])
    for m in range(len(total)):
        for age, cells in zip(counts.ages.tolist(), counts.cells, strict=True):
            beliefs = np.linalg.matrix_power(matrices[:, :, m], age)
            seen = cells > 0
            total[m] += (cells[seen] * np.log(beliefs[seen])).sum()
    return total


@pytest.mark.parametrize(
    "numbers",
    [
        [1],
        [0, 1, 2, 3],
        [7, 0.25, 31, 3.5],
        [MOST_FACTORS, MOST_FACTORS + 1, MOST_FACTORS - 1],  # one, none and one more logarithm
        [5_000, 1e7, 100_000.5],
        list(range(1, 200)),
    ],
    ids=["one", "few", "shares", "edges", "many", "all"],
)
def test_any_counts(numbers):
    """Whole ones are powers of what is split, others and the largest have logarithms."""
    rng = np.random.default_rng(len(numbers))
    ages = np.array([1, 2, 3, 7, 40, 64, 80])
    cells = rng.choice(np.array(numbers, dtype=float), (len(ages), 2, 2))
    counts, logs = Counts(ages, cells), np.full(ROWS.count, 0.5)
    add_log_likelihood(counts, ROWS.first_matrices, logs)
    np.testing.assert_allclose(logs - 0.5, plain(counts, ROWS.first_matrices), rtol=1e-12)


@pytest.mark.parametrize("count", [1, 7, 8, 13])
def test_any_number_of_particles(count):
    """Two states go eight at a time, what is left one by one."""
    rng = np.random.default_rng(count)
    matrices = np.ascontiguousarray(ROWS.first_matrices[:, :, :count])
    cells = rng.integers(0, 4, (4, 2, 2)).astype(float)
    counts, logs = Counts(np.array([1, 2, 5, 40]), cells), np.zeros(count)
    add_log_likelihood(counts, matrices, logs)
    np.testing.assert_allclose(logs, plain(counts, matrices), rtol=1e-12)


@pytest.mark.parametrize("number", [1.0, 0.5, 3_000.0])
def test_what_is_impossible_has_no_likelihood(number):
    matrices = np.array([[[1.0, 0.5], [0.0, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])
    cells = np.array([[[2.0, number], [1.0, 1.0]]])
    logs = np.zeros(2)
    add_log_likelihood(Counts(np.array([1]), cells), matrices, logs)
    assert logs[0] == -np.inf
    assert logs[1] == pytest.approx((4 + number) * np.log(0.5))


def test_tiny_chances_keep_their_digits():
    """Products of many are beyond what a float holds; what is added up is not."""
    matrices = np.array([[[1e-9], [1 - 1e-9]], [[1 - 1e-12], [1e-12]]])
    cells = np.array([[[900.0, 3.0], [2.0, 901.0]]])
    counts, logs = Counts(np.array([1]), cells), np.zeros(1)
    add_log_likelihood(counts, matrices, logs)
    np.testing.assert_allclose(logs, plain(counts, matrices), rtol=1e-14)
