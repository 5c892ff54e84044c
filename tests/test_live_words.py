"""The operators' nouns and the names of states: in files, on the command line, in alarms."""

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import created, fingerprint, reply
from restive.cli import app
from restive.errors import ProblemError, RestiveError
from restive.live.people.operator_files import decision_text, record_sheet
from restive.live.people.sheets import parse_sheet, rejected_text
from restive.live.settings import Settings
from restive.live.told.alarms import ADVICE, advice
from restive.live.told.listing import export_table
from restive.live.words import Words

WORDS = {"arm": "patient", "pull": "call", "tick": "week", "reward": "adherent weeks"}
OUTCOMES = {"listened": 1, "hung_up": 0, "no_answer": "unseen", "wrong_number": "leave"}
# as no operator shall read it
JARGON = re.compile(r"\b(ticks?|arms?|pulls?|pulled|pulling|holds|unseen|s\.d\.|1 new|1 \w+s)\b")


def restive(*arguments, status=0):
    done = CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)
    assert done.exit_code == status, done.output
    return done.stdout + done.stderr


def refused(*arguments):
    with pytest.raises(RestiveError) as error:
        restive(*arguments)
    return str(error.value)


def lists(live, tick):
    """Decide, and record what comes of it."""
    arms = live.decide(tick=tick).arms
    live.record({name: reply(tick, name) for name in arms[1:]}, tick)
    return arms


@pytest.fixture
def clinic(tmp_path):
    """Return an agent whose operators have words of their own."""
    return created(
        tmp_path / "a.db", num_arms=8, num_pulls=3, clock=rs.Clock.given("2026-11-16", "P7D"),
        words=WORDS, outcomes=OUTCOMES, states=["hung_up", "listened"],
    )  # fmt: skip


# ---------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("noun", "plural"),
    [("patient", "patients"), ("visit", "visits"), ("box", "boxes"), ("batch", "batches"),
     ("city", "cities"), ("day", "days"), ("bus", "buses"), ("y", "ys")],
)  # fmt: skip
def test_plurals_are_english_or_given(noun, plural):
    assert Words(arm=noun).many("arm") == plural
    assert Words(arm=noun).count(1, "arm") == f"1 {noun}"
    assert Words(arm=noun).count(2000, "arm") == f"2,000 {plural}"
    assert Words(arm="child", arms="children").count(0, "arm") == "0 children"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"arm": ""}, "words: arm must be a text of 1 to 40 letters, got ''"),
        ({"arm": "x" * 41}, "must be a text of 1 to 40 letters"),
        ({"pull": 3}, "words: pull must be a text of 1 to 40 letters, got 3"),
        ({"tick": "we\nek"}, "words: tick must have no line breaks, no control characters"),
        ({"reward": "\x1b[31m"}, "words: reward must have no line breaks, no control"),
        ({"arm": " patient"}, "no blanks at its ends"),
        ({"arms": "\x00"}, "words: arms must have no line breaks"),
        ({"arm": "tick"}, "words: arm cannot be 'tick', which is another column"),
        ({"tick": "Date"}, "words: tick cannot be 'Date', which is another column"),
        ({"arm": "day", "tick": "DAY"}, "which is another column"),
        ({"patient": "arm"}, "words: there is no 'patient'; known are arm, pull, tick"),
        ("arm", "words must be a table such as"),
    ],
)
def test_words_that_are_refused_with_one_sentence(tmp_path, clinic, words, message):
    for call in (
        lambda: created(tmp_path / "b.db", words=words),
        lambda: clinic.set_words(words),
    ):
        before = clinic.events()
        with pytest.raises(ProblemError, match=re.escape(message)) as error:
            call()
        assert "\n" not in str(error.value)
        assert clinic.events() == before
        assert not (tmp_path / "b.db").exists()


def test_words_change_later_and_survive_snapshots_undo_rebuilds_and_copies(tmp_path, clinic):
    lists(clinic, 0)
    plain = fingerprint(clinic)
    clinic.set_words({"arm": "person", "arms": "people"})
    assert fingerprint(clinic) == plain
    now = WORDS | {"arm": "person", "arms": "people"}
    assert clinic.settings.words == Words(**now)
    clinic.snapshot()
    clinic.backup(tmp_path / "copy.db")
    with rs.LiveAgent.open(tmp_path / "copy.db") as copy:
        assert copy.settings.words == Words(**now)
        assert copy.events_replayed == 0
        with pytest.raises(ProblemError, match="there is no person 'x'"):
            copy.arm("x")
        copy.undo()
        assert copy.settings.words == Words(**now)
    restive("live", "rebuild", clinic.path, "--out", tmp_path / "new.db")
    with rs.LiveAgent.open(tmp_path / "new.db") as new:
        assert new.settings.words == Words(**now)
        assert new.check() == new.status().events
    (tmp_path / "new.db").unlink()  # so the old one goes on
    shown = restive("live", "words", clinic.path, "arm=arm,arms=")
    nouns = "arm: arm, arms\npull: call, calls\ntick: week, weeks\nreward: adherent weeks\n"
    assert shown == nouns + (
        "results: hung_up = 0, listened = 1, no_answer = a call without a result, "
        "wrong_number = leaves for ever\n"
    )
    assert "must be given as arm=patient" in refused("live", "words", clinic.path, "patient")


def test_a_file_without_words_is_as_it_was(tmp_path):
    first = created(tmp_path / "a.db").events()[0].body["settings"]
    assert "words" not in first
    assert created(tmp_path / "b.db", words=WORDS).events()[0].body["settings"]["words"] == WORDS


# ---------------------------------------------------------------- in files


def test_lists_have_the_words_and_an_empty_outcome_and_are_taken_back(clinic):
    decision = clinic.decide(tick=0)
    text = decision_text(clinic, decision)
    assert text.splitlines()[0] == "week,date,patient,kind,expected,index,audit,outcome"
    assert [row["outcome"] for row in csv.DictReader(io.StringIO(text))] == [""] * 3
    words = clinic.settings.words
    untouched = record_sheet(clinic, parse_sheet(text.encode(), "list.csv", words))
    assert untouched.receipt == rs.types.Receipt()
    filled = [line + "listened" * (k > 0) for k, line in enumerate(text.splitlines())]
    done = record_sheet(clinic, parse_sheet("\n".join(filled).encode(), "list.csv", words))
    assert (done.receipt.new, done.receipt.closed) == (3, True)
    assert clinic.results() == dict.fromkeys(decision.arms, 1)


@pytest.mark.parametrize(
    "header", ["patient,outcome,week", "arm,outcome,tick", "Patient,State,tick"]
)
def test_files_with_either_header_are_read(clinic, header):
    arms = clinic.decide(tick=0).arms
    sheet = parse_sheet(
        f"{header}\n{arms[0]},listened,0\n".encode(), "r.csv", clinic.settings.words
    )
    assert record_sheet(clinic, sheet).receipt.new == 1
    bad = parse_sheet(f"{header}\nX,listened,0\n".encode(), "r.csv", clinic.settings.words)
    done = record_sheet(clinic, bad, accept_good=True)
    assert rejected_text(bad, done.rejected).startswith(header.lower() + ",reason\nX,listened,0,")


def test_headers_that_say_the_same_or_nothing(clinic):
    words = clinic.settings.words
    with pytest.raises(
        ProblemError, match="columns 'arm' and 'patient' say the same; leave one out"
    ):
        parse_sheet(b"arm,patient,outcome\n", "r.csv", words)
    with pytest.raises(ProblemError, match="expected a header with a column 'patient'"):
        parse_sheet(b"", "r.csv", words)
    said = "there is no column 'patient', your word for 'arm'; its columns are who"
    with pytest.raises(ProblemError, match=said):
        record_sheet(clinic, parse_sheet(b"who\n", "r.csv", words))
    other = parse_sheet(b"Name,Region\n", "r.csv", Words("person"))
    with pytest.raises(
        ProblemError, match="no column 'person', your word for 'arm'; its columns are name, region"
    ):
        other.require("arm")  # "region" has half of the letters
    with pytest.raises(ProblemError, match="no column 'person'; did you mean 'persons'"):
        parse_sheet(b"persons,region\n", "r.csv", Words("person")).require("arm")


def test_a_word_that_a_spreadsheet_would_compute(tmp_path):
    live = created(tmp_path / "a.db", words={"arm": "=cmd()", "tick": "a;b,c"})
    text = decision_text(live, live.decide())
    assert text.startswith('"a;b,c",date,\'=cmd(),kind,')
    assert parse_sheet(text.encode(), "x", live.settings.words).columns[:3] == (
        "tick",
        "date",
        "arm",
    )


def test_exports_name_states_and_columns(tmp_path, clinic):
    arms = lists(clinic, 0)
    clinic.decide(tick=1)
    for table, expected in (
        ("pulls", ["week", "patient", "kind", "status", "state", "state_name", "audit",
                   "expected", "recorded"]),
        ("beliefs", ["patient", "kind", "last_state", "last_state_name", "last_tick",
                     "belief_hung_up", "belief_listened"]),
    ):  # fmt: skip
        export_table(clinic, table, tmp_path / f"{table}.csv")
        rows = list(csv.DictReader(io.StringIO((tmp_path / f"{table}.csv").read_text())))
        assert list(rows[0]) == expected
    seen = [(row["patient"], row["last_state_name"]) for row in rows if row["last_state"]]
    names = ["hung_up", "listened"]
    assert sorted(seen) == sorted((name, names[reply(0, name)]) for name in arms[1:])
    assert clinic.table("pulls")[0][4:6] == ["state", "audit"]


# ---------------------------------------------------------------- names of states


def test_results_may_be_named_everywhere(clinic):
    a, b, c = clinic.decide(tick=0).arms
    clinic.record({a: "listened", b: "no_answer", c: "not-pulled"})
    assert clinic.results() == {a: 1, b: "unseen", c: "not-pulled"}
    with pytest.raises(ProblemError, match="listened was recorded for week 0 already, now hung_up"):
        clinic.record({a: "hung_up"})
    clinic.correct({a: "hung_up"}, 0, "a slip")
    assert clinic.events()[-1].body["results"] == [0]
    with pytest.raises(ProblemError, match="unknown outcome 'asleep'"):
        clinic.record({b: "asleep"})
    clinic.decide(tick=1)
    other = next(row.name for row in clinic.arms() if row.name not in clinic.decision().arms)
    clinic.record({}, instead={other: "listened"})
    assert clinic.results()[other] == 1


def test_names_come_from_the_prior_or_from_outcomes(tmp_path):
    prior = rs.grid_prior([0.2, 0.8], num_arms=3, states=["bad", "good"])
    with rs.LiveAgent.create(tmp_path / "a.db", prior, 1) as live:
        assert live.settings.states == ("bad", "good")
        (arm,) = live.decide().arms
        live.record({arm: "good"})
        assert live.top_state == "good"
    live = created(tmp_path / "b.db", outcomes={"up": 1, "down": 0})
    assert [live.settings.state_text(state) for state in (0, 1)] == ["down", "up"]
    live = created(tmp_path / "c.db")
    assert [live.settings.state_text(state) for state in (0, 1)] == ["state 0", "state 1"]
    assert live.top_state == "the top state"


def test_what_may_be_tapped(clinic):
    said = clinic.settings.choices(2)
    assert sorted(said) == ["hung_up", "listened", "no_answer", "not-pulled", "wrong_number"]
    assert said["not-pulled"] == "no call made"
    assert "no_answer" not in clinic.settings.choices(2, unseen=False)
    assert Settings(num_pulls=1).choices(2) == {
        "0": "state 0", "1": "state 1", "unseen": "not reached", "not-pulled": "no pull made",
    }  # fmt: skip


# ---------------------------------------------------------------- on the command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("people.csv").write_text("patient,last_state\n" + "".join(f"P{k},\n" for k in range(9)))
    lines = ["[outcomes]"] + [f"{key} = {value!r}" for key, value in OUTCOMES.items()]
    lines += ["[words]", 'arm = "patient"', 'pull = "call"', 'tick = "day"']
    Path("settings.toml").write_text("\n".join(lines).replace("'", '"'))
    return tmp_path


def init(*options):
    return restive(
        "live", "init", "calls.db", "--levels", "0.2,0.5,0.8", "--arms", "people.csv", "--pulls", 4,
        "--clock", "weekly", "--start", "2026-11-16", "--by-hand", "--settings", "settings.toml",
        *options,
    )  # fmt: skip


def test_an_operators_day_has_no_word_of_ours(folder):
    said = [init("--words", "tick=week,reward=adherent weeks")]
    assert said == [
        "calls.db: 9 patients, 4 calls a week; week 0 begins 2026-11-16\nlearner: tsde\n"
        "what results mean: hung_up = 0, listened = 1, no_answer = a call without a result, "
        "wrong_number = leaves for ever\n"
        "the first list: restive live next calls.db --date 2026-11-16 --out list.csv\n"
    ]

    def run(*arguments, status=0):
        said.append(restive("live", *arguments, status=status))
        return said[-1]

    def fails(*arguments):
        said.append(refused("live", *arguments))
        return said[-1]

    assert run("next", "calls.db", "--date", "2026-11-18", "--out", "w.csv") == (
        "w.csv: 4 patients for week 0 (2026-11-16)\n"
    )
    arms = [row["patient"] for row in csv.DictReader(io.StringIO(Path("w.csv").read_text()))]
    results = f"patient,outcome\n{arms[0]},listened\n"
    Path("r.csv").write_text(results)
    assert run("record", "calls.db", "r.csv").startswith("1 result recorded; 3 still missing: P")
    assert run("record", "calls.db", "r.csv") == (
        "1 result known already: this very file was recorded (week 0)\n"
    )
    assert fails("next", "calls.db", "--date", "2072-02-15").startswith(
        "2,360 weeks would pass without a list: the last one is of week 0 (2026-11-16), this "
        "one would be of week 2361 (2072-02-15), and 3 calls without a result would count as not "
        "reached; nothing was decided."
    )
    made = run("next", "calls.db", "--date", "2026-11-23", "--out", "w.csv")
    assert made.startswith(
        "w.csv: 4 patients for week 1 (2026-11-23)\n"
        "note: 3 results of week 0 (2026-11-16) missing, taken as not reached until they come: P"
    )
    Path("late.csv").write_text(f"patient,outcome,week\n{arms[1]},hung_up,0\n")
    assert run("record", "calls.db", "late.csv") == "1 result late and used\n"
    Path("new.csv").write_text("patient,last_state,elapsed\nQ1,listened,2\n")
    assert run("join", "calls.db", "new.csv") == "1 patient joined\n"
    Path("gone.csv").write_text(f"patient\n{arms[2]}\n")
    back = f"; if that was not meant: restive live return calls.db {arms[2]}\n"
    assert run("leave", "calls.db", "gone.csv") == f"1 patient left{back}"
    assert run("leave", "calls.db", "gone.csv") == "1 patient had left already\n"
    for text, message in (
        ("patient,outcome\nP99,listened\n", "line 2: patient 'P99': there is no patient 'P99'"),
        ("patient,outcome\nP1,asleep\n", "line 2: patient 'P1': unknown outcome 'asleep'"),
        ("patient,outcome,week\nP1,listened,9\n", "week 9 (2027-01-18) is not decided yet"),
        ("patient,outcome,date\nP1,listened,23.11.2026\n", "date must be year-month-day, such as"),
        ("patient,outcome,date\nP1,listened,2026-11-23T00:00+01:00\n", "leave out the offset"),
        ("patient,outcome,week\nP1,listened,one\n", "week must be a whole number"),
        ("name,outcome\nP1,listened\n", "there is no column 'patient'"),
        ("patient,outcome\nQ1,listened\n", "it was not on the list of week 1"),
    ):
        Path("bad.csv").write_text(text)
        assert message in fails("record", "calls.db", "bad.csv")
    Path("bad.csv").write_text("patient,last_state\nQ2,asleep\n")
    assert "last_state must be a state: hung_up, listened, or its number" in fails(
        "join", "calls.db", "bad.csv"
    )
    assert "week 0 (2026-11-16) is over: week 1 (2026-11-23) was decided" in fails(
        "next", "calls.db", "--date", "2026-11-16"
    )
    assert (
        fails("next", "calls.db")
        == "say which week the list is for: again week 1: --date 2026-11-23; the next: --date "
        "2026-11-30"
    )
    assert "give the week's number or its date" in fails(
        "next", "calls.db", "--tick", 1, "--date", "2026-11-23"
    )
    assert "is before the start, 2026-11-16" in fails("next", "calls.db", "--date", "2025-01-01")
    assert (
        "week 1 (2026-11-23): 0 of 4 results are in\n9 patients, 1 of them from the next list on; "
        "1 left: P7\n" in run("status", "calls.db")
    )
    assert "8 calls in 2 weeks: 2 with a result (1 late)" in said[-1]
    assert "adherent weeks: 1.0, forecast " in said[-1]
    run("explain", "calls.db", arms[0])
    assert fails("explain", "calls.db", "Q1") == (
        "patient 'Q1' joins with the next decision; nothing is known yet"
    )
    assert run("undo", "calls.db", "--yes").startswith(
        f"withdrawn: the leaving of {arms[2]} in week 1 (2026-11-23) (event "
    )
    with rs.LiveAgent.open("calls.db") as live, live._session.writing():
        body = {"name": "reward too low", "sentence": advice("reward too low")}
        live._session.append("alarm", 1, body, "restive")
    rings = run("status", "calls.db", status=1)
    assert "noticed in week 1 (2026-11-23): less than forecast, week 0 (2026-11-16): " in rings
    assert ": ask those who make the calls what has changed" in rings
    for text in said:
        found = JARGON.findall(re.sub(r"'[^']*'|`[^`]*`|--\w+|skip=\w+", "", text))
        assert not found, text


def test_words_of_the_flag_win_over_those_of_the_settings(folder):
    init("--words", "tick=week, arm = patient")
    shown = restive("live", "words", "calls.db")
    assert "tick: week, weeks\n" in shown
    assert "pull: call, calls\n" in shown
    for bad in ("arm", "arm=", "who=x", "arm=kind"):
        assert "words" in refused(
            "live", "init", "b.db", "--levels", "0.2", "--arms", "people.csv", "--pulls", 1,
            "--words", bad,
        )  # fmt: skip
    assert not Path("b.db").exists()
    data = json.loads(restive("live", "next", "calls.db", "--tick", 0, "--json"))
    assert {"tick", "arms"} <= set(data)  # programs read the same keys as ever


def test_alarms_speak_the_words_of_today(clinic):
    for what in ADVICE:
        for name in (what, f"{what}: town"):
            told = advice(name, clinic.settings.words)
            assert not JARGON.search(told)
            assert told.startswith("kind 'town': ") == (": " in name)
    with clinic._session.writing():
        body = {"name": "spread", "sentence": advice("spread")}
        clinic._session.append("alarm", 0, body, "restive")
    assert clinic.alarms()[0].sentence.startswith("weeks are better or worse as a whole than")
    clinic.set_words({"arm": "person", "arms": "people", "tick": "round"})
    assert clinic.alarms()[0].sentence.startswith("rounds are better or worse as a whole than "
                                                  "independent people would be")  # fmt: skip
