"""The long run under a choice of arms, solved on the joint chain.

Whoever chooses is a function of meta-states here, so that policies can be compared where policies
are made (`policies.best_index`) as well as where they are judged (`evaluate`). Rewards are those of
pulls alone; see `reduction` for arms that also pay while not pulled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from math import ceil, log
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from restive.arguments import bytes_in_words, counted, require_memory
from restive.errors import TooLargeError
from restive.plan.joint_chain import (
    ROUNDING,
    JointStates,
    Outcomes,
    absorbed_values,
    closed_components,
    gain_and_bias,
    joined,
)
from restive.problem.beliefs import BeliefState

__all__ = [
    "Chooser",
    "SolvedRun",
    "explore",
    "explore_other_starts",
    "lowest_reward",
    "solve_long_run",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
# last states and elapsed steps [M, K] of M meta-states -> arms to pull [M, N], ascending
Chooser: TypeAlias = Callable[[IntArray, IntArray], IntArray]

MAX_STATES = 200_000
MOST_STARTS = 4096  # starts tried when looking whether J depends on the start
ROWS_AT_ONCE = 1 << 20  # outcomes of a block of states that are followed at once
CELLS_AT_ONCE = 1 << 24  # these times arms

DAMPING = 0.9  # below 1, so that periodic chains converge too
GAP = 1e-11
MOST_SWEEPS = 200_000
EQUAL = 1e-8  # gains closer than this are one


@dataclass(frozen=True, eq=False)
class SolvedRun:
    """The long run on a joint chain.

    `average_reward` is that from the first state, `lowest` and `highest` those of the closed
    classes that any state leads to; `depends_on_start` tells whether these differ. `bias` is there
    for the states that the first one leads to, None where rewards differ or where it is too slow to
    be solved. `all_starts` tells whether starts of every kind were followed, or the first alone.
    """

    average_reward: float
    lowest: float
    highest: float
    depends_on_start: bool
    bias: FloatArray | None  # [states reached]
    num_states: int  # that the first one leads to
    all_starts: bool


def solve_long_run(
    joint: JointStates, start: BeliefState, choose: Chooser, max_states: int
) -> SolvedRun:
    """Follow a choice of arms from a start, on an empty joint chain, and solve for the long run.

    Raises a `TooLargeError` beyond `max_states` or where the chain mixes too slowly.
    """
    chain, reachable, all_starts = _followed(joint, start, choose, max_states)
    unit = joint.unit
    component, gains, bias = _solved_classes(chain, unit)
    classes = gains[component >= 0]
    low, high = float(classes.min()), float(classes.max())
    settled = _absorb(gains, component, chain, np.zeros(len(gains)), unit)
    if component.max() > 0 and not settled:
        raise TooLargeError("the joint chain leaves its transient states too slowly to be solved")
    depends = high - low > EQUAL * unit
    if not depends:  # whichever class is reached
        gains[component < 0] = classes[0]
    solved = not depends and _absorb(bias, component, chain, chain.reward - gains, unit)
    return SolvedRun(
        average_reward=float(gains[0]),
        lowest=low,
        highest=high,
        depends_on_start=depends,
        bias=bias[:reachable] if solved else None,
        num_states=reachable,
        all_starts=all_starts,
    )


def lowest_reward(
    joint: JointStates, start: BeliefState, choose: Chooser, max_states: int
) -> float:
    """Return `solve_long_run(...).lowest`, without the work for transient states."""
    chain, _, _ = _followed(joint, start, choose, max_states)
    component, gains, _ = _solved_classes(chain, joint.unit)
    return float(gains[component >= 0].min())


def _followed(
    joint: JointStates, start: BeliefState, choose: Chooser, max_states: int
) -> tuple[Outcomes, int, bool]:
    """Chain from the start and, if it can be, from all; states that the start leads to; if all."""
    joint.number_of(start)
    blocks: list[Outcomes] = []
    explore(joint, choose, blocks, max_states)
    reachable = joint.count
    # raised limits are for what the policy reaches: a wide search for other starts adds little
    others = min(max_states, max(MAX_STATES, 2 * reachable))
    all_starts = explore_other_starts(joint, choose, blocks, others)
    if not all_starts:
        joint.count = reachable
    return joined(blocks, joint.count), reachable, all_starts


def _solved_classes(
    chain: Outcomes, unit: float
) -> tuple[NDArray[np.int32], FloatArray, FloatArray]:
    """Closed class, gain and bias of each state; -1 and zeros for transient states."""
    component, num_closed = closed_components(chain.successor)
    gains, bias = np.zeros(len(component)), np.zeros(len(component))
    for label in range(num_closed):
        members = np.flatnonzero(component == label)
        gains[members] = _class_gain(members, chain, bias, unit)
    return component, gains, bias


def _class_gain(members: IntArray, chain: Outcomes, bias: FloatArray, unit: float) -> float:
    """Gain of a closed class; its bias is written."""
    gain, gap = gain_and_bias(members, chain, bias, DAMPING, GAP * unit, MOST_SWEEPS)
    if gap > 1e-9 * unit:
        raise TooLargeError(
            f"the joint chain mixes so slowly that {MOST_SWEEPS:,} sweeps leave J uncertain by "
            f"{gap:.2g}"
        )
    return gain


def _absorb(
    values: FloatArray,
    component: NDArray[np.int32],
    chain: Outcomes,
    earned: FloatArray,
    unit: float,
) -> bool:
    """Values of transient states, from those of the closed classes; whether they settled."""
    small = 1e-12 * unit
    return absorbed_values(values, component, chain, earned, small, MOST_SWEEPS) <= small


def explore(joint: JointStates, choose: Chooser, blocks: list[Outcomes], max_states: int) -> None:
    """Follow the choice from every numbered state that has not been followed yet.

    Raises a `TooLargeError` beyond `max_states`, or where they take more than `MAX_STATES` of a few
    arms; at once where those that a single step may lead to do.
    """
    num_arms, outcomes = joint.bandit.num_arms, joint.most_outcomes
    most = min(max_states, int(max(max_states, MAX_STATES) / joint.weight))
    if outcomes > most < max_states:
        raise TooLargeError(
            f"one step of {num_arms:,} arms can end in {outcomes:,} joint states, of "
            f"{bytes_in_words(joint.bytes_each)} and {joint.products_each:,} products each; raise "
            f"max_states to {ceil(outcomes * joint.weight):,} or more"
        )
    done = sum(len(block.reward) for block in blocks)
    at_once = max(1, min(ROWS_AT_ONCE // outcomes, CELLS_AT_ONCE // (num_arms * outcomes)))
    while done < joint.count:
        if joint.count > most:
            size = bytes_in_words(most * joint.bytes_each)
            raise TooLargeError(
                f"the policy reaches more than {most:,} joint states of "
                f"{counted(num_arms, 'arm')}, which take {size}; raise max_states"
            )
        last = min(joint.count, done + at_once)
        require_memory(
            12 * num_arms * (joint.count + at_once * outcomes),
            f"more than {joint.count:,} joint states of {num_arms:,} arms",
            "lower max_elapsed",
        )
        actions = choose(*joint.unpacked(done, last))
        blocks.append(joint.outcomes(joint.rows(done, last), actions, add=True))
        done = last


def explore_other_starts(
    joint: JointStates, choose: Chooser, blocks: list[Outcomes], max_states: int
) -> bool:
    """Follow the choice from starts of every kind: each arm just seen in any state, or long ago."""
    if np.log(joint.sizes + 1.0).sum() > log(MOST_STARTS) + ROUNDING:
        return False
    shapes = zip(joint.sizes.tolist(), joint.lengths.tolist(), joint.always.tolist(), strict=True)
    choices = [  # an arm that is always seen was not seen long ago
        [*(s * length for s in range(size)), *([] if always else [length - 1])]
        for size, length, always in shapes
    ]
    joint.add(np.array(list(product(*choices)), dtype=np.int32))
    try:
        explore(joint, choose, blocks, max_states)
    except TooLargeError:
        return False
    return True
