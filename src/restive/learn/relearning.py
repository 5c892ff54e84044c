"""Agents that forget: from now on, at another pace; or at once, what was seen of some arms.

Each is made from what the other agent knows, as one with more arms is (`make.with_more_arms`). So
nothing is left of what is forgotten, and it goes on as an agent restored from a snapshot would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_count, shown
from restive.errors import ProblemError
from restive.kernels.loop import tables
from restive.learn.agent import Agent
from restive.learn.learners.base import Relative, nothing_to_forget
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import Prior
from restive.learn.requests import checked_arm, checked_arms
from restive.learn.snapshots import learned_data, load_snapshot

__all__ = ["Sighting", "relearnt", "with_memory"]

IntArray = NDArray[np.int64]

Sighting = Sequence[int]  # arm, last state, elapsed, state, time, whether it was pulled before


def with_memory(agent: Agent, forget_after: float | None) -> Agent:
    """Return an agent that knows the same and from now on forgets at another pace.

    What has lost weight so far does not regain it. The one given stays as it is.

    Parameters
    ----------
    agent
        An agent of TSDE's family; arms may be selected.
    forget_after
        Steps after which what was seen weighs 1/e of what it did; None to forget nothing more.
    """
    learner: Any = agent.learner
    if not isinstance(agent.learner, Relative):
        raise nothing_to_forget(learner.name)
    rules = replace(learner, forget_after=forget_after).rules(agent.task.facts).as_record(True)
    steps = int(rules[0].fading_steps)
    data = learned_data(agent)
    data["learner"][1]["forget_after"] = forget_after
    data["episodes"].pop("fading_due", None)
    if steps > 0:  # a step that has begun is over with that
        past = agent.time - 1 + (agent.selected is not None)
        data["episodes"]["fading_due"] = 1 + steps * max(1, -(-past // steps))
    return load_snapshot(data, agent.task.mapping, task=agent.task)


def relearnt(
    agent: Agent, arms: ArrayLike, sightings: Iterable[Sighting], prior: Prior | None = None
) -> Agent:
    """Return an agent to which some arms are new, but for these sightings of them.

    What is believed of the arms is what the prior says, or what was learnt of their kind, given the
    sightings. States and times at which they were last seen remain. Counters that end episodes
    begin anew for these arms, and so does the episode. The agent given stays as it is.

    Parameters
    ----------
    agent
        An agent of TSDE's family; arms may be selected.
    arms
        The arms. Those of a pool go together, and so do all arms of a joint prior.
    sightings
        In the order in which they were made: arm; state in which it was seen before, and how many
        steps before; state in which it was seen, and the time of that step; whether it was pulled
        when it was seen before (1 or 0, which matters for arms that are always seen). Where the
        agent forgets, each weighs what is left of it after that time.
    prior
        Another prior for the same arms, which may say something else of these.
    """
    agent._require_posterior("posterior")
    groups = _groups(agent, arms)
    data = learned_data(agent)
    _take_out(agent, data, groups)
    rows = [_checked(agent, groups, row) for row in sightings]
    ages = _room(agent, rows)
    same = prior is None and ages == agent.task.choices.ages
    new = load_snapshot(
        data, agent.task.mapping, prior or agent.prior, ages, agent.task if same else None
    )
    _show(new, rows)
    return new


def _groups(agent: Agent, arms: ArrayLike) -> IntArray:
    """Groups of these arms, all of whose arms are among them."""
    some = checked_arms(arms, agent.task.num_arms, "arms whose sightings are forgotten")
    group_of_arm = agent._actor.posterior.slots.groups
    groups = np.unique(group_of_arm[some])
    missing = np.setdiff1d(np.flatnonzero(np.isin(group_of_arm, groups)), some)
    if len(missing):
        why = (
            "a joint prior learns of all arms together"
            if isinstance(agent.prior, JointPrior)
            else "it is in a pool with others"
        )
        raise ProblemError(
            f"arm {int(some[0])} cannot be forgotten without arm {int(missing[0])}: {why}; name "
            f"all {int(np.isin(group_of_arm, groups).sum())} arms"
        )
    return groups


def _take_out(agent: Agent, data: dict[str, Any], groups: IntArray) -> None:
    """Take what was learnt of some groups out of what an agent knows."""
    group_of_arm = agent._actor.posterior.slots.groups
    for k in np.flatnonzero(np.isin(group_of_arm, groups)).tolist():
        data["evidence"].pop(str(k), None)
    own = data["posterior"]
    kept = [i for i, group in enumerate(own["groups"]) if group not in groups]
    for name in ("groups", "weights", "lost"):
        own[name] = [own[name][i] for i in kept]
    changed, drawn = (np.array(column, dtype=np.int64) for column in own["changed"])
    stays = ~np.isin(changed, groups)
    layers = len(agent._actor.posterior.weights.drawn) // len(agent._actor.posterior.weights.homes)
    drawn = drawn.reshape(layers, len(changed))[:, stays]
    own["changed"] = [changed[stays].tolist(), drawn.ravel().tolist()]
    for group in groups.tolist():
        data["clouds"].pop(str(group), None)
        if moves := data.get("moves", {}).get(str(group)):
            moves["counts"] = [0] * len(moves["counts"])
            moves["changed"] = True
    cells, columns = data["episodes"]["visits"]
    episodes = agent._actor.episodes
    truncation = max(1, int(episodes.clock[0].truncation))
    rows = np.array(cells, dtype=np.int64) // truncation
    counted = np.searchsorted(episodes.size_starts, rows, side="right") - 1
    stays = ~np.isin(group_of_arm[counted], groups)
    data["episodes"]["visits"] = [
        [cell for cell, stay in zip(cells, stays.tolist(), strict=True) if stay],
        [[x for x, stay in zip(own, stays.tolist(), strict=True) if stay] for own in columns],
    ]
    clock = data["episodes"]["clock"]
    if clock["EPISODE"] > 0:
        clock["DOUBLED"] = 1


def _checked(agent: Agent, groups: IntArray, row: Sighting) -> tuple[int, ...]:
    """Return a sighting as whole numbers, or raise."""
    try:
        k, last_state, elapsed, state, time, pulled = row
    except (TypeError, ValueError):
        raise ProblemError(
            f"a sighting must be (arm, last state, elapsed, state, time, pulled), got {shown(row)}"
        ) from None
    k = checked_arm(k, agent.task.num_arms)
    if agent._group(k) not in groups:
        raise ProblemError(f"arm {k} was sighted, but is not one of those that are forgotten")
    size = int(agent.task.choices.sizes[k])
    for value in (last_state, state):
        if checked_count(value, f"arm {k}: a state", 0) >= size:
            raise agent._no_such_state(k, int(value))
    elapsed = checked_count(elapsed, f"arm {k}: elapsed")
    time = checked_count(time, f"arm {k}: the time of a sighting")
    if time >= agent.time:
        raise ProblemError(
            f"arm {k}: time {time} of a sighting is not before the present step, {agent.time}"
        )
    if checked_count(pulled, f"arm {k}: pulled", 0, 1) == 0 and k not in agent._always:
        raise ProblemError(f"arm {k} is seen when pulled, so pulled must be 1")
    if k in agent._always and elapsed != 1:
        raise ProblemError(
            f"arm {k} is always seen, so it is seen every step: elapsed must be 1, got {elapsed}"
        )
    return k, int(last_state), elapsed, int(state), time, int(pulled)


def _room(agent: Agent, rows: list[tuple[int, ...]]) -> int | None:
    """Ages for which likelihoods must be there."""
    choices = agent.task.choices
    missing, _ = choices.room_for(
        np.array([row[2] for row in rows], dtype=np.int64), [row[0] for row in rows]
    )
    return 2 * missing if missing else choices.ages


def _show(agent: Agent, rows: list[tuple[int, ...]]) -> None:
    """Let an agent learn of sightings as of late ones; where arms were last seen remains."""
    meta = agent._actor.meta
    last_state, seen = meta.last_state.copy(), meta.seen.copy()
    for k, before, elapsed, state, time, pulled in rows:
        meta.last_state[k] = before
        meta.seen[k] = time - (elapsed if pulled else tables.NOT_PULLED)
        agent._late(k, state, time)
        meta = agent._actor.meta
    meta.last_state[:], meta.seen[:] = last_state, seen
    agent._follow_again()
