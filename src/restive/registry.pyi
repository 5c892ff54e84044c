"""Learners and policy mappings by name, and how to enter your own."""

from restive.learn.advice import suited_learner as suited_learner
from restive.learn.learners import LEARNERS as LEARNERS
from restive.learn.learners import register_learner as register_learner
from restive.learn.learners import unregister_learner as unregister_learner
from restive.plan.policies.registry import policy_mapping as policy_mapping
from restive.plan.policies.registry import register_mapping as register_mapping
from restive.plan.policies.registry import unregister_mapping as unregister_mapping

__all__: list[str]
