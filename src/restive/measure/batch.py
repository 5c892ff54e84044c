"""Many copies of a world that are pulled together: one call of compiled code a step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_seed, counted, require_memory, shown
from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.loop.copies import (
    FINE,
    Copies,
    begin_copies,
    pull_copies,
    write_beliefs,
)
from restive.kernels.random import WORLD
from restive.plan.actors import int_zeros, world_of
from restive.problem.bandit import Kinds, RestlessBandit, kinds_among, kinds_of
from restive.problem.beliefs import BeliefState, belief_tables, settled_lengths, start_or_initial

__all__ = ["BatchWorld"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class BatchWorld:
    """Many copies of a world, for whoever pulls arms in all of them at once.

    Copy m is `World(bandit, seed=seeds[m])`: it sees and earns the same, to the bit.

    Parameters
    ----------
    bandit
        The true arms of all copies, or a list with the bandit of each; these agree in the numbers
        of arms, pulls and states.
    seeds
        Name the luck of each copy [M].
    start
        When and in which state each arm was last seen before the first step, in all copies; by
        default in its last (good) state one step ago.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    hold_slow
        Hold the beliefs of such arms at their value of age 10,000, instead of refusing them.
    """

    def __init__(
        self,
        bandit: RestlessBandit | Sequence[RestlessBandit],
        seeds: Iterable[int],
        *,
        start: BeliefState | None = None,
        max_elapsed: int | None = None,
        hold_slow: bool = False,
    ) -> None:
        self.seeds = _checked_seeds(seeds)
        self.bandits = _checked_bandits(bandit, len(self.seeds))
        first = self.bandits[0]
        require_memory(16 * len(self.seeds) * first.num_arms, "the copies", "use fewer copies")
        self._start = start_or_initial(start, first)
        kinds = _kinds_of_all(self.bandits)
        lengths = settled_lengths(kinds, max_elapsed, hold_slow=hold_slow)
        world = world_of(belief_tables(kinds.arms, lengths), first.num_arms)
        size = len(self.seeds) * first.num_arms
        self._most_states = max(arm.num_states for arm in first.arms)
        self._handle = Handle(
            Copies(
                world=world,
                kinds=kinds.of.astype(np.int64),
                last_state=int_zeros(size),
                seen=int_zeros(size),
                keys=np.zeros(len(self.seeds), dtype=np.uint64),
                marks=int_zeros(first.num_arms),
            )
        )
        self._begin(self.seeds, self._start)

    @property
    def num_copies(self) -> int:
        """The number of copies M."""
        return len(self.seeds)

    @property
    def num_arms(self) -> int:
        """The number of arms K of each copy."""
        return self.bandits[0].num_arms

    @property
    def last_state(self) -> IntArray:
        """The state [M, K] in which each arm was last seen."""
        return self._rows(self._handle.held.last_state).copy()

    @property
    def elapsed(self) -> IntArray:
        """How many steps [M, K] ago that was."""
        return self.time - self._rows(self._handle.held.seen)

    @property
    def beliefs(self) -> FloatArray:
        """The law [M, K, S] of each arm's state now; zeros fill up arms of fewer states."""
        found = np.empty((self.num_copies, self.num_arms, self._most_states))
        write_beliefs(self._handle.where, self.time, found)
        return found

    def reset(self, seeds: Iterable[int], *, start: BeliefState | None = None) -> None:
        """Begin anew with these seeds, one for each copy, and by default the same start."""
        given = _checked_seeds(seeds)
        if len(given) != self.num_copies:
            raise ProblemError(
                f"{len(given)} seeds were given, each of the {self.num_copies} copies needs one"
            )
        self._begin(given, self._start if start is None else start)

    def pull(self, arms: ArrayLike) -> tuple[IntArray, FloatArray, FloatArray]:
        """Pull arms [M, N], as many in each copy.

        Returns
        -------
        Their states [M, N], the rewards [M] earned and the rewards [M] that were to be expected,
        those of all arms if others than the pulled ones pay. What is seen of arms that are always
        seen is in `last_state`.
        """
        pulled = self._checked(arms)
        states = np.empty(pulled.shape, dtype=np.int64)
        earned, expected = np.empty(len(pulled)), np.empty(len(pulled))
        wrong = pull_copies(self._handle.where, self.time, pulled, states, earned, expected)
        if wrong != FINE:
            raise ProblemError(
                f"copy {wrong}: expected different arms of 0 to {self.num_arms - 1}, "
                f"{pulled[wrong].tolist()!s:.60} were pulled"
            )
        self.time += 1
        return states, earned, expected

    def __repr__(self) -> str:
        first = self.bandits[0]
        arms, pulls = counted(first.num_arms, "arm"), counted(first.num_pulls, "pull")
        copies = "1 copy" if self.num_copies == 1 else f"{self.num_copies:,} copies"
        return f"BatchWorld({copies}, {arms}, {pulls}, time {self.time:,})"

    def _begin(self, seeds: NDArray[np.uint64], start: BeliefState) -> None:
        start = start_or_initial(start, self.bandits[0])
        start.require_fits(self.bandits[0])
        self.time, self.seeds = 1, seeds
        self._rows(self._handle.held.last_state)[:] = start.last_state
        self._rows(self._handle.held.seen)[:] = 1 - start.elapsed
        begin_copies(self._handle.where, seeds, WORLD)

    def _rows(self, values: IntArray) -> IntArray:
        return values.reshape(self.num_copies, self.num_arms)

    def _checked(self, arms: ArrayLike) -> IntArray:
        try:
            pulled = np.asarray(arms)
        except ValueError:  # rows of different lengths
            pulled = np.zeros(0)
        if (
            pulled.ndim != 2
            or len(pulled) != self.num_copies
            or not np.issubdtype(pulled.dtype, np.integer)
        ):
            raise ProblemError(
                f"arms to pull must be {self.num_copies} lists of as many whole numbers, "
                f"got {shown(arms)}"
            )
        return np.ascontiguousarray(pulled, dtype=np.int64)


def _checked_seeds(seeds: Iterable[int]) -> NDArray[np.uint64]:
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        raise ProblemError(f"seeds must be a list with a seed for each copy, got {shown(seeds)}")
    found = np.array([checked_seed(seed) for seed in seeds], dtype=np.uint64)
    if not len(found):
        raise ProblemError("a batch needs at least one seed, got none")
    found.setflags(write=False)
    return found


def _checked_bandits(
    bandit: RestlessBandit | Sequence[RestlessBandit], copies: int
) -> tuple[RestlessBandit, ...]:
    """Return one bandit for all copies, or one for each, which are alike."""
    if isinstance(bandit, RestlessBandit):
        return (bandit,)
    bandits = tuple(bandit) if isinstance(bandit, Iterable) else (bandit,)
    for m, one in enumerate(bandits):
        if not isinstance(one, RestlessBandit):
            raise ProblemError(f"bandit {m}: expected a RestlessBandit, got {shown(one)}")
    if len(bandits) != copies:
        raise ProblemError(
            f"{len(bandits)} bandits and {copies} seeds were given; each copy needs one of each"
        )
    sizes = kinds_of(bandits[0]).sizes
    for m, one in enumerate(bandits):
        if one.num_pulls != bandits[0].num_pulls or not np.array_equal(kinds_of(one).sizes, sizes):
            raise ProblemError(
                f"bandit {m} differs from bandit 0 in its arms, pulls or numbers of states; "
                "copies must agree in these"
            )
    return bandits


def _kinds_of_all(bandits: tuple[RestlessBandit, ...]) -> Kinds:
    """Return the kinds of arms of one bandit, or of all arms [M * K] of several."""
    if len(bandits) == 1:
        return kinds_of(bandits[0])
    num_arms = bandits[0].num_arms

    def label(place: int) -> str:
        return f"bandit {place // num_arms}, {bandits[place // num_arms].label(place % num_arms)}"

    return kinds_among([arm for bandit in bandits for arm in bandit.arms], label)
