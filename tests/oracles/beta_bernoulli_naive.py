"""Thompson sampling of coins in plain Python, with the same uniform numbers.

Posteriors are Beta(1 + successes, 1 + failures). A draw is X / (X + Y) of two Gamma draws, each the
cube of a normal draw by rejection (Marsaglia and Tsang 2000); normal draws come in pairs by the
polar method, the first for X and the second for Y, and whichever is rejected is tried again with
its half of the next pair. A uniform number is used only when it is asked for.
"""

import math

from oracles.tsde_naive import LEARNER, stream_key, uniform
from oracles.ucb1_naive import best, scaled


class Stream:
    """Numbers of a stream, one after the other."""

    def __init__(self, key, place=0):
        self.key, self.place = key, place

    def uniform(self):
        self.place += 1
        return uniform(self.key, self.place - 1)

    def normals(self):
        while True:
            x, y = 2 * self.uniform() - 1, 2 * self.uniform() - 1
            square = x * x + y * y
            if 0 < square < 1:
                scale = math.sqrt(-2 * math.log(square) / square)
                return x * scale, y * scale

    def gamma_of(self, normal, shape):
        """Return a Gamma draw made of a normal one, None if it is rejected."""
        d = shape - 1 / 3
        v = (1 + normal / math.sqrt(9 * d)) ** 3
        if v <= 0:
            return None
        u = 1 - self.uniform()
        accepted = math.log(u) < normal**2 / 2 + d - d * v + d * math.log(v)
        return d * v if accepted else None

    def beta(self, a, b):
        x = y = None
        while x is None or y is None:
            pair = self.normals()
            if x is None:
                x = self.gamma_of(pair[0], a)
            if y is None:
                y = self.gamma_of(pair[1], b)
        return x / (x + y)


class NaiveBetaBernoulli:
    """Agrawal and Goyal 2012, Algorithm 2, with the N largest draws instead of one."""

    def __init__(self, rewards, num_pulls, seed=0, replication=0):
        self.rewards, self.num_pulls = scaled(rewards), num_pulls
        self.stream = Stream(stream_key(seed, replication, LEARNER))
        self.successes, self.failures = [0] * len(rewards), [0] * len(rewards)

    def select(self):
        drawn = [
            self.stream.beta(wins + 1, losses + 1)
            for wins, losses in zip(self.successes, self.failures, strict=True)
        ]
        self.chosen = best(drawn, self.num_pulls)
        return self.chosen

    def observe(self, states):
        for k, state in zip(self.chosen, states, strict=True):
            if self.stream.uniform() < self.rewards[k][state]:
                self.successes[k] += 1
            else:
                self.failures[k] += 1
