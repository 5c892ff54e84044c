r"""Whittle's relaxation: pull N arms on average instead of exactly N, and earn at least as much.

With a price lambda on pulls the arms come apart, and the least over the price,

    U = min_lambda  sum_k g_k(lambda) - (K - N) lambda,

bounds what any policy can earn per step. Each gain g_k is convex and piecewise linear along the
subsidy, so the minimum lies at a breakpoint and is found exactly, without search. What arms earn
while not pulled is reduced to what they earn by themselves, added at the end (`reduction`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import fsum
from typing import Any

import numpy as np

from restive.arguments import shown
from restive.errors import ProblemError
from restive.plan.subsidy import AnyPath, subsidy_path
from restive.problem.bandit import Kinds, RestlessBandit, kinds_of
from restive.threads import on_all_cores

__all__ = ["Relaxation", "relaxation_bound", "relaxed", "require_relaxation"]

SLOPE_NOISE = 1e-11


@dataclass(frozen=True, eq=False)
class Relaxation:
    """The relaxed problem solved: its bound, the price of a pull, and each kind of arm's path."""

    bound: float
    own_reward: float  # of all arms by themselves; part of the bound
    subsidy: float
    kinds: Kinds
    paths: tuple[AnyPath, ...]  # one per kind


def relaxation_bound(bandit: RestlessBandit, *, max_elapsed: int | None = None) -> float:
    """Reward per step that no policy can exceed.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> round(rs.relaxation_bound(bandit), 6)
    0.518461
    """
    return relaxed(bandit, max_elapsed).bound


def relaxed(
    bandit: RestlessBandit,
    max_elapsed: int | None = None,
    progress: Callable[[int], None] = lambda done: None,
) -> Relaxation:
    """Solve the relaxed problem; where several prices are best, take the largest.

    `progress` is called with the number of kinds of arms done since its last call.
    """
    kinds = kinds_of(bandit)
    found: dict[int, AnyPath] = {}

    def solve(j: int) -> None:
        found[j] = subsidy_path(kinds.arms[j], 1.0, max_elapsed, kinds.labels[j])

    on_all_cores(solve, len(kinds.arms), progress)
    paths = tuple(found[j] for j in range(len(kinds.arms)))
    counts = kinds.counts
    lines = [path.breakpoints() for path in paths]
    tops = np.concatenate([top for top, _, _ in lines])
    falls = np.concatenate(
        [
            count * -np.diff(slope, prepend=1.0)  # above its first piece an arm is left alone
            for count, (_, _, slope) in zip(counts, lines, strict=True)
        ]
    )
    order = np.argsort(-tops, kind="stable")
    # from the right, where every arm is left alone and the slope is K - (K - N) = N
    slopes = bandit.num_pulls - np.cumsum(falls[order])
    flat = np.flatnonzero(slopes <= SLOPE_NOISE * bandit.num_arms)
    subsidy = float(tops[order[flat[0] if flat.size else -1]])
    gains = [_gain(path, subsidy) for path in paths]
    own = float(sum(counts * [path.own_reward for path in paths]))
    bound = fsum(counts * gains) - (bandit.num_arms - bandit.num_pulls) * subsidy + own
    return Relaxation(bound, own, subsidy, kinds, paths)


def _gain(path: AnyPath, subsidy: float) -> float:
    tops, intercepts, slopes = path.breakpoints()
    if subsidy >= tops[0]:
        return subsidy
    piece = int(np.searchsorted(-tops, -subsidy, side="right")) - 1
    return float(intercepts[piece] + slopes[piece] * subsidy)


def require_relaxation(relaxation: Any) -> None:
    """Raise unless this is a relaxed problem, or None."""
    if relaxation is not None and not isinstance(relaxation, Relaxation):
        raise ProblemError(f"relaxation must be what `relaxed` returns, got {shown(relaxation)}")
