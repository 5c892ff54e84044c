"""Files of operators' sizes: a million events, and sixty arms that hardly move.

`RESTIVE_BENCH_EVENTS` says how many events the longer file has; the other has a tenth of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import restive as rs
from benchmarks.harness import Result

__all__ = ["make_file", "run"]

EVENTS = int(os.environ.get("RESTIVE_BENCH_EVENTS", "100000"))
ARMS, PULLS = 8, 2
LEVELS = (0.1, 0.3, 0.5, 0.7, 0.9)
MEASURED = """
import json, resource, sys
from restive.cli import app
try:
    app()
except SystemExit as end:
    assert not end.code, end.code
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]), file=sys.stderr)
"""


def make_file(path: Path, events: int) -> None:
    """Write a file of so many events: decisions and results of arms as the prior has them."""
    rng = np.random.default_rng(1)
    chances = rng.choice(LEVELS, size=(ARMS, 2))  # of being good, by last state
    states = np.zeros(ARMS, dtype=np.int64)
    with rs.LiveAgent.create(
        path, rs.grid_prior(LEVELS, ARMS), PULLS, clock=rs.Clock.given(), seed=7,
        durability="process",
    ) as live:  # fmt: skip
        for tick in range(events // 2):
            arms = live.decide(tick=tick).arms
            states = (rng.random(ARMS) < chances[np.arange(ARMS), states]).astype(np.int64)
            live.record({name: int(states[int(name)]) for name in arms})
        live.snapshot()


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [*_many_events(place), *_slow_arms(place)]


def _many_events(place: Path) -> list[Result]:
    paths = {events: place / f"{events}.db" for events in (EVENTS // 10, EVENTS)}
    for events, path in paths.items():
        make_file(path, events)
    few, many = paths.values()
    found = []
    for command, goal in (("status", 2.0), ("next", 2.0)):
        more = ["--tick", str(EVENTS // 2)] if command == "next" else []
        seconds, megabytes = _used(command, many, *more)
        name = f"processor seconds of `live {command}`, {EVENTS:,} events, cold process"
        detail = f"{megabytes:.0f} MB"
        found.append(Result(name, seconds, goal, at_least=False, detail=detail))
    for command, goal in (("check", 30.0), ("rebuild", 120.0), ("export", 30.0)):
        seconds = {}
        for path in (few, many):
            made = place / f"{command}{path.stem}.{'db' if command == 'rebuild' else 'csv'}"
            out = [] if command == "check" else ["--out", str(made)]
            seconds[path], _ = _used(command, path, *out)
        each = (seconds[many] - seconds[few]) / (EVENTS - EVENTS // 10)
        detail = f"{seconds[few]:.1f} s for {EVENTS // 10:,}, {seconds[many]:.1f} s for {EVENTS:,}"
        name = f"processor seconds of `live {command}` for a million events"
        found.append(Result(name, each * 1e6, goal, at_least=False, detail=detail))
    return found


def _slow_arms(place: Path) -> list[Result]:
    """The call centre of the documentation: some candidates settle after thousands of weeks."""
    path = place / "calls.db"
    log = Path(__file__).parent.parent / "examples" / "logs" / "outreach.csv"
    named = "--time week_of --arm person --state outcome --states hung_up,listened --step 1w"
    for arguments in (
        ["fit", str(log), *named.split(), "--by", "region", "--out", str(place / "fit")],
        ["live", "init", str(path), "--prior", str(place / "fit" / "prior.json"), "--pulls", "12"],
    ):
        command = [sys.executable, "-m", "restive", *arguments]
        subprocess.run(command, capture_output=True, check=True)
    found = []
    for command in ("next", "status"):
        seconds, megabytes = _used(command, path)
        name = f"`live {command}`, 60 people of the call centre, cold process"
        found += [
            Result(f"processor seconds of {name}", seconds, 1.0, at_least=False),
            Result(f"MB of {name}", megabytes, 300.0, at_least=False),
        ]
    return found


def _used(command: str, path: Path, *more: str) -> tuple[float, float]:
    """Processor seconds and megabytes of `restive live COMMAND`; the best of three, or the one."""
    program = [sys.executable, "-c", MEASURED, "live", command, str(path), *more]
    found = []
    for _ in range(1 if "--out" in more else 3):  # a file that is there is not written over
        done = subprocess.run(program, capture_output=True, text=True, check=True)
        found.append(tuple(json.loads(done.stderr.splitlines()[-1])))
    seconds, megabytes = min(found)
    return seconds, megabytes
