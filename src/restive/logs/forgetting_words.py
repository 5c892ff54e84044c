"""How long to remember, in a sentence: for people, in their units of time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import exp

from restive.learn.priors.finite import ArmPrior
from restive.logs.fitted import FittedLog
from restive.logs.forgetting import ForgettingAdvice
from restive.logs.time_steps import StepRule

__all__ = [
    "advised_learner",
    "better_by",
    "forgetting_data",
    "forgetting_rows",
    "forgetting_sentence",
    "length_in_words",
    "sentence_of_fit",
]

UNITS = (("day", 86_400), ("hour", 3600), ("minute", 60), ("second", 1))
MICROS = 1_000_000
HIDDEN = 0.002  # a gain that the interval leaves possible, and that would be worth having


def forgetting_sentence(
    found: ForgettingAdvice | None,
    length: Callable[[float], str],
    advice: str = "",
    halves_differ: bool | None = None,
    arms: str = "arms",
) -> str:
    """Say whether the arms change, and how long to remember if they do.

    Parameters
    ----------
    found
        How long to remember; None where too little was seen.
    length
        Says how long so many steps are.
    advice
        What to do where they change.
    halves_differ
        What the check "drift" says; None if it was not asked.
    arms
        What arms are called.
    """
    if found is None:
        return f"Whether the {arms} change: too little was seen to tell."
    lasts = length(found.best)
    if found.verdict == "changes":
        halves = (
            " The check drift does not see it, since it compares only one half with the other."
            if halves_differ is False
            else ""
        )
        return (
            f"The {arms} change: a memory of about {lasts} would have predicted best "
            f"({better_by(found)}). {advice}{halves}".rstrip()
        )
    if found.verdict == "may change":
        return (
            f"The {arms} may change: a memory of about {lasts} would have predicted best, but that "
            f"may be luck ({better_by(found)}). Ask again when more was seen."
        )
    by = better_by(found, lasts)
    if found.low > 0 and not halves_differ:
        return (
            f"No sign so far that the {arms} change: a short memory would have predicted better "
            f"({by}), but no better than one as vague that weighs old and new alike. So they are "
            "more alike than was assumed."
        )
    if found.high > HIDDEN and not halves_differ:
        return (
            f"No sign so far that the {arms} change: forgetting would not have predicted better "
            f"for certain ({by})."
        )
    why = f"forgetting would not have predicted better ({by})"
    if halves_differ:
        return (
            f"The halves of the log differ (drift), but {why}: they differ too little, or too "
            "late, for that."
        )
    return f"The {arms} do not seem to change: {why}."


def sentence_of_fit(fitted: FittedLog, arms: str = "arms") -> str:
    """Say so of a fitted log, whose arms are called `arms`."""
    drift = [check.verdict == "fails" for check in fitted.checks if check.name == "drift"]
    if all(_can_forget(prior) for prior in fitted.kind_priors):
        advice = f"Run the agent with --learner '{advised_learner(fitted)}'."
    else:
        advice = (
            "An agent cannot forget under a Dirichlet law: fit with a prior of points "
            "(rs.spread_prior) to run one that does."
        )
    return forgetting_sentence(
        fitted.forgetting,
        partial(length_in_words, fitted.log.calendar.rule),
        advice if fitted.forgetting is not None else "",
        drift[0] if drift else None,
        arms,
    )


def _can_forget(prior: object) -> bool:
    return isinstance(prior, ArmPrior) or bool(getattr(prior, "always_seen", False))


def forgetting_rows(fitted: FittedLog) -> list[tuple[str, str]]:
    """Return the table of what was tried, as text; the best with its interval."""
    found = fitted.forgetting
    if found is None:
        return []
    rule = fitted.log.calendar.rule
    rows = []
    for memory, gain in zip(found.tried.tolist(), found.gains.tolist(), strict=True):
        ends = f" ({found.low:+.4f} to {found.high:+.4f})" if memory == found.best else ""
        rows.append((length_in_words(rule, memory), f"{gain:+.4f}{ends}"))
    return rows


def better_by(found: ForgettingAdvice, length: str = "") -> str:
    """Return how much more chance the best memory gave to what was seen, with its interval."""
    low, high = (100 * (exp(gain) - 1) for gain in (found.low, found.high))
    digits = 2 if max(-low, high) < 1 else 1
    with_it = f"with a memory of {length} " if length else ""
    return (
        f"{with_it}each sighting {low:+.{digits}f}% to {high:+.{digits}f}% likelier, 90% interval"
    )


def length_in_words(rule: StepRule, steps: float) -> str:
    """Return so many steps as people call them: "300 days", "75 days (300 steps)"."""
    count = f"{steps:,.0f} steps"
    if rule.is_number:
        return count
    if rule.is_weeks:
        weeks = rule.days // 7
        text = f"{steps * weeks:,.0f} weeks"
        return text if weeks == 1 else f"{text} ({count})"
    seconds = rule.days * 86_400 or rule.length / MICROS
    name, length = next(
        (unit for unit in UNITS if steps * seconds >= 2 * unit[1]), UNITS[-1]
    )  # fmt: skip
    text = f"{steps * seconds / length:,.3g} {name}s"
    return text if seconds == length else f"{text} ({count})"


def advised_learner(fitted: FittedLog) -> str:
    """Return the learner, with its memory, that `restive live init` is to be given."""
    if fitted.forgetting is None:
        return ""
    moved = any(isinstance(p, ArmPrior) and not p.moves_alike for p in fitted.kind_priors)
    name = "mean_index" if moved else "tsde"  # what `live init` takes by itself
    return f"{name}(forget_after={fitted.forgetting.best:g})"


def forgetting_data(found: ForgettingAdvice | None) -> dict[str, object] | None:
    """Return it as plain data."""
    if found is None:
        return None
    return {
        "verdict": found.verdict,
        "forget_after": found.forget_after,
        "best": found.best,
        "gain": found.gain,
        "low": found.low,
        "high": found.high,
        "sightings": found.num_sightings,
        "tried": dict(zip((f"{m:g}" for m in found.tried), found.gains.tolist(), strict=True)),
    }
