"""One law of a population of two-state arms: what arms may be, given their traits.

An arm is log odds of a good next state, theta: left alone in the bad and in the good state and,
where pulls change how arms move, what a pull adds to each. Arms with traits x (a one, kinds,
numbers) have theta ~ N(B x, Sigma), cut to M points that are spread evenly where arms of this
population may lie:

    w_m(eta; x) proportional to N(theta_m; B x, Sigma) / q(theta_m),        eta = (B, Sigma),
    p(seen | eta) = prod_k sum_m w_m(eta; x_k) L[k, m].

L [K, M] is made once, from all that was seen of each arm, its first sighting too. What is not known
of means, spreads and correlations is a sample of eta: tries from a Student t around the likeliest,
weighed, resampled and, where their weights are uneven, moved by Metropolis steps. An arm's
posterior is a product of two vectors, so all that takes candidates takes the law: `candidates` are
the points, `weights` what arms with given traits may be, averaged over eta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import exponentials, logarithms
from restive.kernels.learn.fisher import scoring_step
from restive.kernels.random import key_at, stream
from restive.learn._law import (
    draw_points,
    log_normal,
    moments,
    normal_numbers,
    root_of,
    shared_moves,
    write_evidence,
    write_likelihoods,
    write_normal_points,
    write_weights,
)
from restive.problem.beliefs import log_chances
from restive.problem.chains import limiting_laws
from restive.threads import in_order, stop_if_interrupted

__all__ = ["SHARED", "ArmCells", "Law", "Points", "fit_law"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

EDGE = 5.5  # log odds of an arm left alone stay within: slower chains are not told apart
FEW_POINTS = 50  # that a law has weight on, in effect: narrower ones are what points cannot tell
LEAST_LOG = -50.0  # of a chance of what was seen
POINTS, SHARED = 4096, 1024  # multiples of four
LUCK = 77  # name of the stream that etas are drawn from
AT_ONCE = 16  # etas that are weighed in one call

# where points lie before anything is known, by what theta says: mean and standard deviation
BROAD_MEAN, BROAD_SD = np.array([-0.5, 0.5, 0.0, 0.0]), np.array([2.0, 2.0, 1.2, 1.2])
BROAD_SHARE, WIDER = 0.3, 1.5  # of points that stay so; the others' variance over the law's
PLACED = 3  # times that points are placed anew

# what eta may be: normal in B (intercepts, other traits), log sds, atanh of partial correlations
INTERCEPT, INTERCEPT_SD = np.array([-0.5, 0.5, 0.0, 0.0]), np.array([1.5, 1.5, 1.0, 1.0])
TRAIT_SD = np.array([1.0, 1.0, 0.5, 0.5])
LOG_SD = np.repeat([-0.22314355131420968, -0.916290731874155], 2)  # of .8 and .4
LOG_SD_SD, PARTIAL_SD = 0.7, 0.5
FLOOR = np.array([0.1, 0.1, 0.1, 0.1])  # of standard deviations

# log odds that all arms of three states and more have in common
EM_STEPS, EM_CLOSE, UNKNOWN, STEEP = 500, 1e-5, 1.0, 4.5

# the sample of eta
STEP = 1e-3  # of differences
CLIMBS, NO_HIGHER = 40, 0.02
FREEDOM = 8  # degrees of the tries' law
TRIES, ROUNDS, MOVES = 2000, 2, 40


class ArmCells(NamedTuple):
    """How often each arm showed what: cells are (row, age, next state).

    Rows are states s for arms that were pulled in them and S + s for arms that were seen and not
    pulled; 2 S is that of first sightings, whose age is one more than the steps since the log
    began.
    """

    num_states: int
    starts: IntArray  # [K + 1]
    cells: IntArray  # [C] which of the distinct cells
    counts: IntArray  # [C]
    distinct: IntArray  # [D, 3]

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.starts) - 1

    @classmethod
    def of(
        cls, num_states: int, num_arms: int, arms: IntArray, rows: IntArray, ages: IntArray,
        states: IntArray, counts: IntArray,
    ) -> ArmCells:  # fmt: skip
        """Put together cells of arms, each seen so often; all are [C]."""
        size = 2 * num_states + 1
        packed, which = np.unique((ages * size + rows) * num_states + states, return_inverse=True)
        order = np.argsort(arms, kind="stable")
        starts = np.searchsorted(arms[order], np.arange(num_arms + 1))
        before, state = np.divmod(packed, num_states)
        distinct = np.stack([before % size, before // size, state], axis=1)
        return cls(num_states, starts, which.ravel()[order], counts[order], distinct)

    def of_arms(self, arms: IntArray) -> ArmCells:
        """Return those of some arms."""
        sizes = np.diff(self.starts)[arms]
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.repeat(self.starts[arms] - starts[:-1], sizes) + np.arange(starts[-1])
        return self._replace(starts=starts, cells=self.cells[places], counts=self.counts[places])

    def first_shares(self) -> FloatArray:
        """Shares [S] of states among arms that were seen when the log began."""
        early = (self.distinct[:, 0] == 2 * self.num_states) & (self.distinct[:, 1] <= 2)
        own = early[self.cells]
        found = np.ones(self.num_states)
        np.add.at(found, self.distinct[self.cells[own], 2], self.counts[own])
        return np.asarray(found / found.sum())

    def base(self, controlled: bool) -> FloatArray:
        """Log odds [2, S, S - 1] of a next state above each, pulled and left alone, of all arms.

        They are zeros for two states, whose odds points say by themselves.
        """
        size = self.num_states
        found = np.zeros((2, size, size - 1))
        if size == 2:
            return found
        again = self.distinct[:, 0] < 2 * size
        counts = np.bincount(self.cells, self.counts, len(self.distinct))[again].astype(np.float64)
        rows = 2 * size
        first, left = np.full((rows, size), 1 / size), np.full((size, size), 1 / size)
        for _ in range(EM_STEPS):
            begun, moved = shared_moves(self.distinct[again], counts, first, left)
            moved += begun[size:]
            if not controlled:
                moved += begun[:size]
            begun[size:] = moved
            if not controlled:
                begun[:size] = moved
            before = first
            first = (begun + UNKNOWN / size) / (begun.sum(axis=1, keepdims=True) + UNKNOWN)
            left = first[size:]
            if np.abs(first - before).max() < EM_CLOSE:
                break
        above = np.cumsum(first[:, ::-1], axis=1)[:, -2::-1]  # of a next state of 1, 2, ... or more
        odds = np.clip(logarithms(above) - logarithms(1 - above + 1e-12), -STEEP, STEEP)
        return np.asarray(odds.reshape(2, size, size - 1))


class Points(NamedTuple):
    """Where arms may lie."""

    theta: FloatArray  # [d, M]
    log_base: FloatArray  # [M] logarithm of their density
    base: FloatArray  # [2, S, S - 1] what theta is added to, see `ArmCells.base`

    @property
    def matrices(self) -> tuple[FloatArray, FloatArray]:
        """Matrices [M, S, S] of arms that are pulled and that are left alone."""
        size = self.base.shape[1]
        worst = np.linspace(1, 0, size)[:, None]  # shares of what the ends of the states' order say
        alone = worst * self.theta[0] + (1 - worst) * self.theta[1]  # [S, M]
        pulled = alone
        if len(self.theta) > 2:
            pulled = alone + worst * self.theta[2] + (1 - worst) * self.theta[3]
        return self._matrices(pulled, 0), self._matrices(alone, 1)

    def _matrices(self, shifts: FloatArray, mode: int) -> FloatArray:
        size = self.base.shape[1]
        odds = shifts.T[:, :, None] + self.base[mode]
        if size > 2:  # no state is all but out of reach
            odds = np.clip(odds, -EDGE, EDGE) - 0.05 * np.arange(size - 1)
        above = 1 / (1 + exponentials(-odds))
        ends = np.ones((*above.shape[:2], 1))
        return np.asarray(-np.diff(np.concatenate([ends, above, 0 * ends], axis=2), axis=2))

    @classmethod
    def placed(
        cls, count: int, d: int, base: FloatArray, mean: FloatArray | None = None,
        cov: FloatArray | None = None,
    ) -> Points:  # fmt: skip
        """Return so many points: broad ones and, once a law is known, most of them as it is."""
        centre = BROAD_MEAN[:d] * (base.shape[1] == 2)
        parts = [(1.0, centre, np.diag(BROAD_SD[:d] ** 2))]
        if mean is not None and cov is not None:
            parts = [(BROAD_SHARE, *parts[0][1:]), (1 - BROAD_SHARE, mean, WIDER * cov)]
        found, roots, left = [], [], count
        for share, centre, covariance in parts:
            own = left if share == parts[-1][0] else round(share * count)
            left -= own
            tried = 2 * own
            while True:
                normals = np.empty((tried, d))
                write_normal_points(_steps(d), 0, normals)
                root, moved = root_of(covariance, normals)
                theta = centre + moved
                inside = theta[np.abs(theta[:, :2]).max(axis=1) < EDGE]
                if len(inside) >= own:
                    break
                tried *= 2
            found.append(inside[:own])
            roots.append((share, centre, root))
        theta = np.concatenate(found)
        logs = np.array(
            [logarithms([share])[0] + log_normal(theta, c, root) for share, c, root in roots]
        )
        top = logs.max(axis=0)
        log_base = top + logarithms(exponentials(logs - top).sum(axis=0))
        return cls(np.ascontiguousarray(theta.T), log_base, base)


def _steps(d: int) -> FloatArray:
    """Steps [d] whose multiples, modulo one, are even in the cube (Roberts' R sequence)."""
    ratio = 1.3
    for _ in range(60):  # the root of x^(d + 1) = x + 1, by Newton's method
        power = ratio**d if d < 2 else _whole_power(ratio, d)
        ratio -= (power * ratio - ratio - 1) / ((d + 1) * power - 1)
    return np.array([1 / _whole_power(ratio, j + 1) for j in range(d)])


def _whole_power(x: float, n: int) -> float:
    found = 1.0
    for _ in range(n):
        found *= x
    return found


@dataclass(frozen=True, eq=False, repr=False)
class Law:
    """Points, and draws of what the law of the population over them may be.

    Attributes
    ----------
    points
        Fine points, on which the law was fitted.
    shared
        Fewer, for all that keeps weights of each arm: lists, agents, files.
    share
        Shares [S] of the states when the log begins; None where arms are settled by then.
    draws
        Draws [n, D] of eta.
    effective
        What the tries that these were resampled from are worth, as a number of draws.
    """

    points: Points
    shared: Points
    share: FloatArray | None
    draws: FloatArray
    effective: float = 0.0

    @property
    def controlled(self) -> bool:
        """Whether pulls change how arms move."""
        return len(self.points.theta) > 2

    def likelihoods(self, seen: ArmCells, points: Points) -> tuple[FloatArray, FloatArray]:
        """Likelihoods [M, K] of what was seen of arms, over each one's largest; and its log."""
        return _likelihoods(points, self.share, seen)

    def laws(self, points: Points, traits: FloatArray, count: int = 0) -> Iterator[FloatArray]:
        """Yield weights [G, M] of points for arms with traits [G, p], draw by draw.

        Of all draws, or so many times, from the first draw again after the last.
        """
        d, size = points.theta.shape
        work = np.empty((2 * d + 1, size))
        for i in range(count or len(self.draws)):
            found, draw = np.empty((1, len(traits), size)), i % len(self.draws)
            write_weights(self.draws[draw : draw + 1], FLOOR[:d], traits, *points[:2], work, found)
            yield found[0]

    def weights(self, traits: FloatArray) -> FloatArray:
        """Weights [G, M] of the shared points for arms of which nothing was seen."""
        total = np.zeros((len(traits), SHARED))
        for found in self.laws(self.shared, traits):
            total += found
        return np.asarray(total / total.sum(axis=1, keepdims=True))

    def drawn(
        self, seen: ArmCells, groups: FloatArray, group: IntArray, count: int, key: np.uint64
    ) -> Iterator[IntArray]:
        """Yield the fine points [K] that arms with traits groups[group] are, `count` times.

        Each time under another draw of eta, as long as there are some.
        """
        likelihoods, _ = self.likelihoods(seen, self.points)
        for i, weights in enumerate(self.laws(self.points, groups, count)):
            found = np.empty(seen.num_arms, dtype=np.int64)
            draw_points(weights, group, likelihoods, np.uint64(key_at(key, i)), found)
            yield found


def fit_law(
    seen: ArmCells,
    traits: FloatArray | None = None,
    *,
    controlled: bool = True,
    points: int = POINTS,
    draws: int = 200,
    seed: int = 0,
    progress: Callable[[float], None] = lambda share: None,
) -> Law:
    """Fit the law that what was seen of arms speaks for.

    Parameters
    ----------
    seen
        Of K arms.
    traits
        Traits [K, p] of the arms, the first of them a one.
    controlled
        Whether pulls change how arms move.
    points
        Number of points, a multiple of four.
    draws
        Draws of eta.
    seed
        Names the luck of these.
    progress
        Called with the share that is done.
    """
    d = 4 if controlled else 2
    x = np.ones((seen.num_arms, 1)) if traits is None else np.asarray(traits, dtype=np.float64)
    groups, group = np.unique(x, axis=0, return_inverse=True)
    order = np.argsort(group.ravel(), kind="stable")
    starts = np.searchsorted(group.ravel()[order], np.arange(len(groups) + 1))
    own = seen.of_arms(order)
    prior = _Prior.of(d, x.shape[1], seen.num_states)
    base = seen.base(controlled)
    shared, eta = Points.placed(SHARED, d, base), prior.mean
    ways: list[FloatArray | None] = [None, seen.first_shares()]

    def climbed(placed: Points, way: FloatArray | None) -> tuple[_Target, _Mode]:
        target = _Target(placed, *_likelihoods(placed, way, own), groups, starts, prior)
        return target, _climb(target, eta)

    for turn in range(PLACED):
        found = [climbed(shared, way) for way in ways]
        best = int(np.argmax([mode.value + float(one.tops.sum()) for one, mode in found]))
        ways, (eta, shape, _) = [ways[best]], found[best][1]
        mean, cov = _spread(eta, shape, x, d)
        shared = Points.placed(SHARED, d, base, mean, cov)
        progress((turn + 1) / 10)
    placed = Points.placed(points, d, base, mean, cov)
    target, (eta, shape, _) = climbed(placed, ways[0])
    progress(0.5)
    sample, effective = _draw(target, eta, shape, draws, stream(seed, 0, LUCK))
    progress(1.0)
    return Law(placed, shared, ways[0], sample, effective)


class _Prior(NamedTuple):
    mean: FloatArray  # [D]
    sd: FloatArray  # [D]

    @classmethod
    def of(cls, d: int, p: int, size: int) -> _Prior:
        mean, sd = np.zeros((d, p)), np.repeat(TRAIT_SD[:d, None], p, axis=1)
        mean[:, 0], sd[:, 0] = INTERCEPT[:d] * (size == 2), INTERCEPT_SD[:d]
        pairs = d * (d - 1) // 2
        return cls(
            np.concatenate([mean.ravel(), LOG_SD[:d], np.zeros(pairs)]),
            np.concatenate([sd.ravel(), np.full(d, LOG_SD_SD), np.full(pairs, PARTIAL_SD)]),
        )


def _likelihoods(
    points: Points, share: FloatArray | None, seen: ArmCells
) -> tuple[FloatArray, FloatArray]:
    ways, alone = _ways(points, share)
    logs = np.maximum(log_chances(ways, alone, *seen.distinct.T), LEAST_LOG)
    found, tops = np.empty((len(alone), seen.num_arms)), np.empty(seen.num_arms)
    write_likelihoods(*seen[1:4], logs, np.empty(len(alone)), found, tops)
    return found, tops


def _ways(points: Points, share: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Laws [M, 2 S + 1, S] after each row, the last that of first sightings; matrices alone."""
    pulled, alone = points.matrices
    start = limiting_laws(alone.transpose(1, 2, 0).copy()).T if share is None else share
    first = np.broadcast_to(start, pulled.shape[:1] + pulled.shape[2:])[:, None]
    return np.concatenate([pulled, alone, first], axis=1), alone


@dataclass(frozen=True, eq=False)
class _Target:
    """The posterior of eta, up to a constant."""

    points: Points
    likelihoods: FloatArray  # [M, K], arms of a group together
    tops: FloatArray  # [K] what they leave out
    groups: FloatArray  # [G, p]
    starts: IntArray  # [G + 1]
    prior: _Prior

    def evidence(self, etas: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log probabilities [n, K] of what was seen of arms, and what few points cost [n]."""
        d, count = self.points.theta.shape
        evidence, crowded = np.empty((len(etas), self.likelihoods.shape[1])), np.empty(len(etas))

        def some(begin: int) -> None:
            part = slice(begin, begin + AT_ONCE)
            write_evidence(
                etas[part], FLOOR[:d], self.groups, self.starts, *self.points[:2],
                self.likelihoods, np.empty((2 * d + 2, count)), evidence[part], crowded[part],
            )  # fmt: skip

        begins = range(0, len(etas), AT_ONCE)
        for _ in in_order(some, begins) if len(begins) > 1 else map(some, begins):
            stop_if_interrupted()
        return evidence, FEW_POINTS**2 * crowded

    def values(self, etas: FloatArray) -> FloatArray:
        """Log posterior [n]."""
        evidence, cost = self.evidence(etas)
        away = (etas - self.prior.mean) / self.prior.sd
        return np.asarray(_row_sums(evidence) - 0.5 * _row_sums(away * away) - cost)


def _row_sums(values: FloatArray) -> FloatArray:
    """Sums of rows, column by column: numpy's own order depends on the processor."""
    total = np.zeros(len(values))
    for column in np.ascontiguousarray(values.T):
        total += column
    return total


class _Mode(NamedTuple):
    eta: FloatArray  # [D] the likeliest
    shape: FloatArray  # [D, D] a root of the covariance there
    value: float


def _climb(target: _Target, eta: FloatArray) -> _Mode:
    """Return the likeliest eta.

    Steps are Newton's, with the curvature that the arms' scores say.
    """
    size = len(eta)
    now = float(target.values(eta[None])[0])
    shape = np.diag(target.prior.sd)
    for _ in range(CLIMBS):
        beside = np.concatenate([eta + STEP * np.eye(size), eta - STEP * np.eye(size)])
        evidence, _ = target.evidence(beside)
        scores = np.ascontiguousarray((evidence[:size] - evidence[size:]).T) / (2 * STEP)
        count = len(scores)
        mean, around = moments(scores, np.full(count, 1.0 / count))
        curvature = count * (around + mean[:, None] * mean) + np.diag(target.prior.sd**-2.0)
        slope = count * mean - (eta - target.prior.mean) / target.prior.sd**2
        step, _, shape = scoring_step(slope, curvature)
        length = min(1.0, 1.5 / float(np.abs(step).max()))
        there = -np.inf
        while length > 1e-3:
            there = float(target.values((eta + length * step)[None])[0])
            if there > now:
                break
            length /= 2
        if there <= now:
            break
        eta, before, now = eta + length * step, now, there
        if now - before < NO_HIGHER:
            break
    return _Mode(eta, shape, now)


def _spread(
    eta: FloatArray, shape: FloatArray, traits: FloatArray, d: int
) -> tuple[FloatArray, FloatArray]:
    """Mean [d] and covariance [d, d] of all arms' theta, with what is not known of their mean."""
    p = traits.shape[1]
    b = eta[: d * p].reshape(d, p)
    centres = np.zeros((len(traits), d))
    for j in range(p):
        centres += traits[:, j : j + 1] * b[:, j]
    mean, cov = moments(centres, np.full(len(centres), 1 / len(centres)))
    root = covariance_root(eta, d)
    for j in range(d):
        cov += root[:, j : j + 1] * root[:, j]
    unsure = (shape**2).sum(axis=1)[: d * p : p]
    return mean, cov + np.diag(unsure + 0.05)


def covariance_root(eta: FloatArray, d: int) -> FloatArray:
    """Lower triangle [d, d] of the covariance that eta says."""
    at = len(eta) - d * (d - 1) // 2
    sd = FLOOR[:d] + exponentials(np.clip(eta[at - d : at], -8, 3))
    root = np.zeros((d, d))
    for i in range(d):
        left = 1.0
        for j in range(i):
            double = float(exponentials(2 * eta[at]))
            root[i, j] = (double - 1) / (double + 1) * np.sqrt(left)
            left -= root[i, j] ** 2
            at += 1
        root[i, i] = np.sqrt(left)
    return root * sd[:, None]


def _draw(
    target: _Target, eta: FloatArray, shape: FloatArray, draws: int, key: np.uint64
) -> tuple[FloatArray, float]:
    """Draw [draws, D] of eta; also return the effective number of tries they were taken from."""
    size = len(eta)
    values = np.zeros(0)
    for turn in range(ROUNDS):
        numbers = np.empty((TRIES, size + FREEDOM))
        normal_numbers(np.uint64(key_at(key, turn)), numbers)
        normals = np.ascontiguousarray(numbers[:, :size])
        wide = FREEDOM / _row_sums(numbers[:, size:] ** 2)
        squares = _row_sums(normals**2)
        moved = np.zeros((TRIES, size))
        for j in range(size):
            moved += normals[:, j : j + 1] * shape[:, j]
        found = eta + np.sqrt(wide)[:, None] * moved
        values = target.values(found)
        logs = values + 0.5 * (FREEDOM + size) * logarithms(1 + squares * wide / FREEDOM)
        share = _shares(logs)
        effective = 1 / float((share**2).sum())
        flat, power = share, 1.0
        while 1 / float((flat**2).sum()) < 10 * size:
            power *= 0.8
            flat = _shares(power * (logs - logs.max()))
        if effective > draws or turn == ROUNDS - 1:
            break
        eta, covariance = moments(found, flat)
        shape, _ = root_of(covariance, np.zeros((0, size)))
    even = effective > draws
    places = _resampled(share if even else flat, draws, key)
    sample, values = found[places], values[places]
    if even:
        return sample, effective
    return _moved(target, sample, values, key), effective


def _shares(logs: FloatArray) -> FloatArray:
    found = exponentials(logs - logs.max())
    return np.asarray(found / found.sum())


def _resampled(shares: FloatArray, draws: int, key: np.uint64) -> IntArray:
    """Places [draws] by shares, evenly, in random order."""
    at = (np.arange(draws) + _uniform(key, 100)) / draws
    places = np.minimum(np.searchsorted(np.cumsum(shares), at), len(shares) - 1)
    lots = np.array([_uniform(key, 1000 + i) for i in range(draws)])
    return places[np.argsort(lots, kind="stable")]


def _uniform(key: np.uint64, place: int) -> float:
    return (int(np.uint64(key_at(key, place))) >> 11) * 2.0**-53


def _moved(target: _Target, sample: FloatArray, values: FloatArray, key: np.uint64) -> FloatArray:
    """Move each of the draws by Metropolis steps, which leave the posterior as it is."""
    draws, size = sample.shape
    scale = 2.38 / np.sqrt(size)
    for move in range(MOVES):
        _, covariance = moments(sample, np.full(draws, 1 / draws))
        numbers = np.empty((draws, size))
        own = np.uint64(key_at(key, 10_000 + move))
        normal_numbers(own, numbers)
        _, steps = root_of(covariance + 1e-6 * np.eye(size), numbers)
        new = sample + scale * steps
        there = target.values(new)
        lots = np.array([_uniform(own, draws + i) for i in range(draws)])
        taken = logarithms(np.maximum(lots, 1e-300)) < there - values
        sample, values = np.where(taken[:, None], new, sample), np.where(taken, there, values)
        scale *= float(exponentials(taken.mean() - 0.25))
    return sample
