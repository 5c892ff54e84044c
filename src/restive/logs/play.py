"""Playing a policy: on a record of what every arm did, or in worlds drawn from the model.

A record is the later part of a log in which every arm was seen in every step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from restive.logs.fitted import FittedLog
from restive.logs.log import Log
from restive.logs.sample import Sample, drawn_arms
from restive.plan.policies.base import Policy, checked_choice
from restive.plan.policies.round_robin import RoundRobinPolicy, Turns
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState, beliefs_at

__all__ = [
    "MOST_HELD",
    "Player",
    "Worlds",
    "agent_player",
    "earned",
    "full_record",
    "logged_pulls",
    "play_record",
    "play_worlds",
    "play_worlds_one_by_one",
    "policy_player",
    "sightings_by_step",
]

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

MOST_HELD = 50_000_000  # states of arms and steps, or of arms and worlds, held at once


class Player(Protocol):
    """Chooses arms and is shown their states; one for each run."""

    def select(self) -> IntArray:
        """Return the arms to pull."""

    def observe(self, states: IntArray) -> None:
        """Take in the states of the arms selected."""


class _PolicyPlayer:
    def __init__(self, policy: Policy, bandit: RestlessBandit, start: BeliefState) -> None:
        self.policy, self.bandit, self.state = policy, bandit, start
        self.arms = np.zeros(0, dtype=np.int64)
        self.always = all(arm.always_seen for arm in bandit.arms)

    def select(self) -> IntArray:
        self.arms = checked_choice(self.policy, self.bandit, self.state)
        return self.arms

    def observe(self, states: IntArray) -> None:
        if len(states) == self.bandit.num_arms and self.always:
            self.state = BeliefState(states, np.ones_like(states))
        else:
            self.state = self.state.updated(self.arms, states)


def policy_player(policy: Policy, bandit: RestlessBandit, start: BeliefState) -> Player:
    """Return a player that follows a policy from a start on."""
    if isinstance(policy, RoundRobinPolicy) and policy.must_count:
        return Turns(bandit)
    return _PolicyPlayer(policy, bandit, start)


def agent_player(agent: Any) -> Player:
    """Return a player that asks an online agent."""

    class _AgentPlayer:
        def select(self) -> IntArray:
            return np.asarray(agent.select(), dtype=np.int64)

        def observe(self, states: IntArray) -> None:
            agent.observe(states)

    return _AgentPlayer()


def earned(
    states: IntArray, arms: IntArray, rewards: FloatArray, passive_rewards: FloatArray | None
) -> FloatArray:
    """Reward [R] of a step in which arms [R, N] are pulled while all are in states [R, K]."""
    total = rewards[np.take_along_axis(states, arms, axis=1)].sum(axis=1)
    if passive_rewards is not None:
        unpulled = passive_rewards[states]
        total += unpulled.sum(axis=1) - np.take_along_axis(unpulled, arms, axis=1).sum(axis=1)
    return np.asarray(total)


def play_record(
    record: IntArray,
    player: Player,
    rewards: FloatArray,
    passive_rewards: FloatArray | None = None,
) -> float:
    """Total reward of a player on a record [T, K] of all arms' states."""
    total = 0.0
    for states in record:
        arms = player.select()
        total += float(earned(states[None], arms[None], rewards, passive_rewards)[0])
        player.observe(states[arms])
    return total


def play_worlds(
    worlds: Worlds, policy: Any, start: BeliefState, num_steps: int,
    progress: Callable[[float], None] = lambda share: None,
) -> FloatArray:  # fmt: skip
    """Total reward [R] of a policy that has `select_many`, in all worlds at once."""
    last_state = np.tile(start.last_state, (worlds.count, 1))
    elapsed = np.tile(start.elapsed, (worlds.count, 1))
    totals = np.zeros(worlds.count)
    rows = np.arange(worlds.count)[:, None]
    counts = isinstance(policy, RoundRobinPolicy) and policy.must_count
    turns = Turns(policy.bandit) if counts else None
    for step, states in enumerate(worlds.run(num_steps)):
        if worlds.always:
            last_state, elapsed = states.copy(), np.ones_like(states)
        if turns is None:
            arms = policy.select_many(last_state, elapsed)
        else:
            arms = np.tile(turns.select(), (worlds.count, 1))
            turns.observe(states)
        seen = states[rows, arms]
        totals += earned(states, arms, worlds.rewards, worlds.passive_rewards)
        elapsed += 1
        last_state[rows, arms], elapsed[rows, arms] = seen, 1
        worlds.pull(arms)
        progress((step + 1) / num_steps)
    return totals


def play_worlds_one_by_one(
    worlds: Worlds, make: Callable[..., Player], num_steps: int,
    progress: Callable[[float], None] = lambda share: None,
) -> FloatArray:  # fmt: skip
    """Total reward [R] of players that act in one world each.

    `make` gets the player's number and, where arms are always seen, their states now.
    """
    players = [] if worlds.always else [make(r) for r in range(worlds.count)]
    totals = np.zeros(worlds.count)
    for step, states in enumerate(worlds.run(num_steps)):
        if worlds.always and not step:
            players = [make(r, now) for r, now in enumerate(states)]
        elif worlds.always:
            for player, now in zip(players, states, strict=True):
                player.observe(now)
        chosen = np.array([player.select() for player in players])
        totals += earned(states, chosen, worlds.rewards, worlds.passive_rewards)
        for r, player in enumerate(() if worlds.always else players):
            player.observe(states[r, chosen[r]])
        worlds.pull(chosen)
        progress((step + 1) / num_steps)
    return totals


class Worlds:
    """Systems drawn from the posterior of a fitted log, which go on where the log was left.

    Luck is a function of (seed, step), so that every policy plays in the same worlds.

    Parameters
    ----------
    fitted
        The log, fitted up to the step at which the worlds begin.
    count
        How many, R.
    seed
        Names their luck.
    """

    def __init__(self, fitted: FittedLog, count: int, seed: int) -> None:
        arms = np.arange(fitted.log.num_arms)
        none = np.zeros(0, dtype=np.int64)
        everyone = Sample(fitted.log, arms, none, none, none, none.astype(np.bool_))
        self.count, self.seed = count, seed
        self.rewards, self.passive_rewards = fitted.rewards, fitted.passive_rewards
        rng = np.random.default_rng([seed, 2])
        self.active, self.passive = drawn_arms(fitted, everyone, count, rng)
        self.start = fitted.start
        self.always = fitted.seen == "always"  # policies see all states before they choose
        self._unpulled = np.zeros(len(arms), dtype=np.bool_)  # at the start
        if fitted.counts.last_row is not None:
            self._unpulled = fitted.counts.last_row >= fitted.log.num_states
        self._states: IntArray = np.zeros((count, len(arms)), dtype=np.int64)
        self._pulled: NDArray[np.bool_] = np.zeros((count, len(arms)), dtype=np.bool_)

    def run(self, num_steps: int) -> Iterator[IntArray]:
        """Yield all states [R, K] step by step; `pull` says in between which arms were pulled.

        Run again, the worlds begin again with the same luck.
        """
        law = self._law_at_start()
        for step in range(num_steps):
            uniform = np.random.default_rng([self.seed, 3, step]).random(self._states.shape)
            below = np.cumsum(law, axis=2)[:, :, :-1]
            self._states = (uniform[:, :, None] >= below).sum(axis=2)
            self._pulled[:] = False
            yield self._states
            rows = np.arange(self.count)[:, None], np.arange(self._states.shape[1])[None, :]
            law = np.where(
                self._pulled[:, :, None],
                self.active[(*rows, self._states)],
                self.passive[(*rows, self._states)],
            )

    def pull(self, arms: IntArray) -> None:
        """Note the arms [R, N] that are pulled in this step."""
        np.put_along_axis(self._pulled, arms, True, axis=1)

    def _law_at_start(self) -> FloatArray:
        """Laws [R, K, S] of the arms' states in the first step: b(s, n)."""
        law = np.empty(self.active.shape[:3])
        seen = np.stack([self.start.last_state, self.start.elapsed, self._unpulled])
        for state, age, unpulled in np.unique(seen, axis=1).T:
            own = np.flatnonzero(np.asarray((state, age, unpulled) == seen.T).all(axis=1))
            passive = self.passive[:, own]
            active = passive if unpulled else self.active[:, own]
            shape = (-1, *active.shape[2:])
            laws = beliefs_at(
                active.reshape(shape), passive.reshape(shape), np.array([state]), np.array([age])
            )
            law[:, own] = laws.reshape(active.shape[:3])
        return law


def logged_pulls(
    log: Log, split: int, rewards: FloatArray, unpulled: FloatArray | None = None
) -> tuple[float, float]:
    """What the logged pulls earned per step from `split` on, and how many there were.

    With `unpulled`, what arms pay while they are not pulled, also what those earned.
    """
    total, pulls = 0.0, 0
    for block in log.blocks():
        mine = block.pulled & (block.steps >= split)
        total += float(rewards[block.states[mine]].sum())
        pulls += int(mine.sum())
        if unpulled is not None:
            others = ~block.pulled & (block.steps >= split)
            total += float(unpulled[block.states[others]].sum())
    num_steps = log.num_steps - split
    return total / num_steps, pulls / num_steps


def full_record(log: Log, split: int) -> IntArray | None:
    """States [T, K] from `split` on, if every arm was seen in every one of these steps."""
    num_steps = log.num_steps - split
    if log.num_sightings < num_steps * log.num_arms or num_steps * log.num_arms > MOST_HELD:
        return None
    record = np.full((num_steps, log.num_arms), -1, dtype=np.int64)
    for block in log.blocks():
        mine = block.steps >= split
        record[block.steps[mine] - split, block.arms[mine]] = block.states[mine]
    return None if (record < 0).any() else record


def sightings_by_step(log: Log, split: int) -> list[tuple[IntArray, IntArray, NDArray[np.bool_]]]:
    """Arms, states and pulls of each step from `split` on."""
    parts = [
        (block.steps[mine], block.arms[mine], block.states[mine], block.pulled[mine])
        for block in log.blocks()
        for mine in [block.steps >= split]
    ]
    steps, arms, states, pulled = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((arms, steps))
    edges = np.searchsorted(steps[order], np.arange(split, log.num_steps + 1))
    return [
        (arms[own], states[own], pulled[own])
        for begin, end in pairwise(edges)
        for own in [order[begin:end]]
    ]
