"""Who the arms are: names, kinds, and what was known of them when they joined.

An arm has a slot, a number that is its own for ever. Names are opaque: nothing else about a person
or a line needs to be in the file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from restive.arguments import checked_count, shown, suggestion
from restive.errors import ProblemError
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior, JointPrior
from restive.learn.priors.independent import IndependentPrior, Prior
from restive.live.words import PLAIN
from restive.logs.prior_file import PriorFile, counts_of_arms, evidence_of_rows
from restive.problem.beliefs import BeliefState

__all__ = [
    "ALL",
    "LONG_AGO",
    "KindPrior",
    "NewArm",
    "Roster",
    "arms_from_data",
    "arms_to_data",
    "checked_name",
    "no_kind",
]

KindPrior = ArmPrior | DirichletArmPrior

ALL = "all"  # the kind of arms where there is one kind
LONG_AGO = 1 << 20  # steps: of an arm of which nothing is known, near its long-run law
MOST_NAME = 200


class NewArm(NamedTuple):
    """An arm that joins."""

    name: str
    kind: str
    last_state: int | None = None  # None: nothing is known
    elapsed: int = LONG_AGO
    # cells, as `Evidence.to_data` has them, the unpulled ones with S + s for the last state s
    evidence: tuple[tuple[int, int, int, int], ...] = ()
    pool: int | None = None  # number of the pool of identical arms that it is one of


class Pays(NamedTuple):
    """What an arm pays when it is pulled."""

    rewards: tuple[float, ...]  # [S]
    low: float
    high: float


class Roster:
    """All arms that have ever joined, by slot.

    Parameters
    ----------
    kinds
        What arms of each kind may be; one joint prior of all arms under `ALL` instead.
    """

    def __init__(self, kinds: Mapping[str, KindPrior | JointPrior]) -> None:
        self.kinds = dict(kinds)
        self.noun = PLAIN.arm  # what an arm is called in messages
        prior = next(iter(self.kinds.values()))
        self.joint = prior if isinstance(prior, JointPrior) else None  # the prior of all arms
        self.names: list[str] = []
        self.slots: dict[str, int] = {}
        self._folded: tuple[int, dict[str, list[str]]] = (
            0,
            {},
        )  # of so many names
        self.kind_of: list[str] = []
        self.arms: list[NewArm] = []  # as they joined
        self._always: dict[str | int, bool] = {}  # by kind, or by slot under a joint prior
        self._pays: dict[str | int, Pays] = {}  # by kind, or by slot under a joint prior
        self._priors: list[KindPrior] = []  # [slots], of those in `_unread` without their evidence
        self._unread: list[int] = []  # slots with evidence that is not taken in yet
        self._pools: dict[int, list[int]] = {}  # slots of identical arms

    def __len__(self) -> int:
        return len(self.names)

    def slot(self, name: Any) -> int:
        """Return an arm's slot, or raise."""
        found = self.slots.get(name) if isinstance(name, str) else None
        if found is None:
            # numbers of people are alike, so that a guess must be close to be of use
            word = name if isinstance(name, str) else shown(name)
            same = self.same_but_for_capitals(word)
            same = same or [one for one in self.names if one.startswith(f"{word} ")]  # unquoted
            if same:
                meant = f"did you mean {' or '.join(shown(one) for one in same[:3])}?"
                raise ProblemError(f"there is no {self.noun} {shown(name)}; {meant}")
            near = suggestion(word, self.names, 0.8) if 0 < len(self.names) <= 1000 else ""
            says = near.startswith("did") or 0 < len(self.names) <= 10
            raise ProblemError(
                f"there is no {self.noun} {shown(name)}" + (f"; {near}" if says else "")
            )
        return found

    def same_but_for_capitals(self, name: str) -> list[str]:
        """Return the names that differ from this one by capitals alone, or are it."""
        if self._folded[0] != len(self.names):
            folded: dict[str, list[str]] = {}
            for one in self.names:
                folded.setdefault(one.casefold(), []).append(one)
            self._folded = (len(self.names), folded)
        return self._folded[1].get(name.casefold(), [])

    def num_states(self, slot: int) -> int:
        """The number of states of an arm."""
        return len(self.pays(slot).rewards)

    @cached_property
    def most_states(self) -> int:
        """The largest number of states of an arm."""
        if self.joint is not None:
            return max(arm.num_states for arm in self.joint.bandits[0].arms)
        return max(_num_states(prior) for prior in self.kinds.values())

    def pays(self, slot: int) -> Pays:
        """What an arm pays when it is pulled."""
        key = self.kind_of[slot] if self.joint is None else slot
        found = self._pays.get(key)
        if found is None:
            rewards = tuple(_typical(self.kinds[self.kind_of[slot]], slot).rewards.tolist())
            found = self._pays[key] = Pays(rewards, min(rewards), max(rewards))
        return found

    @cached_property
    def pays_unpulled(self) -> bool:
        """Whether some arm pays while it is not pulled."""
        if self.joint is not None:
            return any(arm.pays_unpulled for arm in self.joint.bandits[0].arms)
        priors: Any = self.kinds.values()
        return any(prior.typical.pays_unpulled for prior in priors)

    def rewards_by_group(self) -> dict[int, tuple[float, ...]]:
        """Rewards [S] by a kind's number, or by slot under a joint prior."""
        if self.joint is not None:
            return {slot: self.pays(slot).rewards for slot in range(len(self))}
        kinds = enumerate(self.kinds.values())
        return {number: tuple(_typical(prior, 0).rewards.tolist()) for number, prior in kinds}

    def groups_always_seen(self) -> set[int]:
        """Those of the groups of `rewards_by_group` that are seen in every tick."""
        if self.joint is not None:
            return {slot for slot in range(len(self)) if self.always_seen(slot)}
        kinds = enumerate(self.kinds.values())
        return {number for number, prior in kinds if _typical(prior, 0).seen == "always"}

    @cached_property
    def all_possible(self) -> bool:
        """Whether every state can be seen of every arm at any time, whatever was seen before."""
        return all(_rules_nothing_out(prior) for prior in self.kinds.values())

    def always_seen(self, slot: int) -> bool:
        """Whether an arm is seen in every tick, pulled or not."""
        key = self.kind_of[slot] if self.joint is None else slot
        found = self._always.get(key)
        if found is None:
            like = _typical(self.kinds[self.kind_of[slot]], slot)
            found = self._always[key] = like.seen == "always"
        return found

    @cached_property
    def some_always_seen(self) -> bool:
        """Whether some arm is seen in every tick."""
        if self.joint is not None:
            return any(arm.always_seen for arm in self.joint.bandits[0].arms)
        return any(_typical(prior, 0).seen == "always" for prior in self.kinds.values())

    def unknown_now(
        self, tick: int, slots: Iterable[int], joined: Sequence[int] | None = None
    ) -> set[int]:
        """Those of arms new in a tick that are always seen, but not in the step before it."""
        if not self.some_always_seen:
            return set()
        return {
            slot
            for slot in slots
            if self.always_seen(slot)
            and (
                self.arms[slot].last_state is None
                or self.arms[slot].elapsed + tick - (joined[slot] if joined else tick) != 1
            )
        }

    @cached_property
    def moves_alike(self) -> bool:
        """Whether all arms move alike, pulled or not."""
        return all(_moves_alike(prior) for prior in self.kinds.values())

    @cached_property
    def may_hide(self) -> bool:
        """Whether a pull that shows no state may have changed how an arm moves."""
        if self.joint is not None:
            return not (self.moves_alike or all(a.always_seen for a in self.joint.bandits[0].arms))
        return not all(
            _moves_alike(prior) or _typical(prior, 0).always_seen for prior in self.kinds.values()
        )

    def checked(self, arms: Sequence[NewArm]) -> None:
        """Raise unless these arms can join."""
        seen: set[str] = set()
        for arm in arms:
            checked_name(arm.name)
            if arm.name in self.slots or arm.name in seen:
                raise ProblemError(
                    f"{self.noun} {arm.name!r} is there twice; names are used once for ever"
                )
            seen.add(arm.name)
            if not isinstance(arm.kind, str) or arm.kind not in self.kinds:
                raise ProblemError(
                    f"{self.noun} {arm.name!r}: {no_kind(arm.kind, list(self.kinds))}"
                )
            if arm.last_state is None or self.joint is not None:
                continue
            size = _num_states(self.kinds[arm.kind])
            checked_count(arm.last_state, f"{self.noun} {arm.name!r}: last state", 0, size - 1)
            checked_count(arm.elapsed, f"{self.noun} {arm.name!r}: elapsed")
            evidence_of_rows(arm.evidence, size)

    def add(self, arms: Iterable[NewArm]) -> None:
        """Let arms in; they were checked."""
        for arm in arms:
            slot = len(self.names)
            self.names.append(arm.name)
            self.slots[arm.name] = slot
            self.kind_of.append(arm.kind)
            self.arms.append(arm)
            prior: Any = self.kinds[arm.kind]
            self._priors.append(prior)
            if arm.evidence:
                self._unread.append(slot)
            if arm.pool is not None:
                self._pools.setdefault(arm.pool, []).append(slot)

    def prior(self, count: int) -> Prior:
        """Return what the first `count` arms may be, given what was known when they joined."""
        if self.joint is not None:
            return self.joint
        if self._unread:
            self._take_in_evidence()
        return IndependentPrior(self._priors[:count], self._pools.values())

    def forget_logs(self, slots: Iterable[int]) -> None:
        """Let arms be what their kind may be, whatever a log said of them before they joined."""
        for slot in slots:
            if self.arms[slot].evidence:
                self.arms[slot] = self.arms[slot]._replace(evidence=())
                prior: Any = self.kinds[self.kind_of[slot]]
                self._priors[slot] = prior
        self._unread = [slot for slot in self._unread if self.arms[slot].evidence]

    def informing(self, slot: int) -> Sequence[int]:
        """Slots, ascending, of arms whose sightings tell of an arm: its own, its pool's, or all."""
        if self.joint is not None:
            return range(len(self))
        pool = self.arms[slot].pool
        return [slot] if pool is None else self._pools[pool]

    def _take_in_evidence(self) -> None:
        kinds = {kind: one for kind, one in self.kinds.items() if not isinstance(one, JointPrior)}
        by_size: dict[int, list[int]] = {}
        for slot in self._unread:
            by_size.setdefault(self.num_states(slot), []).append(slot)
        for size, slots in by_size.items():
            some = [self.arms[slot] for slot in slots]
            states = [arm.last_state or 0 for arm in some]
            start = BeliefState(states, [arm.elapsed for arm in some])
            rows = [
                {"name": arm.name, "last_state": state, "evidence": list(arm.evidence)}
                for arm, state in zip(some, states, strict=True)
            ]
            found = PriorFile(
                names=tuple(arm.name for arm in some),
                states=(),
                kinds=kinds,
                kind_of=tuple(arm.kind for arm in some),
                start=start,
                counts=counts_of_arms(rows, size, start),
                log={},
            )
            for slot, prior in zip(slots, found.prior.arms, strict=True):
                self._priors[slot] = prior
        self._unread.clear()

    def start(self, slots: range) -> tuple[list[int], list[int]]:
        """In which state arms were last seen when they joined, and how long before."""
        states = []
        for slot in slots:
            known = self.arms[slot].last_state
            states.append(self.num_states(slot) - 1 if known is None else known)
        return states, [1 if self.always_seen(k) else self.arms[k].elapsed for k in slots]


def no_kind(kind: Any, kinds: Sequence[str]) -> str:
    """Say that a kind is not there, and what to do; a name that is close is likely a slip."""
    near = suggestion(kind, kinds, 0.8)
    alike = [one for one in kinds if one.casefold() == str(kind).casefold()]
    if alike:
        return f"there is no kind {shown(kind)}; did you mean {alike[0]!r}?"
    if near.startswith("did"):
        return f"there is no kind {shown(kind)}; {near}"
    return (
        f"there is no kind {shown(kind)}, and kinds are fixed when the file is made: take the one "
        f"that is most alike ({', '.join(kinds)}), or make a file of its own for the new kind"
    )


def arms_to_data(arms: Sequence[NewArm], kinds: Sequence[str]) -> dict[str, Any]:
    """Return arms as plain data: kinds by their number, what is not known left out."""
    places = {kind: number for number, kind in enumerate(kinds)}
    pools = {str(i): arm.pool for i, arm in enumerate(arms) if arm.pool is not None}
    return {
        "names": [arm.name for arm in arms],
        "kinds": [places[arm.kind] for arm in arms],
        "seen": {
            str(i): [arm.last_state, arm.elapsed]
            for i, arm in enumerate(arms)
            if arm.last_state is not None
        },
        "evidence": {str(i): arm.evidence for i, arm in enumerate(arms) if arm.evidence},
        **({"pools": pools} if pools else {}),
    }


def arms_from_data(data: dict[str, Any], kinds: Sequence[str]) -> list[NewArm]:
    """Return the arms that `arms_to_data` wrote."""
    found = [
        NewArm(name, kinds[kind]) for name, kind in zip(data["names"], data["kinds"], strict=True)
    ]
    for at, (state, age) in data["seen"].items():
        found[int(at)] = found[int(at)]._replace(last_state=state, elapsed=age)
    for at, cells in data["evidence"].items():
        found[int(at)] = found[int(at)]._replace(evidence=tuple(tuple(cell) for cell in cells))
    for at, pool in data.get("pools", {}).items():
        found[int(at)] = found[int(at)]._replace(pool=pool)
    return found


def _num_states(prior: KindPrior | JointPrior) -> int:
    """The number of states of an arm of a kind."""
    assert not isinstance(prior, JointPrior)
    return prior.num_states if isinstance(prior, DirichletArmPrior) else (
        prior.candidates[0].num_states
    )  # fmt: skip


def _typical(prior: KindPrior | JointPrior, slot: int) -> Any:
    """Something that has the rewards of an arm."""
    if isinstance(prior, DirichletArmPrior):
        return prior
    return prior.bandits[0].arms[slot] if isinstance(prior, JointPrior) else prior.candidates[0]


def _rules_nothing_out(prior: KindPrior | JointPrior) -> bool:
    """Whether a candidate that can do everything is among the possible ones; it stays possible.

    Of particles one cannot say so: their numbers are rounded.
    """
    if isinstance(prior, DirichletArmPrior):
        return False
    systems = (
        [bandit.arms for bandit in prior.bandits]
        if isinstance(prior, JointPrior)
        else [(candidate,) for candidate in prior.candidates]
    )
    return any(
        weight > 0 and all((arm.active > 0).all() and (arm.passive > 0).all() for arm in arms)
        for arms, weight in zip(systems, prior.weights.tolist(), strict=True)
    )


def _moves_alike(prior: KindPrior | JointPrior) -> bool:
    """Whether arms of a kind move alike, pulled or not."""
    if isinstance(prior, DirichletArmPrior):
        return prior.passive is None
    if isinstance(prior, JointPrior):
        arms = [arm for bandit in prior.bandits for arm in bandit.arms]
    else:
        arms = list(prior.candidates)
    return all(np.array_equal(arm.active, arm.passive) for arm in arms)


def checked_name(name: Any) -> str:
    """Return an arm's name, or raise."""
    if not isinstance(name, str) or not name.strip() or len(name) > MOST_NAME:
        raise ProblemError(
            f"an arm's name must be a text of 1 to {MOST_NAME} letters, got {shown(name)}"
        )
    if not name.isprintable() or name != name.strip():
        raise ProblemError(f"arm {name!r}: a name has no line breaks and no blanks at its ends")
    return name
