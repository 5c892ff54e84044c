"""Studies: how long they load, what the ledger costs, how far Dask helps, the driver's memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any
from unittest.mock import patch

from benchmarks.harness import Result
from restive.paper.runs import paper_study
from restive.studies.ledger import Ledger
from restive.studies.runner import run_study
from restive.studies.spec import Study
from restive.studies.work import run_chunk

__all__ = ["run"]

MINUTE = 60_000  # replications of the paper's Bayesian study that take one worker about a minute
MEMORY = """
import sys
from restive.studies.runner import run_study
from restive.studies.spec import study_from_toml
from restive.studies.summary import load_results
study = study_from_toml('''
kind = "bayesian"
num_pulls = 1
horizon = 1000
times = TIMES
replications = 100_000
[prior]
levels = [0.2, 0.5, 0.8]
num_arms = 2
'''.replace('TIMES', str(list(range(5, 1001, 5)))))
run_study(study, sys.argv[1])
found = load_results(sys.argv[1])[0]
assert found.replications == 100_000
# not getrusage: what it tells of a process includes the one that started it
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(len(found.times), peak.split()[1])
"""

LOADING = """
import sys
from time import perf_counter
from restive.studies.spec import study_from_data
instances = ["paper-frequentist", "paper-bayesian", "satellite-urban-l", "random-five-state"]
cases = int(sys.argv[1])
data = {
    "learners": ["tsde", "ucb1"],
    "sweep": {"instance": instances, "seed": list(range(cases // 8))},
}
begin = perf_counter()
assert len(study_from_data(data).cases) == cases
print(perf_counter() - begin)
"""


def run() -> list[Result]:
    return [*_loading(), _ledger(), _workers(), _task_lengths(), _memory()]


def _loading() -> list[Result]:
    """Load studies that sweep seeds over instances of the zoo, each in a fresh process."""
    results = []
    for cases in (1_000, 10_000):
        done = subprocess.run(
            [sys.executable, "-c", LOADING, str(cases)], capture_output=True, text=True, check=True
        )
        results.append(
            Result(
                f"seconds to load a study of {cases:,} cases on four instances",
                float(done.stdout),
                cases / 1_000,
                False,
            )
        )
    return results


def _seconds(study: Study, executor: str, workers: int | None = None) -> float:
    with tempfile.TemporaryDirectory() as folder:
        begin = perf_counter()
        run_study(study, Path(folder) / "run", executor=executor, workers=workers)
        return perf_counter() - begin


def _ledger() -> Result:
    """Time a study and, within the same run, its chunks; also the chunks in runs of their own.

    Two runs differ by more than the ledger costs: where the system puts an array changes the
    engine's time by some per cent.
    """
    study = replace(paper_study("bayesian"), replications=4000)
    with tempfile.TemporaryDirectory() as folder, Ledger.writing(Path(folder), study) as ledger:
        tasks = [task for case in study.cases for task in ledger.missing(case)]
    inside = 0.0

    def timed(*task: Any) -> Any:
        nonlocal inside
        begin = perf_counter()
        try:
            return run_chunk(*task)
        finally:
            inside += perf_counter() - begin

    shares = []
    with_ledger = without = float("inf")
    for _ in range(5):
        inside = 0.0
        with patch("restive.studies.executors.run_chunk", timed):
            seconds = _seconds(study, "serial")
        shares.append(seconds / inside - 1)
        with_ledger = min(with_ledger, seconds)
        begin = perf_counter()
        for task in tasks:
            run_chunk(task.case.settings.to_json(), task.first, task.count)
        without = min(without, perf_counter() - begin)
    return Result(
        "ledger: share of a run's time",
        median(shares),
        0.03,
        False,
        f"the best of five runs with it over the best without: {with_ledger / without - 1:.3f}",
    )


def _workers() -> Result:
    study = replace(paper_study("bayesian"), replications=MINUTE)
    one = two = float("inf")
    for _ in range(2):  # turn by turn, the better of each, as everywhere here
        one = min(one, _seconds(study, "dask", 1))
        two = min(two, _seconds(study, "dask", 2))
    return Result(
        "two local Dask workers: times faster than one",
        one / two,
        1.7,
        True,
        f"a study of {one:.0f} s, start-up of the cluster included",
    )


def _task_lengths() -> Result:
    """Compare Dask with threads on studies of several lengths: when does a cluster pay?"""
    details, shares = [], []
    for replications in (400, 4000, 40_000):
        study = replace(paper_study("bayesian"), replications=replications)
        threads, dask = _seconds(study, "threads", 2), _seconds(study, "dask", 2)
        shares.append(dask / threads)
        details.append(f"{threads:.1f} s -> {dask:.1f} s")
    return Result(
        "two Dask workers' time over two threads' on the longest of three studies",
        shares[-1],
        1.3,
        False,
        "threads -> Dask: " + ", ".join(details),
    )


def _memory() -> Result:
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", MEMORY, f"{folder}/run"],
            capture_output=True,
            text=True,
            check=True,
        )
    times, kibibytes = map(int, done.stdout.split())
    return Result(
        f"GiB of the driver's memory: 100,000 replications x {times} times",
        kibibytes / 2**20,
        1,
        False,
    )
