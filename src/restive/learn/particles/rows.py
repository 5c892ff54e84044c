"""What is fixed of a continuous prior: tables for kernels, its points, its constants."""

from __future__ import annotations

from functools import cached_property, lru_cache
from math import log, pi

import numpy as np
from numpy.typing import NDArray

from restive.kernels.elementary import logarithms
from restive.kernels.learn.dirichlet import DirichletRows, lattice_logits, place_rows, random_logits
from restive.kernels.learn.lattice import FEW, degrees_of, dimensions_of, lattice_generators
from restive.kernels.learn.likelihood import Counts, add_log_likelihood
from restive.kernels.learn.quantiles import log_gamma, trigamma
from restive.problem.chains import limiting_laws, mixing_ages

__all__ = ["QUARTER", "RowsPrior", "rows_prior"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

FEW_PARTICLES, MANY_PARTICLES = 128, 256
MIXING_POINTS = 8192
QUARTER = 0.25


def rows_prior(alphas: FloatArray, count: int | None) -> RowsPrior:
    """Return the prior of some rows; equal ones are made once, as restored agents have them."""
    return _remembered(alphas.tobytes(), alphas.shape[1], count)


@lru_cache(maxsize=256)
def _remembered(numbers: bytes, num_states: int, count: int | None) -> RowsPrior:
    return RowsPrior(np.frombuffer(numbers).reshape(-1, num_states), count)


class RowsPrior:
    """Independent Dirichlet laws of the rows of one or two matrices.

    Parameters
    ----------
    alphas
        Parameters [R, S]: the rows of the only matrix, or of the active and then of the passive
        one. Zero where a step is impossible, and valid.
    count
        Number of particles M; by default 128, and 256 beyond three free numbers.
    """

    def __init__(self, alphas: FloatArray, count: int | None = None) -> None:
        possible = alphas > 0
        references = alphas.shape[1] - 1 - np.argmax(possible[:, ::-1], axis=1)
        possible[np.arange(len(alphas)), references] = False
        free = int(possible.sum())
        if count is None:
            count = FEW_PARTICLES if free <= FEW else MANY_PARTICLES
        self.count = count if free else 1
        totals = np.zeros(len(alphas))
        for column in alphas.T:  # plain sums: the same bits on every machine
            totals += column
        self.tables = DirichletRows(
            alphas=np.ascontiguousarray(alphas),
            totals=totals,
            references=references.astype(np.int64),
            firsts=np.concatenate([[0], np.cumsum(possible.sum(axis=1))]).astype(np.int64),
            columns=np.nonzero(possible)[1].astype(np.int64),
            precisions=_precisions(alphas, possible, references),
            generators=lattice_generators(self.count, max(1, dimensions_of(free)), free == 2),
        )

    @property
    def num_states(self) -> int:
        """The number of states S."""
        return int(self.tables.alphas.shape[1])

    @property
    def free(self) -> int:
        """How many numbers are free, d."""
        return len(self.tables.columns)

    @property
    def is_channel(self) -> bool:
        """Whether there are two states that move alike pulled or not, and both rows are free."""
        return self.tables.alphas.shape == (2, 2) and self.free == 2

    @cached_property
    def first_logits(self) -> FloatArray:
        """Logits [d, M] of the points that stand for the prior, all of the same weight."""
        return _frozen(lattice_logits(self.tables, self.tables.generators, self.count))

    @cached_property
    def first_matrices(self) -> FloatArray:
        """Matrices [R, S, M] of the points that stand for the prior."""
        return _frozen(self.matrices(self.first_logits))

    @cached_property
    def mean_logits(self) -> FloatArray:
        """Logits [d] of the prior's mean."""
        alphas, references = self.tables.alphas, self.tables.references
        rows = np.repeat(np.arange(len(alphas)), np.diff(self.tables.firsts))
        ratios = alphas[rows, self.tables.columns] / alphas[rows, references[rows]]
        return _frozen(logarithms(ratios))

    def matrices(self, logits: FloatArray) -> FloatArray:
        """Matrices [R, S, M] at logits [d, M]."""
        return self.placed(logits)[0]

    def placed(self, logits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Matrices [R, S, M] and log prior [M] at logits [d, M], up to a constant."""
        count = logits.shape[1]
        matrices, logs = np.empty((*self.tables.alphas.shape, count)), np.empty(count)
        place_rows(self.tables, logits, matrices, logs)
        return matrices, logs

    def log_posterior(self, counts: Counts, logits: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Matrices [R, S, M] and log posterior [M] at logits [d, M], up to a constant."""
        matrices, logs = self.placed(logits)
        add_log_likelihood(counts, matrices, logs)
        return matrices, logs

    def lattice(self, count: int) -> FloatArray:
        """Matrices [R, S, count] that stand for the prior, any number of them."""
        if not self.free:
            count = 1
        generators = lattice_generators(count, max(1, self.free), self.free == 2)
        return self.matrices(lattice_logits(self.tables, generators, count))

    @cached_property
    def mixing_ages(self) -> IntArray:
        """T^mix(1/4) of points that stand for the prior; -1 where it is out of reach."""
        passive = self.lattice(MIXING_POINTS)[-self.num_states :]
        return mixing_ages(passive, limiting_laws(passive), QUARTER)

    def draw(self, key: np.uint64) -> FloatArray:
        """Matrices [R, S] drawn from the prior with the first d numbers of `key`."""
        drawn: FloatArray = self.matrices(random_logits(self.tables, key))[:, :, 0]
        return drawn

    @cached_property
    def log_constant(self) -> float:
        """What a log posterior lacks."""
        alphas = self.tables.alphas
        constant = sum(log_gamma(total) for total in self.tables.totals)
        constant -= sum(log_gamma(alpha) for alpha in alphas[alphas > 0])
        return float(constant)

    @cached_property
    def log_student(self) -> float:
        """What the density of a t lacks that draws particles."""
        degrees, d = degrees_of(self.free), self.free
        constant = log_gamma((degrees + d) / 2) - log_gamma(degrees / 2)
        return float(constant - d / 2 * log(degrees * pi))


def _precisions(
    alphas: FloatArray, possible: NDArray[np.bool_], references: NDArray[np.intp]
) -> FloatArray:
    """One over the prior variance [d] of each logit."""
    variances = [
        trigamma(alphas[row, column]) + trigamma(alphas[row, references[row]])
        for row, column in zip(*np.nonzero(possible), strict=True)
    ]
    return 1 / np.array(variances, dtype=np.float64)


def _frozen(array: FloatArray) -> FloatArray:
    array.setflags(write=False)
    return array
