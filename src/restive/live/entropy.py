"""How uncertain a live agent was about its arms, tick by tick.

What was seen of an arm until a tick decides what was believed of it then, so the past needs no
record of its own: the likelihoods of the sightings until each tick are multiplied anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.live.memory import Memory
from restive.live.reading import evenly_chosen
from restive.live.session import Session
from restive.problem.arm import Arm

__all__ = ["Entropy", "entropy_over_time"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

MOST_TICKS = 60
MOST_ARMS = 30  # of a kind
LEAST = 1e-300  # likelihood, below which a chain is as good as ruled out


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
    """Return the entropy of each kind that has a finite prior; others have none in bits."""
    memory = session.memory
    found = []
    for kind, prior in memory.roster.kinds.items():
        if not isinstance(prior, ArmPrior | JointPrior):
            continue
        slots = [
            slot
            for slot in sorted(memory.seen)
            if memory.roster.kind_of[slot] == kind and slot not in memory.gone
        ]
        if isinstance(prior, ArmPrior):
            slots = evenly_chosen(slots, MOST_ARMS)
        if slots:
            found.append(_entropy(session, kind, prior, slots))
    return found


def _entropy(
    session: Session, kind: str, prior: ArmPrior | JointPrior, slots: Sequence[int]
) -> Entropy:
    memory = session.memory
    ticks = np.unique(np.linspace(-1, memory.tick, MOST_TICKS).round().astype(np.int64))
    gains = {slot: np.zeros((len(ticks), len(prior.weights))) for slot in slots}
    for slot, seen in _sightings(session, slots).items():
        gains[slot] = _gained(memory, prior, slot, seen, ticks)
    if isinstance(prior, JointPrior):
        logs = [_log(prior.weights) + sum(gains.values())]
    else:
        laws: Any = memory.agent.prior
        logs = [_log(laws.arms[slot].weights) + gains[slot] for slot in slots]
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


def _gained(
    memory: Memory, prior: ArmPrior | JointPrior, slot: int, seen: list[tuple[int, int]],
    ticks: IntArray,
) -> FloatArray:  # fmt: skip
    """Log likelihoods [ticks, M] of what was seen of an arm until each tick."""
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
    logs = np.array([_log_likelihoods(arms, cell) for cell in cells])
    gained: FloatArray = np.cumsum(counts, axis=0) @ logs
    return gained


def _chains(prior: ArmPrior | JointPrior, slot: int) -> list[Arm]:
    if isinstance(prior, JointPrior):
        return [bandit.arms[slot] for bandit in prior.bandits]
    return list(prior.candidates)


def _log_likelihoods(arms: Sequence[Arm], cell: tuple[int, int, int]) -> FloatArray:
    """Log probabilities [M] of a state, so many steps after another."""
    last, age, now = cell
    active = np.array([arm.active[last] for arm in arms])
    powers = np.linalg.matrix_power(np.array([arm.passive for arm in arms]), age - 1)
    return _log(np.einsum("mi,mi->m", active, powers[:, :, now]))


def _log(chances: FloatArray) -> FloatArray:
    return np.log(np.maximum(chances, LEAST))


def _bits(logs: FloatArray) -> FloatArray:
    """Entropy of each row of log weights."""
    weights = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    bits: FloatArray = -(weights * np.log2(np.maximum(weights, LEAST))).sum(axis=1)
    return bits
