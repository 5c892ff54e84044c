"""Which learner suits few looks: python docs/few_looks_tables.py [run]

`run` plays every learner on every cell of a grid (some minutes) and keeps what each lost in
assets/few-looks.json; the measured part of concepts/tsde.md is written from that. The thresholds of
`restive.learn.advice` are chosen on these figures, and a test compares them.
"""

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import restive as rs
from restive.learn.advice import suited_learner

DOCS = Path(__file__).parent
STORED = DOCS / "assets" / "few-looks.json"
PAGE = DOCS / "concepts" / "tsde.md"
BEGIN, END = "<!-- measured: few looks -->\n", "<!-- end -->"

SIZES = ((10, 1), (10, 3), (50, 1), (50, 5), (200, 4), (200, 20))  # K, N
TIMES = (10, 30, 100, 300, 1000, 3000, 10_000)
SEEDS = 3
TYPES = ((0.08, 0.75, 0.45, 0.95), (0.30, 0.92, 0.38, 0.94), (0.04, 0.60, 0.07, 0.66))
BINS = (0, 1, 5, 20, 50, 200, 700, 2000, 10_000)  # looks, by which the table has its rows
LEARNERS: dict[str, dict[str, Any]] = {
    "1": {"name": "tsde"},
    "4": {"name": "tsde", "draws": 4},
    "16": {"name": "tsde", "draws": 16},
    "mean": {"name": "mean_index"},
}


def outreach(points: int, seed: int) -> rs.ArmPrior:
    """People of three types, a third each, whom calls change and who always count."""
    rng = np.random.default_rng([seed, 24])
    means = np.array(TYPES)[np.arange(points) % len(TYPES)]
    drawn = np.clip(rng.beta(20 * means, 20 * (1 - means)), 0.005, 0.995)
    return rs.ArmPrior(
        [
            rs.Arm([[1 - c, c], [1 - d, d]], [[1 - a, a], [1 - b, b]], (0, 1), (0, 1))
            for a, b, c, d in drawn.tolist()
        ]
    )


def channels(points: int, seed: int) -> rs.ArmPrior:
    """Channels of any speed and quality, that pay when they are used."""
    rng = np.random.default_rng([seed, 25])
    return rs.ArmPrior(
        [
            rs.gilbert_elliott(float(p), float(q))
            for p, q in rng.uniform(0.02, 0.98, size=(points, 2))
        ]
    )


WORLDS = {"outreach": outreach, "channels": channels}


def losses(world: str, known: bool, size: tuple[int, int], learner: str, seed: int) -> list[float]:
    """What a learner loses by each time, against Whittle's index of the truth."""
    count, pulls = size
    law = WORLDS[world](48, 0)
    rng = np.random.default_rng([seed, count, pulls])
    truth = rs.RestlessBandit(
        [law.candidates[j] for j in rng.integers(len(law.candidates), size=count)], pulls
    )
    own, options = law, {}
    if not known:
        like = law.typical
        pays = like.passive_rewards if like.pays_unpulled else None
        own = rs.spread_prior(
            1, like.rewards, pays, points=128, controlled=not like.is_uncontrolled
        ).arms[0]
        options = {"learn_kinds": "epochs"}
    start = rs.BeliefState([1] * count, [1000] * count)
    found = rs.frequentist_regret(
        truth, rs.IndependentPrior([own] * count), horizon=TIMES[-1], times=TIMES,
        learner=LEARNERS[learner] | options, replications=1, seed=seed, baseline="coupled",
        start=start, threads=1,
    )  # fmt: skip
    return [round(float(loss), 2) for loss in found.mean]


def run() -> None:
    """Play all cells, and keep what was lost."""
    cells: list[dict[str, Any]] = []
    for world in WORLDS:
        for known in (True, False):
            for size in SIZES:
                cell: dict[str, Any] = {"world": world, "law_known": known}
                cell |= {"K": size[0], "N": size[1]}
                cell["losses"] = {
                    name: [losses(world, known, size, name, seed) for seed in range(SEEDS)]
                    for name in LEARNERS
                }
                cells.append(cell)
    STORED.write_text(json.dumps({"times": TIMES, "cells": cells}) + "\n", encoding="utf-8")


def ratios(stored: dict[str, Any]) -> list[tuple[float, list[float]]]:
    """Looks, and what each learner lost beside the others: a row for each cell and horizon."""
    rows = []
    for cell in stored["cells"]:
        means = [np.mean(cell["losses"][name], axis=0) for name in LEARNERS]
        for at, time in enumerate(stored["times"]):
            own = [max(float(mean[at]), 1.0) for mean in means]  # below that it is luck
            middle = float(np.exp(np.mean(np.log(own))))
            rows.append((cell["N"] * time / cell["K"], [value / middle for value in own]))
    return rows


def advised(looks: float) -> str:
    """Return the learner that the advice names for so many looks."""
    learner = suited_learner(10**6, 1, round(looks * 10**6)).learner
    return next(name for name, one in LEARNERS.items() if one == learner)


def measured(stored: dict[str, Any]) -> str:
    """Return the table: geometric means of what each lost beside the others, by looks."""
    rows = ratios(stored)
    looks, logs = np.array([at for at, _ in rows]), np.log([own for _, own in rows])
    lines = [
        "| looks at each arm | cells | tsde | draws=4 | draws=16 | mean_index | advised |",
        "|---|---:|---:|---:|---:|---:|---|",
    ]
    for low, high in itertools.pairwise(BINS):
        some = (low < looks) & (looks <= high)
        cells = [f"{value:.2f}" for value in np.exp(logs[some].mean(axis=0))]
        name = advised(high)
        what = {"1": "tsde", "mean": "mean_index"}.get(name, f"draws={name}")
        between = f"up to {high:g}" if low == 0 else f"{low:g} to {high:g}"
        lines.append(f"| {between} | {some.sum()} | {' | '.join(cells)} | {what} |")
    return "\n".join(lines) + "\n"


def main(words: list[str]) -> None:
    """Write the measured part of the page anew, after a run where that is asked for."""
    if words == ["run"]:
        run()
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    table = measured(json.loads(STORED.read_text(encoding="utf-8")))
    PAGE.write_text(f"{before}{BEGIN}\n{table}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
