"""The law of a kind in plain words: how many of its arms gain from pulls, and how arms move.

An arm is worth, in the long run, its mean reward a step, from 0 (always in the worst state) to 1
(always in the best). It gains much from pulls if pulling it in every step makes that larger by
MUCH. Of the others, those with a worth of one half or more do well without pulls. What a pull adds
to the next step, for an arm that was left alone before, tells whether the log shows that pulls
change anything at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.arguments import counted
from restive.learn.priors.finite import ArmPrior
from restive.logs.finite import stacked
from restive.problem.chains import limiting_laws

__all__ = ["GAIN", "MUCH", "KindShape", "candidate_values"]

FloatArray = NDArray[np.float64]

MUCH = 0.2  # of the long-run worth, from 0 to 1
CONTROLLED = ("gain much from pulls", "do well without", "do badly with and without")
UNCONTROLLED = ("do well", "do badly")
GAIN = "gain of a pull"  # of what the next step is worth; mean over the arms of a kind


class KindShape(NamedTuple):
    """What the arms of a kind say about its law: means of the likeliest one, and 90% intervals."""

    what: tuple[str, ...]  # [Q] sorts of arms, then chances
    means: FloatArray  # [Q]
    intervals: FloatArray  # [Q, 2]
    num_sorts: int
    num_arms: int

    @property
    def sentence(self) -> str:
        """All of it in words."""
        sorts = [
            f"{100 * mean:.0f}% ({100 * low:.0f} to {100 * high:.0f}) {what}"
            for what, mean, low, high in self.rows()[: self.num_sorts]
        ]
        chances = [
            f"{what} {mean:.2f} ({low:.2f} to {high:.2f})"
            for what, mean, low, high in self.rows()[self.num_sorts :]
            if what != GAIN
        ]
        parts = [f"about {', '.join(sorts)}"] if sorts else []
        if self.gain is not None:
            mean, low, high = self.gain
            parts.append(f"a pull adds {mean:+.2f} ({low:+.2f} to {high:+.2f}) to the next step")
        parts += [f"mean {', '.join(chances)}"] if chances else []
        return f"{counted(self.num_arms, 'arm')} say: {'; '.join(parts)}"

    @property
    def gain(self) -> tuple[float, float, float] | None:
        """What a pull adds to the next step and its interval; None where pulls change nothing."""
        return next(((m, low, high) for what, m, low, high in self.rows() if what == GAIN), None)

    def to_data(self) -> dict[str, list[float]]:
        """Mean and ends of the interval by what they are of, for JSON."""
        return {what: [mean, low, high] for what, mean, low, high in self.rows()}

    def rows(self) -> list[tuple[str, float, float, float]]:
        """What, its mean, and the ends of its interval."""
        ends = self.intervals.tolist()
        return [
            (what, mean, *own)
            for what, mean, own in zip(self.what, self.means.tolist(), ends, strict=True)
        ]


def candidate_values(base: ArmPrior) -> tuple[tuple[str, ...], FloatArray, int]:
    """What is said about a kind: names [Q], values [Q, M], and how many are sorts of arms."""
    active, passive = stacked(base.candidates)
    rewards = base.typical.rewards
    scale = (rewards - rewards.min()) / max(float(np.ptp(rewards)), 1e-300)
    settled, kept = (limiting_laws(part.transpose(1, 2, 0).copy()) for part in (passive, active))
    alone, pulled = ((laws * scale[:, None]).sum(axis=0) for laws in (settled, kept))
    well = alone >= 0.5
    names: tuple[str, ...]
    if base.moves_alike:
        sorts, names = [well, ~well], UNCONTROLLED
    else:
        much = pulled - alone >= MUCH
        sorts, names = [much, ~much & well, ~much & ~well], CONTROLLED
    chances: list[FloatArray] = []
    what: list[str] = []
    if not base.moves_alike:
        added = ((active - passive) * scale).sum(axis=2)  # [M, S]
        what.append(GAIN)
        chances.append((added.T * settled).sum(axis=0))
    if base.typical.num_states == 2:
        which = [("p01", "p11", passive)] if base.moves_alike else [
            ("p01", "p11", passive), ("p01 if pulled", "p11 if pulled", active)
        ]  # fmt: skip
        for first, second, part in which:
            what += [first, second]
            chances += [part[:, 0, 1], part[:, 1, 1]]
    values = np.array([*(sort.astype(np.float64) for sort in sorts), *chances])
    return (*names, *what), values, len(sorts)
