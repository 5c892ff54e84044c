"""What a live agent's file says, as values: decisions, arms, status, tables."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, shown, suggestion
from restive.errors import ProblemError
from restive.learn.posterior import ArmPosterior
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import JointPrior
from restive.live.answers import Decision
from restive.live.clock import moment
from restive.live.memory import Memory
from restive.live.session import Session

__all__ = [
    "MOST_PAGE",
    "ORDERS",
    "ArmRow",
    "arm_row",
    "arms",
    "belief",
    "decision",
    "decision_or_none",
    "evenly_chosen",
    "history",
    "known_slot",
    "posterior",
    "prior_of",
    "results",
    "table",
]

FloatArray = NDArray[np.float64]

MOST_PAGE = 1000
ORDERS = ("name", "index", "pulls", "age", "belief")  # of a list of arms
OURS = "expected IS NOT NULL"  # pulls that were decided, as opposed to pulled instead


@dataclass(frozen=True)
class ArmRow:
    """An arm, as an operator sees it in a list."""

    name: str
    kind: str
    joined: int
    left: int | None
    waiting: bool  # until the next decision
    last_state: int | None  # None: never seen
    last_tick: int | None
    index: float | None  # now, under the sampled system
    good: float | None  # probability of the last state, now
    pulls: int  # in ticks that are over


def decision(session: Session, tick: int) -> Decision:
    """Return the decision of a tick that has one."""
    found = decision_or_none(session, tick)
    assert found is not None
    return found


def decision_or_none(session: Session, tick: int) -> Decision | None:
    """Return the decision of a tick; None if there is none."""
    memory, execute = session.memory, session.journal.connection.execute
    names, clock = memory.roster.names, memory.settings.clock
    now = memory.open
    if now is not None and now.tick == tick:
        choice = now.choice
        slots, audit, index = choice.arms, choice.audit, choice.index
        expected = choice.expected
    else:
        if not execute(
            "SELECT 1 FROM event WHERE kind = 'decide' AND tick = ?", (tick,)
        ).fetchone():
            return None
        found = execute(
            f"SELECT slot, expected, audit FROM pull WHERE tick = ? AND {OURS} ORDER BY slot",
            (tick,),
        ).fetchall()
        slots, expected = [row[0] for row in found], [row[1] for row in found]
        audit, index = [slot for slot, _, drawn in found if drawn], [None] * len(found)
    return Decision(
        tick=tick,
        arms=tuple([names[slot] for slot in slots]),
        expected=tuple(expected),
        index=tuple(index),
        audit=tuple([names[slot] for slot in audit]),
        begins=clock.begins(tick),
        expires=clock.begins(tick + 1) if clock.kind == "wall" else None,
    )


def results(session: Session, tick: int) -> dict[str, int | str]:
    """Return the state of each pulled arm of a tick, or what else became of it."""
    names = session.memory.roster.names
    rows = session.journal.connection.execute(
        "SELECT slot, status, state FROM pull WHERE tick = ? ORDER BY slot", (tick,)
    )
    return {names[slot]: status if state is None else state for slot, status, state in rows}


def known_slot(memory: Memory, name: str) -> int:
    """Return the slot of an arm that has joined."""
    slot = memory.roster.slot(name)
    if slot >= memory.agent.task.num_arms:
        raise ProblemError(f"arm {name!r} joins with the next decision; nothing is known of it yet")
    return slot


def belief(memory: Memory, slot: int) -> FloatArray:
    """Law of an arm's state at the tick of the last decision."""
    seen = {} if memory.open is None else memory.open.sightings
    if slot in seen:
        law: FloatArray = np.zeros(memory.roster.num_states(slot))
        law[seen[slot]] = 1.0
        return law
    if memory.roster.joint is None or not seen:
        return memory.agent.belief(slot)
    found = posterior(memory, slot)
    law = found.weights @ _laws(memory, found, slot)
    law /= law.sum()
    return law


def posterior(memory: Memory, slot: int) -> ArmPosterior:
    """Return what is believed of an arm, with the results of the open tick taken in."""
    found = memory.agent.posterior(slot)
    seen = {} if memory.open is None else memory.open.sightings
    weights = found.weights
    for arm, state in seen.items():
        if arm == slot or memory.roster.joint is not None:
            chains = found if arm == slot else memory.agent.posterior(arm)
            weights = weights * _laws(memory, chains, arm)[:, state]
    if weights is found.weights:
        return found
    return ArmPosterior(found.active, found.passive, weights / weights.sum())


def prior_of(memory: Memory, slot: int) -> ArmPosterior:
    """Return what was believed of an arm's kind before anything was seen."""
    prior = memory.roster.kinds[memory.roster.kind_of[slot]]
    if isinstance(prior, DirichletArmPrior):
        return prior.particles()
    chains = (
        [bandit.arms[slot] for bandit in prior.bandits]
        if isinstance(prior, JointPrior)
        else prior.candidates
    )
    active, passive = (np.array([getattr(arm, name) for arm in chains])
                       for name in ("active", "passive"))  # fmt: skip
    return ArmPosterior(active, passive, np.array(prior.weights), states=chains[0].states)


def evenly_chosen(slots: list[int], most: int) -> list[int]:
    """Return evenly chosen ones of many."""
    step = -(-len(slots) // most)
    return slots[:: max(1, step)]


def _chances_of_the_top(memory: Memory) -> FloatArray:
    """Probability of the last state of each arm now, as `belief` has it."""
    slots = range(memory.agent.task.num_arms)
    seen = {} if memory.open is None else memory.open.sightings
    if memory.roster.joint is not None and seen:
        return np.array([belief(memory, slot)[-1] for slot in slots])
    chances = np.array([law[-1] for law in memory.agent.beliefs(list(slots))])
    for slot in seen:
        chances[slot] = belief(memory, slot)[-1]
    return chances


def _laws(memory: Memory, chains: ArmPosterior, slot: int) -> FloatArray:
    """Law [M, S] of an arm's state at the open tick, under each chain."""
    state, time = memory.agent.last_seen(slot)
    powers = np.linalg.matrix_power(chains.passive, memory.agent.time - time - 1)
    laws: FloatArray = (chains.active[:, None, state] @ powers)[:, 0]
    return laws


def history(session: Session, slot: int, limit: int) -> list[dict[str, Any]]:
    """Return the last pulls of an arm, in the order of time."""
    columns = ("tick", "status", "state", "audit", "expected")
    rows = session.journal.connection.execute(
        "SELECT tick, status, state, audit, expected FROM pull WHERE slot = ? "
        "ORDER BY tick DESC LIMIT ?",
        (slot, limit),
    ).fetchall()
    label = session.memory.settings.clock.label
    return [{"label": label(row[0]), **dict(zip(columns, row, strict=True))} for row in rows[::-1]]


def arm_row(session: Session, slot: int) -> ArmRow:
    """Return an arm as an operator sees it."""
    memory = session.memory
    waiting = slot >= memory.agent.task.num_arms
    state = tick = index = good = None
    if not waiting:
        now = {} if memory.open is None else memory.open.sightings
        if slot in now:
            state, tick = now[slot], memory.tick
        elif slot in memory.ever_seen:
            state, time = memory.agent.last_seen(slot)
            tick = time - 1
        good = float(belief(memory, slot)[-1])
        if memory.tick >= 0:
            (value,) = memory.agent.index_of([slot])
            index = None if isnan(value) else value
    return ArmRow(
        name=memory.roster.names[slot],
        kind=memory.roster.kind_of[slot],
        joined=memory.joined[slot],
        left=memory.gone.get(slot),
        waiting=waiting,
        last_state=state,
        last_tick=tick,
        index=index,
        good=good,
        pulls=memory.pulls.get(slot, 0),
    )


def arms(session: Session, after: str | int | None, limit: int, by: str) -> list[ArmRow]:
    """Return a page of arms."""
    limit = checked_count(limit, "limit", 1, MOST_PAGE)
    memory = session.memory
    if by == "name":
        found = session.journal.connection.execute(
            "SELECT slot FROM arm WHERE name > ? ORDER BY name LIMIT ?",
            ("" if after is None else str(after), limit),
        )
        return [arm_row(session, slot) for (slot,) in found]
    if by not in ORDERS:
        raise ProblemError(f"by must be one of {', '.join(ORDERS)}, got {shown(by)}")
    skipped = 0 if after is None else checked_count(after, "after", 0)
    urgency = np.full(len(memory.roster), -np.inf)
    known = memory.agent.task.num_arms
    if by == "pulls":
        urgency[list(memory.pulls)] = list(memory.pulls.values())
    elif by == "age":
        urgency[:known] = memory.agent.belief_state.elapsed
    elif by == "belief":
        urgency[:known] = _chances_of_the_top(memory)
    elif memory.tick >= 0:
        urgency[:known] = np.nan_to_num(memory.agent.index(), nan=-np.inf)
    urgency[list(memory.gone)] = -np.inf
    order = np.argsort(-urgency, kind="stable")
    return [arm_row(session, int(slot)) for slot in order[skipped : skipped + limit]]


TABLES = {
    "pulls": "SELECT tick, name AS arm, kind, status, state, audit, expected, recorded "
    "FROM pull JOIN arm USING (slot) JOIN prior ON arm.prior = prior.id "
    "ORDER BY tick, slot",
    "events": "SELECT seq, kind, tick, at, request, actor, body, hex(digest) AS digest FROM event "
    "ORDER BY seq",
    "arms": 'SELECT name AS arm, kind, joined, "left" FROM arm JOIN prior ON arm.prior = prior.id '
    "ORDER BY slot",
}


def table(session: Session, name: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows of a table."""
    if name == "beliefs":
        return _beliefs(session)
    if name not in TABLES:
        raise ProblemError(
            f"there is no table {shown(name)}; {suggestion(name, [*TABLES, 'beliefs'])}"
        )
    cursor = session.journal.connection.execute(TABLES[name])
    columns = [column[0] for column in cursor.description]
    if name != "events":
        return columns, cursor.fetchall()
    rows = [(*row[:3], moment(row[3]).isoformat(), *row[4:]) for row in cursor]
    return columns, rows


def _beliefs(session: Session) -> tuple[list[str], list[tuple[Any, ...]]]:
    memory = session.memory
    columns = ["arm", "kind", "last_state", "last_tick"]
    columns += [f"belief_{state}" for state in range(memory.roster.most_states)]
    rows = []
    for slot in range(memory.agent.task.num_arms):
        if slot in memory.gone:
            continue
        row = arm_row(session, slot)
        law = [*belief(memory, slot).tolist(), *[None] * memory.roster.most_states]
        rows.append(
            (row.name, row.kind, row.last_state, row.last_tick, *law[: memory.roster.most_states])
        )
    return columns, rows
