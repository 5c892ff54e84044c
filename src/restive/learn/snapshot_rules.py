"""What a snapshot must be for an agent to go on with it: each field, and all of them together.

Kernels trust what is in an agent's arrays, so this is looked at before anything is taken in.

* Time and what was seen. Arms were last seen before now, in states that they have. What counts as
  evidence is of arms that were seen.
* A step that has begun. Arms are selected in a step that has begun, and before time t every earlier
  step had begun. Where one has, there is an episode and an epoch; where none has, time is 1,
  nothing is selected and nothing was visited, drawn or learnt.
* The epoch is that of the time: without a horizon epoch e is from 2^e on, and ends at 2^(e+1) when
  the step of that time begins. With one there is a single epoch.
* The episode began within the epoch, and the one before it was no longer than the epoch until then.
* Counters are those of arms that were seen, within the truncation of the epoch; what one had when
  its episode began is no more than it has now, and that episode has begun.
* The posterior. Groups of arms of which there is evidence, and no others, have weights of their
  own, with the scale that kernels leave, and zero where the prior's are. What was drawn is one of
  the group's slots. Those of them that have a continuous prior, and no others, have particles,
  which have counted no more sightings than there is evidence, and none that the prior rules out.
* Laws of kinds are laws, on the candidates of the prior, and there once they were learnt. None of
  these candidates is ever ruled out by them.

What a learner outside TSDE's family remembers is judged by the learner (`could_be`).
"""

from __future__ import annotations

from math import ldexp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.arguments import MOST, checked_count, shown
from restive.errors import ProblemError
from restive.kernels.jit.vectors import LANES
from restive.kernels.loop import tables
from restive.kernels.loop.tables import VISITS
from restive.learn.agent import Agent
from restive.learn.agent_view import AgentView
from restive.learn.evidence import Evidence
from restive.learn.learners.base import Relative
from restive.learn.slots import home_size, lane_places

__all__ = ["CLOCK", "distinct", "home_of", "numbers", "require", "require_consistent"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

CLOCK = ("EPISODE", "STARTED", "LAST_LENGTH", "DOUBLED", "REASON", "EPOCH", "DRAWS")
MOST_LIFT = 1 << 52
PRIOR_BITS = 64  # by which the largest of the prior's weights may be less than 1
LEAST_KEPT = ldexp(1.0, -64)  # of a candidate's share, far below what arms yet unknown keep up


def require_consistent(agent: Agent, data: dict[str, Any]) -> dict[int, Evidence]:
    """Raise unless an agent that has done nothing yet can take in a snapshot's data.

    Returns the evidence of it, by arm.
    """
    time = checked_count(data["time"], "the snapshot's time")
    seen, evidence = _checked_seen(agent, data, time)
    selected = data["selected"] is not None
    if selected:
        require(distinct(numbers(data["selected"]), agent.task.num_arms), "the selected arms")
    if isinstance(agent.learner, Relative):
        begun = _check_clock(agent, data["episodes"]["clock"], time, selected)
        _check_fading(agent, data["episodes"], time)
        _check_visits(agent, data["episodes"], seen, time, begun)
        _check_posterior(agent, data, begun)
        if agent._learner_state.kind_laws is not None:
            _check_kinds(agent, data["kinds"], time)
    return evidence


def _checked_seen(
    agent: Agent, data: dict[str, Any], time: int
) -> tuple[IntArray, dict[int, Evidence]]:
    """Return the arms that were seen, and what was seen of them."""
    num_arms, sizes = agent.task.num_arms, agent.task.choices.sizes
    arms, states, times = (numbers(column) for column in data["seen"])
    require(distinct(arms, num_arms), "the arms that were seen")
    require(len(arms) == len(states) == len(times), "the arms that were seen")
    require(_within(states, 0, sizes[arms] - 1), "the states that were seen")
    require(_within(times, -MOST, time - 1), "the times at which arms were seen")
    there, found = set(arms.tolist()), {}
    for name, cells in data["evidence"].items():
        k, evidence = int(name), Evidence.from_data(cells)
        require(k in there and str(k) == name, "the evidence's arms")
        require(evidence.num_states == sizes[k], f"evidence of arm {name}")
        found[k] = evidence
    return arms, found


def _check_fading(agent: Agent, given: dict[str, Any], time: int) -> None:
    """Raise unless what was seen loses weight next when it must."""
    steps = int(agent._actor.episodes.rules[0].fading_steps)
    if steps > 0:
        due = checked_count(given["fading_due"], "when what was seen loses weight")
        require(time <= due <= time + steps and due % steps == 1 % steps, "what is forgotten")


def _check_clock(agent: Agent, given: dict[str, Any], time: int, selected: bool) -> bool:
    """Raise unless episode and epoch are those of the time; return whether a step has begun."""
    clock = {name: checked_count(given[name], name, -1) for name in CLOCK}
    episode, epoch, started = clock["EPISODE"], clock["EPOCH"], clock["STARTED"]
    episodes = agent._actor.episodes
    groups = len(agent._actor.posterior.weights.drawn)
    require(clock["DOUBLED"] in (0, 1), "whether a counter has doubled")
    require(clock["REASON"] in (0, 1, 2, 3), "why the last episode ended")
    require(clock["DRAWS"] >= 0, "the clock")
    if episode <= 0:
        untouched = dict.fromkeys(CLOCK, 0) | {"EPOCH": -1}
        require(clock == untouched and time == 1 and not selected, "a step that has not begun")
        return False
    if agent.task.horizon is not None:
        first, last = 1, MOST
        require(epoch == 0, "the epoch")
    else:
        require(0 <= epoch < len(episodes.truncations), "the epoch")
        first, last = 1 << epoch, 2 << epoch
    require(first <= time <= last and not (selected and time == last), "the epoch")
    require(epoch < episode <= time, "the episode")
    require(first <= started <= time, "when the episode began")
    require(0 <= clock["LAST_LENGTH"] <= started - first, "how long the last episode was")
    rules = episodes.rules[0]
    drawn = groups if rules.pick_mode == 0 and rules.draws > 0 else 0
    explored = time * (1 + agent.task.num_arms) if rules.exploring else 0
    most = episode * drawn + explored + agent.task.num_arms  # for arms that joined in an episode
    if agent.task.choices.has_conjugates:  # whose draws are by rejection, as many as it takes
        most = MOST
    require(drawn <= clock["DRAWS"] <= most, "how much was drawn")
    return True


def _check_visits(
    agent: Agent, data: dict[str, Any], seen: IntArray, time: int, begun: bool
) -> None:
    cells, columns = numbers(data["visits"][0]), data["visits"][1]
    if not len(cells):
        return
    episodes, clock = agent._actor.episodes, data["clock"]
    require(begun and episodes.rules[0].doubling != 0, "the counters")
    truncation = int(episodes.truncations[clock["EPOCH"]])
    require(distinct(cells, int(episodes.size_starts[-1]) * truncation), "the counters")
    rows = cells // truncation  # of all states of all arms, end to end
    arms = np.searchsorted(episodes.size_starts, rows, side="right") - 1
    require(bool(np.isin(arms, seen).all()), "the counters")
    counts, bases, stamps = (numbers(column) for column in columns)
    require(len(columns) == VISITS, "the counters")
    require(len(counts) == len(bases) == len(stamps) == len(cells), "the counters")
    require(_within(counts, 1, time * agent.task.num_arms), "the counters")
    require(_within(bases, 0, counts) and _within(stamps, 0, clock["EPISODE"]), "the counters")


def _check_posterior(agent: Agent, data: dict[str, Any], begun: bool) -> None:
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    given, keeper = data["posterior"], agent._particle_keeper
    groups, lost = numbers(given["groups"]), numbers(given["lost"])
    require(distinct(groups, len(weights.homes)), "the groups of the posterior")
    arms = np.array([int(name) for name in data["evidence"]], dtype=np.int64)
    informed = np.unique(slots.groups[arms])  # but for those of which moves are counted
    informed = informed[[not keeper.conjugates.has(group) for group in informed.tolist()]]
    require(sorted(groups.tolist()) == informed.tolist(), "the groups of the posterior")
    require(len(lost) == len(groups) and _within(lost, 0, tables.MOST_LOSS), "lost bits")
    first_arm = np.unique(slots.groups, return_index=True)[1]
    for group, row, bits in zip(groups.tolist(), given["weights"], lost.tolist(), strict=True):
        count = agent._num_slots(int(first_arm[group]))
        values, raised, lifts = (np.array(column) for column in row)
        require(values.shape == (count,) and values.dtype.kind == "f", f"weights of group {group}")
        first, _ = home_of(agent, group, count)
        fits = _could_weigh(values, first, bits)
        if keeper.has(group):  # whose weights may have any scale
            fits = _could_weigh(values, np.ones(count), tables.MOST_LOSS + 1022)
        require(fits, f"the weights of group {group}")
        require(distinct(numbers(raised), count), f"the lifts of group {group}")
        require(len(raised) == len(lifts), f"the lifts of group {group}")
        require(_within(numbers(lifts), 0, MOST_LIFT), f"the lifts of group {group}")
    for name, particles in data["clouds"].items():
        group = int(name)
        require(group in groups and keeper.has(group) and str(group) == name, "who has particles")
        own = arms[slots.groups[arms] == group].tolist()
        total = sum(Evidence.from_data(data["evidence"][str(arm)]).total for arm in own)
        require(keeper.could_count(group, particles, total), f"the counts of group {name}")
        require(0 <= float(particles["worth"]) < np.inf, f"the particles of group {name}")
    require(
        all(str(group) in data["clouds"] for group in groups.tolist() if keeper.has(group)),
        "who has particles",
    )
    changed, drawn = (numbers(column) for column in given["changed"])
    require(distinct(changed, len(weights.homes)), "the draws")
    require(bool(np.isin(changed, groups).all()), "the draws")
    layers = len(weights.drawn) // len(weights.homes)
    require(len(drawn) == layers * len(changed), "the draws")
    counts = [agent._num_slots(int(first_arm[group])) for group in changed.tolist()]
    most = np.array(counts, dtype=np.int64) - 1
    require(_within(drawn.reshape(layers, len(changed)), 0, most), "the draws")
    require(begun or not len(groups), "the groups of the posterior")


def _check_kinds(agent: Agent, data: dict[str, Any], time: int) -> None:
    laws = agent._learner_state.kind_laws
    assert laws is not None
    checked_count(data["due"], "when kinds are learnt next", 1)
    learnt = checked_count(data["learnt"], "how often kinds were learnt", 0)
    require((learnt > 0) == (len(data["laws"]) > 0) and learnt <= time, "the laws of kinds")
    require(len(data["laws"]) <= len(laws.kinds), "the laws of kinds")
    for law, base in zip(data["laws"], laws.laws, strict=False):
        values = np.array(law, dtype=np.float64)
        require(values.shape == base.shape and bool((values >= 0).all()), "the laws of kinds")
        require(bool((values[base == 0] == 0).all()), "the laws of kinds")
        require(bool((values >= base * LEAST_KEPT).all()), "the laws of kinds")
        require(abs(values.sum() - 1) < 1e-9, "the laws of kinds")


def home_of(agent: AgentView, group: int, count: int) -> tuple[FloatArray, FloatArray]:
    """Weights and lifts [count] of a group's slots."""
    slots, weights = agent._actor.posterior.slots, agent._actor.posterior.weights
    rows, home = int(slots.row_counts[group]), int(weights.homes[group])
    lifts = home + home_size(rows) - rows * LANES
    places = lane_places(count)
    return weights.numbers[home + places], weights.numbers[lifts + places]


def _could_weigh(values: FloatArray, first: FloatArray, lost: int) -> bool:
    """Whether weights are such as kernels leave, having lost so many bits since a rescaling."""
    held = values[values > 0]
    return bool(
        (values >= 0).all()
        and (values <= 1).all()
        and (first[values > 0] > 0).all()
        and len(held)
        and held.min() >= ldexp(1.0, tables.LIFTED - lost - PRIOR_BITS)
        and held.max() >= ldexp(1.0, -lost - PRIOR_BITS)
    )


def numbers(values: Any) -> IntArray:
    """Whole numbers, or a ValueError."""
    array = np.asarray(values)
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ValueError(f"expected whole numbers, got {shown(values)}")
    return array.astype(np.int64)


def _within(values: IntArray, least: Any, most: Any) -> bool:
    return bool(((values >= least) & (values <= most)).all())


def distinct(places: IntArray, size: int) -> bool:
    """Whether places are within a size, and no two are the same."""
    return _within(places, 0, size - 1) and len(np.unique(places)) == len(places)


def require(right: bool | np.bool_, what: str) -> None:
    """Raise unless it is right."""
    if not right:
        raise ProblemError(f"the snapshot's numbers are impossible: {what}; it was edited")
