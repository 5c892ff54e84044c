"""Thompson sampling of coins in plain Python, with the same uniform numbers.

Posteriors are Beta(1 + successes, 1 + failures). A draw is X / (X + Y) of two Gamma draws, X first,
each the cube of a normal draw by rejection (Marsaglia and Tsang 2000, "A simple method for
generating gamma variables"), for which a uniform number is drawn after each normal one.

Normal draws come from the ziggurat (Marsaglia and Tsang 2000, "The ziggurat method"): 256 layers of
equal area, the lowest with the tail. The eight lowest bits of a number pick the layer and its 53
highest the point across it; only a point that is not below the next layer's edge needs another
number, its height or, in the lowest layer, pairs of them for the tail (Marsaglia 1964).
"""

import math
from functools import cache

from oracles.tsde_naive import GOLDEN, LEARNER, MASK, mix, stream_key, uniform
from oracles.ucb1_naive import best, scaled

LAYERS = 256


def curve(x):
    return math.exp(-x * x / 2)


def stack(tail):
    """Right ends of the layers from the lowest on, and the height at which the last one ends."""
    area = tail * curve(tail) + math.sqrt(math.pi / 2) * math.erfc(tail / math.sqrt(2))
    ends, top = [area / curve(tail)], curve(tail)
    while len(ends) < LAYERS and top < 1:
        ends.append(math.sqrt(-2 * math.log(top)))
        top += area / ends[-1]
    return ends, top


@cache
def ziggurat():
    """Bisect for the beginning of the tail with which 256 layers end at height 1."""
    low, high = 3.0, 4.0  # with too near a tail, layers are too large and end too high
    while low < (middle := (low + high) / 2) < high:
        ends, top = stack(middle)
        if len(ends) < LAYERS or top > 1:
            low = middle
        else:
            high = middle
    return [*stack(high)[0], 0.0]


class Stream:
    """Numbers of a stream, one after the other."""

    def __init__(self, key, place=0):
        self.key, self.place = key, place

    def uniform(self):
        self.place += 1
        return uniform(self.key, self.place - 1)

    def bits(self):
        self.place += 1
        return mix((self.key + self.place * GOLDEN) & MASK)

    def normal(self):
        ends = ziggurat()
        while True:
            bits = self.bits()
            layer, across = bits % LAYERS, 2 * (bits >> 11) / 2**53 - 1
            x = across * ends[layer]
            if abs(x) < ends[layer + 1]:
                return x
            if layer == 0:
                return math.copysign(self.beyond(ends[1]), x)
            low, high = curve(ends[layer]), curve(ends[layer + 1])
            if low + (high - low) * self.uniform() < curve(x):
                return x

    def beyond(self, tail):
        """Return the size of a normal draw that is beyond the beginning of the tail."""
        while True:
            x, y = -math.log(1 - self.uniform()) / tail, -math.log(1 - self.uniform())
            if 2 * y > x * x:
                return tail + x

    def gamma(self, shape):
        d = shape - 1 / 3
        while True:
            normal = self.normal()
            u = 1 - self.uniform()
            v = (1 + normal / math.sqrt(9 * d)) ** 3
            if v > 0 and math.log(u) < normal**2 / 2 + d - d * v + d * math.log(v):
                return d * v

    def beta(self, a, b):
        x = self.gamma(a)
        return x / (x + self.gamma(b))


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
