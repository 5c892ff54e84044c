"""Evidence is a count table: order-free, and all that a posterior needs."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs

SIGHTINGS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(1, 300), st.integers(0, 1)), max_size=30
)


def evidence_of(sightings: list[tuple[int, int, int]]) -> rs.Evidence:
    evidence = rs.Evidence(num_states=2)
    for sighting in sightings:
        evidence.add(*sighting)
    return evidence


@given(SIGHTINGS, st.randoms(use_true_random=False))
def test_the_order_does_not_matter(sightings: list[tuple[int, int, int]], random: object) -> None:
    shuffled = list(sightings)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert evidence_of(sightings) == evidence_of(shuffled)


@given(SIGHTINGS, SIGHTINGS)
def test_evidence_adds_up(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]]
) -> None:
    both = evidence_of(first) + evidence_of(second)
    assert both == evidence_of(first + second)
    assert both.total == len(first) + len(second)


@given(SIGHTINGS)
def test_plain_data_and_back(sightings: list[tuple[int, int, int]]) -> None:
    evidence = evidence_of(sightings)
    assert rs.Evidence.from_data(json.loads(json.dumps(evidence.to_data()))) == evidence


@given(SIGHTINGS)
def test_many_at_once_are_counted_as_one_by_one(sightings: list[tuple[int, int, int]]) -> None:
    at_once = rs.Evidence(num_states=2)
    if sightings:
        at_once.add(*np.array(sightings).T)
    assert at_once == evidence_of(sightings)
    counted = dict.fromkeys(sightings, 0)
    for sighting in sightings:
        counted[sighting] += 1
    columns = (column.tolist() for column in at_once.cells())
    assert {(s, n, t): c for s, n, t, c in zip(*columns, strict=True)} == counted


@given(SIGHTINGS)
def test_given_is_bayes_rule_by_hand(sightings: list[tuple[int, int, int]]) -> None:
    arms = [rs.gilbert_elliott(p01, p11) for p01 in (0.2, 0.6) for p11 in (0.3, 0.9)]
    prior = rs.ArmPrior(arms, [1, 2, 3, 4])
    products = [0.1, 0.2, 0.3, 0.4]
    for j, arm in enumerate(arms):
        for s, n, t in sightings:
            products[j] *= (arm.active @ np.linalg.matrix_power(arm.passive, n - 1))[s, t]
    posterior = prior.given(evidence_of(sightings))
    np.testing.assert_allclose(posterior.weights, np.array(products) / sum(products), rtol=1e-9)
    assert posterior.candidates == prior.candidates


def test_joint_evidence_weighs_whole_systems() -> None:
    good, bad = rs.gilbert_elliott(0.5, 0.9), rs.gilbert_elliott(0.1, 0.5)
    prior = rs.JointPrior([rs.RestlessBandit([good, bad], 1), rs.RestlessBandit([bad, good], 1)])
    seen = [rs.Evidence(num_states=2) for _ in range(2)]
    seen[0].add(1, 1, 1, count=3)
    seen[1].add(0, 1, 0)
    first, second = 0.9**3 * 0.9, 0.5**3 * 0.5
    np.testing.assert_allclose(
        prior.given(seen).weights, np.array([first, second]) / (first + second), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("sighting", "message"),
    [
        ((2, 1, 0), "last_state must be from 0 to 1, got 2"),
        ((0, 0, 0), "elapsed must be from 1 to"),
        ((0, 1, -1), "next_state must be from 0 to 1, got -1"),
        ((0, 1, 0, -1), "count must be from 0 to"),
        ((0.5, 1, 0), "last_state must be whole numbers"),
        (([0, 1], [1, 2, 3], 0), "must go together"),
    ],
)
def test_what_cannot_have_been_seen_is_refused(sighting: tuple[object, ...], message: str) -> None:
    evidence = rs.Evidence(num_states=2)
    with pytest.raises(rs.errors.ProblemError, match=message):
        evidence.add(*sighting)  # type: ignore[arg-type]
    assert evidence.total == 0


def test_impossible_evidence_is_refused() -> None:
    prior = rs.ArmPrior([rs.Arm([[0.5, 0.5], [1.0, 0.0]], rewards=[0, 1])])
    evidence = rs.Evidence(num_states=2)
    evidence.add(1, 1, 1)
    with pytest.raises(rs.errors.ProblemError, match="probability zero under every candidate"):
        prior.given(evidence)
