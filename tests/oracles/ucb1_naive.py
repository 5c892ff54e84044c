"""UCB1 with several plays in plain Python, from its definition.

An arm's index after t - 1 steps is its mean reward plus sqrt(2 ln t / pulls); arms that were never
pulled come first; the lowest arm wins ties. Rewards are scaled to [0, 1] over all arms.
"""

import math


def scaled(rewards):
    """Scale the rewards of all arms' states to [0, 1] by the smallest and the largest."""
    low = min(min(row) for row in rewards)
    high = max(max(row) for row in rewards)
    return [[(r - low) / (high - low) if high > low else 0.0 for r in row] for row in rewards]


def best(values, count):
    """Return the arms of the largest values, ascending; the lowest arm wins ties."""
    return sorted(sorted(range(len(values)), key=lambda k: (-values[k], k))[:count])


class NaiveUCB1:
    """Keeps every reward of every arm."""

    def __init__(self, rewards, num_pulls):
        self.rewards, self.num_pulls = scaled(rewards), num_pulls
        self.earned = [[] for _ in rewards]
        self.time = 1

    def index(self, k):
        pulls = len(self.earned[k])
        if not pulls:
            return math.inf
        return sum(self.earned[k]) / pulls + math.sqrt(2 * math.log(self.time) / pulls)

    def select(self):
        self.chosen = best([self.index(k) for k in range(len(self.rewards))], self.num_pulls)
        return self.chosen

    def observe(self, states):
        for k, state in zip(self.chosen, states, strict=True):
            self.earned[k].append(self.rewards[k][state])
        self.time += 1
