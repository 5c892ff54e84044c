"""Live agents: what durability costs, against bare SQLite transactions that write the same rows."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import restive as rs
from benchmarks.harness import Result, best_time
from restive.live.journal import INSERT, Journal

STEPS = 400
LEVELS = np.linspace(0.1, 0.9, 9)
WEEK = """
import sys, time
began = time.perf_counter()
from restive.live import LiveAgent
with LiveAgent.open(sys.argv[1]) as live:
    decision = live.decide(tick=live.tick + 1)
    live.record(dict.fromkeys(decision.arms, 1))
print(time.perf_counter() - began)
"""


SYNCS = """
import sys
from pathlib import Path
import restive as rs
from benchmarks.live import LEVELS, _bare, _stepped
place, what, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if what == "bare":
    _bare(place, "power", count)
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
    (place / f"{count}.db").unlink(missing_ok=True)
    return calls


def _steps(place: Path) -> list[Result]:
    results = []
    for durability, goal in (("process", 5.0), ("power", 5.0)):
        live = rs.LiveAgent.create(
            place / f"{durability}.db", rs.grid_prior(LEVELS, 8), 3, seed=1, durability=durability
        )
        live.decide()
        count = STEPS if durability == "process" else STEPS // 4
        step = bare = float("inf")
        for _ in range(6):  # in turn, since machine and disk are shared
            bare = min(bare, _bare(place, durability, count))
            step = min(step, _stepped(live, count))
        live.close()
        results.append(
            Result(
                f"step, K=8 N=3, durability {durability!r}, over a bare transaction",
                step / bare,
                goal,
                at_least=False,
                detail=f"{1e3 * step:.2f} ms and {1e3 * bare:.2f} ms, best of 6 runs of {count}",
            )
        )
    return results


def _stepped(live: rs.LiveAgent, count: int) -> float:
    """Seconds a step."""
    decision = live.decide()
    began = perf_counter()
    for _ in range(count):
        decision = live.step({arm: (decision.tick + int(arm)) % 2 for arm in decision.arms})
    return (perf_counter() - began) / count


def _bare(place: Path, durability: str, count: int) -> float:
    """Seconds of a transaction that writes what a step writes, and does nothing else."""
    path = place / "bare.db"
    for ending in ("", "-wal", "-shm"):
        Path(f"{path}{ending}").unlink(missing_ok=True)
    path.touch()
    Journal.prepare(path)
    journal = Journal(path, durability)
    execute, many = journal.connection.execute, journal.connection.executemany
    seen, decided = (
        '{"results":[1,0,1]}',
        '{"arms":[0,3,5],"mean":1.23456789012345,"pulls":3,"variance":0.567890123456789}',
    )
    began = perf_counter()
    for tick in range(count):
        execute("BEGIN IMMEDIATE")
        row = (
            2 * tick + 1,
            "record",
            tick,
            1794795463470454,
            None,
            None,
            "python",
            seen,
            bytes(32),
        )
        execute(INSERT, row)
        many(
            "UPDATE pull SET status = ?, state = ?, recorded = ? WHERE tick = ? AND slot = ?",
            [("seen", 1, 2 * tick + 1, tick - 1, slot) for slot in (0, 3, 5)],
        )
        execute(INSERT, (2 * tick + 2, "decide", *row[2:7], decided, bytes(32)))
        many(
            "INSERT INTO pull VALUES (?, ?, ?, NULL, ?, ?, NULL)",
            [(tick, slot, "open", 0, 0.41152263) for slot in (0, 3, 5)],
        )
        execute("COMMIT")
    seconds = (perf_counter() - began) / count
    journal.close()
    return seconds


def _opening(place: Path) -> Result:
    path = place / "process.db"
    with rs.LiveAgent.open(path, "process") as live:
        _stepped(live, 2000)
        live.snapshot()
        events = live.status().events
    seconds = best_time(lambda: rs.LiveAgent.open(path).close())
    return Result(
        f"seconds to open K=8 with a snapshot ({events:,} events)", seconds, 0.2, at_least=False
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
    seconds = min(float(one.stdout) for one in done)
    return [
        Result(
            "seconds of a weekly next + record, K=100,000 N=1,000, cold process",
            seconds,
            3.0,
            at_least=False,
        ),
        Result("kB a step of 1,000 pulls, K=100,000", written, 40.0, at_least=False),
    ]
