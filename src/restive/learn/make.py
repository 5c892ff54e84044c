"""Making agents: by the name of their learner, and from one that has fewer arms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from restive.arguments import drawn_seed
from restive.errors import ProblemError
from restive.learn.agent import Agent
from restive.learn.conjugate_groups import nothing_counted
from restive.learn.learners import learner
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.independent import IndependentPrior, Prior
from restive.learn.snapshots import learned_data, load_snapshot, start_to_data
from restive.learn.task import Mapping, make_task
from restive.problem.beliefs import BeliefState

__all__ = ["TSDE", "make_learner", "with_more_arms"]


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
    draws: int = 1,
    learn_kinds: str | None = None,
    forget_after: float | None = None,
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
    draws
        Systems drawn in each episode, whose indices are averaged. With more than one it is no
        longer the paper's algorithm; it does better where each arm is seen a few times at most.
    learn_kinds
        "epochs" to estimate what arms of a kind are like from all of them, at steps 4, 6, 9, 13,
        and so on. Arms are of a kind if they share a prior of candidates, as of `spread_prior`.
    forget_after
        Steps after which what was seen weighs 1/e of what it did, for arms that change. None to
        forget nothing.

    Examples
    --------
    >>> import restive as rs
    >>> agent = rs.TSDE(rs.grid_prior([0.2, 0.8], num_arms=3), num_pulls=1, seed=1)
    >>> arms = agent.select()
    >>> agent.observe([1])
    >>> agent.time
    2
    """
    return make_learner(
        "tsde", prior, num_pulls, policy_mapping, horizon, seed=seed, mixing_time=mixing_time,
        start=start, max_elapsed=max_elapsed, draws=draws, learn_kinds=learn_kinds,
        forget_after=forget_after,
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

    Examples
    --------
    >>> import restive as rs
    >>> rs.make_learner("ucb1", rs.grid_prior([0.2, 0.8], num_arms=3), num_pulls=1).select()
    array([0])
    """
    spec = learner(name, **options)
    task = make_task(
        prior, num_pulls, policy_mapping, horizon, mixing_time=mixing_time, start=start,
        max_elapsed=max_elapsed,
    )  # fmt: skip
    return Agent(task, spec, drawn_seed(seed))


def with_more_arms(
    agent: Agent, prior: IndependentPrior, last_state: Sequence[int], elapsed: Sequence[int]
) -> Agent:
    """Return an agent that has more arms, after its own, and remembers all that the other knew.

    The one given stays as it is. The system has changed, so the next step begins a new episode, as
    it does when a counter has doubled.

    Parameters
    ----------
    agent
        An agent of TSDE's family with an independent prior; nothing may be selected.
    prior
        Of all arms; the first are the agent's own, as it began with them.
    last_state, elapsed
        In which state each new arm was last seen, and how many steps ago.
    """
    if not isinstance(agent.prior, IndependentPrior):
        raise ProblemError("arms cannot join under a joint prior, which names all arms")
    data = learned_data(agent)
    if data["selected"] is not None:
        raise ProblemError("arms are selected: observe them before others join")
    old, new, time = agent.task.num_arms, len(last_state), agent.time
    start = agent.task.start
    ages = np.append(start.elapsed, np.ones(new, dtype=np.int64))
    data["start"] = start_to_data(BeliefState(np.append(start.last_state, last_state), ages))
    seen = (range(old, old + new), last_state, [time - age for age in elapsed])
    for column, more in zip(data["seen"], seen, strict=True):
        column += [int(number) for number in more]
    if data.get("moves") is not None:
        data["moves"] |= {
            str(prior.groups[k]): nothing_counted(own)
            for k, own in enumerate(prior.arms[old:], old)
            if isinstance(own, DirichletArmPrior)
            and own.always_seen
            and str(prior.groups[k]) not in data["moves"]
        }
    clock = data["episodes"]["clock"]
    if clock["EPISODE"] > 0:
        clock["DOUBLED"] = 1
        clock["DRAWS"] += new  # whose numbers of this episode nobody looks at
    return load_snapshot(data, agent.task.mapping, prior, agent.task.choices.ages)
