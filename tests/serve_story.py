"""A service with a history, for its pages: kinds, weeks, gaps, an alarm, hostile names."""

import numpy as np

import restive as rs
from live_cases import reply

__all__ = ["HOSTILE", "story"]

HOSTILE = '<b onclick="x">&amp;'


def story(path, ticks=30, num_arms=60):
    """Return an agent after some weeks, with a decision that waits for results."""
    names = [f"A{k:02}" for k in range(num_arms - 1)] + [HOSTILE]
    live = rs.LiveAgent.create(
        path, rs.grid_prior(np.linspace(0.1, 0.9, 5), num_arms), 6, "whittle",
        rs.Clock.given("2026-01-05", "P7D"), 3, names=names, audit_pulls=1, durability="process",
        outcomes={"listened": 1, "hung_up": 0, "no_answer": "unseen"},
    )  # fmt: skip
    for tick in range(ticks):
        arms = live.decide(tick=tick).arms
        missing = arms[tick % 3] if tick % 4 == 0 else None
        live.record({name: reply(tick, name) for name in arms if name != missing})
    live.decide(tick=ticks)
    return live
