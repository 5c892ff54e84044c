"""Live agents in PostgreSQL: the tests of files that hold for any database, and its own."""

import sqlite3
from threading import Thread

import pytest

import restive as rs
from live_cases import created, fingerprint, memory_of, reply, run
from postgres_server import Server
from restive.errors import BusyError, DiskFullError, ProblemError, StoreError
from restive.live.checking import check
from restive.live.creating import rebuild_file, write_good_part
from restive.live.journal import TABLES, Journal, copy_journal
from restive.live.postgres import agents_of, place_of

# run here too, on the `path` below
from test_live import (  # noqa: F401
    test_i1_what_was_acknowledged_is_there_for_whoever_looks,
    test_i3_a_decision_never_changes,
    test_i4_an_id_is_kept_even_where_nothing_else_was_written,
    test_i4_requests_may_be_repeated,
    test_i5_all_who_write_see_one_line_of_history,
    test_it_decides_as_the_agent_in_memory_does,
    test_ticks_in_which_nobody_calls_pass,
)


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def path(server):
    return server.new_place()


def checked(place):
    journal = Journal(place)
    try:
        with journal.reading():
            return check(journal)
    finally:
        journal.close()


def rows_of(place):
    journal = Journal(place)
    try:
        with journal.reading():
            return {t: sorted(map(tuple, journal.connection.stream(f"SELECT * FROM {t}")), key=repr)
                    for t in TABLES}  # fmt: skip
    finally:
        journal.close()


# ---------------------------------------------------------------- between the two


def test_an_agent_moves_between_databases_with_all_it_has(path, server, tmp_path):
    with created(path) as live:
        run(live, 12)
        live.make_token("ward", "act")
        live._session.keep_snapshot()
        live.undo()
    file, again = tmp_path / "copy.db", server.new_place()
    for source, target in ((path, file), (str(file), again)):
        journal = Journal(source)
        copy_journal(journal, target)
        journal.close()
    assert rows_of(path) == rows_of(file) == rows_of(again)
    assert checked(path) == checked(file) == checked(again)
    with rs.LiveAgent.open(path) as one, rs.LiveAgent.open(file) as two:
        run(one, 6), run(two, 6)
        assert fingerprint(one) == fingerprint(two)


def test_it_decides_as_its_twin_in_a_file_does(path, tmp_path):
    with created(path, "mixed") as one, created(tmp_path / "a.db", "mixed") as two:
        run(one, 20), run(two, 20)
        assert fingerprint(one) == fingerprint(two)
        assert one.status().forecast == pytest.approx(two.status().forecast, rel=1e-12)


def test_a_rebuilt_agent_is_what_a_rebuilt_file_is(path, tmp_path):
    file = tmp_path / "a.db"
    for place in (path, file):
        with created(place) as live:
            run(live, 8)
            arm, state = next((a, s) for a, s in live.results(7).items() if s in (0, 1))
            live.correct({arm: 1 - state}, 7, "typed wrongly")
        rebuild_file(place, None)
        checked(place)
    with rs.LiveAgent.open(path) as one, rs.LiveAgent.open(file) as two:
        assert memory_of(one).tick == memory_of(two).tick
        assert one.decide().arms == two.decide().arms


def test_the_good_part_is_written(path, tmp_path):
    with created(path) as live:
        run(live, 5)
        live._session.journal.connection.execute("UPDATE event SET actor = 'x' WHERE seq = 6")
    with pytest.raises(StoreError, match="event 6 was damaged or edited"):
        checked(path)
    journal = Journal(path)
    assert write_good_part(journal, tmp_path / "good.db") == 5
    journal.close()
    assert checked(tmp_path / "good.db")[0] == 5


# ---------------------------------------------------------------- several at once


def test_two_who_write_at_once_are_both_served_and_see_each_other(path):
    created(path).close()
    done = {}

    def work(name):
        with rs.LiveAgent.open(path, "process") as live:
            for i in range(40):
                live.note(f"{name} {i}")
            done[name] = True

    threads = [Thread(target=work, args=(name,)) for name in "ab"]
    with rs.LiveAgent.open(path) as other:
        before = other.status().events
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert done == {"a": True, "b": True}
        assert other.status().events == before + 80
    checked(path)


def test_a_lock_that_somebody_holds_is_waited_for_so_long(path):
    with created(path) as one, rs.LiveAgent.open(path) as two:
        two.wait_for_others(0.05)
        with one._session.writing(), pytest.raises(BusyError, match="for too long; try again"):
            two.note("x")
        two.note("y")


# ---------------------------------------------------------------- broken connections


def cut(server):
    server.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                   "application_name = 'restive' AND pid <> pg_backend_pid()")  # fmt: skip


def test_a_connection_that_was_cut_between_calls_is_made_anew(path, server):
    with created(path, durability="power") as live:
        run(live, 3)
        cut(server)
        decision = live.decide()
        server.stop(), server.start()
        assert live.decide() == decision
        run(live, 2)
    checked(path)


@pytest.mark.parametrize("kept", [False, True])
def test_a_connection_lost_at_commit_is_settled_by_asking_again(path, server, kept, monkeypatch):
    with created(path) as live:
        run(live, 3)
        decision = live.decide()
        results = {name: reply(3, name) for name in decision.arms}
        database = live._session.journal.database
        commit = database.commit

        def lost(appended):
            if kept:
                commit(appended)
            cut(server)
            commit(appended)

        monkeypatch.setattr(database, "commit", lost)
        with pytest.raises(BusyError, match="ask again, with the same request id"):
            live.record(results, request="r1")
        monkeypatch.undo()
        first = live.record(results, request="r1")
        assert first.new == len(results)
        assert live.record(results, request="r1") == first
        found = [e for e in live._session.journal.events() if e.request == "r1"]
        assert len(found) == 1
    checked(path)


# ---------------------------------------------------------------- what cannot be


def test_a_password_is_never_shown(server):
    for address in (
        f"postgresql://postgres:hidden@/nothing?host={server.folder}",
        f"postgresql://postgres@/nothing?host={server.folder}&password=hidden",
        f"postgresql://postgres:hid%64en@/nothing?host={server.folder}",
        "postgresql://postgres:hidden@127.0.0.1:1/nothing",
        "postgresql://postgres:hidden@127.0.0.1:port:1/nothing",
    ):
        with pytest.raises((StoreError, ProblemError)) as caught:
            rs.LiveAgent.open(f"{address}#agent")
        assert "hid" not in str(caught.value)


def test_places_that_cannot_be(server, path):
    for place, message in (
        (server.address(), "say which agent"),
        (f"{server.address()}#pg_x", "say which agent"),
        (f"{server.address()}#a b", "say which agent"),
        (path, "there is no such agent; make one"),
        (f"{server.address('nothing')}#a", "cannot be reached.*does not exist"),
        (f"{server.address()}#public", "of another program"),
        ("postgresql://[#a", "this is no URL of PostgreSQL"),
    ):
        with pytest.raises((StoreError, ProblemError), match=message) as caught:
            rs.LiveAgent.open(place)
        assert "\n" not in str(caught.value)
    assert place_of(f"{server.address()}#a").name == f"{server.address()}#a"


def test_what_is_there_is_not_made_again(path, server):
    created(path).close()
    with pytest.raises(StoreError, match="is there already"):
        created(path)
    with pytest.raises(StoreError, match="is there already"):
        created(f"{server.address()}#public")


def test_another_format_is_refused(path, server):
    created(path).close()
    agent = path.partition("#")[2]
    server.execute(f"COMMENT ON SCHEMA {agent} IS 'restive live agent, format 9'")
    with pytest.raises(StoreError, match="has format 9, this restive reads 2"):
        rs.LiveAgent.open(path)


def test_missing_rights_and_a_full_disk_change_nothing(path, server):
    with created(path) as live:
        run(live, 2)
        before = live.status().events
        agent = path.partition("#")[2]
        server.execute("DROP ROLE IF EXISTS guest")
        server.execute("CREATE ROLE guest LOGIN")
        as_guest = f"{server.address(user='guest')}#"
        with pytest.raises(StoreError, match="this user may not do that"):
            rs.LiveAgent.open(as_guest + agent)
        with pytest.raises(StoreError, match="this user may not do that"):
            created(as_guest + "own")
        assert "own" not in agents_of(server.address())
        server.execute(
            f"CREATE FUNCTION {agent}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"
        )
        server.execute(f"CREATE TRIGGER full_disk BEFORE INSERT ON {agent}.event "
                       f"FOR EACH ROW EXECUTE FUNCTION {agent}.full()")  # fmt: skip
        with pytest.raises(DiskFullError, match="the server's disk is full"):
            live.note("x")
        server.execute(f"DROP TRIGGER full_disk ON {agent}.event")
        assert live.status().events == before
        live.note("y")
    checked(path)


def test_all_agents_of_a_database_are_listed(server):
    names = [server.new_place() for _ in range(2)]
    for name in names:
        created(name).close()
    assert {name.partition("#")[2] for name in names} <= set(agents_of(server.address()))
    assert "public" not in agents_of(server.address())
    with pytest.raises(ProblemError, match="leave out #a"):
        agents_of(f"{server.address()}#a")


def test_a_copy_that_fails_leaves_nothing(path, server, tmp_path):
    created(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("DELETE FROM prior")  # whose arms are still there
    connection.close()
    journal = Journal(tmp_path / "a.db")
    with pytest.raises(StoreError):
        copy_journal(journal, path)
    journal.close()
    assert path.partition("#")[2] not in agents_of(server.address())
