"""Kills, cuts and crowds: what a live agent acknowledged is there, and nothing else is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

import restive as rs
from live_cases import created, fingerprint, reply, run
from restive.errors import DiskFullError, StoreError
from restive.live.journal import Journal

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
    kinds = ["equal", "controlled", "joint"]
    assert [line.split(" in ")[0] for line in shown.splitlines()] == [
        *(f"{kind}: {KILLS} kills" for kind in kinds),
        "12 points",
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


def test_a_full_disk_changes_nothing(tmp_path):
    path = tmp_path / "a.db"
    live = created(path, num_arms=200, num_pulls=100)
    run(live, 2)
    execute = live._session.journal.connection.execute
    (pages,) = execute("PRAGMA page_count").fetchone()
    execute(f"PRAGMA max_page_count = {pages}")
    kept = live.events()

    def until_it_is_full():
        while True:
            decision = live.decide()
            kept[:] = live.events()
            live.record(dict.fromkeys(decision.arms, 1))
            kept[:] = live.events()

    with pytest.raises(DiskFullError, match="the disk is full; nothing was changed"):
        until_it_is_full()
    assert live.events() == kept  # reading goes on
    with rs.LiveAgent.open(path) as again:
        assert fingerprint(again) == fingerprint(live)
    execute("PRAGMA max_page_count = 1000000")
    live.record(dict.fromkeys(live.decide().arms, 1))
    assert live.check() == len(live.events()) > len(kept)
