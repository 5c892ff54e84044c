"""Which of TSDE's family suits how many looks at each arm are to come.

With K arms, N pulls and T steps to come each arm is seen N T / K times, on average. Where that is a
handful, exploring costs more than it can bring: what is learnt comes too late. Where it is
thousands, whoever does not explore stays wrong for good. The bounds below are those between which
each learner lost least, or nearly so, in a study of 24 problems and seven horizons, which
`docs/few_looks_tables.py` runs and `docs/concepts/tsde.md` shows; a test holds them to its figures.
As the horizon nears, ask again with the steps that are left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from restive.arguments import checked_count
from restive.errors import ProblemError

__all__ = ["LearnerAdvice", "learner_sentence", "suited_learner"]

# up to so many looks at each arm this learner suits
SUITED: tuple[tuple[float, dict[str, Any]], ...] = (
    (5, {"name": "mean_index"}),
    (50, {"name": "tsde", "draws": 16}),
    (2000, {"name": "tsde", "draws": 4}),
)
BEYOND: dict[str, Any] = {"name": "tsde"}
FEW = 50  # looks at each arm, beyond which nothing need be said
RARELY = 10  # arms for each pull, below which nothing need be said where no horizon is known


@dataclass(frozen=True)
class LearnerAdvice:
    """A learner, and why it suits."""

    learner: dict[str, Any]  # its name and options, as studies and `compare` take them
    looks: float  # how often each arm will be seen, on average
    sentence: str

    def __repr__(self) -> str:
        return f"LearnerAdvice({_name(self.learner)}, {self.looks:.3g} looks)"


def suited_learner(num_arms: int, num_pulls: int, horizon: int) -> LearnerAdvice:
    """Return the learner of TSDE's family that suits so many arms, pulls and steps to come.

    Parameters
    ----------
    num_arms, num_pulls
        Arms K, and how many are pulled in each step, N.
    horizon
        Steps to come: T before the first one, T - t later.
    """
    num_arms, num_pulls = _checked(num_arms, num_pulls)
    horizon = checked_count(horizon, "horizon")
    looks = num_pulls * horizon / num_arms
    learner = next((dict(one) for most, one in SUITED if looks <= most), dict(BEYOND))
    times = "less than once" if looks < 0.95 else "about once" if looks < 1.5 else _times(looks)
    steps = "1 step" if horizon == 1 else f"{horizon:,} steps"
    sentence = f"each arm is seen {times} in {steps}: {_name(learner)} suits that"
    return LearnerAdvice(learner, looks, sentence)


def learner_sentence(
    num_arms: int,
    num_pulls: int,
    horizon: int | None = None,
    *,
    always: bool = False,
    nouns: tuple[str, str] = ("arm", "steps"),
) -> str:
    """Say which learner suits few looks; nothing where looks are many.

    Parameters
    ----------
    num_arms, num_pulls, horizon
        As in `suited_learner`. Without a horizon the sentence says until when which learner suits.
    always
        Say it where looks are many, too.
    nouns
        What an arm and several steps are called.
    """
    num_arms, num_pulls = _checked(num_arms, num_pulls)
    if num_pulls == num_arms:
        return ""
    if horizon is not None:
        advice = suited_learner(num_arms, num_pulls, horizon)
        return advice.sentence if always or advice.looks <= FEW else ""
    apart = num_arms / num_pulls
    if not always and apart < RARELY:
        return ""
    arm, steps = nouns
    until = [f"up to {_rounded(most * apart):,} {_name(one)}" for most, one in SUITED]
    return (
        f"each {arm} is seen once in {_rounded(apart):,} {steps}; which learner suits depends on "
        f"how many {steps} are to come: {', '.join(until)}, then {_name(BEYOND)}"
    )


def _checked(num_arms: int, num_pulls: int) -> tuple[int, int]:
    num_arms = checked_count(num_arms, "num_arms")
    num_pulls = checked_count(num_pulls, "num_pulls")
    if num_pulls > num_arms:
        raise ProblemError(f"{num_pulls} of {num_arms} arms cannot be pulled in a step")
    return num_arms, num_pulls


def _name(learner: dict[str, Any]) -> str:
    options = ", ".join(f"{key}={value}" for key, value in learner.items() if key != "name")
    return f"{learner['name']}({options})" if options else str(learner["name"])


def _times(looks: float) -> str:
    return f"about {_rounded(looks):,} times"


def _rounded(value: float) -> int:
    """Round to two digits."""
    scale = int(10 ** max(len(str(int(value))) - 2, 0))
    return round(value / scale) * scale
