"""The kinds and arms that a prior, or a prior file, gives to a new live agent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from restive.errors import ProblemError
from restive.learn.priors.finite import JointPrior
from restive.learn.priors.independent import IndependentPrior
from restive.live.clock import Clock
from restive.live.people.roster import ALL, KindPrior, NewArm
from restive.logs.prior_file import PriorFile
from restive.problem.arm import Arm
from restive.problem.beliefs import BeliefState

__all__ = ["arm_of_prior_file", "arms_of_prior", "states_of_prior", "ticks_since_log"]


def arms_of_prior(
    prior: Any, names: Sequence[str] | None, start: BeliefState | None, clock: Clock
) -> tuple[dict[str, KindPrior | JointPrior], list[NewArm]]:
    """Return the kinds and arms of a prior, or of a prior file, that a live agent begins with."""
    if isinstance(prior, PriorFile):
        if names is not None or start is not None:
            raise ProblemError("a prior file has the arms' names and start: leave names and start")
        since = ticks_since_log(prior, clock)
        arms = [arm_of_prior_file(prior, k, since) for k in range(len(prior.names))]
        return dict(prior.kinds), arms
    if isinstance(prior, JointPrior):
        kinds: dict[str, Any] = {ALL: prior}
        kind_of = [ALL] * prior.num_arms
    elif isinstance(prior, IndependentPrior):
        kinds, kind_of = _kinds_of(prior)
    else:
        raise ProblemError(
            f"prior must be an IndependentPrior, a JointPrior or what load_prior returned, got "
            f"{type(prior).__name__}"
        )
    given = [str(k) for k in range(prior.num_arms)] if names is None else list(names)
    if len(given) != prior.num_arms:
        raise ProblemError(f"the prior has {prior.num_arms} arms, {len(given)} names were given")
    if start is not None and start.num_arms != prior.num_arms:
        raise ProblemError(f"the prior has {prior.num_arms} arms, the start {start.num_arms}")
    arms = [NewArm(name, kind) for name, kind in zip(given, kind_of, strict=True)]
    if start is not None:
        ages = zip(arms, start.last_state.tolist(), start.elapsed.tolist(), strict=True)
        arms = [NewArm(arm.name, arm.kind, state, age) for arm, state, age in ages]
    for number, pool in enumerate(prior.pooled if isinstance(prior, IndependentPrior) else ()):
        for k in pool:
            arms[k] = arms[k]._replace(pool=number)
    return kinds, arms


def states_of_prior(prior: Any) -> tuple[str, ...]:
    """Return the names of states that a prior gives all arms; none where arms differ."""
    if isinstance(prior, PriorFile):
        return prior.states
    arms = prior.bandits[0].arms if isinstance(prior, JointPrior) else prior.arms
    found = {arm.states for arm in {id(arm): _typical_arm(arm) for arm in arms}.values()}
    return (found.pop() if len(found) == 1 else None) or ()


def _typical_arm(arm: Arm | KindPrior) -> Arm:
    return arm if isinstance(arm, Arm) else arm.typical


def ticks_since_log(found: PriorFile, clock: Clock) -> int | None:
    """Ticks from the last step of a prior file's log to tick 0; None where dates do not tell."""
    log: Any = found.log
    span = log.get("span") if isinstance(log, dict) else None
    last = span.rpartition(" to ")[2] if isinstance(span, str) else ""
    if not clock.has_dates or "-" not in last:  # which numbers of steps do not have
        return None
    try:
        ticks = -clock.tick_of(last, before=True)
    except ProblemError:
        return None
    if ticks < 1:
        raise ProblemError(
            f"the log that the prior was fitted to goes on until {last}, but the first tick "
            f"begins {clock.start}; say a later start"
        )
    return ticks


def arm_of_prior_file(found: PriorFile, k: int, since: int | None = None) -> NewArm:
    """Return arm k of a prior file, `since` ticks after its log's last step; by default one."""
    data, size = found.evidence(k).to_data(), len(found.states)
    cells = data["cells"] + [[s + size, *rest] for s, *rest in data.get("unpulled_cells", [])]
    return NewArm(
        name=found.names[k],
        kind=found.kind_of[k],
        last_state=int(found.start.last_state[k]),
        elapsed=int(found.start.elapsed[k]) + (since or 1) - 1,
        evidence=tuple((int(a), int(b), int(c), int(d)) for a, b, c, d in cells),
    )


def _kinds_of(prior: IndependentPrior) -> tuple[dict[str, Any], list[str]]:
    """Arms that share a prior are of one kind; kinds are numbered where there are several."""
    labels: dict[int, str] = {}
    for arm in prior.arms:
        labels.setdefault(id(arm), str(len(labels)))
    if len(labels) == 1:
        labels = dict.fromkeys(labels, ALL)
    kinds = {labels[id(arm)]: arm for arm in prior.arms}
    return kinds, [labels[id(arm)] for arm in prior.arms]
