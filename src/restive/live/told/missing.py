"""Whose results are missing, by name, and of which list results are that fit none."""

from __future__ import annotations

from collections.abc import Sequence

from restive.live.acts.recording import NOT_LISTED
from restive.live.told.answers import Mistake
from restive.live.view import LiveView

__all__ = ["missing_lines", "of_which_list", "with_names"]

MOST_NAMES = 10  # in a line
PAST = 8  # ticks that are over, whose missing results are named


def with_names(names: Sequence[str]) -> str:
    """Return names as the end of a sentence: ": Anna, Ben", and "..." after the tenth."""
    more = ", ..." if len(names) > MOST_NAMES else ""
    return f": {', '.join(names[:MOST_NAMES])}{more}" if names else ""


def missing_lines(live: LiveView) -> list[str]:
    """Say whose results are missing, a line for each tick; not of a list nobody has answered."""
    words, label = live.settings.words, live.settings.clock.label
    by_tick: dict[int, list[str]] = {}
    results = live.results()
    waiting = [name for name, result in results.items() if result == "open"]
    if 0 < len(waiting) < len(results):
        by_tick[live.tick] = waiting
    for tick, name in live.missing_results(PAST):
        by_tick.setdefault(tick, []).append(name)
    return [
        f"no result yet of {words.when(tick, label(tick))}{with_names(names)}"
        for tick, names in by_tick.items()
    ]


def of_which_list(live: LiveView, mistakes: Sequence[Mistake], by_row: bool) -> str:
    """Say what may have been meant by results of arms that were not on the list.

    `by_row` says whether rows name their ticks.
    """
    off = [one for one in mistakes if one.reason.startswith(NOT_LISTED)]
    if not off:
        return ""
    words, clock, names = live.settings.words, live.settings.clock, {one.arm for one in off}
    instead = f"did get a {words.pull}, say --pulled-instead"
    for tick in range(live.tick, max(-1, live.tick - PAST), -1):
        decision = live.decision(tick)
        if decision is not None and names <= set(decision.arms):
            listed = f"on the list of {words.when(tick, clock.label(tick))}"
            if by_row:
                return (
                    f"\nAll of them were {listed}: mend the {words.many('tick')} in the file, if "
                    f"they are wrong there. If all of them {instead}"
                )
            return (
                f"\nAll of them were {listed}: if these results are of that {words.tick}, say "
                f"{clock.option(tick)}, and leave out what says another {words.tick}"
            )
    return f"\nIf {words.many('arm')} who were not on the list {instead}"
