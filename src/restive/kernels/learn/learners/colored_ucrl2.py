"""Colored-UCRL2 on the aggregated meta-states, see `restive.learn.learners.colored_ucrl2`.

Arm k of S states is in one of S (L - 1) + 1 cells: (n - 1) S + s if it was seen in s, n < L steps
ago, and the last one if that was longer ago. A colour is an arm and its cell; a joint state is a
row of cells, numbered with the last arm counting fastest.

`ints` holds the places below, then of each colour the visits before this episode, those in it and
how often each state was seen next, then the sets of N arms, then the set to pull in each joint
state. `floats` holds the average reward that the episode hopes for.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithm
from restive.kernels.jit.compiler import kernel, part
from restive.kernels.learn.learners.memory import OWN, PHASES, PLANNING, Knowledge, LearnerMemory

__all__ = [
    "AGES",
    "COLOURS",
    "GAIN",
    "SETS",
    "STATE",
    "STEP",
    "TABLES",
    "WIDTH",
    "PlausibleArms",
    "choose",
    "joint_state",
    "learn",
    "optimistic_policy",
    "plan_episode",
    "plausible",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
Int32Array = NDArray[np.int32]

AGES = OWN  # L, ages told apart
STEP = OWN + 1  # the time of the next step
STATE = OWN + 2  # the joint state then
WIDTH = OWN + 3  # B, the largest number of states of an arm
COLOURS = OWN + 4  # C, their number
SETS = OWN + 5  # the number of sets of N arms
SWEEPS = OWN + 6  # sweeps of the last value iteration
TABLES = OWN + 7  # where the tables begin

GAIN = 0  # in floats

LAZINESS = 0.5  # of a sweep: weight of the new value; the rest stays, so that no cycle goes round
TIE = 1e-9  # actions whose values differ by no more are equally good


class PlausibleArms(NamedTuple):
    """What may be pulled, what that pays, and the laws that are plausible."""

    sizes: IntArray  # [K] numbers of states
    sets: IntArray  # [A, N] arms that can be pulled together
    shares: FloatArray  # rewards, flat
    laws: FloatArray  # [C, B] estimated law of each colour
    radii: FloatArray  # [C] how far others may be from it


@part
def _cell(size: int, ages: int, state: int, age: int) -> int:
    """Cell of an arm that was seen in a state some steps ago."""
    return int(min((age - 1) * size + state, (ages - 1) * size))


@part
def _colour(knowledge: Knowledge, memory: LearnerMemory, t: int, k: int) -> int:
    """Colour of pulling arm k at time t."""
    ages = memory.ints[AGES]
    cell = _cell(knowledge.sizes[k], ages, memory.last_state[k], t - memory.seen[k])
    return int((ages - 1) * knowledge.reward_offsets[k] + k + cell)


@kernel
def joint_state(knowledge: Knowledge, memory: LearnerMemory, t: int) -> int:
    """Number of the joint state at time t."""
    ages = memory.ints[AGES]
    number = 0
    for k in range(len(knowledge.sizes)):
        size = knowledge.sizes[k]
        cell = _cell(size, ages, memory.last_state[k], t - memory.seen[k])
        number = number * ((ages - 1) * size + 1) + cell
    return number


@part
def choose(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, available: BoolArray,
    chosen: IntArray,
) -> None:  # fmt: skip
    """Write the arms that the episode's policy pulls."""
    ints = memory.ints
    num_pulls = len(chosen)
    sets = TABLES + ints[COLOURS] * (2 + ints[WIDTH])
    policy = sets + ints[SETS] * num_pulls
    first = sets + ints[policy + ints[STATE]] * num_pulls
    for i in range(num_pulls):
        chosen[i] = ints[first + i]


@part
def learn(
    knowledge: Knowledge, memory: LearnerMemory, t: int, key: np.uint64, pulled: IntArray,
    states: IntArray,
) -> None:  # fmt: skip
    """Count what was seen, by colour.

    The episode ends before a step that would visit a colour once more than it was visited before
    the episode (once, if never).
    """
    ints = memory.ints
    num_pulls = len(pulled)
    colours, width = ints[COLOURS], ints[WIDTH]
    before = TABLES
    during = before + colours
    outcomes = during + colours
    sets = outcomes + colours * width
    policy = sets + ints[SETS] * num_pulls
    for i in range(num_pulls):
        colour = _colour(knowledge, memory, t, pulled[i])
        ints[during + colour] += 1
        ints[outcomes + colour * width + states[i]] += 1
    for i in range(num_pulls):  # as `kernels.loop.steps` does again
        memory.last_state[pulled[i]] = states[i]
        memory.seen[pulled[i]] = t
    ints[STEP] = t + 1
    ints[STATE] = joint_state(knowledge, memory, t + 1)
    first = sets + ints[policy + ints[STATE]] * num_pulls
    for i in range(num_pulls):
        colour = _colour(knowledge, memory, t + 1, ints[first + i])
        if ints[during + colour] >= max(1, ints[before + colour]):
            ints[PLANNING] = 1


@kernel
def plan_episode(
    knowledge: Knowledge, memory: LearnerMemory, num_pulls: int, epsilon: float, delta: float,
    scale: float, most_sweeps: int,
) -> None:  # fmt: skip
    """Write the policy that is best for the best plausible laws, and what it hopes for."""
    ints = memory.ints
    colours = ints[COLOURS]
    for colour in range(TABLES, TABLES + colours):
        ints[colour] += ints[colour + colours]
        ints[colour + colours] = 0
    laws, radii = plausible(knowledge, memory, epsilon, delta, scale)
    sets = TABLES + colours * (2 + ints[WIDTH])
    policy = sets + ints[SETS] * num_pulls
    sets_of_arms = ints[sets:policy].reshape(-1, num_pulls)
    arms = PlausibleArms(knowledge.sizes, sets_of_arms, knowledge.shares, laws, radii)
    gain, ints[SWEEPS] = optimistic_policy(
        arms, ints[AGES], ints[STATE], 1 / sqrt(ints[STEP]), most_sweeps, ints[policy:]
    )
    low, high = knowledge.rewards.min(), knowledge.rewards.max()
    memory.floats[GAIN] = num_pulls * low + gain * (high - low)
    ints[PLANNING] = 0
    ints[PHASES] += 1


@kernel
def plausible(
    knowledge: Knowledge, memory: LearnerMemory, epsilon: float, delta: float, scale: float
) -> tuple[FloatArray, FloatArray]:
    """Estimated laws [C, B] of the colours and how far others may be from them [C].

    Of a colour that was never visited before the episode every law is plausible.
    """
    ints = memory.ints
    colours, width = ints[COLOURS], ints[WIDTH]
    laws = np.zeros((colours, width))
    radii = np.full(colours, 2.0)
    spread = 56 * width * logarithm(4 * colours * ints[STEP] / delta)
    colour = 0
    for size in knowledge.sizes:
        for _ in range((ints[AGES] - 1) * size + 1):
            visits = ints[TABLES + colour]
            outcomes = TABLES + 2 * colours + colour * width
            for s in range(size):
                laws[colour, s] = ints[outcomes + s] / visits if visits > 0 else 1 / size
            if visits > 0:
                radii[colour] = epsilon + scale * sqrt(spread / visits)
            colour += 1
    return laws, radii


@kernel
def optimistic_policy(
    arms: PlausibleArms, ages: int, start: int, precision: float, most_sweeps: int,
    policy: IntArray,
) -> tuple[float, int]:  # fmt: skip
    """Extended value iteration on the joint states that can be reached from `start`.

    Writes for each joint state that can be reached the number of the set to pull; returns the gain,
    halfway between its bounds, and the sweeps done. The last sweep leaves the values as they are;
    `most_sweeps` are those that change them.
    """
    sizes, sets = arms.sizes, arms.sets
    num_sets, num_pulls = sets.shape
    colour_starts = np.zeros(len(sizes), dtype=np.int64)
    share_starts = np.zeros(len(sizes), dtype=np.int64)
    for k in range(1, len(sizes)):
        colour_starts[k] = colour_starts[k - 1] + (ages - 1) * sizes[k - 1] + 1
        share_starts[k] = share_starts[k - 1] + sizes[k - 1]
    earned = _rewards_of_outcomes(sizes, sets, arms.shares, share_starts)
    cells, following, found = _reachable(sizes, ages, sets, start, len(policy), earned.shape[1])
    count = len(found)
    colours = np.empty((count, num_sets, num_pulls), dtype=np.int32)
    for m in range(count):
        for a in range(num_sets):
            for i in range(num_pulls):
                colours[m, a, i] = colour_starts[sets[a, i]] + cells[m, sets[a, i]]
    values = np.zeros(count)
    increases = np.zeros(count)
    scratch = np.zeros(earned.shape[1])
    hopes = np.zeros(num_sets)
    sweeps = 0
    while True:
        lowest, highest = inf, -inf
        for m in range(count):
            best = _hopes(arms, earned, colours[m], following[m], values, scratch, hopes)
            a = 0
            while hopes[a] < best - TIE:
                a += 1
            policy[found[m]] = a
            increases[m] = best - values[m]
            lowest = min(lowest, increases[m])
            highest = max(highest, increases[m])
        sweeps += 1
        if highest - lowest < precision or sweeps > most_sweeps:
            break
        shift = values[0] + LAZINESS * increases[0]
        for m in range(count):
            values[m] += LAZINESS * increases[m] - shift
    return 0.5 * (lowest + highest), sweeps


@kernel
def _rewards_of_outcomes(
    sizes: IntArray, sets: IntArray, shares: FloatArray, share_starts: IntArray
) -> FloatArray:
    """Reward [set, outcome]; an outcome is a state of each arm, the last arm's counting fastest."""
    num_sets, num_pulls = sets.shape
    most = 1
    for a in range(num_sets):
        outcomes = 1
        for i in range(num_pulls):
            outcomes *= sizes[sets[a, i]]
        most = max(most, outcomes)
    earned = np.zeros((num_sets, most))
    for a in range(num_sets):
        outcomes = 1
        for i in range(num_pulls):
            outcomes *= sizes[sets[a, i]]
        for outcome in range(outcomes):
            rest = outcome
            for i in range(num_pulls - 1, -1, -1):
                k = sets[a, i]
                earned[a, outcome] += shares[share_starts[k] + rest % sizes[k]]
                rest //= sizes[k]
    return earned


@kernel
def _reachable(
    sizes: IntArray, ages: int, sets: IntArray, start: int, num_states: int, most: int
) -> tuple[Int32Array, Int32Array, IntArray]:
    """Joint states that can be reached: their cells, what follows each set's outcomes, numbers."""
    num_arms = len(sizes)
    num_sets, num_pulls = sets.shape
    strides = np.ones(num_arms, dtype=np.int64)
    for k in range(num_arms - 2, -1, -1):
        strides[k] = strides[k + 1] * ((ages - 1) * sizes[k + 1] + 1)
    place = np.full(num_states, -1, dtype=np.int32)
    found = np.empty(num_states, dtype=np.int64)
    cells = np.empty((num_states, num_arms), dtype=np.int32)
    following = np.zeros((num_states, num_sets, most), dtype=np.int32)
    found[0] = start
    place[start] = 0
    count = 1
    m = 0
    while m < count:
        waiting = 0  # the joint state if no arm is pulled
        for k in range(num_arms):
            cell = found[m] // strides[k] % ((ages - 1) * sizes[k] + 1)
            cells[m, k] = cell
            waiting += min(cell + sizes[k], (ages - 1) * sizes[k]) * strides[k]
        for a in range(num_sets):
            rested = waiting
            outcomes = 1
            for i in range(num_pulls):
                k = sets[a, i]
                rested -= min(cells[m, k] + sizes[k], (ages - 1) * sizes[k]) * strides[k]
                outcomes *= sizes[k]
            for outcome in range(outcomes):
                following_state = rested
                rest = outcome
                for i in range(num_pulls - 1, -1, -1):
                    k = sets[a, i]
                    following_state += min(rest % sizes[k], (ages - 1) * sizes[k]) * strides[k]
                    rest //= sizes[k]
                if place[following_state] < 0:
                    place[following_state] = count
                    found[count] = following_state
                    count += 1
                following[m, a, outcome] = place[following_state]
        m += 1
    return cells[:count], following[:count], found[:count]


@part
def _hopes(
    arms: PlausibleArms, earned: FloatArray, colours: Int32Array, following: Int32Array,
    values: FloatArray, scratch: FloatArray, hopes: FloatArray,
) -> float:  # fmt: skip
    """Write for each set of arms the largest reward plus value of what follows; return the best.

    Largest in the mean over the plausible laws. The law of an arm may depend on what was seen of
    the set's arms before it.
    """
    sizes, sets = arms.sizes, arms.sets
    best = -inf
    for a in range(len(sets)):
        outcomes = 1
        for i in range(sets.shape[1]):
            outcomes *= sizes[sets[a, i]]
        for outcome in range(outcomes):
            scratch[outcome] = earned[a, outcome] + values[following[a, outcome]]
        for i in range(sets.shape[1] - 1, -1, -1):
            size = sizes[sets[a, i]]
            colour = colours[a, i]
            outcomes //= size
            for outcome in range(outcomes):
                scratch[outcome] = _largest_mean(
                    scratch, outcome * size, size, arms.laws, colour, arms.radii[colour]
                )
        hopes[a] = scratch[0]
        best = max(best, hopes[a])
    return best


@part
def _largest_mean(
    values: FloatArray, begin: int, size: int, laws: FloatArray, colour: int, radius: float
) -> float:
    """Largest mean of values[begin:begin + size] under laws within an L1 distance of a colour's.

    Half the distance is moved to the best state, from the worst ones first.
    """
    best = 0
    mean = 0.0
    for s in range(size):
        mean += laws[colour, s] * values[begin + s]
        if values[begin + s] > values[begin + best]:
            best = s
    top = float(values[begin + best])
    left = 0.5 * radius
    if left >= 1.0 - laws[colour, best]:
        return top
    last, last_value = -1, -inf
    while left > 0:
        worst = -1
        for s in range(size):  # the next worst after the last one
            value = values[begin + s]
            later = value > last_value or (value == last_value and s > last)
            if s != best and later and (worst < 0 or value < values[begin + worst]):
                worst = s
        if worst < 0:
            break
        last, last_value = worst, values[begin + worst]
        moved = min(left, laws[colour, worst])
        mean += moved * (top - last_value)
        left -= moved
    return mean
