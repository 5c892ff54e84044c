"""Learners of arms that are seen in every step, in plain Python.

Nothing of the package: counts are kept move by move, Dirichlet rows are drawn as gamma variables
over their sum (those of `beta_bernoulli_naive`), and an index is where the best policy of a single
arm with a subsidy turns, found by comparing the four policies of two states.
"""

import math
from itertools import product

from oracles.beta_bernoulli_naive import Stream
from oracles.tsde_naive import NaiveTSDE, largest


class NaiveDirichlet(NaiveTSDE):
    """TSDE whose groups are Dirichlet rows: alpha plus the moves counted, drawn at every episode.

    Parameters
    ----------
    groups
        Per group: (rows of the pulled and of the unpulled chain, or None if these are the same;
        arms of the group).
    rule
        Indices of the states of (active, passive, arm number).
    mean
        Take the mean of the posterior instead of a draw.
    """

    def __init__(self, groups, rule, num_pulls, horizon, last_state, seed, replication, **options):
        self.alphas = [[[list(row) for row in rows] for rows in group[:2]] for group in groups]
        self.arms, self.rule = [group[2] for group in groups], rule
        self.mean = options.get("most_likely", False)
        some = [([1.0], [dict.fromkeys(group[2], (*group[:2], group[0]))]) for group in groups]
        arms = {k for group in groups for k in group[2]}
        super().__init__(
            some, num_pulls, self.scores, horizon, last_state, [1] * len(last_state), seed,
            replication, None, always=arms, **options,
        )  # fmt: skip

    def prepare_draws(self):
        stream = Stream(self.key, self.num_draws)
        self.indices = {}
        for matrices, arms in zip(self.alphas, self.arms, strict=True):
            if self.mean:
                drawn = [[[a / sum(row) for a in row] for row in rows] for rows in matrices]
            else:
                drawn = [[drawn_row(stream, row) for row in rows] for rows in matrices]
            for k in arms:
                self.indices[k] = self.rule(drawn[0], drawn[1], k)
        self.num_draws = stream.place

    def scores(self, sampled, last_state, elapsed):
        return [self.indices[k][s] for k, s in enumerate(last_state)]

    def learn(self, seen):
        for matrices, arms in zip(self.alphas, self.arms, strict=True):
            for k in arms:
                matrices[0 if k in self.chosen else 1][self.last_state[k]][seen[k]] += 1


def drawn_row(stream, alphas):
    """Draw a row: gamma variables over their sum; one below 1 as that of 1 more, times a power."""
    gammas = []
    for alpha in alphas:
        if alpha == 0:
            gammas.append(0.0)
            continue
        gamma = stream.gamma(alpha if alpha >= 1 else alpha + 1)
        if alpha < 1:
            gamma *= (1 - stream.uniform()) ** (1 / alpha)
        gammas.append(gamma)
    return [gamma / sum(gammas) for gamma in gammas]


# ---------------------------------------------------------------- UCWhittle


def indices_of_two(chances, rewards, unpulled):
    """Whittle's indices of both states, by the gains of the four policies under a subsidy.

    `chances` are those of state 1 next: not pulled from 0 and from 1, pulled from 0 and from 1. The
    index of a state is the subsidy at which the best policy that pulls it and the best one that
    does not gain the same.
    """
    lines = {}  # gain and share of steps without a pull
    for pulls in product((0, 1), repeat=2):
        up, stay = chances[2 * pulls[0]], chances[2 * pulls[1] + 1]
        one = up / (1 - stay + up)  # share of steps in state 1
        shares = (1 - one, one)
        earned = [(rewards if pulls[s] else unpulled)[s] for s in (0, 1)]
        lines[pulls] = (
            sum(p * r for p, r in zip(shares, earned, strict=True)),
            sum(p for p, a in zip(shares, pulls, strict=True) if not a),
        )
    found = []
    for s in (0, 1):
        pulling = [line for pulls, line in lines.items() if pulls[s]]
        resting = [line for pulls, line in lines.items() if not pulls[s]]
        crossings = [
            (a[0] - b[0]) / (b[1] - a[1]) for a, b in product(pulling, resting) if b[1] != a[1]
        ]

        def apart(subsidy, pulling=pulling, resting=resting):
            best = [max(g + m * subsidy for g, m in some) for some in (pulling, resting)]
            return abs(best[0] - best[1])

        found.append(min(crossings, key=apart))
    return found


class NaiveUCWhittle:
    """Each probability in p_hat -+ c sqrt(2 S ln(2 S A K e^4 / delta) / max(1, n)), e the episode.

    The index of a state is the largest over the 16 corners, which stay `margin` from 0 and 1.
    """

    def __init__(
        self, rewards, unpulled, num_pulls, last_state, length=20, scale=1.0, margin=1e-6,
        delta=1e-3,
    ):  # fmt: skip
        self.rewards, self.unpulled, self.num_pulls = rewards, unpulled, num_pulls
        self.length, self.scale, self.margin, self.delta = length, scale, margin, delta
        self.last_state, self.time = list(last_state), 0
        self.moves = [[[0, 0] for _ in range(4)] for _ in rewards]  # not pulled 0, 1; pulled 0, 1

    def plan(self, k, episode):
        num_arms = len(self.rewards)
        width = 2 * 2 * math.log(2 * 2 * 2 * num_arms * episode**4 / self.delta)
        ranges = []
        for bad, good in self.moves[k]:
            seen = bad + good
            middle = good / seen if seen else 0.5
            radius = self.scale * math.sqrt(width / max(1, seen))
            ranges.append(
                [min(max(middle + way * radius, self.margin), 1 - self.margin) for way in (-1, 1)]
            )
        values = [
            indices_of_two(corner, self.rewards[k], self.unpulled[k]) for corner in product(*ranges)
        ]
        return [max(value[s] for value in values) for s in (0, 1)]

    def select(self):
        if self.time % self.length == 0:
            episode = self.time // self.length + 1
            self.indices = [self.plan(k, episode) for k in range(len(self.rewards))]
        scores = [own[s] for own, s in zip(self.indices, self.last_state, strict=True)]
        self.chosen = largest(scores, self.num_pulls, range(len(scores)))
        return self.chosen

    def observe(self, states):
        for k, state in enumerate(states):
            self.moves[k][2 * (k in self.chosen) + self.last_state[k]][state] += 1
            self.last_state[k] = state
        self.time += 1
