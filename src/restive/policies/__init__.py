"""Policy mappings: from a bandit with known parameters to a policy (Section 2.3 of the paper).

One mapping per file. To add one, write it, and enter it here under its name.
"""

from __future__ import annotations

from collections.abc import Callable

from numpy.typing import ArrayLike

from restive.arguments import suggestion
from restive.errors import ProblemError
from restive.policies.base import (
    IndexPolicy,
    IndexRule,
    Policy,
    PolicyMapping,
    index_policy,
)
from restive.policies.best_fixed import best_fixed, fixed_table
from restive.policies.lp_priority import lp_priority
from restive.policies.myopic import myopic, myopic_table
from restive.policies.optimal import OptimalPolicy, optimal
from restive.policies.whittle import (
    WhittleIndex,
    channel_whittle_index,
    whittle,
    whittle_index,
    whittle_table,
)
from restive.problem import Arm

__all__ = [
    "INDEX_RULES",
    "POLICY_MAPPINGS",
    "IndexPolicy",
    "IndexRule",
    "OptimalPolicy",
    "Policy",
    "PolicyMapping",
    "WhittleIndex",
    "best_fixed",
    "channel_whittle_index",
    "index_policy",
    "lp_priority",
    "mapping_name",
    "myopic",
    "optimal",
    "policy_mapping",
    "whittle",
    "whittle_index",
    "whittle_table",
]

POLICY_MAPPINGS: dict[str, Callable[..., Policy]] = {
    "best_fixed": best_fixed,
    "myopic": myopic,
    "whittle": whittle,
    "lp_priority": lp_priority,
    "optimal": optimal,
}

# Mappings that look at one arm at a time: their tables can be made per arm, once for all bandits.
INDEX_RULES: dict[str, Callable[[Arm, int | None], ArrayLike]] = {
    "best_fixed": fixed_table,
    "myopic": myopic_table,
    "whittle": whittle_table,
}


def mapping_name(name: str) -> str:
    """Return the registered spelling of a mapping's name; hyphens are as good as underscores."""
    if not isinstance(name, str):
        raise ProblemError(f"a policy mapping's name must be text, got {name!r:.60}")
    known = name.replace("-", "_")
    if known not in POLICY_MAPPINGS:
        hint = suggestion(known, POLICY_MAPPINGS)
        raise ProblemError(f"unknown policy mapping {name!r}; {hint}")
    return known


def policy_mapping(name: str) -> Callable[..., Policy]:
    """Return the mapping with this name."""
    return POLICY_MAPPINGS[mapping_name(name)]
