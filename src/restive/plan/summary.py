"""A plan: what the arms of a bandit are like and what each policy mapping would earn on it.

`plan_bandit` collects what `restive plan` prints; `write_index_table` and `plot_indices` write the
indices behind it into a table (.csv, .npz) or a picture. Arms are described by kind, since a bandit
may have very many alike.
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import asdict, dataclass
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from restive.errors import AssumptionError, TooLargeError
from restive.files import replacing, require_target, spreadsheet_text
from restive.pages.figures import FIGURE_SUFFIXES, plot_panels
from restive.plan.evaluate import Value, evaluate
from restive.plan.policies.base import Policy, index_columns
from restive.plan.policies.best_fixed import fixed_reward
from restive.plan.policies.best_index import (
    MOST_ARMS,
    BestIndexPolicy,
    best_index,
)
from restive.plan.policies.lp_priority import lp_priority
from restive.plan.policies.myopic import myopic_table
from restive.plan.policies.registry import policy_mappings
from restive.plan.policies.whittle import WhittleIndex, whittle_index
from restive.plan.recommendation import Earned, Recommendation, recommend
from restive.plan.relaxation import Relaxation, relaxed
from restive.plan.sanity_checks import best_first_hint, fixed_arms_hint
from restive.plan.solved_run import MAX_STATES
from restive.plan.subsidy import checked_discount
from restive.problem.arm import arm_label, replaced_seen
from restive.problem.bandit import Kinds, RestlessBandit, always_seen, kinds_of
from restive.problem.beliefs import settled_elapsed
from restive.problem.chains import mixing_time
from restive.problem.reduction import ReducedKinds, reduce_kinds
from restive.threads import on_all_cores

__all__ = [
    "TABLE_SUFFIXES",
    "ArmSummary",
    "Plan",
    "PolicySummary",
    "SeeingWorth",
    "plan_bandit",
    "plot_indices",
    "ranges",
    "write_index_table",
]

T = TypeVar("T")
TellProgress = Callable[[str, int, int], None]
Tables = dict[str, NDArray[np.float64]]  # of one kind of arm, by the name of the index

# A simulated J may lie this many standard errors above a bound, and any J a rounding error.
SURE = 5
ROUNDING = 1e-6
SURE_95 = 1.96

TABLE_SUFFIXES = (".csv", ".npz")
INDICES = ("whittle", "whittle_upper", "myopic", "lp_priority", "best_index")


@dataclass(frozen=True)
class ArmSummary:
    """One kind of arm."""

    arms: str  # which arms are of this kind, as "0-2, 5"
    name: str | None
    count: int
    num_states: int
    states: tuple[str, ...] | None  # their names
    stationary_reward: float | None  # if always pulled; None where it depends on the start
    own_reward: float  # if never pulled
    mixing_time: int | None  # None where the passive chain has none
    settled_elapsed: int | None  # None where max_elapsed was given instead
    indexable: bool
    limiting_index: float | None  # None where the arm is always seen: it waits for nothing
    seen: str  # "pulled" or "always"


@dataclass(frozen=True)
class PolicySummary:
    """What one policy mapping earns; `note` says what there is to say, or why there is no value.

    `pulls_add` is J without what the arms earn by themselves, and `share_of_bound` its share of the
    most that pulls can add.
    """

    policy: str
    average_reward: float | None
    pulls_add: float | None
    stderr: float | None
    share_of_bound: float | None
    bias_span: float | None
    method: str | None
    note: str
    depends_on_start: bool = False  # J: it is then that of the usual start


@dataclass(frozen=True)
class SeeingWorth:
    """What it would be worth to see all arms in every step, at most.

    `bound` is what no policy exceeds then, `added` how much that is above the best J of the table
    (`best`, of `policy`), as a share of it, and `half_width` that of its 95% interval where J was
    simulated.
    """

    bound: float
    policy: str
    best: float
    added: float
    half_width: float


@dataclass(frozen=True)
class Plan:
    """Everything `restive plan` shows; `note` says why there is no bound.

    `own_reward` is what the arms earn if none is ever pulled; `relaxation_bound` has it in it.
    `hint` says where the problem may not be the one that was meant. `recommendation` is what all
    that comes to; None where no policy has a J that does not depend on the start. `simulated` says
    why J was simulated where it was.
    """

    num_arms: int
    num_pulls: int
    discount: float  # of the Whittle indices; everything else is an average reward
    relaxation_bound: float | None
    own_reward: float
    arms: tuple[ArmSummary, ...]
    policies: tuple[PolicySummary, ...]
    note: str
    hint: str
    recommendation: Recommendation | None
    seeing: SeeingWorth | None = None  # None where all arms are seen, or where there is no bound
    simulated: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the plan as data for `json.dumps`; what is not a finite number becomes None."""
        return {"format": "restive-plan-1", **_finite(asdict(self))}


def plan_bandit(
    bandit: RestlessBandit,
    *,
    discount: float = 1.0,
    max_states: int = MAX_STATES,
    max_elapsed: int | None = None,
    seed: int = 0,
    progress: TellProgress = lambda step, done, total: None,
) -> Plan:
    """Describe the arms and evaluate every registered policy mapping.

    Parameters
    ----------
    bandit
        The problem.
    discount
        Of the Whittle indices: 1 for the average reward, below 1 for arms that have no index then.
    max_states
        Limit for exact values and for the optimum, in joint states.
    max_elapsed
        Ages told apart, for arms that mix too slowly for the automatic choice.
    seed
        Of the simulations used beyond `max_states`.
    progress
        Called with the name of each step and how many of how many parts of it are done; (0, 0)
        before a step whose parts are not counted.
    """
    discount = checked_discount(discount)
    reduced = reduce_kinds(kinds_of(bandit))
    arms = _arm_summaries(bandit, reduced, discount, max_elapsed, progress)
    relaxation, note = _relaxation(bandit, max_elapsed, progress)
    bound = None if relaxation is None else relaxation.bound
    own = reduced.own_reward
    policies = []
    made: dict[str, Policy] = {}
    whys: list[str] = []
    for mapping in policy_mappings():
        progress(mapping.name, 0, 0)
        try:
            policy = mapping(
                bandit, max_elapsed=max_elapsed, max_states=max_states, relaxation=relaxation,
                discount=None if discount == 1 else discount,
            )  # fmt: skip
            value = evaluate(
                bandit, policy, max_states=max_states, max_elapsed=max_elapsed, seed=seed
            )
        except (AssumptionError, TooLargeError) as error:
            nothing = (None,) * 6
            words = str(error) if mapping.name == "whittle" else _of_averages(error)
            policies.append(PolicySummary(mapping.name, *nothing, words))
        else:
            policies.append(_summary(mapping.name, policy, value, bound, own))
            made[mapping.name] = policy
            whys += filter(None, [value.why_simulated])
    return Plan(
        num_arms=bandit.num_arms,
        num_pulls=bandit.num_pulls,
        discount=discount,
        relaxation_bound=bound,
        own_reward=own,
        arms=tuple(arms),
        policies=tuple(policies),
        note=note,
        hint=_hint(bandit, policies),
        recommendation=_recommendation(bandit, policies, made, bound),
        seeing=None if relaxation is None else _seeing(bandit, policies, max_elapsed),
        simulated="; or ".join(dict.fromkeys(whys)),
    )


def _seeing(
    bandit: RestlessBandit, policies: list[PolicySummary], max_elapsed: int | None
) -> SeeingWorth | None:
    """Return what seeing all arms would add at most, where some are seen only when pulled."""
    known = [
        (policy.average_reward, policy.stderr or 0.0, policy.policy)
        for policy in policies
        if policy.average_reward is not None
    ]
    if always_seen(bandit).all() or not known:
        return None
    best, stderr, name = max(known)
    if best <= 0:
        return None
    kinds = kinds_of(bandit)
    seen = [replaced_seen(arm, "always") for arm in kinds.arms]
    try:
        all_seen = RestlessBandit([seen[kind] for kind in kinds.of.tolist()], bandit.num_pulls)
        bound = relaxed(all_seen, max_elapsed).bound
    except (AssumptionError, TooLargeError):
        return None
    half_width = SURE_95 * stderr * bound / best**2
    return SeeingWorth(bound, name, best, max(0.0, bound / best - 1), half_width)


def _arm_summaries(
    bandit: RestlessBandit,
    reduced: ReducedKinds,
    discount: float,
    max_elapsed: int | None,
    progress: TellProgress,
) -> list[ArmSummary]:
    kinds = kinds_of(bandit)
    total = len(kinds.arms)
    members = np.split(np.argsort(kinds.of, kind="stable"), np.cumsum(kinds.counts)[:-1])
    found: dict[int, ArmSummary] = {}

    def describe(j: int) -> None:
        arm = kinds.arms[j]
        index = _whittle_index(kinds, j, discount, max_elapsed)
        found[j] = ArmSummary(
            arms=ranges(members[j]),
            name=arm.name,
            count=len(members[j]),
            num_states=arm.num_states,
            states=arm.states,
            stationary_reward=_or_none(lambda: fixed_reward(arm)),
            own_reward=float(reduced.own_rewards[j]),
            mixing_time=_or_none(lambda: mixing_time(arm)),
            settled_elapsed=None if max_elapsed else _or_none(lambda: settled_elapsed(arm)),
            indexable=index.indexable,
            limiting_index=None if arm.always_seen else index.limit,
            seen=arm.seen,
        )

    on_all_cores(describe, total, _counted(progress, "arms", total))
    return [found[j] for j in range(total)]


def _relaxation(
    bandit: RestlessBandit, max_elapsed: int | None, progress: TellProgress
) -> tuple[Relaxation | None, str]:
    """Return the relaxed problem, or why there is none."""
    kinds = len(kinds_of(bandit).arms)
    try:
        return relaxed(bandit, max_elapsed, _counted(progress, "relaxation bound", kinds)), ""
    except (AssumptionError, TooLargeError) as error:
        return None, _of_averages(error)


def _of_averages(error: Exception) -> str:
    """Return what is wrong, without advice to discount: that is of use to Whittle's index alone."""
    return str(error).split("; pass a discount below 1")[0]


def _counted(progress: TellProgress, step: str, total: int) -> Callable[[int], None]:
    """Return a function that adds up what is done of a step."""
    done = 0
    progress(step, 0, total)

    def add(more: int) -> None:
        nonlocal done
        done += more
        progress(step, done, total)

    return add


def _summary(
    name: str, policy: Policy, value: Value, bound: float | None, own: float
) -> PolicySummary:
    notes = _choice(policy)
    if value.depends_on_start:
        low, high = value.average_reward_range
        notes.append(f"J depends on the start: {low:.6f} to {high:.6f}")
    if bound is not None and value.average_reward > bound + _uncertainty(value, bound):
        notes.append(
            f"J = {value.average_reward:.9g} is above the bound {bound:.9g} by more than its "
            "error, which cannot be: this is a mistake in restive, please report it with the "
            "problem file"
        )
    added = value.average_reward - own
    return PolicySummary(
        policy=name,
        average_reward=value.average_reward,
        pulls_add=added,
        stderr=value.stderr,
        share_of_bound=added / (bound - own) if bound is not None and bound > own else None,
        bias_span=value.bias_span,
        method=value.method + (f", {value.num_states:,} states" if value.num_states else ""),
        note="; ".join(notes),
        depends_on_start=bool(value.depends_on_start),
    )


def _uncertainty(value: Value, bound: float) -> float:
    return SURE * value.stderr + ROUNDING * max(1.0, abs(bound))


def _choice(policy: Policy) -> list[str]:
    if not isinstance(policy, BestIndexPolicy):
        return []
    if not isfinite(policy.candidates[0].average_reward):
        return [f"{policy.chosen} was chosen {policy.method}"]
    others = []
    for other in policy.runners_up[:2]:
        error = f" ± {other.stderr:.2g}" if other.stderr else ""
        others.append(f"{other.name} ({other.average_reward:.6f}{error})")
    said = [f"{policy.chosen} was chosen" + ", before " * bool(others) + " and ".join(others)]
    if policy.bandit.num_arms > MOST_ARMS:
        said.append(f"of more than {MOST_ARMS:,} arms only the named mappings compete")
    return said


def _hint(bandit: RestlessBandit, policies: list[PolicySummary]) -> str:
    values = {
        policy.policy: (policy.average_reward, policy.stderr or 0.0)
        for policy in policies
        if policy.average_reward is not None
    }
    fixed = fixed_arms_hint(bandit, values) if "best_fixed" in values else ""
    return "; ".join(filter(None, (best_first_hint(bandit), fixed)))


def _recommendation(
    bandit: RestlessBandit,
    policies: list[PolicySummary],
    made: dict[str, Policy],
    bound: float | None,
) -> Recommendation | None:
    earned = {
        found.policy: Earned(found.average_reward, found.stderr or 0.0, found.depends_on_start)
        for found in policies
        if found.average_reward is not None
    }
    return recommend(bandit, earned, made, bound)


def _whittle_index(kinds: Kinds, j: int, discount: float, max_elapsed: int | None) -> WhittleIndex:
    """Index of one kind of arm; errors name its first arm by number."""
    try:
        return whittle_index(kinds.arms[j], discount=discount, max_elapsed=max_elapsed)
    except (AssumptionError, TooLargeError) as error:
        message = str(error).removeprefix(f"{arm_label(kinds.arms[j])}: ")
        raise type(error)(f"{kinds.labels[j]}: {message}") from None


def _or_none(compute: Callable[[], T]) -> T | None:
    try:
        return compute()
    except (AssumptionError, TooLargeError):
        return None


def ranges(members: NDArray[np.intp]) -> str:
    """Write ascending numbers as ranges: 0-2, 5."""
    breaks = np.flatnonzero(np.diff(members) > 1) + 1
    runs = np.split(members, breaks)
    return ", ".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not isfinite(data) else data


def write_index_table(
    bandit: RestlessBandit,
    path: str | PathLike[str],
    max_elapsed: int | None = None,
    discount: float = 1.0,
) -> None:
    """Write the indices of every kind of arm by last state and elapsed steps, as CSV or NPZ."""
    suffix = require_target(path, TABLE_SUFFIXES)
    kinds = kinds_of(bandit)
    tables = _tables(bandit, kinds, max_elapsed, discount)
    with replacing(path) as temporary:
        if suffix == ".csv":
            _write_csv(temporary, kinds, tables)
            return
        arrays: dict[str, NDArray[Any]] = {"kind_of_arm": kinds.of}
        for j, own in enumerate(tables):
            arrays |= {f"{name}_{j}": table for name, table in own.items()}
        with temporary.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays)


def plot_indices(
    bandit: RestlessBandit,
    path: str | PathLike[str],
    max_elapsed: int | None = None,
    discount: float = 1.0,
) -> None:
    """Draw Whittle index against elapsed steps, a line per last state and a panel per kind of arm.

    The file's ending chooses the format (png, svg, pdf). Beyond 12 kinds the first 12 are drawn.
    """
    suffix = require_target(path, FIGURE_SUFFIXES)
    kinds = kinds_of(bandit)
    panels = [
        whittle_index(arm, discount=discount, max_elapsed=max_elapsed).panel(label)
        for arm, label in zip(kinds.arms, kinds.labels, strict=True)
    ]
    title = f"Whittle index of {bandit.num_arms} arms ({len(panels)} kinds)"
    axes = plot_panels(panels, "Whittle index", title)
    with replacing(path) as temporary:
        axes[0].figure.savefig(temporary, format=suffix.lstrip("."))


def _tables(
    bandit: RestlessBandit, kinds: Kinds, max_elapsed: int | None, discount: float
) -> list[Tables]:
    priority = lp_priority(bandit, max_elapsed=max_elapsed).tables
    best = best_index(bandit, max_elapsed=max_elapsed).tables
    found = []
    for j, arm in enumerate(kinds.arms):
        whittle = whittle_index(arm, discount=discount, max_elapsed=max_elapsed)
        myopic = myopic_table(arm, max_elapsed)
        values = (whittle.index, whittle.upper, myopic, priority[j], best[j])
        found.append(dict(zip(INDICES, values, strict=True)))
    return found


def _write_csv(path: Path, kinds: Kinds, tables: list[Tables]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        for j, arm in enumerate(kinds.arms):
            columns = index_columns(arm, **tables[j])
            columns["last_state_name"] = np.array(
                [spreadsheet_text(name) for name in columns["last_state_name"].tolist()]
            )
            if j == 0:
                writer.writerow(["arms", "name", *columns])
            head = [ranges(np.flatnonzero(kinds.of == j)), spreadsheet_text(arm.name or "")]
            rows = zip(*(column.tolist() for column in columns.values()), strict=True)
            writer.writerows([*head, *row] for row in rows)
