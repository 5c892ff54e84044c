"""Policy mappings by name, a row each: the one place that says which there are.

Commands, studies, learners and reports read these rows; `register_mapping` adds one from outside.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from inspect import signature
from re import fullmatch
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.arguments import known_name, shown, suggestion
from restive.errors import ProblemError
from restive.plan.policies.base import Policy, index_policy
from restive.plan.policies.best_fixed import best_fixed, fixed_rewards, fixed_table
from restive.plan.policies.best_index import best_index
from restive.plan.policies.lp_priority import lp_priority
from restive.plan.policies.myopic import myopic, myopic_table
from restive.plan.policies.optimal import optimal
from restive.plan.policies.random import random_policy
from restive.plan.policies.round_robin import round_robin
from restive.plan.policies.whittle import whittle, whittle_table
from restive.problem.arm import Arm, gilbert_elliott
from restive.problem.bandit import RestlessBandit, require_bandit

__all__ = [
    "PolicyMapping",
    "as_policy",
    "mapping_name",
    "mapping_title",
    "own_mapping",
    "policy_mapping",
    "policy_mappings",
    "register_mapping",
    "unregister_mapping",
]

Rule: TypeAlias = Callable[..., ArrayLike]
Maker: TypeAlias = Callable[..., Policy]
ExactRewards: TypeAlias = Callable[
    [Sequence[Arm], NDArray[np.int64], int], NDArray[np.float64]
]  # of the kinds of arms, systems [R, K] by kind, and the number of pulls: J [R]


@dataclass(frozen=True, repr=False)
class PolicyMapping:
    """A policy mapping: called with a bandit it returns the policy.

    `rule` is there where the mapping looks at one arm at a time: its tables can then be made per
    arm, once for all bandits. `exact_rewards` is there where J of very many systems has a formula.
    """

    name: str
    title: str
    make: Maker  # RestlessBandit -> Policy
    rule: Rule | None = None  # Arm -> table [S, L]
    exact_rewards: ExactRewards | None = None

    def __repr__(self) -> str:
        return f"PolicyMapping({self.name})"

    def __call__(self, bandit: RestlessBandit, **options: Any) -> Policy:
        """Return the policy; options that this mapping has no use for are left out."""
        return self.make(bandit, **_understood(self.make, options))

    def table(self, arm: Arm, max_elapsed: int | None = None) -> ArrayLike:
        """Index table [S, L] of one arm, where the mapping is an index rule."""
        assert self.rule is not None
        return self.rule(arm, **_understood(self.rule, {"max_elapsed": max_elapsed}))


_OWN = (
    PolicyMapping("best_fixed", "best fixed arms", best_fixed, fixed_table, fixed_rewards),
    PolicyMapping("myopic", "myopic", myopic, myopic_table),
    PolicyMapping("whittle", "Whittle index", whittle, whittle_table),
    PolicyMapping("lp_priority", "LP priority", lp_priority),
    PolicyMapping("best_index", "best index", best_index),
    PolicyMapping("optimal", "optimal", optimal),
)
_ROWS = {row.name: row for row in _OWN}
# No mappings, since they know nothing of the arms; where a policy is asked for they have names.
_UNKNOWING: dict[str, Maker] = {"round_robin": round_robin, "random": random_policy}

# Enough to tell an index rule from a mapping.
_ANY_ARM = gilbert_elliott(0.3, 0.6)


def policy_mappings() -> tuple[PolicyMapping, ...]:
    """Return all rows, in the order in which they are reported."""
    return tuple(_ROWS.values())


def mapping_name(name: str) -> str:
    """Return the registered spelling of a mapping's name."""
    if not isinstance(name, str):
        raise ProblemError(f"a policy mapping's name must be text, got {name!r:.60}")
    known = known_name(name, _ROWS)
    if known not in _ROWS:
        raise ProblemError(f"unknown policy mapping {name!r}; {suggestion(known, _ROWS)}")
    return known


def policy_mapping(name: str) -> PolicyMapping:
    """Return the mapping with this name."""
    return _ROWS[mapping_name(name)]


def as_policy(policy: Policy | str, bandit: RestlessBandit, **options: Any) -> Policy:
    """Return a policy as it is given or, given its name, as it is made for this bandit.

    Options are those of the mappings; those that one has no use for are left out.
    """
    if isinstance(policy, RestlessBandit):
        raise ProblemError(
            f"expected a policy or its name, got {shown(policy)}; the bandit comes first"
        )
    if not isinstance(policy, str):
        return policy
    require_bandit(bandit)
    known = known_name(policy, (*_ROWS, *_UNKNOWING))
    if known in _ROWS:
        return _ROWS[known](bandit, **options)
    if known not in _UNKNOWING:
        raise ProblemError(f"unknown policy {policy!r}; {suggestion(known, (*_ROWS, *_UNKNOWING))}")
    return _UNKNOWING[known](bandit)


def mapping_title(name: str) -> str:
    """Return what readers call a mapping; of one that is not registered (any more), its name."""
    return _ROWS[name].title if name in _ROWS else name


def register_mapping(
    name: str, rule_or_maker: Callable[[Any], Any], title: str | None = None
) -> None:
    """Add a policy mapping of your own, for use by name wherever a name is taken.

    A mapping is known in the process that registered it: register it on each Dask worker too.

    Parameters
    ----------
    name
        Lower-case letters, digits and underscores.
    rule_or_maker
        An index rule (Arm -> table [S, L]) or a function RestlessBandit -> policy with
        `select(state)`. Which of the two it is shows when it is called with a two-state arm. Where
        it has a parameter `max_elapsed` (or `max_states`), it is given that option of its caller.
    title
        What tables and charts call it; by default the name.
    """
    if not isinstance(name, str) or not fullmatch("[a-z][a-z0-9_]*", name):
        raise ProblemError(
            "the name of a policy mapping has lower-case letters, digits and underscores, got "
            f"{name!r:.60}"
        )
    if name in _ROWS:
        raise ProblemError(
            f"the policy mapping {name!r} is registered already; choose another name, or call "
            f"unregister_mapping({name!r}) first"
        )
    _ROWS[name] = own_mapping(rule_or_maker, _ANY_ARM, name, title)


def unregister_mapping(name: str) -> None:
    """Remove a mapping that `register_mapping` added."""
    known = mapping_name(name)
    if known in {row.name for row in _OWN}:
        raise ProblemError(f"the policy mapping {known!r} is built in and cannot be removed")
    del _ROWS[known]


def own_mapping(
    function: Callable[[Any], Any], arm: Arm, name: str | None = None, title: str | None = None
) -> PolicyMapping:
    """Return the row of an index rule or a mapping of the user's, or of a registered function.

    An index rule takes an arm and returns a table; a mapping takes a bandit. Asking is the only way
    to tell them apart.
    """
    if not callable(function):
        raise ProblemError(
            "policy_mapping must be a name, an index rule (Arm -> table) or a function "
            f"RestlessBandit -> Policy, got {function!r:.60}"
        )
    if name is None:
        for row in _ROWS.values():
            if function is row or function is row.make:
                return row
        name = str(getattr(function, "__name__", "own mapping"))
    title = name if title is None else title
    try:
        np.array(function(arm), dtype=np.float64)
    except Exception as as_rule:
        _require_mapping(function, arm, name, as_rule)
        return PolicyMapping(name, title, function)

    def make(bandit: RestlessBandit, max_elapsed: int | None = None) -> Policy:
        options = _understood(function, {"max_elapsed": max_elapsed})
        return index_policy(bandit, lambda arm: function(arm, **options), name)

    return PolicyMapping(name, title, make, function)


def _require_mapping(
    function: Callable[[Any], Any], arm: Arm, name: str, as_rule: Exception
) -> None:
    try:
        policy = function(RestlessBandit([arm], 1))
    except Exception as as_mapping:
        raise ProblemError(
            f"policy_mapping {name} works neither as an index rule (for an Arm it raised "
            f"{as_rule!r:.200}) nor as a mapping (for a RestlessBandit: {as_mapping!r:.200})"
        ) from as_mapping
    if not hasattr(policy, "select"):
        raise ProblemError(
            f"policy_mapping {name} returned {policy!r:.60} for a RestlessBandit, expected a "
            "policy with select(state)"
        ) from None


def _understood(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that are given and that the function has parameters for."""
    known = signature(function).parameters
    return {key: value for key, value in options.items() if value is not None and key in known}
