"""What an operator at a terminal is told: by name, in his words, with what to do next."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path
from threading import Timer
from time import monotonic

import pytest
from typer.testing import CliRunner

import restive as rs
from live_cases import Ticking, created
from restive.cli import app, main
from restive.cli.progress import wrapped
from restive.errors import ConflictError, ProblemError, RestiveError
from restive.live.creating import rebuild_file
from restive.live.people.sheets import parse_sheet
from test_live_undo import at_a_terminal

SETTINGS = """
[outcomes]
engaged = 1
drifting = 0
no_answer = "not-pulled"
"wrong number" = "leave"

[words]
arm = "client"
pull = "call"
tick = "week"
reward = "engaged weeks"
"""
MONDAYS = ("2026-11-16", "2026-11-23", "2026-11-30", "2026-12-07")


def restive(*arguments, status=0):
    done = CliRunner().invoke(app, ["live", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == status
    return done


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """A file of twelve clients of two kinds, four of whom are called each week."""
    monkeypatch.chdir(tmp_path)
    Path("settings.toml").write_text(SETTINGS)
    rows = "".join(f"C{k},{'town' if k % 2 else 'rural'}\n" for k in range(12))
    Path("people.csv").write_text(f"client,kind\n{rows}")
    restive("init", "calls.db", "--states", "drifting,engaged", "--controlled", "--pay", "always",
            "--arms", "people.csv", "--pulls", 4, "--clock", "weekly", "--start", MONDAYS[0],
            "--by-hand", "--settings", "settings.toml")  # fmt: skip
    return tmp_path


def week(number):
    """Make the list of a week; return whom it names."""
    restive("next", "calls.db", "--date", MONDAYS[number], "--out", f"w{number}.csv")
    with open(f"w{number}.csv") as file:
        return [row["client"] for row in csv.DictReader(file)]


def results(name, rows, header="client,outcome"):
    Path(name).write_text("\n".join([header, *rows, ""]))
    return name


def test_results_withdrawn_after_a_rebuild_are_taken_again(calls):
    listed = week(0)
    results("r.csv", [f"{name},engaged" for name in listed])
    restive("record", "calls.db", "r.csv")
    restive("rebuild", "calls.db", "--out", "new.db")
    with pytest.raises(
        ProblemError, match=r"nothing was done since the rebuild which made new\.db"
    ):
        restive("undo", "new.db", "--yes")
    with rs.LiveAgent.open("new.db") as live:
        event = live.changeable()[0, listed[0]]
    restive("undo", "new.db", "--event", event, "--yes")
    done = restive("record", "new.db", "r.csv")
    assert done.stdout == "4 results recorded; every call on the list has a result\n"
    assert "known already: this very file" in restive("record", "new.db", "r.csv").stdout


def test_who_left_by_mistake_comes_back_with_what_was_seen(calls):
    first = week(0)[0]
    restive("record", "calls.db", results("r.csv", [f"{first},engaged"]))
    done = restive("leave", "calls.db", results("gone.csv", [first], "client"))
    assert done.stdout.startswith("1 client left; if that was not meant: restive live return")
    command = re.search(r"restive live (return .*)", done.stdout)[1].replace("'", "").split()
    week(1)
    assert restive(*command).stdout == "1 client back, and can be on the next list\n"
    assert restive(*command).stdout == "1 client had not left\n"
    with rs.LiveAgent.open("calls.db") as live:
        assert live.arm(first).left is None
        assert live.arm(first).last_state == 1
    restive("leave", "calls.db", "gone.csv")
    done = restive("join", "calls.db", results("new.csv", [f"{first},rural"], "client,kind"))
    assert done.stdout == f"1 client joined; of these, had left and are back: {first}\n"


def test_a_new_kind_is_refused_with_what_to_do(calls):
    results("new.csv", ["N1,night shift"], "client,kind")
    with pytest.raises(ProblemError, match="kinds are fixed when the file is made") as error:
        restive("join", "calls.db", "new.csv")
    assert "did you mean" not in str(error.value)
    results("new.csv", ["N1,twn"], "client,kind")
    with pytest.raises(ProblemError, match="there is no kind 'twn'; did you mean 'town'"):
        restive("join", "calls.db", "new.csv")


def test_one_slip_of_the_open_week_needs_no_rebuild(calls):
    a, b, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},engaged", f"{b},engaged"]))
    with pytest.raises(RestiveError, match="`restive live change"):
        restive("record", "calls.db", results("s.csv", [f"{a},drifting"]))
    done = restive("change", "calls.db", a, "drifting")
    assert done.stdout == f"changed: {a} in week 0 (2026-11-16) is drifting\n"
    done = restive("change", "calls.db", b, "wrong number", "--date", MONDAYS[0])
    assert done.stdout.endswith(
        f"is wrong number; {b} left for ever; if that was not "
        f"meant: restive live return calls.db {b}\n"
    )
    assert restive("change", "calls.db", b, "engaged").stdout.endswith(f"{b} is back\n")
    with rs.LiveAgent.open("calls.db") as live:
        assert {name: live.results()[name] for name in (a, b)} == {a: 0, b: 1}
        live.check()
    week(1)
    with pytest.raises(ConflictError, match="correct it: restive live correct"):
        restive("change", "calls.db", a, "engaged", "--tick", 0)


def test_a_result_that_cannot_be_changed_says_why_and_the_command_instead(calls):
    a, b, c, _ = first = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},engaged", f"{b},engaged"]))
    second = week(1)
    only_first = [name for name in first if name not in second]
    never = next(f"C{k}" for k in range(12) if f"C{k}" not in first + second)

    def refused(*words):
        with pytest.raises(ConflictError) as error:
            restive("change", "calls.db", *words)
        assert "; nothing was changed" in str(error.value)
        return str(error.value)

    correct = (
        "Write a file RESULTS.csv with client,outcome and correct it: restive live correct "
        "calls.db RESULTS.csv --date 2026-11-16 --note WHY"
    )
    said = refused(second[0], "engaged")
    assert "there is no result of week 1 (2026-11-23) yet" in said
    assert said.endswith("restive live record calls.db RESULTS.csv --date 2026-11-23")
    said = refused(c, "engaged", "--tick", 0)
    assert said.endswith("restive live record calls.db RESULTS.csv --date 2026-11-16")
    assert "no result of another week" in refused(never, "engaged")
    assert a in only_first
    said = refused(a, "drifting")
    assert "no call in week 1 (2026-11-23); the last result is of week 0 (2026-11-16)" in said
    assert said.endswith(correct)
    said = refused(a, "drifting", "--tick", 0)
    assert "the result of week 0 (2026-11-16) is older than the last list" in said
    assert said.endswith(correct)
    late = next(name for name in only_first if name not in (a, b))
    restive("record", "calls.db", results("late.csv", [f"0,{late},engaged"], "week,client,outcome"))
    said = refused(late, "drifting")
    assert said.endswith(f"restive live change calls.db {late} OUTCOME --date 2026-11-16")


def test_an_old_file_says_first_that_it_was_rebuilt(calls):
    a, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},engaged"]))
    restive("rebuild", "calls.db", "--out", "calls2.db")
    old = "calls.db was rebuilt: calls2.db goes on; this file is old\n"
    assert restive("status", "calls.db").stdout.startswith(old)
    done = restive("status", "calls.db", "--json")
    assert json.loads(done.stdout)["tick"] == 0
    assert done.stderr == old
    assert restive("backup", "calls.db", "old.db").stdout == f"{old}written: old.db\n"
    assert "was rebuilt" not in restive("status", "calls2.db").stdout
    results("bad.csv", ["P999,engagd"])
    for words in (
        ["record", "bad.csv"], ["correct", "bad.csv", "--note", "x"], ["change", "P999", "engagd"],
        ["join", "bad.csv"], ["leave", "bad.csv"], ["return", "P999"],
    ):  # fmt: skip
        with pytest.raises(ConflictError, match=r"was rebuilt, and calls2\.db goes on"):
            restive(words[0], "calls.db", *words[1:])


def test_names_with_a_blank_are_asked_for_in_quotes(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (
        ["explain", "c.db", "Anna", "Meier"],
        ["change", "c.db", "P1", "wrong", "number"],
    ):
        monkeypatch.setattr("sys.argv", ["restive", "live", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        said = capsys.readouterr().err
        assert said.endswith('Write a name with a blank in quotes: "Anna Meier"\n')
    with created("c.db", num_arms=2, names=["Anna Meier", "Ben"]):
        pass
    with pytest.raises(ProblemError, match="no arm 'Anna'; did you mean 'Anna Meier'"):
        restive("leave", "c.db", "Anna", "Meier")


def test_a_list_that_is_there_is_given_again_however_many_results_are_in(calls, tmp_path):
    first = week(0)
    share = ["--wait-for", "90%"]
    done = restive("next", "calls.db", "--date", MONDAYS[0], *share)
    assert [row["client"] for row in csv.DictReader(done.stdout.splitlines())] == first
    with pytest.raises(ProblemError, match="0 of 4 results are in, fewer than 90%"):
        restive("next", "calls.db", "--date", MONDAYS[1], *share)
    with pytest.raises(ProblemError) as error:
        restive("next", "calls.db")
    assert str(error.value) == (
        "say which week the list is for: again week 0: --date 2026-11-16; the next: --date "
        "2026-11-23"
    )
    created("wall.db", clock=rs.Clock.wall("2026-01-05", "P9999D")).close()
    created("calls_.db").close()
    for file in ("wall.db", "calls_.db"):
        made = restive("next", file, *share).stdout
        assert restive("next", file, *share).stdout == made


def test_a_correction_without_a_week_names_those_of_these_people(calls):
    a, *_ = first = week(0)
    restive("record", "calls.db", results("r.csv", [f"{name},engaged" for name in first]))
    second = week(1)
    for name, said in (
        (second[0], "are: --date 2026-11-23 (week 1), or a column 'week'; nothing"),
        (a, "are: --date 2026-11-16 (week 0), or a column 'week'; nothing"),
    ):
        with pytest.raises(ProblemError, match="say of which week these results") as error:
            restive("correct", "calls.db", results("c.csv", [f"{name},drifting"]), "--note", "x")
        assert said in str(error.value)
    results("c.csv", [f"{name},drifting" for name in (a, second[0])])
    with pytest.raises(ProblemError, match=r"2026-11-23 \(week 1\), or --date 2026-11-16") as error:
        restive("correct", "calls.db", "c.csv", "--note", "x")


def test_a_correction_that_comes_twice_is_known_and_counts_once(calls, tmp_path):
    a, b, *_ = first = week(0)
    restive("record", "calls.db", results("r.csv", [f"{name},engaged" for name in first]))
    week(1)
    words = ("correct", "calls.db", "c.csv", "--date", MONDAYS[0], "--note", "columns mixed up")
    results("c.csv", [f"{a},drifting", f"{b},wrong number"])
    assert restive(*words).stdout.startswith("2 corrections noted; lists learn")
    again = restive(*words)
    assert again.stdout == "2 corrections known already; nothing was changed\n"
    status = restive("status", "calls.db").stdout
    assert "corrections that wait for `restive live rebuild`: 2\n" in status
    # back again, which is a correction too, and of the same result
    results("c.csv", [f"{a},drifting", f"{b},engaged"])
    assert "1 correction noted, 1 known already" in restive(*words).stdout
    assert "rebuild`: 2\n" in restive("status", "calls.db").stdout
    restive("rebuild", "calls.db", "--out", "calls2.db")
    with rs.LiveAgent.open("calls2.db") as live:
        assert {name: live.results(0)[name] for name in (a, b)} == {a: 0, b: 1}
        assert live.arm(b).left is None
    words = (words[0], "calls2.db", *words[2:])
    assert restive(*words).stdout == "2 corrections known already; nothing was changed\n"


def test_who_joins_or_leaves_wrongly_is_named_by_line_and_nothing_is_changed(calls):
    results("gone.csv", ["C1", "Zoe", "C2", "c3"], "client")
    with pytest.raises(ProblemError) as error:
        restive("leave", "calls.db", "gone.csv")
    assert str(error.value).splitlines() == [
        "gone.csv: 2 rows cannot be taken; nothing was changed",
        "  line 3: client 'Zoe': there is no client 'Zoe'",
        "  line 5: client 'c3': there is no client 'c3'; did you mean 'C3'?",
    ]
    results("new.csv", ["N1,town", "C1,rural", "N1,town"], "client,kind")
    with pytest.raises(ConflictError) as error:
        restive("join", "calls.db", "new.csv")
    assert str(error.value).splitlines() == [
        "new.csv: 2 rows cannot be taken; nothing was changed",
        "  line 3: client 'C1': is there already, of kind 'town'",
        "  line 4: client 'N1': is in line 2 already",
    ]
    with pytest.raises(ProblemError, match=r"gon\.csv: cannot be read"):
        restive("leave", "calls.db", "gon.csv")
    with pytest.raises(ProblemError, match="there is no client 'Zoe'; nothing was changed"):
        restive("leave", "calls.db", "C1", "Zoe")
    with pytest.raises(ProblemError, match="there is no client 'Zoe'; nothing was changed"):
        restive("return", "calls.db", "C1", "Zoe")
    with rs.LiveAgent.open("calls.db") as live:
        assert live.num_arms == 12
    said = restive("leave", "calls.db", "C1", "C2").stdout
    assert said.startswith("2 clients left; if that was not meant: restive live undo calls.db")
    restive("return", "calls.db", "C1", "C2")


def test_alarms_are_answered_all_or_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    now = Ticking()
    with created("c.db", clock=rs.Clock.wall("2026-11-16", "P7D"), now=now) as live:
        live.decide()
        now.move(weeks=1)
        live.decide()
        now.move(weeks=-1)
        live.decide()
        (alarm,) = live.alarms()
    with pytest.raises(
        ProblemError, match=f"no alarm 999 .*, but {alarm.seq}; nothing was changed"
    ):
        restive("acknowledge", "c.db", alarm.seq, 999, "--note", "x")
    restive("acknowledge", "c.db", alarm.seq, alarm.seq, "--note", "x")


def test_a_date_in_another_form_says_which_is_read_and_when_none_is_needed(calls):
    a, *_ = week(0)
    results("r.csv", [f"16.11.2026,{a},engaged"], "date,client,outcome")
    with pytest.raises(ProblemError) as error:
        restive("record", "calls.db", "r.csv")
    assert str(error.value).endswith(
        "date must be year-month-day, such as 2026-11-16, got '16.11.2026'; where a column 'week' "
        "has the number, no date is needed"
    )


@pytest.mark.parametrize("mode", ["EXCLUSIVE", "NORMAL"])
def test_who_waits_for_another_program_is_told(calls, mode):
    """One that keeps others from reading, too, and one that only writes."""
    a, *_ = week(0)
    results("r.csv", [f"{a},engaged"])
    lock = (
        "import sqlite3, sys\n"
        "c = sqlite3.connect('calls.db', isolation_level=None)\n"
        f"c.execute('PRAGMA locking_mode = {mode}')\n"
        "c.execute('BEGIN EXCLUSIVE')\n"
        "c.execute('SELECT 1 FROM event').fetchone()\n"
        "print('locked', flush=True)\n"
        "sys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        other.stdout.readline()
        if mode == "NORMAL":  # then whoever reads need not wait
            began = monotonic()
            assert restive("status", "calls.db").stderr == ""
            assert monotonic() - began < 5
        release = Timer(2.5, lambda: other.communicate("\n"))
        release.start()
        done = restive("record", "calls.db", "r.csv")
        release.join()
    assert done.stderr == "waiting: another program has calls.db open\n"
    assert done.stdout.startswith("1 result recorded")
    assert restive("status", "calls.db").stderr == ""
    assert not list(Path().glob("calls.db-*"))


def test_who_left_by_a_result_is_named_with_the_way_back_and_what_still_says_so(calls):
    a, b, *_ = week(0)
    done = restive("record", "calls.db", results("r.csv", [f"{a},wrong number", f"{b},engaged"]))
    assert done.stdout.splitlines()[1] == (
        f"1 client left for ever: {a}; if that was not meant: restive live return calls.db {a}"
    )
    still = f"the result of {a} in week 0 is still 'wrong number'; if that is wrong, too: "
    done = restive("return", "calls.db", a)
    change = f"restive live change calls.db {a} OUTCOME --date 2026-11-16\n"
    assert done.stdout == f"1 client back, and can be on the next list\n{still}{change}"
    restive("undo", "calls.db", "--yes")
    week(1)
    assert restive("return", "calls.db", a).stdout.endswith(
        f"{still}restive live correct calls.db RESULTS.csv --date 2026-11-16 --note WHY\n"
    )


def test_messages_have_the_words_of_the_file_each_once(calls):
    a, *_ = week(0)
    with pytest.raises(RestiveError) as error:
        restive("record", "calls.db", results("r.csv", [f"{a},x"]))
    known = "known are drifting, engaged, no_answer, wrong number"
    assert str(error.value).endswith(f"unknown outcome 'x'; {known}")
    restive("record", "calls.db", results("r.csv", [f"{a},no_answer"]))
    with pytest.raises(RestiveError, match="no_answer was recorded for week 0 already, now engage"):
        restive("record", "calls.db", results("s.csv", [f"{a},engaged"]))
    with pytest.raises(ProblemError, match="there is no kind 'Town'; did you mean 'town'"):
        restive("join", "calls.db", results("new.csv", ["N1,Town"], "client,kind"))
    with pytest.raises(ProblemError, match="14 calls are asked for, but only 12 clients can be"):
        restive("next", "calls.db", "--date", MONDAYS[1], "--pulls", 14)
    results("r.csv", ["C1,engaged"], "clint,outcome")
    with pytest.raises(ProblemError, match=r"did you mean 'clint'\? Rename it to 'client'"):
        restive("record", "calls.db", "r.csv")
    results("r.csv", ["C1,engaged"], "name,outcome")
    with pytest.raises(ProblemError, match="rename the one that is meant to 'client'"):
        restive("record", "calls.db", "r.csv")


def test_time_that_goes_back_and_a_list_that_was_undone(calls):
    a, *_ = week(0)
    with rs.LiveAgent.open("calls.db") as live:
        live.decide(tick=2360, skip=True)
    with pytest.raises(ConflictError, match=r"can be undone: restive live undo calls\.db$"):
        restive("next", "calls.db", "--date", MONDAYS[1])
    restive("undo", "calls.db", "--yes")
    results("r.csv", [f"2360,{a},engaged", f"2359,{a},engaged"], "week,client,outcome")
    with pytest.raises(RestiveError) as error:
        restive("record", "calls.db", "r.csv")
    assert "week 2360 (2072-02-08) was undone; the last decision is of week 0" in str(error.value)
    assert "week 2359 (2072-02-01) is not decided yet; the last" in str(error.value)


def test_a_rebuilt_file_is_given_a_name_that_is_free(calls):
    a, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},engaged"]))
    words = ("--date", MONDAYS[0], "--note", "x")
    done = restive("correct", "calls.db", results("c.csv", [f"{a},drifting"]), *words)
    assert done.stdout.endswith("restive live rebuild calls.db --out calls2.db\n")
    restive("rebuild", "calls.db", "--out", "calls2.db")
    done = restive("correct", "calls2.db", results("c.csv", [f"{a},engaged"]), *words)
    assert done.stdout.endswith("restive live rebuild calls2.db --out calls3.db\n")
    Path("calls3.db").touch()
    done = restive("correct", "calls2.db", results("c.csv", [f"{a},drifting"]), *words)
    assert done.stdout.endswith("--out calls4.db\n")


def test_init_says_what_to_do_with_a_column_of_ones_own_and_too_many_calls(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    results("people.csv", ["C1,town", "C2,town"], "client,kind")
    init = ("init", "c.db", "--states", "bad,good", "--arms", "people.csv", "--pulls")
    with pytest.raises(ProblemError, match=r"no column 'arm'; .* say --words arm=client, or"):
        restive(*init, 1)
    with pytest.raises(ProblemError, match="3 pulls a tick are more than there are clients, 2;"):
        restive(*init, 3, "--words", "arm=client")
    with pytest.raises(ProblemError) as error:
        restive(*init, 1, "--settings", "setings.toml")
    assert str(error.value).startswith("setings.toml: cannot be read")
    restive(*init, 1, "--words", "arm=client")


def test_python_is_not_spoken_at_the_terminal(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["restive", "live", "status", "c.db"])
    with pytest.raises(SystemExit):
        main()
    made = "restive: c.db: there is no such file; make one with `restive live init`\n"
    assert capsys.readouterr().err == made


def test_commands_to_copy_have_a_line_of_their_own(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    command = "restive live correct calls.db RESULTS.csv --date 2026-11-16 --note WHY"
    assert wrapped(f"it is older; correct it: {command}\nand so on") == (
        f"it is older; correct it:\n  {command}\nand so on"
    )


def test_a_week_is_said_by_its_date_everywhere(calls):
    a, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},engaged"]))
    with pytest.raises(ProblemError, match="--date 2026-11-23, or --tick 1"):
        restive("next", "calls.db")
    assert restive("next", "calls.db", "--date", 1).stdout.count("\n1,2026-11-23,") == 4
    results("c.csv", [f"{a},drifting"])
    with pytest.raises(ProblemError, match=r"of which week .*: --date 2026-11-16 \(week 0\)"):
        restive("correct", "calls.db", "c.csv", "--note", "slip")
    restive("correct", "calls.db", "c.csv", "--date", "2026-11-18", "--note", "slip")
    results("c.csv", [f"0,{a},engaged"], "week,client,outcome")
    restive("correct", "calls.db", "c.csv", "--note", "slip")
    for verb in ("correct", "record"):  # which week it is may be said twice, but not otherwise
        options = ("--note", "slip") if verb == "correct" else ()
        with pytest.raises(ProblemError, match=r"says week 0 .*, but week 1 .* was asked for"):
            restive(verb, "calls.db", "c.csv", "--date", MONDAYS[1], *options)
    results("c.csv", [f"0,{a},drifting", f"1,{a},drifting"], "week,client,outcome")
    with pytest.raises(ProblemError, match="has results of 2 weeks; correct one week at a time"):
        restive("correct", "calls.db", "c.csv", "--note", "slip")
    with rs.LiveAgent.open("calls.db") as live:
        of = [event.tick for event in live.events() if event.kind == "correct"]
    assert of == [0, 0]


def test_results_of_another_week_are_told_from_a_slip(calls):
    first, second = week(0), week(1)
    off = [name for name in first if name not in second]
    assert len(off) > 3
    with pytest.raises(RestiveError) as error:
        restive("record", "calls.db", results("r.csv", [f"{name},engaged" for name in off]))
    assert "say --date 2026-11-16" in str(error.value)
    assert str(error.value).count("it was not on the list of") == 1
    results("r.csv", [f"1,{name},engaged" for name in off], "week,client,outcome")
    with pytest.raises(RestiveError) as error:  # rows that say week 1 are not taken for week 0's
        restive("record", "calls.db", "r.csv")
    assert "--date" not in str(error.value)
    assert "mend the weeks in the file, if they are wrong there" in str(error.value)
    other = next(f"C{k}" for k in range(12) if f"C{k}" not in first + second)
    with pytest.raises(RestiveError, match="say --pulled-instead"):
        restive("record", "calls.db", results("r.csv", [f"{other},engaged"]))
    header = "week,date,client,outcome"
    results("r.csv", [f"1,{MONDAYS[0]},{second[0]},engaged"], header)
    with pytest.raises(ProblemError, match=r"says week 1 \(2026-11-23\), but its date 2026-11-16"):
        restive("record", "calls.db", "r.csv")
    results("r.csv", [f"1,23/11/2026,{second[0]},engaged"], header)  # as a spreadsheet has it
    assert restive("record", "calls.db", "r.csv").stdout.startswith("1 result recorded")


def test_status_adds_up_and_names_who_is_missing(calls):
    first = week(0)
    restive("record", "calls.db", results("r.csv", [f"{first[0]},wrong number",
                                                    f"{first[1]},no_answer"]))  # fmt: skip
    second = week(1)
    late = [f"{first[2]},engaged"]
    restive("record", "calls.db", results("r.csv", late), "--date", MONDAYS[0])
    done = restive("record", "calls.db", results("r.csv", [f"{second[0]},engaged"]))
    names = ", ".join(second[1:])
    assert done.stdout == f"1 result recorded; 3 still missing: {names}\n"
    lines = restive("status", "calls.db").stdout.splitlines()
    assert lines[2] == (
        "8 calls in 2 weeks: 2 with a result (1 late), 1 wrong number, 1 no answer, 1 of earlier "
        "weeks not here yet, 3 without a result yet"
    )
    assert sum(map(int, re.findall(r"(?<!\()\b(\d+) (?!calls|weeks|late)", lines[2]))) == 8
    assert f"no result yet of week 1 (2026-11-23): {names}" in lines
    assert f"no result yet of week 0 (2026-11-16): {first[3]}" in lines
    done = restive("next", "calls.db", "--date", MONDAYS[2])
    assert done.stderr.endswith(f"until they come: {names}\n")


def test_an_alarm_says_which_weeks_it_compares_and_how_far_off(calls):
    """What it says is what the table of pulls says."""
    with rs.LiveAgent.open("calls.db") as live:
        for tick in range(40):
            live.decide(tick=tick)
            state = 1 if tick < 12 else 0
            live.record(dict.fromkeys(live.decision().arms, state))
            if live.alarms():
                break
        (alarm, *_) = [one for one in live.alarms() if one.name == "reward too low"]
        columns, rows = live.table("pulls")
    found = re.search(
        r"less than forecast, (?:weeks? (\d+)(?: to (\d+))?) \([^)]*\): ([0-9.]+) engaged weeks in "
        r"(\d+) calls, forecast ([0-9.]+): ask",
        alarm.sentence,
    )
    first, last, reward, count, forecast = found.groups(default=found[1])
    at = {name: columns.index(name) for name in ("tick", "state", "expected")}
    there = [row for row in rows if int(first) <= row[at["tick"]] <= int(last)]
    assert int(last) == alarm.tick - 1
    assert int(first) >= 11
    assert int(count) == len(there)
    assert float(reward) == pytest.approx(sum(row[at["state"]] for row in there), abs=0.051)
    assert float(forecast) == pytest.approx(sum(row[at["expected"]] for row in there), abs=0.051)
    assert float(reward) < float(forecast)
    numbers = [one.seq for one in live_alarms("calls.db")]
    done = restive("acknowledge", "calls.db", *numbers, "--note", "looked")
    assert done.stdout.count("is answered") == len(numbers)


def live_alarms(path):
    with rs.LiveAgent.open(path) as live:
        return live.alarms()


def test_files_that_are_no_csv_say_how_to_save_them():
    for contents, said in (
        (b"PK\x03\x04\xff\xfe", "is a workbook, not a CSV file: in Excel"),
        ("client,outcome\n".encode("utf-16"), "is text in UTF-16"),
        (b"client,outcome\nJos\xe9,engaged\n", "line 2 is not UTF-8"),
    ):
        with pytest.raises(ProblemError, match=said):
            parse_sheet(contents, "r.csv")
    tabs = parse_sheet(b"arm\toutcome\nA, B\tengaged\n", "r.csv")
    assert tabs.rows == ({"arm": "A, B", "outcome": "engaged"},)


def test_columns_are_asked_for_by_the_word_that_stands_for_them(calls):
    Path("other.csv").write_text("person,kind\nA,town\n")
    said = "there is no column 'client', your word for 'arm'; its columns are person, kind"
    with pytest.raises(ProblemError, match=said):
        restive("init", "b.db", "--states", "drifting,engaged", "--arms", "other.csv", "--pulls", 1,
                "--settings", "settings.toml")  # fmt: skip


def test_a_list_needs_a_folder_that_is_there(calls):
    said = r"lists/w.csv: cannot be written: there is no folder 'lists'; nothing was decided"
    with pytest.raises(ProblemError, match=said):
        restive("next", "calls.db", "--date", MONDAYS[0], "--out", "lists/w.csv")
    with rs.LiveAgent.open("calls.db") as live:
        assert live.tick == -1


def test_questions_wrap_at_words_and_take_no_early_answer(calls):
    week(0)
    status, _, shown = at_a_terminal(
        b"n\n", "live", "next", "calls.db", "--date", "2062-11-30", early=b"y\n"
    )
    assert status == 1
    assert "nothing was changed" in shown
    lines = shown.replace("\r", "").split("\n")
    assert all(len(line) <= 80 for line in lines if "\x1b" not in line)
    assert "[y/N]" in shown


def test_what_explains_a_list_before_a_rebuild_is_not_its_rank(calls):
    listed = week(0)
    restive("rebuild", "calls.db", "--out", "new.db")
    said = restive("explain", "new.db", listed[0]).stdout
    assert "By what is known now, rank" in said
    assert "are on the list by rank" not in said


def test_help_speaks_of_people_calls_and_weeks():
    said = " ".join(restive("--help").stdout.split())
    assert "people, calls and weeks" in said
    for word in (" agent", "sighting", "decision"):
        assert word not in said.casefold()
    for command in ("next", "record", "change", "correct"):
        assert "--date" in restive(command, "--help").stdout


def test_a_file_is_known_only_while_its_results_stand(calls):
    rows = [f"{name},engaged" for name in week(0)]
    results("a.csv", rows)
    results("b.csv", rows[::-1])
    results("part.csv", rows[:1])
    known = "4 results known already: this very file was recorded (week 0)\n"
    restive("record", "calls.db", "a.csv")
    assert restive("record", "calls.db", "b.csv").stdout.startswith("4 results known already")
    for _ in range(2):
        withdraw_results()
        assert "0 of 4 results" in restive("status", "calls.db").stdout
        assert restive("record", "calls.db", "b.csv").stdout.startswith("4 results recorded")
        assert restive("record", "calls.db", "b.csv").stdout == known
    # where a file told one result that is withdrawn, and others that are not
    withdraw_results()
    restive("record", "calls.db", "part.csv")
    done = restive("record", "calls.db", "a.csv")
    assert done.stdout.startswith("3 results recorded, 1 known already")
    withdraw_results(of=rows[0])
    done = restive("record", "calls.db", "a.csv")
    assert done.stdout.startswith("1 result recorded, 3 known already")
    assert "4 of 4 results" in restive("status", "calls.db").stdout
    # as last week's file, too
    restive("record", "calls.db", "b.csv")
    withdraw_results(of=rows[0])
    week(1)
    with pytest.raises(RestiveError, match="say --date 2026-11-16"):
        restive("record", "calls.db", "b.csv")


def withdraw_results(of="C"):
    """Withdraw one act: the results that somebody sees on the page and takes back."""
    with rs.LiveAgent.open("calls.db") as live:
        name = of.partition(",")[0]
        events = [event for (_, one), event in live.changeable().items() if one.startswith(name)]
    restive("undo", "calls.db", "--event", events[0], "--yes")


def test_states_the_wrong_way_round_are_told(calls):
    with pytest.raises(ProblemError, match="from the worst to the best") as error:
        restive("init", "new.db", "--states", "engaged,drifting", "--controlled", "--pay", "always",
                "--arms", "people.csv", "--pulls", 4, "--settings", "settings.toml")  # fmt: skip
    assert "did you mean drifting,engaged?" in str(error.value)
    assert not Path("new.db").exists()
    told = restive("init", "new.db", "--states", "drifting,engaged", "--pulls", 4, "--controlled",
                   "--pay", "always", "--arms", "people.csv",
                   "--settings", "settings.toml")  # fmt: skip
    assert "from the worst to the best: drifting, engaged" in told.stdout


def test_a_start_far_ahead_is_asked_about(calls, monkeypatch):
    given = ("--states", "drifting,engaged", "--controlled", "--pay", "always", "--arms",
             "people.csv", "--pulls", 4, "--clock", "weekly", "--start", "2072-11-16",
             "--settings", "settings.toml")  # fmt: skip
    asked = []
    monkeypatch.setattr("restive.cli.live_init.go_on", asked.append)
    restive("init", "new.db", *given)
    assert asked == ["week 0 would begin 2072-11-16, more than a year from now"]
    restive("init", "soon.db", *given[:-4], "--start", MONDAYS[0], *given[-2:])
    assert len(asked) == 1


def test_no_answer_is_not_called_missing(calls):
    """A word for no call made takes its call out of both numbers, so that the line must say so."""
    for number in range(6):
        date = f"2026-{11 + (16 + 7 * number > 30)}-{(16 + 7 * number - 1) % 30 + 1:02}"
        restive("next", "calls.db", "--date", date, "--out", f"w{number}.csv")
        with open(f"w{number}.csv") as file:
            names = [row["client"] for row in csv.DictReader(file)]
        rows = [f"{name},{'no_answer' if name == names[0] else 'engaged'}" for name in names[:-1]]
        restive("record", "calls.db", results("r.csv", rows))
    said = restive("status", "calls.db").stdout
    assert "result missing, of those last seen engaged: " in said
    assert "not reached or missing" not in said


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("correct calls.db results.csv", 'say why, .* add --note "two clients were mixed up"'),
        ("acknowledge calls.db 3", 'add --note "calls of two weeks were written down wrongly"'),
        ("forget calls.db --all", "from which week on .* add --before 2026-11-23; nothing was"),
        ("export calls.db --table arms", "say which file to write: add --out arms.csv"),
        ("init new.db --states a,b --settings settings.toml", r"many calls .* week\? add --pulls"),
    ],
)
def test_an_option_that_is_needed_is_asked_for_in_a_sentence(calls, command, message):
    results("results.csv", [f"{week(0)[0]},engaged"])
    with pytest.raises(ProblemError, match=message):
        restive(*command.split())


def test_people_join_by_name_where_their_kind_need_not_be_said(calls):
    restive("leave", "calls.db", "C3", "C4")
    done = restive("join", "calls.db", "C3", "C4", "C5")
    assert done.stdout == (
        "2 clients joined, 1 client had joined already; of these, had left and are back: C3, C4\n"
    )
    with pytest.raises(ProblemError, match=r"of which kind is 'C77': .* line is client,kind, its"):
        restive("join", "calls.db", "C3", "C77")
    with pytest.raises(ConflictError, match="there is 'C3' already; a new name must differ"):
        restive("join", "calls.db", "c3")
    with pytest.raises(ProblemError, match=r"new\.cvs: cannot be read"):  # and nobody of that name
        restive("join", "calls.db", "new.cvs")
    results("one.csv", ["A", "B"], "arm")
    restive("init", "one.db", "--states", "a,b", "--pulls", 1, "--arms", "one.csv")
    assert restive("join", "one.db", "Anna Meier", "C").stdout == "2 arms joined\n"


def test_a_rebuild_never_shows_more_events_than_there_are(tmp_path):
    with created(tmp_path / "a.db", num_pulls=4) as live:
        for name in live.decide().arms:  # a request each, which the new file has at its end
            live.record({name: 1}, request=f"tap {name}")
    shown = []
    rebuild_file(tmp_path / "a.db", None, lambda *parts: shown.append(parts))
    with rs.LiveAgent.open(tmp_path / "a.db") as live:
        assert live.status().events > 6  # as many as it was made from
    assert shown
    assert all(done <= total for done, total in shown)


def test_the_date_of_an_early_year_can_be_read_back():
    clock = rs.Clock.given("0500-01-01T06:00", "P7D")
    assert clock.label(1) == "0500-01-08T06:00:00"
    assert clock.tick_of(clock.label(1)) == 1
    assert rs.Clock.given("0500-01-01", "P7D").label(1) == "0500-01-08"
