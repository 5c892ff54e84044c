"""A bandit that can be pulled, and the names of its luck.

Luck is a function of (seed, replication, time, arm), so whoever acts in a world, the same pull at
the same time sees the same draw. Only what is seen is drawn: arms that are not pulled pay what is
expected of them, given what was last seen. On request the states of all arms are simulated.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from restive.arguments import checked_count, counted, drawn_seed
from restive.errors import ProblemError
from restive.kernels.loop.world import (
    OF_ARMS,
    HiddenArms,
    WorldTables,
    draw_first,
    paid_by_others,
    pay_and_move,
    pull_arms,
    see_others,
)
from restive.kernels.random import HIDDEN, WORLD, stream
from restive.plan.actors import no_changes
from restive.problem.bandit import Kinds, RestlessBandit, kinds_of, starts_of
from restive.problem.beliefs import (
    BeliefState,
    belief_tables,
    beliefs_in,
    settled_lengths,
    start_or_initial,
    thresholds,
)

__all__ = ["World"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


class World:
    """A bandit that can be pulled: what is seen, and nothing else.

    Parameters
    ----------
    bandit
        The true arms.
    start
        When and in which state each arm was last seen before the first step; by default in its
        last (good) state one step ago.
    seed, replication
        Name the world's luck. With None a seed is drawn; `world.seed` shows it.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    hidden
        Simulate the states of all arms, with luck of their own, and pay what they pay. By default
        arms that are not pulled pay the reward that is expected given what was last seen of them.
    hold_slow
        Hold the beliefs of arms that mix too slowly at their value of age 10,000, instead of
        refusing them.

    Examples
    --------
    >>> import restive as rs
    >>> arms = [rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.2, 0.5)]
    >>> bandit = rs.RestlessBandit(arms, num_pulls=1)
    >>> states, reward, expected = rs.World(bandit, seed=1).pull([0])
    >>> states, reward, expected
    (array([1]), 1.0, 0.7)
    """

    def __init__(
        self,
        bandit: RestlessBandit,
        *,
        start: BeliefState | None = None,
        seed: int | None = 0,
        replication: int = 0,
        max_elapsed: int | None = None,
        hidden: bool = False,
        hold_slow: bool = False,
    ) -> None:
        if not isinstance(bandit, RestlessBandit):
            raise ProblemError(f"a world needs a RestlessBandit, got {bandit!r:.60}")
        self._replication = checked_count(replication, "replication", 0)
        self._start = start_or_initial(start, bandit)
        self._start.require_fits(bandit)
        self.bandit = bandit
        kinds = kinds_of(bandit)
        lengths = settled_lengths(kinds, max_elapsed, hold_slow=hold_slow)
        tables = belief_tables(kinds.arms, lengths)
        self._hidden = _hidden_arms(kinds) if hidden else None
        self._tables = WorldTables(
            tables,
            **{name: getattr(tables, name)[kinds.of] for name in OF_ARMS},
            always=tables.always[kinds.of] if len(tables.always) else tables.always,
            hidden=np.empty(0, dtype=np.int64) if self._hidden is None else self._hidden.states,
            changes=no_changes(),
        )
        self.reset(seed)

    def reset(self, seed: int | None = None, *, start: BeliefState | None = None) -> None:
        """Begin anew, which is much quicker than a new world.

        Parameters
        ----------
        seed
            Names the luck; with None a seed is drawn.
        start
            As for the world; by default the start that it has.
        """
        start = start_or_initial(self._start if start is None else start, self.bandit)
        start.require_fits(self.bandit)
        self.seed = drawn_seed(seed)
        self.time = 1
        name = WORLD if self._hidden is None else HIDDEN
        self._key = stream(self.seed, self._replication, name)
        self._last_state = start.last_state.copy()
        self._seen = 1 - start.elapsed
        if self._hidden is not None:
            draw_first(self._hidden, self._tables, self._last_state, self._seen, self._key)

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return BeliefState(self._last_state, self.time - self._seen)

    @property
    def beliefs(self) -> FloatArray:
        """The law [K, S] of each arm's state now; zeros fill up arms of fewer states."""
        tables, kinds = self._tables.tables, kinds_of(self.bandit).of
        return beliefs_in(tables, kinds, self._last_state, self.time - self._seen)

    def __repr__(self) -> str:
        bandit = self.bandit
        return (
            f"World({counted(bandit.num_arms, 'arm')}, {counted(bandit.num_pulls, 'pull')}, "
            f"time {self.time:,}, "
            f"seed {self.seed})"
        )

    @property
    def hidden_states(self) -> IntArray:
        """The states [K] that the arms are in now; none if they are not simulated."""
        return self._tables.hidden.copy()

    def pull(self, arms: IntArray) -> tuple[IntArray, float, float]:
        """Pull arms: their states, the reward earned and the reward that was to be expected.

        Rewards are those of all arms, if others than the pulled ones pay. Where arms are always
        seen, the states are those of all arms that are shown, in ascending order: of these arms in
        the next step, and of other arms that are pulled, as they were pulled.
        """
        arms = self._checked(arms)
        states = np.empty(len(arms), dtype=np.int64)
        earned, expected = pull_arms(
            self._tables, self.time, self._last_state, self._seen, self._key, arms, states
        )
        others, shown = 0.0, 0.0
        if len(self._tables.always):
            shown = see_others(self._tables, self.time, self._last_state, self._seen, self._key)
            expected += shown
            states = self._last_state[self._seen == self.time]
        if len(self._tables.tables.passive_means):
            others = paid_by_others(self._tables, self._last_state, self._seen, self.time)
            expected += others
        if self._hidden is not None:
            others = pay_and_move(
                self._hidden, self._tables, self._last_state, self._seen, self.time, self._key
            )
        self.time += 1
        return states, earned + shown + others, expected

    def _checked(self, arms: IntArray) -> IntArray:
        pulled = np.asarray(arms)
        if pulled.ndim != 1 or not np.issubdtype(pulled.dtype, np.integer):
            raise ProblemError(f"arms to pull must be a list of whole numbers, got {arms!r:.60}")
        if len(pulled) and not 0 <= pulled.min() <= pulled.max() < self.bandit.num_arms:
            raise ProblemError(
                f"the arms are 0 to {self.bandit.num_arms - 1}, {pulled.tolist()!s:.60} were pulled"
            )
        if len(np.unique(pulled)) != len(pulled):
            raise ProblemError(f"an arm was pulled twice: {pulled.tolist()!s:.60}")
        return pulled.astype(np.int64)


def _hidden_arms(kinds: Kinds) -> HiddenArms:
    """Room for the states of arms of these kinds, and how they move."""
    moves = [thresholds(np.stack([arm.active, arm.passive])).ravel() for arm in kinds.arms]
    return HiddenArms(
        states=np.zeros(len(kinds.of), dtype=np.int64),
        moves=np.concatenate(moves),
        move_offsets=starts_of([len(rows) for rows in moves])[kinds.of],
        passive_rewards=np.concatenate([arm.passive_rewards for arm in kinds.arms]),
    )
