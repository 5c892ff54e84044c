"""Futures of arms of which some are seen in every tick.

For each future one chain of each arm is drawn from what is known now, results of the open tick
taken in. The chains move, all that they show is seen and learned from, and lists are made of it:
learning is part of a future, and what one tick tells of the next is, too. Who is not known to be
anywhere (`Memory.lost`) is on no list in any future.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import numpy as np
from numpy.typing import NDArray

from restive.learn.agent import Agent
from restive.learn.snapshots import learned_data, load_snapshot
from restive.live.memory import Memory
from restive.live.told.learned import posterior
from restive.problem.beliefs import beliefs_at

__all__ = ["Futures"]

FloatArray = NDArray[np.float64]


class Futures:
    """What may happen to the arms of a file, one future at a time."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.snapshot = learned_data(memory.agent)
        self.task = load_snapshot(self.snapshot, None, memory.agent.prior).task
        self.known = [posterior(memory, slot) for slot in range(memory.num_joined)]
        # arms of which one tells of another are drawn together
        self.group = [memory.roster.informing(slot)[0] for slot in range(memory.num_joined)]

    def path(self, ticks: int, rng: np.random.Generator) -> FloatArray:
        """Return what pulls earn in each of the ticks after the open one, in one future."""
        memory, rewards = copy(self.memory), self.task.facts.rewards
        agent = load_snapshot(self.snapshot, None, task=self.task)
        lots = rng.random(len(self.group))
        drawn = [
            _place(known.weights, lots[group])
            for known, group in zip(self.known, self.group, strict=True)
        ]
        if memory.open is not None:
            memory.lost = self._close(agent, drawn, rng)
        lost, always = memory.lost, set(agent.task.always_seen.tolist())
        earned = np.zeros(ticks)
        for i in range(ticks):
            free = agent.task.num_arms - len(lost.union(memory.gone))
            wanted = min(memory.settings.num_pulls, free)
            chosen, _ = memory.picked(agent, memory.tick + 1 + i, wanted, [])
            shown = sorted(always.union(chosen) - lost)
            states = self._moved(agent, drawn, shown, set(chosen), rng)
            now = dict(zip(shown, agent.last_states(shown).tolist(), strict=True))
            paid = now | {k: s for k, s in states.items() if k not in always}
            earned[i] = sum(rewards[k][paid[k]] for k in chosen)
            agent.observe(list(states.values()), shown, missing="not pulled", lost=sorted(lost))
        return earned

    def _close(self, agent: Agent, drawn: list[int], rng: np.random.Generator) -> set[int]:
        """Take in the open tick, and what is still to come of it; return who is lost after it."""
        memory, now = self.memory, self.memory.open
        assert now is not None
        told, before = now.sightings, memory.lost
        pulled = sorted({*now.choice.arms, *now.instead} - before)
        agent.pull(pulled)
        results = now.results | now.shown
        gone = {arm for arm, result in results.items() if isinstance(result, str)}
        awaited = {*pulled, *now.always} - gone - before
        states = self._moved(agent, drawn, sorted(awaited), set(pulled), rng)
        states |= {arm: state for arm, state in told.items() if arm in awaited}
        always = set(agent.task.always_seen.tolist())
        away = sorted(always.difference(states))
        agent.observe(list(states.values()), list(states), missing="not pulled", lost=away)
        back = [arm for arm in told if arm in before]
        if back:
            agent.place(back, [told[arm] for arm in back])
        return set(away).difference(back)

    def _moved(
        self, agent: Agent, drawn: list[int], arms: Iterable[int], pulled: set[int],
        rng: np.random.Generator,
    ) -> dict[int, int]:  # fmt: skip
        """Draw the states in which arms are seen in this step, by their chains."""
        always, states = set(agent.task.always_seen.tolist()), {}
        for k in arms:
            chains, m = self.known[k], drawn[k]
            last, time = agent.last_seen(k)
            if k in always:
                law = (chains.active if k in pulled else chains.passive)[m, last]
            else:
                at, age = np.array([last]), np.array([agent.time - time])
                law = beliefs_at(chains.active[m : m + 1], chains.passive[m : m + 1], at, age)[0, 0]
            states[k] = _place(law, rng.random())
        return states


def _place(law: FloatArray, lot: float) -> int:
    return min(int(np.searchsorted(np.cumsum(law), lot, side="right")), len(law) - 1)
