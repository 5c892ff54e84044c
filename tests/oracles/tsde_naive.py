"""TSDE in plain Python, straight from Algorithm 1 and the numbered readings. Slow on purpose.

Nothing is shared with the package: beliefs are filtered by plain matrix products (readings 6 and
14), the posterior is a sum of logarithms, every counter is scanned at the top of every step
(readings 1 to 3), and SplitMix64 is written anew in Python's whole numbers. An *arm* here is
(active, passive, rewards) in nested lists; the arms' candidates come in *groups*, each with one
posterior: one arm per group under an independent prior, all arms in one under a joint prior.

What a sampled system plays is a *chooser*: a function (sampled, last_state, elapsed) -> scores per
arm, integers of which the largest are pulled, the lowest arm winning ties (reading 8).
"""

import math
from itertools import pairwise

MASK = 2**64 - 1
GOLDEN = 0x9E3779B97F4A7C15
WORLD, LEARNER, TRUTH = 0, 1, 2


def mix(x):
    """Output function of SplitMix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def stream_key(seed, replication, stream):
    x = mix((seed + GOLDEN) & MASK) ^ replication
    x = mix((x + GOLDEN) & MASK) ^ stream
    return mix((x + GOLDEN) & MASK)


def bits(key, place):
    """Return the bits at a place of a stream."""
    return mix((key + (place + 1) * GOLDEN) & MASK)


def uniform(key, place):
    """Return the number at a place of a stream, in [0, 1) with 53 bits."""
    return (bits(key, place) >> 11) * 2.0**-53


def row_times(row, matrix):
    return [sum(row[i] * matrix[i][j] for i in range(len(row))) for j in range(len(row))]


def start_belief(arm, state, elapsed):
    """e_s P_active P_passive^(n-1) (reading 6)."""
    active, passive, _ = arm
    law = list(active[state])
    for _ in range(elapsed - 1):
        law = row_times(law, passive)
    return law


def mixing_time(arm, epsilon=0.25):
    """Return the first t >= 1 at which the passive chain is within epsilon of its limit (L1)."""
    size = len(arm[1])
    laws = [[float(i == j) for j in range(size)] for i in range(size)]
    power = arm[1]
    for _ in range(12):  # 4096 steps: nothing of the start is left
        power = [row_times(row, power) for row in power]
    limit = power[0]
    t = 0
    while True:
        t += 1
        laws = [row_times(law, arm[1]) for law in laws]
        if max(sum(abs(a - b) for a, b in zip(law, limit, strict=True)) for law in laws) <= epsilon:
            return t


def truncation(horizon, quarter):
    """T^mix, rounded up (reading 5), and at least 1."""
    return max(1, math.ceil(math.log2(horizon) * quarter))


def ranks_of(tables, tolerance=1e-14):
    """Replace the values of all tables by ranks; neighbours within the tolerance share one."""
    values = sorted(value for table in tables for row in table for value in row)
    gap = tolerance * max(abs(values[0]), abs(values[-1]))
    rank_of = {values[0]: 0}
    for lower, upper in pairwise(values):
        rank_of[upper] = rank_of[lower] + (upper - lower > gap)
    return [[[rank_of[value] for value in row] for row in table] for table in tables]


def index_chooser(candidates, rule):
    """Chooser of an index rule; `candidates[k]` are arm k's, `rule` makes a table of one."""
    ranks, places = [], []
    for arms in candidates:
        places.append(range(len(ranks), len(ranks) + len(arms)))
        ranks += [rule(arm) for arm in arms]
    ranks = ranks_of(ranks)

    def scores(sampled, last_state, elapsed):
        now = []
        for k, candidate in enumerate(sampled):
            row = ranks[places[k][candidate]][last_state[k]]
            now.append(row[min(elapsed[k], len(row)) - 1])
        return now

    return scores


def largest(scores, count, allowed):
    """Return the `count` arms with the largest scores, ascending; the lowest arm wins ties."""
    return sorted(sorted(allowed, key=lambda k: (-scores[k], k))[:count])


def inverted(u, weights):
    """Return the first place with u * total < running total."""
    total, running = sum(weights), 0.0
    for place, weight in enumerate(weights):
        running += weight
        if weight > 0 and u * total < running:
            return place
    return max(place for place, weight in enumerate(weights) if weight > 0)


class NaiveWorld:
    """The truth: a state is drawn only for arms that are pulled, from their belief.

    With `passive_rewards` the other arms pay what is expected of them under their belief. Arms in
    `always` are seen in every step: each has a state, is paid for that one, and moves.
    """

    def __init__(
        self, truth, last_state, elapsed, seed, replication, passive_rewards=None, always=()
    ):
        self.truth, self.always, self.last_state = truth, always, list(last_state)
        self.passive_rewards = passive_rewards or [[0.0] * len(arm[2]) for arm in truth]
        self.key = stream_key(seed, replication, WORLD)
        self.time = 1
        self.beliefs = [
            start_belief(arm, s, n) for arm, s, n in zip(truth, last_state, elapsed, strict=True)
        ]

    def pull(self, arms):
        """Return states of all arms that are shown, rewards earned and those to be expected."""
        num_arms = len(self.truth)
        states, earned, expected = [], 0.0, 0.0
        hidden = [k for k in arms if k not in self.always]
        for k in hidden:
            belief, rewards = self.beliefs[k], self.truth[k][2]
            states.append(inverted_law(uniform(self.key, self.time * num_arms + k), belief))
            earned += rewards[states[-1]]
            expected += sum(p * r for p, r in zip(belief, rewards, strict=True))
        seen = dict(zip(hidden, states, strict=True))
        for k, (active, passive, rewards) in enumerate(self.truth):
            if k in self.always:
                s = self.last_state[k]
                law, paid = (
                    (active[s], rewards[s])
                    if k in arms
                    else (passive[s], self.passive_rewards[k][s])
                )
                seen[k] = inverted_law(uniform(self.key, self.time * num_arms + k), law)
                earned, expected = earned + paid, expected + paid
                self.last_state[k] = seen[k]
                continue
            if k not in seen:
                pairs = zip(self.beliefs[k], self.passive_rewards[k], strict=True)
                paid = sum(p * r for p, r in pairs)
                earned, expected = earned + paid, expected + paid
            self.beliefs[k] = (
                list(active[seen[k]]) if k in seen else row_times(self.beliefs[k], passive)
            )
        self.time += 1
        return [seen[k] for k in sorted(seen)], earned, expected


def inverted_law(u, law):
    """Return the smallest state with u < running total."""
    running = 0.0
    for state, probability in enumerate(law):
        running += probability
        if probability > 0 and u < running:
            return state
    return max(state for state, probability in enumerate(law) if probability > 0)


class NaiveTSDE:
    """Algorithm 1.

    Parameters
    ----------
    groups
        Per group: (prior weights, candidates), a candidate being {arm number: arm}.
    chooser
        What a sampled system plays.
    horizon
        T, or None for the doubling trick (reading 13).
    quarter
        T^mix(1/4); None for the largest over the arms of all candidates that have any weight.
    length, length_rule, doubling_rule
        Make relatives: the length of every episode (None for one more than the last), and whether
        the length and the counters end episodes.
    most_likely
        Take each group's mode, the first of several, instead of a draw.
    exploring
        Chance that a step pulls arms at random.
    always
        Arms that are seen in every step. In place of an age, their counters tell whether the arm
        was pulled (1) or not (2), and so does the law of what is seen next.
    """

    def __init__(
        self, groups, num_pulls, chooser, horizon, last_state, elapsed, seed, replication, quarter,
        length=None, length_rule=True, doubling_rule=True, most_likely=False, exploring=0.0,
        always=(),
    ):  # fmt: skip
        self.always = always
        self.length, self.length_rule, self.doubling_rule = length, length_rule, doubling_rule
        self.most_likely, self.exploring = most_likely, exploring
        self.groups, self.num_pulls, self.chooser = groups, num_pulls, chooser
        self.horizon = horizon
        arms = [
            arm
            for weights, candidates in groups
            for weight, each in zip(weights, candidates, strict=True)
            for k, arm in each.items()
            if weight > 0 and k not in always
        ]
        self.quarter = max(map(mixing_time, arms), default=1) if quarter is None else quarter
        self.last_state, self.elapsed = list(last_state), list(elapsed)
        self.num_arms = len(self.last_state)
        self.key = stream_key(seed, replication, LEARNER)
        self.num_draws = 0
        self.log_weights = [
            [math.log(w) if w > 0 else -math.inf for w in weights] for weights, _ in groups
        ]
        self.beliefs = [
            [
                {k: start_belief(arm, last_state[k], elapsed[k]) for k, arm in each.items()}
                for each in candidates
            ]
            for _, candidates in groups
        ]
        self.sizes = [0] * self.num_arms
        for _, candidates in groups:
            for k, arm in candidates[0].items():
                self.sizes[k] = len(arm[2])
        self.time = 1
        self.episode, self.epoch = 0, 0
        self.ended_by = set()  # the rules of which any ended the last episode
        self.begin_epoch()

    def begin_epoch(self):
        length = 2**self.epoch if self.horizon is None else self.horizon
        self.mixing = max(truncation(length, self.quarter), 2 if self.always else 1)
        self.epoch_end = 2 ** (self.epoch + 1) if self.horizon is None else math.inf
        self.counts = {
            (k, s, n): 0
            for k in range(self.num_arms)
            for s in range(self.sizes[k])
            for n in range(1, self.mixing + 1)
        }
        self.started = None  # t_i
        self.previous = self.time  # t_0: the first episode's T_0 is 0 (reading 4)

    def termination(self):
        """Return the rules that end the episode now (reading 3: strict, before the step)."""
        if self.started is None:
            return {"epoch"} if self.epoch else {"none"}
        rules = set()
        longest = self.last_length + 1 if self.length is None else self.length
        if self.length_rule and self.time >= self.started + longest:
            rules.add("length")
        if self.doubling_rule and any(
            count > 2 * self.counts_at_start[zeta] for zeta, count in self.counts.items()
        ):
            rules.add("doubling")
        return rules

    def begin_if_due(self):
        if self.time == self.epoch_end:
            self.epoch += 1
            self.begin_epoch()
        rules = self.termination()
        if not rules:
            return
        self.ended_by = rules
        if self.started is not None:
            self.previous = self.started
        self.started = self.time
        self.last_length = self.started - self.previous
        self.counts_at_start = dict(self.counts)
        self.episode += 1
        self.prepare_draws()
        self.sampled = [None] * self.num_arms
        for group in range(len(self.groups)):
            if self.most_likely:
                weights = self.posterior(group)
                likely = [weight > max(weights) * (1 - 1e-9) for weight in weights]
                candidate = likely.index(True)
            else:
                candidate = inverted(self.next_uniform(), self.posterior(group))
            for k in self.groups[group][1][candidate]:
                self.sampled[k] = candidate

    def prepare_draws(self):
        """Whatever must be done before systems are drawn; nothing for candidates."""

    def next_uniform(self):
        self.num_draws += 1
        return uniform(self.key, self.num_draws - 1)

    def posterior(self, group):
        top = max(self.log_weights[group])
        weights = [math.exp(log_weight - top) for log_weight in self.log_weights[group]]
        return [weight / sum(weights) for weight in weights]

    def select(self, num_pulls=None, available=None):
        self.begin_if_due()
        scores = self.chooser(self.sampled, self.last_state, self.elapsed)
        if self.exploring and self.next_uniform() < self.exploring:
            scores = [self.next_uniform() for _ in range(self.num_arms)]
        allowed = [k for k in range(self.num_arms) if available is None or available[k]]
        self.chosen = largest(scores, num_pulls or self.num_pulls, allowed)
        return self.chosen

    def observe(self, states):
        seen = dict(zip(sorted({*self.chosen, *self.always}), states, strict=True))
        for k in seen:
            age = self.elapsed[k]
            if k in self.always:
                age = 1 if k in self.chosen else 2
            self.counts[k, self.last_state[k], min(age, self.mixing)] += 1
        self.learn(seen)
        for k in range(self.num_arms):
            self.elapsed[k] += 1
            if k in seen:
                self.last_state[k], self.elapsed[k] = seen[k], 1
        self.time += 1

    def learn(self, seen):
        """Multiply the likelihoods of these states by arm into the posterior."""
        for group, (_, candidates) in enumerate(self.groups):
            for place, candidate in enumerate(candidates):
                beliefs = self.beliefs[group][place]
                for k, (active, passive, _) in candidate.items():
                    if k in self.always and k not in self.chosen:
                        beliefs[k] = list(passive[self.last_state[k]])
                    if k not in seen:
                        beliefs[k] = row_times(beliefs[k], passive)
                        continue
                    likelihood = beliefs[k][seen[k]]
                    self.log_weights[group][place] += (
                        math.log(likelihood) if likelihood > 0 else -math.inf
                    )
                    beliefs[k] = list(active[seen[k]])


def drawn_truth(groups, num_arms, seed, replication):
    """Candidate of each arm when the truth is drawn from the prior."""
    key = stream_key(seed, replication, TRUTH)
    truth = [None] * num_arms
    for group, (weights, candidates) in enumerate(groups):
        candidate = inverted(uniform(key, group), weights)
        for k in candidates[candidate]:
            truth[k] = candidate
    return truth
