"""Agents as plain data: what a snapshot holds; `snapshot_rules` says when one can be trusted.

A snapshot is in proportion to the arms that were seen: what the prior says of the others is in the
prior, and a draw that nothing has touched since can be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST_ARMS, checked_count, shown
from restive.errors import ProblemError, RestiveError
from restive.kernels.jit.vectors import LANES
from restive.kernels.loop import online, tables
from restive.kernels.loop.engine import NUMBERS
from restive.kernels.loop.tables import VISITS
from restive.learn.agent import Agent
from restive.learn.agent_view import AgentView
from restive.learn.learner_state import LearnerState
from restive.learn.learners import learner
from restive.learn.learners.base import Compiled, Relative
from restive.learn.priors.data import prior_from_data, prior_to_data, run_columns, runs
from restive.learn.priors.independent import Prior
from restive.learn.slots import home_size, lane_places
from restive.learn.snapshot_rules import (
    CLOCK,
    distinct,
    home_of,
    numbers,
    require,
    require_consistent,
)
from restive.learn.task import Mapping, Task, make_task
from restive.problem.beliefs import BeliefState

__all__ = [
    "learned_data",
    "load_snapshot",
    "restore",
    "snapshot_of",
    "start_to_data",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FORMAT = "restive-agent-1"


def snapshot_of(agent: AgentView) -> dict[str, Any]:
    """Return everything an agent knows as plain data."""
    data = _data_of(agent, {"prior": prior_to_data(agent.prior)})
    return data | {"checksum": checksum(data)}


def learned_data(agent: AgentView) -> dict[str, Any]:
    """Return what an agent knows beyond its prior, for `load_snapshot` with that prior."""
    with agent._alone:
        agent._count_notes()
        return _data_of(agent, {})


def _data_of(agent: AgentView, prior: dict[str, Any]) -> dict[str, Any]:
    task, actor = agent.task, agent._actor
    seen = np.flatnonzero(actor.meta.seen != 1 - task.start.elapsed)
    spec: Any = agent.learner
    data = {
        "format": FORMAT,
        "version": _version(),
        "numbers": NUMBERS,
        "time": agent.time,
        **prior,
        "num_pulls": task.num_pulls,
        "learner": [spec.name, asdict(spec)],
        "policy_mapping": task.mapping_name,
        "policy_mapping_is_named": isinstance(task.mapping, str),
        "horizon": task.horizon,
        "mixing_time": task.given_mixing_time,
        "max_elapsed": task.max_elapsed,
        "start": start_to_data(task.start),
        "seed": agent._seed,
        "replication": agent._replication,
        "selected": None if agent._pulled is None else agent._chosen[: agent._pulled].tolist(),
        "seen": [
            column.tolist() for column in (seen, actor.meta.last_state[seen], actor.meta.seen[seen])
        ],
        "evidence": {str(k): agent._evidence[k].to_data() for k in sorted(agent._evidence)},
    }
    if isinstance(spec, Relative):
        data["posterior"] = _posterior_to_data(agent)
        data["clouds"] = agent._particle_keeper.to_data()
        if agent.task.choices.has_conjugates:
            changed = agent._actor.posterior.weights.changed
            data["moves"] = agent._particle_keeper.conjugates.to_data(changed)
        data["episodes"] = _episodes_to_data(agent, seen)
        if (laws := agent._learner_state.kind_laws) is not None:
            data["kinds"] = laws.to_data(agent._actor.episodes.clock[0])
    else:
        data["memory"] = _memory_to_data(agent)
    return data


@cache
def _version() -> str:
    return version("restive")  # which looks it up in the file system every time


def restore(snapshot: dict[str, Any], policy_mapping: Mapping | None = None) -> Agent:
    """Return an agent that continues exactly where the one that made the snapshot left off.

    Parameters
    ----------
    snapshot
        What `Agent.snapshot` returned, also after a way through JSON.
    policy_mapping
        The mapping, where it was a function of yours; functions are not in the snapshot.

    Examples
    --------
    >>> import restive as rs
    >>> agent = rs.TSDE(rs.grid_prior([0.2, 0.8], num_arms=3), num_pulls=1, seed=1)
    >>> again = rs.restore(agent.snapshot())
    >>> bool((again.select() == agent.select()).all())
    True
    """
    _require_snapshot(snapshot)
    return load_snapshot(snapshot, policy_mapping)


def load_snapshot(
    snapshot: dict[str, Any],
    policy_mapping: Mapping | None,
    prior: Prior | None = None,
    ages: int | None = None,
    task: Task | None = None,
) -> Agent:
    """Return the agent of a snapshot whose checksum need not be looked at.

    Its prior need not be in it where it is given; `ages` is that of `make_task`. A task that was
    made from the same snapshot before spares making its tables again.
    """
    try:
        if policy_mapping is None:
            if not snapshot["policy_mapping_is_named"]:
                raise ProblemError(
                    f"the snapshot's policy mapping was the function "
                    f"{shown(snapshot['policy_mapping'])}: pass it as policy_mapping"
                )
            policy_mapping = snapshot["policy_mapping"]
        if task is None:
            task = make_task(
                prior_from_data(snapshot["prior"]) if prior is None else prior,
                snapshot["num_pulls"],
                policy_mapping,
                snapshot["horizon"],
                mixing_time=snapshot["mixing_time"],
                start=BeliefState(*run_columns(snapshot["start"], MOST_ARMS)),
                max_elapsed=snapshot["max_elapsed"],
                ages=ages,
            )
        name, options = snapshot["learner"]
        replication = checked_count(snapshot["replication"], "replication", 0)
        agent = Agent(task, learner(name, **options), snapshot["seed"], replication)
        _load(agent, snapshot)
    except RestiveError:
        raise
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ProblemError(
            f"the snapshot cannot be read ({error!r:.100}): it was cut short or edited"
        ) from None
    return agent


def _load(agent: Agent, data: dict[str, Any]) -> None:
    evidence = require_consistent(agent, data)
    actor = agent._actor
    actor.meta.now["time"] = data["time"]
    arms, states, times = (numbers(column) for column in data["seen"])
    actor.meta.last_state[arms] = states
    actor.meta.seen[arms] = times
    agent._evidence.update(evidence)
    if data["selected"] is not None:
        selected = numbers(data["selected"])
        if len(selected) != agent.task.num_pulls:
            agent._require_narrowing("pull another number of arms")
        agent._pulled = len(selected)
        agent._chosen[: len(selected)] = selected
    if isinstance(agent.learner, Relative):
        _load_episodes(agent, data["episodes"])
        if agent._learner_state.kind_laws is not None:
            _load_kinds(agent, data["kinds"])
        _load_posterior(agent, data["posterior"], data["clouds"], data.get("moves"))
    else:
        _load_memory(agent, data["memory"])


def _posterior_to_data(agent: AgentView) -> dict[str, Any]:
    """Weights of the groups that have their own, and the draws that cannot be repeated."""
    online.bring_up_to_date(agent._where, -1)
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    groups = np.flatnonzero(weights.homes >= weights.status[0].shared)
    first_arm = _first_arms(slots.groups)
    rows = []
    for group in groups.tolist():
        count = agent._num_slots(int(first_arm[group]))
        values, lifts = home_of(agent, group, count)
        raised = np.flatnonzero(lifts)
        rows.append([values.tolist(), raised.tolist(), lifts[raised].astype(np.int64).tolist()])
    changed = groups[weights.changed[groups]]
    return {
        "groups": groups.tolist(),
        "weights": rows,
        "lost": weights.lost[groups].tolist(),
        "changed": [changed.tolist(), _draws_of(agent, changed).tolist()],
    }


def _draws_of(agent: AgentView, groups: IntArray) -> IntArray:
    """What was drawn for some groups, [draws, groups] flat: a view's copy."""
    weights = agent._actor.posterior.weights
    return weights.drawn.reshape(-1, len(weights.homes))[:, groups].ravel()


def _load_posterior(
    agent: Agent, data: dict[str, Any], particles: dict[str, Any], moves: dict[str, Any] | None
) -> None:
    weights = agent._actor.posterior.weights
    for group, row, bits in zip(data["groups"], data["weights"], data["lost"], strict=True):
        values, raised, lifts = row
        _settle_home(agent, group, np.array(values), numbers(raised), numbers(lifts))
        weights.lost[group] = bits
    online.settle(agent._where)
    for name, particle_group in particles.items():
        agent._particle_keeper.load(int(name), particle_group)
    agent._learner_state.use_particles()
    agent._hold()
    conjugates = agent._particle_keeper.conjugates
    if agent._actor.episodes.clock[0].episode == 0:
        if conjugates.priors:
            conjugates.load(moves or {}, weights.changed)
        return
    weights = agent._actor.posterior.weights
    weights.changed[:] = False
    online.draw_again(agent._where, *agent._with_particles)
    changed, drawn = (numbers(column) for column in data["changed"])
    layers = weights.drawn.reshape(-1, len(weights.homes))
    layers[:, changed] = drawn.reshape(len(layers), len(changed))
    weights.changed[changed] = True
    if conjugates.priors:
        conjugates.load(moves or {}, weights.changed)
        if agent._learner_state.is_drawn:
            return
    if agent.task.choices.has_particles or agent.task.ranks is None:
        agent._learner_state.follow_sampled()
        agent._hold()
    online.follow_again(agent._where, *agent._with_particles)


def _load_kinds(agent: Agent, data: dict[str, Any]) -> None:
    """Laws of kinds that were learnt; kinds that have joined since have those of the prior."""
    laws, actor = agent._learner_state.kind_laws, agent._actor
    assert laws is not None
    clock = actor.episodes.clock[0]
    clock.kinds_due, clock.kinds_learnt = data["due"], data["learnt"]
    for number, law in enumerate(data["laws"]):
        laws.laws[number] = np.array(law, dtype=np.float64)
    if clock.kinds_learnt:
        laws.use(actor.posterior)


def _settle_home(
    agent: Agent, group: int, values: FloatArray, raised: IntArray, lifts: IntArray
) -> None:
    """Give a group a home of its own with these weights."""
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    rows, home = int(slots.row_counts[group]), int(weights.status[0].free)
    size = home_size(rows)
    places = lane_places(len(values))
    weights.numbers[home : home + size] = 0.0
    weights.numbers[home + places] = values
    weights.numbers[home + size - rows * LANES + places[raised]] = lifts
    weights.homes[group] = home
    weights.status["free"] = home + size


def _episodes_to_data(agent: AgentView, seen: IntArray) -> dict[str, Any]:
    """The clock, and the counters that were visited in this epoch."""
    clock, visits = agent._actor.episodes.clock[0], agent._actor.episodes.visits
    cells = _cells_of_arms(agent, seen)
    rows = visits.reshape(-1, VISITS)[cells]
    floor = clock.floor
    visited = rows[:, tables.COUNT] > floor
    rows = rows - np.array([floor, floor, 0])
    data: dict[str, Any] = {
        "clock": {name: int(getattr(clock, name.lower())) for name in CLOCK},
        "visits": [cells[visited].tolist(), rows[visited].T.tolist()],
    }
    if agent._actor.episodes.rules[0].fading_steps > 0:
        data["fading_due"] = int(clock.fading_due)
    return data


def _cells_of_arms(agent: AgentView, arms: IntArray) -> IntArray:
    """Cells of the counters of some arms."""
    episodes = agent._actor.episodes
    if not len(episodes.visits):
        return np.zeros(0, dtype=np.int64)
    truncation = int(episodes.clock[0].truncation)
    starts = episodes.size_starts[arms] * truncation
    lengths = (episodes.size_starts[arms + 1] - episodes.size_starts[arms]) * truncation
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def _load_episodes(agent: Agent, data: dict[str, Any]) -> None:
    clock = agent._actor.episodes.clock[0]
    for name in CLOCK:
        setattr(clock, name.lower(), data["clock"][name])
    if agent._actor.episodes.rules[0].fading_steps > 0:
        clock.fading_due = data["fading_due"]
    epoch = int(clock.epoch)
    if epoch < 0:
        return
    known = agent.task.horizon is not None
    clock.epoch_end = np.iinfo(np.int64).max if known else 2 << epoch
    clock.truncation = agent._actor.episodes.truncations[epoch]
    rules = agent._actor.episodes.rules[0]
    fixed = rules.fixed_limit
    clock.limit = min(clock.last_length if fixed < 0 else fixed, rules.longest)
    clock.floor = tables.FLOOR_STEP
    agent._learner_state.make_counters(epoch)
    agent._hold()
    cells, columns = numbers(data["visits"][0]), data["visits"][1]
    if len(cells):
        visits = agent._actor.episodes.visits.reshape(-1, VISITS)
        visits[cells] = np.array(columns).T + np.array([tables.FLOOR_STEP, tables.FLOOR_STEP, 0])


def _memory_to_data(agent: AgentView) -> dict[str, Any]:
    """What a compiled learner remembers, where that differs from what it began with."""
    fresh, memory = LearnerState(agent.task, agent.learner).actor.memory, agent._actor.memory
    data = {}
    for name in ("ints", "floats"):
        now = getattr(memory, name)
        places = np.flatnonzero(now != getattr(fresh, name))
        data[name] = [places.tolist(), now[places].tolist()]
    return data


def _load_memory(agent: Agent, data: dict[str, Any]) -> None:
    assert isinstance(agent.learner, Compiled)
    memory, facts = agent._actor.memory, agent.task.facts
    fresh = memory._replace(ints=memory.ints.copy(), floats=memory.floats.copy())
    ints, floats = (numbers(data[name][0]) for name in ("ints", "floats"))
    require(distinct(ints, len(memory.ints)), "the learner's memory")
    require(distinct(floats, len(memory.floats)), "the learner's memory")
    memory.ints[ints] = numbers(data["ints"][1])
    memory.floats[floats] = np.array(data["floats"][1], dtype=np.float64)
    require(agent.learner.could_be(facts, memory, fresh), "the learner's memory")


def _first_arms(groups: IntArray) -> IntArray:
    """Return the first arm of each group."""
    return np.asarray(np.unique(groups, return_index=True)[1])


def start_to_data(start: BeliefState) -> list[list[int]]:
    """Return when and in which state arms were last seen as plain data."""
    return runs([start.last_state, start.elapsed])


def _require_snapshot(snapshot: Any) -> None:
    """Raise unless this looks like a snapshot of this version."""
    if not isinstance(snapshot, dict) or "format" not in snapshot:
        raise ProblemError("not a snapshot: expected the data that Agent.snapshot() returned")
    if snapshot["format"] != FORMAT:
        raise ProblemError(
            f"the snapshot has format {shown(snapshot['format'])}, this version reads {FORMAT!r}"
        )
    try:
        data = {key: value for key, value in snapshot.items() if key != "checksum"}
        fits = snapshot.get("checksum") == checksum(data)
    except (TypeError, ValueError, OverflowError, RecursionError):
        fits = False
    if not fits:
        raise ProblemError(
            "the snapshot's checksum does not match its contents: it was damaged or edited"
        )
    if snapshot.get("numbers") != NUMBERS:
        raise ProblemError(
            f"the snapshot was made by version {snapshot.get('version')!s:.20}, which uses "
            "random numbers differently: its agent would not continue exactly where it left off"
        )


def checksum(data: Any) -> str:
    """Fingerprint of plain data, the same before and after a way through JSON."""
    digest = hashlib.sha256()
    _feed(data, digest.update)
    return digest.hexdigest()


def _feed(data: Any, update: Callable[[bytes], None]) -> None:
    if isinstance(data, dict):
        for key in sorted(data):
            update(f"{key}:".encode())
            _feed(data[key], update)
    elif isinstance(data, list) and data and all(type(item) is float for item in data):
        update(np.array(data).tobytes())  # the long lists, quickly
    elif isinstance(data, list) and data and all(type(item) is int for item in data):
        update(f"[{data!r}".encode())
    elif isinstance(data, list):
        update(f"[{len(data)}".encode())
        for item in data:
            _feed(item, update)
    else:
        update(f"{data!r};".encode())
