"""An agent that a program can run without end.

    agent = TSDE(grid_prior([.1, .5, .9], num_arms=8), num_pulls=3, seed=1)
    while True:
        arms = agent.select()
        agent.observe(look_at(arms))

Each step calls the compiled functions that the engine calls in its loop, so the agent and a
simulation with the same seed make the same decisions.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.agents.clouds import CloudKeeper
from restive.agents.explain import Explanation, explain
from restive.agents.learners import Compiled, Learner, Own, Relative
from restive.agents.mind import Mind
from restive.agents.requests import checked_arm, checked_arms, checked_mask, checked_states
from restive.arguments import MOST, checked_count, checked_seed, counted, shown
from restive.arm_posterior import ArmPosterior
from restive.belief import BeliefState
from restive.errors import ProblemError, RestiveError
from restive.evidence import Evidence
from restive.kernels import online, steps, tables
from restive.kernels.handles import Handle
from restive.kernels.learners.memory import PHASES
from restive.kernels.online import NOTE, Seat
from restive.kernels.random import LEARNER, RENEWAL
from restive.policies.base import IndexPolicy, Policy, checked_choice
from restive.prior import Prior
from restive.problem import RestlessBandit
from restive.slots import home_size, posterior_weights
from restive.task import Task
from restive.world import stream

__all__ = ["Agent", "Episode"]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

REASONS = {
    tables.NONE: "none has ended",
    tables.LENGTH_RULE: "it was longer than the one before",
    tables.DOUBLING_RULE: "a counter more than doubled",
    tables.EPOCH_RULE: "an epoch began",
}
INT64 = np.dtype(np.int64)
NOTES = 4096  # sightings that are noted before they are counted
STEPS_AT_ONCE = 1 << 16  # that `skip` passes between two looks at the keyboard, for few arms
NOT_PULLED = "not pulled"


@dataclass(frozen=True)
class Episode:
    """Where an agent of TSDE's family stands, and why the episode before this one ended."""

    number: int  # from 1; 0 before the first step
    start: int  # time of its first step
    length: int  # steps taken in it so far
    last_ended: str
    epoch: int  # of the doubling trick, from 0; always 0 with a known horizon
    truncation: int  # T^mix: ages from which on they share a counter


class OneThread:
    """Refuses a second thread, which would spoil the step of the first."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = Lock()

    def __enter__(self) -> None:
        if not self._lock.acquire(blocking=False):
            raise RestiveError(
                "another thread is using this agent: give each thread an agent of its own, or a "
                "lock"
            )

    def __exit__(self, *error: object) -> None:
        self._lock.release()


class Agent:
    """A learner: it says which arms to pull, and is shown what was seen of them.

    Made by `TSDE` or `make_learner`, or by `restore` from a snapshot. One thread at a time may use
    it.
    """

    def __init__(self, task: Task, learner: Learner, seed: int, replication: int = 0) -> None:
        if isinstance(learner, Own):
            raise ProblemError(
                f"learner {learner.name} is your own: make it with its function of (task, seed)"
            )
        self._mind = Mind(task, learner)
        self._seed, self._replication = checked_seed(seed), replication
        self._pulled: int | None = None  # arms that are selected and not observed yet
        self._evidence: dict[int, Evidence] = {}
        self._notes = np.zeros(max(NOTES, task.num_arms) * NOTE, dtype=np.int64)
        self._num_notes = np.zeros(1, dtype=np.int64)
        self._alone = OneThread()
        self._num_pulls, self._masked = task.num_pulls, False
        self._has_posterior = isinstance(learner, Relative)  # which takes a while to find out
        # which parts of the kernels are needed (see `kernels.online`)
        cloudy = self._has_posterior and task.choices.has_clouds
        self._cloudy: tuple[bool, ...] = (True,) if cloudy else ()
        self._parts: tuple[bool | None, ...] = () if self._has_posterior else (True,)
        if cloudy:
            self._parts = (None, True)
        self._hold()
        online.reset(self._where, *self._cloudy)

    def _hold(self) -> None:
        """Write down where the arrays lie; whenever the mind has new ones."""
        key = np.array([stream(self._seed, self._replication, LEARNER)], dtype=np.uint64)
        start, one = self.task.start, np.zeros(2, dtype=np.int64)
        self._actor = actor = self._mind.actor
        actor.clouds.keys[0] = stream(self._seed, self._replication, RENEWAL)
        self._handle = Handle(
            Seat(
                actor,
                key,
                start.last_state,
                start.elapsed,
                self._notes,
                self._num_notes,
                one[:1],
                one[1:],
            )
        )
        self._where, self._chosen, self._states = self._handle.where, actor.chosen, actor.states

    def __deepcopy__(self, memo: dict[int, Any]) -> Agent:
        from restive.agents.snapshots import restore

        return restore(self.snapshot(), self.task.mapping)

    def __reduce__(self) -> Any:
        from restive.agents.snapshots import restore

        return restore, (self.snapshot(), self.task.mapping)

    @property
    def task(self) -> Task:
        """What the agent is put on: prior, pulls, mapping, horizon, start."""
        return self._mind.task

    @property
    def learner(self) -> Learner:
        """How it learns."""
        assert self._mind.learner is not None
        return self._mind.learner

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
        return self._mind.time

    @property
    def belief_state(self) -> BeliefState:
        """When and in which state each arm was last seen."""
        return self._mind.belief_state

    @property
    def num_phases(self) -> int:
        """Episodes or phases begun, however the learner calls them."""
        if self._has_posterior:
            return int(self._actor.episodes.clock[tables.EPISODE])
        return int(self._actor.memory.ints[PHASES])

    @property
    def episode(self) -> Episode:
        """The current episode."""
        self._require_posterior("episodes")
        clock = self._actor.episodes.clock
        started = int(clock[tables.STARTED])
        return Episode(
            number=int(clock[tables.EPISODE]),
            start=started,
            length=self.time - started if started else 0,
            last_ended=REASONS[int(clock[tables.REASON])],
            epoch=max(0, int(clock[tables.EPOCH])),
            truncation=int(self._actor.episodes.truncations[max(0, clock[tables.EPOCH])]),
        )

    @property
    def sampled_bandit(self) -> RestlessBandit | None:
        """The system drawn for the current episode, None before the first step."""
        self._require_posterior("sampled system")
        if self._actor.episodes.clock[tables.EPISODE] == 0:
            return None
        return self._mind.sampled_bandit()

    @property
    def sampled_policy(self) -> Policy | None:
        """The policy of that system, None before the first step."""
        self._require_posterior("sampled system")
        if self._actor.episodes.clock[tables.EPISODE] == 0:
            return None
        return self._mind.sampled_policy()

    @property
    def selected(self) -> IntArray | None:
        """The arms selected in this step; None before `select` or `pull`."""
        return None if self._pulled is None else self._chosen[: self._pulled].copy()

    def explain(self, k: int) -> Explanation:
        """Explain why arm k is pulled now, or is not: in words by `print`, and as data.

        After `select` it speaks of the arms selected; before, of those that would be if the
        present episode continues.
        """
        self._require_posterior("explanation")
        return explain(self, checked_arm(k, self.task.num_arms))

    def posterior(self, k: int) -> ArmPosterior:
        """Return what is believed of arm k: its candidates' chains and weights."""
        self._require_posterior("posterior")
        k = checked_arm(k, self.task.num_arms)
        group = self._group(k)
        if self._clouds.has(group):
            matrices = np.moveaxis(self._clouds.matrices(group), 2, 0)
            size = matrices.shape[2]
            active, passive = matrices[:, :size].copy(), matrices[:, -size:].copy()
        else:
            candidates = self.prior.candidates(k)
            active = np.array([arm.active for arm in candidates])
            passive = np.array([arm.passive for arm in candidates])
        names = self.prior.typical(k).states
        return ArmPosterior(active, passive, self._weights(k, len(active)), states=names)

    @property
    def _clouds(self) -> CloudKeeper:
        assert self._mind.clouds is not None
        return self._mind.clouds

    def _num_slots(self, k: int) -> int:
        """How many arms may be drawn for arm k: candidates or particles."""
        group = self._group(k)
        if self._clouds.has(group):
            return self._clouds.num_particles(group)
        return len(self.prior.candidates(k))

    def _group(self, k: int) -> int:
        return int(self._actor.slots.groups[k])

    def _weights(self, k: int, count: int) -> FloatArray:
        slots, weights = self._actor.slots, self._actor.weights
        group = int(slots.groups[k])
        with self._alone:
            online.bring_up_to_date(self._where, group)
        home = int(weights.homes[group])
        size = home_size(int(slots.row_counts[group]))
        return posterior_weights(weights.numbers[home : home + size], count)

    def belief(self, k: int) -> FloatArray:
        """Law of arm k's state now, over the posterior."""
        return self.beliefs([checked_arm(k, self.task.num_arms)])[0]

    def beliefs(self, arms: ArrayLike | None = None) -> list[FloatArray]:
        """Laws of some arms' states now, over the posterior; of those selected by default."""
        self._require_posterior("beliefs")
        some = self._some(arms)
        sizes = self.task.choices.sizes[some].tolist()
        laws = np.empty(sum(sizes))
        with self._alone:
            online.foresee(self._where, some, laws, *self._cloudy)
        return [laws[end - size : end] for size, end in zip(sizes, accumulate(sizes), strict=True)]

    def index(self) -> FloatArray:
        """Index of each arm now, under the sampled system; nan where the mapping has none."""
        policy = self.sampled_policy
        if policy is None:
            raise ProblemError("no system has been sampled yet: call select() first")
        if isinstance(policy, IndexPolicy):
            return policy.index(self.belief_state)
        return np.full(self.task.num_arms, np.nan)

    def index_of(self, arms: ArrayLike | None = None) -> list[float]:
        """Index of some arms now, as `index` gives it; of those selected by default."""
        some, tables = self._some(arms), self.task.index_tables
        if self.task.choices.has_clouds or not tables or not self.num_phases:
            return list(map(float, self.index()[some]))
        meta, drawn, slots = self._actor.meta, self._actor.weights.drawn, self._actor.slots
        found: list[float] = []
        now = self.time
        for k in some.tolist():
            kind = slots.kinds.item(slots.kind_offsets.item(k) + drawn.item(slots.groups.item(k)))
            table = tables[kind]
            age = min(now - meta.seen.item(k), table.shape[1])
            found.append(table.item(meta.last_state.item(k), age - 1))
        return found

    def last_seen(self, k: int) -> tuple[int, int]:
        """State in which arm k was last seen, and the time of that step."""
        k = checked_arm(k, self.task.num_arms)
        return int(self._actor.meta.last_state[k]), int(self._actor.meta.seen[k])

    def last_states(self, arms: ArrayLike | None = None) -> IntArray:
        """State in which each of some arms was last seen; of those selected by default."""
        return self._actor.meta.last_state[self._some(arms)]

    def _some(self, arms: ArrayLike | None) -> IntArray:
        """Return arms that the caller asks for, or those selected, which need no check."""
        if arms is not None:
            return checked_arms(arms, self.task.num_arms, "arms")
        if self._pulled is None:
            raise ProblemError("nothing is selected: call select() first, or name the arms")
        return self._chosen[: self._pulled]

    def impossible(self, arms: ArrayLike, states: ArrayLike) -> int | None:
        """Return an arm that cannot be in its state now, for all that is known; None if all can.

        Nothing is learned from it. Arms of a joint prior must be possible together.
        """
        with self._alone:
            some = checked_arms(arms, self.task.num_arms, "arms")
            count = len(some)
            kept = self._chosen[:count].copy()
            self._states[:count] = checked_states(states, some, self.prior.typical)
            self._chosen[:count] = some
            answer = online.could_see(self._where, count, *self._parts)
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

    def select(self, num_pulls: int | None = None, available: ArrayLike | None = None) -> IntArray:
        """Return the arms to pull now, ascending.

        Called again before `observe`, it gives the same answer (or an error, where the new
        arguments rule that out).

        Parameters
        ----------
        num_pulls
            Pull this many arms in this step instead of N; 0 lets a step pass.
        available
            The arms that can be pulled in this step: a mask [K] of truth values, or a list of arms.
        """
        with self._alone:
            usual = num_pulls is None and available is None
            if self._pulled is None:
                wanted, mask = self._num_pulls, None
                if not usual:
                    wanted, mask = self._checked_request(num_pulls, available)
                if not usual or self._masked:
                    self._set_available(mask)
                event = online.select(self._where, wanted, *self._parts)
                if event != steps.GO:
                    self._choose(event, wanted, mask)
                self._pulled = wanted
            elif not usual:
                self._require_same(*self._checked_request(num_pulls, available))
            return self._chosen[: self._pulled].copy()

    def _choose(self, event: int, wanted: int, mask: NDArray[np.bool_] | None) -> None:
        """Do what Python must before arms can be chosen, until they are."""
        while event != steps.GO:
            if event == steps.ASK:
                self._chosen[:wanted] = self._asked(wanted, mask)
                return
            self._respond(event)
            event = online.select(self._where, wanted, *self._parts)

    def pull(self, arms: ArrayLike) -> None:
        """Take these arms as selected, where somebody else decided; call `observe` next."""
        with self._alone:
            given = checked_arms(arms, self.task.num_arms, "arms to pull")
            self._require_narrowing("be given arms to pull")
            if self._pulled is None:
                while (event := online.begin_step(self._where, *self._parts)) != steps.GO:
                    self._respond(event)
            self._pulled = len(given)
            self._chosen[: len(given)] = given

    def observe(
        self, states: ArrayLike, arms: ArrayLike | None = None, missing: str | None = None
    ) -> None:
        """Show the agent the states of the selected arms, in the order of the arms.

        What is impossible raises a `ProblemError` and leaves the agent as it was.

        Parameters
        ----------
        states
            State of each arm: a whole number, or its name where the prior's arms have names.
        arms
            The arms that were seen, where it was only some of those selected. The others stay
            unseen, which is exact for arms that move alike whether pulled or not.
        missing
            "not pulled" if selected arms that were not seen were not pulled either. For arms that
            move differently when pulled you must say so: had they been pulled unseen, their last
            state and age would no longer describe them.
        """
        with self._alone:
            count = self._pulled
            if count is None:
                raise ProblemError("nothing was selected: call select() before observe()")
            if missing not in (None, NOT_PULLED):
                raise ProblemError(f"missing must be {NOT_PULLED!r} or None, got {shown(missing)}")
            selected = None
            if arms is None:
                seen = states
                if (
                    type(states) is not np.ndarray
                    or states.dtype != INT64
                    or states.shape != (count,)
                ):
                    seen = checked_states(states, self._chosen[:count], self.prior.typical)
                self._states[:count] = seen
            else:
                selected = self._chosen[:count].copy()
                count = self._take_part(selected, arms, states, missing)
            answer = online.see(self._where, count, *self._parts)
            if answer != online.TAKEN_IN:
                self._see(answer, count, selected)
            self._pulled = None

    def skip(self, num_steps: int = 1) -> None:
        """Let steps pass in which no arm is pulled."""
        with self._alone:
            if self._pulled is not None:
                raise self._selected_already()
            self._require_narrowing("pull nothing")
            end = self.time + checked_count(num_steps, "num_steps", 0)
            if end > MOST:
                raise ProblemError(f"time cannot pass {MOST:,}")
            at_once = max(1, STEPS_AT_ONCE // self.task.num_arms)
            while self.time < end:
                event = online.pass_steps(self._where, min(end, self.time + at_once), *self._parts)
                if event != steps.GO:
                    self._respond(event)

    def observe_late(self, arm: int, state: int, time: int) -> None:
        """Show the agent in which state an arm was seen at an earlier time.

        The arm must not have been seen since. Its posterior is then what it would have been had
        the sighting come in time.

        Parameters
        ----------
        arm, state
            The arm and its state.
        time
            The time of the step in which it was pulled and seen, before the present one.
        """
        with self._alone:
            k = checked_arm(arm, self.task.num_arms)
            time = checked_count(time, "time")
            seen_at = int(self._actor.meta.seen[k])
            if time >= self.time:
                raise ProblemError(
                    f"arm {k}: time {time} is not before the present step, {self.time}; use "
                    "observe() for what is seen now"
                )
            if time <= seen_at:
                raise ProblemError(
                    f"arm {k} was seen at time {seen_at}, so its state at time {time} comes too "
                    "late to be used"
                )
            if isinstance(self.learner, Compiled):
                raise ProblemError(
                    f"learner {self.learner.name} learns in the order of time and cannot take in "
                    "a late sighting"
                )
            seen = checked_states([state], np.array([k]), self.prior.typical)
            if not 0 <= seen[0] < self.task.choices.sizes[k]:
                raise self._no_such_state(k, int(seen[0]))
            self._late(k, int(seen[0]), time)

    def snapshot(self) -> dict[str, Any]:
        """Return everything the agent knows as plain data, for `json.dumps`.

        It holds the prior too; a policy mapping that is a function is named only.
        """
        from restive.agents.snapshots import snapshot_of

        with self._alone:
            self._count_notes()
            return snapshot_of(self)

    def _asked(self, wanted: int, mask: NDArray[np.bool_] | None) -> IntArray:
        """Return the arms that a policy without ranks pulls."""
        policy, bandit = self._mind.policy, self._mind.followed
        assert policy is not None
        assert bandit is not None
        if wanted != self.task.num_pulls or mask is not None:
            raise ProblemError(
                f"policy mapping {self.task.mapping_name!r} gives no index, so pulls and arms "
                "cannot be narrowed for a step"
            )
        return checked_choice(policy, bandit, self.belief_state)

    def _respond(self, event: int) -> None:
        self._mind.respond(event)
        self._hold_new()

    def _hold_new(self) -> None:
        if self._mind.actor is not self._actor:
            self._hold()

    def _set_available(self, mask: NDArray[np.bool_] | None) -> None:
        self._masked = mask is not None
        self._actor.who[steps.MASKED] = self._masked
        if mask is None:
            return
        if not len(self._actor.available):  # made when it is first needed
            self._mind.actor = self._mind.actor._replace(available=np.ones_like(mask))
            self._hold()
        self._actor.available[:] = mask

    def _see(self, answer: int, count: int, selected: IntArray | None) -> None:
        """Take in what was seen, after a first try that did not succeed, or say why it cannot.

        `selected` are the arms to put back then, where only some of them were seen.
        """
        if answer == online.NOTES_FULL:
            self._count_notes()
            answer = online.see(self._where, count, *self._parts)
        if answer == online.TAKEN_IN:
            return
        arms, states = self._chosen[:count].tolist(), self._states[:count].tolist()
        if answer >= online.IMPOSSIBLE_BASE:
            arm = answer - online.IMPOSSIBLE_BASE
            error = self._impossible(arm, states[arms.index(arm)])
        else:
            arm = arms[answer - 1]
            error = self._no_such_state(arm, states[answer - 1])
        if selected is not None:
            self._chosen[: len(selected)] = selected
        raise error

    def _take_part(
        self, selected: IntArray, arms: ArrayLike, states: ArrayLike, missing: str | None
    ) -> int:
        """Put what was seen of some of the selected arms in place; return how many they are."""
        seen = self._checked_part(selected, arms, missing)
        self._states[: len(seen)] = checked_states(states, seen, self.prior.typical)
        self._chosen[: len(seen)] = seen
        return len(seen)

    def _late(self, k: int, state: int, time: int) -> None:
        answer = online.late_sighting(self._where, k, state, time, *self._cloudy)
        if answer == online.NOTES_FULL:
            self._count_notes()
            answer = online.late_sighting(self._where, k, state, time, *self._cloudy)
        if answer != online.TAKEN_IN:
            raise self._impossible(k, state)

    def _count_notes(self) -> None:
        """Move what was noted into the arms' evidence."""
        self._mind.count_sightings()
        self._hold_new()
        count = int(self._num_notes[0])
        if count == 0:
            return
        notes = self._notes[: count * NOTE].reshape(-1, NOTE)
        order = np.argsort(notes[:, 0], kind="stable")
        arms, starts = np.unique(notes[order, 0], return_index=True)
        for k, of_arm in zip(arms.tolist(), np.split(notes[order], starts[1:]), strict=True):
            if k not in self._evidence:
                self._evidence[k] = Evidence(int(self.task.choices.sizes[k]))
            self._evidence[k].add(of_arm[:, 1], of_arm[:, 2], of_arm[:, 3])
        self._num_notes[0] = 0

    def _checked_request(
        self, num_pulls: int | None, available: ArrayLike | None
    ) -> tuple[int, NDArray[np.bool_] | None]:
        task = self.task
        wanted = task.num_pulls if num_pulls is None else checked_count(num_pulls, "num_pulls", 0)
        mask = None if available is None else checked_mask(available, task.num_arms)
        possible = task.num_arms if mask is None else int(mask.sum())
        if wanted > possible:
            raise ProblemError(
                f"cannot pull {wanted} arms, only {possible} available; pass "
                "num_pulls to pull fewer in this step"
            )
        if wanted != task.num_pulls or (mask is not None and not mask.all()):
            self._require_narrowing("narrow pulls and arms for a step")
        return wanted, mask

    def _checked_part(self, selected: IntArray, arms: ArrayLike, missing: str | None) -> IntArray:
        """Return the arms that were seen, of those selected."""
        seen = checked_arms(arms, self.task.num_arms, "arms that were seen")
        strangers = np.setdiff1d(seen, selected)
        if len(strangers):
            raise ProblemError(
                f"arm {strangers[0]} was not selected; the selected arms are {selected.tolist()}. "
                "Call pull(arms) first if others were pulled"
            )
        unseen = np.setdiff1d(selected, seen)
        if len(unseen):
            self._require_narrowing("be shown only some of the arms")
        if missing is None:
            for k in unseen.tolist():
                if not self._moves_alike(k):
                    raise ProblemError(
                        f"arm {k} was selected and not seen, and it moves differently when pulled: "
                        "pass missing='not pulled' if it was not pulled (or if that is close "
                        "enough for you)"
                    )
        return seen

    def _require_same(self, wanted: int, mask: NDArray[np.bool_] | None) -> None:
        """Raise unless what was selected answers this question too."""
        selected = self._chosen[: self._pulled]
        if wanted != len(selected) or (mask is not None and not mask[selected].all()):
            raise self._selected_already()

    def _selected_already(self) -> ProblemError:
        selected = self._chosen[: self._pulled].tolist()
        return ProblemError(f"arms {selected!s:.60} were selected already; observe them first")

    def _moves_alike(self, k: int) -> bool:
        return self.prior.moves_alike(k)

    def _require_narrowing(self, what: str) -> None:
        if isinstance(self.learner, Compiled) and not self.learner.narrows:
            raise ProblemError(f"learner {self.learner.name} cannot {what}")

    def _require_posterior(self, what: str) -> None:
        if not self._has_posterior:
            raise ProblemError(
                f"learner {self.learner.name} has no {what}: it is not of TSDE's family"
            )

    def _impossible(self, arm: int, state: int) -> ProblemError:
        return ProblemError(
            f"arm {arm}: {self.prior.typical(arm).state_label(state)} has probability zero under "
            "every candidate that is left; the prior rules it out"
        )

    def _no_such_state(self, arm: int, state: int) -> ProblemError:
        like = self.prior.typical(arm)
        names = "" if like.states is None else f" ({', '.join(like.states)})"
        return ProblemError(
            f"arm {arm}: state {state} is not one of its states 0 to {like.num_states - 1}{names}"
        )

    def __repr__(self) -> str:
        task = self.task
        return (
            f"Agent({self.learner.name}, {counted(task.num_arms, 'arm')}, "
            f"{counted(task.num_pulls, 'pull')}, "
            f"{task.mapping_name}, time {self.time:,}, seed {self.seed})"
        )
