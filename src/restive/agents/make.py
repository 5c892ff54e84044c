"""Learners by name."""

from __future__ import annotations

from typing import Any

from restive.agents.learners import Compiled, learner
from restive.agents.player import Player
from restive.agents.setup import Mapping, setup_learner
from restive.agents.tsde import TSDE
from restive.arguments import checked_seed
from restive.belief import BeliefState
from restive.prior import Prior

__all__ = ["make_learner"]


def make_learner(
    name: str,
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int | None = None,
    seed: int = 0,
    *,
    start: BeliefState | None = None,
    mixing_time: int | None = None,
    max_elapsed: int | None = None,
    **options: Any,
) -> TSDE | Player:
    """Return a fresh learner with `select()` and `observe(states)`.

    Learners outside TSDE's family take from the prior only what is known for certain: the numbers
    of states and the rewards.

    Parameters
    ----------
    name
        One of `LEARNERS`.
    prior, num_pulls, policy_mapping, horizon, seed, start, mixing_time, max_elapsed
        As in `TSDE`; some learners need the horizon, some have no use for a mapping.
    options
        The learner's own.
    """
    setup = setup_learner(
        prior, num_pulls, policy_mapping, horizon, mixing_time, start, max_elapsed,
        learner=learner(name, **options),
    )  # fmt: skip
    made = Player if isinstance(setup.learner, Compiled) else TSDE
    return made.of_setup(setup, checked_seed(seed), 0)
