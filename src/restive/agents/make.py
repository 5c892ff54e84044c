"""Agents by name."""

from __future__ import annotations

from typing import Any

from restive.agents.agent import Agent
from restive.agents.learners import learner
from restive.arguments import drawn_seed
from restive.belief import BeliefState
from restive.prior import Prior
from restive.task import Mapping, make_task

__all__ = ["TSDE", "make_learner"]


def TSDE(  # noqa: N802 (the name of the algorithm)
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int | None = None,
    *,
    seed: int | None = 0,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
) -> Agent:
    """Return an agent that learns by Thompson sampling with dynamic episodes (Algorithm 1).

    Parameters
    ----------
    prior
        What the arms may be.
    num_pulls
        Arms pulled each step, N.
    policy_mapping
        What is played for a sampled system: a registered name, an index rule `Arm -> table [S, L]`,
        or a function `RestlessBandit -> Policy`. Index rules run compiled. Other mappings, among
        them "lp_priority" and "optimal", are computed when a system is first sampled and remembered
        for the last 256 systems; those that give no index are asked in Python in every step.
    horizon
        Number of steps T that the agent is to run, which sets where counters are truncated. It may
        run on beyond. None for the doubling trick: epochs of 1, 2, 4, ... steps.
    seed
        Of the agent's own draws. With None one is drawn; `agent.seed` shows it.
    mixing_time
        T^mix(1/4), by default the largest over the prior's support.
    start
        When and in which state each arm was last seen; by default in its last (good) state one
        step ago.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    """
    return make_learner(
        "tsde", prior, num_pulls, policy_mapping, horizon, seed=seed, mixing_time=mixing_time,
        start=start, max_elapsed=max_elapsed,
    )  # fmt: skip


def make_learner(
    name: str,
    prior: Prior,
    num_pulls: int,
    policy_mapping: Mapping = "whittle",
    horizon: int | None = None,
    *,
    seed: int | None = 0,
    mixing_time: int | None = None,
    start: BeliefState | None = None,
    max_elapsed: int | None = None,
    **options: Any,
) -> Agent:
    """Return an agent that learns as its name says.

    Learners outside TSDE's family take from the prior only what is known for certain: the numbers
    of states and the rewards.

    Parameters
    ----------
    name
        One of `LEARNERS`.
    prior, num_pulls, policy_mapping, horizon, seed, mixing_time, start, max_elapsed
        As in `TSDE`; some learners need the horizon, some have no use for a mapping.
    options
        The learner's own.
    """
    spec = learner(name, **options)
    task = make_task(
        prior, num_pulls, policy_mapping, horizon, mixing_time=mixing_time, start=start,
        max_elapsed=max_elapsed,
    )  # fmt: skip
    return Agent(task, spec, drawn_seed(seed))
