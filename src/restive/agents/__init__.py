"""Learners as agents: one class for all, made by name or from a snapshot."""

from restive.agents.agent import Agent, Episode
from restive.agents.explain import Explanation
from restive.agents.learners import LEARNERS, register_learner, unregister_learner
from restive.agents.make import TSDE, make_learner
from restive.agents.snapshots import restore

__all__ = [
    "LEARNERS",
    "TSDE",
    "Agent",
    "Episode",
    "Explanation",
    "make_learner",
    "register_learner",
    "restore",
    "unregister_learner",
]
