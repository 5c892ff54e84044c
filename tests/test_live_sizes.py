"""Long walks through a journal: they say how far they are, and can be stopped."""

import os
import signal
from threading import Timer

import pytest

import restive as rs
from live_cases import created, fingerprint, run
from restive.errors import BusyError
from restive.live import creating, session
from restive.live.creating import rebuild_file
from restive.live.told.listing import export_table

ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.db"


def test_long_walks_say_how_far_they_are(path, tmp_path, monkeypatch):
    live = created(path)
    run(live, 600)
    monkeypatch.setattr(creating, "AT_ONCE", 100)
    count = live.check()
    for walk in (
        live.check,
        lambda show: export_table(live, "events", tmp_path / "events.csv", show),
        lambda show: export_table(live, "pulls", tmp_path / "pulls.csv", show),
        lambda show: rebuild_file(path, tmp_path / "new.db", show),
    ):
        told = []
        walk(lambda done, total, told=told: told.append((done, total)))
        assert told == sorted(told)
        (total,) = {total for _, total in told}
        assert 0 < told[0][0] <= told[-1][0] <= total
        assert total in (count, 2 * count, 1200)
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert new.events_replayed == 0  # there is a snapshot
        assert len(new.events()) == count


def test_ctrl_c_stops_a_long_query(path):
    live = created(path)
    run(live, 2)
    expected = fingerprint(live)
    journal = live._session.journal
    timer = Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt), journal.reading():
        journal.connection.execute(ENDLESS).fetchall()
    timer.join()
    assert fingerprint(live) == expected
    assert live.decide().tick == 2


def test_a_rebuild_that_is_stopped_leaves_nothing(path, tmp_path, monkeypatch):
    run(created(path), 300)
    monkeypatch.setattr(creating, "AT_ONCE", 50)

    def stop(done, total):
        if done > total / 2 + 100:
            raise KeyboardInterrupt

    there = set(os.listdir(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        rebuild_file(path, tmp_path / "new.db", stop)
    assert set(os.listdir(tmp_path)) <= there


def test_after_a_long_replay_the_next_one_to_open_the_file_need_not_do_it_again(path, monkeypatch):
    live = created(path)
    run(live, 20)
    live._session.journal.connection.execute("DELETE FROM snapshot")
    live.close()
    monkeypatch.setattr(session, "LONG_REPLAY", 0.0)
    with rs.LiveAgent.open(path) as first, rs.LiveAgent.open(path) as second:
        assert (first.events_replayed, second.events_replayed) == (40, 0)
        assert fingerprint(first) == fingerprint(second)


def test_a_snapshot_that_cannot_be_kept_is_no_error_of_what_was_done(path, monkeypatch):
    """Whoever was told so would record again what is recorded."""
    live = created(path)
    monkeypatch.setattr(session, "COMPUTED_PER_SNAPSHOT", 0.0)

    def busy(self):
        raise BusyError("somebody else is writing")

    monkeypatch.setattr(session.Session, "keep_snapshot", busy)
    decision = live.decide()
    assert live.record(dict.fromkeys(decision.arms, 1)).new == 2
