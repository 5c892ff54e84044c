"""A compiled learner as an agent that a program can ask step by step."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.learners import Compiled, Facts, learner
from restive.agents.setup import Setup
from restive.agents.snapshots import checksum
from restive.arguments import checked_count, checked_seed
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.kernels.learners.memory import OWN, PHASES, PLANNING, Memory
from restive.kernels.learners.play import choose_step, learn_step
from restive.kernels.random import LEARNER
from restive.world import stream

__all__ = ["Player", "fresh_memory"]

IntArray = NDArray[np.int64]

SNAPSHOT_FORMAT = "restive-player-1"
ARRAYS = ("last_state", "seen", "ints", "floats")


class Player:
    """A learner that is not of TSDE's family, with `select()` and `observe(states)`.

    Made by `make_learner`; what it may know beforehand is in `facts`.
    """

    def __init__(
        self, spec: Compiled, facts: Facts, start: BeliefState, seed: int = 0, replication: int = 0
    ) -> None:
        self.spec = spec
        self.facts = facts
        self.time = 1
        self._seed, self._replication = checked_seed(seed), replication
        self._key = stream(seed, replication, LEARNER)
        self._knowledge = facts.knowledge
        self._memory = fresh_memory(spec, facts, start)
        self._selected: IntArray | None = None

    @classmethod
    def of_setup(cls, setup: Setup, seed: int, replication: int) -> Player:
        """Return the learner of one replication of a simulation."""
        assert isinstance(setup.learner, Compiled)
        return cls(setup.learner, setup.facts, setup.start, seed, replication)

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return BeliefState(self._memory.last_state, self.time - self._memory.seen)

    @property
    def num_phases(self) -> int:
        """Episodes or phases begun, however the learner calls them."""
        return int(self._memory.ints[PHASES])

    def select(self) -> IntArray:
        """Return the arms to pull now, ascending; asked again, the answer is the same."""
        if self._selected is None:
            if self._memory.ints[PLANNING]:
                self.spec.plan(self.facts, self._memory)
            self._selected = np.empty(self.facts.num_pulls, dtype=np.int64)
            choose_step(
                self.spec.number, self._knowledge, self._memory, self.time, self._key,
                self._selected,
            )  # fmt: skip
        return self._selected.copy()

    def observe(self, states: ArrayLike) -> None:
        """Tell the learner in which states the selected arms were seen, in the arms' order."""
        if self._selected is None:
            raise ProblemError("nothing was selected: call select() before observe()")
        try:
            seen = np.asarray(states)
        except ValueError:  # lists of different lengths
            raise ProblemError(f"states must be whole numbers, got {states!r:.60}") from None
        if seen.shape != self._selected.shape or not np.issubdtype(seen.dtype, np.integer):
            raise ProblemError(
                f"{len(self._selected)} arms were selected, so {len(self._selected)} whole numbers "
                f"are needed; got {states!r:.60}"
            )
        sizes = self._knowledge.sizes[self._selected]
        wrong = np.flatnonzero((seen < 0) | (seen >= sizes))
        if wrong.size:
            i = int(wrong[0])
            raise ProblemError(
                f"arm {self._selected[i]}: state {seen[i]} is none of its states 0 to "
                f"{sizes[i] - 1}"
            )
        learn_step(
            self.spec.number, self._knowledge, self._memory, self.time, self._key, self._selected,
            seen.astype(np.int64),
        )  # fmt: skip
        self.time += 1
        self._selected = None

    def snapshot(self) -> dict[str, Any]:
        """Return everything the learner knows as plain data, for `json.dumps`."""
        data = {
            "format": SNAPSHOT_FORMAT,
            "learner": self.spec.name,
            "options": asdict(self.spec),  # type: ignore[call-overload]
            "rewards": [rewards.tolist() for rewards in self.facts.rewards],
            "num_pulls": self.facts.num_pulls,
            "horizon": self.facts.horizon,
            "seed": self._seed,
            "replication": self._replication,
            "time": self.time,
            "memory": {name: getattr(self._memory, name).tolist() for name in ARRAYS},
            "selected": None if self._selected is None else self._selected.tolist(),
        }
        return data | {"checksum": checksum(data)}

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Player:
        """Return a learner that goes on exactly as the one that made the snapshot."""
        if not isinstance(snapshot, dict) or snapshot.get("format") != SNAPSHOT_FORMAT:
            raise ProblemError("not a snapshot: expected the data that Player.snapshot() returned")
        data = {key: value for key, value in snapshot.items() if key != "checksum"}
        if snapshot.get("checksum") != checksum(data):
            raise ProblemError(
                "the snapshot's checksum does not fit what it holds: it was damaged or edited"
            )
        spec = learner(data["learner"], **data["options"])
        rewards = tuple(np.array(row, dtype=np.float64) for row in data["rewards"])
        facts = Facts(rewards, data["num_pulls"], data["horizon"])
        assert isinstance(spec, Compiled)
        last_state = np.array(data["memory"]["last_state"], dtype=np.int64)
        start = BeliefState(last_state, np.ones_like(last_state))
        agent = cls(spec, facts, start, data["seed"], data["replication"])
        for name in ARRAYS:
            getattr(agent._memory, name)[:] = data["memory"][name]
        agent.time = checked_count(data["time"], "the snapshot's time")
        if data["selected"] is not None:
            agent._selected = np.array(data["selected"], dtype=np.int64)
        return agent


def fresh_memory(spec: Compiled, facts: Facts, start: BeliefState) -> Memory:
    """Return the memory of a learner that has seen nothing yet."""
    num_ints, num_floats = spec.room(facts)
    memory = Memory(
        last_state=start.last_state.copy(),
        seen=1 - start.elapsed,
        ints=np.zeros(OWN + num_ints, dtype=np.int64),
        floats=np.zeros(num_floats),
        values=np.zeros(facts.num_arms),
    )
    spec.begin(facts, memory)
    return memory
