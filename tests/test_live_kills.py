"""Kills, cuts and crowds: what a live agent acknowledged is there, and nothing else is."""

import os
import resource
import shutil
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

import restive as rs
from live_cases import PRIORS, created, fingerprint, reply, run
from restive.errors import DiskFullError, StoreError
from restive.live.journal.events import Journal

KILLS = int(os.environ.get("RESTIVE_LIVE_KILLS", "3"))  # of each sort of prior; more on demand
PAGE, FRAME_HEAD, WAL_HEAD = 4096, 24, 32


def nursery(*arguments):
    program = Path(__file__).with_name("live_nursery.py")
    done = subprocess.run(
        [sys.executable, str(program), *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_agents_that_are_killed_again_and_again(tmp_path):
    """At random moments, at certain points, and four processes at once."""
    shown = nursery("all", tmp_path, KILLS)
    assert [line.split(" in ")[0] for line in shown.splitlines()] == [
        *(f"{kind}: {KILLS} kills" for kind in PRIORS),
        "12 points",
        "many checkpoints",
        "4 processes",
    ]


def test_four_threads_on_one_agent(tmp_path):
    alone = created(tmp_path / "alone.db")
    expected = run(alone, 30)
    live = created(tmp_path / "a.db")
    failures = []

    def worker():
        try:
            while (decision := live.decide()).tick < 30:
                live.record({a: reply(decision.tick, a) for a in decision.arms}, decision.tick)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=worker) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [live.decision(tick).arms for tick in range(30)] == expected
    alone.decide()
    assert fingerprint(live) == fingerprint(alone)
    assert live.check() == len(live.events())


def test_a_log_cut_anywhere_opens_to_a_prefix_of_history(tmp_path):
    path = tmp_path / "a.db"
    created(path).close()
    live = rs.LiveAgent.open(path, durability="process")
    run(live, 6)
    whole = live.events()
    wal = path.with_name("a.db-wal").read_bytes()
    main = path.read_bytes()
    frames = (len(wal) - WAL_HEAD) // (FRAME_HEAD + PAGE)
    assert frames > 20
    lengths = set()
    for frame in range(frames + 1):
        for more in (0, 1000):
            copy = tmp_path / "copy" / "a.db"
            shutil.rmtree(copy.parent, ignore_errors=True)
            copy.parent.mkdir()
            copy.write_bytes(main)
            end = WAL_HEAD + frame * (FRAME_HEAD + PAGE) + more
            copy.with_name("a.db-wal").write_bytes(wal[:end])
            journal = Journal(copy)
            found = list(journal.checked_events())
            assert found == whole[: len(found)]
            lengths.add(len(found))
            journal.close()
        if frame % 8 == 0:
            with rs.LiveAgent.open(copy) as again:
                assert again.check() == len(found)
                again.decide()
    assert lengths == set(range(1, len(whole) + 1))
    live.close()


def test_a_log_begun_anew_over_an_old_one_opens_to_a_prefix_of_history(tmp_path):
    """After a checkpoint the log is written from its beginning; old frames lie behind new ones."""
    path, log = tmp_path / "a.db", tmp_path / "a.db-wal"
    created(path).close()
    live = rs.LiveAgent.open(path, durability="process")
    execute = live._session.journal.connection.execute
    execute("PRAGMA wal_autocheckpoint = 0")
    run(live, 9)
    execute("PRAGMA wal_checkpoint(FULL)")
    old, main, safe = log.read_bytes(), path.read_bytes(), len(live.events())
    run(live, 4)
    new, whole = log.read_bytes(), live.events()
    assert (len(new), path.read_bytes()) == (len(old), main)
    assert new[:WAL_HEAD] != old[:WAL_HEAD]
    (tmp_path / "copy").mkdir()
    copy, lengths = tmp_path / "copy" / "a.db", set()
    for cut in range(0, len(new), (FRAME_HEAD + PAGE) // 4):
        copy.write_bytes(main)
        copy.with_name("a.db-wal").write_bytes(new[:cut] + old[cut:])
        journal = Journal(copy)
        found = list(journal.checked_events())
        assert found == whole[: len(found)]
        lengths.add(len(found))
        journal.close()
    assert lengths == set(range(safe, len(whole) + 1))
    live.close()


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.6, 0.95])
def test_a_file_that_was_cut_is_refused_by_name(tmp_path, share):
    path = tmp_path / "a.db"
    live = created(path)
    run(live, 60)
    live.close()
    size = path.stat().st_size
    os.truncate(path, int(size * share))
    with pytest.raises(StoreError, match=r"damaged|is not the file of a live agent") as error:
        rs.LiveAgent.open(path)
    assert str(path) in str(error.value)


@contextmanager
def no_file_beyond(size):
    """Let the system refuse to write files beyond a size, as a full disk refuses."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def played(live, kept):
    """Play a tick; `kept` holds all events that were acknowledged."""
    decision = live.decide()
    kept[:] = live.events()
    live.record({name: reply(decision.tick, name) for name in decision.arms})
    kept[:] = live.events()


def refusal(live, kept):
    """Play a tick; return what was said if the disk refused, "" if not."""
    try:
        played(live, kept)
    except DiskFullError as error:
        assert live.events() == kept  # reading goes on
        return str(error)
    return ""


def test_a_disk_that_takes_no_more_changes_nothing(tmp_path):
    """The system refuses a write, at every place of a transaction in turn."""
    path = tmp_path / "a.db"
    live = created(path, num_arms=200, num_pulls=100)
    whole = created(tmp_path / "whole.db", num_arms=200, num_pulls=100)
    kept, refused = live.events(), 0
    log = path.with_name("a.db-wal")
    for number in range(60):
        with no_file_beyond(log.stat().st_size + 700 * number):
            error = refusal(live, kept)
            if error:
                refused += 1
                assert error.startswith(f"{path}: the disk refused a write")
                assert error.endswith("nothing was changed. Make room, try again")
        if number % 20 == 0:
            with rs.LiveAgent.open(path) as again:
                assert fingerprint(again) == fingerprint(live)
        played(live, kept)  # there is room again
    assert refused > 20
    assert live.check() == len(kept)
    run(whole, live.tick + 1)
    assert fingerprint(live) == fingerprint(whole)


def test_a_database_that_may_not_grow_changes_nothing(tmp_path):
    """The other error by which SQLite says that it is full."""
    path = tmp_path / "a.db"
    live = created(path, num_arms=200, num_pulls=100)
    run(live, 2)
    execute = live._session.journal.connection.execute
    (pages,) = execute("PRAGMA page_count").fetchone()
    execute(f"PRAGMA max_page_count = {pages}")
    kept = live.events()

    def until_it_is_full():
        while True:
            played(live, kept)

    with pytest.raises(DiskFullError, match=r"nothing was changed\. Make room, try again"):
        until_it_is_full()
    assert live.events() == kept  # reading goes on
    with rs.LiveAgent.open(path) as again:
        assert fingerprint(again) == fingerprint(live)
    execute("PRAGMA max_page_count = 1000000")
    played(live, kept)
    assert live.check() == len(kept)
