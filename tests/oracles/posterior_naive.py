"""Posteriors of continuous priors, the slow and plain way.

Two states and one chain: the integral over a fine grid of log odds, where the trapezoid rule is
exact to many digits. Anything else: long Metropolis chains from the prior's mean. Beliefs are
computed by the closed form or by matrix powers, at exact ages; nothing is shared with the package.
"""

from __future__ import annotations

from math import lgamma

import numpy as np


class Quadrature:
    """Posterior of (p01, p11) given cells {(s, n, s'): count}; p01 ~ Beta(*first), p11 likewise."""

    def __init__(self, cells, first=(1.0, 1.0), second=(1.0, 1.0), points=200):
        self.by_age = {}
        for (s, n, t), count in cells.items():
            self.by_age.setdefault(n, np.zeros((2, 2)))[s, t] += count
        self.betas = (first, second)
        low, high = np.array([-40.0, -40.0]), np.array([40.0, 40.0])
        for count in (161, 121, 81, 81, points):
            axes = [np.linspace(low[j], high[j], count) for j in (0, 1)]
            logs = self.log_density(*np.meshgrid(*axes, indexing="ij"))
            inside = logs > logs.max() - 45
            for j in (0, 1):
                used = np.flatnonzero(inside.any(axis=1 - j))
                step = axes[j][1] - axes[j][0]
                low[j], high[j] = axes[j][used[0]] - step, axes[j][used[-1]] + step
        self.p01, self.p11 = np.meshgrid(*(1 / (1 + np.exp(-axis)) for axis in axes), indexing="ij")
        weights = np.exp(logs - logs.max())
        area = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
        constant = sum(lgamma(a + b) - lgamma(a) - lgamma(b) for a, b in self.betas)
        self.log_evidence = float(np.log(weights.sum() * area) + logs.max() + constant)
        self.weights = weights / weights.sum()

    def log_density(self, x, y):
        """Log of likelihood and prior in log odds, without the prior's constant."""
        logs = np.zeros_like(x)
        for odds, (a, b) in zip((x, y), self.betas, strict=True):
            logs += -a * np.logaddexp(0, -odds) - b * np.logaddexp(0, odds)
        p01, p10 = 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(y))
        both = p01 + p10
        rho = 1 - both
        power, age = rho.copy(), 1
        for n in sorted(self.by_age):
            power *= rho ** (n - age)
            age = n
            left = (1 - power) / both
            for s, p in enumerate((p01, p10)):
                moved = p * left  # chance to be seen in the other state
                for chance, count in zip(
                    (moved, 1 - moved), self.by_age[n][s, [1 - s, s]], strict=True
                ):
                    if count:
                        logs += count * np.log(np.maximum(chance, 1e-300))
        return logs

    def mean(self, values):
        return float((self.weights * values).sum())

    def deviation(self, values):
        return float(np.sqrt(self.mean((values - self.mean(values)) ** 2)))

    @property
    def means(self):
        return np.array([self.mean(self.p01), self.mean(self.p11)])

    @property
    def deviations(self):
        return np.array([self.deviation(self.p01), self.deviation(self.p11)])


def metropolis(active, passive, cells, rng, chains=400, steps=1500):
    """Mean and standard deviation [R, S] of each entry, by random walks in logits.

    `passive` is None where one matrix serves both kinds of steps. All alphas are positive.
    """
    alphas = np.concatenate([active] if passive is None else [active, passive])
    size = len(active)

    def matrices(x):
        e = np.exp(x - x.max(axis=-1, keepdims=True))
        return e / e.sum(axis=-1, keepdims=True)

    by_age = {}
    for (s, n, t), count in cells.items():
        by_age.setdefault(n, np.zeros((size, size)))[s, t] += count

    def log_density(x):
        p = matrices(x)
        logs = (alphas * np.log(p)).sum(axis=(1, 2))
        belief, move, age = p[:, :size], p[:, -size:], 1
        for n in sorted(by_age):
            belief = belief @ np.linalg.matrix_power(move, n - age)
            age = n
            logs += (by_age[n] * np.log(belief)).sum(axis=(1, 2))
        return logs

    x = np.log(alphas / alphas.sum(axis=1, keepdims=True)) + rng.normal(
        0, 0.5, (chains, *alphas.shape)
    )
    logs = log_density(x)
    kept = []
    for step in range(steps):
        shape = rng.permutation(chains)  # differences of other chains set the scale and the shape
        apart = x[shape] - x[np.roll(shape, 1)]
        gamma = 1.0 if step % 10 == 0 else 2.38 / np.sqrt(2 * (alphas.size - len(alphas)))
        trial = x + gamma * apart + rng.normal(0, 1e-4, x.shape)
        trial -= trial.mean(axis=-1, keepdims=True)
        trial_logs = log_density(trial)
        taken = np.log(rng.random(chains)) < trial_logs - logs
        x[taken], logs[taken] = trial[taken], trial_logs[taken]
        if step >= steps // 2 and step % 5 == 0:
            kept.append(matrices(x))
    kept = np.concatenate(kept)
    return kept.mean(axis=0), kept.std(axis=0)
