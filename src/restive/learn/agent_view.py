"""What an agent holds, and what its callers may ask of it.

Nothing here changes what the agent will do: asking brings weights up to date, counts what was noted
and makes the handle anew where arrays were replaced, and that is all.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import checked_seed, counted
from restive.errors import ProblemError
from restive.kernels.jit.handles import Handle
from restive.kernels.learn.learners.memory import PHASES
from restive.kernels.loop import online, tables
from restive.kernels.loop.online import NOTE, OnlineLearner
from restive.kernels.random import LEARNER, RENEWAL, stream
from restive.learn.evidence import Evidence
from restive.learn.explain import Explanation, explain
from restive.learn.learner_state import LearnerState
from restive.learn.learners.base import Learner, Own, Relative
from restive.learn.one_thread import OneThread
from restive.learn.particle_groups import ParticleKeeper
from restive.learn.posterior import ArmPosterior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.learn.priors.independent import Prior
from restive.learn.requests import checked_arm, checked_arms, checked_states
from restive.learn.slots import home_size, posterior_weights
from restive.learn.task import Task
from restive.plan.policies.base import IndexPolicy, Policy
from restive.problem.bandit import RestlessBandit
from restive.problem.beliefs import BeliefState

__all__ = ["AgentView", "Episode"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REASONS = {
    tables.NONE: "none has ended",
    tables.LENGTH_RULE: "it was longer than the one before",
    tables.DOUBLING_RULE: "a counter more than doubled",
    tables.EPOCH_RULE: "an epoch began",
}
NOTES = 4096  # sightings that are noted before they are counted


@dataclass(frozen=True)
class Episode:
    """Where an agent of TSDE's family stands, and why the episode before this one ended."""

    number: int  # from 1; 0 before the first step
    start: int  # time of its first step
    length: int  # steps taken in it so far
    last_ended: str
    epoch: int  # of the doubling trick, from 0; always 0 with a known horizon
    truncation: int  # T^mix: ages from which on they share a counter


class AgentView:
    """What can be asked of an agent; `Agent` adds what acts."""

    def __init__(self, task: Task, learner: Learner, seed: int, replication: int = 0) -> None:
        if isinstance(learner, Own):
            raise ProblemError(
                f"learner {learner.name} is your own: make it with its function of (task, seed)"
            )
        self._learner_state = LearnerState(task, learner)
        self._seed, self._replication = checked_seed(seed), replication
        self._pulled: int | None = None  # arms that are selected and not observed yet
        self._evidence: dict[int, Evidence] = {}
        self._notes = np.zeros(max(NOTES, task.num_arms) * NOTE, dtype=np.int64)
        self._num_notes = np.zeros(1, dtype=np.int64)
        self._alone = OneThread()
        self._num_pulls, self._masked = task.num_pulls, False
        self._always = frozenset(task.always_seen.tolist())
        self._has_posterior = isinstance(learner, Relative)  # which takes a while to find out
        # which parts of the kernels are needed (see `kernels.loop.steps`)
        with_particles = self._has_posterior and task.choices.has_particles
        self._with_particles: tuple[bool, ...] = (True,) if with_particles else ()
        self._parts: tuple[bool | None, ...] = () if self._has_posterior else (True,)
        if with_particles:
            self._parts = (None, True)
        self._hold()
        online.reset(self._where, *self._with_particles)

    def __repr__(self) -> str:
        task = self.task
        return (
            f"Agent({self.learner.name}, {counted(task.num_arms, 'arm')}, "
            f"{counted(task.num_pulls, 'pull')}, "
            f"{task.mapping_name}, time {self.time:,}, seed {self.seed})"
        )

    @property
    def task(self) -> Task:
        """What the agent is put on: prior, pulls, mapping, horizon, start."""
        return self._learner_state.task

    @property
    def learner(self) -> Learner:
        """How it learns."""
        assert self._learner_state.learner is not None
        return self._learner_state.learner

    @property
    def prior(self) -> Prior:
        """What the arms might be, at the start."""
        return self.task.prior

    @property
    def seed(self) -> int:
        """The seed of its own draws."""
        return self._seed

    @property
    def time(self) -> int:
        """The time t of the next or current step, from 1."""
        return self._learner_state.time

    @property
    def num_phases(self) -> int:
        """Episodes or phases begun, however the learner calls them."""
        if self._has_posterior:
            return int(self._actor.episodes.clock["episode"][0])
        return int(self._actor.memory.ints[PHASES])

    @property
    def episode(self) -> Episode:
        """The current episode."""
        self._require_posterior("episodes")
        clock = self._actor.episodes.clock[0]
        started = int(clock.started)
        return Episode(
            number=int(clock.episode),
            start=started,
            length=self.time - started if started else 0,
            last_ended=REASONS[int(clock.reason)],
            epoch=max(0, int(clock.epoch)),
            truncation=int(self._actor.episodes.truncations[max(0, clock.epoch)]),
        )

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return self._learner_state.belief_state

    def last_seen(self, k: int) -> tuple[int, int]:
        """State in which arm k was last seen, and the time of that step."""
        k = checked_arm(k, self.task.num_arms)
        return int(self._actor.meta.last_state[k]), int(self._actor.meta.seen[k])

    def last_states(self, arms: ArrayLike | None = None) -> IntArray:
        """State in which each of some arms was last seen; of those selected by default."""
        return self._actor.meta.last_state[self._some(arms)]

    @property
    def selected(self) -> IntArray | None:
        """The arms selected in this step; None before `select` or `pull`."""
        return None if self._pulled is None else self._chosen[: self._pulled].copy()

    @property
    def awaited(self) -> IntArray | None:
        """The arms whose states `observe` expects, ascending; None before `select` or `pull`.

        Those selected, and all that are always seen.
        """
        return None if self._pulled is None else self._shown(self._pulled)

    def _shown(self, count: int) -> IntArray:
        return np.union1d(self._chosen[:count], self.task.always_seen)

    @property
    def sampled_bandit(self) -> RestlessBandit | None:
        """The system drawn for the current episode, None before the first step.

        Learners that average the index have none.
        """
        self._require_one_draw()
        if self._actor.episodes.clock["episode"][0] == 0:
            return None
        return self._learner_state.sampled_bandit()

    @property
    def sampled_policy(self) -> Policy | None:
        """The policy of that system, None before the first step."""
        self._require_one_draw()
        if self._actor.episodes.clock["episode"][0] == 0:
            return None
        return self._learner_state.sampled_policy()

    def index(self) -> FloatArray:
        """Index of each arm now; nan where the mapping has none.

        That under the sampled system, or the mean that the learner goes by.
        """
        if self.averages:
            return np.array(self.index_of(np.arange(self.task.num_arms)))
        if self._learner_state.is_drawn and self.num_phases:
            return np.array(self._drawn_indices(np.arange(self.task.num_arms)))
        policy = self.sampled_policy
        if policy is None:
            raise ProblemError("no system has been sampled yet: call select() first")
        if isinstance(policy, IndexPolicy):
            return policy.index(self.belief_state)
        return np.full(self.task.num_arms, np.nan)

    def index_of(self, arms: ArrayLike | None = None) -> list[float]:
        """Index of some arms now, as `index` gives it; of those selected by default."""
        some, tables = self._some(arms), self.task.index_tables
        if self.averages:
            return self._mean_indices(some)
        if self.task.choices.has_particles or not tables or not self.num_phases:
            return list(map(float, self.index()[some]))
        meta, posterior = self._actor.meta, self._actor.posterior
        drawn, slots = posterior.weights.drawn, posterior.slots
        found: list[float] = []
        now = self.time
        for k in some.tolist():
            kind = slots.kinds.item(slots.kind_offsets.item(k) + drawn.item(slots.groups.item(k)))
            table = tables[kind]
            age = min(now - meta.seen.item(k), table.shape[1])
            found.append(table.item(meta.last_state.item(k), age - 1))
        return found

    @property
    def averages(self) -> bool:
        """Whether the learner goes by the mean of the index over several systems."""
        return self._has_posterior and self._learner_state.draws != 1

    @property
    def kinds_learnt(self) -> int:
        """How often the laws of kinds were estimated from all arms."""
        return int(self._actor.episodes.clock[0].kinds_learnt) if self._learns_kinds else 0

    @property
    def kinds_due(self) -> int | None:
        """Time at which that is done next; None if it never is."""
        return int(self._actor.episodes.clock[0].kinds_due) if self._learns_kinds else None

    @property
    def _learns_kinds(self) -> bool:
        return self._has_posterior and self._learner_state.kind_laws is not None

    def _drawn_indices(self, arms: IntArray) -> list[float]:
        """Indices of arms that are always seen, under what was drawn of them."""
        conjugates, states = self._particle_keeper.conjugates, self._actor.meta.last_state
        return [float(conjugates.indices(self._group(k))[states[k]]) for k in arms.tolist()]

    def _mean_indices(self, arms: IntArray) -> list[float]:
        if not self.num_phases:
            raise ProblemError("nothing has been decided yet: call select() first")
        if self._learner_state.is_drawn:
            return self._drawn_indices(arms)
        policy = self._learner_state.policy
        if policy is not None:  # of a mapping that has no rule
            assert isinstance(policy, IndexPolicy)
            return list(map(float, policy.index(self.belief_state)[arms]))
        found = np.empty(len(arms))
        with self._alone:
            self._learner_state.follow_sampled()  # what was seen late may have brought particles
            self._hold_new()
            if not self._learner_state.draws and self._pulled is None:
                # the next step would first take in what was seen
                for group in np.unique(self._actor.posterior.slots.groups[arms]).tolist():
                    online.bring_up_to_date(self._where, group)
            online.mean_indices(self._where, arms, found, *self._with_particles)
        return found.tolist()

    def posterior(self, k: int) -> ArmPosterior:
        """Return what is believed of arm k: its candidates' chains and weights."""
        self._require_posterior("posterior")
        k = checked_arm(k, self.task.num_arms)
        group = self._group(k)
        if self._particle_keeper.conjugates.has(group):
            return self._particle_keeper.conjugates.posterior(group)
        unchecked = False
        if self._particle_keeper.has(group):
            matrices = np.moveaxis(self._particle_keeper.matrices(group), 2, 0)
            size = matrices.shape[2]
            active, passive = matrices[:, :size].copy(), matrices[:, -size:].copy()
            unchecked = self._particle_keeper.is_unchecked(group)
        else:
            candidates = self.prior.candidates(k)
            active = np.array([arm.active for arm in candidates])
            passive = np.array([arm.passive for arm in candidates])
        weights, names = self._weights(k, len(active)), self.prior.typical(k).states
        return ArmPosterior(active, passive, weights, states=names, unchecked=unchecked)

    def kind_law(self, k: int) -> ArmPrior:
        """Return what arms of arm k's kind may be: as the prior says, or as learnt since."""
        self._require_posterior("laws of kinds")
        k = checked_arm(k, self.task.num_arms)
        arm = None if isinstance(self.prior, JointPrior) else self.prior.arms[k]
        if not isinstance(arm, ArmPrior):
            raise ProblemError(f"arm {k} has no prior of candidates, so its kind has no law")
        laws, learnt = self._learner_state.kind_laws, self._actor.episodes.clock[0].kinds_learnt
        if laws is None or not learnt:
            return arm.kind
        return arm.kind.with_weights(laws.laws[int(laws.kind_of_arm[k])])

    def belief(self, k: int) -> FloatArray:
        """Law of arm k's state now, over the posterior."""
        return self.beliefs([checked_arm(k, self.task.num_arms)])[0]

    def beliefs(self, arms: ArrayLike | None = None) -> list[FloatArray]:
        """Laws of some arms' states now, over the posterior; of those selected by default.

        The state of an arm that is always seen is known.
        """
        self._require_posterior("beliefs")
        some = self._some(arms)
        if len(self.task.always_seen):
            return self._beliefs_and_states(some)
        return self._beliefs(some)

    def _beliefs_and_states(self, arms: IntArray) -> list[FloatArray]:
        known = np.isin(arms, self.task.always_seen)
        unknown = iter(self._beliefs(arms[~known]))
        states, sizes = self._actor.meta.last_state, self.task.choices.sizes
        return [
            np.eye(int(sizes[k]))[states[k]] if seen else next(unknown)
            for k, seen in zip(arms.tolist(), known.tolist(), strict=True)
        ]

    def _beliefs(self, some: IntArray) -> list[FloatArray]:
        sizes = self.task.choices.sizes[some].tolist()
        laws = np.empty(sum(sizes))
        with self._alone:
            online.foresee(self._where, some, laws, *self._with_particles)
        return [laws[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]

    def impossible(
        self, arms: ArrayLike, states: ArrayLike, pulled: Set[int] | None = None
    ) -> int | None:
        """Return an arm that cannot be in its state now, for all that is known; None if all can.

        Nothing is learned from it. Arms of a joint prior must be possible together. Of arms that
        are always seen say which were `pulled`; all were by default.
        """
        with self._alone:
            some = checked_arms(arms, self.task.num_arms, "arms")
            found = checked_states(states, some, self.prior.typical)
            count = acted = len(some)
            if pulled is not None:
                first = np.isin(some, np.fromiter(pulled, np.int64, len(pulled)))
                order = np.argsort(~first, kind="stable")
                some, found, acted = some[order], found[order], int(first.sum())
            kept = self._chosen[:count].copy()
            self._states[:count] = found
            self._chosen[:count] = some
            answer = online.could_see(self._where, acted, count, *self._parts)
            self._chosen[:count] = kept
        if answer == online.TAKEN_IN:
            return None
        if answer >= online.IMPOSSIBLE_BASE:
            return int(answer - online.IMPOSSIBLE_BASE)
        return int(some[answer - 1])

    def evidence(self, k: int) -> Evidence:
        """Return what was seen of arm k since the agent began, as counts."""
        k = checked_arm(k, self.task.num_arms)
        with self._alone:
            self._count_notes()
        found = self._evidence.get(k)
        return (
            Evidence(int(self.task.choices.sizes[k]))
            if found is None
            else found + Evidence(found.num_states)
        )

    def explain(self, k: int) -> Explanation:
        """Explain why arm k is pulled now, or is not: in words by `print`, and as data.

        After `select` it speaks of the arms selected; before, of those that would be if the
        present episode continues.
        """
        self._require_posterior("explanation")
        return explain(self, checked_arm(k, self.task.num_arms))

    def snapshot(self) -> dict[str, Any]:
        """Return everything the agent knows as plain data, for `json.dumps`.

        It holds the prior too; a policy mapping that is a function is named only.
        """
        from restive.learn.snapshots import snapshot_of

        with self._alone:
            self._count_notes()
            return snapshot_of(self)

    def _some(self, arms: ArrayLike | None) -> IntArray:
        """Return arms that the caller asks for, or those selected, which need no check."""
        if arms is not None:
            return checked_arms(arms, self.task.num_arms, "arms")
        if self._pulled is None:
            raise ProblemError("nothing is selected: call select() first, or name the arms")
        return self._chosen[: self._pulled]

    def _require_one_draw(self) -> None:
        self._require_posterior("sampled system")
        if self.averages:
            raise ProblemError(
                f"learner {self.learner.name} goes by the mean of the index over several systems, "
                "so there is no sampled one; ask for index() or posterior(k)"
            )

    def _require_posterior(self, what: str) -> None:
        if not self._has_posterior:
            raise ProblemError(
                f"learner {self.learner.name} has no {what}: it is not of TSDE's family"
            )

    @property
    def _particle_keeper(self) -> ParticleKeeper:
        assert self._learner_state.particle_keeper is not None
        return self._learner_state.particle_keeper

    def _group(self, k: int) -> int:
        return int(self._actor.posterior.slots.groups[k])

    def _num_slots(self, k: int) -> int:
        """How many arms may be drawn for arm k: candidates or particles."""
        group = self._group(k)
        if self._particle_keeper.conjugates.has(group):
            return 1
        if self._particle_keeper.has(group):
            return self._particle_keeper.num_particles(group)
        return len(self.prior.candidates(k))

    def _weights(self, k: int, count: int) -> FloatArray:
        slots, weights = self._actor.posterior.slots, self._actor.posterior.weights
        group = int(slots.groups[k])
        with self._alone:
            online.bring_up_to_date(self._where, group)
        home = int(weights.homes[group])
        size = home_size(int(slots.row_counts[group]))
        return posterior_weights(weights.numbers[home : home + size], count)

    def _hold(self) -> None:
        """Write down where the arrays lie; whenever the learner's state has new ones."""
        start, one = self.task.start, np.zeros(2, dtype=np.int64)
        self._actor = actor = self._learner_state.actor
        actor.role["key"] = stream(self._seed, self._replication, LEARNER)
        actor.posterior.particles.keys[0] = stream(self._seed, self._replication, RENEWAL)
        self._handle = Handle(
            OnlineLearner(
                actor,
                start.last_state,
                start.elapsed,
                self._notes,
                self._num_notes,
                one[:1],
                one[1:],
            )
        )
        self._where, self._chosen, self._states = self._handle.where, actor.chosen, actor.states

    def _hold_new(self) -> None:
        if self._learner_state.actor is not self._actor:
            self._hold()

    def _count_notes(self) -> None:
        """Move what was noted into the arms' evidence."""
        self._learner_state.count_sightings()
        self._hold_new()
        count = int(self._num_notes[0])
        if count == 0:
            return
        notes = self._notes[: count * NOTE].reshape(-1, NOTE)
        notes = notes[np.argsort(notes[:, 0], kind="stable")]
        arms, starts = np.unique(notes[:, 0], return_index=True)
        sizes, ages = self.task.choices.sizes[notes[:, 0]], notes[:, 2]
        pulled = None
        if self._always:  # whose ages say whether they were pulled
            ages, always = ages.copy(), np.isin(notes[:, 0], self.task.always_seen)
            pulled = ~(always & (ages >= tables.NOT_PULLED))
            ages[always] = 1
        cells = (ages * sizes + notes[:, 1]) * sizes + notes[:, 3]
        ends = [*starts[1:].tolist(), count]
        for k, begin, end in zip(arms.tolist(), starts.tolist(), ends, strict=True):
            evidence = self._evidence.get(k)
            if evidence is None:
                evidence = self._evidence[k] = Evidence(int(self.task.choices.sizes[k]))
            own = cells[begin:end]
            if pulled is None or k not in self._always:
                evidence.add_noted(own.tolist())
                continue
            which = pulled[begin:end]
            evidence.add_noted(own[which].tolist())
            evidence.add_noted(own[~which].tolist(), pulled=False)
        self._num_notes[0] = 0
