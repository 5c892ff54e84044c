"""Posteriors of continuous priors, the slow and plain way.

Two states and one chain: the integral over a fine grid of log odds, where the trapezoid rule is
exact to many digits; where the posterior is a thin ridge, over a grid that follows it. Anything
else: long Metropolis chains from the prior's mean. Beliefs are
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


class Ridge:
    """The same posterior, on a grid that follows it: by rho = p11 - p01, and across for each rho.

    z are the log odds of (1 + rho) / 2; at each z, y are the log odds of where p01 is between the
    least and the most that it can be. Stretches in z and y are narrowed to where mass is.
    """

    def __init__(self, cells, first, second, along=700, across=400):
        self.by_age = {}
        for (s, n, t), count in cells.items():
            self.by_age.setdefault(n, np.zeros((2, 2)))[s, t] += count
        self.betas = (first, second)
        with np.errstate(all="ignore"):
            z = np.linspace(-40, 40, 801)
            for _ in range(4):
                logs = self._masses(z)
                used = np.flatnonzero(logs > logs.max() - 35)
                step = z[1] - z[0]
                z = np.linspace(z[used[0]] - step, z[used[-1]] + step, 401)
            for count in (along, along):  # nodes close where there is much mass, and where it bends
                logs = self._masses(z)
                density = np.exp(logs - logs.max())
                crowd = 0.3 * density / density.sum() + 0.2 / len(z)
                crowd += 0.5 * np.abs(np.gradient(density)) / np.abs(np.gradient(density)).sum()
                places = np.concatenate([[0], np.cumsum((crowd[1:] + crowd[:-1]) / 2)])
                z = np.unique(np.interp(np.linspace(0, places[-1], count), places, z))
            centres, widths = self._stretches(z)
            t = np.linspace(-1, 1, across)
            y = centres[:, None] + widths[:, None] * t
            z = np.broadcast_to(z[:, None], y.shape)
            logs = self._logs(z, y)
            weights = np.exp(logs - logs.max()) * np.gradient(z[:, 0])[:, None] * widths[:, None]
            weights *= t[1] - t[0]
        constant = sum(lgamma(a + b) - lgamma(a) - lgamma(b) for a, b in self.betas)
        self.log_evidence = float(np.log(weights.sum()) + logs.max() + constant)
        self.weights = (weights / weights.sum()).ravel()
        p01, _, p10, p11 = (p.ravel() for p in self._rows(z, y))
        self.values = {"p01": p01, "p11": p11, "share": p01 / (p01 + p10), "rho": p11 - p01}

    @staticmethod
    def _rows(z, y):
        r, narrow = np.abs(np.tanh(z / 2)), 2 / (1 + np.exp(np.abs(z)))
        moving, staying = np.where(z < 0, r, 0), np.where(z < 0, 0, r)
        up, down = narrow / (1 + np.exp(-y)), narrow / (1 + np.exp(y))
        return moving + up, staying + down, moving + down, staying + up

    def _logs(self, z, y):
        """Log density in (z, y), without the prior's constant."""
        p01, p00, p10, p11 = self._rows(z, y)
        narrow = 2 / (1 + np.exp(np.abs(z)))
        logs = (
            2 * np.log(narrow) + np.log(1 - narrow / 2) - np.logaddexp(0, y) - np.logaddexp(0, -y)
        )
        for one, other, (a, b) in zip((p01, p11), (p00, p10), self.betas, strict=True):
            logs = logs + (a - 1) * np.log(one) + (b - 1) * np.log(other)
        apart = 2 / (1 + np.exp(z))  # 1 - rho
        for n, counts in self.by_age.items():
            # 1 - rho^n, with all its digits where rho is close to 1
            old = np.where(z < 0, (1 - apart) ** n, np.exp(n * np.log1p(-np.minimum(apart, 1))))
            lost = np.where(z < 0, 1 - old, -np.expm1(n * np.log1p(-np.minimum(apart, 1))))
            for s, p in enumerate((p01, p10)):
                moved = np.clip(p * lost / apart, 1e-300, 1)
                share = 1 / (1 + np.exp(y if s == 0 else -y))  # of those that stay, if rho > 0
                stayed = np.where(z < 0, 1 - moved, old + lost * share)
                logs = logs + counts[s, 1 - s] * np.log(moved)
                logs = logs + counts[s, s] * np.log(np.maximum(stayed, 1e-300))
        return logs

    def _stretches(self, z):
        """Middles and half widths in y of where each z has its mass."""
        low, high = np.full(len(z), -45.0), np.full(len(z), 45.0)
        for _ in range(12):
            step = (high - low) / 40
            logs = self._logs(z[:, None], low[:, None] + step[:, None] * np.arange(41))
            inside = logs > logs.max(axis=1, keepdims=True) - 30
            first, last = inside.argmax(axis=1), 40 - inside[:, ::-1].argmax(axis=1)
            low, high = low + (first - 1) * step, low + (last + 1) * step
            if (high - low > 36 * step).all():
                break
        return (low + high) / 2, (high - low) / 2

    def _masses(self, z):
        """Log mass of each z."""
        centres, widths = self._stretches(z)
        logs = self._logs(z[:, None], centres[:, None] + widths[:, None] * np.linspace(-1, 1, 41))
        top = logs.max(axis=1)
        return top + np.log(np.exp(logs - top[:, None]).sum(axis=1)) + np.log(widths)

    def cdf_error(self, name, values, weights):
        """Largest distance of two distribution functions: this one and that of weighted values."""
        order = np.argsort(self.values[name])
        below = np.concatenate([[0], np.cumsum(self.weights[order])])
        places = np.argsort(values, kind="stable")
        exact = below[np.searchsorted(self.values[name][order], values[places])]
        found = np.concatenate([[0], np.cumsum(weights[places] / weights.sum())])
        return float(max(np.abs(found[1:] - exact).max(), np.abs(found[:-1] - exact).max()))


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
