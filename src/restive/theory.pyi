"""Beliefs, the paper's bounds and its regret decomposition."""

from restive.measure.theory import bounds_for as bounds_for
from restive.measure.theory import decompose_regret as decompose_regret
from restive.measure.theory import discounted_spans as discounted_spans
from restive.measure.theory import episode_bound as episode_bound
from restive.measure.theory import regret_bound as regret_bound
from restive.plan.policies.whittle import channel_whittle_index as channel_whittle_index
from restive.problem.beliefs import belief_table as belief_table
from restive.problem.beliefs import beliefs as beliefs
from restive.problem.chains import mixing_time as mixing_time
from restive.problem.chains import stationary as stationary
from restive.problem.reduction import reduce_arm as reduce_arm

__all__: list[str]
