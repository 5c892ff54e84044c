"""A decision as a headline and three sentences, in the units of whoever asked.

What was found and what to do; what it is worth; how sure that is. If whom one pulls makes no
difference, that is the headline.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from restive.arguments import counted, plural
from restive.logs.decision import Estimate, FitDecision
from restive.logs.fitted import FittedLog

__all__ = ["Units", "headline", "percent_in_words", "seen_in_brief", "sentences", "units_of"]

MOST_NAMED = 8  # arms, or checks, in a sentence
MOST_DOUBTS = 3  # checks in a headline
NO_NOUNS = ("code", "id", "key", "name", "no", "nr", "number")  # in the names of columns
STEPS = {"1d": "day", "1w": "week", "1h": "hour", "1min": "minute", "1s": "second"}


@dataclass(frozen=True)
class Units:
    """What people call pulls, a reward of 1, a step and an arm."""

    pulls: str = "pulls"  # "calls"
    reward: str = "reward"  # "adherent patients"
    step: str = "step"  # "week"
    arm: str = "arm"  # "person"

    @property
    def pull(self) -> str:
        """One of the pulls, as far as that is plain."""
        one = f"{self.pulls[:-3]}y" if self.pulls.endswith("ies") else self.pulls[:-1]
        return one if plural(one) == self.pulls and not one.endswith("e") else "pull"

    @property
    def arms(self) -> str:
        """Several arms."""
        return plural(self.arm)


def units_of(unit: str, reward: str, step: str | None = None, column: str | None = None) -> Units:
    """Return the units that were given; a step of a day is called so, an arm as its column."""
    return Units(
        unit, reward, STEPS.get((step or "").replace(" ", ""), "step"), _noun_of(column or "arm")
    )


def _noun_of(column: str) -> str:
    """Return the noun in a column's name: person for person, Person_ID and personId."""
    parts = re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", column))
    words = [part.lower() for part in parts if part.lower() not in (*NO_NOUNS, "")]
    plain = len(words) == 1 and words[0].isalpha() and len(words[0]) > 2
    return words[0] if plain and not words[0].endswith("s") else "arm"  # patients have no plural


def seen_in_brief(fitted: FittedLog, units: Units) -> str:
    """Say how much was seen, and when, for people who call nothing a sighting."""
    log = fitted.log
    return f"{_seen(fitted, units)} in {counted(log.num_steps, units.step)}, {log.span}"


def _seen(fitted: FittedLog, units: Units) -> str:
    arms = counted(fitted.log.num_arms, units.arm)
    return f"{counted(fitted.num_sightings, 'result')} of {arms}"


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
    if not fitted.tells_of_rest:
        return f"This log cannot tell what {units.pulls} change."
    if found.gain is None:
        return f"What {units.pulls} by priority are worth could not be computed."
    if fitted.is_guessed and fitted.shows_harm:
        return f"By this log {units.pulls} seem to do harm{_doubts(fitted, found)}."
    if fitted.is_guessed:
        return f"This log does not show that {units.pulls} help anybody{_doubts(fitted, found)}."
    if found.pulls_add is not None and not found.pulls_add.is_clear:
        return (
            f"{pulls} make no difference that this log could show: "
            f"{_signed(found.pulls_add, units)}."
        )
    if not found.gain.is_clear:
        return (
            f"It makes no clear difference who gets the {units.pulls}: by priority instead of in "
            f"turn, {_gain(found, units)}{_doubts(fitted, found)}."
        )
    gained = f"{pulls} by priority instead of in turn: about {_gain(found, units)}"
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
    seen = _seen(fitted, units)
    if found.num_pulls >= fitted.log.num_arms:
        return f"What to do: nothing; there are {units.pulls} for everyone in each {units.step}."
    if not found.can_differ:
        return (
            f"What to do: nothing follows from {seen} yet. If {units.pulls} change people or "
            "machines, fit again with --controlled; if only those count that are pulled, with "
            "--pay pulled."
        )
    if not fitted.tells_of_rest:
        return (
            f"What to do: learn more. Hardly any {units.arm} was left alone and seen again: leave "
            f"some without {units.pulls} for a few {plural(units.step)}, see them again, and fit "
            "again. Until then take turns, or begin an agent."
        )
    if found.gain is None:
        return f"What to do: restive plan on problem.toml says more ({found.why_not})."
    if fitted.is_guessed and fitted.shows_harm:
        return (
            f"What to do: find out why before you go on. As far as {seen} tell, "
            f"{_what_one_adds(fitted, units)}. Whoever is chosen because things go badly makes "
            f"{units.pulls} look harmful."
        )
    if fitted.is_guessed:
        look = f"; {units.pulls} to the same few in one {units.step} after another tell most"
        return (
            f"What to do: go on as you do{_as_now(fitted, units)}. As far as {seen} tell, "
            f"{_what_one_adds(fitted, units)}{'' if fitted.seen == 'always' else look}."
        )
    if not found.gain.is_clear:
        return (
            f"What to do: go on as you do{_as_now(fitted, units)}. From {seen}, choosing by "
            "priority promises nothing that is certain."
        )
    named = ", ".join(found.first[:MOST_NAMED])
    more = len(found.first) - MOST_NAMED
    named += f" and {more:,} more" if more > 0 else ""
    return (
        f"What to do: in each {units.step}, choose the {found.num_pulls:,} {units.pulls} by "
        f"priority (Whittle's index), the most promising first; the next ones go to {named}."
    )


def _as_now(fitted: FittedLog, units: Units) -> str:
    """Say which way the log's own is, as far as it tells; always-seen arms may have no pulls."""
    log = fitted.log
    if fitted.seen == "always" and not log.has_pulled:
        return ""
    arms = np.repeat(np.arange(log.num_arms), np.diff(log.starts))
    each = np.bincount(arms[log.code_column & 1 == 1], minlength=log.num_arms)
    least, most = int(each.min()), int(each.max())
    own = f"{most:,}" if least == most else f"{least:,} to {most:,}"
    return (
        f": in the log that is {log.usual_pulls:,} {units.pulls} a {units.step}, and {own} in all "
        f"for each of {counted(log.num_arms, units.arm)}"
    )


def _worth(fitted: FittedLog, found: FitDecision, units: Units) -> list[str]:
    if found.gain is None or not found.can_differ:
        return []
    if fitted.is_guessed and found.pulls_add is not None:
        add, gain = found.pulls_add, found.gain
        return [
            f"What it is worth: this log does not tell. By priority {units.pulls} may add "
            f"{add.low:.3g} to {add.high:.3g} {units.reward} a {units.step} to what comes without "
            f"any, and {gain.low:.3g} to {gain.high:.3g} to taking turns."
        ]
    index, turns = found.earned["by index"], found.earned["in turn"]
    fixed = found.earned["always the same"]
    said = (
        f"What it is worth: {index.mean:.3g} {units.reward} a {units.step} "
        f"({index.low:.3g} to {index.high:.3g}), against {turns.mean:.3g} "
        f"({turns.low:.3g} to {turns.high:.3g}) in turn and {fixed.mean:.3g} "
        f"({fixed.low:.3g} to {fixed.high:.3g}) for always the same {units.arms}"
    )
    if found.pulls_add is not None:
        add = found.pulls_add
        said += (
            f"; {units.pulls} by priority add {add.mean:.3g} ({add.low:.3g} to {add.high:.3g}) to "
            "what comes without any"
        )
    return [f"{said}."]


def _sure(fitted: FittedLog, found: FitDecision, units: Units) -> str:
    failed = [check.name for check in fitted.checks if check.verdict == "fails"]
    parts = []
    if found.gain is not None and not fitted.is_guessed:
        parts.append(
            f"the brackets hold 95% of {found.num_worlds} simulations of "
            f"{counted(found.num_steps, units.step)}, each with {units.arms} as they may be by "
            "this log"
        )
    tried = found.calibration
    if tried is not None:
        verdict = "as foretold" if tried.holds else "NOT as foretold, so trust none of this"
        parts.append(
            f"a fit of the first half expected {tried.expected:.3g} ({tried.low:.3g} to "
            f"{tried.high:.3g}) a result in the second, and {tried.earned:.3g} came: {verdict}"
        )
    if fitted.forgetting is not None and fitted.forgetting.verdict == "changes":
        parts.append("but the arms change, and these figures are of the whole log")
    if failed:
        named = ", ".join(failed[:MOST_NAMED])
        parts.append(f"but {counted(len(failed), 'check')} of the model failed ({named})")
    elif fitted.checks:
        parts.append("no check of the model failed")
    if found.gain is not None and not fitted.controlled:
        parts.append(
            f"all of it if {units.pulls} change nobody (if they do, fit with --controlled)"
        )
    return f"How sure: {'; '.join(parts) or 'nothing was checked'}."


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
