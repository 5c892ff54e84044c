"""An arm: a Markov chain that moves every step and can be pulled (Section 2.1 of the paper).

It has one transition matrix for the steps in which it is pulled and one for the steps in which it
is not, and known rewards per state for either. It is validated once, here, and frozen: everything
else in the package may rely on it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import one_line, shown
from restive.errors import ProblemError

__all__ = [
    "Arm",
    "arm_cells",
    "arm_label",
    "arm_rewards",
    "checked_seen",
    "gilbert_elliott",
    "numbers_array",
    "probability",
    "replaced_seen",
    "state_names",
    "stochastic_matrix",
]

FloatArray = NDArray[np.float64]
# A row may miss 1 by this much (numbers typed with six digits, as three times 0.333333, and what
# adding them rounds off); it is then rescaled.
ROW_SUM_TOLERANCE = 1e-6 + 1e-15
# Sums this close to 1 are float noise and the row is kept to the bit, so that rescaling happens
# once and a written file reads back equal.
ROW_SUM_NOISE = 1e-14
MOST_REWARD = 1e100  # sums and products of rewards stay finite
SEEN = ("pulled", "always")  # when an arm is seen
MOST_SHOWN_STATES = 4  # of an arm whose matrices are written out


@dataclass(frozen=True, eq=False, repr=False, init=False)
class Arm:
    """One Markov chain that can be pulled.

    Parameters
    ----------
    active
        Row-stochastic matrix [S, S] of a step in which the arm is pulled.
    passive
        Row-stochastic matrix [S, S] of a step in which it is not; `active` when left out.
    rewards
        Reward [S] of a step in which the arm is pulled, by state: any finite numbers.
    passive_rewards
        Reward [S] of a step in which it is not; nothing when left out. The paper's arms pay only
        when pulled; patients, machines and fields pay in every step.
    name
        Used in tables and messages.
    states
        Names of the states, such as ["bad", "good"]; without them states are numbers. Tables,
        figures and messages show them, and agents and logs accept them.
    seen
        "pulled" (the paper's arms): it is seen when it is pulled, and a pull pays for the state in
        which it is then seen. "always": it is seen in every step, before it is decided whether to
        pull it, and a step pays for that state.

    Examples
    --------
    >>> import restive as rs
    >>> patient = rs.Arm(
    ...     active=[[0.5, 0.5], [0.1, 0.9]],
    ...     passive=[[0.9, 0.1], [0.4, 0.6]],
    ...     rewards=[0, 1],
    ...     states=["ill", "well"],
    ... )
    >>> patient.num_states, patient.states
    (2, ('ill', 'well'))
    """

    active: FloatArray  # [S, S]
    passive: FloatArray  # [S, S]
    rewards: FloatArray  # [S]
    passive_rewards: FloatArray  # [S]
    name: str | None
    states: tuple[str, ...] | None  # [S]
    seen: str

    def __init__(
        self,
        active: ArrayLike,
        passive: ArrayLike | None = None,
        rewards: ArrayLike | None = None,
        passive_rewards: ArrayLike | None = None,
        name: str | None = None,
        states: Iterable[str] | None = None,
        seen: str = "pulled",
    ) -> None:
        if name is not None and not isinstance(name, str):
            raise ProblemError(f"arm: name must be text, got {name!r}")
        label = _label(name)
        checked_active = stochastic_matrix(active, label, "active")
        checked_passive = (
            checked_active if passive is None else stochastic_matrix(passive, label, "passive")
        )
        if checked_active.shape != checked_passive.shape:
            raise ProblemError(
                f"{label}: active has {len(checked_active)} states and passive "
                f"{len(checked_passive)}; they must agree"
            )
        size = len(checked_active)
        if rewards is None:
            raise ProblemError(f"{label}: rewards are missing, expected {size} numbers")
        if passive_rewards is None:
            passive_rewards = np.zeros(size)
        for field, value in (
            ("active", checked_active),
            ("passive", checked_passive),
            ("rewards", arm_rewards(rewards, size, label, "rewards")),
            ("passive_rewards", arm_rewards(passive_rewards, size, label, "passive_rewards")),
            ("name", name),
            ("states", None if states is None else state_names(states, size, label)),
            ("seen", checked_seen(seen, label)),
        ):
            object.__setattr__(self, field, value)

    @property
    def num_states(self) -> int:
        """The number of states S."""
        return len(self.rewards)

    @property
    def is_uncontrolled(self) -> bool:
        """Whether pulling leaves the chain's law as it is (P_active = P_passive)."""
        return bool(np.array_equal(self.active, self.passive))

    @property
    def always_seen(self) -> bool:
        """Whether the arm is seen in every step, pulled or not."""
        return self.seen == "always"

    @property
    def pays_unpulled(self) -> bool:
        """Whether any state pays while the arm is not pulled."""
        return bool(self.passive_rewards.any())

    def state_name(self, state: int) -> str:
        """How tables and figures call a state: its name or, without one, its number."""
        return str(state) if self.states is None else self.states[state]

    def state_label(self, state: int) -> str:
        """How messages call a state: its number and, where it has one, its name."""
        return f"state {state}" if self.states is None else f"state {state} ({self.states[state]})"

    @property
    def numbers(self) -> bytes:
        """The arm without its names, as a key: arms with equal keys share every table."""
        parts = (self.active, self.passive, self.rewards, self.passive_rewards)
        numbers = b"".join(part.tobytes() for part in parts)
        return numbers + b"always" if self.always_seen else numbers

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Arm):
            return NotImplemented
        return self._names == other._names and self.numbers == other.numbers

    def __hash__(self) -> int:
        return hash((self._names, self.numbers))

    @property
    def _names(self) -> tuple[Any, ...]:
        return self.name, self.states

    def __repr__(self) -> str:
        named = "" if self.name is None else f", name={self.name!r}"
        seen = ", seen='always'" if self.always_seen else ""
        short = f"Arm({self.num_states} states{named}{seen})"
        if self.num_states > MOST_SHOWN_STATES:
            return one_line(short, short)
        fields = [f"active={self.active.tolist()}"]
        if not self.is_uncontrolled:
            fields.append(f"passive={self.passive.tolist()}")
        fields.append(f"rewards={self.rewards.tolist()}")
        if self.pays_unpulled:
            fields.append(f"passive_rewards={self.passive_rewards.tolist()}")
        if self.name is not None:
            fields.append(f"name={self.name!r}")
        if self.states is not None:
            fields.append(f"states={list(self.states)}")
        return one_line(f"Arm({', '.join(fields)}{seen})", short)


def require_arm(arm: Any) -> None:
    """Raise unless this is an arm; say how to get one from what looks like many."""
    if isinstance(arm, Arm):
        return
    many = isinstance(getattr(arm, "arms", None), tuple)
    hint = "; of a bandit, take one: bandit[0]" if many else ""
    raise ProblemError(f"expected an Arm, got {shown(arm)}{hint}")


def arm_label(arm: Arm) -> str:
    """How messages call an arm outside a bandit."""
    return _label(arm.name)


def gilbert_elliott(
    p01: float,
    p11: float,
    rewards: ArrayLike = (0.0, 1.0),
    passive_rewards: ArrayLike | None = None,
    name: str | None = None,
    states: Iterable[str] | None = None,
    seen: str = "pulled",
) -> Arm:
    """Two-state channel of Section 6: bad (0) and good (1), the same chain pulled or not.

    Parameters
    ----------
    p01
        Probability to go from bad to good.
    p11
        Probability to stay good.
    rewards
        Reward in the bad and in the good state.
    passive_rewards
        The same while the channel is not pulled; nothing when left out.
    name, states, seen
        As in `Arm`.

    Examples
    --------
    >>> import restive as rs
    >>> rs.gilbert_elliott(p01=0.25, p11=0.75, name="downlink")
    Arm(active=[[0.75, 0.25], [0.25, 0.75]], rewards=[0.0, 1.0], name='downlink')
    """
    label = _label(name)
    good = [probability(p01, label, "p01"), probability(p11, label, "p11")]
    return Arm([[1 - p, p] for p in good], None, rewards, passive_rewards, name, states, seen)


def replaced_seen(arm: Arm, seen: str) -> Arm:
    """Return the same arm, seen at other times."""
    return Arm(
        arm.active, arm.passive, arm.rewards, arm.passive_rewards, arm.name, arm.states, seen
    )


def checked_seen(seen: Any, label: str) -> str:
    """Return when an arm is seen, or say what it must be."""
    if not isinstance(seen, str) or seen not in SEEN:
        raise ProblemError(f"{label}: seen must be 'pulled' or 'always', got {shown(seen)}")
    return seen


def numbers_array(values: ArrayLike, label: str, field: str) -> FloatArray:
    """Return `values` as a fresh float64 array, or say which field is not numbers."""
    if type(values) is np.ndarray and values.dtype == np.float64:
        return np.asarray(values + 0.0)
    try:
        if np.iscomplexobj(values):
            raise TypeError
        # adding zero, as above, turns -0.0 into 0.0, so that equal arms are equal byte by byte
        array = np.array(values, dtype=np.float64) + 0.0
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(
            f"{label}: {field} must be numbers in a regular array, got {shown(values)}"
        ) from None
    return np.asarray(array)


def probability(value: Any, label: str, field: str) -> float:
    """Return `value` as a probability, or say that it is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"{label}: {field} must be a number, got {shown(value)}") from None
    if not 0 <= number <= 1:
        raise ProblemError(f"{label}: {field} is {number:g}, expected a probability in [0, 1]")
    return number


def state_names(names: Any, count: int | None, label: str) -> tuple[str, ...]:
    """Return the names of an arm's states, or say what is wrong with them; any count for None."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ProblemError(f"{label}: states must be a list of names, got {shown(names)}")
    found = tuple(names)
    for name in found:
        if not isinstance(name, str) or not name.strip():
            raise ProblemError(f"{label}: a state's name must be text, got {shown(name)}")
    if count is not None and len(found) != count:
        raise ProblemError(
            f"{label}: states must hold one name for each of its {count} states, got {len(found)}"
        )
    if len(set(found)) < len(found):
        raise ProblemError(f"{label}: two states have the same name: {shown(list(found))}")
    return found


def stochastic_matrix(values: ArrayLike, label: str, field: str) -> FloatArray:
    """Return `values` as a frozen row-stochastic matrix, or name the row that is none."""
    matrix = numbers_array(values, label, field)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.size == 0:
        raise ProblemError(
            f"{label}: {field} must be a square matrix with one row per state, "
            f"got shape {matrix.shape}"
        )
    if _made_stochastic(matrix):  # the usual case, and quick
        matrix.setflags(write=False)
        return matrix
    for row, probabilities in enumerate(matrix):
        bad = probabilities[~((probabilities >= 0) & (probabilities <= 1))]
        if bad.size:
            raise ProblemError(
                f"{label}: row {row} of {field} holds {bad[0]:g}, expected probabilities "
                "between 0 and 1"
            )
        total = probabilities.sum()
        if abs(total - 1) > ROW_SUM_TOLERANCE:
            raise ProblemError(f"{label}: row {row} of {field} sums to {total:.12g}, expected 1")
        if abs(total - 1) > ROW_SUM_NOISE:
            matrix[row] /= total
    matrix.setflags(write=False)
    return matrix


def _made_stochastic(matrix: FloatArray) -> bool:
    """Rescale rows where that is due; False where they must be looked at one by one."""
    if not matrix.flags.c_contiguous:  # whose sums are made in another order
        return False
    if not (matrix.min() >= 0 and matrix.max() <= 1):  # nor nan
        return False
    totals = matrix.sum(axis=1)
    apart = np.abs(totals - 1)
    if apart.max() > ROW_SUM_NOISE:
        if apart.max() > ROW_SUM_TOLERANCE:
            return False
        rows = apart > ROW_SUM_NOISE
        matrix[rows] /= totals[rows, None]
    return True


def arm_rewards(values: ArrayLike, num_states: int, label: str, field: str) -> FloatArray:
    """Return `values` as frozen rewards, one per state, or say what is wrong with them."""
    rewards = numbers_array(values, label, field)
    if rewards.shape != (num_states,):
        raise ProblemError(
            f"{label}: {field} must hold one number per state, {num_states}, "
            f"got shape {rewards.shape}"
        )
    if np.abs(rewards).max() <= MOST_REWARD:  # nor nan
        rewards.setflags(write=False)
        return rewards
    for state, reward in enumerate(rewards):
        if not abs(reward) <= MOST_REWARD:  # nor nan
            raise ProblemError(
                f"{label}: {field} holds {reward:g} for state {state}, expected a finite number "
                f"of at most {MOST_REWARD:g}"
            )
    rewards.setflags(write=False)
    return rewards


def arm_cells(arm: Arm) -> tuple[Any, ...]:
    """Return an arm's cells of a table: states, rewards and moves."""
    states = str(arm.num_states) if arm.states is None else ", ".join(arm.states)
    if arm.always_seen:
        states += " (always seen)"
    rewards = ", ".join(f"{reward:g}" for reward in arm.rewards)
    if arm.pays_unpulled:
        rewards += " (not pulled: " + ", ".join(f"{r:g}" for r in arm.passive_rewards) + ")"
    passive = "the same" if arm.is_uncontrolled else _rows_in_words(arm.passive)
    return states, rewards, _rows_in_words(arm.active), passive


def _rows_in_words(matrix: FloatArray) -> str:
    if len(matrix) > MOST_SHOWN_STATES:
        return f"{len(matrix)} x {len(matrix)} matrix"
    return "; ".join(", ".join(f"{p:.4g}" for p in row) for row in matrix)


def _label(name: str | None) -> str:
    return "arm" if name is None else f"arm {name!r}"
