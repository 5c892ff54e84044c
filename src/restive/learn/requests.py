"""What callers hand to an agent, checked: arms, masks and states."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import shown, suggestion
from restive.errors import ProblemError
from restive.problem.arm import Arm

__all__ = ["checked_arm", "checked_arms", "checked_mask", "checked_states"]

IntArray = NDArray[np.int64]


def checked_arm(k: Any, num_arms: int) -> int:
    """Return an arm's number, or raise."""
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 0 <= k < num_arms:
        names = "; an agent knows arms by number" if isinstance(k, str) else ""
        raise ProblemError(f"arm {shown(k)} is not one of the arms 0 to {num_arms - 1}{names}")
    return int(k)


def checked_arms(arms: ArrayLike, num_arms: int, what: str) -> IntArray:
    """Return different arms, in the order given, or raise."""
    if (
        isinstance(arms, list)
        and set(map(type, arms)) == {int}
        and 0 <= min(arms) <= max(arms) < num_arms
        and len(set(arms)) == len(arms)
    ):
        return np.array(arms, dtype=np.int64)  # the usual case, quickly
    given = _array(arms, what)
    if given.ndim != 1 or (given.size and not np.issubdtype(given.dtype, np.integer)):
        raise ProblemError(f"{what} must be a list of whole numbers, got {shown(arms)}")
    if given.size and not 0 <= given.min() <= given.max() < num_arms:
        raise ProblemError(f"{what}: the arms are 0 to {num_arms - 1}, got {given.tolist()!s:.60}")
    if len(set(given.tolist())) != len(given):
        raise ProblemError(f"{what}: an arm is listed twice: {given.tolist()!s:.60}")
    return given.astype(np.int64)


def checked_mask(available: ArrayLike, num_arms: int) -> NDArray[np.bool_]:
    """Return the mask [K] of available arms, given as such or as a list of arms."""
    given = _array(available, "available")
    if given.dtype == bool:
        if given.shape != (num_arms,):
            raise ProblemError(
                f"available must be {num_arms} truth values, one per arm, or a list of arms; got "
                f"truth values of shape {given.shape}"
            )
        return np.ascontiguousarray(given)
    mask = np.zeros(num_arms, dtype=bool)
    mask[checked_arms(available, num_arms, "available")] = True
    return mask


def checked_states(states: ArrayLike, arms: IntArray, typical: Callable[[int], Arm]) -> IntArray:
    """Return a state for each arm as whole numbers; kernels check that the arm has it.

    States may be given by name; `typical` returns an arm with the names of an arm's states.
    """
    seen = _array(states, "states")
    if seen.shape != arms.shape:
        raise ProblemError(
            f"{len(arms)} arms were selected, {arms.tolist()!s:.60}, so {len(arms)} states are "
            f"needed; got shape {seen.shape}"
        )
    if seen.dtype.kind in "UO" and any(isinstance(state, str) for state in seen.tolist()):
        pairs = zip(arms.tolist(), np.asarray(states, dtype=object).tolist(), strict=True)
        seen = np.array([_state(k, state, typical(k)) for k, state in pairs])
    if seen.dtype != np.int64:
        if len(seen) and not np.issubdtype(seen.dtype, np.integer):
            raise ProblemError(f"states must be whole numbers, got {seen.dtype}")
        if len(seen) and seen.max() > np.iinfo(np.int64).max:
            raise ProblemError(f"states must be small whole numbers, got {seen.max()}")
        seen = seen.astype(np.int64)
    return seen


def _state(k: int, state: Any, arm: Arm) -> Any:
    """Return the number of a state that may be given by its name."""
    if not isinstance(state, str):
        return state
    if arm.states is None:
        raise ProblemError(
            f"arm {k}: state {state!r:.60} is a name, but the prior's arms have no named states: "
            "pass states = [...] when you make them"
        )
    if state not in arm.states:
        raise ProblemError(
            f"arm {k}: {state!r:.60} is not one of its states; {suggestion(state, arm.states)}"
        )
    return arm.states.index(state)


def _array(values: ArrayLike, what: str) -> NDArray[Any]:
    if isinstance(values, np.ma.MaskedArray):
        raise ProblemError(f"{what} must not be a masked array: pass what is not masked")
    try:
        return np.asarray(values)
    except ValueError:  # lists of different lengths
        pulled = isinstance(values, tuple) and isinstance(values[0], np.ndarray)
        hint = "; of what World.pull returns pass the first item" if pulled else ""
        raise ProblemError(
            f"{what} must be a list of whole numbers, got {shown(values)}{hint}"
        ) from None
