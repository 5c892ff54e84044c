"""What a live agent has learned: of an arm, by kind of arms, and how uncertain it was over time.

Results of the open tick are taken in, though the agent learns from them when it closes. The past
needs no record of its own: what was seen of an arm until a tick decides what was believed of it
then, so the likelihoods of the sightings until each tick are multiplied anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.errors import ProblemError
from restive.kernels.elementary import exponentials, logarithms
from restive.learn.posterior import ArmPosterior
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.live.acts.forgetting import FORGET, REMEMBER, standing
from restive.live.memory import Memory
from restive.live.session import Session
from restive.problem.arm import Arm
from restive.problem.beliefs import beliefs_at, log_chances
from restive.problem.chains import weighted

__all__ = [
    "Entropy",
    "KnownKind",
    "Learning",
    "belief",
    "chances_of_the_top",
    "entropy_over_time",
    "known_by_kind",
    "known_slot",
    "laws",
    "learning",
    "posterior",
    "prior_of",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_LOOKED_AT = 100  # arms of a kind: posteriors cost, and a spread needs no more
MOST_TICKS = 60  # of a curve of entropy
MOST_IN_CURVE = 30  # arms of a kind that are looked at for it
LEAST = 1e-300  # likelihood, below which a chain is as good as ruled out


# ---------------------------------------------------------------- of an arm


def known_slot(memory: Memory, name: str) -> int:
    """Return the slot of an arm that has joined."""
    slot = memory.roster.slot(name)
    if slot >= memory.num_joined:
        raise ProblemError(
            f"{memory.roster.noun} {name!r} joins with the next decision; nothing is known yet"
        )
    return slot


def belief(memory: Memory, slot: int) -> FloatArray:
    """Law of an arm's state at the tick of the last decision."""
    seen = memory.open_sightings
    if slot in seen:
        law: FloatArray = np.zeros(memory.roster.num_states(slot))
        law[seen[slot]] = 1.0
        return law
    if seen.keys().isdisjoint(memory.roster.informing(slot)):
        return memory.agent.belief(slot)
    found = posterior(memory, slot)
    law = weighted(laws(memory, found, slot).T, found.weights)
    law /= law.sum()
    return law


def posterior(memory: Memory, slot: int) -> ArmPosterior:
    """Return what is believed of an arm, with the results of the open tick taken in."""
    found = memory.agent.posterior(slot)
    seen = memory.open_sightings
    weights = found.weights
    for arm in memory.roster.informing(slot):
        if arm in seen and arm not in memory.lost:  # of whose return nothing is learned
            chains = found if arm == slot else memory.agent.posterior(arm)
            weights = weights * laws(memory, chains, arm)[:, seen[arm]]
    if weights is found.weights:
        return found
    return replace(found, weights=weights / weights.sum(), log_evidence=None)


def prior_of(memory: Memory, slot: int) -> ArmPosterior:
    """Return what was believed of an arm's kind before anything was seen."""
    prior = memory.roster.kinds[memory.roster.kind_of[slot]]
    if isinstance(prior, DirichletArmPrior):
        return prior.particles()
    chains = _chains(prior, slot)
    active, passive = (np.array([getattr(arm, name) for arm in chains])
                       for name in ("active", "passive"))  # fmt: skip
    return ArmPosterior(active, passive, np.array(prior.weights), states=chains[0].states)


def chances_of_the_top(memory: Memory) -> FloatArray:
    """Probability of the last state of each arm now, as `belief` has it."""
    slots = range(memory.num_joined)
    seen = memory.open_sightings
    if memory.roster.joint is not None and seen:
        return np.array([belief(memory, slot)[-1] for slot in slots])
    chances = np.array([law[-1] for law in memory.agent.beliefs(list(slots))])
    for slot in {other for arm in seen for other in memory.roster.informing(arm)}:
        chances[slot] = belief(memory, slot)[-1]
    return chances


def laws(memory: Memory, chains: ArmPosterior, slot: int) -> FloatArray:
    """Law [M, S] of an arm's state at the open tick, under each chain."""
    state, time = memory.agent.last_seen(slot)
    if memory.roster.always_seen(slot):  # the law of its next state
        now = memory.open
        pulled = now is not None and (slot in now.choice.arms or slot in now.instead)
        return (chains.active if pulled else chains.passive)[:, state]
    age = memory.agent.time - time
    (found,) = beliefs_at(chains.active, chains.passive, np.array([state]), np.array([age]))
    return np.asarray(found)


def _chains(prior: ArmPrior | JointPrior, slot: int) -> list[Arm]:
    """Chains [M] that an arm may have."""
    if isinstance(prior, JointPrior):
        return [bandit.arms[slot] for bandit in prior.bandits]
    return list(prior.candidates)


# ---------------------------------------------------------------- by kind


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
    averaged: bool  # whether decisions go by means over what arms may be, and not by a draw
    kinds_learnt: int  # how often the laws of kinds were estimated from all arms
    kinds_due: int | None  # tick of the decision for which that is done next; None for never


def known_by_kind(memory: Memory) -> list[KnownKind]:
    """Return what is known of each kind."""
    slots: dict[str, list[int]] = {kind: [] for kind in memory.roster.kinds}
    for slot in range(memory.num_joined):
        if slot not in memory.gone:
            slots[memory.roster.kind_of[slot]].append(slot)
    return [_known(memory, kind, there) for kind, there in slots.items()]


def _known(memory: Memory, kind: str, slots: list[int]) -> KnownKind:
    seen_by_now = memory.seen_by_now
    seen = [slot for slot in slots if slot in seen_by_now]
    found = [posterior(memory, slot) for slot in _evenly_chosen(seen, MOST_LOOKED_AT)]
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
    agent = memory.agent
    episode = agent.episode
    drawn = None if agent.averages else agent.sampled_bandit
    gaps = []
    if drawn is not None:
        for slot in _evenly_chosen(sorted(memory.ever_seen - set(memory.gone)), MOST_LOOKED_AT):
            if slot < len(drawn.arms):
                mean = posterior(memory, slot).mean().active
                gaps.append(float(np.abs(mean - drawn.arms[slot].active).mean()))
    return Learning(
        episode=episode.number,
        began=max(0, episode.start - 1),
        length=episode.length,
        last_ended=episode.last_ended,
        distance=float(np.mean(gaps)) if gaps else None,
        averaged=agent.averages,
        kinds_learnt=agent.kinds_learnt,
        kinds_due=None if agent.kinds_due is None else agent.kinds_due - 1,
    )


def _evenly_chosen(slots: list[int], most: int) -> list[int]:
    """Return evenly chosen ones of many."""
    step = -(-len(slots) // most)
    return slots[:: max(1, step)]


# ---------------------------------------------------------------- over time


@dataclass(frozen=True, eq=False)
class Entropy:
    """Entropy of what was believed, in bits: the mean over arms of a kind that were seen.

    Of many arms, evenly chosen ones are looked at. Under a joint prior it is that of the system.
    """

    kind: str
    arms: int  # looked at
    ticks: IntArray  # [n], the first is -1: before anything was seen
    bits: FloatArray  # [n], with all sightings until then


def entropy_over_time(session: Session) -> list[Entropy]:
    """Return the entropy of each kind that has a finite prior; others have none in bits.

    Where results count less as they grow old there is none: it would have to be told how much each
    of them counted at each tick.
    """
    memory = session.memory
    found: list[Entropy] = []
    fades = memory.settings.learner.get("forget_after") is not None
    if fades or standing(session, REMEMBER):
        return found
    for kind, prior in memory.roster.kinds.items():
        if not isinstance(prior, ArmPrior | JointPrior) or memory.roster.some_always_seen:
            continue
        slots = [
            slot
            for slot in sorted(memory.seen_by_now)
            if memory.roster.kind_of[slot] == kind and slot not in memory.gone
        ]
        if isinstance(prior, ArmPrior):
            slots = _evenly_chosen(slots, MOST_IN_CURVE)
        if slots:
            found.append(_entropy(session, kind, prior, slots))
    return found


def _entropy(
    session: Session, kind: str, prior: ArmPrior | JointPrior, slots: Sequence[int]
) -> Entropy:
    memory = session.memory
    ticks = np.unique(np.linspace(-1, memory.tick, MOST_TICKS).round().astype(np.int64))
    nothing = np.zeros((len(ticks), len(prior.weights)))
    informing = {slot: memory.roster.informing(slot) for slot in slots}
    gains = dict.fromkeys((other for of in informing.values() for other in of), nothing)
    forgotten = _forgotten(session)
    for slot, seen in _sightings(session, list(gains)).items():
        gains[slot] = _gained(memory, prior, slot, seen, ticks, forgotten.get(slot, []))
    if isinstance(prior, JointPrior):
        logs = [_log(prior.weights) + sum(gains.values())]
    else:
        laws: Any = memory.agent.prior
        logs = [
            _log(laws.arms[slot].weights) + sum(gains[other] for other in of)
            for slot, of in informing.items()
        ]
    bits = np.mean([_bits(each) for each in logs], axis=0)
    return Entropy(kind, len(slots), ticks, bits)


def _sightings(session: Session, slots: Sequence[int]) -> dict[int, list[tuple[int, int]]]:
    """Ticks and states of the sightings that were learned from, by slot, in the order of time."""
    marks = ",".join("?" * len(slots))
    rows = session.journal.connection.execute(
        f"SELECT slot, tick, state FROM pull WHERE slot IN ({marks}) AND state IS NOT NULL "
        "AND status <> 'superseded' ORDER BY tick",
        list(slots),
    )
    found: dict[int, list[tuple[int, int]]] = {}
    for slot, tick, state in rows:
        found.setdefault(slot, []).append((tick, state))
    return found


def _forgotten(session: Session) -> dict[int, list[tuple[int, int]]]:
    """When something was forgotten, by slot, and before which tick, in the order of time."""
    found: dict[int, list[tuple[int, int]]] = {}
    for event in standing(session, FORGET):
        for slot in event.body["arms"]:
            found.setdefault(slot, []).append((event.tick, event.body["before"]))
    return found


def _gained(
    memory: Memory, prior: ArmPrior | JointPrior, slot: int, seen: list[tuple[int, int]],
    ticks: IntArray, forgotten: list[tuple[int, int]],
) -> FloatArray:  # fmt: skip
    """Log likelihoods [ticks, M] of what was seen of an arm until each tick, and not forgotten."""
    arms = _chains(prior, slot)
    (state,), (age,) = memory.roster.start(range(slot, slot + 1))
    before, last = memory.joined[slot] - age, state
    cells: dict[tuple[int, int, int], int] = {}
    places = []
    for tick, now in seen:
        cell = (last, tick - before, now)
        places.append((int(np.searchsorted(ticks, tick)), cells.setdefault(cell, len(cells))))
        before, last = tick, now
    counts = np.zeros((len(ticks), len(cells)))
    np.add.at(counts, tuple(np.array(places).T), 1.0)
    gone = 0
    for since, before in forgotten:  # from this tick on it counts no more
        known = sum(tick < before for tick, _ in seen)
        at = int(np.searchsorted(ticks, since))
        for _, number in places[gone:known]:
            counts[at, number] -= 1.0
        gone = max(gone, known)
    active, passive = (np.array([getattr(arm, of) for arm in arms]) for of in ("active", "passive"))
    logs = np.maximum(log_chances(active, passive, *np.array(list(cells)).T), log(LEAST))
    return np.asarray(np.einsum("tc,cm->tm", np.cumsum(counts, axis=0), logs))


def _log(chances: FloatArray) -> FloatArray:
    return logarithms(np.maximum(chances, LEAST))


def _bits(logs: FloatArray) -> FloatArray:
    """Entropy of each row of log weights."""
    weights = exponentials(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    bits: FloatArray = -(weights * _log(weights)).sum(axis=1) / log(2)
    return bits
