"""Learners: agents that choose arms of a bandit whose parameters they do not know.

An agent has `select()`, which returns the arms to pull, and `observe(states)`, which tells it what
was seen of them. One learner per file.
"""

from restive.agents.tsde import TSDE, Episode

__all__ = ["TSDE", "Episode"]
