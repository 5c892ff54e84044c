"""Live agents in PostgreSQL: the tests of files that hold for any database, and its own."""

import csv
import json
import os
import re
import signal
import sqlite3
import subprocess
from inspect import signature
from pathlib import Path
from random import Random
from threading import Thread
from time import sleep
from traceback import TracebackException
from urllib.parse import quote

import pytest
from psycopg import sql
from typer.main import get_command
from typer.testing import CliRunner

import restive as rs
import test_live_results
import test_live_undo
import test_serve
from live_cases import created, fingerprint, memory_of, reply, run
from postgres_server import POSTGRES, Server
from restive.cli import app
from restive.errors import (
    BusyError,
    DiskFullError,
    ProblemError,
    StoreError,
    UnreachableError,
)
from restive.live.checking import check
from restive.live.creating import rebuild_file, write_good_part
from restive.live.journal.events import TABLES, Journal, copy_journal
from restive.live.journal.postgres import agent_place, agents_of
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
from test_live_turns import take_turns

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
    for name, found in vars(module).items():
        if name.startswith("test_") and name not in OF_FILES:
            asked_for = set(signature(found).parameters)
            if fixture in asked_for and not asked_for & ELSEWHERE:
                globals()[name] = found  # which is then run here too, on the fixtures below


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


def test_processes_all_have_their_turns(path):
    take_turns(path)
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
        with pytest.raises(UnreachableError, match="so ask again with the same request id"):
            live.record(results, request="r1")
        monkeypatch.undo()
        first = live.record(results, request="r1")
        assert first.new == len(results)
        assert live.record(results, request="r1") == first
        found = [e for e in live._session.journal.events() if e.request == "r1"]
        assert len(found) == 1
    checked(path)


@pytest.mark.parametrize("kept", [False, True])
def test_a_service_whose_connection_breaks_at_commit_does_it_once(service, postgres, kept):
    """Without an id nobody but the client can know whether it should be done again."""
    for tick in range(2):
        decision = service.live.decide(tick=tick)
        service.live.record({decision.arms[0]: 1})
    database = service.live._session.journal.database
    commit, acts = database.commit, service.live.status().decisions + service.live.status().seen

    def lost(appended):
        database.commit = commit
        if kept:
            commit(appended)
        cut(postgres)
        commit(appended)

    database.commit = lost
    answer = service.act.post("/v1/undo", json={})
    assert answer.status_code == 503, answer.text
    assert "may have been done" in answer.json()["detail"]
    assert answer.headers["retry-after"] == "1"
    assert service.live.status().decisions + service.live.status().seen == acts - kept
    checked(service.live.path)


def test_a_connection_that_breaks_at_any_statement_is_settled_by_asking_again(
    path, postgres, tmp_path
):
    """The connection is cut before the first statement of a step, before the second, and so on."""
    with created(path) as live, created(tmp_path / "twin.db") as twin:
        connection, places, steps, left = live._session.journal.connection, 0, 0, 0

        def cutting(call):
            def run(*given):
                nonlocal left
                left -= 1
                if left == 0:
                    cut(postgres)
                return call(*given)

            return run

        for name in ("begin", "execute", "executemany"):
            setattr(connection, name, cutting(getattr(connection, name)))
        while True:
            tick = live.decide().tick
            results = {name: reply(tick, name) for name in live.decision().arms}
            left = places
            for _ in range(2):
                try:
                    live.step(results, request=f"r{tick}")
                    break
                except UnreachableError:
                    pass
            else:
                raise AssertionError("asked again, it failed again")
            steps += 1
            if left > 0:
                break
            places += 1
        assert places > 6
        assert live.tick == steps
        requests = [event.request for event in live.events(0, 1000) if event.request]
        assert requests == [f"r{tick}" for tick in range(steps)]
        run(live, 1)
        run(twin, live.tick + 1)
        assert fingerprint(live) == fingerprint(twin)
    checked(path)


def test_a_service_tells_that_its_database_is_away_and_goes_on_once_it_is_back(service, postgres):
    page, path = Client(service.app), service.live.path
    assert service.act.get("/readyz").status_code == 200
    postgres.stop("fast")
    try:
        for place in ("/readyz", "/v1/status", "/"):
            answer = service.act.get(place)
            assert answer.status_code == 503, place
            assert answer.json()["detail"].startswith(f"{path}: ")
        assert page.get("/healthz").status_code == 200
        with pytest.raises(UnreachableError, match=r"cannot connect \(.*nothing was changed"):
            rs.LiveAgent.open(path)
    finally:
        postgres.start()
    assert service.act.get("/readyz").status_code == 200
    assert service.act.get("/v1/status").json()["events"] == service.live.status().events


def test_a_child_that_was_forked_leaves_the_connection_to_its_parent(path):
    with created(path) as live:
        number = live._session.journal.connection.raw.info.backend_pid
        child = os.fork()
        if child == 0:
            live._session.journal.connection.__del__()
            os._exit(0)
        os.waitpid(child, 0)
        live.note("still mine")
        assert live._session.journal.connection.raw.info.backend_pid == number


# ---------------------------------------------------------------- what cannot be


def test_a_password_is_never_shown(postgres):
    for address in (
        "postgresql://me:hid#hidden@/nothing",
        "postgresql://me:9876#hidden@/nothing",
        "postgresql://me:9876/hidden@h/nothing",
        "postgresql://me:hid@hidden@h/nothing",
        "postgresql://me:hidden@h:h/nothing",
        "postgresql://me:hid?den@localhost:1/nothing",
        "postgresql://me@localhost:1/nothing?application_name=x&pass%77ord=hidden",
        "postgresql://me@localhost:1/nothing?sslpassword=hidden&sslmode=disable",
        "postgresql://me:hidden@localhost:1/nothing?sslmode=wrong",
        "postgresql://me:hidden@localhost:1/nothing?connect_timeout=wrong",
        f"postgresql://postgres:hidden@/nothing?host={postgres.folder}",
        f"postgresql://postgres@/nothing?host={postgres.folder}&password=hidden",
        f"postgresql://postgres:hid%64en@/nothing?host={postgres.folder}",
        "postgresql://postgres:hidden@127.0.0.1:1/nothing",
        "postgresql://postgres:hidden@127.0.0.1:port:1/nothing",
    ):
        with pytest.raises((StoreError, ProblemError)) as caught:
            rs.LiveAgent.open(f"{address}#agent")
        said = "".join(TracebackException.from_exception(caught.value).format())
        own = said[said.rindex("restive.errors.") :]  # and not the line of this file above
        assert not re.search("hid|den@|9876", own)
        assert "Error: " not in said[: said.rindex("restive.errors.")]


def test_places_that_cannot_be(postgres, path):
    for place, message in (
        (postgres.address(), "say which agent"),
        (f"{postgres.address()}#pg_x", "say which agent"),
        (f"{postgres.address()}#a b", "say which agent"),
        (path, "there is no such agent; make one"),
        (f"{postgres.address('nothing')}#a", 'cannot connect .database "nothing" does not exist'),
        (f"{postgres.address(user='nobody')}#a", 'cannot connect .role "nobody" does not exist'),
        ("postgresql://me@127.0.0.1:1/team#a", "cannot connect .*refused"),
        ("postgresql://me@nowhere.invalid/team#a", "cannot connect "),
        ("postgresql://me@/team?host=/nowhere#a", "cannot connect "),
        (f"{postgres.address()}&sslmode=wrong#a", "cannot connect .*sslmode"),
        (f"{postgres.address()}#{'a' * 64}", "of up to 63 letters"),
        (f"{postgres.address()}#a%20b", "say which agent"),
        (f"{postgres.address()}#public", "of another program"),
        ("postgresql://[#a", "this is no URL of PostgreSQL"),
        ("postgresql://me@host:port/d#a", "this is no URL of PostgreSQL"),
        ("postgresql://me@host/d?nothing=1#a", "this is no URL of PostgreSQL"),
    ):
        with pytest.raises((StoreError, ProblemError), match=message) as caught:
            rs.LiveAgent.open(place)
        assert "\n" not in str(caught.value)
    assert agent_place(f"{postgres.address()}#a").name == f"{postgres.address()}#a"


def test_names_and_addresses_may_be_written_in_many_ways(postgres):
    folder = quote(str(postgres.folder), safe="")
    user = "Ann \"O'%@:/#?"
    postgres.execute(sql.SQL("CREATE ROLE {} LOGIN SUPERUSER").format(sql.Identifier(user)))
    for address in (
        f"postgres://postgres@{folder}/team",
        f"postgresql://postgres@{folder},{folder}:5432,5433/team?application_name=ward",
        f"postgresql:///team?user=postgres&host={folder}&options=-c%20work_mem%3D1MB",
        f"postgresql://{quote(user, safe='')}@{folder}/team",
    ):
        for agent in ("Calls", "0-_a", "-", "select", "a" * 63) if "?" not in address else ("a",):
            place = f"{address}#{agent}"
            assert agent_place(place).name == place
            with created(place) as live:
                run(live, 2)
            assert agent in agents_of(address)
            checked(place)
            postgres.execute(f'DROP SCHEMA "{agent}" CASCADE')


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


SECRET_URL = "postgresql://me:hidden@host/d#a"


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


def test_whatever_takes_a_file_looks_for_a_password():
    """And so whatever takes a URL; no command takes one that is not looked at."""
    commands = dict(get_command(app).commands)
    taken = {"serve": commands["serve"], **commands["live"].commands}
    for name, command in taken.items():
        first = command.params[0]
        assert first.callback is not None, name
        with pytest.raises(ProblemError, match="PGPASSWORD"):
            first.callback(None, first, SECRET_URL)
    (out,) = [one for one in taken["rebuild"].params if one.name == "out"]
    (to,) = [one for one in taken["copy"].params if one.name == "to"]
    assert out.callback is not None
    assert to.callback is not None


def test_each_way_to_give_a_password_works(path, postgres, tmp_path, monkeypatch):
    created(path).close()
    postgres.execute("CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'hid den'")
    rules = postgres.folder / "data" / "pg_hba.conf"
    rules.write_text("local all guarded scram-sha-256\n" + rules.read_text())
    postgres.execute("SELECT pg_reload_conf()")
    place = path.replace("postgres@", "guarded@")
    (tmp_path / "pass").write_text("*:*:team:guarded:hid den\n")
    (tmp_path / "pass").chmod(0o600)
    service = f"[team]\nhost={postgres.folder}\ndbname=team\nuser=guarded\npassword=hid den\n"
    (tmp_path / "service").write_text(service)
    by_service = "postgresql://?service=team#" + path.partition("#")[2]
    for given, url in (
        ({"PGPASSWORD": "hid den"}, place),
        ({"PGPASSFILE": str(tmp_path / "pass")}, place),
        ({"PGSERVICEFILE": str(tmp_path / "service")}, by_service),
        ({"PGSERVICEFILE": str(tmp_path / "service"), "PGSERVICE": "team"},
         "postgresql://#" + path.partition("#")[2]),
    ):  # fmt: skip
        with monkeypatch.context() as context:
            for name, value in given.items():
                context.setenv(name, value)
            assert "hid" not in restive("live", "status", url)
    for wrong in ({}, {"PGPASSWORD": "hidwrong"}):
        with monkeypatch.context() as context:
            for name, value in wrong.items():
                context.setenv(name, value)
            with pytest.raises(UnreachableError, match="password") as caught:
                rs.LiveAgent.open(place)
            assert "hid" not in str(caught.value)
    with rs.LiveAgent.open(place.replace("guarded@", "guarded:hid%20den@")) as live:  # in Python
        assert "hid" not in repr(live) + live.path


def test_who_was_granted_rights_may_use_an_agent(path, postgres):
    created(path).close()
    agent = path.partition("#")[2]
    postgres.execute("CREATE ROLE colleague LOGIN")
    own = path.replace("postgres@", "colleague@")
    with pytest.raises(StoreError, match=f'GRANT USAGE ON SCHEMA "{agent}"'):
        rs.LiveAgent.open(own)
    postgres.execute(f'GRANT USAGE ON SCHEMA "{agent}" TO colleague')
    with pytest.raises(StoreError, match=r"this user may not do that .*GRANT the right"):
        rs.LiveAgent.open(own)
    postgres.execute(f'GRANT SELECT ON ALL TABLES IN SCHEMA "{agent}" TO colleague')
    with rs.LiveAgent.open(own) as live:
        live.status()
        with pytest.raises(StoreError, match=r"this user may not do that .*GRANT the right"):
            live.decide()
    postgres.execute(f'GRANT INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "{agent}" TO colleague')
    with rs.LiveAgent.open(own) as live:
        run(live, 3)
        live.undo()
        live.make_token("ward", "act")
    rebuild_file(own, None)
    checked(own)


def test_a_dump_is_put_back(path, postgres, tmp_path):
    with created(path) as live:
        run(live, 5)
    rows, agent = rows_of(path), path.partition("#")[2]
    dump = tmp_path / "agent.dump"
    programs = ("pg_dump", f"--schema={agent}", "--format=custom", f"--file={dump}")
    subprocess.run([POSTGRES / programs[0], *programs[1:], postgres.address()], check=True)
    postgres.execute("CREATE DATABASE other")
    other = postgres.address("other")
    subprocess.run([POSTGRES / "pg_restore", f"--dbname={other}", dump], check=True)
    assert agents_of(other) == [agent]
    assert checked(f"{other}#{agent}") == checked(path)
    assert rows_of(f"{other}#{agent}") == rows
    with rs.LiveAgent.open(f"{other}#{agent}") as one, rs.LiveAgent.open(path) as two:
        run(one, 3), run(two, 3)
        assert fingerprint(one) == fingerprint(two)


def test_an_agent_is_rebuilt_where_it_is(path, tmp_path):
    for places in ((path, tmp_path / "new.db"), (tmp_path / "old.db", path)):
        with pytest.raises(ProblemError, match="say --in-place"):
            rebuild_file(*places)
    assert not list(tmp_path.iterdir())


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
            for client in (first, second):
                assert f'data-events="{states[0]["events"]}"' in client.get("/").text
        assert first.get("/readyz").status_code == second.get("/readyz").status_code == 200
    checked(path)


# ---------------------------------------------------------------- kills

KILLS = int(os.environ.get("RESTIVE_POSTGRES_KILLS", "12"))


def work_until_killed(path, told):
    """Play on for ever, in a process of its own; a call that fails is made again."""
    while True:
        try:
            with rs.LiveAgent.open(path) as live:
                os.write(told, b"open")
                while True:
                    decision = live.decide()
                    results = {name: reply(decision.tick, name) for name in decision.arms}
                    live.record(results, decision.tick, request=f"r{decision.tick}")
        except StoreError:
            sleep(0.01)


def test_an_agent_killed_again_and_again_decides_as_its_twin(path, postgres, tmp_path):
    """Clients, single processes of the server, and the server itself are killed in turn."""
    created(path, "mixed").close()
    with created(tmp_path / "warm.db", "mixed") as warm:
        run(warm, 3)  # so that those who are killed have their kernels from here
    chance = Random(1)
    for kill in range(KILLS):
        heard, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                work_until_killed(path, told)
            finally:
                os._exit(1)
        os.read(heard, 4)
        sleep(chance.random() * 0.1)
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
        os.close(heard), os.close(told)
    for _ in range(600):  # while the server recovers
        try:
            live = rs.LiveAgent.open(path)
            break
        except UnreachableError:
            sleep(0.1)
    with live, created(tmp_path / "twin.db", "mixed") as twin:
        assert live.tick > KILLS // 4
        run(live, 1)
        decided = run(twin, live.tick + 1)
        assert [live.decision(tick).arms for tick in range(live.tick + 1)] == decided
        assert fingerprint(live) == fingerprint(twin)
        print(f"{KILLS} kills, {live.tick + 1} ticks")
    checked(path)
