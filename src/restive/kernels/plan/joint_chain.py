"""The joint chain of all arms' meta-states: numbering its states, and its long-run values.

A joint state is a row of K cells; the cell of arm k is sigma_k * L_k + (n_k - 1), with ages pooled
from L_k on; of an arm that is always seen it is 2 sigma_k, see `restive.problem.beliefs`. States
are numbered as they are found, through an open-addressing hash table, and what follows from each is
written down by number (`Outcomes`). From that come closed classes, the gain and bias of a class,
what is earned on the way to it, and the best that can be done.

Kernels that sweep over states return after about `most_work` outcomes, and continue where they left
off when called again with the same arrays; `progress` begins as zeros. They return whether they are
done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.jit.compiler import hot_kernel, inlined, part
from restive.kernels.jit.handles import by_address

__all__ = [
    "ArmTables",
    "Outcomes",
    "StateNumbers",
    "Sweeps",
    "absorb",
    "find_or_add",
    "improve_bias",
    "improve_optimal_bias",
    "label_components",
    "rehash",
    "successors",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]


# What `Sweeps.progress` holds, and `Sweeps.increase`.
ROW, SWEEP = 0, 1
LOWEST, HIGHEST = 0, 1

# Rows of `found` [NUM_ROWS, M] and places of `progress` while components are labelled.
ORDER, LOW, COMPONENT, STACKED, STACK, CALL, EDGE = 0, 1, 2, 3, 4, 5, 6
NUM_ROWS = 7
ROOT, DEPTH, HEIGHT, VISITED, COMPONENTS = 0, 1, 2, 3, 4
NUM_PLACES = 5


class ArmTables(NamedTuple):
    """Beliefs and expected rewards of all arms, and room for one step of theirs."""

    beliefs: FloatArray  # flat: that of a cell begins at begins[k] + cell * sizes[k]
    means: FloatArray  # flat: that of a cell is at mean_begins[k] + cell
    begins: IntArray  # [K]
    mean_begins: IntArray  # [K]
    sizes: IntArray  # [K] numbers of states
    lengths: IntArray  # [K] numbers of ages
    always: IntArray  # arms that are seen whether pulled or not, ascending
    following: Int32Array  # [K] room
    seen: IntArray  # [K] room: states in which the movers are seen
    movers: IntArray  # [K] room: arms that will be seen
    laws: IntArray  # [K] room: where the laws of their states begin


class StateNumbers(NamedTuple):
    """Joint states by number, and the table in which a state's number is looked up."""

    states: Int32Array  # [room, K]
    slots: Int32Array  # [a power of two] numbers, -1 for free


class Outcomes(NamedTuple):
    """What follows from some joint states: a row each, unused places are -1 and 0."""

    successor: Int32Array  # [M, B] numbers of the next states
    probability: FloatArray  # [M, B]
    reward: FloatArray  # [M] expected reward of the step


class Sweeps(NamedTuple):
    """How far sweeps over all states have come, and when they end."""

    progress: IntArray  # [2] ROW and SWEEP
    increase: FloatArray  # [2] the least and the largest of the last sweep
    tolerance: float  # for how far these may be apart
    most: int


@part
def _slot_of(row: Int32Array, numbers: StateNumbers) -> int:
    """Slot that holds the row, or the free slot where it belongs."""
    states, slots = numbers.states, numbers.slots
    mask = len(slots) - 1
    mixed = 0
    for k in range(len(row)):
        # kept below 2^31, so that the product never leaves 64 bits
        mixed = ((mixed ^ int(row[k])) * 1000003 + k) & 0x7FFFFFFF
    slot = (mixed ^ (mixed >> 15)) & mask
    while slots[slot] >= 0:
        same = True
        for k in range(len(row)):
            if states[slots[slot], k] != row[k]:
                same = False
                break
        if same:
            break
        slot = (slot + 1) & mask
    return slot


@part
def _number_of(row: Int32Array, numbers: StateNumbers, count: int, add: bool) -> int:
    """Return the number of a state; if it is new it is `count`, and entered where `add` says so."""
    slot = _slot_of(row, numbers)
    if numbers.slots[slot] < 0 and add:
        for k in range(len(row)):
            numbers.states[count, k] = row[k]
        numbers.slots[slot] = count
    return int(numbers.slots[slot])


@hot_kernel
def find_or_add(rows: Int32Array, numbers: StateNumbers, count: int) -> int:
    """Add the rows that are new; return the new number of states. Room must be there."""
    numbers = by_address(numbers)
    for i in range(len(rows)):
        if _number_of(rows[i], numbers, count, bool(1)) == count:
            count += 1
    return count


@hot_kernel
def rehash(numbers: StateNumbers, first: int, last: int) -> None:
    """Enter the states with numbers in [first, last) into a table that does not hold them."""
    numbers = by_address(numbers)
    for i in range(first, last):
        numbers.slots[_slot_of(numbers.states[i], numbers)] = i


@hot_kernel
def successors(
    rows: Int32Array, actions: IntArray, arms: ArmTables, numbers: StateNumbers, count: int,
    add: bool, found: Outcomes,
) -> int:  # fmt: skip
    """Outcomes of pulling actions[i] in rows[i]: numbers and probabilities of the next states.

    With `add` unknown states are numbered anew; without, they must be there. Outcomes of
    probability zero are left out. Returns the number of states.
    """
    numbers = by_address(numbers)
    beliefs, sizes, lengths = arms.beliefs, arms.sizes, arms.lengths
    following, seen, movers, laws = arms.following, arms.seen, arms.movers, arms.laws
    num_pulls = actions.shape[1]
    for i in range(len(rows)):
        for k in range(rows.shape[1]):
            age = rows[i, k] % lengths[k]
            following[k] = rows[i, k] + (1 if age + 1 < lengths[k] else 0)
        found.reward[i] = 0.0
        for j in range(num_pulls):
            k = actions[i, j]
            found.reward[i] += arms.means[arms.mean_begins[k] + rows[i, k]]
            movers[j] = k
            laws[j] = arms.begins[k] + rows[i, k] * sizes[k]
            seen[j] = 0
        moving = num_pulls
        j = 0
        for n in range(len(arms.always)):  # those that are not pulled move by the next law
            k = arms.always[n]
            while j < num_pulls and actions[i, j] < k:
                j += 1
            if j == num_pulls or actions[i, j] != k:
                movers[moving] = k
                laws[moving] = arms.begins[k] + (rows[i, k] + 1) * sizes[k]
                seen[moving] = 0
                moving += 1
        place = 0
        j = 0
        while j < moving:
            chance = 1.0
            for m in range(moving):
                chance *= beliefs[laws[m] + seen[m]]
                following[movers[m]] = seen[m] * lengths[movers[m]]
            if chance > 0:
                number = _number_of(following, numbers, count, add)
                if number == count:
                    count += 1
                found.successor[i, place] = number
                found.probability[i, place] = chance
                place += 1
            j = 0
            while j < moving:  # count on, arm by arm
                seen[j] += 1
                if seen[j] < sizes[movers[j]]:
                    break
                seen[j] = 0
                j += 1
        for rest in range(place, found.successor.shape[1]):
            found.successor[i, rest] = -1
            found.probability[i, rest] = 0.0
    return count


@hot_kernel
def label_components(
    successor: Int32Array, found: Int32Array, progress: IntArray, most_work: int
) -> bool:
    """Number the communicating classes, each after those that it leads to (Tarjan).

    Rows ORDER and COMPONENT of `found` begin as -1, the others as 0.
    """
    count, width = successor.shape
    done = 0
    while progress[ROOT] < count:
        if progress[DEPTH] == 0:
            if found[ORDER, progress[ROOT]] >= 0:
                progress[ROOT] += 1
                continue
            found[CALL, 0] = progress[ROOT]
            progress[DEPTH] = 1
        while progress[DEPTH] > 0:
            if done > most_work:
                return False
            v = found[CALL, progress[DEPTH] - 1]
            if found[ORDER, v] < 0:
                found[ORDER, v] = progress[VISITED]
                found[LOW, v] = progress[VISITED]
                progress[VISITED] += 1
                found[STACK, progress[HEIGHT]] = v
                progress[HEIGHT] += 1
                found[STACKED, v] = 1
            descended = False
            while found[EDGE, v] < width:
                done += 1
                w = successor[v, found[EDGE, v]]
                if w < 0:
                    found[EDGE, v] = width
                    break
                if found[ORDER, w] < 0:
                    found[CALL, progress[DEPTH]] = w
                    progress[DEPTH] += 1
                    descended = True
                    break
                if found[STACKED, w]:
                    found[LOW, v] = min(found[LOW, v], found[LOW, w])
                found[EDGE, v] += 1
            if descended:
                continue
            if found[LOW, v] == found[ORDER, v]:
                while found[STACKED, v]:
                    progress[HEIGHT] -= 1
                    w = found[STACK, progress[HEIGHT]]
                    found[STACKED, w] = 0
                    found[COMPONENT, w] = progress[COMPONENTS]
                progress[COMPONENTS] += 1
            progress[DEPTH] -= 1
    return True


@inlined
def _ahead(chain: Outcomes, row: int, bias: FloatArray) -> float:
    """Return the reward of a row and the bias that is expected after it."""
    value = chain.reward[row]
    for j in range(chain.successor.shape[1]):
        w = chain.successor[row, j]
        if w < 0:
            break
        value += chain.probability[row, j] * bias[w]
    return float(value)


@hot_kernel
def improve_bias(
    members: IntArray, chain: Outcomes, bias: FloatArray, following: FloatArray, damping: float,
    sweeps: Sweeps, most_work: int,
) -> bool:  # fmt: skip
    """Bias of a closed set of states with one recurrent class, in place.

    Damped relative value iteration. Each sweep's least and largest increase bound the gain from
    both sides; it ends when they agree to the tolerance.
    """
    progress, increase = sweeps.progress, sweeps.increase
    done = 0
    while progress[SWEEP] < sweeps.most:
        if progress[ROW] == 0:
            increase[LOWEST], increase[HIGHEST] = np.inf, -np.inf
        while progress[ROW] < len(members):
            if done > most_work:
                return False
            done += chain.successor.shape[1]
            i = progress[ROW]
            v = members[i]
            change = _ahead(chain, v, bias) - bias[v]
            increase[LOWEST] = min(increase[LOWEST], change)
            increase[HIGHEST] = max(increase[HIGHEST], change)
            following[i] = bias[v] + damping * change
            progress[ROW] += 1
        shift = following[0]
        for i in range(len(members)):
            bias[members[i]] = following[i] - shift
        progress[ROW] = 0
        progress[SWEEP] += 1
        if increase[HIGHEST] - increase[LOWEST] <= sweeps.tolerance:
            break
    bias[members[0]] = 0.0
    return True


@hot_kernel
def absorb(
    values: FloatArray, component: Int32Array, chain: Outcomes, earned: FloatArray, sweeps: Sweeps,
    most_work: int,
) -> bool:  # fmt: skip
    """What transient states earn until they reach a closed class, plus its value there, in place.

    `values` holds the closed classes' values on their states (component >= 0) and is left alone
    there; `earned` [M] takes the place of the rewards. Sweeps of Gauss and Seidel; the chance to
    stay is solved for, since a state may hardly ever be left. The largest `increase` is that of a
    sweep's absolute changes.
    """
    progress, increase = sweeps.progress, sweeps.increase
    successor, probability = chain.successor, chain.probability
    done = 0
    while progress[SWEEP] < sweeps.most:
        if progress[ROW] == 0:
            increase[HIGHEST] = 0.0
        while progress[ROW] < len(values):
            if done > most_work:
                return False
            v = len(values) - 1 - progress[ROW]
            progress[ROW] += 1
            done += 1
            if component[v] >= 0:
                continue
            done += successor.shape[1]
            value = earned[v]
            leaving = 1.0
            for j in range(successor.shape[1]):
                w = successor[v, j]
                if w < 0:
                    break
                if w == v:
                    leaving -= probability[v, j]
                else:
                    value += probability[v, j] * values[w]
            value /= leaving
            increase[HIGHEST] = max(increase[HIGHEST], abs(value - values[v]))
            values[v] = value
        progress[ROW] = 0
        progress[SWEEP] += 1
        if increase[HIGHEST] <= sweeps.tolerance:
            break
    return True


@hot_kernel
def improve_optimal_bias(
    choices: Outcomes, bias: FloatArray, following: FloatArray, best_row: IntArray, damping: float,
    sweeps: Sweeps, most_work: int,
) -> bool:  # fmt: skip
    """Optimal bias of a decision problem, in place; every state m has as many rows, its actions.

    Damped relative value iteration; between two sweeps over all actions several over the best ones
    so far (modified policy iteration).
    """
    progress, increase = sweeps.progress, sweeps.increase
    num_actions = len(choices.reward) // len(bias)
    done = 0
    while progress[SWEEP] < sweeps.most:
        full = progress[SWEEP] % 8 == 0
        if progress[ROW] == 0:
            increase[LOWEST], increase[HIGHEST] = np.inf, -np.inf
        while progress[ROW] < len(bias):
            if done > most_work:
                return False
            m = progress[ROW]
            first = m * num_actions if full else best_row[m]
            last = first + num_actions if full else first + 1
            done += (last - first) * choices.successor.shape[1]
            best = -np.inf
            for row in range(first, last):
                value = _ahead(choices, row, bias)
                if value > best:
                    best = value
                    best_row[m] = row
            change = best - bias[m]
            increase[LOWEST] = min(increase[LOWEST], change)
            increase[HIGHEST] = max(increase[HIGHEST], change)
            following[m] = bias[m] + damping * change
            progress[ROW] += 1
        shift = following[0]
        for m in range(len(bias)):
            bias[m] = following[m] - shift
        progress[ROW] = 0
        progress[SWEEP] += 1
        if full and increase[HIGHEST] - increase[LOWEST] <= sweeps.tolerance:
            break
    return True
