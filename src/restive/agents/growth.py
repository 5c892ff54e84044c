"""Arms that join: an agent with more arms than before, which remembers all it knew."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from restive.agents.agent import Agent
from restive.agents.snapshots import learned_data, load_snapshot, start_to_data
from restive.belief import BeliefState
from restive.errors import ProblemError
from restive.prior import IndependentPrior

__all__ = ["with_more_arms"]


def with_more_arms(
    agent: Agent, prior: IndependentPrior, last_state: Sequence[int], elapsed: Sequence[int]
) -> Agent:
    """Return an agent that has more arms, after its own; the one given stays as it is.

    The system has changed, so the next step begins a new episode, as it does when a counter has
    doubled.

    Parameters
    ----------
    agent
        An agent of TSDE's family with an independent prior; nothing may be selected.
    prior
        Of all arms; the first are the agent's own, as it began with them.
    last_state, elapsed
        In which state each new arm was last seen, and how many steps ago.
    """
    if not isinstance(agent.prior, IndependentPrior):
        raise ProblemError("arms cannot join under a joint prior, which names all arms")
    data = learned_data(agent)
    if data["selected"] is not None:
        raise ProblemError("arms are selected: observe them before others join")
    old, new, time = agent.task.num_arms, len(last_state), agent.time
    start = agent.task.start
    ages = np.append(start.elapsed, np.ones(new, dtype=np.int64))
    data["start"] = start_to_data(BeliefState(np.append(start.last_state, last_state), ages))
    seen = (range(old, old + new), last_state, [time - age for age in elapsed])
    for column, more in zip(data["seen"], seen, strict=True):
        column += [int(number) for number in more]
    clock = data["episodes"]["clock"]
    if clock["EPISODE"] > 0:
        clock["DOUBLED"] = 1
        clock["DRAWS"] += new  # whose numbers of this episode nobody looks at
    return load_snapshot(data, agent.task.mapping, prior)
