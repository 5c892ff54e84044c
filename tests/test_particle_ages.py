"""Ages at which sightings are counted: what is between two nodes counts for both."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from restive.kernels.learn.particles import DENSE, neighbours
from restive.learn.particles.arm import count_evidence, counts_of, fresh_arm


@numba.njit
def nodes_of(age, num_states):
    return neighbours(age, num_states)


@given(st.integers(1, 2**42))
def test_neighbours_of_two_states(age):
    low, high, share = nodes_of(age, 2)
    assert low <= age <= high
    assert (low - age) % 2 == (high - age) % 2 == 0
    assert low + share * (high - low) == pytest.approx(age, rel=1e-12)
    assert high - low <= max(low, DENSE) / 14
    for node in (low, high):
        assert nodes_of(node, 2) == (node, node, 0.0)


@given(st.integers(1, 2**42), st.integers(3, 6))
def test_every_age_is_a_node_of_more_states(age, num_states):
    assert nodes_of(age, num_states) == (age, age, 0.0)


def test_few_nodes_reach_any_age():
    found = {node for age in range(1, 100_001) for node in nodes_of(age, 2)[:2]}
    assert len(found) < 420
    assert set(range(1, DENSE + 1)) <= found


@given(
    st.lists(
        st.tuples(st.integers(0, 1), st.integers(1, 2000), st.integers(0, 1), st.integers(1, 9)),
        max_size=300,
    )
)
def test_counts_add_up_to_what_was_seen(cells):
    evidence = rs.Evidence(2)
    for cell in cells:
        evidence.add(*cell)
    prior = rs.beta_prior(1).arms[0].rows
    counts = counts_of(count_evidence(fresh_arm(prior), evidence))
    assert counts.cells.sum() == pytest.approx(evidence.total)
    assert (np.diff(counts.ages) > 0).all()
    spread = (counts.ages[:, None, None] * counts.cells).sum()
    assert spread == pytest.approx(sum(n * c for _, n, _, c in cells))
