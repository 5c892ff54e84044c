"""What a live agent has learned: by kind of arms, and where its episode stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.live.memory import Memory
from restive.live.reading import posterior

__all__ = ["KnownKind", "Learning", "known_by_kind", "learning"]

FloatArray = NDArray[np.float64]

MOST_LOOKED_AT = 100  # arms of a kind: posteriors cost, and a spread needs no more


@dataclass(frozen=True, eq=False)
class KnownKind:
    """What is known of the arms of a kind that were seen, in order of their slots.

    Of many arms, evenly chosen ones are looked at.
    """

    kind: str
    arms: int  # that have not left
    seen: int  # of them, at least once
    chains: int  # that an arm may have
    effective: FloatArray  # [looked at], how many equally likely chains are as uncertain
    gains: FloatArray  # [looked at], posterior mean of going from the first state to the last
    stays: FloatArray  # [looked at], posterior mean of staying in the last state


@dataclass(frozen=True)
class Learning:
    """Where the current episode stands."""

    episode: int  # from 1; 0 before the first decision
    began: int  # tick of its first decision
    length: int  # ticks so far
    last_ended: str  # why the episode before this one ended
    distance: float | None  # mean difference of transition probabilities, drawn against believed


def known_by_kind(memory: Memory) -> list[KnownKind]:
    """Return what is known of each kind."""
    slots: dict[str, list[int]] = {kind: [] for kind in memory.roster.kinds}
    for slot in range(memory.agent.task.num_arms):
        if slot not in memory.gone:
            slots[memory.roster.kind_of[slot]].append(slot)
    return [_known(memory, kind, there) for kind, there in slots.items()]


def _known(memory: Memory, kind: str, slots: list[int]) -> KnownKind:
    now = {} if memory.open is None else memory.open.sightings
    seen = [slot for slot in slots if slot in memory.ever_seen or slot in now]
    found = [posterior(memory, slot) for slot in _some(seen)]
    means = [one.mean().active for one in found]
    first = found or ([posterior(memory, slots[0])] if slots else [])
    return KnownKind(
        kind=kind,
        arms=len(slots),
        seen=len(seen),
        chains=len(first[0]) if first else 0,
        effective=np.array([one.effective for one in found]),
        gains=np.array([mean[0, -1] for mean in means]),
        stays=np.array([mean[-1, -1] for mean in means]),
    )


def learning(memory: Memory) -> Learning:
    """Tell where the episode stands, and how far its draw is from what is believed."""
    episode = memory.agent.episode
    drawn = memory.agent.sampled_bandit
    gaps = []
    if drawn is not None:
        for slot in _some(sorted(memory.ever_seen - set(memory.gone))):
            if slot < len(drawn.arms):
                mean = posterior(memory, slot).mean().active
                gaps.append(float(np.abs(mean - drawn.arms[slot].active).mean()))
    return Learning(
        episode=episode.number,
        began=max(0, episode.start - 1),
        length=episode.length,
        last_ended=episode.last_ended,
        distance=float(np.mean(gaps)) if gaps else None,
    )


def _some(slots: list[int]) -> list[int]:
    """Return evenly chosen ones of many."""
    step = -(-len(slots) // MOST_LOOKED_AT)
    return slots[:: max(1, step)]
