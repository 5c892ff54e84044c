"""Facts about chains: stationary laws, classes, periods and mixing times."""

from fractions import Fraction
from itertools import product
from math import ceil, log, log1p

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.problem.chains import (
    closed_classes,
    communicating_classes,
    period,
    require_limit,
)
from strategies import stochastic_matrices

GRID = [round(0.1 * i, 1) for i in range(1, 10)]
CYCLE = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]


def still(matrix, rewards=None):
    """Return an arm with this passive chain."""
    matrix = np.asarray(matrix, dtype=float)
    rewards = np.zeros(len(matrix)) if rewards is None else rewards
    return rs.Arm(np.full(matrix.shape, 1 / len(matrix)), matrix, rewards)


@pytest.mark.parametrize(("p01", "p11"), list(product(GRID, GRID)))
def test_stationary_law_of_a_channel_is_its_closed_form(p01, p11):
    law = rs.theory.stationary([[1 - p01, p01], [1 - p11, p11]])
    assert law[1] == pytest.approx(p01 / (1 - p11 + p01), abs=1e-15)
    assert law.sum() == pytest.approx(1, abs=1e-15)


def test_stationary_law_of_a_birth_and_death_chain_obeys_detailed_balance():
    up, down = [0.3, 0.2, 0.4], [0.1, 0.5, 0.25]
    matrix = np.diag(up, 1) + np.diag(down, -1)
    matrix += np.diag(1 - matrix.sum(axis=1))
    weights = np.cumprod([1, *(u / d for u, d in zip(up, down, strict=True))])
    assert rs.theory.stationary(matrix) == pytest.approx(weights / weights.sum(), abs=1e-15)


@given(st.integers(2, 6).flatmap(lambda size: stochastic_matrices(size, 0.05)))
def test_stationary_law_is_the_left_eigenvector_of_eigenvalue_one(matrix):
    values, vectors = np.linalg.eig(matrix.T)
    vector = np.real(vectors[:, np.argmax(np.real(values))])
    assert rs.theory.stationary(matrix) == pytest.approx(vector / vector.sum(), abs=1e-12)


def test_stationary_law_keeps_full_relative_accuracy_in_chains_that_almost_fall_apart():
    """The law of [[1-a, a, 0], [0, 1-a, a], [b, 0, 1-b]] is proportional to (b, b, a)."""
    a, b = 2.0**-40, 2.0**-48
    law = rs.theory.stationary([[1 - a, a, 0], [0, 1 - a, a], [b, 0, 1 - b]])
    expected = [Fraction(b), Fraction(b), Fraction(a)]
    for found, wanted in zip(law, expected, strict=True):
        assert found == pytest.approx(float(wanted / sum(expected)), rel=1e-14)


def test_a_periodic_chain_and_transient_states_have_a_stationary_law():
    assert rs.theory.stationary(CYCLE) == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert rs.theory.stationary(
        [[0.5, 0.5, 0], [0, 0.25, 0.75], [0, 1, 0]]
    ).tolist() == pytest.approx([0, 4 / 7, 3 / 7], abs=1e-15)
    assert rs.theory.stationary([[1.0]]).tolist() == [1]


def test_two_closed_classes_have_no_one_law_and_are_named():
    matrix = [[1, 0, 0, 0], [0, 0.5, 0.5, 0], [0, 1, 0, 0], [0.2, 0.3, 0.4, 0.1]]
    with pytest.raises(rs.errors.AssumptionError) as caught:
        rs.theory.stationary(matrix)
    assert str(caught.value) == (
        "matrix: has 2 closed classes, {0}, {1, 2}, so its long-run law depends on the start"
    )


def test_many_classes_are_listed_shortly():
    with pytest.raises(rs.errors.AssumptionError, match=r"\{5\}, and 94 more, so"):
        rs.theory.stationary(np.eye(100))


def test_what_is_no_stochastic_matrix_has_no_law():
    with pytest.raises(rs.errors.ProblemError, match=r"row 0 of the matrix sums to 0\.9"):
        rs.theory.stationary([[0.5, 0.4], [0, 1]])


@given(st.integers(1, 6).flatmap(stochastic_matrices))
def test_classes_are_those_of_reachability_by_powers(matrix):
    size = len(matrix)
    steps = (matrix > 0).astype(int) + np.eye(size, dtype=int)
    reach = np.linalg.matrix_power(steps, size) > 0
    expected = {frozenset(np.flatnonzero(reach[s] & reach[:, s]).tolist()) for s in range(size)}
    found = communicating_classes(matrix)
    assert {frozenset(members) for members in found} == expected
    assert found == sorted(found)
    closed = {c for c in expected if all(set(np.flatnonzero(reach[s])) <= c for s in c)}
    assert {frozenset(members) for members in closed_classes(matrix)} == closed


@given(st.integers(1, 5).flatmap(stochastic_matrices))
def test_period_is_the_number_of_eigenvalues_on_the_unit_circle(matrix):
    if len(communicating_classes(matrix)) == 1:
        values = np.linalg.eigvals(matrix)
        assert period(matrix) == np.sum(np.abs(values) > 1 - 1e-9)


@pytest.mark.parametrize("cycle", [2, 3, 6])
def test_a_periodic_passive_chain_is_told_with_its_period(cycle):
    matrix = np.roll(np.eye(cycle), 1, axis=1)
    with pytest.raises(rs.errors.AssumptionError, match=f"chain is periodic with period {cycle} "):
        rs.theory.mixing_time(still(matrix))


def test_two_cycles_of_lengths_four_and_six_have_period_two():
    matrix = np.zeros((8, 8))
    for s in range(8):
        matrix[s, (s + 1) % 8] = 1
    matrix[3] = 0
    matrix[3, 0] = matrix[3, 4] = 0.5  # 0..3 is a cycle of four
    matrix[7] = 0
    matrix[7, 2] = 1  # 2..7 is one of six
    assert period(matrix) == 2


def test_a_passive_chain_with_two_closed_classes_is_told_with_the_names_of_their_states():
    matrix = [[1, 0, 0], [0.5, 0, 0.5], [0, 0, 1]]
    arm = rs.Arm(np.full((3, 3), 1 / 3), matrix, [0, 0, 1], None, "tunnel", ["dark", "dim", "lit"])
    with pytest.raises(rs.errors.AssumptionError) as caught:
        rs.theory.mixing_time(arm)
    assert str(caught.value) == (
        "arm 'tunnel': the passive chain has 2 closed classes, {dark}, {lit}, so its long-run law "
        "depends on the start"
    )


def test_a_chain_that_ends_in_one_class_forgets_where_it_began():
    matrix = np.array([[1, 0, 0], [0.5, 0.5, 0], [0, 0.5, 0.5]])
    assert rs.theory.stationary(matrix).tolist() == [1, 0, 0]
    time = rs.theory.mixing_time(matrix, 0.1)
    gaps = [2 * (1 - np.linalg.matrix_power(matrix, t)[:, 0].min()) for t in (time - 1, time)]
    assert gaps[0] > 0.1 >= gaps[1]


def test_only_the_passive_chain_must_be_ergodic():
    arm = rs.Arm(np.eye(2), [[0.5, 0.5], [0.5, 0.5]], [0, 1])
    assert rs.theory.mixing_time(arm) == 1


@given(st.integers(1, 4).flatmap(stochastic_matrices))
def test_a_limit_means_that_some_power_has_a_positive_column(matrix):
    size = len(matrix)
    steps = (matrix > 0).astype(int)
    power = steps
    for _ in range(size**2 + size):  # Wielandt: the power (S-1)^2 + 1 is enough within a class
        power = np.minimum(power @ steps, 1)
    if power.all(axis=0).any():
        require_limit(matrix, "arm")
    else:
        with pytest.raises(rs.errors.AssumptionError):
            require_limit(matrix, "arm")


def test_mixing_time_on_the_grid_of_the_paper_is_at_most_seven():
    """Reading 5 of the paper notes."""
    times = [
        rs.theory.mixing_time(rs.gilbert_elliott(p01, p11)) for p01, p11 in product(GRID, GRID)
    ]
    assert max(times) == 7
    assert min(times) == 1


@pytest.mark.parametrize("epsilon", [2.0, 1.0, 0.25, 1e-3, 1e-9])
def test_mixing_time_is_that_of_the_definition_by_powers(epsilon):
    rng = np.random.default_rng(11)
    for _ in range(20):
        size = int(rng.integers(2, 6))
        matrix = 0.9 * rng.dirichlet(np.full(size, 0.3), size) + 0.1 / size
        law = rs.theory.stationary(matrix)
        power, age = matrix, 1
        while np.abs(power - law).sum(axis=1).max() > epsilon:
            power, age = power @ matrix, age + 1
        assert rs.theory.mixing_time(still(matrix), epsilon) == age


def test_mixing_time_is_in_l1_and_not_total_variation():
    """From state 1 of (.3, .7) the L1 distance after t steps is 0.4^t: 0.4, 0.16."""
    arm = rs.gilbert_elliott(0.3, 0.7)
    assert rs.theory.mixing_time(arm, 0.25) == 2
    assert rs.theory.mixing_time(arm, 0.5) == 1


@pytest.mark.parametrize("exponent", [10, 20, 30, 40, 48])
def test_mixing_time_of_very_slow_chains_is_their_closed_form(exponent):
    """A symmetric channel that flips with probability q: the distance is (1 - 2 q)^t."""
    flip = 2.0**-exponent
    arm = rs.gilbert_elliott(flip, 1 - flip)
    expected = ceil(log(0.25) / log1p(-2 * flip))
    assert rs.theory.mixing_time(arm) == pytest.approx(expected, rel=1e-9, abs=1)


def test_mixing_time_of_a_chain_that_flips_almost_surely_counts_too():
    """Its second eigenvalue is close to -1."""
    flip = 1 - 2.0**-20
    expected = ceil(log(0.25) / log1p(-(2.0**-19)))
    assert rs.theory.mixing_time(rs.gilbert_elliott(flip, 1 - flip)) == pytest.approx(
        expected, abs=1
    )


@pytest.mark.parametrize("epsilon", [0, -1, 2.5, float("nan")])
def test_epsilon_must_be_an_l1_distance(epsilon):
    with pytest.raises(rs.errors.ProblemError, match=r"epsilon must be in \(0, 2\]"):
        rs.theory.mixing_time(rs.gilbert_elliott(0.3, 0.7), epsilon)


def test_a_chain_that_does_not_mix_within_two_to_the_sixty_steps_is_refused():
    flip = 2.0**-70
    matrix = [[1, flip], [flip, 1]]  # rounding makes the diagonal 1, the chain is irreducible still
    with pytest.raises(rs.errors.TooLargeError, match="does not mix"):
        rs.theory.mixing_time(still(matrix))


def test_stationary_and_mixing_time_take_an_arm_or_a_matrix():
    matrix = [[0.9, 0.1], [0.3, 0.7]]
    arm = rs.Arm([[0.5, 0.5], [0.5, 0.5]], matrix, [0, 1], name="uplink")
    assert rs.theory.stationary(arm).tobytes() == rs.theory.stationary(matrix).tobytes()
    assert rs.theory.mixing_time(arm, 0.1) == rs.theory.mixing_time(matrix, 0.1) > 1
    periodic = [[0, 1], [1, 0]]
    with pytest.raises(rs.errors.AssumptionError, match=r"^arm 'uplink': the passive chain is per"):
        rs.theory.mixing_time(rs.Arm(matrix, periodic, [0, 1], name="uplink"))
    for wrong in ([[0.5, 0.4], [0, 1]], [[1]] * 2, "abc", 3):
        for function in (rs.theory.stationary, rs.theory.mixing_time):
            with pytest.raises(rs.errors.ProblemError, match=r"^matrix: "):
                function(wrong)
    with pytest.raises(rs.errors.AssumptionError, match=r"^matrix: the chain is periodic"):
        rs.theory.mixing_time(periodic)
