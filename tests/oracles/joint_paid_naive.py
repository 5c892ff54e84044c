"""Bandits whose arms all pay in every step, by brute force and without any reduction.

Model. Arm k is (active, passive, rewards, passive_rewards). At step t it is in a hidden state s_t.
If pulled it shows s_t, pays rewards[s_t] and moves by `active`; if not, it pays
passive_rewards[s_t], unseen, and moves by `passive`.

The chain that is solved has, as its states, the beliefs themselves: a vector of probabilities per
arm, as the definition has it. From beliefs (b_1, .., b_K) a step

    pays    b_k.rewards for every pulled arm and b_k.passive_rewards for every other,
    moves   b_k to row s of `active` with probability b_k[s] if pulled, to b_k passive if not.

With each arm goes where and when it was last seen, for a policy looks at that. Beliefs of arms that
have been left alone for `max_elapsed` steps are held, so that the chain is finite; the caller sees
to it that they have settled by then.
"""

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array  # type: ignore[import-untyped]
from scipy.sparse.linalg import spsolve  # type: ignore[import-untyped]

from .joint_naive import _gain_from_first
from .whittle_naive import belief_table

FloatArray = NDArray[np.float64]
Arm = tuple[FloatArray, FloatArray, FloatArray, FloatArray]
Known = tuple[int, int]  # last state and steps since
Choose = Callable[[Sequence[int], Sequence[int]], Sequence[int]]  # last states, elapsed -> arms


def average_reward(arms: Sequence[Arm], choose: Choose, max_elapsed: int) -> float:
    """Average reward per step, all arms counted, from every arm seen in its last state just now."""
    move, earn = _chain(arms, choose, max_elapsed)
    return _gain_from_first(move, earn)


def discounted_value(
    arms: Sequence[Arm], choose: Choose, max_elapsed: int, discount: float
) -> float:
    """Sum of discount^t times the reward of step t = 0, 1, ..., all arms counted."""
    move, earn = _chain(arms, choose, max_elapsed)
    values = spsolve((eye_array(len(earn)) - discount * move).tocsc(), earn)
    return float(values[0])


def bias_span(arms: Sequence[Arm], choose: Choose, max_elapsed: int) -> float:
    """Span of the bias over the states that are reached, for a chain with one closed class."""
    move, earn = _chain(arms, choose, max_elapsed)
    gain = _gain_from_first(move, earn)
    # h = earn - gain + P h leaves a constant open, and the span does not depend on it
    system = np.eye(len(earn)) - move.toarray()
    solution = np.linalg.lstsq(system, earn - gain, rcond=None)[0]
    return float(np.ptp(solution))


def total_reward(arms: Sequence[Arm], choose: Choose, max_elapsed: int, steps: int) -> float:
    """Expected reward of the first steps, all arms counted."""
    move, earn = _chain(arms, choose, max_elapsed)
    law = np.zeros(len(earn))
    law[0] = 1.0
    total = 0.0
    for _ in range(steps):
        total += float(law @ earn)
        law = law @ move
    return total


def simulated(
    arms: Sequence[Arm], choose: Choose, steps: int, seed: int
) -> tuple[FloatArray, FloatArray]:
    """Move every hidden state: what pulled arms and what other arms paid in each step [steps]."""
    rng = np.random.default_rng(seed)
    last_state = [len(arm[2]) - 1 for arm in arms]
    elapsed = [1] * len(arms)
    hidden = [
        int(rng.choice(len(arm[2]), p=arm[0][s])) for arm, s in zip(arms, last_state, strict=True)
    ]
    sums = [(np.cumsum(arm[0], axis=1), np.cumsum(arm[1], axis=1)) for arm in arms]
    pulled_paid, others_paid = np.zeros(steps), np.zeros(steps)
    for t, uniforms in enumerate(rng.random((steps, len(arms)))):
        pulled = set(choose(last_state, elapsed))
        for k, (_, _, rewards, passive_rewards) in enumerate(arms):
            state = hidden[k]
            if k in pulled:
                pulled_paid[t] += rewards[state]
                last_state[k], elapsed[k] = state, 1
            else:
                others_paid[t] += passive_rewards[state]
                elapsed[k] += 1
            row = sums[k][0 if k in pulled else 1][state]
            hidden[k] = min(int(np.searchsorted(row, uniforms[k], side="right")), len(row) - 1)
    return pulled_paid, others_paid


def _chain(arms: Sequence[Arm], choose: Choose, max_elapsed: int) -> tuple[csr_array, FloatArray]:
    """Return moves and expected rewards of all states that the first one leads to."""
    first = tuple((len(rewards) - 1, 1) for _, _, rewards, _ in arms)
    beliefs = [np.asarray(active)[-1] for active, _, _, _ in arms]
    number = {first: 0}
    queue = [(first, beliefs)]
    earn: list[float] = []
    entries: list[tuple[int, int, float]] = []
    for i, (known, laws) in enumerate(queue):  # the queue grows while it is read
        pulled = set(choose([s for s, _ in known], [n for _, n in known]))
        paid = 0.0
        outcomes: list[list[tuple[Known, FloatArray, float]]] = []
        for k, (active, passive, rewards, passive_rewards) in enumerate(arms):
            s, n = known[k]
            if k in pulled:
                paid += float(laws[k] @ rewards)
                outcomes.append(
                    [((j, 1), np.asarray(active)[j], p) for j, p in enumerate(laws[k]) if p > 0]
                )
            else:
                paid += float(laws[k] @ passive_rewards)
                held = n == max_elapsed
                after = laws[k] if held else laws[k] @ passive
                outcomes.append([((s, n if held else n + 1), after, 1.0)])
        earn.append(paid)
        for combination in product(*outcomes):
            after_known = tuple(item[0] for item in combination)
            if after_known not in number:
                number[after_known] = len(queue)
                queue.append((after_known, [item[1] for item in combination]))
            chance = float(np.prod([item[2] for item in combination]))
            entries.append((i, number[after_known], chance))
    rows, columns, weights = zip(*entries, strict=True)
    move = csr_array((weights, (rows, columns)), shape=(len(queue), len(queue)))
    return move, np.array(earn)


def pull_advantage(
    arm: Arm, subsidy: float, discount: float, max_elapsed: int, sweeps: int = 4000
) -> FloatArray:
    """Advantage [S, L] of pulling one arm that pays in every step, at a subsidy for not pulling.

    Value iteration on (s, n), n = 1..L: not pulled it pays b(s, n).passive_rewards + subsidy and
    ages, pulled it pays b(s, n).rewards and is seen in s' with probability b(s, n)[s'].
    """
    active, passive, rewards, passive_rewards = arm
    beliefs = belief_table(active, passive, max_elapsed)
    values = np.zeros(beliefs.shape[:2])
    advantage = np.zeros_like(values)
    for _ in range(sweeps):
        older = np.concatenate([values[:, 1:], values[:, -1:]], axis=1)
        pull = beliefs @ rewards + discount * (beliefs @ values[:, 0])
        rest = beliefs @ passive_rewards + subsidy + discount * older
        values, advantage = np.maximum(pull, rest), pull - rest
    return advantage
