"""Restless-UCB in plain Python, with the readings that its docstring in the package lists.

It keeps the whole history and looks at it anew whenever it needs something. The optimistic chain is
made by taking probability from one state after another, not by tails; ranks, ties and the world
are those of `tsde_naive`. Of the package it uses the Whittle index only.
"""

import math

import restive as rs
from oracles.tsde_naive import largest, ranks_of

BLENDS = [0.0, 1e-6, 1e-3, 0.1, 1.0]


def primitive(matrix):
    """Whether every state leads to every state in some one number of steps (Wielandt's bound)."""
    size = len(matrix)
    step = [[p > 0 for p in row] for row in matrix]
    reach = step
    for _ in range((size - 1) ** 2):
        reach = [
            [any(row[m] and step[m][t] for m in range(size)) for t in range(size)] for row in reach
        ]
    return all(all(row) for row in reach)


def observations_wanted(horizon):
    """m(T): T^(2/3), rounded up."""
    return next(m for m in range(1, horizon + 1) if m**3 >= horizon**2)


def shifted_row(row, rewards, state, radius):
    """Move up to `radius` of probability from the worst next states to the best possible one."""
    by_reward = sorted(range(len(row)), key=lambda s: (rewards[s], s))
    here = by_reward.index(state)
    possible = [place for place, s in enumerate(by_reward) if row[s] > 0]
    best = max([min(here + 1, len(row) - 1), *possible])
    row = list(row)
    left = radius
    for s in by_reward[:best]:
        moved = min(left, row[s])
        row[s] -= moved
        row[by_reward[best]] += moved
        left -= moved
    return row


def table_of(matrix, rewards, ages):
    """Whittle indices as lists, of the chain itself or of the first blend that has them."""
    size = len(matrix)
    for blend in BLENDS:
        blended = [[(1 - blend) * p + blend / size for p in row] for row in matrix]
        if not primitive(blended):
            continue
        try:
            return rs.policies.whittle_index(
                rs.Arm(blended, rewards=rewards), max_elapsed=ages
            ).index
        except rs.RestiveError:
            pass
    raise AssertionError


class NaiveRestlessUCB:
    """Explore each arm, then play the Whittle index policy of the optimistic arms."""

    def __init__(self, rewards, num_pulls, horizon, last_state, elapsed, wanted=None, scale=1.0,
                 ages=100):  # fmt: skip
        self.rewards, self.num_pulls, self.horizon = rewards, num_pulls, horizon
        self.num_arms = len(rewards)
        self.wanted = wanted or observations_wanted(horizon)
        self.radius = scale * math.sqrt(math.log(horizon) / (2 * self.wanted))
        self.ages = ages
        self.start = list(zip(last_state, elapsed, strict=True))
        self.history = []  # one {arm: state} per step
        self.ranks = None  # once it exploits

    def transitions(self, k):
        """All pairs of states of an arm that were seen one step apart."""
        steps = zip(self.history, self.history[1:], strict=False)
        return [(one[k], two[k]) for one, two in steps if k in one and k in two]

    def is_explored(self, k):
        seen = [before for before, _ in self.transitions(k)]
        return all(seen.count(s) >= self.wanted for s in range(len(self.rewards[k])))

    def optimistic(self, k):
        """Return the matrix that arm k is planned with."""
        pairs = self.transitions(k)
        size = len(self.rewards[k])
        matrix = []
        for s in range(size):
            after = [b for a, b in pairs if a == s]
            row = [after.count(b) / len(after) for b in range(size)]
            matrix.append(shifted_row(row, self.rewards[k], s, self.radius))
        return matrix

    def meta_state(self, k):
        """Return when and in which state an arm was last seen."""
        for ago, step in enumerate(reversed(self.history), start=1):
            if k in step:
                return step[k], ago
        state, elapsed = self.start[k]
        return state, elapsed + len(self.history)

    def select(self):
        arms = range(self.num_arms)
        if self.ranks is None:
            open_arms = [k for k in arms if not self.is_explored(k)]
            if open_arms:
                rest = [k for k in arms if k not in open_arms]
                self.chosen = sorted((open_arms + rest)[: self.num_pulls])
                return self.chosen
            self.matrices = [self.optimistic(k) for k in arms]
            tables = [table_of(self.matrices[k], self.rewards[k], self.ages).tolist() for k in arms]
            self.ranks = ranks_of(tables)
        scores = []
        for k in arms:
            state, elapsed = self.meta_state(k)
            scores.append(self.ranks[k][state][min(elapsed, self.ages) - 1])
        self.chosen = largest(scores, self.num_pulls, arms)
        return self.chosen

    def observe(self, states):
        self.history.append(dict(zip(self.chosen, (int(s) for s in states), strict=True)))
