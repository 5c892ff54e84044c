"""Policy mappings: from a bandit with known parameters to a policy (Section 2.3 of the paper).

One mapping per file. To add one, write it, and give it a row in `registry`.
"""

from __future__ import annotations

from restive.policies.base import IndexPolicy, IndexRule, Policy, index_policy
from restive.policies.best_fixed import best_fixed
from restive.policies.best_index import BestIndexPolicy, Candidate, best_index
from restive.policies.lp_priority import lp_priority
from restive.policies.myopic import myopic
from restive.policies.optimal import OptimalPolicy, optimal
from restive.policies.registry import (
    PolicyMapping,
    mapping_name,
    mapping_title,
    own_mapping,
    policy_mapping,
    policy_mappings,
    register_mapping,
    unregister_mapping,
)
from restive.policies.whittle import (
    WhittleIndex,
    channel_whittle_index,
    whittle,
    whittle_index,
    whittle_table,
)

__all__ = [
    "BestIndexPolicy",
    "Candidate",
    "IndexPolicy",
    "IndexRule",
    "OptimalPolicy",
    "Policy",
    "PolicyMapping",
    "WhittleIndex",
    "best_fixed",
    "best_index",
    "channel_whittle_index",
    "index_policy",
    "lp_priority",
    "mapping_name",
    "mapping_title",
    "myopic",
    "optimal",
    "own_mapping",
    "policy_mapping",
    "policy_mappings",
    "register_mapping",
    "unregister_mapping",
    "whittle",
    "whittle_index",
    "whittle_table",
]
