"""Sightings of arms that were not pulled, told apart: counts, evidence, and the law of a kind."""

import itertools
from collections import Counter

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive.learn.evidence import log_likelihood
from restive.learn.kinds import estimate_kind
from restive.logs.counts import count_log


def rows_of(seed: int, gaps: bool) -> list[tuple[int, int, int, bool]]:
    rng = np.random.default_rng(seed)
    return [
        (k, t, int(rng.integers(3)), bool(rng.random() < 0.4))
        for k in range(4)
        for t in range(60)
        if not gaps or t == 0 or rng.random() < 0.7
    ]


@pytest.mark.parametrize("next_only", [False, True])
def test_counts_by_mode_are_those_of_a_walk_through_the_rows(next_only: bool) -> None:
    rows = rows_of(3, gaps=True)
    log = log_of(*map(list, zip(*(row[:3] for row in rows), strict=True)),
                    pulled=[row[3] for row in rows])  # fmt: skip
    counts = count_log(log, by_mode=True, next_only=next_only)
    left_out = 0
    for k in range(4):
        own = [row for row in rows if row[0] == k]
        expected: Counter[tuple[bool, int, int, int]] = Counter()
        for (_, before, last, pulled), (_, after, following, _) in itertools.pairwise(own):
            if next_only and after - before > 1:
                left_out += 1
            else:
                expected[pulled, last, after - before, following] += 1
        found = Counter(
            {
                (pulled, *cell[:3]): cell[3]
                for pulled in (True, False)
                for cell in zip(
                    *(c.tolist() for c in counts.evidence(k).cells(pulled=pulled)), strict=True
                )
            }
        )
        assert found == expected
        moves = np.zeros((6, 3))
        for (pulled, last, age, following), number in expected.items():
            if age == 1:
                moves[last + 3 * (not pulled), following] += number
        np.testing.assert_array_equal(counts.moves(np.array([k]))[0], moves)
        assert counts.last_row is not None
        assert counts.last_row[k] == own[-1][2] + 3 * (not own[-1][3])
    assert counts.left_out == left_out


def test_a_kind_weighs_sightings_by_mode_as_evidence_does() -> None:
    rng = np.random.default_rng(5)
    arm = rs.Arm(rng.dirichlet([1, 1], 2), rng.dirichlet([1, 1], 2), [0, 1])
    arms, last, ages, states = (rng.integers(low, high, 40) for low, high in
                                ((0, 3), (0, 2), (1, 5), (0, 2)))  # fmt: skip
    pulled = rng.random(40) < 0.5
    found = estimate_kind(rs.ArmPrior([arm]), arms, last, ages, states, pulled=pulled)
    total = 0.0
    for k in range(3):
        evidence = rs.Evidence(2)
        for mode in (True, False):
            own = (arms == k) & (pulled == mode)
            evidence.add(last[own], ages[own], states[own], pulled=mode)
        total += log_likelihood(arm, evidence)
    assert found.log_evidence == pytest.approx(total, abs=1e-9)
