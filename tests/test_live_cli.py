"""`restive live` as a call centre runs it: CSV files in and out."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import created
from restive.cli import app
from restive.errors import ProblemError, RestiveError, StoreError
from restive.live.people.operator_files import decision_text, record_sheet
from restive.live.people.sheets import parse_sheet, read_sheet
from restive.live.settings import Settings
from restive.live.told.listing import export_table

SETTINGS = """
[outcomes]
listened = 1
hung_up = 0
not_called = "not-pulled"
no_answer = "unseen"
wrong_number = "leave"
"""


def restive(*arguments, status=0):
    """Run a command in this process; its errors are raised as they are."""
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done.stdout


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    names = "".join(f"P{k},\n" for k in range(12))
    Path("people.csv").write_text("arm,last_state\n" + names)
    Path("settings.toml").write_text(SETTINGS)
    restive(
        "live", "init", "calls.db", "--levels", "0.2,0.5,0.8", "--arms", "people.csv", "--pulls", 4,
        "--clock", "weekly", "--start", "2026-11-16", "--by-hand", "--settings", "settings.toml",
    )  # fmt: skip
    return tmp_path


def rows_of(path):
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


def write_results(path, rows, header="arm,outcome"):
    Path(path).write_text("\n".join([header, *rows]) + "\n")


def test_four_weeks(folder):
    shown = restive("live", "next", "calls.db", "--date", "2026-11-18", "--out", "week1.csv")
    assert shown == "week1.csv: 4 arms for tick 0 (2026-11-16)\n"
    first = Path("week1.csv").read_bytes()
    restive("live", "next", "calls.db", "--date", "2026-11-20", "--out", "week1.csv")
    assert Path("week1.csv").read_bytes() == first
    rows = rows_of("week1.csv")
    assert list(rows[0]) == [
        "tick",
        "date",
        "arm",
        "kind",
        "expected",
        "index",
        "audit",
        "outcome",
    ]
    arms = [row["arm"] for row in rows]
    words = ["listened", "hung_up", "no_answer", "wrong_number"]
    write_results("r1.csv", [f"{a},{w}" for a, w in zip(arms, words, strict=True)])
    shown = restive("live", "record", "calls.db", "r1.csv")
    assert shown == (
        "4 results recorded; every pull on the list has a result\n"
        f"1 arm left for ever: {arms[3]}; if that was not meant: restive live return calls.db "
        f"{arms[3]}\n"
    )
    again = restive("live", "record", "calls.db", "r1.csv")
    assert again.startswith("4 results known already")
    restive("live", "next", "calls.db", "--date", "2026-11-23", "--out", "week2.csv")
    again = restive("live", "record", "calls.db", "r1.csv")  # also in the next week
    assert again.startswith("4 results known already")
    second = [row["arm"] for row in rows_of("week2.csv")]
    assert arms[3] not in second
    write_results("r2.csv", [f"{second[0]};listened"], "arm;outcome")
    shown = restive("live", "record", "calls.db", "r2.csv")
    assert shown == f"1 result recorded; 3 still missing: {', '.join(second[1:])}\n"
    with pytest.raises(ProblemError, match="1 of 4 results are in, fewer than 90%"):
        restive("live", "next", "calls.db", "--date", "2026-11-30", "--wait-for", "90%")
    shown = restive(
        "live", "next", "calls.db", "--date", "2026-12-07", "--yes"
    )  # a week is left out
    assert shown.startswith("tick,date,arm,kind,expected,index,audit,outcome\n3,2026-12-07,")
    write_results("late.csv", [f"{second[1]},listened,2026-11-25"], "arm,outcome,date")
    pulled_again = second[1] in shown
    assert (
        restive("live", "record", "calls.db", "late.csv") == "1 result late and used\n"
        or pulled_again
    )
    status = restive("live", "status", "calls.db")
    assert "tick 3 (2026-12-07): 0 of 4 results are in" in status
    assert "11 arms" in status
    data = json.loads(restive("live", "status", "calls.db", "--json"))
    assert data["pulls"] == 12
    assert "events, all good; the last has digest " in restive("live", "check", "calls.db")


def test_programs_get_json(folder):
    told = json.loads(restive("live", "next", "calls.db", "--tick", 0, "--out", "w.csv", "--json"))
    assert told["arms"] == [row["arm"] for row in rows_of("w.csv")]
    assert told["begins"] == "2026-11-16T00:00:00+00:00"
    assert json.loads(restive("live", "next", "calls.db", "--tick", 0, "--json")) == told
    assert json.loads(restive("live", "check", "calls.db", "--json"))["events"] == 2
    told = json.loads(restive("live", "check", "calls.db", "--last-good", "good.db", "--json"))
    assert told == {"good": 2}


def test_every_bad_row_is_named_by_line(folder):
    restive("live", "next", "calls.db", "--tick", 0, "--out", "week.csv")
    a, b, c, d = [row["arm"] for row in rows_of("week.csv")]
    other = next(f"P{k}" for k in range(12) if f"P{k}" not in (a, b, c, d))
    write_results(
        "r.csv",
        [f"{a},listened", f"{b},asleep", "P99,listened", f"{other},hung_up", f"{c},7", f"{a},0",
         f"{d},hung_up"],
    )  # fmt: skip
    with pytest.raises(ProblemError) as error:
        restive("live", "record", "calls.db", "r.csv")
    assert str(error.value).splitlines() == [
        "r.csv: 6 rows cannot be taken; nothing was recorded",
        f"  line 2: arm '{a}': is there twice, with another result",
        f"  line 3: arm '{b}': unknown outcome 'asleep'; known are hung_up, "
        "listened, no_answer, not_called, wrong_number",
        "  line 4: arm 'P99': there is no arm 'P99'; did you mean 'P9'?",
        f"  line 5: arm '{other}': it was not on the list of tick 0",
        f"  line 6: arm '{c}': state 7 is none of its states 0 to 1",
        f"  line 7: arm '{a}': is there twice, with another result",
    ]
    assert json.loads(restive("live", "status", "calls.db", "--json"))["seen"] == 0
    shown = restive("live", "record", "calls.db", "r.csv", "--accept-good")
    # of the two results of one arm none is taken
    assert re.fullmatch(r"1 result recorded; 3 still missing: P\d+, P\d+, P\d+\n", shown)
    rejected = rows_of("r.rejected.csv")
    assert [row["reason"] for row in rejected][2] == "there is no arm 'P99'; did you mean 'P9'?"
    assert len(rejected) == 6
    write_results("conflict.csv", [f"{d},listened"])
    with pytest.raises(
        ProblemError, match=r"line 2: .* hung_up was recorded for tick 0 already, now listened"
    ):
        restive("live", "record", "calls.db", "conflict.csv")


def test_people_join_and_leave(folder):
    restive("live", "next", "calls.db", "--tick", 4, "--yes")
    Path("new.csv").write_text(
        "arm,kind,last_state,last_seen,elapsed\nQ1,all,,,\nQ2,all,1,2026-12-01,\nQ3,,0,,2\n"
    )
    assert restive("live", "join", "calls.db", "new.csv") == "3 arms joined\n"
    again = restive("live", "join", "calls.db", "new.csv")
    assert again == "3 arms had joined already\n"
    Path("gone.csv").write_text("arm\nP0\nP1\n")
    assert (
        restive("live", "leave", "calls.db", "gone.csv")
        == "2 arms left; if that was not meant: restive live undo calls.db\n"
    )
    restive("live", "next", "calls.db", "--tick", 5)
    with rs.LiveAgent.open("calls.db") as live:
        assert [live.arm(name).last_tick for name in ("Q1", "Q2", "Q3")] == [None, 2, 2]
        assert live.arm("P0").left == 4
    for text, message in (
        ("name\nX\n", "there is no column 'arm'"),
        ("arm,kind\nX,town\n", "line 2: arm 'X': there is no kind 'town'"),
        (
            "arm,last_state\nX,good\n",
            "last_state must be a state: hung_up, listened, or its number, got 'good'",
        ),
        ("arm,last_state,last_seen\nX,1,2027-12-01\n", "is not before the tick"),
        ("arm,last_seen\nX,2026-12-01\n", "last_state is missing"),
        ("arm,last_state\nX,7\n", "last state must be at most 1"),
    ):
        Path("bad.csv").write_text(text)
        with pytest.raises(RestiveError, match=message):
            restive("live", "join", "calls.db", "bad.csv")


def test_pulled_instead(folder):
    restive("live", "next", "calls.db", "--tick", 0, "--out", "week.csv")
    arms = [row["arm"] for row in rows_of("week.csv")]
    other = next(f"P{k}" for k in range(12) if f"P{k}" not in arms)
    write_results("r.csv", [f"{arms[0]},not_called", f"{other},listened"])
    with pytest.raises(ProblemError, match="it was not on the list of tick 0"):
        restive("live", "record", "calls.db", "r.csv")
    shown = restive("live", "record", "calls.db", "r.csv", "--pulled-instead")
    assert shown.startswith("2 results recorded; 3 still missing: P")
    with rs.LiveAgent.open("calls.db") as live:
        assert live.results()[other] == 1


def test_corrections_backups_exports_and_tokens(folder):
    restive("live", "next", "calls.db", "--tick", 0, "--out", "week.csv")
    arms = [row["arm"] for row in rows_of("week.csv")]
    write_results("r.csv", [f"{a},listened" for a in arms])
    restive("live", "record", "calls.db", "r.csv")
    write_results("c.csv", [f"{arms[0]},hung_up"])
    shown = restive("live", "correct", "calls.db", "c.csv", "--tick", 0, "--note", "slip")
    assert "1 correction noted" in shown
    assert "corrections that wait for `restive live rebuild`: 1" in restive(
        "live", "status", "calls.db"
    )
    restive("live", "rebuild", "calls.db", "--out", "new.db")
    with rs.LiveAgent.open("new.db") as live:
        assert live.results(0)[arms[0]] == 0
    Path("new.db").unlink()  # so the old one goes on
    restive("live", "backup", "calls.db", "copy.db")
    with rs.LiveAgent.open("copy.db") as copy, rs.LiveAgent.open("calls.db") as live:
        assert copy.events() == live.events()
    for name, table in (("p.csv", "pulls"), ("e.jsonl", "events"), ("b.parquet", "beliefs")):
        restive("live", "export", "calls.db", "--table", table, "--out", name)
    assert len(rows_of("p.csv")) == 4
    before = Path("p.csv").read_bytes()
    with pytest.raises(StoreError, match=r"p\.csv: is there already; move it away, or choose"):
        restive("live", "export", "calls.db", "--table", "arms", "--out", "p.csv")
    assert Path("p.csv").read_bytes() == before
    assert json.loads(Path("e.jsonl").read_text().splitlines()[0])["kind"] == "init"
    assert len(read_sheet("b.parquet").rows) == 12
    secret = restive("live", "token", "calls.db", "tablet", "--role", "act", "--days", 9).strip()
    assert "tablet: act, ends" in restive("live", "token", "calls.db")
    with rs.LiveAgent.open("calls.db") as live:
        token = live.token_of(secret)
        assert (token.name, token.allows("read"), token.allows("admin")) == ("tablet", True, False)
        assert live.token_of(secret + "x") is None
        assert secret.encode() not in Path("calls.db").read_bytes()
    restive("live", "token", "calls.db", "tablet", "--remove")
    assert restive("live", "token", "calls.db") == ""


def test_alarms_set_the_exit_status(folder):
    with rs.LiveAgent.open("calls.db") as live, live._session.writing():
        body = {"name": "reward too low", "sentence": "look"}
        seq = live._session.append("alarm", 0, body, "test").seq
    assert f"ALARM {seq}, reward too low" in restive("live", "status", "calls.db", status=1)
    restive("live", "acknowledge", "calls.db", seq, "--note", "looked")
    restive("live", "status", "calls.db")


def test_the_last_good_part_of_a_damaged_file(folder):
    for tick in range(4):
        restive("live", "next", "calls.db", "--tick", tick)
    with rs.LiveAgent.open("calls.db") as live:
        expected = [live.decision(tick) for tick in range(2)]
        live._session.journal.connection.execute("UPDATE event SET actor = 'x' WHERE seq = 4")
    with pytest.raises(RestiveError, match=r"event 4 .*check --last-good"):
        restive("live", "status", "calls.db")
    assert restive("live", "check", "calls.db", "--last-good", "ok.db") == "ok.db: events 1 to 3\n"
    with rs.LiveAgent.open("ok.db") as live:
        assert [live.decision(tick) for tick in range(2)] == expected
        assert live.check() == 3
        assert live.decide(tick=2).tick == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "say what is known: --prior FILE"),
        (["--levels", "a"], "--levels must be numbers"),
        (["--levels", "0.2,0.8"], "who are the arms"),
        (["--levels", "0.2,0.8", "--arms", "p.csv", "--clock", "weekly"], "pass --start"),
        (["--levels", "0.2,0.8", "--arms", "p.csv", "--start", "2026-01-01"], "has no start"),
        (["--levels", "0.2,0.8", "--arms", "p.csv", "--settings", "s.toml"], "s.toml: settings: "),
        (["--prior", "p.csv"], "p.csv"),
    ],
)
def test_what_init_refuses(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    Path("p.csv").write_text("arm\nA\n")
    Path("s.toml").write_text("[outcome]\na = 1\n")
    with pytest.raises(RestiveError, match=message):
        restive("live", "init", "a.db", "--pulls", 1, *options)
    assert not Path("a.db").exists()


def test_tables_as_people_save_them(tmp_path):
    live = created(tmp_path / "a.db", names=["=1+1", "é", "a;b", "d", "e", "f"], num_pulls=6)
    text = decision_text(live, live.decide())
    assert "'=1+1" in text
    arms = [row["arm"] for row in parse_sheet(text.encode(), "x").rows]
    assert arms == ["=1+1", "é", "a;b", "d", "e", "f"]
    for contents in (
        '\ufeffArm;State\r\n\'=1+1;1\r\n\r\n"a;b";0\r\n'.encode(),
        b'state,note,arm\n1,"two\nlines",=1+1\n0,,a;b\n',
    ):
        table = parse_sheet(contents, "r.csv")
        assert {row["arm"]: row["state"] for row in table.rows} == {"=1+1": "1", "a;b": "0"}
    assert parse_sheet(b'arm,x\na,"b\nc"\nd,e\n', "r.csv").lines == (2, 4)
    for contents, message in (
        (b"", "is empty"),
        (b"arm,state\nA\n", "line 2 has 1 cells, the header has 2"),
        (b"arm,arm\n", "column 'arm' is there twice"),
        (b"arm,state\n\xff,1\n", "line 2 is not UTF-8"),
        (b'arm,state\n"A,1\n', "cannot be read"),
    ):
        with pytest.raises(ProblemError, match=message):
            parse_sheet(contents, "r.csv")
    with pytest.raises(ProblemError, match="cannot be read"):
        read_sheet(tmp_path / "nothing.csv")
    with pytest.raises(ProblemError, match="there is no column 'outcome'"):
        record_sheet(live, parse_sheet(b"arm\n", "r.csv"))
    with pytest.raises(ProblemError, match="can be written as"):
        export_table(live, "pulls", tmp_path / "x.xlsx")


def test_the_agents_file_is_never_written_over(folder):
    Path("link.csv").symlink_to("calls.db")
    before = Path("calls.db").read_bytes()
    for out in ("calls.db", "link.csv"):
        with pytest.raises(ProblemError, match=f"{out}: this is a SQLite database, such as"):
            restive("live", "next", "calls.db", "--date", "2026-11-18", "--out", out)
    with pytest.raises(ProblemError, match="is a SQLite database"):
        restive("live", "export", "calls.db", "--out", "link.csv")
    with rs.LiveAgent.open("calls.db") as agent:
        assert agent.status().decisions == 0
        agent.decide(tick=0)
        with pytest.raises(ProblemError, match=r"calls\.db-wal: this is a SQLite database"):
            restive("live", "next", "calls.db", "--date", "2026-11-18", "--out", "calls.db-wal")
    assert Path("calls.db").read_bytes()[:16] == before[:16]
    restive("live", "check", "calls.db")


def test_what_is_no_agents_file(folder):
    Path("folder").mkdir()
    with pytest.raises(RestiveError, match="folder: this is a folder, not the file of a live"):
        restive("live", "status", "folder")
    with pytest.raises(RestiveError, match="is a CSV file; the file of the agent"):
        restive("live", "status", "people.csv")


def test_a_list_that_was_filled_in_is_not_written_over(folder):
    restive("live", "next", "calls.db", "--date", "2026-11-16", "--out", "w.csv")
    before = Path("w.csv").read_text()
    restive("live", "next", "calls.db", "--date", "2026-11-16", "--out", "w.csv")
    assert Path("w.csv").read_text() == before
    head, first, *rest = before.splitlines()
    filled = "\n".join([head, f"{first}listened", *rest]) + "\n"
    Path("w.csv").write_text(filled)
    for date in ("2026-11-16", "2026-11-23"):
        with pytest.raises(ProblemError, match=r"w.csv: has 1 outcome filled in, .* not recorded"):
            restive("live", "next", "calls.db", "--date", date, "--out", "w.csv")
    assert Path("w.csv").read_text() == filled
    with rs.LiveAgent.open("calls.db") as live:
        assert live.tick == 0, "nothing was decided"


def test_a_list_whose_outcomes_are_recorded_makes_room_for_the_next(folder):
    week = ["live", "next", "calls.db", "--out", "w.csv", "--date"]
    restive(*week, "2026-11-16")
    head, *rows = Path("w.csv").read_text().splitlines()
    noted = "\n".join([f"{head},notes", *(f"{row}listened," for row in rows)]) + "\n"
    for text, message in (
        (noted[:-1] + "asked for a letter\n", "a column 'notes', which would be lost: give the"),
        (noted.replace("listened", "lisened", 1), "some are not recorded: record this file first"),
        ("arm,outcome\nJos\xe9,listened\n", r"line 2 is not UTF-8.*; or give the list another"),
    ):
        Path("w.csv").write_text(noted)
        restive("live", "record", "calls.db", "w.csv")
        Path("w.csv").write_bytes(text.encode("latin-1"))
        with pytest.raises(ProblemError, match=message):
            restive(*week, "2026-11-23")
    Path("w.csv").write_text(noted)
    restive(*week, "2026-11-23")
    assert [row.split(",")[0] for row in Path("w.csv").read_text().splitlines()[1:]] == ["1"] * 4


def test_outcomes_that_contradict_the_states_are_refused():
    states = ("drifting", "engaged")
    for outcomes, message in (
        ({"engaged": 2}, "outcome 'engaged': there is no state 2; 0 is drifting, 1 is engaged"),
        ({"engaged": 0}, "outcome 'engaged' would mean the state 'drifting': .* engaged = 1"),
    ):
        with pytest.raises(ProblemError, match=message):
            Settings(num_pulls=1, states=states, outcomes=outcomes)
    settings = Settings(
        num_pulls=1, states=states, outcomes={"no_answer": "unseen", "good": 1, "engaged": 1}
    )
    assert [settings.result_of(word) for word in ("Engaged", "No answer", "GOOD")] == [
        1,
        "unseen",
        1,
    ]
    with pytest.raises(ProblemError, match="unknown outcome 'god'; did you mean 'good'"):
        settings.result_of("god")
