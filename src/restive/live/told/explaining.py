"""Why somebody is on the list, or is not: for whoever answers for it, in the operators' words.

What was believed when the list was made is what put the arm there, so results of its tick that
have come in since are told and not counted. Where more is known by now, of earlier ticks, or less,
after a forgetting, that is said, and the list's own numbers beside it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from math import fsum
from typing import Any

import numpy as np

from restive.arguments import counted, shown
from restive.errors import ProblemError
from restive.learn.explain import Explanation, explain
from restive.learn.posterior import weighted_quantile
from restive.live.acts.forgetting import FORGET, REMEMBER, said_of_memory
from restive.live.acts.undoing import acts_since_the_list
from restive.live.journal.events import STANDING, Event
from restive.live.journal.sql_tables import left_with
from restive.live.memory import Memory
from restive.live.session import Session
from restive.live.settings import LEAVE, UNSEEN, Settings
from restive.live.told.learned import known_slot, laws

__all__ = ["Sighting", "Why", "why"]

MOST_SEEN = 5  # sightings that are listed
LOW, HIGH = 0.05, 0.95
REBUILT = "a correction or a rebuild took in all results anew"
CHANGES = {FORGET: "something was forgotten", REMEMBER: "the memory was changed"}
FOLLOWS = "and stays as it was; what follows is known now, so it may not explain the list."


@dataclass(frozen=True)
class Sighting:
    """A state that was seen of an arm."""

    tick: int
    date: str  # "" where ticks have none
    state: str  # its name


@dataclass(frozen=True)
class Why:
    """Why an arm is on the list of a tick, or is not; `str()` says it, `to_json()` has the numbers.

    Belief, expected reward and index are those with which the list was made, unless `known_now`.
    """

    arm: str
    kind: str
    tick: int
    date: str  # "" where ticks have none
    listed: bool
    audit: bool  # it is on the list by an even draw
    available: bool  # it could have been put on the list
    rests: bool  # it could not, since a pull of late has shown no state
    sightings: int  # all that this file has, before this tick
    last: tuple[Sighting, ...]  # of them, the last few
    last_state: str | None  # in which it was last seen; None if nobody has seen it
    elapsed: int | None  # ticks since then
    belief: dict[str, float]  # chance of each state
    low: dict[str, float]  # ends of 90% intervals of these chances
    high: dict[str, float]
    expected: float  # reward of this tick with a pull
    expected_without: float  # and without one
    averaged: bool  # whether indices are means over what arms may be, not those of one draw
    index: float | None  # None where the policy has none
    index_at_mean: float | None  # if the arm were what is believed of it on average
    rank: int | None  # among those who could be put on the list by rank, 1 is the highest
    num_ranked: int  # how many these are
    num_listed: int  # of them on the list
    rival: str | None  # first that is not on the list; for one who is not, the last that is
    rival_index: float | None
    waits: int | None  # ticks until it would be on the list, if the others stayed as they are
    result: str | None  # what has come in for this tick since
    rebuilt: bool  # the list was made before a rebuild; belief and ranks are what is known now
    known_now: bool  # the same, or something was forgotten, or came late, since the list was made
    listed_expected: float | None  # what the list itself says of an arm that is on it
    listed_index: float | None
    forgotten: int | None  # what was seen before this tick is forgotten
    lines: tuple[str, ...]  # all of it in words

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as data for `json.dumps`."""
        found: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return found

    def __str__(self) -> str:
        return "\n".join(self.lines)

    def __repr__(self) -> str:
        return f"Why({shown(self.arm)}, {'' if self.listed else 'not '}listed, tick {self.tick:,})"


def why(session: Session, name: str) -> Why:
    """Explain an arm's place at the last decision."""
    memory = session.memory
    settings, now = memory.settings, memory.open
    slot = known_slot(memory, name)
    if now is None:
        raise ProblemError("nothing has been decided yet, so there is no list to explain")
    decided, since = _decided(session), _events_since(session)
    resting, absent, out = _unavailable(memory, decided.get("out", []), since)
    ranked = np.array(
        [k for k in range(memory.num_joined) if k not in out and k not in now.choice.audit],
        dtype=np.int64,  # also of none
    )
    competes = slot not in out and slot not in now.choice.audit
    found = explain(memory.agent, slot, ranked if competes else np.append(ranked, slot))
    rows = _sightings(session, slot)
    seen = slot in memory.ever_seen
    chances = _chances(memory, slot)
    names = [settings.state_text(state) for state in range(chances.shape[1])]
    low, high = (
        weighted_quantile(chances, memory.agent.posterior(slot).weights, q).tolist()
        for q in (LOW, HIGH)
    )
    before = REBUILT if "kept" in decided else _changed_by(memory, since)
    place = now.choice.arms.index(slot) if slot in now.choice.arms else None
    result = now.results.get(slot, now.instead.get(slot))
    left = left_with(session.journal, memory.gone, [slot]).get(slot)
    if result == UNSEEN and left == memory.tick:
        result = LEAVE
    facts = Why(
        arm=name,
        kind=memory.roster.kind_of[slot],
        tick=memory.tick,
        date=settings.clock.label(memory.tick),
        listed=slot in now.choice.arms,
        audit=slot in now.choice.audit,
        available=slot not in out,
        rests=slot in resting,
        sightings=len(rows),
        last=tuple(rows[-MOST_SEEN:]),
        last_state=settings.state_text(memory.agent.last_seen(slot)[0]) if seen else None,
        elapsed=found.elapsed if seen else None,
        belief=dict(zip(names, found.belief.values(), strict=True)),
        low=dict(zip(names, low, strict=True)),
        high=dict(zip(names, high, strict=True)),
        expected=found.expected_reward,
        expected_without=_expected_without(memory, slot, found),
        averaged=found.averaged,
        index=found.index,
        index_at_mean=found.index_at_mean,
        rank=found.rank if competes else None,
        num_ranked=len(ranked),
        num_listed=len(now.choice.arms) - len(now.choice.audit),
        rival=_rival(memory, found) if competes else None,
        rival_index=found.rival_index if competes else None,
        waits=_waits(found) if competes else None,
        result=None if result is None else settings.outcome_text(result),
        rebuilt="kept" in decided,
        known_now=bool(before),
        listed_expected=None if place is None else now.choice.expected[place],
        listed_index=None if place is None else now.choice.index[place],
        forgotten=memory.forgotten.get(slot),
        lines=(),
    )
    lines = _lines(facts, settings, memory.gone.get(slot), before, back=slot in absent)
    return Why(**vars(facts) | {"lines": tuple(lines)})


def _decided(session: Session) -> dict[str, Any]:
    """Return what was journaled with the last decision."""
    (body,) = session.journal.connection.execute(
        f"SELECT body FROM event WHERE kind = 'decide' AND tick = ? AND {STANDING} "
        "ORDER BY seq DESC LIMIT 1",
        (session.memory.tick,),
    ).fetchone()
    found: dict[str, Any] = json.loads(body)
    return found


def _events_since(session: Session) -> list[Event]:
    """Return the events of acts that came since the list was made, and stand."""
    return [one for own in acts_since_the_list(session).values() for one in own]


def _changed_by(memory: Memory, since: list[Event]) -> str:
    """Say what has changed what is known of earlier ticks, since the list; "" if nothing has."""
    words = memory.settings.words
    for one in reversed(since):
        if one.kind in CHANGES:
            return CHANGES[one.kind]
        if one.kind in ("late", "override") and one.tick < memory.tick:
            unused = set(one.body.get("superseded", ()))
            told = zip(one.body["arms"], one.body["results"], strict=True)
            if any(isinstance(state, int) and slot not in unused for slot, state in told):
                return f"results of earlier {words.many('tick')} came"
    return ""


def _unavailable(
    memory: Memory, out: list[int], since: list[Event]
) -> tuple[set[int], set[int], set[int]]:
    """Return who rested, who had left, and all who could not be put on the list."""
    assert memory.open is not None
    listed = {*memory.open.choice.arms}
    moved = {
        kind: {slot for one in since if one.kind == kind for slot in one.body["arms"]}
        for kind in ("leave", "return")
    }
    gone = (memory.gone.keys() | moved["return"]) - moved["leave"]  # when the list was made
    resting = {*memory.resting(memory.tick, len(listed), out)} - listed
    return resting, gone, (gone | resting).union(out) - listed


def _sightings(session: Session, slot: int) -> list[Sighting]:
    """Return what was seen of an arm before this tick, in the order of time."""
    settings = session.memory.settings
    rows = session.journal.connection.execute(
        "SELECT tick, state FROM pull WHERE slot = ? AND tick < ? AND state IS NOT NULL "
        "ORDER BY tick",
        (slot, session.memory.tick),
    )
    return [
        Sighting(tick, settings.clock.label(tick), settings.state_text(state))
        for tick, state in rows
    ]


def _chances(memory: Memory, slot: int) -> Any:
    """Chance [M, S] of each state under each chain that the arm may have."""
    found = memory.agent.posterior(slot)
    if memory.roster.always_seen(slot):  # it is known
        return np.repeat(memory.agent.belief(slot)[None], len(found.weights), axis=0)
    return laws(memory, found, slot)


def _expected_without(memory: Memory, slot: int, found: Explanation) -> float:
    """Return the reward that is expected of an arm that is not pulled."""
    pays = memory.agent.prior.typical(slot).passive_rewards
    return fsum(chance * pay for chance, pay in zip(found.belief.values(), pays, strict=True))


def _rival(memory: Memory, found: Explanation) -> str | None:
    return None if found.rival is None else memory.roster.names[found.rival]


def _waits(found: Explanation) -> int | None:
    return None if found.pulled_at_age is None else found.pulled_at_age - found.elapsed


# ---------------------------------------------------------------- in words


def _lines(it: Why, settings: Settings, left: int | None, before: str, back: bool) -> list[str]:
    words = settings.words
    verdict = f"is {'' if it.listed else 'not '}on the list for {words.when(it.tick, it.date)}."
    first = [f"{it.arm} {verdict}"]
    if left is not None:
        first = [f"{it.arm} left in {words.when(left, settings.clock.label(left))}."]
        if it.listed:
            first.append(f"The list for {words.when(it.tick, it.date)} was made before that.")
    lines = [
        *first,
        *([f"The list was made before {before} {FOLLOWS}"] if it.known_now else []),
        *_on_the_list(it, settings),
        _seen(it, settings),
        *_forgotten(it, settings),
        _believed(it),
        _expected(it, settings),
    ]
    if left is not None:
        pass  # said first: the ranks are of those who are here
    elif it.rests:
        lines.append(f"{it.arm} rests after a {words.pull} without a result.")
    elif back:
        lines.append(f"{it.arm} had left when the list was made, and can be on the next one.")
    elif not it.available:
        lines.append(f"{it.arm} was said to be unavailable.")
    elif it.audit:
        lines.append(
            f"It was drawn evenly among all {words.many('arm')}, whatever is believed: this is how "
            f"{words.many('arm')} are looked at whom the ranking avoids."
        )
    elif it.index is None:
        lines.append("This file's rule looks at all together, so nobody has a rank of his own.")
    else:
        lines += _standing(it, settings)
    if it.result is not None:
        lines.append(f"Since the list was made its result has come in: {it.result}.")
    return lines


def _on_the_list(it: Why, settings: Settings) -> list[str]:
    """With which numbers the list was made, where those that follow are others."""
    if not it.known_now or it.rebuilt or it.listed_expected is None:
        return []
    words = settings.words
    index = "" if it.listed_index is None else f", priority {it.listed_index:.3f}"
    return [
        f"When the list was made: {it.listed_expected:.2f} {words.reward} expected of a "
        f"{words.pull}{index}."
    ]


def _seen(it: Why, settings: Settings) -> str:
    words = settings.words
    if it.last_state is None:
        kind = f"{words.many('arm')} of kind {it.kind!r}"
        return f"Never seen yet, so what we believe is what {kind} are like."
    assert it.elapsed is not None
    ago = f"{words.count(it.elapsed, 'tick')} ago"
    if not it.last:
        return f"Last seen {ago}, before this file began: {it.last_state}."
    listed = ", ".join(
        f"{one.state} ({one.date or words.when(one.tick)})" for one in reversed(it.last)
    )
    first = f"Seen {counted(it.sightings, 'time')}, last {ago}"
    more = ", ..." if it.sightings > len(it.last) else ""
    none = it.forgotten is not None and it.last[-1].tick < it.forgotten
    return f"{first}: {listed}{more}{'; none of this counts any more' if none else ''}."


def _forgotten(it: Why, settings: Settings) -> list[str]:
    """What of it does not count any more, or counts less."""
    lines = []
    if it.forgotten is not None:
        when = settings.words.when(it.forgotten, settings.clock.label(it.forgotten))
        lines.append(f"What was seen before {when} is forgotten.")
    if settings.learner.get("forget_after") is not None:
        said = said_of_memory(settings)
        lines.append(f"{said[0].upper()}{said[1:]}.")
    return lines


def _expected(it: Why, settings: Settings) -> str:
    """What this tick is expected to pay. Where arms pay anyway, that is not what a pull adds."""
    words = settings.words
    if it.expected_without == 0:
        return f"A {words.pull} is expected to bring {it.expected:.2f} {words.reward}."
    now = f"This {words.tick} is expected to bring {it.expected:.2f} {words.reward}"
    if it.expected_without == it.expected:
        later = f"what a {words.pull} changes shows in the {words.many('tick')} after"
        return f"{now} with a {words.pull} or without; {later}."
    return f"{now} with a {words.pull}, and {it.expected_without:.2f} without."


def _believed(it: Why) -> str:
    """What is believed, and how sure that is: of two states the last one says it all."""
    names = list(it.belief)[-1:] if len(it.belief) == 2 else list(it.belief)
    parts = [
        f"{name} {it.belief[name]:.0%} (90% sure: {it.low[name]:.0%} to {it.high[name]:.0%})"
        for name in names
    ]
    when = "now" if it.known_now else "when the list was made"
    return f"Believed {when}: {', '.join(parts)}."


def _standing(it: Why, settings: Settings) -> list[str]:
    """Where it ranks, and what would change that."""
    words = settings.words
    count = f"{it.num_listed:,} {'is' if it.num_listed == 1 else 'are'}"
    among = f"{words.count(it.num_ranked, 'arm')} who can be on it; {count} on the list by rank"
    if it.known_now:
        ranked = words.count(it.num_ranked, "arm")
        return [_priority(it), f"By what is known now, rank {it.rank} of {ranked}."]
    lines = [_priority(it), f"Rank {it.rank} of {among}."]
    if it.rival is None:
        return lines
    equal = ""
    if it.index == it.rival_index:
        equal = f" Who has the same comes in the order in which {words.many('arm')} joined."
    if it.listed:
        lines.append(f"First not on the list: {it.rival}, with {it.rival_index:.3f}.{equal}")
        return lines
    last = f"Last on the list: {it.rival}, with {it.rival_index:.3f}.{equal}"
    if it.waits is None:
        others = f"but others may fall behind: {it.arm} can be on the next list."
        return [*lines, f"{last} Waiting alone does not lift {it.arm} that far, {others}"]
    if it.waits == 0:
        return [*lines, last]
    wait = words.count(it.waits, "tick")
    return [*lines, f"{last} If nothing else changes, {it.arm} is on it in {wait}."]


def _priority(it: Why) -> str:
    """By which number arms are ranked."""
    over = f"on average over all that {it.arm} may be"
    if not it.averaged:
        over = "under the possibility that is tried now"
    mean = ""
    if it.index_at_mean is not None:
        mean = f", {it.index_at_mean:.3f} for what is believed on average"
    return f"Priority {it.index:.3f} {over}{'' if it.averaged else mean}."
