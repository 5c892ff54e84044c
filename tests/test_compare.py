"""rs.compare: learners of ours and of the user's own in the same worlds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import restive as rs

BANDIT = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.8), rs.gilbert_elliott(0.6, 0.3)], 1)
PRIOR = rs.grid_prior([0.2, 0.4, 0.6, 0.8], num_arms=2)


class AlwaysFirst:
    """Pull arm 0, whatever happens."""

    def select(self):
        return [0]

    def observe(self, states):
        assert len(states) == 1


def always_first(task, seed):
    assert task.num_arms == 2
    return AlwaysFirst()


def test_regrets_are_those_of_frequentist_regret_and_pairs_are_paired():
    (found,) = rs.compare(
        (BANDIT, PRIOR), ["tsde", "ucb1", always_first], horizon=60, replications=40, seed=3
    )
    alone = {
        name: rs.frequentist_regret(
            BANDIT, PRIOR, horizon=60, learner=name, replications=40, seed=3
        ).samples[:, -1]
        for name in ("tsde", "ucb1", always_first)
    }
    samples = {getattr(name, "__name__", name): values for name, values in alone.items()}
    means = [float(curve.mean[-1]) for curve in found.curves]
    assert means == sorted(means)
    assert {curve.learner for curve in found.curves} == set(samples)
    for curve in found.curves:
        assert np.array_equal(curve.samples[:, -1], samples[curve.learner])
    assert len(found.differences) == 3
    for pair in found.differences:
        gaps = samples[pair.second] - samples[pair.first]
        assert pair.mean == pytest.approx(gaps.mean())
        quantile = stats.t.ppf(1 - 0.05 / 3 / 2, 39)
        assert pair.half_width == pytest.approx(quantile * stats.sem(gaps), rel=1e-6)
        assert pair.told_apart == (abs(pair.mean) > pair.half_width)
    assert "always_first" in str(found)


def test_the_first_arm_for_ever_earns_its_stationary_reward():
    (found,) = rs.compare(BANDIT, [always_first], "best_fixed", 40, replications=3)
    # seen good one step ago: p11 at first, then the law of a chain that is always looked at
    law, expected = np.array([0.0, 1.0]), 0.0
    for _ in range(40):
        law = law @ BANDIT.arms[0].active
        expected += law[1]
    assert found.curves[0].average_reward[-1] * 40 == pytest.approx(expected, abs=6)


@pytest.mark.parametrize(
    ("problems", "learners", "message"),
    [
        (3, ["tsde"], "a problem must be a RestlessBandit, got 3"),
        ([3], ["tsde"], "a problem is a RestlessBandit"),
        (BANDIT, [], "at least one"),
        (BANDIT, ["tsde", "tsde"], "at least one learner, each only once"),
        (BANDIT, [3], "a learner is a name, a table such as"),
        (BANDIT, ["tsda"], "did you mean"),
    ],
)
def test_what_cannot_be_compared_is_refused(problems, learners, message):
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.compare(problems, learners, horizon=5, replications=2)
