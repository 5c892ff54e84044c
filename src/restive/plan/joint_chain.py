"""The joint chain of all arms' meta-states: explored state by state, and solved.

Under Assumption 1 ages may be pooled once the belief has settled, so that finitely many joint
meta-states matter; few enough, for few arms, to solve for long-run values exactly: closed classes,
gain and bias, absorption, the optimum. States are numbered as they are found (`JointStates`); a
chain is given by what follows from each of them (`Outcomes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log
from math import log10 as log10_of

import numpy as np
from numpy.typing import NDArray

from restive.arguments import count_in_words
from restive.errors import TooLargeError
from restive.kernels.plan import joint_chain as kernels
from restive.kernels.plan.joint_chain import Outcomes
from restive.problem.bandit import Kinds, RestlessBandit, always_seen, kinds_of
from restive.problem.beliefs import BeliefState, belief_tables
from restive.problem.reduction import unit_of
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = [
    "JointStates",
    "Outcomes",
    "absorbed_values",
    "closed_components",
    "gain_and_bias",
    "joined",
    "optimal_bias",
    "shown_sizes",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Int32Array = NDArray[np.int32]

MOST_OUTCOMES = 4096  # of one step: the product of the pulled arms' numbers of states
USUAL_BYTES, USUAL_PRODUCTS = 2_500, 5_000  # of a joint state of a few arms, at most
ROUNDING = 1e-9  # of sums of logarithms
STAGE = 10_000  # sweeps after which one looks how they get on


def shown_sizes(bandit: RestlessBandit) -> IntArray:
    """Numbers of states of the arms that are seen in a step, where these are largest."""
    sizes, always = kinds_of(bandit).sizes, always_seen(bandit)
    others = np.sort(sizes[~always])[::-1][: bandit.num_pulls]
    return np.concatenate([sizes[always], others])


def most_outcomes(bandit: RestlessBandit) -> int:
    """Ways in which one step can end, or raise if they are too many for a joint chain."""
    largest = shown_sizes(bandit)
    log10 = float(np.log10(largest).sum())
    if log10 > log10_of(MOST_OUTCOMES) + ROUNDING:
        what, way_out = f"{bandit.num_pulls:,} pulls", "pull fewer arms"
        if always_seen(bandit).any():
            what, way_out = f"{len(largest):,} arms that are seen", "there are too many of them"
        raise TooLargeError(
            f"one step of {what} can end in {count_in_words(log10)} ways, more "
            f"than {MOST_OUTCOMES:,}: too many for a joint chain; {way_out}"
        )
    return int(np.prod(largest))


def joined(blocks: Sequence[Outcomes], count: int | None = None) -> Outcomes:
    """Return blocks of outcomes as one, up to the first `count` rows."""
    return Outcomes(*(np.concatenate(arrays)[:count] for arrays in zip(*blocks, strict=True)))


class JointStates:
    """Joint meta-states of a bandit, numbered in the order in which they are found.

    Parameters
    ----------
    bandit
        The arms.
    kinds
        Its kinds of arms.
    lengths
        Ages told apart per kind; older is as old as the last.
    """

    def __init__(self, bandit: RestlessBandit, kinds: Kinds, lengths: IntArray) -> None:
        self.bandit = bandit
        self.kinds = kinds
        self.most_outcomes = most_outcomes(bandit)
        tables = belief_tables(kinds.arms, lengths)
        rewards = [arm.passive_rewards for arm in kinds.arms]
        self.unit = unit_of(np.concatenate([tables.rewards, *rewards]))
        self._passive_means = tables.passive_means
        self.sizes = tables.sizes[kinds.of]
        self.lengths = tables.lengths[kinds.of]
        self.always = always_seen(bandit)
        self._arms = kernels.ArmTables(
            beliefs=tables.beliefs,
            means=tables.means,
            begins=tables.offsets[kinds.of],
            mean_begins=tables.mean_offsets[kinds.of],
            sizes=self.sizes,
            lengths=self.lengths,
            always=np.flatnonzero(self.always),
            following=np.empty(0, dtype=np.int32),
            seen=np.empty(0, dtype=np.int64),
            movers=np.empty(0, dtype=np.int64),
            laws=np.empty(0, dtype=np.int64),
        )
        self.count = 0
        self._numbers = kernels.StateNumbers(
            states=np.empty((1, bandit.num_arms), dtype=np.int32),
            slots=np.full(256, -1, dtype=np.int32),
        )

    @property
    def weight(self) -> float:
        """As how many joint states of a few arms one of these counts, in bytes and in products."""
        return max(1.0, self.bytes_each / USUAL_BYTES, self.products_each / USUAL_PRODUCTS)

    @property
    def bytes_each(self) -> int:
        """Bytes of a joint state and its outcomes, while arrays grow or are joined."""
        return 12 * self.bandit.num_arms + 24 * self.most_outcomes

    @property
    def products_each(self) -> int:
        """Products that it takes to follow a joint state."""
        return self.bandit.num_arms * self.most_outcomes

    def cells(self, last_state: IntArray, elapsed: IntArray) -> Int32Array:
        """Rows of cells for meta-states given as [M, K] arrays."""
        return (last_state * self.lengths + np.minimum(elapsed, self.lengths) - 1).astype(np.int32)

    @property
    def ages(self) -> IntArray:
        """Ages [K] that an arm can have: one where it is always seen."""
        return np.where(self.always, 1, self.lengths)

    def unpacked(self, first: int, last: int) -> tuple[IntArray, IntArray]:
        """Last states and elapsed steps [M, K] of the states with numbers in [first, last)."""
        last_state, age = np.divmod(self._numbers.states[first:last].astype(np.int64), self.lengths)
        return last_state, age + 1

    def add(self, rows: Int32Array) -> None:
        """Number the rows that are new."""
        self._make_space(len(rows))
        for part in _parts(len(rows), self.bandit.num_arms):
            self.count = kernels.find_or_add(rows[part], self._numbers, self.count)

    def number_of(self, state: BeliefState) -> int:
        """Return the number of a state, which is added if it is new."""
        row = self.cells(state.last_state[None], state.elapsed[None])
        known = np.flatnonzero((self._numbers.states[: self.count] == row).all(axis=1))
        if known.size:
            return int(known[0])
        self.add(row)
        return self.count - 1

    def rows(self, first: int, last: int) -> Int32Array:
        """Cells of the states with numbers in [first, last)."""
        return self._numbers.states[first:last].copy()

    def outcomes(self, rows: Int32Array, actions: IntArray, add: bool) -> Outcomes:
        """Outcomes of pulling actions[i] (ascending arms [M, N]) in rows[i]; all arms are paid."""
        shape = (len(rows), self.most_outcomes)
        if add:
            self._make_space(len(rows) * self.most_outcomes)
        found = Outcomes(np.empty(shape, dtype=np.int32), np.empty(shape), np.empty(len(rows)))
        arms = self._arms._replace(  # with scratch of this call's own: threads share a policy
            following=np.empty(self.bandit.num_arms, dtype=np.int32),
            seen=np.empty(self.bandit.num_arms, dtype=np.int64),
            movers=np.empty(self.bandit.num_arms, dtype=np.int64),
            laws=np.empty(self.bandit.num_arms, dtype=np.int64),
        )
        for part in _parts(len(rows), self.most_outcomes * self.bandit.num_arms):
            self.count = kernels.successors(
                rows[part], actions[part], arms, self._numbers, self.count, add,
                Outcomes(found.successor[part], found.probability[part], found.reward[part]),
            )  # fmt: skip
        if len(self._passive_means):
            paid = self._passive_means[self._arms.mean_begins + rows]
            np.put_along_axis(paid, actions, 0.0, axis=1)
            found.reward[:] += paid.sum(axis=1)
        return found

    def _make_space(self, more: int) -> None:
        wanted = self.count + more
        states, slots = self._numbers
        if wanted > len(states):
            larger = np.empty((max(wanted, 2 * len(states)), states.shape[1]), dtype=np.int32)
            larger[: self.count] = states[: self.count]
            self._numbers = self._numbers._replace(states=larger)
        if 2 * wanted > len(slots):
            empty = np.full(1 << (2 * wanted).bit_length(), -1, dtype=np.int32)
            self._numbers = self._numbers._replace(slots=empty)
            for part in _parts(self.count, states.shape[1]):
                kernels.rehash(self._numbers, part.start, part.stop)


def _parts(count: int, work: int) -> Iterator[slice]:
    """Rows that a kernel takes at once, so that Ctrl-C is heard in between; `work` is of a row."""
    at_once = max(1, WORK_AT_ONCE // (10 * work))  # a number looked up in memory costs ten products
    return (slice(first, min(first + at_once, count)) for first in range(0, count, at_once))


def closed_components(successor: Int32Array) -> tuple[Int32Array, int]:
    """Label each state by its closed communicating class, -1 for transient states."""
    found = np.zeros((kernels.NUM_ROWS, len(successor)), dtype=np.int32)
    found[[kernels.ORDER, kernels.COMPONENT]] = -1
    progress = np.zeros(kernels.NUM_PLACES, dtype=np.int64)
    while not kernels.label_components(successor, found, progress, WORK_AT_ONCE):
        stop_if_interrupted()
    component = found[kernels.COMPONENT]
    leaving = (component[successor] != component[:, None]) & (successor >= 0)
    closed = np.ones(progress[kernels.COMPONENTS], dtype=np.bool_)
    closed[component[leaving.any(axis=1)]] = False
    number = np.where(closed, np.cumsum(closed) - 1, -1).astype(np.int32)
    return number[component], int(closed.sum())


def gain_and_bias(
    members: IntArray,
    chain: Outcomes,
    bias: FloatArray,
    damping: float,
    tolerance: float,
    most_sweeps: int,
) -> tuple[float, float]:
    """Gain of a closed set of states with one recurrent class, and its bias (in place).

    Returns the gain and the gap that is left between its bounds.
    """
    following, sweeps = np.empty(len(members)), _sweeps(tolerance, most_sweeps)
    gaps: list[float] = []
    for most in _stages(most_sweeps):
        sweeps = sweeps._replace(most=most)
        while not kernels.improve_bias(
            members, chain, bias, following, damping, sweeps, WORK_AT_ONCE
        ):
            stop_if_interrupted()
        gaps.append(float(sweeps.increase[1] - sweeps.increase[0]))
        if gaps[-1] <= tolerance or _is_hopeless(gaps, tolerance, most_sweeps):
            break
    lowest, highest = sweeps.increase.tolist()
    return 0.5 * (lowest + highest), highest - lowest


def _sweeps(tolerance: float, most: int) -> kernels.Sweeps:
    """Sweeps that have not begun."""
    return kernels.Sweeps(np.zeros(2, dtype=np.int64), np.zeros(2), float(tolerance), int(most))


def _stages(most_sweeps: int) -> range:
    """Numbers of sweeps after which one looks how they get on."""
    return range(STAGE, most_sweeps + STAGE, STAGE)


def _is_hopeless(gaps: list[float], tolerance: float, most_sweeps: int) -> bool:
    """Whether the gap falls so slowly that ten times the sweeps would not close it.

    It may stay as it is for as many sweeps as there are ages, so the first stages do not count.
    """
    if len(gaps) < 3 or gaps[-1] <= 0:
        return False
    rate = log(gaps[-2] / gaps[-1]) / STAGE
    return rate * 10 * most_sweeps < log(gaps[-1] / tolerance)


def absorbed_values(
    values: FloatArray,
    component: Int32Array,
    chain: Outcomes,
    earned: FloatArray,
    tolerance: float,
    most_sweeps: int,
) -> float:
    """What transient states earn until they reach a closed class, plus its value there, in place.

    Returns the last sweep's largest change.
    """
    sweeps = _sweeps(tolerance, most_sweeps)
    while not kernels.absorb(values, component, chain, earned, sweeps, WORK_AT_ONCE):
        stop_if_interrupted()
    return float(sweeps.increase[1])


def optimal_bias(
    choices: Outcomes, num_actions: int, damping: float, tolerance: float, most_sweeps: int
) -> tuple[FloatArray, float, float]:
    """Optimal bias, gain and the gap of its bounds; row m * num_actions + a is action a in m."""
    count = len(choices.reward) // num_actions
    bias, following, best_row = np.zeros(count), np.empty(count), np.zeros(count, dtype=np.int64)
    sweeps = _sweeps(tolerance, most_sweeps)
    while not kernels.improve_optimal_bias(
        choices, bias, following, best_row, damping, sweeps, WORK_AT_ONCE
    ):
        stop_if_interrupted()
    lowest, highest = sweeps.increase.tolist()
    return bias, 0.5 * (lowest + highest), highest - lowest
