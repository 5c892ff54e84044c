"""Whether the arms of a live agent change, and how long it should remember: of what it has seen.

It is what `restive fit` says of a log, with an arm's own prior as its law. To stay quick with long
files it looks at evenly chosen arms, as many as cost about a quarter of a second; so nothing needs
to be kept, and a file says the same whoever opens it.
"""

from __future__ import annotations

import numpy as np

from restive.learn.priors.independent import IndependentPrior
from restive.live.session import Session
from restive.live.settings import Settings
from restive.logs.forgetting import ForgettingAdvice, Sightings, laws_of, measured_forgetting
from restive.logs.forgetting_words import forgetting_sentence

__all__ = ["forgetting_line", "remembered"]

MOST_WORK = 10_000_000  # sightings times chains that an arm may have
MOST_SIGHTINGS = 20_000
ENOUGH = 2.5  # memories that are no further apart are as good as the same

SEEN = "state IS NOT NULL AND status <> 'superseded'"


def remembered(session: Session) -> ForgettingAdvice | None:
    """Find how long to remember; None where too little was seen, or where it cannot be told.

    It cannot be told of arms that depend on each other (a joint prior, pools of identical arms) and
    not yet of arms that are seen in every tick.
    """
    memory, execute = session.memory, session.journal.connection.execute
    roster, priors = memory.roster, memory.agent.prior
    if not isinstance(priors, IndependentPrior) or roster.some_always_seen:
        return None
    slots = [slot for slot in range(memory.num_joined) if len(roster.informing(slot)) == 1]
    (count,) = execute(f"SELECT count(*) FROM pull WHERE {SEEN}").fetchone()
    laws = laws_of([priors.arms[slot] for slot in slots[:1]])
    if not laws:
        return None
    most = min(MOST_SIGHTINGS, MOST_WORK // len(laws[0].weights))
    slots = slots[:: max(1, -(-count // most))]
    laws = laws_of([priors.arms[slot] for slot in slots])
    if laws is None:
        return None
    chosen = {slot: place for place, slot in enumerate(slots)}
    rows = np.array(
        [
            (chosen[slot], tick, state)
            for slot, tick, state in execute(
                f"SELECT slot, tick, state FROM pull WHERE {SEEN} ORDER BY slot, tick"
            )
            if slot in chosen
        ],
        dtype=np.int64,
    ).reshape(-1, 3)
    places, ticks, states = rows.T
    first = np.diff(places, prepend=-1) > 0
    begun = [roster.start(range(slot, slot + 1)) for slot in slots]
    start_state = np.array([state for (state,), _ in begun], dtype=np.int64)
    start_tick = np.array(
        [memory.joined[slot] - age for slot, (_, (age,)) in zip(slots, begun, strict=True)],
        dtype=np.int64,
    )
    before = np.where(first, start_state[places], np.roll(states, 1))
    ages = ticks - np.where(first, start_tick[places], np.roll(ticks, 1))
    starts = np.searchsorted(places, np.arange(len(slots) + 1))
    return measured_forgetting(Sightings(starts, ticks, before, ages, states), laws)


def forgetting_line(found: ForgettingAdvice | None, settings: Settings, path: str = "FILE") -> str:
    """Say so in the operators' words, and what to do; nothing where too little was seen."""
    if found is None:
        return ""
    words, current = settings.words, settings.learner.get("forget_after")

    def length(ticks: float) -> str:
        return words.count(int(ticks), "tick")

    change = f"restive live remember {path} --for {found.best:g}"
    now = "" if current is None else f"The agent remembers for {length(current)} now"
    if current is None:
        advice = f"Let the agent forget: {change}"
    elif found.best / ENOUGH <= current <= found.best * ENOUGH:
        advice = f"{now}, which is about right."
    else:
        advice = f"{now}; change that: {change}"
    said = forgetting_sentence(found, length, advice, arms=words.many("arm"))
    if found.verdict == "steady" and now:
        said += f" {now}; if that is not meant: restive live remember {path} --for-ever"
    return said
