"""Instances whose arms change: at once, or little by little."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_seed
from restive.learn.priors.independent import grid_prior, uniform_prior
from restive.measure.zoo.always_seen import calls
from restive.measure.zoo.instance import Instance
from restive.problem.arm import gilbert_elliott
from restive.problem.bandit import RestlessBandit
from restive.problem.changing import ChangingBandit

__all__ = ["calls_switch", "channels", "channels_drift", "channels_switch"]

FloatArray = NDArray[np.float64]

OURS = "made up for this package"
SWITCHES = "abrupt changes as of Garivier and Moulines 2011 (switching bandits)"
DRIFTS = (
    "slow drift as of Besbes, Gur and Zeevi 2014 (variation budgets) and, of Markov arms, Hung, "
    "Hsieh and Wang 2025 (arXiv:2508.10804)"
)
LEVELS = tuple(tenths / 10 for tenths in range(1, 10))
NUM_CHANNELS, CHANNEL_PULLS, CHANNEL_STEPS = 16, 3, 20_000
STRETCH = 5_000  # steps from one drawn point to the next, while arms drift
PIECE = 100  # steps in which they stay as they are


def calls_switch() -> Instance:
    """Return eight people who are seen every week and who change places at half time."""
    before = calls()
    assert isinstance(before.bandit, RestlessBandit)
    half = before.horizon // 2
    after = RestlessBandit(before.bandit.arms[::-1], before.num_pulls)
    return Instance(
        name="",
        title=f"8 people who are always seen, 3 calls: they change places after step {half:,}",
        source=f"{OURS}: calls-8, its arms in reverse order; {SWITCHES}",
        num_pulls=before.num_pulls,
        prior=uniform_prior(before.bandit),
        bandit=ChangingBandit(before.bandit, [(half + 1, after)]),
        horizon=before.horizon,
        truth_in_prior=True,
    )


def channels(*, seed: int = 0) -> Instance:
    """Return 16 channels whose (p01, p11) are uniform on [0.1, 0.9]^2, and which stay so."""
    return _of_channels(
        "of which 3 are used a step", OURS, seed, lambda points: _bandit(points[0]), 1
    )


def channels_switch(*, seed: int = 0) -> Instance:
    """Return the channels of `channels`, which are drawn anew at half time."""
    half = CHANNEL_STEPS // 2
    return _of_channels(
        f"3 used a step: they are others after step {half:,}",
        f"{OURS}; {SWITCHES}",
        seed,
        lambda points: ChangingBandit(_bandit(points[0]), [(half + 1, _bandit(points[1]))]),
        2,
    )


def channels_drift(*, seed: int = 0) -> Instance:
    """Return the channels of `channels`, which drift straight to another point every 5,000 steps.

    They stay as they are for 100 steps at a time.
    """
    return _of_channels(
        f"3 used a step: they drift to another point every {STRETCH:,} steps",
        f"{OURS}; {DRIFTS}",
        seed,
        _drifting,
        1 + CHANNEL_STEPS // STRETCH,
    )


def _of_channels(
    title: str,
    source: str,
    seed: int,
    bandit_of: Callable[[FloatArray], RestlessBandit | ChangingBandit],
    count: int,
) -> Instance:
    """Return channels whose bandit is made of points [count, K, 2]; more points extend fewer."""
    rng = np.random.default_rng(checked_seed(seed))
    points = 0.1 + 0.8 * rng.random((count, NUM_CHANNELS, 2))
    return Instance(
        name="",
        title=f"{NUM_CHANNELS} channels, {title}",
        source=f"{source}; drawn with seed {seed}",
        num_pulls=CHANNEL_PULLS,
        prior=grid_prior(LEVELS, NUM_CHANNELS),
        bandit=bandit_of(points),
        horizon=CHANNEL_STEPS,
        truth_in_prior=False,
    )


def _bandit(points: FloatArray) -> RestlessBandit:
    return RestlessBandit([gilbert_elliott(*point) for point in points.tolist()], CHANNEL_PULLS)


def _drifting(points: FloatArray) -> ChangingBandit:
    first, *changes = (
        (1 + at, _bandit(_between(points, at / STRETCH))) for at in range(0, CHANNEL_STEPS, PIECE)
    )
    return ChangingBandit(first[1], changes)


def _between(points: FloatArray, where: float) -> FloatArray:
    """Return the point after so many stretches, of which part of one may be the last."""
    stretch = int(where)
    share = where - stretch
    point: FloatArray = (1 - share) * points[stretch] + share * points[stretch + 1]
    return point
