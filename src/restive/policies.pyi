"""Mappings beside the paper's own, an index rule of yours as a policy, and Whittle's index."""

from restive.plan.policies.base import index_policy as index_policy
from restive.plan.policies.best_fixed import best_fixed as best_fixed
from restive.plan.policies.best_index import best_index as best_index
from restive.plan.policies.lp_priority import lp_priority as lp_priority
from restive.plan.policies.random import random_policy as random_policy
from restive.plan.policies.round_robin import round_robin as round_robin
from restive.plan.policies.whittle import whittle_index as whittle_index

__all__: list[str]
