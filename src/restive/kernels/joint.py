"""The joint chain of all arms' meta-states: numbering states, successors, gain and bias.

A joint state is a row of K cells; the cell of arm k is sigma_k * L_k + (n_k - 1), with ages pooled
from L_k on. States are numbered as they are found, through an open-addressing hash table `slots`
(a power of two long, -1 for free).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.kernels.compiler import kernel
from restive.kernels.tables import BeliefTables

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]

__all__ = [
    "absorbed_values",
    "closed_components",
    "find_or_add",
    "gain_and_bias",
    "optimal_bias",
    "rehash",
    "successors",
]


@kernel
def _slot_of(row: Int32Array, states: Int32Array, slots: Int32Array) -> int:
    """Slot that holds the row, or the free slot where it belongs."""
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


@kernel
def find_or_add(rows: Int32Array, states: Int32Array, slots: Int32Array, count: int) -> int:
    """Add the rows that are new; return the new number of states. Room must be there."""
    for i in range(len(rows)):
        slot = _slot_of(rows[i], states, slots)
        if slots[slot] < 0:
            states[count] = rows[i]
            slots[slot] = count
            count += 1
    return count


@kernel
def rehash(states: Int32Array, count: int, slots: Int32Array) -> None:
    """Enter all states into an empty table."""
    for i in range(count):
        slots[_slot_of(states[i], states, slots)] = i


@kernel
def successors(
    rows: Int32Array, actions: IntArray, arms: BeliefTables, kinds: IntArray,
    states: Int32Array, slots: Int32Array, count: int, add: bool, successor: Int32Array,
    probability: FloatArray, reward: FloatArray,
) -> int:  # fmt: skip
    """Outcomes of pulling actions[i] in rows[i]: numbers and probabilities of the next states.

    With `add` unknown states are numbered anew; without, they must be there. Outcomes of
    probability zero, and the unused places of a row, have probability 0 and successor -1. Returns
    the number of states.
    """
    beliefs = arms.beliefs
    offsets, sizes, lengths = arms.offsets[kinds], arms.sizes[kinds], arms.lengths[kinds]
    num_arms = rows.shape[1]
    num_pulls = actions.shape[1]
    following = np.empty(num_arms, dtype=np.int32)
    seen = np.empty(num_pulls, dtype=np.int64)
    for i in range(len(rows)):
        for k in range(num_arms):
            age = rows[i, k] % lengths[k]
            following[k] = rows[i, k] + (1 if age + 1 < lengths[k] else 0)
        reward[i] = 0.0
        for j in range(num_pulls):
            k = actions[i, j]
            reward[i] += arms.means[arms.mean_offsets[kinds[k]] + rows[i, k]]
        seen[:] = 0
        place = 0
        while True:
            chance = 1.0
            for j in range(num_pulls):
                k = actions[i, j]
                chance *= beliefs[offsets[k] + rows[i, k] * sizes[k] + seen[j]]
                following[k] = seen[j] * lengths[k]
            if chance > 0:
                slot = _slot_of(following, states, slots)
                if slots[slot] < 0 and add:
                    states[count] = following
                    slots[slot] = count
                    count += 1
                successor[i, place] = slots[slot]
                probability[i, place] = chance
                place += 1
            j = 0
            while j < num_pulls:  # count on, arm by arm
                seen[j] += 1
                if seen[j] < sizes[actions[i, j]]:
                    break
                seen[j] = 0
                j += 1
            if j == num_pulls:
                break
        for rest in range(place, successor.shape[1]):
            successor[i, rest] = -1
            probability[i, rest] = 0.0
    return count


@kernel
def closed_components(successor: Int32Array) -> tuple[Int32Array, int]:
    """Label each state by its closed communicating class, -1 for transient states (Tarjan)."""
    count, width = successor.shape
    order = np.full(count, -1, dtype=np.int32)
    low = np.zeros(count, dtype=np.int32)
    component = np.full(count, -1, dtype=np.int32)
    on_stack = np.zeros(count, dtype=np.bool_)
    stack = np.empty(count, dtype=np.int32)
    call = np.empty(count, dtype=np.int32)
    edge = np.zeros(count, dtype=np.int32)
    height, visited, num_components = 0, 0, 0
    for root in range(count):
        if order[root] >= 0:
            continue
        depth = 1
        call[0] = root
        while depth > 0:
            v = call[depth - 1]
            if order[v] < 0:
                order[v] = visited
                low[v] = visited
                visited += 1
                stack[height] = v
                height += 1
                on_stack[v] = True
            descended = False
            while edge[v] < width:
                w = successor[v, edge[v]]
                if w < 0:
                    edge[v] = width
                    break
                if order[w] < 0:
                    call[depth] = w
                    depth += 1
                    descended = True
                    break
                if on_stack[w]:
                    low[v] = min(low[v], low[w])
                edge[v] += 1
            if descended:
                continue
            if low[v] == order[v]:
                while True:
                    height -= 1
                    w = stack[height]
                    on_stack[w] = False
                    component[w] = num_components
                    if w == v:
                        break
                num_components += 1
            depth -= 1
    closed = np.ones(num_components, dtype=np.bool_)
    for v in range(count):
        for j in range(width):
            if successor[v, j] < 0:
                break
            if component[successor[v, j]] != component[v]:
                closed[component[v]] = False
    number = np.full(num_components, -1, dtype=np.int32)
    num_closed = 0
    for c in range(num_components):
        if closed[c]:
            number[c] = num_closed
            num_closed += 1
    for v in range(count):
        component[v] = number[component[v]]
    return component, num_closed


@kernel
def gain_and_bias(
    members: IntArray, successor: Int32Array, probability: FloatArray, reward: FloatArray,
    bias: FloatArray, damping: float, tolerance: float, most_sweeps: int,
) -> tuple[float, float]:  # fmt: skip
    """Gain of a closed set of states with one recurrent class, and its bias (in place).

    Damped relative value iteration. Each sweep's least and largest increase bound the gain from
    both sides; it ends when they agree to `tolerance`. Returns the gain and the gap that is left.
    """
    width = successor.shape[1]
    following = np.zeros(len(members))
    reference = members[0]
    for _ in range(most_sweeps):
        lowest, highest = np.inf, -np.inf
        for i in range(len(members)):
            v = members[i]
            value = reward[v]
            for j in range(width):
                w = successor[v, j]
                if w < 0:
                    break
                value += probability[v, j] * bias[w]
            increase = value - bias[v]
            lowest = min(lowest, increase)
            highest = max(highest, increase)
            following[i] = bias[v] + damping * increase
        shift = following[0]
        for i in range(len(members)):
            bias[members[i]] = following[i] - shift
        if highest - lowest <= tolerance:
            break
    bias[reference] = 0.0
    return 0.5 * (lowest + highest), highest - lowest


@kernel
def absorbed_values(
    values: FloatArray, component: Int32Array, successor: Int32Array, probability: FloatArray,
    earned: FloatArray, tolerance: float, most_sweeps: int,
) -> float:  # fmt: skip
    """What transient states earn until they reach a closed class, plus its value there, in place.

    `values` holds the closed classes' values on their states and is left alone there. Sweeps of
    Gauss and Seidel; the chance to stay is solved for, since a state may hardly ever be left.
    Returns the last sweep's largest change.
    """
    change = 0.0
    for _ in range(most_sweeps):
        change = 0.0
        for v in range(len(values) - 1, -1, -1):
            if component[v] >= 0:
                continue
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
            change = max(change, abs(value - values[v]))
            values[v] = value
        if change <= tolerance:
            break
    return change


@kernel
def optimal_bias(
    successor: Int32Array, probability: FloatArray, reward: FloatArray, num_actions: int,
    damping: float, tolerance: float, most_sweeps: int,
) -> tuple[FloatArray, float, float]:  # fmt: skip
    """Optimal bias and gain of a decision problem whose row m * num_actions + a is action a in m.

    Damped relative value iteration; between two sweeps over all actions several over the best ones
    so far (modified policy iteration). Returns the bias, the gain and the gap of its bounds.
    """
    width = successor.shape[1]
    count = len(reward) // num_actions
    bias = np.zeros(count)
    following = np.zeros(count)
    best_row = np.zeros(count, dtype=np.int64)
    lowest, highest = -np.inf, np.inf
    for sweep in range(most_sweeps):
        full = sweep % 8 == 0
        lowest, highest = np.inf, -np.inf
        for m in range(count):
            first = m * num_actions if full else best_row[m]
            last = first + num_actions if full else first + 1
            best = -np.inf
            for row in range(first, last):
                value = reward[row]
                for j in range(width):
                    w = successor[row, j]
                    if w < 0:
                        break
                    value += probability[row, j] * bias[w]
                if value > best:
                    best = value
                    best_row[m] = row
            increase = best - bias[m]
            lowest = min(lowest, increase)
            highest = max(highest, increase)
            following[m] = bias[m] + damping * increase
        shift = following[0]
        for m in range(count):
            bias[m] = following[m] - shift
        if full and highest - lowest <= tolerance:
            break
    return bias, 0.5 * (lowest + highest), highest - lowest
