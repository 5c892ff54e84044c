"""TSDE as an agent that a program can run for ever (Algorithm 1 of the paper).

    agent = TSDE(grid_prior([.1, .5, .9], num_arms=8), num_pulls=3, seed=1)
    while True:
        arms = agent.select()
        agent.observe(look_at(arms))

Each step calls the compiled functions that the engine calls in its loop, so the agent and a
simulation with the same seed take the same decisions.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.learners import learner
from restive.agents.setup import Mapping, Setup, setup_learner
from restive.agents.snapshots import (
    SNAPSHOT_FORMAT,
    checksum,
    prior_from_data,
    prior_to_data,
    require_snapshot,
)
from restive.arguments import checked_count, checked_seed
from restive.belief import BeliefState
from restive.errors import ProblemError, RestiveError
from restive.kernels import online, tables
from restive.kernels.random import LEARNER
from restive.kernels.vectors import LANES
from restive.policies.base import IndexPolicy, checked_choice, top_ranked
from restive.posterior import lane_places
from restive.prior import Prior
from restive.problem import RestlessBandit
from restive.world import stream

__all__ = ["TSDE", "Episode"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REASONS = {
    tables.NONE: "none has ended",
    tables.LENGTH_RULE: "it was longer than the one before",
    tables.DOUBLING_RULE: "a counter more than doubled",
    tables.EPOCH_RULE: "an epoch began",
}
ARRAYS = ("last_state", "seen", "drawn", "sampled", "num_pending", "lost", "clock")


@dataclass(frozen=True)
class Episode:
    """Where the agent stands: the current episode and why the one before it ended."""

    number: int  # from 1; 0 before the first step
    start: int  # time of its first step
    length: int  # steps taken in it so far
    last_ended: str
    epoch: int  # of the doubling trick, from 0; always 0 with a known horizon
    mixing_time: int  # T^mix: ages from which on they share a counter


class TSDE:
    """Thompson sampling with dynamic episodes.

    Parameters
    ----------
    prior
        What the arms may be.
    num_pulls
        Arms pulled each step, N.
    policy_mapping
        What is played for a sampled system: a registered name, an index rule `Arm -> table [S, L]`,
        or a function `RestlessBandit -> Policy`. Index rules run compiled. Other mappings, among
        them "lp_priority" and "optimal", are computed when a system is first sampled, remembered
        for the last 256 systems, and asked step by step in Python: slower.
    horizon
        Number of steps T that the agent is to run, which sets where counters are truncated. It may
        go on beyond. None for the doubling trick: epochs of 1, 2, 4, ... steps.
    mixing_time
        T^mix(1/4), by default the largest over the prior's support.
    start
        When and in which state each arm was last seen; by default in its last (good) state one
        step ago.
    seed
        Of the agent's own draws.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    """

    def __init__(
        self,
        prior: Prior,
        num_pulls: int,
        policy_mapping: Mapping = "whittle",
        horizon: int | None = None,
        mixing_time: int | None = None,
        start: BeliefState | None = None,
        seed: int = 0,
        max_elapsed: int | None = None,
    ) -> None:
        setup = setup_learner(
            prior, num_pulls, policy_mapping, horizon, mixing_time, start, max_elapsed
        )
        self._begin(setup, checked_seed(seed), 0)

    @classmethod
    def of_setup(cls, setup: Setup, seed: int, replication: int) -> TSDE:
        """Return the learner of one replication of a simulation."""
        agent = cls.__new__(cls)
        agent._begin(setup, checked_seed(seed), replication)
        return agent

    def _begin(self, setup: Setup, seed: int, replication: int) -> None:
        self._setup = setup
        self._seed = seed
        self._replication = replication
        self._key = stream(seed, replication, LEARNER)
        self._state = setup.fresh_state(setup.truncation(0))
        self._selected: IntArray | None = None
        online.reset(setup.tables.prior, self._state, setup.start.last_state, setup.start.elapsed)
        self._begin_epoch()

    @property
    def prior(self) -> Prior:
        """What was held possible at the start."""
        return self._setup.prior

    @property
    def time(self) -> int:
        """The time t of the next or current step, from 1."""
        return int(self._state.clock[tables.TIME])

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return BeliefState(self._state.last_state, self.time - self._state.seen)

    @property
    def episode(self) -> Episode:
        """The current episode."""
        clock = self._state.clock
        started = int(clock[tables.STARTED])
        return Episode(
            number=int(clock[tables.EPISODE]),
            start=started,
            length=self.time - started if started else 0,
            last_ended=REASONS[int(clock[tables.REASON])],
            epoch=int(clock[tables.EPOCH]),
            mixing_time=int(clock[tables.MIXING]),
        )

    @property
    def sampled_bandit(self) -> RestlessBandit | None:
        """The system drawn for the current episode, None before the first step."""
        if self._state.clock[tables.EPISODE] == 0:
            return None
        return self._setup.bandit_of(self._state.sampled)

    def posterior(self, k: int) -> FloatArray:
        """Posterior weights of arm k's candidates (of the systems, under a joint prior)."""
        prior = self._setup.tables.prior
        group = int(prior.groups[self._checked_arm(k)])
        online.multiply_pending(prior, self._state, group)
        count = len(self._setup.prior.candidates(k))
        begin = int(prior.row_offsets[group]) * LANES
        weights: FloatArray = self._state.weights[begin + lane_places(count)]
        weights /= weights.sum()
        return weights

    def belief(self, k: int) -> FloatArray:
        """Law of arm k's state now, over the posterior."""
        prior = self._setup.tables.prior
        k = self._checked_arm(k)
        candidates = self._setup.prior.candidates(k)
        size, length = int(prior.sizes[k]), int(prior.lengths[k])
        cell = int(self._state.last_state[k]) * length + (
            min(self.time - int(self._state.seen[k]), length) - 1
        )
        width = int(prior.row_counts[prior.groups[k]]) * LANES
        begin = int(prior.offsets[k]) + cell * size * width
        likelihoods = prior.likelihoods[begin : begin + size * width].reshape(size, width)
        law: FloatArray = likelihoods[:, lane_places(len(candidates))] @ self.posterior(k)
        law /= law.sum()
        return law

    def index(self) -> FloatArray:
        """Index of each arm now, under the sampled system; nan where the mapping has none."""
        bandit = self.sampled_bandit
        if bandit is None:
            raise ProblemError("no system has been sampled yet: call select() first")
        policy = self._setup.policy_of(self._state.sampled)
        if isinstance(policy, IndexPolicy):
            return policy.index(self.belief_state)
        return np.full(bandit.num_arms, np.nan)

    def select(self, num_pulls: int | None = None, available: ArrayLike | None = None) -> IntArray:
        """Return the arms to pull now, ascending.

        Asked again before `observe`, the answer is the same (and an error where the new question
        rules it out).

        Parameters
        ----------
        num_pulls
            Pull this many arms in this step instead of N; 0 lets a step pass.
        available
            Mask [K] of the arms that can be pulled in this step.
        """
        if self._selected is None:
            wanted, mask = self._checked_request(num_pulls, available)
            self._begin_what_is_due()
            chosen = self._choose(wanted, mask)
            online.explore(self._state, self._key, mask, chosen)
            self._selected = chosen
        elif num_pulls is not None or available is not None:
            wanted, mask = self._checked_request(num_pulls, available)
            fits = wanted == len(self._selected) and (not len(mask) or mask[self._selected].all())
            if not fits:
                raise ProblemError(
                    f"arms {self._selected.tolist()} were selected already; observe them first"
                )
        return self._selected.copy()

    def observe(self, states: ArrayLike) -> None:
        """Tell the agent in which states the selected arms were seen, in the order of the arms.

        What cannot be is a `ProblemError` and leaves the agent as it was.
        """
        if self._selected is None:
            raise ProblemError("nothing was selected: call select() before observe()")
        seen = self._checked_states(states, self._selected)
        prior = self._setup.tables.prior
        arm = online.take_in_if_possible(prior, self._state, self._selected, seen)
        if arm >= 0:
            state = int(seen[self._selected.tolist().index(arm)])
            raise ProblemError(
                f"arm {arm}: state {state} has probability zero under every candidate that is "
                "left; the prior rules it out"
            )
        self._selected = None

    def snapshot(self) -> dict[str, Any]:
        """Return everything the agent knows as plain data, for `json.dumps`.

        It holds the prior too; a policy mapping that is a function is named only.
        """
        setup, state = self._setup, self._state
        visits = state.visits.reshape(-1, tables.VISITS)
        cells = np.flatnonzero(visits[:, tables.STAMP])
        pending = state.pending.reshape(-1, tables.BUFFER)
        data = {
            "format": SNAPSHOT_FORMAT,
            "prior": prior_to_data(setup.prior),
            "num_pulls": setup.num_pulls,
            "learner": [setup.learner.name, asdict(setup.learner)],  # type: ignore[call-overload]
            "policy_mapping": setup.mapping_name,
            "policy_mapping_is_named": isinstance(setup.mapping, str),
            "horizon": setup.horizon,
            "mixing_time": setup.mixing_time,
            "max_elapsed": setup.max_elapsed,
            "start": {
                "last_state": setup.start.last_state.tolist(),
                "elapsed": setup.start.elapsed.tolist(),
            },
            "seed": self._seed,
            "replication": self._replication,
            "state": {name: getattr(state, name).tolist() for name in ARRAYS},
            "weights": state.weights.tolist(),
            "pending": [
                row[:count].tolist() for row, count in zip(pending, state.num_pending, strict=True)
            ],
            "visits": [cells.tolist(), visits[cells].T.tolist()],
            "selected": None if self._selected is None else self._selected.tolist(),
        }
        return data | {"checksum": checksum(data)}

    @classmethod
    def restore(cls, snapshot: dict[str, Any], policy_mapping: Mapping | None = None) -> TSDE:
        """Return an agent that goes on exactly as the one that made the snapshot.

        Parameters
        ----------
        snapshot
            What `snapshot` returned, also after a way through JSON.
        policy_mapping
            The mapping, where it was a function of the user's; functions are not in the snapshot.
        """
        require_snapshot(snapshot)
        if policy_mapping is None:
            if not snapshot["policy_mapping_is_named"]:
                raise ProblemError(
                    f"the snapshot's policy mapping was the function "
                    f"{snapshot['policy_mapping']!r}: pass it as policy_mapping"
                )
            policy_mapping = snapshot["policy_mapping"]
        try:
            start = snapshot["start"]
            setup = setup_learner(
                prior_from_data(snapshot["prior"]),
                snapshot["num_pulls"],
                policy_mapping,
                snapshot["horizon"],
                snapshot["mixing_time"],
                BeliefState(start["last_state"], start["elapsed"]),
                snapshot["max_elapsed"],
                learner=learner(snapshot["learner"][0], **snapshot["learner"][1]),
            )
            agent = cls.of_setup(setup, snapshot["seed"], snapshot["replication"])
            agent._load(snapshot)
        except (KeyError, IndexError, TypeError, ValueError) as error:
            if isinstance(error, RestiveError):
                raise
            raise ProblemError(
                f"the snapshot cannot be read ({error!r:.100}): it was cut short or edited"
            ) from None
        return agent

    def _load(self, snapshot: dict[str, Any]) -> None:
        prior = self._setup.tables.prior
        mixing = checked_count(snapshot["state"]["clock"][tables.MIXING], "the snapshot's T^mix")
        self._state = state = self._setup.fresh_state(mixing)
        for name in ARRAYS:
            _fill(getattr(state, name), snapshot["state"][name])
        _fill(state.weights, snapshot["weights"])
        pending = state.pending.reshape(-1, tables.BUFFER)
        for group, row in zip(range(len(pending)), snapshot["pending"], strict=True):
            pending[group, : len(row)] = row
        cells, columns = snapshot["visits"]
        if cells:
            state.visits.reshape(-1, tables.VISITS)[cells] = np.array(columns).T
        online.add_up_all(prior, state)
        if self._setup.ranks is not None and state.clock[tables.EPISODE] > 0:
            online.follow_ranks(self._setup.ranks, state)
        selected = snapshot["selected"]
        self._selected = None if selected is None else np.array(selected, dtype=np.int64)

    def _begin_what_is_due(self) -> None:
        clock = self._state.clock
        if clock[tables.TIME] == clock[tables.EPOCH_END]:
            clock[tables.EPOCH] += 1
            self._begin_epoch()
        began = online.begin_if_due(self._setup.tables.prior, self._state, self._key)
        if began and self._setup.ranks is not None:
            online.follow_ranks(self._setup.ranks, self._state)

    def _begin_epoch(self) -> None:
        clock = self._state.clock
        mixing = self._setup.truncation(int(clock[tables.EPOCH]))
        visits = self._setup.fresh_visits(mixing)
        if len(visits) > len(self._state.visits):  # grows with the logarithm of the time
            self._state = self._state._replace(visits=visits)
        end = np.iinfo(np.int64).max if self._setup.horizon is not None else 2 * self.time
        online.begin_epoch(self._state, mixing, end)

    def _choose(self, wanted: int, mask: NDArray[np.bool_]) -> IntArray:
        chosen = np.empty(wanted, dtype=np.int64)
        if self._setup.ranks is not None:
            online.choose(self._setup.ranks, self._state, mask, chosen)
            return chosen
        if wanted == 0:
            return chosen
        policy = self._setup.policy_of(self._state.sampled)
        if wanted == self._setup.num_pulls and not len(mask):
            bandit = self._setup.bandit_of(self._state.sampled)
            return checked_choice(policy, bandit, self.belief_state)
        if not isinstance(policy, IndexPolicy):
            raise ProblemError(
                f"policy mapping {self._setup.mapping_name!r} gives no index, so pulls and arms "
                "cannot be narrowed for a step"
            )
        rank = policy.rank(self.belief_state)
        if len(mask):
            rank[~mask] = -1
        narrowed: IntArray = top_ranked(rank[None], wanted)[0]
        return narrowed

    def _checked_arm(self, k: int) -> int:
        if not isinstance(k, int | np.integer) or not 0 <= k < self._setup.num_arms:
            raise ProblemError(f"arm {k!r:.60} is none of the arms 0 to {self._setup.num_arms - 1}")
        return int(k)

    def _checked_request(
        self, num_pulls: int | None, available: ArrayLike | None
    ) -> tuple[int, NDArray[np.bool_]]:
        setup = self._setup
        wanted = setup.num_pulls if num_pulls is None else checked_count(num_pulls, "num_pulls", 0)
        mask = np.zeros(0, dtype=bool)
        possible = setup.num_arms
        if available is not None:
            mask = np.asarray(available)
            if mask.dtype != bool or mask.shape != (setup.num_arms,):
                raise ProblemError(
                    f"available must be {setup.num_arms} truth values, one per arm, got "
                    f"{mask.dtype} of shape {mask.shape}"
                )
            possible = int(mask.sum())
        if wanted > possible:
            raise ProblemError(
                f"{wanted} arms are to be pulled, but only {possible} are available; pass "
                "num_pulls to pull fewer in this step"
            )
        return wanted, mask

    def _checked_states(self, states: ArrayLike, selected: IntArray) -> IntArray:
        try:
            seen = np.asarray(states)
        except ValueError:  # lists of different lengths
            raise ProblemError(f"states must be whole numbers, got {states!r:.60}") from None
        if seen.shape != selected.shape:
            raise ProblemError(
                f"{len(selected)} arms were selected, {selected.tolist()}, so {len(selected)} "
                f"states are needed; got shape {seen.shape}"
            )
        if len(seen) and not np.issubdtype(seen.dtype, np.integer):
            raise ProblemError(f"states must be whole numbers, got {seen.dtype}")
        sizes = self._setup.tables.prior.sizes[selected]
        wrong = np.flatnonzero((seen < 0) | (seen >= sizes))
        if wrong.size:
            i = int(wrong[0])
            raise ProblemError(
                f"arm {selected[i]}: state {seen[i]} is none of its states 0 to {sizes[i] - 1}"
            )
        return seen.astype(np.int64)


def _fill(target: NDArray[Any], values: list[Any]) -> None:
    """Copy a list into an array of its length."""
    if len(values) != len(target):
        raise ValueError(f"{len(values)} numbers where {len(target)} are expected")
    target[:] = values
