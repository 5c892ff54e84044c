"""Agents: what a program asks for arms to pull, and tells what it saw."""

from restive.agents.learners import LEARNERS
from restive.agents.make import make_learner
from restive.agents.player import Player
from restive.agents.tsde import TSDE, Episode

__all__ = ["LEARNERS", "TSDE", "Episode", "Player", "make_learner"]
