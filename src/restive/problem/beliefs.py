r"""What is known about arms that are not seen (Section 2.2 of the paper).

Arm k was last seen in state sigma_k, n_k steps ago; (sigma, n) is the meta-state xi. Its state now
has the law, the *belief*,

    b(s, n) = e_s P_active P_passive^(n-1)

since the arm was pulled when it was seen and has been passive since. Under the paper's Assumption
1, and wherever the passive chain has one closed class, which is aperiodic, b(s, n) tends to the
passive chain's stationary law, so a table of finitely many ages is enough: `belief_table` extends
it until every belief is within 1e-12 of that law.

An arm that is always seen (`Arm.always_seen`) needs no belief: its state now is known, and what is
drawn is its next state. It has the same tables, read another way: column 1 is for a step in which
it is pulled, column 2 for one in which it is not. So its table of laws holds P_active(s, .) and
P_passive(s, .), that of rewards r_a(s) and r_p(s), and its meta-state is (state now, 1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST, checked_elapsed, counted, one_line, shown
from restive.errors import AssumptionError, ProblemError, TooLargeError
from restive.kernels.chain import belief_powers, settling_age
from restive.kernels.elementary import logarithms
from restive.kernels.loop.tables import BeliefTables
from restive.problem.arm import Arm, arm_label, require_arm
from restive.problem.bandit import (
    Kinds,
    RestlessBandit,
    always_seen,
    computed_once,
    kinds_of,
    starts_of,
)
from restive.problem.chains import require_limit, unichain_law
from restive.threads import WORK_AT_ONCE, stop_if_interrupted

__all__ = [
    "BeliefState",
    "belief_table",
    "belief_tables",
    "beliefs",
    "beliefs_at",
    "beliefs_in",
    "initial_state",
    "laws_now",
    "log_chances",
    "require_state",
    "settled_elapsed",
    "settled_lengths",
    "start_or_initial",
    "thresholds",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

BELIEF_TOLERANCE = 1e-12  # L1 distance to the stationary law at which a belief has settled
MOST_ELAPSED = 10_000  # ages in an automatic table
MOST_TABLE_BYTES = 4 << 30
MODES = 2  # columns of an arm that is always seen: pulled, and not pulled
MOST_SHOWN_ARMS = 20  # of a meta-state, when it is written as code


def belief_table(arm: Arm, max_elapsed: int | None = None) -> FloatArray:
    """Beliefs of an arm by last state and elapsed steps.

    Parameters
    ----------
    arm
        Any arm; with `max_elapsed=None` its passive chain must have one closed class, which is
        aperiodic (Assumption 1 asks for that and for no other states).
    max_elapsed
        Number of ages L; by default as many as the belief needs to settle (to 1e-12).

    Returns
    -------
    Array [S, L, S] with b(s, n) at [s, n - 1]. A longer table extends a shorter one to the bit. Of
    an arm that is always seen, [S, 2, S]: where state s leads, pulled and not pulled.
    """
    require_arm(arm)
    if arm.always_seen:
        return np.stack([arm.active, arm.passive], axis=1)
    length = settled_elapsed(arm) if max_elapsed is None else checked_elapsed(max_elapsed)
    size = arm.num_states**2 * length * 8
    if size > MOST_TABLE_BYTES:
        raise TooLargeError(
            f"{arm_label(arm)}: a belief table of {arm.num_states} states and {length} ages takes "
            f"{size / 2**30:.1f} GiB, more than {MOST_TABLE_BYTES >> 30}; use a smaller max_elapsed"
        )
    active, passive = arm.active.copy(), arm.passive.copy()
    table = np.empty((arm.num_states, length, arm.num_states))
    done = 0
    while (done := belief_powers(active, passive, table, done, WORK_AT_ONCE)) < length:
        stop_if_interrupted()
    return table


def beliefs_at(
    active: FloatArray, passive: FloatArray, last_state: IntArray, elapsed: IntArray
) -> FloatArray:
    """Beliefs of many chains at a few ages, however old.

    Parameters
    ----------
    active, passive
        Matrices [M, S, S] of the chains. The first may have more rows, for more ways to begin.
    last_state, elapsed
        Where they were last seen, and how many steps ago [C].

    Returns
    -------
    Array [C, M, S] of b(s, n).
    """
    found = np.empty((len(elapsed), *passive.shape[:2]))
    power, reached = active, 1  # P_active P_passive^(n - 1)
    for at in np.argsort(elapsed, kind="stable").tolist():
        ahead = int(elapsed[at]) - reached
        if ahead:
            power = _product(power, _power(passive, ahead))
            reached += ahead
        found[at] = power[:, last_state[at]]
    return found


def beliefs(
    bandit: RestlessBandit, state: BeliefState, *, max_elapsed: int | None = None
) -> FloatArray:
    """Beliefs of all arms as one array.

    Parameters
    ----------
    bandit
        The arms.
    state
        When and in which state each was last seen.
    max_elapsed
        Ages told apart; by default as many as beliefs need to settle (to 1e-12).

    Returns
    -------
    Array [K, S] of b(s, n), where S is the largest number of states; zeros fill up the others. Of
    an arm that is always seen, its state now.
    """
    kinds = kinds_of(bandit)
    require_state(state, bandit)
    if max_elapsed is None:
        tables = _settled_tables(bandit)
    else:
        tables = belief_tables(kinds.arms, settled_lengths(kinds, max_elapsed))
    return beliefs_in(tables, kinds.of, state.last_state, state.elapsed)


@computed_once  # since whoever asks, asks again in the next step
def _settled_tables(bandit: RestlessBandit) -> BeliefTables:
    kinds = kinds_of(bandit)
    return belief_tables(kinds.arms, settled_lengths(kinds))


def beliefs_in(
    tables: BeliefTables, kinds: NDArray[np.intp], last_state: IntArray, elapsed: IntArray
) -> FloatArray:
    """Beliefs [K, S] of arms of these kinds [K], as they stand in tables."""
    sizes, lengths = tables.sizes[kinds], tables.lengths[kinds]
    cells = last_state * lengths + np.minimum(elapsed, lengths) - 1
    states = np.arange(sizes.max())
    there = states < sizes[:, None]
    places = (tables.offsets[kinds] + cells * sizes)[:, None] + states
    found = np.where(there, tables.beliefs[np.where(there, places, 0)], 0.0)
    if len(tables.always):  # whose states are known
        shown = tables.always[kinds] != 0
        found[shown] = np.eye(len(states))[last_state[shown]]
    return found


def log_chances(
    active: FloatArray,
    passive: FloatArray,
    last_state: IntArray,
    elapsed: IntArray,
    next_state: IntArray,
) -> FloatArray:
    """Logarithms [C, M] of b(s, n)[s'] for C cells and M chains; -inf where it cannot be."""
    laws = beliefs_at(active, passive, last_state, elapsed)
    return logarithms(laws[np.arange(len(elapsed)), :, next_state])


def _power(matrices: FloatArray, exponent: int) -> FloatArray:
    """Powers [M, S, S] by squaring; the exponent is at least 1."""
    power: FloatArray | None = None
    while exponent:
        if exponent & 1:
            power = matrices if power is None else _product(power, matrices)
        exponent >>= 1
        matrices = _product(matrices, matrices) if exponent else matrices
    assert power is not None
    return power


def _product(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products [M, S, S] of matrices, with rows that sum to one."""
    product = np.einsum("mij,mjk->mik", left, right)
    # rounding never adds up over many steps
    return np.asarray(product / product.sum(axis=2, keepdims=True))


def settled_elapsed(arm: Arm, label: str | None = None, tolerance: float = BELIEF_TOLERANCE) -> int:
    """Return the first age at which every belief of the arm is within `tolerance` of its limit."""
    if arm.always_seen:
        return MODES
    label = arm_label(arm) if label is None else label
    try:
        require_limit(arm.passive, label, states=arm.states)
    except AssumptionError as error:
        raise AssumptionError(
            f"{error}; give max_elapsed, the same wherever the arm is used, to hold the belief at "
            "its value of that age"
        ) from None
    law = unichain_law(arm.passive, label)
    beliefs, passive = np.array([arm.active, arm.active]), arm.passive.copy()
    age, gap = 1, inf
    while gap > tolerance and age < MOST_ELAPSED:
        stop_if_interrupted()
        age, gap = settling_age(beliefs, passive, law, tolerance, age, MOST_ELAPSED, WORK_AT_ONCE)
    if gap > tolerance:
        raise TooLargeError(
            f"{label}: mixes too slowly: after {MOST_ELAPSED:,} steps its belief is still "
            f"{gap:.2g} (L1) from its limit; give max_elapsed = {MOST_ELAPSED} (or another length) "
            "to hold the belief at its value of that age"
        )
    return int(age)


def settled_lengths(
    kinds: Kinds,
    max_elapsed: int | None = None,
    tolerance: float = BELIEF_TOLERANCE,
    *,
    hold_slow: bool = False,
) -> IntArray:
    """Ages after which each kind's belief has settled, or `max_elapsed` for all.

    With `hold_slow` the beliefs of arms that mix too slowly are held at the last age of the longest
    automatic table; otherwise such an arm is an error. Arms that are always seen have two columns,
    whatever is asked for.
    """
    if max_elapsed is not None:
        always = np.array([arm.always_seen for arm in kinds.arms], dtype=bool)
        return np.where(always, MODES, checked_elapsed(max_elapsed)).astype(np.int64)
    lengths = []
    for arm, label in zip(kinds.arms, kinds.labels, strict=True):
        try:
            lengths.append(settled_elapsed(arm, label, tolerance))
        except TooLargeError:
            if not hold_slow:
                raise
            lengths.append(MOST_ELAPSED)
    return np.array(lengths, dtype=np.int64)


def belief_tables(arms: Sequence[Arm], lengths: Sequence[int] | IntArray) -> BeliefTables:
    """Lay the belief tables of several kinds of arms end to end, each with its own length."""
    tables = [belief_table(arm, int(n)) for arm, n in zip(arms, lengths, strict=True)]
    means = [mean_rewards(arm, table) for arm, table in zip(arms, tables, strict=True)]
    passive = [np.zeros((0, 0))]
    if any(arm.pays_unpulled for arm in arms):
        passive = [
            expected(arm.passive_rewards, _known(arm, table))
            for arm, table in zip(arms, tables, strict=True)
        ]
    sizes = np.array([arm.num_states for arm in arms], dtype=np.int64)
    always = np.array([arm.always_seen for arm in arms], dtype=np.int64)
    return BeliefTables(
        beliefs=_joined([table.ravel() for table in tables]),
        thresholds=_joined([thresholds(table).ravel() for table in tables]),
        offsets=starts_of([table.size for table in tables]),
        means=_joined([mean.ravel() for mean in means]),
        mean_offsets=starts_of([mean.size for mean in means]),
        passive_means=np.concatenate([mean.ravel() for mean in passive]),
        passive_totals=np.concatenate([np.cumsum(mean, axis=1).ravel() for mean in passive]),
        rewards=_joined([arm.rewards for arm in arms]),
        reward_offsets=starts_of(sizes),
        sizes=sizes,
        lengths=np.array([table.shape[1] for table in tables], dtype=np.int64),
        always=always if always.any() else always[:0],
    )


def laws_now(arm: Arm, length: int) -> FloatArray:
    """Laws [S, L, S] of the state that an arm is in now: its beliefs, or the state that is seen."""
    return _known(arm, belief_table(arm, length))


def _known(arm: Arm, table: FloatArray) -> FloatArray:
    if not arm.always_seen:
        return table
    return np.broadcast_to(np.eye(arm.num_states)[:, None], table.shape)


def mean_rewards(arm: Arm, table: FloatArray) -> FloatArray:
    """Reward [S, L] that is expected of a pull, by column; where it is always seen, of a mode."""
    if not arm.always_seen:
        return expected(arm.rewards, table)
    return np.stack([arm.rewards, arm.passive_rewards], axis=1)


def _joined(parts: Sequence[FloatArray]) -> FloatArray:
    return np.concatenate([np.zeros(0), *parts])


def thresholds(beliefs: FloatArray) -> FloatArray:
    """Running totals of laws [..., S]; beyond 1 from the last possible state, despite rounding."""
    totals = np.cumsum(beliefs, axis=-1)
    later = np.flip(np.cumsum(np.flip(beliefs, -1), axis=-1), -1) - beliefs
    totals[later == 0] = 2.0
    return totals


def expected(values: FloatArray, beliefs: FloatArray) -> FloatArray:
    """Expected values [S, L] of an arm's state, from values [S] and its belief table."""
    means = np.zeros(beliefs.shape[:2])
    for state, value in enumerate(values):  # plain sums: the same bits on every machine
        means += beliefs[:, :, state] * value
    return means


@dataclass(frozen=True, eq=False, repr=False)
class BeliefState:
    """The meta-state xi = (sigma, n): when and in which state each arm was last seen.

    Parameters
    ----------
    last_state
        State [K] in which each arm was last seen.
    elapsed
        Steps [K] since then, at least 1.

    Examples
    --------
    >>> import restive as rs
    >>> state = rs.BeliefState(last_state=[1, 0], elapsed=[1, 3])
    >>> state.updated(pulled=[1], states=[1])
    BeliefState(last_state=[1, 1], elapsed=[2, 1])
    """

    last_state: IntArray  # [K]
    elapsed: IntArray  # [K]

    def __init__(self, last_state: ArrayLike, elapsed: ArrayLike) -> None:
        states = _whole_numbers(last_state, "last_state", 0)
        ages = _whole_numbers(elapsed, "elapsed", 1)
        if len(ages) and ages.max() > MOST:
            raise ProblemError(f"elapsed must be at most {MOST:,}, got {ages.max()}")
        if states.shape != ages.shape:
            raise ProblemError(
                f"last_state has {len(states)} arms and elapsed {len(ages)}; they must agree"
            )
        object.__setattr__(self, "last_state", states)
        object.__setattr__(self, "elapsed", ages)

    @property
    def num_arms(self) -> int:
        """The number of arms K."""
        return len(self.last_state)

    def updated(self, pulled: ArrayLike, states: ArrayLike) -> BeliefState:
        """Return the next meta-state, after seeing the `pulled` arms in `states`."""
        arms = _whole_numbers(pulled, "pulled", 0)
        seen = _whole_numbers(states, "states", 0)
        if arms.shape != seen.shape:
            raise ProblemError(f"{len(arms)} arms were pulled but {len(seen)} states were given")
        if len(arms) and arms.max() >= self.num_arms:
            raise ProblemError(
                f"pulled names arm {arms.max()}; the arms are 0 to {self.num_arms - 1}"
            )
        if len(np.unique(arms)) != len(arms):
            raise ProblemError(f"pulled names an arm twice: {arms.tolist()}")
        last_state, elapsed = self.last_state.copy(), self.elapsed + 1
        last_state[arms] = seen
        elapsed[arms] = 1
        return BeliefState(last_state, elapsed)

    def require_fits(self, bandit: RestlessBandit) -> None:
        """Raise unless this is a meta-state of `bandit`."""
        if self.num_arms != bandit.num_arms:
            raise ProblemError(
                f"the state is for {self.num_arms} arms, the bandit has {bandit.num_arms}"
            )
        sizes = kinds_of(bandit).sizes
        wrong = np.flatnonzero(self.last_state >= sizes)
        if wrong.size:
            k = int(wrong[0])
            raise ProblemError(
                f"{bandit.label(k)}: last_state is {self.last_state[k]}, "
                f"its states are 0 to {sizes[k] - 1}"
            )
        late = np.flatnonzero(always_seen(bandit) & (self.elapsed != 1))
        if late.size:
            k = int(late[0])
            raise ProblemError(
                f"{bandit.label(k)}: is always seen, so last_state is its state now and elapsed "
                f"must be 1, got {self.elapsed[k]}"
            )

    def __repr__(self) -> str:
        short = f"BeliefState({counted(self.num_arms, 'arm')})"
        if self.num_arms > MOST_SHOWN_ARMS:
            return short
        states, ages = self.last_state.tolist(), self.elapsed.tolist()
        return one_line(f"BeliefState(last_state={states}, elapsed={ages})", short)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BeliefState):
            return NotImplemented
        return bool(
            np.array_equal(self.last_state, other.last_state)
            and np.array_equal(self.elapsed, other.elapsed)
        )

    def __hash__(self) -> int:
        return hash((self.last_state.tobytes(), self.elapsed.tobytes()))


def require_state(state: Any, bandit: RestlessBandit) -> None:
    """Raise unless this is a meta-state of `bandit`."""
    if not isinstance(state, BeliefState):
        raise ProblemError(
            f"expected a BeliefState(last_state, elapsed): in which state each arm was last seen, "
            f"and how many steps ago; got {shown(state)}"
        )
    state.require_fits(bandit)


def start_or_initial(start: BeliefState | None, bandit: RestlessBandit) -> BeliefState:
    """Return the start, by default the paper's xi_1: every arm seen good one step ago."""
    if start is None:
        return initial_state(bandit)
    if not isinstance(start, BeliefState):
        raise ProblemError(f"start must be a BeliefState, got {start!r:.60}")
    return start


def initial_state(bandit: RestlessBandit) -> BeliefState:
    """Return the paper's start xi_1: every arm seen in its last (good) state one step ago.

    An arm that is always seen is in that state now.
    """
    sizes = kinds_of(bandit).sizes
    return BeliefState(sizes - 1, np.ones_like(sizes))


def _whole_numbers(values: ArrayLike, field: str, least: int) -> IntArray:
    try:
        array = np.asarray(values)
    except ValueError:  # lists of different lengths
        array = np.zeros((0, 0))
    if array.ndim != 1 or (array.size and not np.issubdtype(array.dtype, np.integer)):
        raise ProblemError(f"{field} must be a list of whole numbers, got {values!r:.60}")
    if array.size and array.min() < least:
        raise ProblemError(f"{field} must be at least {least}, got {array.min()}")
    frozen: IntArray = array.astype(np.int64)
    frozen.setflags(write=False)
    return frozen
