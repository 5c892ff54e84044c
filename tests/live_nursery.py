"""Children that use a live agent's file and are killed: run as a program of its own.

It has one thread and compiled kernels, so it can fork. Each child continues from what the file
says, as every client should; this process kills it, looks at the file, and starts the next.

    python live_nursery.py all FOLDER COUNT
"""

import os
import resource
import shutil
import signal
import sqlite3
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np

import restive as rs
from live_cases import PRIORS, created, fingerprint, reply
from restive.errors import ConflictError, ProblemError
from restive.live import session as session_module
from restive.live.journal.events import Journal

TICKS_A_KILL = 3
PAGE = 4096  # bytes, of the database
ON_TIME, LATE, NEVER = 0, 1, 2
SLIP = 1000  # ticks too far, by a slip that is undone


def fate(tick: int, name: str) -> tuple[int, int]:
    """Whether a result comes in time, and how many ticks later if it is late."""
    rng = np.random.default_rng([7, tick, *name.encode()])
    return int(rng.choice(3, p=[0.6, 0.3, 0.1])), int(rng.integers(1, 4))


def ticks_from(tick: int) -> int:
    """The tick of the next decision; now and then nobody calls for a while."""
    return tick + (4 if tick % 9 == 8 else 1)


def finish_tick(live: rs.LiveAgent, tick: int, joins: bool) -> None:
    """Do all that is due in a tick; what was done already is harmless."""
    decided = live.decision(tick).arms
    results = {a: reply(tick, a) for a in decided if fate(tick, a)[0] == ON_TIME}
    if results and tick % 3 == 1 and live.request(f"mended {tick}") is None:
        live.record({a: 1 - state for a, state in results.items()}, tick, request=f"wrong {tick}")
        live.undo(request=f"mended {tick}")
    if tick % 5 == 2 and live.settings.words.arm != (noun := f"patient of {tick}"):
        live.set_words({"arm": noun})
    if decided:
        assert live.explain(decided[0]).listed
    half = dict(list(results.items())[::2])
    live.record(half, tick)
    live.record(results, tick)
    for before in range(max(0, tick - 4), tick):
        decision = live.decision(before)
        arms = () if decision is None else decision.arms
        fates = {a: fate(before, a) for a in arms}
        due = [a for a, (how, after) in fates.items() if how == LATE and before + after <= tick]
        live.record({a: reply(before, a) for a in due}, before)
    if joins and tick % 7 == 3:
        kind = live.kinds[tick % len(live.kinds)]
        live.join({f"new {tick}": kind}, {f"new {tick}": (0, 2)}, request=f"join {tick}")
    if joins and tick % 11 == 5:
        live.leave([live.decision(tick).arms[0]], request=f"leave {tick}")
    if tick % 6 == 4 and live._session.memory.roster.joint is None:
        if live.request(f"regret {tick}") is None:
            live.forget(tick - 2, request=f"forget {tick}")
            if tick % 12 == 10:
                live.undo(request=f"regret {tick}")
        with suppress(ProblemError):  # of priors that cannot
            live.remember(10 + tick, request=f"remember {tick}")


def work(live: rs.LiveAgent, until: int, joins: bool, acknowledge=lambda tick: None) -> None:
    """Continue until a tick is decided."""
    while (tick := live.tick) < until or tick >= SLIP:
        if tick >= SLIP:  # a date that was mistyped
            live.undo(request=f"undo {tick - SLIP}")
            continue
        if tick >= 0:
            finish_tick(live, tick, joins)
        following = 0 if tick < 0 else ticks_from(tick)
        if following % 4 == 2 and live.request(f"undo {following}") is None:
            live.decide(tick=following + SLIP, skip=True, request=f"slip {following}")
            continue
        live.decide(tick=following, request=f"decide {following}", skip=following > tick + 1)
        acknowledge(following)


def history(live: rs.LiveAgent) -> list[tuple[str, int, str]]:
    return [(event.kind, event.tick, event.text) for event in live.events()]


def child(
    path: Path, until: int, joins: bool, prepare=lambda: None, rest=lambda: None
) -> tuple[int, int]:
    """Fork a child that works on the file; return its number and where it acknowledges."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(writer)
        return pid, reader
    status = 1
    try:
        os.close(reader)
        prepare()
        live = rs.LiveAgent.open(path, durability="process")
        live._session.journal.connection.execute("PRAGMA wal_autocheckpoint = 3")
        os.write(writer, b"\n")  # it is ready
        work(live, until, joins, lambda tick: os.write(writer, f"{tick}\n".encode()))
        rest()
        status = 0
    finally:
        os._exit(status)


def reap(pid: int, reader: int) -> tuple[int, list[int]]:
    """Wait for a child; return how it ended and what it acknowledged."""
    with os.fdopen(reader) as pipe:
        whole = pipe.read().rpartition("\n")[0]
    ticks = [int(line) for line in whole.split()]
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), ticks


def kills(folder: Path, kind: str, count: int) -> None:
    """Kill at random moments; in the end all is as if nobody had."""
    joins, clock = kind != "joint", rs.Clock.given()
    whole = created(folder / "whole.db", kind, clock=clock)
    moments: list[float] = []
    work(whole, 12, joins, lambda tick: moments.append(time.perf_counter()))
    pace = float(np.median(np.diff(moments)))
    path = folder / "killed.db"
    created(path, kind, clock=clock).close()
    session_module.COMPUTED_PER_SNAPSHOT = 1.0  # many snapshots
    rng = np.random.default_rng(count)
    tick = -1
    for _ in range(count):
        pid, reader = child(path, tick + 3 * TICKS_A_KILL, joins, rest=signal.pause)
        if rng.random() < 0.8:  # else perhaps while it opens the file
            os.read(reader, 1)
        time.sleep(float(rng.uniform(0, 4 * TICKS_A_KILL * pace)))
        os.kill(pid, signal.SIGKILL)
        code, acknowledged = reap(pid, reader)
        assert code == -signal.SIGKILL, code
        before, tick = tick, tick_in(path)
        assert tick >= max([before, *acknowledged]), (tick, acknowledged)
    again = rs.LiveAgent.open(path)
    until = max(tick, 12) + 1
    for live in (again, whole):
        work(live, until, joins)
    assert again.check() == len(again.events())
    assert history(again) == history(whole)
    assert fingerprint(again) == fingerprint(whole)
    assert again.alarms() == ()
    print(f"{kind}: {count} kills in {until} ticks", flush=True)


def tick_in(path: Path) -> int:
    """The last decision in a file that is whole, without restive."""
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (tick,) = connection.execute(
            "SELECT coalesce(max(tick), -1) FROM event WHERE kind = 'decide' AND tick < ? "
            "AND seq NOT IN (SELECT seq FROM withdrawn)",
            (SLIP,),
        ).fetchone()
    connection.close()
    return tick


def stop_at(place: str, number: int):
    """Make a child stop for ever at a place, when it comes there for the n-th time."""

    def prepare() -> None:
        session_module.COMPUTED_PER_SNAPSHOT = 0.0 if place == "snapshot" else 1e9
        commit, keep = Journal.commit, session_module.Session.keep_snapshot
        state = {"count": 0, "inside": False}

        def kept(self) -> None:
            state["inside"] = True
            keep(self)
            state["inside"] = False

        def committed(self) -> None:
            if place != "snapshot" or state["inside"]:
                state["count"] += 1
            due = state["count"] == number and (place != "snapshot" or state["inside"])
            if due and place != "after":
                wait()
            commit(self)
            if due:
                wait()

        def wait() -> None:
            os.write(2, b"!")
            time.sleep(60)

        Journal.commit = committed
        session_module.Session.keep_snapshot = kept

    return prepare


def points(folder: Path) -> None:
    """Kill before and after COMMIT and in the middle of a snapshot: each for certain."""
    whole = created(folder / "whole.db", clock=rs.Clock.given())
    work(whole, 8, True)
    for place in ("before", "after", "snapshot"):
        for number in (1, 2, 5, 9):
            path = folder / f"{place}{number}.db"
            created(path, clock=rs.Clock.given()).close()
            here, there = os.pipe()
            saved = os.dup(2)
            os.dup2(there, 2)  # the child says on its standard error that it is there
            pid, reader = child(path, 8, True, stop_at(place, number))
            os.dup2(saved, 2)
            os.close(there)
            assert os.read(here, 1) == b"!"
            os.kill(pid, signal.SIGKILL)
            code, _ = reap(pid, reader)
            assert code == -signal.SIGKILL
            os.close(here)
            os.close(saved)
            live = rs.LiveAgent.open(path)
            found = history(live)
            assert found == history(whole)[: len(found)]
            assert live.check() == len(found)
            work(live, 8, True)
            assert history(live) == history(whole)
            assert fingerprint(live) == fingerprint(whole)
    print("12 points")


def checkpoints(folder: Path) -> None:
    """Kill in the middle of a checkpoint: before every page that it writes, and within it.

    The system itself does it, when the file is written beyond a limit.
    """
    kind, clock = "mixed", rs.Clock.given()
    whole = created(folder / "whole.db", kind, clock=clock)
    work(whole, 8, True)
    path, log = folder / "a.db", folder / "a.db-wal"
    created(path, kind, clock=clock).close()
    live = rs.LiveAgent.open(path, durability="process")
    live._session.journal.connection.execute("PRAGMA wal_autocheckpoint = 0")
    session_module.COMPUTED_PER_SNAPSHOT = 0.0  # a snapshot with each call
    work(live, 6, True)
    before, logged, found = path.read_bytes(), log.read_bytes(), history(live)
    states = set()
    for number, limit in enumerate(range(PAGE // 2, len(logged), PAGE // 2)):
        shutil.rmtree(folder / "copy", ignore_errors=True)
        (folder / "copy").mkdir()
        copy = folder / "copy" / "a.db"
        copy.write_bytes(before)
        copy.with_name("a.db-wal").write_bytes(logged)
        if checkpoint_up_to(copy, limit) == 0:
            break  # the limit is beyond the last page
        states.add(copy.read_bytes())
        assert copy.with_name("a.db-wal").read_bytes() == logged
        again = rs.LiveAgent.open(copy, durability="process")
        assert history(again) == found
        assert again.check() == len(found)
        assert fingerprint(again) == fingerprint(live)
        if number % 8 == 0:
            work(again, 8, True)
            assert history(again) == history(whole)
            assert fingerprint(again) == fingerprint(whole)
        again.close()
    assert len(states - {before}) > 20, len(states)
    print("many checkpoints")


def checkpoint_up_to(path: Path, limit: int) -> int:
    """Fork a child that moves the log into the file and is killed there; return how it ended."""
    pid = os.fork()
    if pid:
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        assert code in (0, -signal.SIGXFSZ), code
        return code
    status = 1
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        journal = Journal(path, "process")
        journal.last()
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        journal.close()
        status = 0
    finally:
        os._exit(status)


def crowd(folder: Path) -> None:
    """Four processes at once: one line of history."""
    whole = created(folder / "whole.db", clock=rs.Clock.given())
    work(whole, 40, False)
    path = folder / "crowd.db"
    created(path, clock=rs.Clock.given()).close()
    children = [crowd_child(path) for _ in range(4)]
    for pid in children:
        _, status = os.waitpid(pid, 0)
        assert os.waitstatus_to_exitcode(status) == 0
    live = rs.LiveAgent.open(path)
    assert live.check() == len(live.events())
    decided = [live.decision(t).arms for t in range(41)]
    assert all(len(arms) == 2 for arms in decided)
    replayed = rs.LiveAgent.open(path)
    assert fingerprint(replayed) == fingerprint(live)
    assert live.alarms() == ()
    print("4 processes")


def crowd_child(path: Path) -> int:
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        live = rs.LiveAgent.open(path, durability="process")
        while (tick := live.tick) < 40:
            if tick >= 0:
                live.record({a: reply(tick, a) for a in live.decision(tick).arms}, tick)
            with suppress(ConflictError):  # somebody was faster
                live.decide(tick=tick + 1)
        status = 0
    finally:
        os._exit(status)


if __name__ == "__main__":
    folder, count = Path(sys.argv[2]), int(sys.argv[3])
    for kind in PRIORS:
        (folder / kind).mkdir()
        kills(folder / kind, kind, count)
    for name, scene in (("points", points), ("checkpoints", checkpoints), ("crowd", crowd)):
        (folder / name).mkdir()
        scene(folder / name)
