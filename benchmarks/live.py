"""Live agents: what durability costs, against bare SQLite transactions that write the same rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time

import numpy as np

import restive as rs
from benchmarks.harness import Result, best_time
from restive.live.journal.events import INSERT, Journal

STEPS = 100
ROUNDS = 30
LEVELS = np.linspace(0.1, 0.9, 9)
WEEK = """
import sys, time
began = time.perf_counter()
from restive.live.agent import LiveAgent
with LiveAgent.open(sys.argv[1]) as live:
    decision = live.decide(tick=live.tick + 1)
    live.record(dict.fromkeys(decision.arms, 1))
print(time.perf_counter() - began, time.process_time())
"""


SYNCS = """
import sys
from pathlib import Path
import restive as rs
from benchmarks.live import LEVELS, Bare, _stepped
place, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if what == "bare":
    Bare(place, "power").seconds(count)
else:
    with rs.LiveAgent.create(place / f"{count}.db", rs.grid_prior(LEVELS, 8), 3, seed=1) as live:
        _stepped(live, count)
"""


def run() -> list[Result]:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        return [*_steps(place), *_syncs(place), _opening(place), *_many_arms(place)]


def _syncs(place: Path) -> list[Result]:
    """Syncs of the disk, counted by strace where it is installed."""
    if shutil.which("strace") is None:
        return []
    step, bare = (
        (_synced(place, what, 300) - _synced(place, what, 100)) / 200 for what in ("step", "bare")
    )
    return [
        Result(
            "syncs of the disk a step, durability 'power', over those of a bare transaction",
            step / bare,
            1.05,
            at_least=False,
            detail=f"{step:.3f} and {bare:.3f}; snapshots and checkpoints have theirs",
        )
    ]


def _synced(place: Path, what: str, count: int) -> int:
    report = place / "syncs"
    program = ["strace", "-f", "-o", str(report), "-e", "trace=fsync,fdatasync"]
    program += [sys.executable, "-c", SYNCS, str(place), what, str(count)]
    subprocess.run(program, check=True)
    calls = sum("sync(" in line for line in report.read_text().splitlines())
    report.unlink()
    for made in (f"{count}.db", "bare power.db"):
        (place / made).unlink(missing_ok=True)
    return calls


def _steps(place: Path) -> list[Result]:
    """Steps and bare transactions in turn; in processor time, unless the disk decides."""
    results = []
    for durability in ("process", "power"):
        live = rs.LiveAgent.create(
            place / f"{durability}.db", rs.grid_prior(LEVELS, 8), 3, seed=1, durability=durability
        )
        live.decide()
        plain = Bare(place, durability)
        both = (lambda live=live: _stepped(live, STEPS), lambda plain=plain: plain.seconds(STEPS))
        clocks = [[_clocks(one) for one in both] for _ in range(ROUNDS)]
        live.close()
        plain.journal.close()
        processor = [sum(pair[i][0] for pair in clocks) / ROUNDS for i in (0, 1)]
        wall = [min(pair[i][1] for pair in clocks) for i in (0, 1)]
        step, bare = processor if durability == "process" else wall
        results.append(
            Result(
                f"step, K=8 N=3, durability {durability!r}, over a bare transaction",
                step / bare,
                5.0,
                at_least=False,
                detail=f"{1e3 * processor[0]:.2f} and {1e3 * processor[1]:.2f} ms of processor "
                f"time; by the clock {1e3 * wall[0]:.2f} and {1e3 * wall[1]:.2f}, best of {ROUNDS}",
            )
        )
    return results


def _clocks(seconds: Callable[[], float]) -> tuple[float, float]:
    """Seconds of a step: of the processor, and by the clock on the wall."""
    began = process_time()
    wall = seconds()
    return (process_time() - began) / STEPS, wall


def _stepped(live: rs.LiveAgent, count: int) -> float:
    """Seconds a step."""
    decision = live.decide()
    began = perf_counter()
    for _ in range(count):
        decision = live.step({arm: (decision.tick + int(arm)) % 2 for arm in decision.arms})
    return (perf_counter() - began) / count


class Bare:
    """Transactions that write what steps write, and do nothing else."""

    SEEN = '{"results":[1,0,1]}'
    DECIDED = '{"arms":[0,3,5],"mean":1.23456789012345,"pulls":3,"variance":0.567890123456789}'

    def __init__(self, place: Path, durability: str) -> None:
        path = place / f"bare {durability}.db"
        path.touch()
        Journal.prepare(path)
        self.journal = Journal(path, durability)
        self.ticks = 0

    def seconds(self, count: int) -> float:
        """Seconds of a transaction."""
        began = perf_counter()
        for tick in range(self.ticks, self.ticks + count):
            self._write(tick)
        self.ticks += count
        return (perf_counter() - began) / count

    def _write(self, tick: int) -> None:
        execute, many = self.journal.connection.execute, self.journal.connection.executemany
        execute("BEGIN IMMEDIATE")
        rest = (tick, 1794795463470454, None, None, "python")
        execute(INSERT, (2 * tick + 1, "record", *rest, self.SEEN, bytes(32)))
        many(
            "UPDATE pull SET status = ?, state = ?, recorded = ? WHERE tick = ? AND slot = ?",
            [("seen", 1, 2 * tick + 1, tick - 1, slot) for slot in (0, 3, 5)],
        )
        execute(INSERT, (2 * tick + 2, "decide", *rest, self.DECIDED, bytes(32)))
        many(
            "INSERT INTO pull VALUES (?, ?, ?, NULL, ?, ?, NULL)",
            [(tick, slot, "open", 0, 0.41152263) for slot in (0, 3, 5)],
        )
        execute("COMMIT")


def _opening(place: Path) -> Result:
    path = place / "process.db"
    with rs.LiveAgent.open(path, "process") as live:
        _stepped(live, 2000)
        live.snapshot()
        events = live.status().events
    seconds = best_time(lambda: rs.LiveAgent.open(path).close())
    return Result(
        f"seconds to open K=8 N=3 with a snapshot ({events:,} events)", seconds, 0.2, at_least=False
    )


def _many_arms(place: Path) -> list[Result]:
    path = place / "many.db"
    live = rs.LiveAgent.create(
        path, rs.grid_prior(LEVELS, 100_000), 1000, seed=1, clock=rs.Clock.given(),
        names=[f"P{k:06}" for k in range(100_000)],
    )  # fmt: skip
    sizes = []
    for tick in range(6):
        live.record(dict.fromkeys(live.decide(tick=tick).arms, tick % 2))
        live._session.journal.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sizes.append(os.path.getsize(path))
    live.close()
    written = float(np.mean(np.diff(sizes))) / 1000
    program = [sys.executable, "-c", WEEK, str(path)]
    done = [subprocess.run(program, capture_output=True, text=True, check=True) for _ in range(3)]
    seconds, processor = min(tuple(map(float, one.stdout.split())) for one in done)
    return [
        Result(
            "seconds of a weekly next + record, K=100,000 N=1,000, cold process",
            seconds,
            3.0,
            at_least=False,
            detail=f"{processor:.2f} s of processor time, with what Python itself takes to start",
        ),
        Result("kB a step of 1,000 pulls, K=100,000", written, 40.0, at_least=False),
    ]
