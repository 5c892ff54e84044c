"""Arms that mix slowly: ages are taken in blocks, which must not change anything but the work."""

import numpy as np
import pytest

import restive as rs
from restive.kernels.plan.waiting_times import WORK
from restive.plan import subsidy
from restive.plan.subsidy import subsidy_path
from strategies import random_arm


def sluggish(arm, pace):
    """Return an arm that is left alone for longer before it forgets."""
    size = arm.num_states
    return rs.Arm(arm.active, (1 - pace) * np.eye(size) + pace * arm.passive, arm.rewards)


ARMS = {
    "channel": rs.gilbert_elliott(0.004, 0.993),
    "swinging": rs.gilbert_elliott(0.992, 0.011),
    "controlled": sluggish(random_arm(np.random.default_rng(1), 3, 0.3), 0.02),
    "four states": sluggish(random_arm(np.random.default_rng(2), 4, 0.1), 0.05),
    "birth and death": rs.Arm(
        [[0.9, 0.1, 0], [0.1, 0.8, 0.1], [0, 0.1, 0.9]],
        [[0.99, 0.01, 0], [0.01, 0.98, 0.01], [0, 0.02, 0.98]],
        [0.1, 0.4, 1],
    ),
}


@pytest.mark.parametrize("discount", [1.0, 0.999, 0.9])
@pytest.mark.parametrize("name", ARMS)
def test_blocks_of_ages_change_nothing(name, discount, monkeypatch):
    arm = ARMS[name]
    found = subsidy_path(arm, discount)
    assert found.index.shape[1] > subsidy.FEW_AGES
    monkeypatch.setattr(subsidy, "FEW_AGES", 10**9)
    plain = subsidy_path(arm, discount)
    assert found.indexable == plain.indexable
    assert found.pieces.shape == plain.pieces.shape
    assert found.pieces == pytest.approx(plain.pieces, rel=1e-9, abs=1e-9)
    assert found.index == pytest.approx(plain.index, abs=1e-11)
    assert found.upper == pytest.approx(plain.upper, abs=1e-11)
    price = float(np.median(plain.index))
    assert found.advantage(price) == pytest.approx(plain.advantage(price), abs=1e-9)


def work_of(arm, length, monkeypatch):
    """Products that the path takes."""
    total = 0

    def counted(problem, bounds, walk, *limits):
        nonlocal total
        end = subsidy_kernel(problem, bounds, walk, *limits)
        total += int(walk.marks[WORK])
        return end

    subsidy_kernel = subsidy.follow_subsidy
    with monkeypatch.context() as patch:
        patch.setattr(subsidy, "follow_subsidy", counted)
        path = subsidy_path(arm, 1.0, length)
    assert len(path.pieces) >= length  # a breakpoint for every age, at least
    return total


def test_the_work_hardly_grows_faster_than_the_number_of_ages(monkeypatch):
    """Doubling the ages doubles the breakpoints; without blocks the work would quadruple."""
    arm = rs.gilbert_elliott(1e-6, 0.999999)
    works = [work_of(arm, length, monkeypatch) for length in (2000, 4000, 8000)]
    assert works[1] < 2.4 * works[0]
    assert works[2] < 2.4 * works[1]
