"""An agent that a program can run without end.

    agent = TSDE(grid_prior([.1, .5, .9], num_arms=8), num_pulls=3, seed=1)
    while True:
        arms = agent.select()
        agent.observe(look_at(arms))

Each step calls the compiled functions that the engine calls in its loop, so the agent and a
simulation with the same seed make the same decisions. What acts is here; what can be asked of an
agent, and what it holds, is in `agent_view`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import MOST, checked_count, shown
from restive.errors import ProblemError
from restive.kernels.loop import online, steps
from restive.learn.agent_view import AgentView
from restive.learn.learners.base import Compiled
from restive.learn.requests import checked_arm, checked_arms, checked_mask, checked_states
from restive.plan.policies.base import checked_choice

__all__ = ["Agent"]

IntArray = NDArray[np.int64]

INT64 = np.dtype(np.int64)
STEPS_AT_ONCE = 1 << 16  # that `skip` passes between two looks at the keyboard, for few arms
NOT_PULLED = "not pulled"


class Agent(AgentView):
    """A learner: it says which arms to pull, and is shown what was seen of them.

    Made by `TSDE` or `make_learner`, or by `restore` from a snapshot. One thread at a time may use
    it.
    """

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
        self, states: ArrayLike, arms: ArrayLike | None = None, missing: str | None = None,
        *, lost: ArrayLike = (),
    ) -> None:  # fmt: skip
        """Show the agent the states of the selected arms, in the order of the arms.

        Arms that are always seen must be shown too, selected or not: their states in the next step.
        Then the order is that of `awaited`. What is impossible raises a `ProblemError` and leaves
        the agent as it was.

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
        lost
            Arms that are always seen and were not seen in this step: nothing is learned of them.
            Do not pull them before `place` has said in which state they are.
        """
        with self._alone:
            count = self._pulled
            if count is None:
                raise ProblemError("nothing was selected: call select() before observe()")
            if missing not in (None, NOT_PULLED):
                raise ProblemError(f"missing must be {NOT_PULLED!r} or None, got {shown(missing)}")
            selected = None
            if self._always:
                self._observe_shown(count, states, arms, missing, lost)
                self._pulled = None
                return
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
            answer = online.see(self._where, count, count, *self._parts)
            if answer != online.TAKEN_IN:
                self._see(answer, count, count, selected)
            self._pulled = None

    def place(self, arms: ArrayLike, states: ArrayLike) -> None:
        """Say in which states arms that are always seen are now, after steps that showed them not.

        Nothing is learned from it. Call it between `observe` and `select`.
        """
        with self._alone:
            if self._pulled is not None:
                raise self._selected_already()
            some = checked_arms(arms, self.task.num_arms, "arms")
            strangers = [k for k in some.tolist() if k not in self._always]
            if strangers:
                raise ProblemError(
                    f"arm {strangers[0]} is not always seen; pull it to see its state"
                )
            found = checked_states(states, some, self.prior.typical)
            for k, state in zip(some.tolist(), found.tolist(), strict=True):
                if not 0 <= state < self.task.choices.sizes[k]:
                    raise self._no_such_state(k, state)
            self._put(some, found)

    def skip(self, num_steps: int = 1) -> None:
        """Let steps pass in which no arm is pulled."""
        with self._alone:
            if self._pulled is not None:
                raise self._selected_already()
            if self._always:
                raise ProblemError(
                    f"arm {min(self._always)} is always seen, so no step passes without its state: "
                    "call select(num_pulls=0), then observe(states)"
                )
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
            if k in self._always:
                raise ProblemError(
                    f"arm {k} is always seen: its state is shown in every step and cannot come late"
                )
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

    def __deepcopy__(self, memo: dict[int, Any]) -> Agent:
        from restive.learn.snapshots import restore

        return restore(self.snapshot(), self.task.mapping)

    def __reduce__(self) -> Any:
        from restive.learn.snapshots import restore

        return restore, (self.snapshot(), self.task.mapping)

    def _choose(self, event: int, wanted: int, mask: NDArray[np.bool_] | None) -> None:
        """Do what Python must before arms can be chosen, until they are."""
        while event != steps.GO:
            if event == steps.ASK:
                self._chosen[:wanted] = self._asked(wanted, mask)
                return
            self._respond(event)
            event = online.select(self._where, wanted, *self._parts)

    def _asked(self, wanted: int, mask: NDArray[np.bool_] | None) -> IntArray:
        """Return the arms that a policy without ranks pulls."""
        policy, bandit = self._learner_state.policy, self._learner_state.followed
        assert policy is not None
        assert bandit is not None
        if wanted != self.task.num_pulls or mask is not None:
            raise ProblemError(
                f"policy mapping {self.task.mapping_name!r} gives no index, so pulls and arms "
                "cannot be narrowed for a step"
            )
        return checked_choice(policy, bandit, self.belief_state)

    def _respond(self, event: int) -> None:
        self._learner_state.respond(event)
        self._hold_new()

    def _set_available(self, mask: NDArray[np.bool_] | None) -> None:
        self._masked = mask is not None
        self._actor.role["masked"] = self._masked
        if mask is None:
            return
        if not len(self._actor.available):  # made when it is first needed
            self._learner_state.actor = self._learner_state.actor._replace(
                available=np.ones_like(mask)
            )
            self._hold()
        self._actor.available[:] = mask

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

    def _require_same(self, wanted: int, mask: NDArray[np.bool_] | None) -> None:
        """Raise unless what was selected answers this question too."""
        selected = self._chosen[: self._pulled]
        if wanted != len(selected) or (mask is not None and not mask[selected].all()):
            raise self._selected_already()

    def _selected_already(self) -> ProblemError:
        selected = self._chosen[: self._pulled].tolist()
        return ProblemError(f"arms {selected!s:.60} were selected already; observe them first")

    def _put(self, arms: IntArray, states: IntArray) -> None:
        """Take these states as those in which arms that are always seen were seen last."""
        meta = self._actor.meta
        meta.last_state[arms], meta.seen[arms] = states, self.time - 1
        self._follow_again()

    def _follow_again(self) -> None:
        """Place all arms anew, since it was said from outside when they were seen."""
        if not self._learner_state.is_drawn and self._has_posterior:
            self._actor.lookup.mode["stands"] = -1
            online.follow_again(self._where, *self._with_particles)

    def _observe_shown(
        self, count: int, states: ArrayLike, arms: ArrayLike | None, missing: str | None,
        lost: ArrayLike,
    ) -> None:  # fmt: skip
        """Take in what was seen of selected arms, and of all that are always seen."""
        selected, awaited = self._chosen[:count].copy(), self._shown(count)
        given = awaited if arms is None else checked_arms(arms, self.task.num_arms, "arms")
        strangers = np.setdiff1d(given, awaited)
        if len(strangers):
            raise ProblemError(
                f"arm {strangers[0]} was not selected and is not always seen; states are expected "
                f"of the arms {awaited.tolist()!s:.60}"
            )
        left_out = np.asarray(lost, dtype=np.int64)
        unseen = np.setdiff1d(self.task.always_seen, np.union1d(given, left_out))
        if len(unseen):
            raise ProblemError(
                f"arm {unseen[0]} is always seen, and its state is missing: show the states of all "
                "such arms in every step, or name those that were not seen as lost"
            )
        if np.shape(states) != given.shape:
            raise ProblemError(
                f"states are expected of the {len(given)} arms {given.tolist()!s:.60} (awaited), "
                f"got shape {np.shape(states)}"
            )
        found = checked_states(states, given, self.prior.typical)
        pulled = np.isin(given, selected)
        if pulled.sum() < count:
            others = np.setdiff1d(selected, self.task.always_seen)
            self._checked_part(others, np.setdiff1d(given, self.task.always_seen), missing)
        order = np.argsort(~pulled, kind="stable")  # those pulled come first
        shown = len(given)
        self._chosen[:shown], self._states[:shown] = given[order], found[order]
        count = int(pulled.sum())
        answer = online.see(self._where, count, shown, *self._parts)
        if answer != online.TAKEN_IN:
            self._see(answer, count, shown, selected)
        if len(left_out):  # they stay where they are, and are not looked up
            self._put(left_out, self._actor.meta.last_state[left_out])

    def _see(self, answer: int, count: int, shown: int, selected: IntArray | None) -> None:
        """Take in what was seen, after a first try that did not succeed, or say why it cannot.

        `selected` are the arms to put back then, where only some of them were seen.
        """
        if answer == online.NOTES_FULL:
            self._count_notes()
            answer = online.see(self._where, count, shown, *self._parts)
        if answer == online.TAKEN_IN:
            return
        arms, states = self._chosen[:shown].tolist(), self._states[:shown].tolist()
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
                if not self.prior.moves_alike(k):
                    raise ProblemError(
                        f"arm {k} was selected and not seen, and it moves differently when pulled: "
                        "pass missing='not pulled' if it was not pulled (or if that is close "
                        "enough for you)"
                    )
        return seen

    def _late(self, k: int, state: int, time: int) -> None:
        last_state, seen_at = self.last_seen(k)
        what = k, state, time, self._learner_state.weight_left(time)
        answer = online.late_sighting(self._where, *what, *self._with_particles)
        if answer == online.NOTES_FULL:
            self._count_notes()
            answer = online.late_sighting(self._where, *what, *self._with_particles)
        if answer != online.TAKEN_IN:
            raise self._impossible(k, state)
        if what[3] < 1.0 and self._particle_keeper.has(self._group(k)):
            self._count_notes()  # in full
            lost = last_state, time - seen_at, state, 1.0 - what[3]
            self._particle_keeper.lose(self._group(k), *lost)
            self._learner_state.use_particles()
            self._hold_new()

    def _require_narrowing(self, what: str) -> None:
        if isinstance(self.learner, Compiled) and not self.learner.narrows:
            raise ProblemError(f"learner {self.learner.name} cannot {what}")

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
