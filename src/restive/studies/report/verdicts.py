"""Sentences that sum up results, made from the intervals: they say nothing that the data do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, floor, isfinite, log10

from restive.studies.paired_differences import LEAST_REPLICATIONS, Ranking
from restive.studies.report.charts import Naming, learner_title
from restive.studies.report.ranking import ranking_title
from restive.studies.summary import CaseSummary

__all__ = ["comparison_verdict", "listed", "study_verdict"]

MOST_TOLD = 6  # names or cases that a sentence lists one by one
SQUARE_ROOT = 0.5


def comparison_verdict(compared: Sequence[Ranking]) -> tuple[str, list[str]]:
    """Return who is first, and how sure that is."""
    fewest = min(ranking.replications for ranking in compared)
    if fewest < LEAST_REPLICATIONS:
        return "Too few replications to tell learners apart.", [
            f"There are {fewest:,} of each; at least {LEAST_REPLICATIONS} are needed, because "
            "regrets are skewed and a rare loss may not have been seen yet."
        ]
    leaders = [_leaders(ranking) for ranking in compared]
    pairs = [pair for ranking in compared for pair in ranking.pairs.values()]
    lead = [
        f"The data tell {sum(pair.told_apart for pair in pairs)} of {len(pairs)} pairs of learners "
        "apart (paired differences in the same worlds; in each ranking all intervals are right at "
        "once with 95%)."
    ]
    if len(compared) > 1 and sum(map(len, leaders)) <= MOST_TOLD:
        firsts = (
            f"{ranking_title(ranking, compared)}: {listed(names)}"
            + (" (not told apart)" if len(names) > 1 else "")
            for ranking, names in zip(compared, leaders, strict=True)
        )
        lead.append(f"First in {'; '.join(firsts)}.")
    return _who_is_first(leaders, _setting(compared)), lead


def _who_is_first(leaders: Sequence[Sequence[str]], setting: str) -> str:
    count = len(leaders)
    where = "" if count == 1 else f" in both {setting}s" if count == 2 else (
        f" in all {count} {setting}s")  # fmt: skip
    always = [name for name in leaders[0] if all(name in names for names in leaders)]
    if always and all(len(names) == 1 for names in leaders):
        return f"{always[0]} is first{where}."
    if count == 1:
        return f"{listed(always)} share the first place: the data do not tell them apart."
    if always:
        verb = "is" if len(always) == 1 else "are each"
        return f"{listed(always)} {verb} first, or level with the first,{where}."
    won = Counter(name for names in leaders for name in names).most_common()
    best = [name for name, times in won if times == won[0][1]]
    verb = "is" if len(best) == 1 else "are each"
    return (
        f"No learner is first everywhere: {listed(best)} {verb} first, or level with the first, "
        f"in {won[0][1]} of {count} {setting}s."
    )


def _leaders(ranking: Ranking) -> list[str]:
    """Return the learners that no other beats."""
    return [
        learner_title(case)
        for at, case in enumerate(ranking.cases)
        if not any(ranking.pairs[other, at].told_apart for other in range(at))
    ]


def _setting(compared: Sequence[Ranking]) -> str:
    """Return what tells rankings from each other, in a word."""
    swept = set(compared[0].cases[0].case.labels) - {"learner", "mapping"}
    if len({ranking.mapping for ranking in compared}) > 1:
        swept.add("mapping")
    (word,) = swept if len(swept) == 1 else {"setting"}
    return word if word in ("instance", "mapping") else "setting"


def study_verdict(found: Sequence[CaseSummary], naming: Naming) -> tuple[str, list[str]]:
    """Return how fast regret grows, and how much is lost per step at the end."""
    lead = [*_slopes(found, naming), *_loss(found)]
    fitted = [case.slope for case in found if case.slope is not None]
    if not fitted:
        return "The data do not tell how fast regret grows.", [
            "A slope is fitted where there are 50 replications or more and regret is positive "
            "throughout the last decade of time.",
            *lead,
        ]
    slow = sum(slope.upper < SQUARE_ROOT for slope in fitted)
    below = sum(slope.upper < 1 for slope in fitted)
    count = len(found)
    where = "" if count == 1 else f" in {'both' if count == 2 else f'all {count}'} cases"
    if slow == count:
        return f"Regret grows more slowly than the square root of time{where}.", lead
    if below == count:
        return f"Regret grows more slowly than time{where}.", lead
    return f"Regret grows more slowly than time in {below} of {count} cases.", lead


def _slopes(found: Sequence[CaseSummary], naming: Naming) -> list[str]:
    fitted = {naming.name(case): case.slope for case in found if case.slope is not None}
    if not fitted:
        return []
    exponents = "Over the last decade of time it grows like a power of time; with 95% intervals "
    if len(found) > MOST_TOLD or len({case.case.point for case in found}) > 1:
        slopes = [case.slope for case in found if case.slope is not None]
        values = [slope.value for slope in slopes]
        ends = min(slope.lower for slope in slopes), max(slope.upper for slope in slopes)
        return [
            f"{exponents}the exponents are {min(values):.2f} to {max(values):.2f}, all within "
            f"[{ends[0]:.2f}, {ends[1]:.2f}]."
        ]
    told = [
        f"{slope.value:.2f} [{slope.lower:.2f}, {slope.upper:.2f}]"
        + (f" for {name}" if len(found) > 1 else "")
        for name, slope in fitted.items()
    ]
    return [f"{exponents}the exponent is {', '.join(told)}."]


def _loss(found: Sequence[CaseSummary]) -> list[str]:
    """Return how much is lost per step up to T, at most."""
    losses = [float(case.regret.upper[-1]) / int(case.times[-1]) for case in found]
    if not all(map(isfinite, losses)):
        return []
    where = "in every case it" if len(found) > 1 else "it"
    goals = [case.truth_reward[0] for case in found]
    if min(goals) > 0:
        worst = max(100 * loss / goal for loss, goal in zip(losses, goals, strict=True))
        most = f"{_upwards(worst)}% of J, what the same policy earns when it knows the truth"
    else:
        most = f"{_upwards(max(losses))} per step"
    return [f"Up to T {where} loses at most {most} (95% intervals)."]


def _upwards(value: float) -> str:
    """Return a bound with two digits, rounded up."""
    if value <= 0:
        return "0"
    unit = 10.0 ** (floor(log10(value)) - 1)
    return f"{ceil(value / unit - 1e-9) * unit:.12g}"


def listed(names: Sequence[str]) -> str:
    """Return names as a sentence lists them; one with a comma has quotation marks."""
    told = [f"“{name}”" if "," in name and len(names) > 1 else name for name in names]
    return told[0] if len(told) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
