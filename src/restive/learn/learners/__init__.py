"""The learners that can be named: TSDE's relatives in one file, the others a file each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from restive.arguments import known_name, suggestion
from restive.errors import ProblemError
from restive.learn.learners.base import Compiled, Learner, Own, Relative, Rules, nothing_to_forget
from restive.learn.learners.beta_bernoulli import BetaBernoulli
from restive.learn.learners.qwi import QWI
from restive.learn.learners.regenerative_cycle import RegenerativeCycle
from restive.learn.learners.relatives import (
    CertaintyEquivalence,
    DoublingOnly,
    DynamicEpisodes,
    EpisodicThompson,
    EpsilonGreedy,
    EveryStep,
    LengthOnly,
    MeanIndex,
)
from restive.learn.learners.restless_ucb import RestlessUCB
from restive.learn.learners.ucb1 import UCB1
from restive.learn.learners.ucwhittle import UCWhittle
from restive.learn.learners.wiql import WIQL
from restive.learn.task import Task

__all__ = [
    "LEARNERS",
    "Compiled",
    "DynamicEpisodes",
    "Learner",
    "Own",
    "Relative",
    "Rules",
    "describe",
    "learner",
    "learner_of",
    "register_learner",
    "unregister_learner",
]

LEARNERS: dict[str, Any] = {
    made.name: made
    for made in (
        DynamicEpisodes,
        MeanIndex,
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
        UCWhittle,
        WIQL,
        QWI,
    )
}
"""The learners by name."""

BUILT_IN = frozenset(LEARNERS)


def register_learner(name: str, make: Callable[[Task, int], Any], title: str | None = None) -> None:
    """Enter a learner of your own under a name, for studies, comparisons and regret.

    Parameters
    ----------
    name
        A name that no learner has yet.
    make
        A function of (task, seed) that returns an object with `select()` and `observe(states)`.
    title
        How tables call it; by default its name.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise ProblemError(f"a learner's name must be a word such as my_learner, got {name!r:.60}")
    if name in LEARNERS:
        raise ProblemError(f"a learner {name!r} exists already")
    LEARNERS[name] = own_learner(make, name, title)


def unregister_learner(name: str) -> None:
    """Forget a learner that `register_learner` entered."""
    if not isinstance(name, str) or name in BUILT_IN or name not in LEARNERS:
        raise ProblemError(f"no learner of your own is registered as {name!r:.60}")
    del LEARNERS[name]


def own_learner(make: Any, name: str | None = None, title: str | None = None) -> Own:
    """Return a learner of the user's own from its function of (task, seed)."""
    if not callable(make):
        raise ProblemError(
            "a learner is a name, a table such as {'name': 'ucb1', ...} with its options, or a "
            "function of (task, seed) that returns an object with select() and observe(states), "
            f"got {make!r:.60}"
        )
    name = name or str(getattr(make, "__name__", "own_learner"))
    return Own(name, make, title or name)


def learner_of(value: Any) -> Learner:
    """Return the learner that a name, a name with options or the user's own function means.

    Options are written as in a study: {"name": "epsilon_greedy", "epsilon": 0.1}.
    """
    if isinstance(value, Mapping):
        options = dict(value)
        return learner(options.pop("name", None), **options)
    return learner(value) if isinstance(value, str) else own_learner(value)


def learner(name: str, **options: Any) -> Learner:
    """Return the learner with this name, as `known_name` takes it."""
    if not isinstance(name, str):
        raise ProblemError(f"a learner's name must be text, got {name!r:.60}")
    known = known_name(name, LEARNERS)
    if known not in LEARNERS:
        raise ProblemError(f"unknown learner {name!r}; {suggestion(known, LEARNERS)}")
    made = LEARNERS[known]
    names = [] if isinstance(made, Own) else [field.name for field in fields(made)]
    for option in options:
        if option == "forget_after" and option not in names:
            raise nothing_to_forget(known)
        if option not in names:
            hint = suggestion(option, names) if names else "it has none"
            raise ProblemError(f"learner {known}: unknown option {option!r}; {hint}")
    found: Learner = made if isinstance(made, Own) else made(**options)
    return found


def describe(found: Learner) -> str:
    """Return a learner's name with the options that are not the defaults."""
    if isinstance(found, Own):
        return found.name
    given = {
        field.name: getattr(found, field.name)
        for field in fields(found)  # type: ignore[arg-type]
        if getattr(found, field.name) != field.default
    }
    inside = ", ".join(f"{key}={value}" for key, value in given.items())
    return f"{found.name}({inside})" if inside else found.name
