"""Whittle index of an arm that is seen only when pulled, straight from the definition.

Model. An arm has S states, row-stochastic matrices `active` and `passive` [S, S] and `rewards` [S].
The belief about an arm last seen (pulled) in state s, n >= 1 steps ago, is

    b(s, n) = e_s P_active P_passive^(n-1).

The arm alone, paid a subsidy for each step it rests, is a controlled chain over (s, n), n = 1..L:

    passive:  earns the subsidy,     (s, n) -> (s, min(n + 1, L));
    active:   earns b(s, n).r,       (s, n) -> (s', 1) with probability b(s, n)[s'].

Definition. With V the optimal discounted value for this subsidy, the advantage of pulling is

    A(s, n; subsidy) = b(s, n).r + discount sum_s' b(s, n)[s'] V(s', 1)
                       - subsidy - discount V(s, min(n + 1, L)),

and the Whittle index of (s, n) is the subsidy at which A changes its sign from + to -. An arm is
indexable if no A(s, n; .) that is negative ever becomes positive again at a larger subsidy.

The average-reward criterion is the limit discount -> 1. It has no simple direct form here: above
the limiting index the best policies rest for ever in several (s, L), so the chain has several
closed classes and the equations of the average criterion are singular. `discount=1.0` therefore
means 1 - 1e-9. Measured: within 6e-10 of the known rational indices of two-state arms; on 232
random arms of 2 to 5 states typically 3e-10 from the extrapolated limit. The error is that of the
discount and grows with slow active chains and very negative indices: the worst was 9e-7, on an arm
with an index of -28. (Closer to one is no cure: 1 - 1e-11 is at times 2e-6 off, by rounding.)
"""

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

_VANISHING_DISCOUNT = 1.0 - 1e-9
_MAX_ROUNDS = 1000


def belief_table(active: FloatArray, passive: FloatArray, max_elapsed: int) -> FloatArray:
    """Return b [S, L, S] with b[s, n-1] = e_s P_active P_passive^(n-1)."""
    active, passive = np.asarray(active, float), np.asarray(passive, float)
    num_states = len(active)
    table = np.zeros((num_states, max_elapsed, num_states))
    for s in range(num_states):
        belief = active[s]
        for n in range(1, max_elapsed + 1):
            table[s, n - 1] = belief
            belief = belief @ passive
    return table


def advantage(
    active: FloatArray,
    passive: FloatArray,
    rewards: FloatArray,
    subsidy: float,
    max_elapsed: int,
    discount: float,
) -> FloatArray:
    """Return A [S, L], the optimal Q-value of pulling minus that of resting.

    Howard's policy iteration from "always pull", each policy evaluated by a dense linear solve.
    """
    beta = _VANISHING_DISCOUNT if discount == 1.0 else discount
    beliefs = belief_table(active, passive, max_elapsed)
    move_active, move_passive = _chains(beliefs)
    # Both rewards less the subsidy: every value falls by subsidy / (1 - discount), no advantage
    # changes, and resting for ever is worth exactly zero.
    earn_active = (beliefs @ np.asarray(rewards, float)).ravel() - subsidy
    earn_passive = np.zeros_like(earn_active)

    pull = np.ones(len(earn_active), dtype=bool)
    for _ in range(_MAX_ROUNDS):
        move = np.where(pull[:, None], move_active, move_passive)
        relative = _relative_values(move, np.where(pull, earn_active, earn_passive), beta)
        gain: FloatArray = (
            earn_active - earn_passive + beta * ((move_active - move_passive) @ relative)
        )
        # A change of action needs more than rounding error, or equal actions would cycle.
        noise = 1e-14 * (1.0 + np.abs(relative).max())
        better = np.where(pull, gain >= -noise, gain > noise)
        if np.array_equal(better, pull):
            return gain.reshape(beliefs.shape[:2])
        pull = better
    raise RuntimeError(f"policy iteration did not settle in {_MAX_ROUNDS} rounds")


def whittle_bisection(
    active: FloatArray,
    passive: FloatArray,
    rewards: FloatArray,
    max_elapsed: int,
    discount: float,
    tolerance: float = 1e-9,
) -> FloatArray:
    """Return the index [S, L]: for each (s, n) the subsidy where the advantage changes its sign.

    For an arm that is not indexable this is one of several sign changes; see `active_intervals`.
    The tolerance is absolute, and relative for an index beyond one.
    """
    memo: dict[float, FloatArray] = {}

    def advantage_at(subsidy: float) -> FloatArray:
        if subsidy not in memo:
            memo[subsidy] = advantage(active, passive, rewards, subsidy, max_elapsed, discount)
        return memo[subsidy]

    # No pull earns more than the largest reward, so above it resting is best everywhere. Nothing
    # as simple bounds the index from below: a pull can lead to a bad state that is hard to leave.
    width = 1.0 + float(np.ptp(rewards))
    top = float(np.max(rewards)) + width
    bottom = float(np.min(rewards)) - width
    while np.any(advantage_at(bottom) < 0.0):
        width *= 2.0
        bottom -= width
        if width > 1e6:
            raise RuntimeError(f"some (s, n) still rests at subsidy {bottom}: index -inf?")

    index = np.zeros((len(active), max_elapsed))
    for s in range(len(active)):
        for n in range(max_elapsed):
            low, high = bottom, top
            while high - low > tolerance * max(1.0, abs(low)):
                middle = 0.5 * (low + high)
                if advantage_at(middle)[s, n] >= 0.0:
                    low = middle
                else:
                    high = middle
            index[s, n] = 0.5 * (low + high)
    return index


def active_intervals(
    active: FloatArray,
    passive: FloatArray,
    rewards: FloatArray,
    max_elapsed: int,
    discount: float,
    subsidies: FloatArray,
) -> BoolArray:
    """Return [len(subsidies), S, L]: whether pulling is optimal (advantage >= 0) at each subsidy.

    With increasing subsidies, False followed by True in some (s, n) shows a non-indexable arm.
    """
    return np.array(
        [
            advantage(active, passive, rewards, float(subsidy), max_elapsed, discount) >= 0.0
            for subsidy in subsidies
        ]
    )


def _chains(beliefs: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the active and passive transition matrices [S*L, S*L]; (s, n) is row s*L + n-1."""
    num_states, num_ages, _ = beliefs.shape
    move_active = np.zeros((num_states * num_ages, num_states * num_ages))
    move_passive = np.zeros_like(move_active)
    for s in range(num_states):
        for n in range(num_ages):
            here = s * num_ages + n
            move_passive[here, s * num_ages + min(n + 1, num_ages - 1)] = 1.0
            for seen in range(num_states):
                move_active[here, seen * num_ages] = beliefs[s, n, seen]
    return move_active, move_passive


def _relative_values(move: FloatArray, earn: FloatArray, discount: float) -> FloatArray:
    """Return v = earn + discount P v up to a constant, accurately even for a discount near one.

    Where the policy rests for ever it earns zero, so v = 0 there and there is no constant to find.
    Otherwise v may grow like 1 / (1 - discount), but v = h + g / (1 - discount) with h[0] = 0 and
    h + g = earn + discount P h, and these h and g stay bounded.
    """
    system = np.eye(len(move)) - discount * move
    rests_for_ever = np.diag(move) * (earn == 0.0) == 1.0
    if rests_for_ever.any():
        # (1 - discount) v = 0, divided by a factor that would ruin the pivots.
        system[rests_for_ever] = np.eye(len(move))[rests_for_ever]
        return np.asarray(np.linalg.solve(system, earn), dtype=np.float64)
    system[:, 0] = 1.0  # h[0] is zero, so its column is free to hold the unknown g
    relative = np.asarray(np.linalg.solve(system, earn), dtype=np.float64)
    relative[0] = 0.0
    return relative
