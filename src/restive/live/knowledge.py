"""What a live agent has learned: by kind of arms, and where its episode stands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from restive.live.memory import Memory
from restive.live.reading import evenly_chosen, posterior
from restive.live.session import Session
from restive.live.status import rewards
from restive.plan.relaxation import relaxation_bound
from restive.problem.arm import Arm
from restive.problem.bandit import RestlessBandit

__all__ = ["KnownKind", "Learning", "Room", "known_by_kind", "learning", "room_left"]

FloatArray = NDArray[np.float64]

RECENT = 52  # ticks
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


@dataclass(frozen=True)
class Room:
    """What is earned a tick, beside what could be if the model is right."""

    bound: float  # that no policy exceeds in the long run, were arms as they are on average
    earned: float | None  # in the last ticks, by pulls that were seen, as if all had been
    foreseen: float | None  # for the same pulls, when they were decided
    ticks: int  # how many these are


def known_by_kind(memory: Memory) -> list[KnownKind]:
    """Return what is known of each kind."""
    slots: dict[str, list[int]] = {kind: [] for kind in memory.roster.kinds}
    for slot in range(memory.agent.task.num_arms):
        if slot not in memory.gone:
            slots[memory.roster.kind_of[slot]].append(slot)
    return [_known(memory, kind, there) for kind, there in slots.items()]


def _known(memory: Memory, kind: str, slots: list[int]) -> KnownKind:
    ever_seen = memory.seen
    seen = [slot for slot in slots if slot in ever_seen]
    found = [posterior(memory, slot) for slot in evenly_chosen(seen, MOST_LOOKED_AT)]
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
        for slot in evenly_chosen(sorted(memory.ever_seen - set(memory.gone)), MOST_LOOKED_AT):
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


def room_left(session: Session) -> Room | None:
    """Compare what was earned with what could be; None where arms pay without being pulled."""
    memory = session.memory
    believed = _believed_arms(memory)
    if not believed or any(arm.pays_unpulled for arm, _ in believed):
        return None
    arms = [arm for arm, count in believed for _ in range(count)]
    pulls = min(memory.settings.num_pulls, len(arms))
    over = [row for row in rewards(session) if row["tick"] < memory.tick and row["seen"]]
    recent = over[-RECENT:]
    seen = sum(row["seen"] for row in recent)
    return Room(
        bound=relaxation_bound(RestlessBandit(arms, pulls)),
        earned=pulls * sum(row["reward"] for row in recent) / seen if seen else None,
        foreseen=pulls * sum(row["forecast"] for row in recent) / seen if seen else None,
        ticks=len(recent),
    )


def _believed_arms(memory: Memory) -> list[tuple[Arm, int]]:
    """Return arms as they are believed to be on average, each with the number it stands for.

    Of many arms of a kind that were seen, evenly chosen ones stand for their neighbours.
    """
    slots: dict[tuple[str, bool], list[int]] = {}
    ever_seen = memory.seen
    for slot in range(memory.agent.task.num_arms):
        if slot not in memory.gone:
            key = memory.roster.kind_of[slot], slot in ever_seen
            slots.setdefault(key, []).append(slot)
    found = []
    for (_, seen), there in slots.items():
        alike = not seen and memory.roster.joint is None  # so one of them stands for all
        step = len(there) if alike else -(-len(there) // MOST_LOOKED_AT)
        for first in range(0, len(there), step):
            mean = posterior(memory, there[first]).mean()
            like = memory.agent.prior.typical(there[first])
            arm = Arm(mean.active, mean.passive, like.rewards, like.passive_rewards)
            found.append((arm, len(there[first : first + step])))
    return found
