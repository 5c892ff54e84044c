"""What a live agent knows: a pure function of the events of its journal.

Whoever applies the same events has the same memory, to the bit. A decision is recomputed when it is
replayed; where it comes out differently (another version, another processor) the journal is right.
"""

from __future__ import annotations

from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from restive.kernels.random import key_at, stream
from restive.learn.agent import Agent
from restive.learn.learners import learner_of
from restive.learn.make import with_more_arms
from restive.learn.priors.data import runs
from restive.learn.relearning import relearnt, with_memory
from restive.learn.slots import MOST_STEPS
from restive.learn.snapshots import learned_data, load_snapshot
from restive.learn.task import make_task
from restive.live.acts.forgetting import kept_of, remembering
from restive.live.acts.open_tick import Choice, OpenTick
from restive.live.journal.events import Event
from restive.live.people.roster import Roster, arms_from_data
from restive.live.settings import NOT_PULLED, UNSEEN, Settings
from restive.live.told.alarms import ClosedPull, Watches
from restive.problem.beliefs import BeliefState

__all__ = ["Memory"]

IntArray = NDArray[np.int64]

# How often laws of kinds are learnt first: what was assumed without a log is no forecast
LEARNT_BEFORE_BETS = 3
FIRST_AGES = 64  # that have likelihoods at first
AUDIT = 9  # stream of the draws of audit pulls, apart from those in `kernels.random`


class Memory:
    """Everything that follows from a journal so far.

    Parameters
    ----------
    settings, roster
        Of the journal's first event, with the arms of that event.
    """

    def __init__(self, settings: Settings, roster: Roster) -> None:
        self.settings = settings
        self.roster = roster
        roster.noun = settings.words.arm
        self.seq, self.digest = 0, b""
        self.open: OpenTick | None = None
        self.tick = -1  # of the last decision
        self.joined = [0] * len(roster)  # tick at which each arm joined
        self.gone: dict[int, int] = {}  # arms that have left, and when
        # always seen, but not in the last tick: on no list
        self.lost = roster.unknown_now(0, range(len(roster)))
        self.forgotten: dict[int, int] = {}  # arms of which nothing counts before a tick, and it
        self.divergences: list[int] = []  # decisions that came out differently, not yet journaled
        self.agent = self._first_agent()
        self._room_until = 0  # time until which no arm is older than its likelihoods
        self._give_room()
        self.watches = Watches(list(roster.kinds), roster.most_states, roster.joint is None)
        self.ever_seen: set[int] = {
            slot for slot, arm in enumerate(roster.arms) if arm.last_state is not None
        }
        self.pulls: dict[int, int] = {}  # how often each arm was decided, or pulled instead
        self.unseen: dict[int, list[int]] = {}  # by last state: unseen pulls when closed, and all
        self.unanswered: dict[int, int] = {}  # arms whose last pull showed no state, and its tick
        self.rings: list[str] = []  # watches that rang when the last tick was closed

    def _first_agent(self) -> Agent:
        count, settings = len(self.roster), self.settings
        task = make_task(
            self.roster.prior(count),
            settings.num_pulls,
            settings.policy_mapping,
            mixing_time=settings.mixing_time,
            start=BeliefState(*self.roster.start(range(count))),
            max_elapsed=settings.max_elapsed,
            ages=FIRST_AGES,
        )
        return Agent(task, learner_of(settings.learner), settings.seed)

    @property
    def num_available(self) -> int:
        """Arms that have not left."""
        return len(self.roster) - len(self.gone)

    def lost_at(self, tick: int) -> set[int]:
        """Arms that are always seen, whose states are not known when a tick is decided next."""
        new = self.roster.unknown_now(tick, range(self.num_joined, len(self.roster)), self.joined)
        if tick > self.tick + 1:  # in those that pass nobody is seen
            return new.union(self.agent.task.always_seen.tolist())
        if self.open is None:
            return self.lost | new
        return new.union(self.agent.task.always_seen.tolist()).difference(self.open.sightings)

    @property
    def num_joined(self) -> int:
        """Arms that the agent knows; later ones wait for the next decision."""
        return self.agent.task.num_arms

    @property
    def open_sightings(self) -> dict[int, int]:
        """States that were seen in the open tick, by arm, ascending."""
        return {} if self.open is None else self.open.sightings

    @property
    def seen_by_now(self) -> set[int]:
        """Arms that were ever seen, in the open tick too."""
        return self.ever_seen.union(self.open_sightings)

    def apply(self, event: Event, body: dict[str, Any] | None = None) -> None:
        """Take in the next event; its body may be given, to spare reading it."""
        apply = getattr(self, f"_on_{event.kind}", None)
        if apply is not None:
            apply(event, event.body if body is None else body)
        self.pass_over(event)

    def pass_over(self, event: Event) -> None:
        """Let the next event be, since it was withdrawn; know only that it is there."""
        self.seq, self.digest = event.seq, event.digest

    def _on_decide(self, event: Event, body: dict[str, Any]) -> None:
        self.begin_tick(event.tick)
        arms = body["arms"]
        if body.get("kept"):
            self.take(event.tick, self.chosen_by_others(arms, body.get("audit", [])))
            return
        choice = self.choose(event.tick, body["pulls"], body.get("out", []))
        if choice.arms != arms:
            self.divergences.append(event.seq)
            choice = self.chosen_by_others(arms, body.get("audit", []))
        self.take(event.tick, choice)

    def _on_record(self, event: Event, body: dict[str, Any]) -> None:
        assert self.open is not None
        arms = body.get("arms", self.open.choice.arms)
        self.open.results |= dict(zip(arms, body["results"], strict=True))

    def _on_shown(self, event: Event, body: dict[str, Any]) -> None:
        assert self.open is not None
        self.open.shown |= dict(zip(body["arms"], body["results"], strict=True))

    def _on_override(self, event: Event, body: dict[str, Any]) -> None:
        if self.open is not None and event.tick == self.open.tick:
            self.open.instead |= dict(zip(body["arms"], body["results"], strict=True))
        else:
            self._on_late(event, body)

    def _on_late(self, event: Event, body: dict[str, Any]) -> None:
        unused = set(body.get("superseded", ()))
        for arm, state in zip(body["arms"], body["results"], strict=True):
            if isinstance(state, int) and arm not in unused:
                self.see_late(arm, state, event.tick)

    def _on_join(self, event: Event, body: dict[str, Any]) -> None:
        arms = arms_from_data(body, list(self.roster.kinds))
        self.roster.add(arms)
        self.joined += [event.tick] * len(arms)

    def _on_leave(self, event: Event, body: dict[str, Any]) -> None:
        self.gone |= dict.fromkeys(body["arms"], event.tick)
        if self.open is not None:  # nobody waits for their states any more
            for slot in set(body["arms"]).intersection(self.open.unshown):
                self.open.shown[slot] = UNSEEN

    def _on_return(self, event: Event, body: dict[str, Any]) -> None:
        for slot in body["arms"]:
            self.gone.pop(slot, None)

    def _on_words(self, event: Event, body: dict[str, Any]) -> None:
        self.settings = self.settings.after_words(body)
        self.roster.noun = self.settings.words.arm

    def _on_forget(self, event: Event, body: dict[str, Any]) -> None:
        self.forgotten |= dict.fromkeys(body["arms"], body["before"])
        self.roster.forget_logs(body["arms"])
        kept = [one._replace(tick=one.tick + 1) for one in kept_of(body)]  # which is a time
        prior = self.roster.prior(self.num_joined)
        self.agent = relearnt(self.agent, body["arms"], kept, prior)
        self._room_until = 0
        self._give_room()

    def _on_remember(self, event: Event, body: dict[str, Any]) -> None:
        self.agent = with_memory(self.agent, body["ticks"])
        self.settings = remembering(self.settings, body["ticks"])

    def _on_alarm(self, event: Event, body: dict[str, Any]) -> None:
        self.watches.ringing[body["name"]] = event.seq

    def _on_acknowledge(self, event: Event, body: dict[str, Any]) -> None:
        self.watches.restart(body["name"])

    def _on_divergence(self, event: Event, body: dict[str, Any]) -> None:
        self.divergences = [seq for seq in self.divergences if seq not in body["decisions"]]

    def begin_tick(self, tick: int) -> None:
        """Close the tick before and let time pass until this one; arms that wait join."""
        self._close()
        self._pass_until(tick + 1)
        if self.num_joined == len(self.roster):
            self._give_room()
            return
        new = range(self.num_joined, len(self.roster))
        states, ages = self.roster.start(new)
        self.lost |= self.roster.unknown_now(tick, new, self.joined)
        ages = [
            1 if self.roster.always_seen(slot) else age + tick - self.joined[slot]
            for age, slot in zip(ages, new, strict=True)
        ]
        prior: Any = self.roster.prior(len(self.roster))
        self.agent = with_more_arms(self.agent, prior, states, ages)
        self._room_until = 0
        self._give_room()
        self.ever_seen |= {slot for slot in new if self.roster.arms[slot].last_state is not None}

    def _pass_until(self, time: int) -> None:
        """Let steps pass without a list. Nobody is seen in them, not even who always is."""
        agent, always = self.agent, self.agent.task.always_seen
        if agent.time >= time:
            return
        if not len(always):
            agent.skip(time - agent.time)
            return
        while agent.time < time:
            agent.select(0)
            agent.observe([], [], lost=always)
        self.lost = set(always.tolist())

    def _give_room(self, arm: int | None = None, age: int = 0) -> None:
        """Let likelihoods be there for an age of an arm, by default for those of all arms now.

        Where beliefs settle late, tables of all ages would take gigabytes. Those of ages that occur
        have the same numbers.
        """
        agent = self.agent
        if arm is not None:
            missing, steps = agent.task.choices.room_for(np.array([age]), [arm])
        elif agent.time < self._room_until:
            return
        else:
            self._room_until = MOST_STEPS
            missing, steps = agent.task.choices.room_for(agent.belief_state.elapsed)
        if missing:
            longer = 2 * max(missing, agent.task.choices.ages or 0)
            self.agent = load_snapshot(learned_data(agent), None, agent.prior, longer)
            steps = longer - missing
        self._room_until = min(self._room_until, agent.time + steps)

    def choose(self, tick: int, num_pulls: int, out: list[int]) -> Choice:
        """Return the arms to pull in a tick that has begun."""
        return self._foreseen(*self.picked(self.agent, tick, num_pulls, out))

    def picked(
        self, agent: Agent, tick: int, num_pulls: int, out: list[int]
    ) -> tuple[list[int], list[int]]:
        """Have an agent pull arms in a tick: those it selects, and those of an even draw.

        Returns all of them, and those of the draw. The agent is this one's or, where futures are
        drawn, a copy of it.
        """
        num_arms = agent.task.num_arms
        out = out + self.resting(tick, num_pulls, out)
        gone = sorted({slot for slot in self.gone if slot < num_arms} | self.lost.difference(out))
        free = num_arms - len(gone) - len(out)
        audit: list[int] = []
        mask = None
        if gone or out:
            mask = np.ones(num_arms, dtype=bool)
            mask[gone] = False
            mask[out] = False
        count = min(self.settings.audit_pulls, num_pulls)
        if count and free:
            allowed = np.arange(num_arms) if mask is None else np.flatnonzero(mask)
            audit = self._drawn_evenly(tick, allowed, count)
            mask = np.ones(num_arms, dtype=bool) if mask is None else mask
            mask[audit] = False
        wanted = num_pulls - len(audit)
        usual = mask is None and wanted == self.settings.num_pulls
        chosen = agent.select() if usual else agent.select(wanted, mask)
        arms = chosen.tolist()
        if audit:
            arms = sorted(arms + audit)
            agent.pull(arms)
        return arms, audit

    def resting(self, tick: int, num_pulls: int, out: list[int]) -> list[int]:
        """Return arms that were pulled of late without a state being seen, and rest.

        Where too few others are left, those that were pulled first rest no longer.
        """
        left = set(self.gone).union(out, self.lost)
        since = [
            (pulled, arm)
            for arm, pulled in self.unanswered.items()
            if tick - pulled <= self.settings.rest and arm not in left
        ]
        most = max(0, len(self.roster) - len(left) - num_pulls)
        return [arm for _, arm in sorted(since, reverse=True)[:most]]

    def chosen_by_others(self, arms: list[int], audit: list[int]) -> Choice:
        """Take these arms as the tick's decision."""
        self.agent.pull(arms)
        return self._foreseen(arms, audit)

    def take(self, tick: int, choice: Choice) -> None:
        """Make this the open decision."""
        self.tick = tick
        self.open = OpenTick(tick, choice, always=self._always)

    @property
    def _always(self) -> tuple[int, ...]:
        return tuple(k for k in self.agent.task.always_seen.tolist() if k not in self.gone)

    def see_late(self, arm: int, state: int, tick: int) -> None:
        """Learn what was seen at a tick that is closed."""
        self._give_room(arm, tick + 1 - self.agent.last_seen(arm)[1])
        self.agent.observe_late(arm, state, tick + 1)
        self._give_room(arm, self.agent.time - tick - 1)
        self.ever_seen.add(arm)
        if self.unanswered.get(arm, tick + 1) <= tick:
            del self.unanswered[arm]

    def seen_since(self, arm: int, tick: int) -> bool:
        """Whether an arm was seen at this tick or later, in ticks that are closed.

        Or what was seen of it then is forgotten: a result is too late to be used.
        """
        if arm >= self.num_joined or tick < self.forgotten.get(arm, 0):
            return True
        return self.agent.last_seen(arm)[1] >= tick + 1

    def _drawn_evenly(self, tick: int, allowed: IntArray, count: int) -> list[int]:
        """Draw arms without replacement: a function of seed and tick."""
        key = np.uint64(key_at(stream(self.settings.seed, 0, AUDIT), tick))
        pool = allowed.copy()
        for i in range(count):
            j = i + int(key_at(key, i)) % (len(pool) - i)
            pool[[i, j]] = pool[[j, i]]
        return sorted(pool[:count].tolist())

    def _foreseen(self, arms: list[int], audit: list[int]) -> Choice:
        expected, variance = [], []
        for arm, law in zip(arms, self.agent.beliefs(), strict=True):
            mean = square = 0.0
            for chance, reward in zip(law.tolist(), self.roster.pays(arm).rewards, strict=True):
                mean += chance * reward
                square += chance * reward * reward
            expected.append(mean)
            variance.append(max(0.0, square - mean * mean))
        found = self.agent.index_of() if arms else []
        index = [None if isnan(value) else value for value in found]
        return Choice(arms, audit, expected, variance, index)

    def _close(self) -> None:
        """Learn from the open tick, ascending by arm, however its results came in."""
        if self.open is None:
            return
        pulls = self.closed_pulls()
        self.rings = self.watches.close(pulls) if self._knows_kinds else []
        for pull in pulls:
            if pull.last_state is not None:
                counts = self.unseen.setdefault(pull.last_state, [0, 0])
                counts[0] += pull.reward is None
                counts[1] += 1
        lost = self.lost_at(self.tick + 1).intersection(range(self.num_joined))
        now, self.open = self.open, None
        for arm in (*now.choice.arms, *now.instead):
            self.pulls[arm] = self.pulls.get(arm, 0) + 1
        if now.instead:
            self.agent.pull(sorted({*now.choice.arms, *now.instead} - self.lost))
        seen = now.sightings
        states = np.fromiter(seen.values(), np.int64, len(seen))
        if lost or self.lost:
            self._observe_some(seen, lost)
        elif list(seen) == now.choice.arms:
            self.agent.observe(states)
        else:
            self.agent.observe(states, list(seen), missing="not pulled")
        self.ever_seen.update(seen)
        if self.settings.rest:
            for arm in now.choice.arms:
                self.unanswered[arm] = now.tick
            for arm in seen:
                self.unanswered.pop(arm, None)

    def _observe_some(self, seen: dict[int, int], lost: set[int]) -> None:
        """Learn where some that are always seen were not: nothing of those, nor of their return."""
        learned = {arm: state for arm, state in seen.items() if arm not in self.lost}
        away = sorted(lost | self.lost)
        states = np.fromiter(learned.values(), np.int64, len(learned))
        self.agent.observe(states, list(learned), missing="not pulled", lost=away)
        back = [arm for arm in seen if arm in self.lost]
        if back:
            self.agent.place(back, [seen[arm] for arm in back])
        self.lost = lost

    @property
    def _knows_kinds(self) -> bool:
        """Whether forecasts are worth a bet: not before kinds that learn have learnt from arms."""
        return self.agent.kinds_due is None or self.agent.kinds_learnt >= LEARNT_BEFORE_BETS

    def closed_pulls(self) -> list[ClosedPull]:
        """Return the pulls of the open tick as the watches see them once it is over."""
        assert self.open is not None
        now, pulls = self.open, []
        choice = now.choice
        last = self.agent.last_states().tolist()
        rows = zip(choice.arms, choice.expected, choice.variance, last, strict=True)
        for arm, mean, variance, state in rows:
            result = now.results.get(arm)
            if result == NOT_PULLED or self.roster.always_seen(arm):
                continue  # of which the reward was known before: there is nothing to bet on
            rewards, low, high = self.roster.pays(arm)
            known = state if arm in self.ever_seen else None
            reward = rewards[result] if isinstance(result, int) else None
            kind = self.roster.kind_of[arm]
            pulls.append(ClosedPull(kind, known, mean, variance, reward, low, high))
        return pulls

    def to_data(self) -> dict[str, Any]:
        """Return the memory as plain data; what the prior says is not in it."""
        now = self.open
        return {
            "seq": self.seq,
            "digest": self.digest.hex(),
            "agent": learned_data(self.agent),
            "tick": self.tick,
            "open": now and {
                "tick": now.tick,
                "choice": vars(now.choice),
                "results": list(now.results.items()),
                "instead": list(now.instead.items()),
                **({"shown": sorted(now.shown.items())} if now.always else {}),
            },
            "joined": runs([np.array(self.joined)]),
            "gone": list(self.gone.items()),
            **({"lost": sorted(self.lost)} if self.lost else {}),
            **({"forgotten": sorted(self.forgotten.items())} if self.forgotten else {}),
            "divergences": self.divergences,
            "watches": self.watches.to_data(),
            "ever_seen": sorted(self.ever_seen),
            "pulls": sorted(self.pulls.items()),
            "unseen": sorted(self.unseen.items()),
            **({"unanswered": sorted(self.unanswered.items())} if self.settings.rest else {}),
        }  # fmt: skip

    @classmethod
    def from_data(cls, settings: Settings, roster: Roster, data: dict[str, Any]) -> Memory:
        """Return the memory that `to_data` wrote; the roster has all arms that had joined."""
        memory = cls.__new__(cls)
        memory.settings, memory.roster = settings, roster
        roster.noun = settings.words.arm
        memory.forgotten = dict(data.get("forgotten", ()))
        roster.forget_logs(memory.forgotten)
        memory.seq, memory.digest = data["seq"], bytes.fromhex(data["digest"])
        memory.tick = data["tick"]
        count = sum(row[0] for row in data["agent"]["start"])
        memory.agent = load_snapshot(data["agent"], None, roster.prior(count), FIRST_AGES)
        memory._room_until = 0
        memory._give_room()
        memory.joined = [tick for count, tick in data["joined"] for _ in range(count)]
        memory.gone = dict(data["gone"])
        memory.lost = set(data.get("lost", ()))
        memory.divergences = list(data["divergences"])
        memory.ever_seen = set(data["ever_seen"])
        memory.pulls, memory.unseen = dict(data["pulls"]), dict(data["unseen"])
        memory.unanswered = dict(data.get("unanswered", ()))
        memory.rings = []
        memory.watches = Watches(list(roster.kinds), roster.most_states, roster.joint is None)
        memory.watches.load(data["watches"])
        memory.open = None
        if data["open"] is not None:
            now = data["open"]
            memory.open = OpenTick(
                now["tick"], Choice(**now["choice"]), dict(now["results"]), dict(now["instead"]),
                memory._always, dict(now.get("shown", ())),
            )  # fmt: skip
        return memory

    def impossible(self, sightings: dict[int, int]) -> int | None:
        """Return an arm of the open tick whose state the prior rules out; None if all can be."""
        count, lost = self.num_joined, self.lost
        known = {arm: s for arm, s in sightings.items() if arm < count and arm not in lost}
        if not known:
            return None
        pulled = None
        if self.open is not None and self.open.always:
            pulled = {*self.open.choice.arms, *self.open.instead}
        return self.agent.impossible(list(known), list(known.values()), pulled)
