"""Priors with particles that the tests of learners share, and the naive TSDE on them."""

import math

import numpy as np

import restive as rs
from learning_cases import as_lists, random_prior
from oracles import tsde_naive as naive
from restive.kernels.learn.particles import LOST
from restive.kernels.random import RENEWAL
from restive.learn.particles.arm import count_evidence, fresh_arm, renew_arm

PARTICLES = 32


def dirichlet(active, passive=None, rewards=(0, 1), particles=PARTICLES):
    return rs.DirichletArmPrior(active, passive, rewards, particles=particles)


def beta_channels():
    """K=4, N=2: channels, three of the arms with one prior, the fourth with its own."""
    shared, own = dirichlet([[1, 1], [1, 1]]), dirichlet([[3, 1], [1, 2]], rewards=[0.9, 0.1])
    return rs.IndependentPrior([shared, own, shared, shared]), 2


def mixed():
    """K=4, N=2: a finite prior, a continuous one of equal and one of unequal matrices."""
    rng = np.random.default_rng(31)
    channel = dirichlet([[1, 2], [1, 1]])
    controlled = dirichlet([[1, 1], [2, 1]], [[1, 1], [1, 3]], [0.2, 0.9])
    return rs.IndependentPrior([random_prior(rng, 2, 7, [0, 0.8]), channel, controlled, channel]), 2


def three_states():
    """K=3, N=1: three states and fixed zeros, equal and unequal matrices."""
    ring = [[1, 1, 0], [0, 1, 1], [1, 0, 2]]
    free = dirichlet([[1, 1, 1]] * 3, ring, [0, 0.4, 1])
    alike = dirichlet(ring, rewards=[0.1, 0.5, 0.8])
    return rs.IndependentPrior([free, alike, alike]), 1


def pooled():
    """K=6, N=3: three identical channels, two identical arms of a finite prior, one other."""
    rng = np.random.default_rng(32)
    channel, finite = dirichlet([[1, 1], [1, 1]]), random_prior(rng, 2, 5, [0, 0.8])
    arms = [channel, finite, channel, channel, finite, channel]
    return rs.IndependentPrior(arms, pooled=[[0, 3, 5], [4, 1]]), 3


def pooled_channels():
    """K=4, N=2: identical channels, and one other."""
    channel = dirichlet([[1, 1], [1, 1]])
    return rs.IndependentPrior([channel] * 4, pooled=[[0, 1, 3]]), 2


CASES = {
    "beta_channels": beta_channels,
    "mixed": mixed,
    "three_states": three_states,
    "pooled": pooled,
    "pooled_channels": pooled_channels,
}


class NaiveParticles(naive.NaiveTSDE):
    """The oracle's TSDE where some groups have particles, which are renewed at episodes' starts.

    What a renewal draws is tested elsewhere (test_particles.py); when it is due, and from which
    counts and weights, is done here anew.
    """

    def __init__(self, prior, num_pulls, mapping, horizon, seed, replication=0, **options):
        self.prior, self.arm_tables = prior, {}
        self.rule = rs.registry.policy_mapping(mapping).rule
        self.particles, self.renewed = {}, []
        groups = []
        for group in range(prior.groups.max() + 1):
            arms = np.flatnonzero(prior.groups == group).tolist()
            arm = prior.arms[arms[0]]
            if isinstance(arm, rs.DirichletArmPrior):
                held = count_evidence(fresh_arm(arm.rows, arm.drawn), arm.evidence)
                self.particles[group] = held
                groups.append((held.weights.tolist(), self.chains(group, arms, arm)))
            else:
                candidates = [dict.fromkeys(arms, as_lists(c)) for c in arm.candidates]
                groups.append((arm.weights.tolist(), candidates))
        start = [prior.typical(k).num_states - 1 for k in range(prior.num_arms)]
        super().__init__(
            groups, num_pulls, self.scores, horizon, start, [1] * prior.num_arms, seed,
            replication, **options,
        )  # fmt: skip
        self.renewal_key = naive.stream_key(seed, replication, RENEWAL)

    def chains(self, group, arms, arm):
        matrices, size = self.particles[group].matrices, arm.num_states
        return [
            dict.fromkeys(
                arms,
                (
                    matrices[:size, :, m].tolist(),
                    matrices[-size:, :, m].tolist(),
                    arm.rewards.tolist(),
                ),
            )
            for m in range(matrices.shape[2])
        ]

    def scores(self, sampled, last_state, elapsed):
        now = []
        for k, candidate in enumerate(sampled):
            active, passive, rewards = self.groups[self.prior.groups[k]][1][candidate][k]
            arm = rs.Arm(active, passive, rewards)
            table = self.arm_tables.setdefault(arm.numbers, None)
            if table is None:
                table = self.arm_tables[arm.numbers] = np.asarray(self.rule(arm))
            value = table[last_state[k], min(elapsed[k], table.shape[1]) - 1]
            now.append(float(f"{value:.12g}"))  # values equal but for rounding are equal
        return now

    def prepare_draws(self):
        for group, held in self.particles.items():
            weights = self.posterior(group)
            if 1 / sum(w * w for w in weights) >= LOST * held.effective_size[0]:
                continue
            held.weights[:] = weights
            arms = np.flatnonzero(self.prior.groups == group).tolist()
            arm = self.prior.arms[arms[0]]
            renew_arm(arm.rows, held, np.uint64(naive.bits(self.renewal_key, group)))
            self.renewed.append((self.time, group))
            self.groups[group] = (None, self.chains(group, arms, arm))
            self.log_weights[group] = [
                math.log(w) if w > 0 else -math.inf for w in held.weights.tolist()
            ]
            self.beliefs[group] = [
                {k: naive.start_belief(each[k], self.last_state[k], self.elapsed[k]) for k in arms}
                for each in self.groups[group][1]
            ]

    def observe(self, states):
        for k, state in zip(self.chosen, states, strict=True):
            group = self.prior.groups[k]
            if group in self.particles:
                seen = rs.Evidence(self.sizes[k])
                seen.add(self.last_state[k], self.elapsed[k], state)
                self.particles[group] = count_evidence(self.particles[group], seen)
        super().observe(states)
