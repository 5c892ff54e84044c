"""Make the small logs beside this file: python examples/logs/make_logs.py

`outreach.csv`: 60 people, of whom 15 are called each week; a person listens or hangs up. Who is
called is drawn at random. `channels.csv`: eight radio channels, three of which are sensed in each
slot; the signal is strong in good slots and weak in bad ones. Both are made by chains that restive
can fit, with nothing else in them.
"""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def chains(good_after_bad: np.ndarray, good_after_good: np.ndarray, steps: int, seed: int):
    """States [steps, arms] of two-state chains."""
    rng = np.random.default_rng(seed)
    states = np.zeros((steps, len(good_after_bad)), dtype=int)
    states[0] = rng.random(len(good_after_bad)) < 0.5
    for t in range(1, steps):
        chance = np.where(states[t - 1] == 1, good_after_good, good_after_bad)
        states[t] = rng.random(len(chance)) < chance
    return states, rng


def outreach() -> str:
    rng = np.random.default_rng(1)
    rural = np.arange(60) % 2 == 0
    p01 = np.where(rural, rng.beta(2, 8, 60), rng.beta(4, 8, 60))
    p11 = np.where(rural, rng.beta(6, 3, 60), rng.beta(8, 2, 60))
    states, rng = chains(p01, p11, 104, seed=2)
    lines = ["week_of,person,region,outcome"]
    for week in range(104):
        monday = date(2024, 1, 1) + timedelta(weeks=week)
        for person in sorted(rng.choice(60, 15, replace=False)):
            outcome = "listened" if states[week, person] else "hung_up"
            region = "rural" if rural[person] else "town"
            lines.append(f"{monday},P{person:03d},{region},{outcome}")
    return "\n".join(lines) + "\n"


def channels() -> str:
    rng = np.random.default_rng(3)
    states, rng = chains(rng.uniform(0.1, 0.4, 8), rng.uniform(0.6, 0.95, 8), 600, seed=4)
    lines = ["slot;channel;signal_db"]
    for slot in range(600):
        for channel in sorted(rng.choice(8, 3, replace=False)):
            signal = rng.normal(18 if states[slot, channel] else 6, 2)
            lines.append(f"{slot};CH{channel};{signal:.1f}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (HERE / "outreach.csv").write_text(outreach(), encoding="utf-8")
    (HERE / "channels.csv").write_text(channels(), encoding="utf-8")
