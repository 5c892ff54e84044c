"""The learners that can be named, one file each; TSDE's relatives share its kernels."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from restive.agents.learners.base import (
    Compiled,
    Facts,
    Learner,
    Relative,
    Rules,
)
from restive.agents.learners.beta_bernoulli import BetaBernoulli
from restive.agents.learners.certainty_equivalence import CertaintyEquivalence
from restive.agents.learners.colored_ucrl2 import ColoredUCRL2
from restive.agents.learners.episodic_thompson import EpisodicThompson
from restive.agents.learners.epsilon_greedy import EpsilonGreedy
from restive.agents.learners.regenerative_cycle import RegenerativeCycle
from restive.agents.learners.restless_ucb import RestlessUCB
from restive.agents.learners.thompson_every_step import EveryStep
from restive.agents.learners.tsde import DynamicEpisodes
from restive.agents.learners.tsde_doubling_only import DoublingOnly
from restive.agents.learners.tsde_length_only import LengthOnly
from restive.agents.learners.ucb1 import UCB1
from restive.arguments import suggestion
from restive.errors import ProblemError

__all__ = [
    "LEARNERS",
    "Compiled",
    "DynamicEpisodes",
    "Facts",
    "Learner",
    "Relative",
    "Rules",
    "describe",
    "learner",
]

LEARNERS: dict[str, Any] = {
    made.name: made
    for made in (
        DynamicEpisodes,
        DoublingOnly,
        LengthOnly,
        EveryStep,
        EpisodicThompson,
        CertaintyEquivalence,
        EpsilonGreedy,
        UCB1,
        BetaBernoulli,
        RegenerativeCycle,
        RestlessUCB,
        ColoredUCRL2,
    )
}
"""The learners by name."""


def learner(name: str, **options: Any) -> Learner:
    """Return the learner with this name; hyphens are as good as underscores."""
    if not isinstance(name, str):
        raise ProblemError(f"a learner's name must be text, got {name!r:.60}")
    known = name.replace("-", "_")
    if known not in LEARNERS:
        raise ProblemError(f"unknown learner {name!r}; {suggestion(known, LEARNERS)}")
    made = LEARNERS[known]
    names = [field.name for field in fields(made)]
    for option in options:
        if option not in names:
            hint = suggestion(option, names) if names else "it has none"
            raise ProblemError(f"learner {known}: unknown option {option!r}; {hint}")
    found: Learner = made(**options)
    return found


def describe(found: Learner) -> str:
    """Return a learner's name with the options that are not the defaults."""
    given = {
        field.name: getattr(found, field.name)
        for field in fields(found)  # type: ignore[arg-type]
        if getattr(found, field.name) != field.default
    }
    inside = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{found.name}({inside})" if inside else found.name
