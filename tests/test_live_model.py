"""A live agent against a plain model of what it should know, whatever is done to it."""

import shutil
import tempfile
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import restive as rs
from live_cases import PRIORS, created
from restive.errors import ConflictError, JumpError, ProblemError
from restive.live.people.roster import LONG_AGO
from restive.live.told.answers import RefusedError

STATES = st.integers(0, 1)
KEPT = (
    "tick", "decided", "results", "instead", "arms", "waiting", "gone", "last", "evidence"
)  # fmt: skip


class LiveMachine(RuleBasedStateMachine):
    """The model: decisions, results by (tick, arm), and what was learned of each arm, as counts."""

    @initialize(num_arms=st.integers(3, 6))
    def begin(self, num_arms):
        self.folder = Path(tempfile.mkdtemp())
        self.path = self.folder / "a.db"
        self.live = created(self.path, num_arms=num_arms, clock=rs.Clock.given())
        self.law = PRIORS["equal"](1).arms[0]
        self.tick = -1
        self.decided: dict[int, tuple[str, ...]] = {}
        self.results: dict[tuple[int, str], int | str] = {}
        self.instead: set[tuple[int, str]] = set()
        self.arms = [str(k) for k in range(num_arms)]
        self.waiting: dict[str, int] = {}  # name -> tick of its last sighting
        self.gone: set[str] = set()
        self.last = dict.fromkeys(self.arms, (1, -LONG_AGO))  # state and tick
        self.evidence = {name: rs.Evidence(2) for name in self.arms}
        self.before: list[dict[str, object]] = []
        self.noun = "arm"  # which undoing an act leaves alone

    def teardown(self):
        if hasattr(self, "folder"):
            self.live.close()
            shutil.rmtree(self.folder)

    def remember(self):
        """Keep the model as it is before an act, for when that is undone."""
        self.before.append({name: deepcopy(getattr(self, name)) for name in KEPT})

    @precondition(lambda self: self.before)
    @rule(data=st.data())
    def undo(self, data):
        for _ in range(data.draw(st.integers(1, min(4, len(self.before))))):
            self.live.undo()
            vars(self).update(self.before.pop())
        if not self.before:
            with pytest.raises(ProblemError, match="nothing to undo"):
                self.live.undo()

    def learn(self, name, tick, state):
        before, at = self.last[name]
        self.evidence[name].add(before, tick - at, state)
        self.last[name] = (state, tick)

    @rule(gap=st.integers(1, 5), pulls=st.none() | st.integers(0, 2), data=st.data())
    def decide(self, gap, pulls, data):
        self.remember()
        free = [name for name in [*self.arms, *self.waiting] if name not in self.gone]
        out = data.draw(st.sets(st.sampled_from(sorted(free)), max_size=2)) if free else set()
        most = len(free) - len(out)
        if pulls is not None and pulls > most:
            pulls = most
        for (tick, name), result in sorted(self.results.items()):
            if tick == self.tick and isinstance(result, int):
                self.learn(name, tick, result)
        for name, at in self.waiting.items():
            self.arms.append(name)
            self.last[name] = (0, at)
            self.evidence[name] = rs.Evidence(2)
        self.waiting = {}
        before = self.tick
        self.tick += gap
        if gap > 1:
            with pytest.raises(JumpError):
                self.live.decide(tick=self.tick)
        decision = self.live.decide(tick=self.tick, num_pulls=pulls, unavailable=out, skip=gap > 1)
        assert len(decision.arms) == (min(2, most) if pulls is None else pulls)
        assert set(decision.arms) <= set(free) - out
        self.decided[self.tick] = decision.arms
        for name in self.decided.get(before, ()):
            self.results.setdefault((before, name), "unseen")

    @precondition(lambda self: self.tick >= 0)
    @rule(data=st.data(), twice=st.booleans())
    def record_parts(self, data, twice):
        open_ = [n for n in self.decided[self.tick] if (self.tick, n) not in self.results]
        if not open_:
            return
        some = data.draw(st.lists(st.sampled_from(open_), unique=True, min_size=1))
        words = st.one_of(STATES, st.sampled_from(["unseen", "not-pulled"]))
        given = {name: data.draw(words) for name in some}
        self.remember()
        receipt = self.live.record(given)
        assert (receipt.new, receipt.known) == (len(given), 0)
        self.results |= {(self.tick, name): value for name, value in given.items()}
        if twice:
            assert self.live.record(dict(reversed(given.items()))).known == len(given)

    @precondition(
        lambda self: any(isinstance(r, int) for r in getattr(self, "results", {}).values())
    )
    @rule(data=st.data())
    def contradict(self, data):
        known = sorted(k for k, r in self.results.items() if isinstance(r, int))
        tick, name = data.draw(st.sampled_from(known))
        given = {name: 1 - self.results[tick, name]}
        ours, others = ({}, given) if (tick, name) in self.instead else (given, {})
        with pytest.raises(RefusedError) as refused:
            self.live.record(ours, tick, instead=others)
        assert refused.value.mistakes[0].conflict

    @precondition(lambda self: self.tick > 0)
    @rule(data=st.data(), state=STATES)
    def come_late(self, data, state):
        missing = sorted(k for k, r in self.results.items() if r == "unseen" and k[0] < self.tick)
        if not missing:
            return
        tick, name = data.draw(st.sampled_from(missing))
        self.remember()
        receipt = self.live.record({name: state}, tick)
        self.results[tick, name] = state
        if tick > self.last[name][1]:
            assert receipt.late == 1
            self.learn(name, tick, state)
        else:
            assert receipt.superseded == 1

    @precondition(lambda self: self.tick >= 0)
    @rule(data=st.data(), state=STATES)
    def pull_instead(self, data, state):
        free = [n for n in self.arms if (self.tick, n) not in self.results
                and n not in self.decided[self.tick]]  # fmt: skip
        if not free:
            return
        name = data.draw(st.sampled_from(free))
        self.remember()
        assert self.live.record({}, instead={name: state}).new == 1
        self.results[self.tick, name] = state
        self.instead.add((self.tick, name))

    @rule(age=st.integers(1, 9))
    def join(self, age):
        name = f"new {len(self.arms) + len(self.waiting)}"
        if name in self.arms or len(self.arms) > 9:
            return
        self.remember()
        assert self.live.join([name], {name: (0, age)}).new == 1
        self.waiting[name] = max(self.tick, 0) - age

    @rule(data=st.data())
    def leave(self, data):
        there = sorted({*self.arms, *self.waiting} - self.gone)
        if len(there) < 3:
            return
        name = data.draw(st.sampled_from(there))
        self.remember()
        assert self.live.leave([name]).new == 1
        self.gone.add(name)

    @rule(how=st.sampled_from(["close", "leave it open", "drop snapshots"]))
    def reopen(self, how):
        if how == "drop snapshots":
            self.live._session.journal.connection.execute("DELETE FROM snapshot")
        if how != "leave it open":
            self.live.close()
        self.live = rs.LiveAgent.open(self.path, durability="process")

    @rule(noun=st.sampled_from(["patient", "line", "<b>"]))
    def rename(self, noun):
        self.live.set_words({"arm": noun})
        self.noun = noun

    @rule()
    def keep_snapshot(self):
        self.live.snapshot()

    @invariant()
    def decisions_stay(self):
        if not hasattr(self, "decided") or self.tick < 0:
            return
        assert self.live.decide(tick=self.tick).arms == self.decided[self.tick]
        assert self.live.settings.words.arm == self.noun
        for name in self.arms:
            if name not in self.waiting:
                assert self.live.explain(name).listed == (name in self.decided[self.tick])
        assert all(self.live.decision(t).arms == arms for t, arms in self.decided.items())
        if self.tick > 0:
            with pytest.raises(ConflictError):
                self.live.decide(tick=self.tick - 1)

    @invariant()
    def results_are_kept(self):
        for tick, arms in getattr(self, "decided", {}).items():
            found = self.live.results(tick)
            expected = {n: r for (t, n), r in self.results.items() if t == tick}
            assert found == {**dict.fromkeys(arms, "open"), **expected}

    @invariant()
    def what_was_learned_is_bayes_rule(self):
        open_ = {n: r for (t, n), r in getattr(self, "results", {}).items() if t == self.tick}
        arms = getattr(self, "arms", [])
        for name in {*arms[:2], *arms[-3:]}:
            seen = self.evidence[name] + rs.Evidence(2)
            if isinstance(open_.get(name), int):
                state, at = self.last[name]
                seen.add(state, self.tick - at, open_[name])
            expected = self.law.given(seen).weights
            np.testing.assert_allclose(self.live.posterior(name).weights, expected, atol=1e-12)

    @invariant()
    def the_journal_is_good(self):
        if hasattr(self, "live"):
            assert self.live.check() == len(self.live.events())


LiveMachine.TestCase.settings = settings(
    max_examples=8,
    stateful_step_count=25,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
TestLiveMachine = LiveMachine.TestCase
