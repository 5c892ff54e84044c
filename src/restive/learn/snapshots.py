"""Agents as plain data: what a snapshot holds, and the checks before one is trusted.

A snapshot is in proportion to the arms that were seen: what the prior says of the others is in the
prior, and a draw that nothing has touched since can be repeated.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST, checked_count, shown
from restive.errors import ProblemError, RestiveError
from restive.kernels.jit.vectors import LANES
from restive.kernels.loop import online, tables
from restive.kernels.loop.engine import NUMBERS
from restive.kernels.loop.tables import VISITS
from restive.learn.agent import Agent
from restive.learn.agent_view import AgentView
from restive.learn.evidence import Evidence
from restive.learn.learner_state import LearnerState
from restive.learn.learners import learner
from restive.learn.learners.base import Compiled, Relative
from restive.learn.priors.data import MOST_ARMS, prior_from_data, prior_to_data, run_columns, runs
from restive.learn.priors.independent import Prior
from restive.learn.slots import home_size, lane_places
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
CLOCK = ("EPISODE", "STARTED", "LAST_LENGTH", "DOUBLED", "REASON", "EPOCH", "DRAWS")
MOST_LIFT = 1 << 52
PRIOR_BITS = 64  # by which the largest of the prior's weights may be less than 1


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
    actor, num_arms = agent._actor, agent.task.num_arms
    time = checked_count(data["time"], "the snapshot's time")
    actor.meta.now["time"] = time
    arms, states, times = (_numbers(column) for column in data["seen"])
    _require(_distinct(arms, num_arms), "the arms that were seen")
    _require(len(arms) == len(states) == len(times), "the arms that were seen")
    _require(_within(states, 0, agent.task.choices.sizes[arms] - 1), "the states that were seen")
    _require(_within(times, -MOST, time - 1), "the times at which arms were seen")
    actor.meta.last_state[arms] = states
    actor.meta.seen[arms] = times
    for k, cells in data["evidence"].items():
        evidence = Evidence.from_data(cells)
        _require(_within(np.array([int(k)]), 0, num_arms - 1), "the evidence's arms")
        _require(evidence.num_states == agent.task.choices.sizes[int(k)], f"evidence of arm {k}")
        agent._evidence[int(k)] = evidence
    if data["selected"] is not None:
        selected = _numbers(data["selected"])
        _require(_distinct(selected, num_arms), "the selected arms")
        if len(selected) != agent.task.num_pulls:
            agent._require_narrowing("pull another number of arms")
        agent._pulled = len(selected)
        agent._chosen[: len(selected)] = selected
    if isinstance(agent.learner, Relative):
        _load_episodes(agent, data["episodes"], arms)
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
        numbers, lifts = _home_of(agent, group, count)
        raised = np.flatnonzero(lifts)
        rows.append([numbers.tolist(), raised.tolist(), lifts[raised].astype(np.int64).tolist()])
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
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    groups, lost = _numbers(data["groups"]), _numbers(data["lost"])
    _require(_distinct(groups, len(weights.homes)), "the groups of the posterior")
    _require(len(lost) == len(groups) and _within(lost, 0, tables.MOST_LOSS), "lost bits")
    first_arm = _first_arms(slots.groups)
    for group, row, bits in zip(groups.tolist(), data["weights"], lost.tolist(), strict=True):
        count = agent._num_slots(int(first_arm[group]))
        numbers, raised, lifts = (np.array(column) for column in row)
        _require(numbers.shape == (count,), f"the weights of group {group}")
        first_weights, _ = _home_of(agent, group, count)
        if agent._particle_keeper.has(group):  # whose weights may have any scale
            bits_held = tables.MOST_LOSS + 1022
            first_weights = np.ones(count)
        else:
            bits_held = bits
        _require(_could_weigh(numbers, first_weights, bits_held), f"the weights of group {group}")
        _require(_distinct(_numbers(raised), count), f"the lifts of group {group}")
        _require(len(raised) == len(lifts), f"the lifts of group {group}")
        _require(_within(_numbers(lifts), 0, MOST_LIFT), f"the lifts of group {group}")
        _settle_home(agent, group, numbers, _numbers(raised), _numbers(lifts))
        weights.lost[group] = bits
    online.settle(agent._where)
    _load_particles(agent, particles)
    began = agent._actor.episodes.clock[0].episode > 0
    changed, drawn = (_numbers(column) for column in data["changed"])
    _require(_distinct(changed, len(weights.homes)), "the draws")
    conjugates = agent._particle_keeper.conjugates
    if not began:
        if conjugates.priors:
            conjugates.load(moves or {}, weights.changed)
        return
    weights.changed[:] = False
    online.draw_again(agent._where, *agent._with_particles)
    counts = np.array(
        [agent._num_slots(int(first_arm[group])) for group in changed.tolist()],
        dtype=np.int64,
    )
    layers = weights.drawn.reshape(-1, len(weights.homes))
    _require(len(drawn) == len(layers) * len(changed), "the draws")
    drawn = drawn.reshape(len(layers), len(changed))
    _require(_within(drawn, 0, counts - 1), "the draws")
    layers[:, changed] = drawn
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
    clock.kinds_due = checked_count(data["due"], "when kinds are learnt next", 1)
    clock.kinds_learnt = checked_count(data["learnt"], "how often kinds were learnt", 0)
    _require((clock.kinds_learnt > 0) == (len(data["laws"]) > 0), "the laws of kinds")
    _require(len(data["laws"]) <= len(laws.kinds), "the laws of kinds")
    for number, law in enumerate(data["laws"]):
        values, base = np.array(law, dtype=np.float64), laws.laws[number]
        _require(values.shape == base.shape and bool((values >= 0).all()), "the laws of kinds")
        _require(bool((values[base == 0] == 0).all()), "the laws of kinds")
        _require(abs(values.sum() - 1) < 1e-9, "the laws of kinds")
        laws.laws[number] = values
    if clock.kinds_learnt:
        laws.use(actor.posterior)


def _load_particles(agent: Agent, data: dict[str, Any]) -> None:
    """Particles and counts of the groups with continuous priors of which something was seen."""
    keeper, weights = agent._particle_keeper, agent._actor.posterior.weights
    for name, particle_group in data.items():
        group = int(name)
        _require(0 <= group < len(weights.homes) and keeper.has(group), "who has particles")
        _require(weights.homes[group] >= weights.status[0].shared, f"the weights of group {name}")
        keeper.load(group, particle_group)
    agent._learner_state.use_particles()
    agent._hold()


def _home_of(agent: AgentView, group: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Weights and lifts [count] of a group's slots."""
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    rows, home = int(slots.row_counts[group]), int(weights.homes[group])
    lifts = home + home_size(rows) - rows * LANES
    places = lane_places(count)
    return weights.numbers[home + places], weights.numbers[lifts + places]


def _settle_home(
    agent: Agent, group: int, numbers: FloatArray, raised: IntArray, lifts: IntArray
) -> None:
    """Give a group a home of its own with these weights."""
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    rows, home = int(slots.row_counts[group]), int(weights.status[0].free)
    size = home_size(rows)
    places = lane_places(len(numbers))
    weights.numbers[home : home + size] = 0.0
    weights.numbers[home + places] = numbers
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
    return {
        "clock": {name: int(getattr(clock, name.lower())) for name in CLOCK},
        "visits": [cells[visited].tolist(), rows[visited].T.tolist()],
    }


def _cells_of_arms(agent: AgentView, arms: IntArray) -> IntArray:
    """Cells of the counters of some arms."""
    episodes = agent._actor.episodes
    if not len(episodes.visits):
        return np.zeros(0, dtype=np.int64)
    truncation = int(episodes.clock[0].truncation)
    starts = episodes.size_starts[arms] * truncation
    lengths = (episodes.size_starts[arms + 1] - episodes.size_starts[arms]) * truncation
    return np.repeat(starts - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())


def _load_episodes(agent: Agent, data: dict[str, Any], seen: IntArray) -> None:
    time = agent.time
    clock = agent._actor.episodes.clock[0]
    for name in CLOCK:
        setattr(clock, name.lower(), checked_count(data["clock"][name], name, -1))
    episode, epoch = int(clock.episode), int(clock.epoch)
    known = agent.task.horizon is not None
    _require(0 <= episode <= time and 0 <= clock.started <= time, "the clock")
    _require(clock.reason in (0, 1, 2, 3), "why the last episode ended")
    _require(clock.doubled in (0, 1), "whether a counter has doubled")
    _require(clock.last_length <= time and clock.draws >= 0, "the clock")
    _require(-1 <= epoch < (1 if known else time.bit_length()), "the epoch")
    _require((epoch < 0) == (episode == 0), "the epoch")
    rules = agent._actor.episodes.rules[0]
    draws = rules.pick_mode == 0 and rules.draws > 0 and episode > 0
    _require(clock.draws >= len(agent._actor.posterior.weights.drawn) * draws, "the clock")
    if epoch < 0:
        return
    clock.epoch_end = np.iinfo(np.int64).max if known else 2 << epoch
    clock.truncation = agent._actor.episodes.truncations[epoch]
    fixed = agent._actor.episodes.rules[0].fixed_limit
    clock.limit = clock.last_length if fixed < 0 else fixed
    clock.floor = tables.FLOOR_STEP
    agent._learner_state.make_counters(epoch)
    agent._hold()
    cells, columns = _numbers(data["visits"][0]), np.array(data["visits"][1])
    if not len(cells):
        return
    visits = agent._actor.episodes.visits.reshape(-1, VISITS)
    _require(_distinct(cells, len(visits)), "the counters")
    _require(bool(np.isin(cells, _cells_of_arms(agent, seen)).all()), "the counters")
    _require(columns.shape == (VISITS, len(cells)), "the counters")
    counts, bases, stamps = (_numbers(column) for column in columns)
    _require(_within(counts, 1, time * agent.task.num_arms), "the counters")
    _require(_within(bases, 0, counts) and _within(stamps, 0, episode), "the counters")
    visits[cells] = columns.T + np.array([tables.FLOOR_STEP, tables.FLOOR_STEP, 0])


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
    ints, floats = (_numbers(data[name][0]) for name in ("ints", "floats"))
    _require(_distinct(ints, len(memory.ints)), "the learner's memory")
    _require(_distinct(floats, len(memory.floats)), "the learner's memory")
    memory.ints[ints] = _numbers(data["ints"][1])
    memory.floats[floats] = np.array(data["floats"][1], dtype=np.float64)
    _require(agent.learner.could_be(facts, memory, fresh), "the learner's memory")


def _could_weigh(numbers: FloatArray, first: FloatArray, lost: int) -> bool:
    """Whether weights are such as kernels leave, having lost so many bits since a rescaling."""
    held = numbers[numbers > 0]
    return bool(
        (numbers >= 0).all()
        and (numbers <= 1).all()
        and (first[numbers > 0] > 0).all()
        and len(held)
        and held.min() >= ldexp(1.0, tables.LIFTED - lost - PRIOR_BITS)
        and held.max() >= ldexp(1.0, -lost - PRIOR_BITS)
    )


def _first_arms(groups: IntArray) -> IntArray:
    """Return the first arm of each group."""
    return np.asarray(np.unique(groups, return_index=True)[1])


def _numbers(values: Any) -> IntArray:
    """Whole numbers, or a ValueError."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"expected whole numbers, got {shown(values)}")
    return array.astype(np.int64)


def _within(values: IntArray, least: Any, most: Any) -> bool:
    return bool(((values >= least) & (values <= most)).all())


def _distinct(places: IntArray, size: int) -> bool:
    return _within(places, 0, size - 1) and len(np.unique(places)) == len(places)


def _require(right: bool | np.bool_, what: str) -> None:
    if not right:
        raise ProblemError(f"the snapshot's numbers are impossible: {what}; it was edited")


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
