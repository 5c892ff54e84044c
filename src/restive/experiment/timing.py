"""How long a step takes, by a short trial on this machine."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from restive.experiment.settings import Settings
from restive.experiment.work import prepared
from restive.replication import replicate

__all__ = ["seconds_per_step"]

TRIAL_STEPS = 20_000
LEAST_SECONDS = 0.05  # of a trial that counts


def seconds_per_step(case: Settings, *, with_oracle: bool) -> float:
    """Time a step of a case's learner, alone or with the policy that knows the truth beside it."""
    steps = min(case.horizon, TRIAL_STEPS)
    trial = case.model_copy(update={"horizon": steps, "times": [steps], "posterior": False})
    _, task, learner = prepared(trial.to_json())

    def run(count: int) -> float:
        began = perf_counter()
        replicate(
            task, learner, np.array([steps]), count, case.seed, with_oracle=with_oracle,
            threads=1, chunk=count,
        )  # fmt: skip
        return perf_counter() - began

    run(1)  # compiles
    count, seconds = 1, run(1)
    while seconds < LEAST_SECONDS:
        count *= 4
        seconds = run(count)
    return seconds / (steps * count)
