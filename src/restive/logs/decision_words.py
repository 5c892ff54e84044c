"""A decision as a headline and three sentences, in the units of whoever asked.

What was found and what to do; what it is worth; how sure that is. If whom one pulls makes no
difference, that is the headline.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from restive.arguments import counted
from restive.logs.decision import Estimate, FitDecision
from restive.logs.fitted import FittedLog

__all__ = ["Units", "headline", "percent_in_words", "sentences", "units_of"]

MOST_NAMED = 8  # arms, or checks, in a sentence
MOST_DOUBTS = 3  # checks in a headline
STEPS = {"1d": "day", "1w": "week", "1h": "hour", "1min": "minute", "1s": "second"}


@dataclass(frozen=True)
class Units:
    """What people call a pull, what a reward of 1 is, and a step."""

    pulls: str = "pulls"  # "calls"
    reward: str = "reward"  # "adherent patients"
    step: str = "step"  # "week"


def units_of(unit: str, reward: str, step: str | None = None) -> Units:
    """Return the units that were given; a step of a day or a week is called so."""
    return Units(unit, reward, STEPS.get((step or "").replace(" ", ""), "step"))


def headline(fitted: FittedLog, found: FitDecision, units: Units) -> str:
    """Say the one thing that must be said."""
    pulls = _capital(units.pulls)
    if not found.can_differ:
        if found.num_pulls >= fitted.log.num_arms:
            return f"Nothing to choose: everyone is seen in every {units.step}."
        return (
            f"As the problem is put, it makes no difference who gets the {units.pulls}: they "
            "change nobody, and everyone counts anyway."
        )
    if found.gain is None:
        return f"What {units.pulls} by index are worth could not be computed."
    if _is_guessed(fitted):
        return f"This log does not show that {units.pulls} change anybody{_doubts(fitted, found)}."
    if found.pulls_add is not None and not found.pulls_add.is_clear:
        return (
            f"{pulls} make no difference that this log could show: "
            f"{_signed(found.pulls_add, units)}."
        )
    if not found.gain.is_clear:
        return (
            f"It makes no clear difference who gets the {units.pulls}: by index instead of in "
            f"turn, {_gain(found, units)}{_doubts(fitted, found)}."
        )
    gained = f"{pulls} by index instead of in turn: about {_gain(found, units)}"
    return f"{gained}{_doubts(fitted, found)}."


def _doubts(fitted: FittedLog, found: FitDecision) -> str:
    failed = [check.name for check in fitted.checks if check.verdict == "fails"]
    if found.calibration is not None and not found.calibration.holds:
        failed.append("prediction")
    if not failed:
        return ""
    named = ", ".join(failed[:MOST_DOUBTS]) + " and more" * (len(failed) > MOST_DOUBTS)
    return f", if the model is right, which is in doubt ({named})"


def sentences(fitted: FittedLog, found: FitDecision, units: Units) -> list[str]:
    """Say what to do, what it is worth, and how sure that is."""
    return [_do(fitted, found, units), *_worth(fitted, found, units), _sure(fitted, found, units)]


def _do(fitted: FittedLog, found: FitDecision, units: Units) -> str:
    log = fitted.log
    seen = f"{counted(log.num_sightings, 'sighting')} of {counted(log.num_arms, 'arm')}"
    if not found.can_differ:
        return (
            f"What to do: nothing follows from {seen} yet. If {units.pulls} change people or "
            "machines, fit again with --controlled; if only those count that are pulled, with "
            "--pay pulled."
        )
    if found.gain is None:
        return f"What to do: restive plan on problem.toml says more ({found.why_not})."
    if _is_guessed(fitted):
        look = f"; {units.pulls} to the same few in one {units.step} after another tell most"
        return (
            f"What to do: go on as you do. As far as {seen} tell, {_what_one_adds(fitted, units)}"
            f"{'' if fitted.seen == 'always' else look}."
        )
    if not found.gain.is_clear:
        return (
            f"What to do: go on as you do. From {seen}, choosing by index promises nothing that "
            "is certain."
        )
    named = ", ".join(found.first[:MOST_NAMED])
    more = len(found.first) - MOST_NAMED
    named += f" and {more:,} more" if more > 0 else ""
    return (
        f"What to do: in each {units.step}, choose the {found.num_pulls:,} {units.pulls} by index, "
        f"the most promising first; the next ones go to {named}."
    )


def _worth(fitted: FittedLog, found: FitDecision, units: Units) -> list[str]:
    if found.gain is None or not found.can_differ:
        return []
    index, turns = found.earned["by index"], found.earned["in turn"]
    fixed = found.earned["always the same"]
    guess = f" if {units.pulls} do what is assumed of them" if _is_guessed(fitted) else ""
    said = (
        f"What it is worth{guess}: {index.mean:.3g} {units.reward} a {units.step} "
        f"({index.low:.3g} to {index.high:.3g}), against {turns.mean:.3g} "
        f"({turns.low:.3g} to {turns.high:.3g}) in turn and {fixed.mean:.3g} "
        f"({fixed.low:.3g} to {fixed.high:.3g}) for always the same arms"
    )
    if found.pulls_add is not None:
        add = found.pulls_add
        said += (
            f"; {units.pulls} by index add {add.mean:.3g} ({add.low:.3g} to {add.high:.3g}) to "
            "what comes without any"
        )
    return [f"{said}."]


def _sure(fitted: FittedLog, found: FitDecision, units: Units) -> str:
    failed = [check.name for check in fitted.checks if check.verdict == "fails"]
    parts = []
    if found.gain is not None:
        parts.append(
            f"the brackets hold 95 of 100 of the {found.num_worlds} worlds that the log leaves "
            f"possible, played for {counted(found.num_steps, units.step)}"
        )
    tried = found.calibration
    if tried is not None:
        verdict = "as foretold" if tried.holds else "NOT as foretold, so trust none of this"
        parts.append(
            f"a fit of the first half expected {tried.expected:.3g} ({tried.low:.3g} to "
            f"{tried.high:.3g}) a sighting of the second, and {tried.earned:.3g} came: {verdict}"
        )
    if fitted.forgetting is not None and fitted.forgetting.verdict == "changes":
        parts.append("but the arms change, and these figures are of the whole log")
    if failed:
        named = ", ".join(failed[:MOST_NAMED])
        parts.append(f"but {counted(len(failed), 'check')} of the model failed ({named})")
    elif fitted.checks:
        parts.append("no check of the model failed")
    return f"How sure: {'; '.join(parts) or 'nothing was checked'}."


def _is_guessed(fitted: FittedLog) -> bool:
    """Whether all counts, pulled or not, and the log does not show that pulls change anything."""
    return fitted.passive_rewards is not None and not fitted.shows_gain


def _what_one_adds(fitted: FittedLog, units: Units) -> str:
    """What a pull adds to the next step of an arm, by kind."""
    span = float(np.ptp(fitted.rewards))
    found = {
        name: "{:+.2g} ({:+.2g} to {:+.2g})".format(*(span * value for value in shape.gain))
        for name, shape in fitted.kind_shapes.items()
        if shape.gain is not None
    }
    if len(found) == 1:
        adds = f"{next(iter(found.values()))} {units.reward} in the next {units.step}"
    else:
        named = list(found.items())[:MOST_NAMED]
        said = ", ".join(f"{gain} for {name}" for name, gain in named)
        adds = f"in {units.reward} of the next {units.step}: {said}"
    return f"{units.pulls} add {adds}"


def _gain(found: FitDecision, units: Units) -> str:
    """The gain with its interval, in percent where that makes sense."""
    if found.share is None:
        assert found.gain is not None
        return _signed(found.gain, units)
    return percent_in_words(found.share)


def percent_in_words(share: Estimate) -> str:
    """Return a share with its interval: "+14% (5 to 22)"."""
    mean, low, high = (100 * x for x in (share.mean, share.low, share.high))
    return f"{mean:+.0f}% ({_whole(low)} to {_whole(high)})".replace("-0%", "+0%")


def _whole(percent: float) -> str:
    """A whole number, but on which side of zero an end is must be seen."""
    if abs(percent) >= 0.5:
        return f"{percent:.0f}"
    return f"{percent:.1f}".replace("-0.0", "0").replace("0.0", "0")


def _signed(value: Estimate, units: Units) -> str:
    return f"{value.mean:+.3g} {units.reward} a {units.step} ({value.low:.3g} to {value.high:.3g})"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
