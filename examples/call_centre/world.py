"""A call centre, simulated without restive: who is there, what a call does, what becomes known.

A programme follows people who are engaged or not, and counts the weeks in which they are. Each week
it calls a few. A call that reaches its person shows how they are doing *this* week, and moves them
by their chain of called weeks instead of the other one. A call that reaches nobody does nothing.
What came of a call is known some weeks later; until then its person is not called again.

Nobody has been seen before the first week: people start as their own chain leaves them in the long
run, and so do those who join later. Luck belongs to (seed, person, week) and not to whoever makes
the calls, so that two rules differ by what they do alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import isinf
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]

NEVER = -1  # the week of what has not happened
NOBODY = -1  # the state that a call shows if it reaches nobody
BAD, GOOD = 0, 1


@dataclass(frozen=True)
class World:
    """What a programme is like. The defaults are the main world of the study.

    A type is (p01, p11 if not called; p01, p11 if called), probabilities to be engaged next week.
    """

    types: tuple[tuple[float, float, float, float], ...] = (
        (0.08, 0.75, 0.45, 0.95),  # persuadable
        (0.30, 0.92, 0.38, 0.94),  # self-motivated
        (0.04, 0.60, 0.07, 0.66),  # lost
    )
    shares: tuple[tuple[float, ...], ...] = ((0.45, 0.35, 0.20), (0.15, 0.45, 0.40))  # [kind][type]
    concentration: float = 20.0  # of the Betas around a type's numbers; inf for no spread
    people: int = 2000  # in the first week, of all kinds alike
    calls: int = 50  # a week
    weeks: int = 60
    joining: float = 0.3  # more people, as a share of the first, spread evenly over the weeks
    leaving: float = 0.005  # hazard of a week
    reach: float = 0.7  # probability that a call reaches its person
    late: int = 1  # weeks that a result is late; 0 if it is known before the next calls
    wrong: float = 0.0  # share of results that are written down as their opposite
    tiring: float = 0.0  # share of a call's effect that each call of late has taken away
    tired_weeks: int = 0  # how long a call is of late
    shock_week: int = NEVER  # when everyone's p01 falls, called or not
    shock_weeks: int = 0  # for how long
    shock_factor: float = 1.0  # to this share of what it was

    def __post_init__(self) -> None:
        """Say so where numbers make no world."""
        if any(len(kind) != len(self.types) or abs(sum(kind) - 1) > 1e-9 for kind in self.shares):
            raise ValueError("shares: each kind needs a share of every type, 1 in all")
        if min(self.people, self.weeks) < 1 or min(self.calls, self.late) < 0:
            raise ValueError("people and weeks must be 1 at least, calls and late 0")

    @property
    def newcomers(self) -> int:
        """How many people join after the first week."""
        return round(self.people * self.joining)


MAIN = World()
VARIANTS = {
    "main": MAIN,
    "small": replace(MAIN, people=200, calls=5),
    "large": replace(MAIN, people=20_000, calls=500),
    "tiring": replace(MAIN, tiring=0.5, tired_weeks=8),
    "shock": replace(MAIN, shock_week=30, shock_weeks=10, shock_factor=0.5),
    "wrong": replace(MAIN, wrong=0.05),
}
DRAWN = 12  # worlds drawn-0, drawn-1, ..., on which learners' defaults are chosen


def world_named(name: str) -> World:
    """Return one of `VARIANTS`, or the world drawn-N."""
    if name in VARIANTS:
        return VARIANTS[name]
    head, _, number = name.rpartition("-")
    if head == "drawn" and number.isdecimal():
        return drawn_world(int(number))
    raise SystemExit(f"there is no world {name!r}; try {', '.join(VARIANTS)}, or drawn-0, drawn-1")


def drawn_world(seed: int) -> World:
    """Return a world whose types, shares and rates are drawn; a call never hurts in any.

    Half of the types gain much from a call, the others next to nothing.
    """
    rng = np.random.default_rng([seed, 24])
    types = []
    for _ in range(rng.integers(2, 6)):
        p01 = rng.uniform(0.02, 0.4)
        p11 = rng.uniform(max(p01, 0.4), 0.97)
        gain = rng.uniform(0.2, 0.8) if rng.random() < 0.5 else rng.uniform(0.0, 0.15)
        called = (p01 + gain * (1 - p01), p11 + gain * (1 - p11))
        types.append(tuple(round(float(p), 3) for p in (p01, p11, *called)))
    kinds = [rng.dirichlet(np.ones(len(types))) for _ in range(rng.integers(1, 5))]
    people = int(rng.integers(5, 21)) * 100
    return World(
        types=tuple(types),  # type: ignore[arg-type]
        shares=tuple(tuple(float(share) for share in kind) for kind in kinds),
        concentration=float(rng.integers(8, 61)),
        people=people,
        calls=round(people * rng.uniform(0.01, 0.06)),
        weeks=int(rng.integers(26, 105)),
        joining=round(rng.uniform(0.0, 0.6), 2),
        leaving=round(rng.uniform(0.0, 0.015), 4),
        reach=round(rng.uniform(0.5, 0.95), 2),
        late=int(rng.integers(0, 3)),
    )


@dataclass(frozen=True)
class People:
    """Everyone who is ever there [P], the first ones first. Only the oracle may look at chains."""

    kind: Ints  # [P]
    alone: Floats  # [P, 2] p01 and p11 of weeks without a call
    called: Floats  # [P, 2] those of weeks with a call that reaches them
    joins: Ints  # [P] first week
    leaves: Ints  # [P] first week in which they are gone

    @property
    def settled(self) -> Floats:
        """How likely each is engaged if nobody ever calls [P]."""
        p01, p11 = self.alone.T
        return p01 / (p01 + 1 - p11)


def draw_people(world: World, seed: int) -> People:
    """Draw everyone who is ever in a world."""
    rng = np.random.default_rng([seed, 0])
    count = world.people + world.newcomers
    kind = rng.integers(len(world.shares), size=count)
    luck = rng.random(count)
    totals = np.cumsum(world.shares, axis=1)[kind]  # [P, types]
    # the last total may miss 1 by rounding
    which = np.minimum((luck[:, None] >= totals).sum(axis=1), len(world.types) - 1)
    numbers = np.array(world.types)[which]  # [P, 4]
    if not isinf(world.concentration):
        numbers = rng.beta(world.concentration * numbers, world.concentration * (1 - numbers))
    alone = numbers[:, :2]
    called = np.maximum(alone, numbers[:, 2:])  # a call never hurts
    later = 1 + np.arange(world.newcomers) * (world.weeks - 1) // max(1, world.newcomers)
    joins = np.append(np.zeros(world.people, dtype=np.int64), later)
    gone = _luck(seed, "leaves", count, world.weeks) < world.leaving
    gone &= np.arange(world.weeks) > joins[:, None]  # they stay for a week at least
    leaves = np.where(gone.any(axis=1), gone.argmax(axis=1), world.weeks)
    return People(kind, alone, called, joins, leaves)


@dataclass(frozen=True)
class Report:
    """What came of a call."""

    person: int
    week: int  # of the call
    state: int  # in that week; NOBODY if the call did not reach them


@dataclass
class Known:
    """What the programme knows about everyone [P]: all that a rule may look at."""

    kind: Ints
    joined: Ints  # week
    called: Ints  # week of the last call; NEVER
    seen: Ints  # week of the last sighting that is known; NEVER
    state: Ints  # in that week; NOBODY
    bad_calls: Ints  # how many of the last sightings, without a break, were bad
    news: list[Report] = field(default_factory=list)  # that came in since the last calls

    def take_in(self, news: list[Report]) -> None:
        """Learn what came of earlier calls."""
        self.news = news
        for report in news:
            if report.state == NOBODY:
                continue
            k = report.person
            self.seen[k], self.state[k] = report.week, report.state
            self.bad_calls[k] = self.bad_calls[k] + 1 if report.state == BAD else 0


@dataclass(frozen=True)
class Programme:
    """What is known before the first week: how much there is to do, and everyone's kind."""

    calls: int
    weeks: int
    kind: Ints  # [P]


# (week, the people who can be called, what is known) -> the people to call, `calls` at the most.
# Those who have not joined, have left, or whose result is due cannot be called.
Rule: TypeAlias = Callable[[int, Ints, Known], Ints]


@dataclass(frozen=True)
class Outcome:
    """What a rule has come to."""

    engaged: Ints  # [weeks] people who were
    expected: Floats  # [weeks] their mean, given what the calls before showed
    reports: list[Report]  # of all calls, as they came in or would have


def programme_of(world: World, people: People) -> Programme:
    """Return what a rule is told before the first week."""
    return Programme(world.calls, world.weeks, people.kind)


def run(world: World, people: People, seed: int, rule: Rule) -> Outcome:
    """Let a rule make the calls of all weeks."""
    count, weeks = len(people.kind), world.weeks
    moves, answers, slips = (
        _luck(seed, what, count, weeks) for what in ("moves", "answers", "slips")
    )
    state = (_luck(seed, "starts", count, 1)[:, 0] < people.settled).astype(np.int64)
    never = np.full(count, NEVER)
    known = Known(
        people.kind, people.joins, never.copy(), never.copy(), np.full(count, NOBODY),
        np.zeros(count, dtype=np.int64),
    )  # fmt: skip
    reached = np.zeros((count, weeks), dtype=bool)
    engaged = np.zeros(weeks, dtype=np.int64)
    hope, expected = people.settled, np.zeros(weeks)
    reports: list[list[Report]] = []  # by week of the call
    for week in range(weeks):
        here = (people.joins <= week) & (week < people.leaves)
        known.take_in(reports[week - 1 - world.late] if week > world.late else [])
        due = (known.called != NEVER) & (known.called >= week - world.late)
        callable_now = np.flatnonzero(here & ~due)
        chosen = _checked(rule(week, callable_now, known), callable_now, world.calls)
        known.called[chosen] = week
        engaged[week], expected[week] = state[here].sum(), hope[here].sum()
        reached[chosen, week] = answers[chosen, week] < world.reach
        shown = np.where(slips[:, week] < world.wrong, 1 - state, state)
        shown[~reached[:, week]] = NOBODY
        reports.append([Report(int(k), week, int(shown[k])) for k in chosen])
        chance = _chance_of_good(world, people, reached, week)
        hope = np.where(reached[:, week], state, hope)  # who is reached is seen
        hope = np.where(here, (1 - hope) * chance[:, BAD] + hope * chance[:, GOOD], hope)
        chance_now = chance[np.arange(count), state]
        state = np.where(here, moves[:, week] < chance_now, state).astype(np.int64)
    return Outcome(engaged, expected, [report for each in reports for report in each])


@dataclass(frozen=True)
class History:
    """A log of another programme: everyone's kind, and what came of all calls."""

    kind: Ints  # [P]
    reports: list[Report]


def history(world: World, seed: int, people: int = 500, running: int = 6) -> History:
    """Return the log of a year of another programme, with its own people, each called in a row.

    As many as there are calls are called for `running` weeks, then the next, until all were. No
    result is late, nobody joins or leaves, and there is no shock.
    """
    weeks = -(-people // world.calls) * running
    past = replace(
        world, people=people, weeks=weeks, joining=0.0, leaving=0.0, late=0, shock_weeks=0
    )
    seed += 1_000_000  # nobody's luck of the study itself

    def block(week: int, everyone: Ints, known: Known) -> Ints:
        first = week // running * world.calls
        return everyone[first : first + world.calls]

    others = draw_people(past, seed)
    return History(others.kind, run(past, others, seed, block).reports)


def _chance_of_good(world: World, people: People, reached: Flags, week: int) -> Floats:
    """Return how likely each is engaged next week [P, 2], by the state now."""
    chance = people.alone.copy()
    now = np.flatnonzero(reached[:, week])
    effect = people.called[now] - people.alone[now]
    if world.tiring:
        of_late = reached[now, max(0, week - world.tired_weeks) : week].sum(axis=1)
        effect = effect * (1 - world.tiring) ** of_late[:, None]
    chance[now] += effect
    if world.shock_week <= week < world.shock_week + world.shock_weeks:
        chance[:, BAD] *= world.shock_factor
    return chance


def _checked(chosen: Ints, callable_now: Ints, calls: int) -> Ints:
    """Return whom a rule calls, or say what it must not do."""
    chosen = np.asarray(chosen, dtype=np.int64)
    if len(chosen) > calls:
        raise ValueError(f"the rule calls {len(chosen)} people; there are {calls} calls a week")
    if len(np.unique(chosen)) < len(chosen):
        raise ValueError("the rule calls somebody twice in a week")
    strangers = np.setdiff1d(chosen, callable_now)
    if len(strangers):
        raise ValueError(
            f"person {strangers[0]} cannot be called now: not here, or a result is due"
        )
    return chosen


STREAMS = ("people", "leaves", "starts", "moves", "answers", "slips")


def _luck(seed: int, what: str, people: int, weeks: int) -> Floats:
    """Return even numbers in [0, 1) by person and week: the same whoever is called."""
    rng = np.random.default_rng([seed, STREAMS.index(what)])
    return rng.random((people, weeks))
