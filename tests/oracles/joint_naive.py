"""Whole problems by brute force: K arms, N pulls a step, states seen only when pulled.

Model. Arm k is (active, passive, rewards). At step t its hidden state is s_t. A pulled arm shows
s_t and pays rewards[s_t]; then s_{t+1} is drawn from row s_t of `active` if it was pulled and of
`passive` if not. What is known of an arm is (s, n): last seen in s, n steps ago, so that

    b(s, n) = e_s P_active P_passive^(n-1)

is the law of its hidden state now. An index policy pulls the N arms with the largest
table[s, min(n, L) - 1], where L is the table's number of ages. Values within 1e-12 of each other
(relative) are ties, and ties go to the lowest arm. A value that only approaches another one with
the age, as beliefs do, becomes a tie at a large age; where that matters pass exact ranks (integers)
as the tables.

`simulate_policy` moves every hidden state. The two exact functions work on the chain of what is
known, in which an unpulled arm of age L keeps age L:

    pulled:  earns b(s, n).r and becomes (s', 1) with probability b(s, n)[s'],
    others:  (s, n) -> (s, min(n + 1, L)).
"""

import warnings
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate, product
from math import isclose

import numpy as np
from mdptoolbox.mdp import RelativeValueIteration  # type: ignore[import-untyped]
from numpy.typing import NDArray
from scipy.sparse import SparseEfficiencyWarning, csr_array, eye_array  # type: ignore[import-untyped]
from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]
from scipy.sparse.linalg import spsolve  # type: ignore[import-untyped]

from .whittle_naive import belief_table

FloatArray = NDArray[np.float64]
Arm = tuple[FloatArray, FloatArray, FloatArray]
Start = tuple[Sequence[int], Sequence[int]]  # last states and elapsed times, one of each per arm
Joint = tuple[tuple[int, int], ...]  # one (s, n) per arm

_TIE = 1e-12
_DAMPING = 0.1
_MAX_ITERATIONS = 1_000_000


def simulate_policy(
    arms: Sequence[Arm],
    num_pulls: int,
    index_tables: Sequence[FloatArray],
    steps: int,
    seed: int,
    start: Start | None = None,
) -> FloatArray:
    """Return the realised total reward of each step [steps] of an index policy.

    Every arm starts last seen in its last state one step ago unless `start` says otherwise.
    """
    active_sums = [_cumulative(active) for active, _, _ in arms]
    passive_sums = [_cumulative(passive) for _, passive, _ in arms]
    rewards = [[float(value) for value in arm_rewards] for _, _, arm_rewards in arms]
    tables = [np.asarray(table, float).tolist() for table in index_tables]
    last_state, elapsed = _start_or_default(arms, start)

    rng = np.random.default_rng(seed)
    hidden = []
    for (active, passive, _), s, n in zip(arms, last_state, elapsed, strict=True):
        belief = belief_table(active, passive, n)[s, n - 1]
        hidden.append(_draw(_cumulative([belief])[0], rng.random()))

    earned = np.zeros(steps)
    for t, uniforms in enumerate(rng.random((steps, len(arms))).tolist()):
        values = [
            table[s][min(n, len(table[s])) - 1]
            for table, s, n in zip(tables, last_state, elapsed, strict=True)
        ]
        pulled = _largest(values, num_pulls)
        for k, uniform in enumerate(uniforms):
            state = hidden[k]
            if k in pulled:
                earned[t] += rewards[k][state]
                last_state[k], elapsed[k] = state, 1
                hidden[k] = _draw(active_sums[k][state], uniform)
            else:
                elapsed[k] += 1
                hidden[k] = _draw(passive_sums[k][state], uniform)
    return earned


def optimal_two_arms(arm0: Arm, arm1: Arm, max_elapsed: int, epsilon: float = 1e-12) -> float:
    """Return the largest average reward of two arms with one pull, ages cut at L >= 2.

    pymdptoolbox's relative value iteration over (s0, n0, s1, n1). Exactly one arm has age 1 after
    the first step, so only such states are built: 2 S0 S1 (L - 1). The iteration needs an
    aperiodic chain: with P' = tau I + (1 - tau) P the bias stays, rewards and gain shrink by
    1 - tau. The result is at most `epsilon` / (1 - tau) below the truth, and not above it.
    """
    if max_elapsed < 2:
        raise ValueError(f"max_elapsed is {max_elapsed}, expected at least 2")
    arms = (arm0, arm1)
    beliefs = [belief_table(active, passive, max_elapsed) for active, passive, _ in arms]
    joints: list[Joint] = [
        ((s0, n0), (s1, n1))
        for s0, s1 in product(range(len(arm0[0])), range(len(arm1[0])))
        for n0, n1 in product(range(1, max_elapsed + 1), repeat=2)
        if (n0 == 1) != (n1 == 1)
    ]
    number = {joint: i for i, joint in enumerate(joints)}

    moves = []
    earn = np.zeros((len(joints), 2))
    for action in (0, 1):
        rows, columns, weights = [], [], []
        for i, joint in enumerate(joints):
            earn[i, action] = (1.0 - _DAMPING) * _expected_reward(arms, beliefs, joint, {action})
            rows.append(i)
            columns.append(i)
            weights.append(_DAMPING)
            for after, probability in _successors(beliefs, joint, {action}, max_elapsed):
                rows.append(i)
                columns.append(number[after])
                weights.append((1.0 - _DAMPING) * probability)
        moves.append(csr_array((weights, (rows, columns)), shape=(len(joints), len(joints))))

    with warnings.catch_warnings():
        # Its check that no probability is negative is slow for sparse matrices; theirs to mend.
        warnings.simplefilter("ignore", SparseEfficiencyWarning)
        solver = RelativeValueIteration(moves, earn, epsilon=epsilon, max_iter=_MAX_ITERATIONS)
    solver.run()
    if solver.iter == _MAX_ITERATIONS:
        raise RuntimeError(f"no convergence to {epsilon} in {_MAX_ITERATIONS} iterations")
    return float(solver.average_reward) / (1.0 - _DAMPING)


def average_reward_enumerated(
    arms: Sequence[Arm],
    num_pulls: int,
    index_tables: Sequence[FloatArray],
    max_elapsed: int,
    start: Start | None = None,
) -> float:
    """Return the exact average reward of an index policy from `start`, ages cut at L.

    Enumerates the joint (s, n) that can be reached, solves pi P = pi in each closed class and
    weighs the classes by the probability of ending up there: the average may depend on the start.
    Sparse direct solves, good for some 10,000 states.
    """
    beliefs = [belief_table(active, passive, max_elapsed) for active, passive, _ in arms]
    last_state, elapsed = _start_or_default(arms, start)
    first = tuple((s, min(n, max_elapsed)) for s, n in zip(last_state, elapsed, strict=True))

    number: dict[Joint, int] = {first: 0}
    queue = [first]
    earn: list[float] = []
    entries: list[tuple[int, int, float]] = []
    for i, joint in enumerate(queue):  # the queue grows while it is read
        values = [
            float(table[s, min(n, np.shape(table)[1]) - 1])
            for table, (s, n) in zip(index_tables, joint, strict=True)
        ]
        pulled = _largest(values, num_pulls)
        earn.append(_expected_reward(arms, beliefs, joint, pulled))
        for after, probability in _successors(beliefs, joint, pulled, max_elapsed):
            if after not in number:
                number[after] = len(queue)
                queue.append(after)
            entries.append((i, number[after], probability))

    rows, columns, weights = zip(*entries, strict=True)
    move = csr_array((weights, (rows, columns)), shape=(len(queue), len(queue)))
    return _gain_from_first(move, np.array(earn))


def _gain_from_first(move: csr_array, earn: FloatArray) -> float:
    """Return the long-run average of `earn` from state 0 of a chain with any number of classes."""
    num_classes, label = connected_components(move, directed=True, connection="strong")
    average = np.zeros(len(earn))
    settled = np.zeros(len(earn), dtype=bool)
    for c in range(num_classes):
        inside = np.flatnonzero(label == c)
        # A class that can be left has no entries of its own in the stationary law.
        if not (label[move[inside].indices] == c).all():
            continue
        settled[inside] = True
        average[inside] = _stationary(move[inside][:, inside]) @ earn[inside]
    if not settled[0]:
        # On transient states the average solves a = P a with a known on the closed classes.
        transient = np.flatnonzero(~settled)
        within = move[transient][:, transient]
        average[transient] = _solve(eye_array(len(transient)) - within, move[transient] @ average)
    return float(average[0])


def _stationary(move: csr_array) -> FloatArray:
    """Return pi with pi P = pi and sum 1, for an irreducible P.

    One of the balance equations follows from the others, so fix pi[0] = 1, solve for the rest and
    scale. (Setting the sum instead would add a dense row to a sparse system.)
    """
    balance = (eye_array(move.shape[0]) - move.T).tocsc()
    rest = _solve(balance[1:, 1:], -balance[1:, [0]].toarray().ravel())
    pi: FloatArray = np.concatenate([[1.0], rest])
    scaled: FloatArray = pi / pi.sum()
    return scaled


def _solve(system: csr_array, right: FloatArray) -> FloatArray:
    if len(right) == 0:
        return right
    return np.asarray(spsolve(system.tocsc(), right), dtype=np.float64)


def _expected_reward(
    arms: Sequence[Arm], beliefs: Sequence[FloatArray], joint: Joint, pulled: set[int]
) -> float:
    return sum(
        float(beliefs[k][joint[k][0], joint[k][1] - 1] @ np.asarray(arms[k][2], float))
        for k in pulled
    )


def _successors(
    beliefs: Sequence[FloatArray], joint: Joint, pulled: set[int], max_elapsed: int
) -> list[tuple[Joint, float]]:
    """Return every joint state that can follow, with its probability."""
    outcomes: list[list[tuple[tuple[int, int], float]]] = []
    for k, (s, n) in enumerate(joint):
        if k in pulled:
            belief = beliefs[k][s, n - 1].tolist()
            outcomes.append([((seen, 1), p) for seen, p in enumerate(belief) if p > 0.0])
        else:
            outcomes.append([((s, min(n + 1, max_elapsed)), 1.0)])
    result = []
    for combination in product(*outcomes):
        probability = 1.0
        for _, p in combination:
            probability *= p
        result.append((tuple(known for known, _ in combination), probability))
    return result


def _largest(values: Sequence[float], count: int) -> set[int]:
    """Return the arms of the `count` largest values; nearly equal values go to the lowest arm."""
    left = list(range(len(values)))
    chosen = set()
    for _ in range(count):
        best = max([values[k] for k in left])
        lowest = next(k for k in left if isclose(values[k], best, rel_tol=_TIE, abs_tol=0.0))
        chosen.add(lowest)
        left.remove(lowest)
    return chosen


def _start_or_default(arms: Sequence[Arm], start: Start | None) -> tuple[list[int], list[int]]:
    if start is None:
        return [len(rewards) - 1 for _, _, rewards in arms], [1] * len(arms)
    return list(start[0]), list(start[1])


def _cumulative(matrix: FloatArray | Sequence[FloatArray]) -> list[list[float]]:
    """Return the cumulative sums of each row without the last, which rounding may leave below 1."""
    return [list(accumulate(np.asarray(row, float).tolist()))[:-1] for row in matrix]


def _draw(cumulative: list[float], uniform: float) -> int:
    return bisect_right(cumulative, uniform)
