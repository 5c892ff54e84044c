"""Bandits whose arms are always seen, or some of them, by enumeration and linear programs.

Nothing of restive's tables is used: an arm that is always seen has its state as its cell, any other
one (state, age) with ages up to L, from which on they stay. What a step earns and where it leads is
written out arm by arm.
"""

from itertools import combinations, product

import numpy as np
from scipy.optimize import linprog


def cells_of(arm, most_ages):
    """Every cell of an arm: (state, 1), or (state, age)."""
    ages = 1 if arm.seen == "always" else most_ages
    return [(s, n) for s in range(arm.num_states) for n in range(1, ages + 1)]


def step(arm, cell, pulled, most_ages):
    """Expected reward of a step from a cell, and where it leads: a list of (cell, chance)."""
    s, n = cell
    if arm.seen == "always":
        matrix, rewards = (
            (arm.active, arm.rewards) if pulled else (arm.passive, arm.passive_rewards)
        )
        return rewards[s], [((j, 1), p) for j, p in enumerate(matrix[s])]
    belief = arm.active[s] @ np.linalg.matrix_power(arm.passive, n - 1)
    if pulled:
        return belief @ arm.rewards, [((j, 1), p) for j, p in enumerate(belief)]
    return belief @ arm.passive_rewards, [((s, min(n + 1, most_ages)), 1.0)]


def joint_chain(arms, choose, start, most_ages):
    """States reached from `start`, their matrix and rewards, where `choose` says whom to pull."""
    numbers, todo, rows, earned = {start: 0}, [start], [], []
    for state in todo:
        pulled = set(choose(state))
        total, ways = 0.0, [((), 1.0)]
        for k, (arm, cell) in enumerate(zip(arms, state, strict=True)):
            reward, following = step(arm, cell, k in pulled, most_ages)
            total += reward
            ways = [((*to, cell), p * q) for to, p in ways for cell, q in following if q > 0]
        for to, _ in ways:
            if to not in numbers:
                numbers[to] = len(numbers)
                todo.append(to)
        rows.append([(numbers[to], p) for to, p in ways])
        earned.append(total)
    matrix = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        for j, p in row:
            matrix[i, j] += p
    return numbers, matrix, np.array(earned)


def gain_and_span(arms, choose, start, most_ages):
    """Average reward and span of the bias over all states reached, of a chain with one class."""
    _, matrix, earned = joint_chain(arms, choose, start, most_ages)
    count = len(earned)
    system = np.column_stack([np.eye(count) - matrix, np.ones(count)])
    system = np.vstack([system, np.eye(1, count + 1)])  # the bias of the start is 0
    found = np.linalg.lstsq(system, np.append(earned, 0.0), rcond=None)[0]
    return found[-1], np.ptp(found[:-1])


def optimum(arms, num_pulls, most_ages):
    """Largest average reward of any policy, by a linear program over states and actions."""
    states = list(product(*(cells_of(arm, most_ages) for arm in arms)))
    numbers = {state: i for i, state in enumerate(states)}
    actions = list(combinations(range(len(arms)), num_pulls))
    flow, earned = np.zeros((len(states) + 1, len(states) * len(actions))), []
    for i, state in enumerate(states):
        for a, pulled in enumerate(actions):
            column = i * len(actions) + a
            total, ways = 0.0, [((), 1.0)]
            for k, (arm, cell) in enumerate(zip(arms, state, strict=True)):
                reward, following = step(arm, cell, k in pulled, most_ages)
                total += reward
                ways = [((*to, c), p * q) for to, p in ways for c, q in following if q > 0]
            flow[i, column] += 1.0
            for to, p in ways:
                flow[numbers[to], column] -= p
            earned.append(total)
    flow[-1] = 1.0
    right = np.zeros(len(states) + 1)
    right[-1] = 1.0
    return -linprog(-np.array(earned), A_eq=flow, b_eq=right, method="highs").fun


def relaxation(arms, num_pulls, most_ages):
    """Largest average reward where N arms are pulled on average: a linear program over cells."""
    columns, earned, pulls = [], [], []
    cells = [(k, cell) for k, arm in enumerate(arms) for cell in cells_of(arm, most_ages)]
    numbers = {cell: i for i, cell in enumerate(cells)}
    for k, cell in cells:
        for pulled in (False, True):
            reward, following = step(arms[k], cell, pulled, most_ages)
            column = np.zeros(len(cells) + len(arms))
            column[numbers[k, cell]] += 1.0
            for to, p in following:
                column[numbers[k, to]] -= p
            column[len(cells) + k] = 1.0
            columns.append(column)
            earned.append(reward)
            pulls.append(float(pulled))
    right = np.concatenate([np.zeros(len(cells)), np.ones(len(arms))])
    equal = np.vstack([np.array(columns).T, pulls])
    found = linprog(-np.array(earned), A_eq=equal, b_eq=np.append(right, num_pulls), method="highs")
    return -found.fun


def advantage(arm, subsidy, discount):
    """What pulling is worth over not pulling, by state, at one subsidy: policy iteration.

    Of an arm that is always seen; for discount 1 by the discount 1 - 1e-9.
    """
    beta = 1 - 1e-9 if discount == 1 else discount
    size = arm.num_states
    pull = np.zeros(size, dtype=bool)
    for _ in range(1000):
        matrix = np.where(pull[:, None], arm.active, arm.passive)
        reward = np.where(pull, arm.rewards, arm.passive_rewards + subsidy)
        system = np.eye(size) - beta * matrix
        system[:, 0] = 1.0  # relative values: that of state 0 is replaced by the gain
        relative = np.linalg.solve(system, reward)
        relative[0] = 0.0
        gained = arm.rewards - arm.passive_rewards - subsidy
        gained = gained + beta * (arm.active - arm.passive) @ relative
        better = np.where(np.abs(gained) < 1e-11, pull, gained > 0)
        if (better == pull).all():
            return gained
        pull = better
    raise RuntimeError("policy iteration did not settle")
