"""Live agents in PostgreSQL: the tests of files that hold for any database, and its own."""

import csv
import json
import os
import signal
import sqlite3
from inspect import signature
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep

import pytest
from typer.testing import CliRunner

import restive as rs
import test_live_results
import test_live_undo
import test_serve
from live_cases import created, fingerprint, memory_of, reply, run
from postgres_server import Server
from restive.cli import app
from restive.errors import BusyError, DiskFullError, ProblemError, StoreError
from restive.live.checking import check
from restive.live.creating import rebuild_file, write_good_part
from restive.live.journal import TABLES, Journal, copy_journal
from restive.live.postgres import agents_of, place_of
from serve_cases import Client, served

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

OF_FILES = {  # what these tests do to a file cannot be done to a schema
    "test_a_full_disk_is_507_and_readiness_turns_red",
    "test_those_who_read_do_not_wait_for_another_process_that_writes",
    "test_somebody_who_writes_for_too_long_is_503",
    "test_arms_that_pulling_moves_need_a_choice",
    "test_status_says_whose_rewards_these_are_where_all_arms_pay",
    "test_a_snapshot_of_what_was_withdrawn_is_passed_over",
    "test_a_place_asks_for_its_role",
}
ELSEWHERE = {"tmp_path", "clinic", "weekly", "prior_file"}  # fixtures of files

for module, fixture in ((test_serve, "service"), (test_live_results, "path"),
                        (test_live_undo, "path")):  # fmt: skip
    for name, test in vars(module).items():
        if name.startswith("test_") and name not in OF_FILES:
            asked_for = set(signature(test).parameters)
            if fixture in asked_for and not asked_for & ELSEWHERE:
                globals()[name] = test  # which is then run here too, on the fixtures below


@pytest.fixture
def service(path):
    with served(path, num_arms=8, num_pulls=3, clock=rs.Clock.given()) as made:
        yield test_serve.Made(*made)


@pytest.fixture(scope="module")
def postgres():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def path(postgres):
    return postgres.new_place()


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


def test_an_agent_moves_between_databases_with_all_it_has(path, postgres, tmp_path):
    with created(path) as live:
        run(live, 12)
        live.make_token("ward", "act")
        live._session.keep_snapshot()
        live.undo()
    file, again = tmp_path / "copy.db", postgres.new_place()
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


def cut(postgres):
    postgres.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                   "application_name = 'restive' AND pid <> pg_backend_pid()")  # fmt: skip


def test_a_connection_that_was_cut_between_calls_is_made_anew(path, postgres):
    with created(path, durability="power") as live:
        run(live, 3)
        cut(postgres)
        decision = live.decide()
        postgres.stop(), postgres.start()
        assert live.decide() == decision
        run(live, 2)
    checked(path)


@pytest.mark.parametrize("kept", [False, True])
def test_a_connection_lost_at_commit_is_settled_by_asking_again(path, postgres, kept, monkeypatch):
    with created(path) as live:
        run(live, 3)
        decision = live.decide()
        results = {name: reply(3, name) for name in decision.arms}
        database = live._session.journal.database
        commit = database.commit

        def lost(appended):
            if kept:
                commit(appended)
            cut(postgres)
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


def test_a_password_is_never_shown(postgres):
    for address in (
        f"postgresql://postgres:hidden@/nothing?host={postgres.folder}",
        f"postgresql://postgres@/nothing?host={postgres.folder}&password=hidden",
        f"postgresql://postgres:hid%64en@/nothing?host={postgres.folder}",
        "postgresql://postgres:hidden@127.0.0.1:1/nothing",
        "postgresql://postgres:hidden@127.0.0.1:port:1/nothing",
    ):
        with pytest.raises((StoreError, ProblemError)) as caught:
            rs.LiveAgent.open(f"{address}#agent")
        assert "hid" not in str(caught.value)


def test_places_that_cannot_be(postgres, path):
    for place, message in (
        (postgres.address(), "say which agent"),
        (f"{postgres.address()}#pg_x", "say which agent"),
        (f"{postgres.address()}#a b", "say which agent"),
        (path, "there is no such agent; make one"),
        (f"{postgres.address('nothing')}#a", "cannot be reached.*does not exist"),
        (f"{postgres.address()}#public", "of another program"),
        ("postgresql://[#a", "this is no URL of PostgreSQL"),
    ):
        with pytest.raises((StoreError, ProblemError), match=message) as caught:
            rs.LiveAgent.open(place)
        assert "\n" not in str(caught.value)
    assert place_of(f"{postgres.address()}#a").name == f"{postgres.address()}#a"


def test_what_is_there_is_not_made_again(path, postgres):
    created(path).close()
    with pytest.raises(StoreError, match="is there already"):
        created(path)
    with pytest.raises(StoreError, match="is there already"):
        created(f"{postgres.address()}#public")


def test_another_format_is_refused(path, postgres):
    created(path).close()
    agent = path.partition("#")[2]
    postgres.execute(f"COMMENT ON SCHEMA {agent} IS 'restive live agent, format 9'")
    with pytest.raises(StoreError, match="has format 9, this restive reads 2"):
        rs.LiveAgent.open(path)


def test_missing_rights_and_a_full_disk_change_nothing(path, postgres):
    with created(path) as live:
        run(live, 2)
        before = live.status().events
        agent = path.partition("#")[2]
        postgres.execute("DROP ROLE IF EXISTS guest")
        postgres.execute("CREATE ROLE guest LOGIN")
        as_guest = f"{postgres.address(user='guest')}#"
        with pytest.raises(StoreError, match="this user may not do that"):
            rs.LiveAgent.open(as_guest + agent)
        with pytest.raises(StoreError, match="this user may not do that"):
            created(as_guest + "own")
        assert "own" not in agents_of(postgres.address())
        postgres.execute(
            f"CREATE FUNCTION {agent}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"
        )
        postgres.execute(f"CREATE TRIGGER full_disk BEFORE INSERT ON {agent}.event "
                       f"FOR EACH ROW EXECUTE FUNCTION {agent}.full()")  # fmt: skip
        with pytest.raises(DiskFullError, match="the server's disk is full"):
            live.note("x")
        postgres.execute(f"DROP TRIGGER full_disk ON {agent}.event")
        assert live.status().events == before
        live.note("y")
    checked(path)


def test_an_agent_whose_schema_was_dropped_and_put_back_goes_on(path, postgres):
    with created(path) as live:
        run(live, 2)
        agent = path.partition("#")[2]
        postgres.execute(f"ALTER SCHEMA {agent} RENAME TO away")
        for _ in range(2):
            with pytest.raises(StoreError, match="its tables are gone"):
                live.status()
            with pytest.raises(StoreError, match="its tables are gone"):
                live.note("x")
        postgres.execute(f"ALTER SCHEMA away RENAME TO {agent}")
        run(live, 2)
    checked(path)


def test_all_agents_of_a_database_are_listed(postgres):
    names = [postgres.new_place() for _ in range(2)]
    for name in names:
        created(name).close()
    assert {name.partition("#")[2] for name in names} <= set(agents_of(postgres.address()))
    assert "public" not in agents_of(postgres.address())
    with pytest.raises(ProblemError, match="leave out #a"):
        agents_of(f"{postgres.address()}#a")


def test_a_copy_that_fails_leaves_nothing(path, postgres, tmp_path):
    created(tmp_path / "a.db").close()
    with sqlite3.connect(tmp_path / "a.db") as connection:
        connection.execute("DELETE FROM prior")  # whose arms are still there
    connection.close()
    journal = Journal(tmp_path / "a.db")
    with pytest.raises(StoreError):
        copy_journal(journal, path)
    journal.close()
    assert path.partition("#")[2] not in agents_of(postgres.address())


# ---------------------------------------------------------------- commands and services


def restive(*arguments):
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


def test_commands_take_a_url_where_they_take_a_file(path, postgres, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    twin = tmp_path / "twin.db"
    Path("arms.csv").write_text("arm\nA\nB\nC\nD\n")
    for place in (path, twin):
        made = restive(
            "live", "init", place, "--levels", "0.2,0.8", "--pulls", 2, "--arms", "arms.csv"
        )
        assert made.startswith(f"{place}: 4 arms")
        restive("live", "next", place, "--out", "list.csv")
        rows = list(csv.DictReader(Path("list.csv").read_text().splitlines()))
        Path("told.csv").write_text("arm,state\n" + "".join(f"{row['arm']},1\n" for row in rows))
        restive("live", "record", place, "told.csv")
        restive("live", "status", place)
        restive("live", "explain", place, "A")
    assert restive("live", "next", path) == restive("live", "next", twin)
    checks = json.loads(restive("live", "check", path, "--json"))
    copied = restive("live", "copy", path, "copy.db")
    assert f"{checks['events']:,} events; the last has digest {checks['digest'][:16]}" in copied
    assert json.loads(restive("live", "check", "copy.db", "--json")) == checks
    back = postgres.new_place()
    restive("live", "copy", "copy.db", back)
    assert json.loads(restive("live", "check", back, "--json")) == checks
    restive("live", "backup", path, "backup.db")
    assert json.loads(restive("live", "check", "backup.db", "--json")) == checks
    listed = restive("live", "list", postgres.address()).split()
    assert {path, back} <= set(listed)
    restive("live", "rebuild", path, "--in-place")
    restive("live", "check", path)
    with pytest.raises(ProblemError, match="a file holds one agent"):
        restive("live", "list", "copy.db")


def test_a_password_on_the_command_line_is_refused(postgres):
    for url in ("postgresql://me:hidden@host/d#a", "postgresql://me@host/d?password=hidden#a"):
        for command in (("live", "status", url), ("serve", url), ("live", "copy", "x.db", url)):
            with pytest.raises(ProblemError, match="PGPASSWORD") as caught:
                restive(*command)
            assert "hidden" not in str(caught.value)


def test_two_services_of_one_agent_answer_as_one(path):
    with served(path) as (one, live), served(None, agent=rs.LiveAgent.open(path)) as (two, _):
        secret = live.make_token("clinic", "act")
        first, second = Client(one, secret), Client(two, secret)
        for tick in range(4):
            asked = [client.post("/v1/decisions", json={}).json() for client in (first, second)]
            assert asked[0] == asked[1]
            arms = [row["arm"] if isinstance(row, dict) else row for row in asked[0]["arms"]]
            body, key = {"seen": {arms[0]: reply(tick, arms[0])}}, {"Idempotency-Key": f"r{tick}"}
            told = first.post("/v1/observations", json=body, headers=key)
            assert told.status_code == 200, told.text
            again = second.post("/v1/observations", json=body, headers=key)
            assert again.json() == told.json()
            body = {"seen": {name: reply(tick, name) for name in arms[1:]}}
            assert second.post("/v1/observations", json=body).status_code == 200
            states = [client.get("/v1/status").json() for client in (first, second)]
            assert states[0] == states[1]
            assert states[0]["seen"] == 2 * (tick + 1)
        assert first.get("/readyz").status_code == second.get("/readyz").status_code == 200
    checked(path)


# ---------------------------------------------------------------- kills

KILLS = int(os.environ.get("RESTIVE_POSTGRES_KILLS", "12"))


def work_until_killed(path):
    """Play on for ever, in a process of its own; a call that fails is made again."""
    while True:
        try:
            with rs.LiveAgent.open(path) as live:
                while True:
                    decision = live.decide()
                    results = {name: reply(decision.tick, name) for name in decision.arms}
                    live.record(results, decision.tick, request=f"r{decision.tick}")
        except StoreError:
            sleep(0.01)


def test_an_agent_killed_again_and_again_decides_as_its_twin(path, postgres, tmp_path):
    """Clients, single processes of the server, and the server itself are killed in turn."""
    created(path, "mixed").close()
    chance = Random(1)
    for kill in range(KILLS):
        child = os.fork()
        if child == 0:
            try:
                work_until_killed(path)
            finally:
                os._exit(1)
        sleep(0.02 + chance.random() * 0.3)
        if kill % 3 == 1:
            rows = postgres.execute("SELECT pid FROM pg_stat_activity WHERE "
                                    "application_name = 'restive'")  # fmt: skip
            for (pid,) in rows[:1]:
                os.kill(pid, signal.SIGKILL)
            sleep(0.1)
        elif kill % 3 == 2:
            postgres.stop("immediate")
            postgres.start()
            sleep(0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    for _ in range(600):  # while the server recovers
        try:
            live = rs.LiveAgent.open(path)
            break
        except BusyError:
            sleep(0.1)
    with live, created(tmp_path / "twin.db", "mixed") as twin:
        assert live.tick > 0
        run(live, 1)
        decided = run(twin, live.tick + 1)
        assert [live.decision(tick).arms for tick in range(live.tick + 1)] == decided
        assert fingerprint(live) == fingerprint(twin)
        print(f"{KILLS} kills, {live.tick + 1} ticks")
    checked(path)
