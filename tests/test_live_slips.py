"""Slips of whoever runs a programme at a terminal: what they are told, and the way out."""

import csv
import re
from datetime import date, timedelta
from pathlib import Path

import pytest

import restive as rs
from log_cases import log_of
from restive.errors import ProblemError, RestiveError
from restive.live.settings import Settings
from test_live_terminal import MONDAYS, SETTINGS, calls, restive, results, week
from test_live_undo import at_a_terminal

__all__ = ["calls"]


def test_who_was_not_on_the_list_and_not_reached_is_left_out(calls):
    listed = week(0)
    other = next(f"C{k}" for k in range(12) if f"C{k}" not in listed)
    results("r.csv", [f"{other},no_answer"])
    said = r"nobody was reached who was not on the list of week 0: leave this row out$"
    with pytest.raises(RestiveError, match=said):
        restive("record", "calls.db", "r.csv", "--pulled-instead")
    results("r.csv", [f"{other},wrong number"])
    with pytest.raises(RestiveError, match="leave this row out, and say `restive live leave`"):
        restive("record", "calls.db", "r.csv", "--pulled-instead")


def test_a_date_of_another_year_is_told_by_dates(calls):
    a, *_ = week(0)
    results("r.csv", [f"2072-03-07,{a},engaged"], "date,client,outcome")
    with pytest.raises(RestiveError) as error:
        restive("record", "calls.db", "r.csv")
    assert str(error.value).endswith(
        "week 2364 (2072-03-07) is not decided yet; the last decision is of week 0 (2026-11-16); "
        "is the year mistyped?"
    )
    results("r.csv", [f"2026-12-07,{a},engaged"], "date,client,outcome")
    with pytest.raises(RestiveError, match=r"decision is of week 0 \(2026-11-16\)$"):
        restive("record", "calls.db", "r.csv")
    results("r.csv", [f"999999999,{a},engaged"], "week,client,outcome")
    with pytest.raises(RestiveError, match="week 999999999 is not decided yet; the last"):
        restive("record", "calls.db", "r.csv")


def test_a_date_is_asked_for_by_year_month_and_day(calls):
    said = "date must be year-month-day, such as 2026-11-16, got '08/02/2027'"
    with pytest.raises(ProblemError, match=said):
        restive("next", "calls.db", "--date", "08/02/2027")


def test_alarms_are_answered_by_number(calls):
    with pytest.raises(ProblemError) as error:
        restive("acknowledge", "calls.db", "all", "--note", "looked")
    assert str(error.value) == (
        "give the numbers of alarms, from `restive live status calls.db`: open are none; nothing "
        "was changed"
    )


def test_a_name_with_a_blank_needs_quotes(calls):
    Path("slip.toml").write_text('[outcomes]\nengaged = 1\nwrong number = "leave"\n')
    with pytest.raises(ProblemError, match=r"line 3, .*; a name with a blank needs quotes"):
        restive("init", "b.db", "--states", "drifting,engaged", "--arms", "people.csv", "--pulls",
                4, "--settings", "slip.toml")  # fmt: skip


def test_a_file_without_a_header_is_told_its_first_line(calls):
    a, b, *_ = week(0)
    with pytest.raises(ProblemError) as error:
        restive("record", "calls.db", results("nohead.csv", [f"{b},engaged"], f"{a},engaged"))
    assert str(error.value) == (
        "nohead.csv: there is no column 'client', your word for 'arm'; its columns are "
        f"{a.lower()}, engaged: rename the one that is meant to 'client'; the first line must be "
        "client,outcome"
    )


def test_a_change_to_what_was_there_is_none(calls):
    a, b, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{a},no_answer", f"{b},wrong number"]))
    with rs.LiveAgent.open("calls.db") as live:
        count = len(live.events())
    for name, outcome in ((a, "no_answer"), (a, "not-pulled"), (b, "wrong number")):
        done = restive("change", "calls.db", name, outcome)
        assert done.stdout == (
            f"{name} in week 0 (2026-11-16) is {outcome} already; nothing was changed\n"
        )
    with rs.LiveAgent.open("calls.db") as live:
        assert len(live.events()) == count
    assert restive("change", "calls.db", a, "engaged").stdout.startswith(f"changed: {a} in week 0")


def test_a_wrong_meaning_shows_at_once_and_has_a_way_out(calls, tmp_path):
    """Old results are put right with the old files; the rebuilt file is that of one made right."""
    wrong = SETTINGS.replace('no_answer = "not-pulled"', "no_answer = 0")
    Path("wrong.toml").write_text(wrong)
    given = ("--states", "drifting,engaged", "--controlled", "--pay", "always", "--arms",
             "people.csv", "--pulls", 4, "--clock", "weekly", "--start", MONDAYS[0],
             "--by-hand", "--settings")  # fmt: skip
    told = restive("init", "wrong.db", *given, "wrong.toml").stdout
    states = "drifting = 0, engaged = 1, "
    assert f"what results mean: {states}no_answer = counts as drifting, wrong number = " in told
    restive("init", "right.db", *given, "settings.toml")
    for file in ("wrong.db", "right.db"):
        restive("next", file, "--date", MONDAYS[0], "--out", f"{file}0.csv")
    a, b, c, d = listed("wrong.db0.csv")
    assert [a, b, c, d] == listed("right.db0.csv")
    rows = [f"{a},no_answer", f"{b},engaged", f"{c},no_answer", f"{d},wrong number"]
    results("w0.csv", rows)
    for file in ("wrong.db", "right.db"):
        restive("record", file, "w0.csv")
        restive("next", file, "--date", MONDAYS[1], "--out", f"{file}1.csv")
    done = restive("words", "wrong.db", "--outcomes", "no_answer=not-pulled")
    assert f"results: {states}no_answer = no call made, wrong number = leaves for ever" in (
        done.stdout
    )
    assert "restive live correct wrong.db OLD.csv" in done.stdout
    with rs.LiveAgent.open("wrong.db") as live:
        assert live.results(0)[a] == 0  # which was recorded stays
        live.snapshot()
    done = restive("correct", "wrong.db", "w0.csv", "--date", MONDAYS[0], "--note", "no answer")
    assert done.stdout.startswith("2 corrections noted, 2 known already; lists")
    (first, *_) = listed("wrong.db1.csv")
    restive("record", "wrong.db", results("w1.csv", [f"{first},no_answer"]))
    restive("rebuild", "wrong.db", "--out", "mended.db")
    with (
        rs.LiveAgent.open("mended.db") as mended,
        rs.LiveAgent.open("wrong.db") as old,
        rs.LiveAgent.open("right.db") as right,
    ):
        assert mended.settings.outcomes == old.settings.outcomes == right.settings.outcomes
        assert mended.results(0) == right.results(0)
        assert mended.results(1)[first] == "not-pulled"
        assert all((mended.belief(f"C{k}") == right.belief(f"C{k}")).all() for k in range(12))
        for live in (mended, old):
            live.check()


@pytest.mark.parametrize(
    ("outcomes", "message"),
    [
        ("no_answer", "--outcomes must be given as no_answer=not-pulled,engaged=1, got"),
        ("no_answer=7", "there is no state 7; 0 is drifting, 1 is engaged"),
        ("no_answer=gone", "must be a state's number, 'unseen', 'not-pulled' or 'leave', got"),
        ("engaged=0,drifting=1", "did you mean engaged,drifting"),
    ],
)
def test_meanings_that_cannot_be(calls, outcomes, message):
    with pytest.raises(ProblemError, match=message):
        restive("words", "calls.db", "--outcomes", outcomes)
    restive("words", "calls.db", "arm=person", "--outcomes", "no_answer=drifting")
    with rs.LiveAgent.open("calls.db") as live:
        assert (live.settings.words.arm, live.settings.outcomes["no_answer"]) == ("person", 0)


def test_so_many_who_leave_are_asked_about(calls):
    rows = [f"C{k}" for k in range(11)]
    with pytest.raises(ProblemError) as error:
        restive("leave", "calls.db", results("all.csv", rows, "client"))
    said = "11 of 12 clients would leave for ever"
    assert str(error.value) == f"{said}; nothing was changed. If that is meant, say --yes"
    status, _, shown = at_a_terminal(b"n\n", "live", "leave", "calls.db", "all.csv")
    assert (status, f"{said}. Go on? [y/N]" in shown) == (1, True)
    with rs.LiveAgent.open("calls.db") as live:
        assert live.num_arms == 12
    done = restive("leave", "calls.db", "all.csv", "--yes")
    assert done.stdout == ("11 clients left; if that was not meant: restive live undo calls.db\n")
    said = restive("status", "calls.db").stdout
    assert "1 client; 11 left: C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, ...\n" in said
    restive("undo", "calls.db", "--yes")
    assert restive("leave", "calls.db", *rows[:5]).stdout.startswith("5 clients left; if")


def test_who_leaves_and_is_on_the_list_need_not_be_called(calls):
    a, b, *_ = week(0)
    restive("record", "calls.db", results("r.csv", [f"{b},engaged"]))
    other = next(f"C{k}" for k in range(12) if f"C{k}" not in listed("w0.csv"))
    done = restive("leave", "calls.db", a, b, other).stdout.splitlines()
    assert done[-1] == (f"on the list of week 0 (2026-11-16), and need no call any more: {a}")
    assert "9 clients; 3 left: " in restive("status", "calls.db").stdout
    assert len(restive("leave", "calls.db", a).stdout.splitlines()) == 1


def test_init_tells_a_start_that_is_long_past(calls):
    given = ("--states", "drifting,engaged", "--arms", "people.csv", "--pulls", 4, "--clock",
             "weekly", "--start", "2020-01-06", "--settings", "settings.toml")  # fmt: skip
    said = " ".join(restive("init", "late.db", *given).stderr.split())
    found = re.search(r"week 0 began (\d+) weeks ago, so that the first list is of week \1;", said)
    weeks = timedelta(weeks=int(found[1]))
    assert f"with --start {date(2020, 1, 6) + weeks}; to go through past weeks, with" in said
    assert timedelta() <= date.today() - date(2020, 1, 6) - weeks < timedelta(days=8)
    assert "began" not in restive("init", "hand.db", *given, "--by-hand").stderr


def test_states_of_those_not_on_the_list_are_asked_for_where_all_are_seen(calls):
    log = log_of(arm=[f"A{k}" for k in range(20)] * 4, step=[t // 20 for t in range(80)],
                    state=[(t * 7 // 3) % 2 for t in range(80)],
                    pulled=[t % 7 == 0 for t in range(80)])  # fmt: skip
    fitted = rs.fit_log(log, controlled=True, seen="always", passive_rewards=[0, 1])
    rs.write_fit(fitted, "fit", 2)
    said = restive("init", "all.db", "--prior", "fit/prior.json", "--pulls", 1).stdout
    assert "about once in" not in said  # everybody is seen in every tick
    restive("next", "all.db", "--out", "w0.csv")
    (first,) = listed("w0.csv", "arm")
    others = [f"A{k}" for k in range(20) if f"A{k}" != first]
    done = restive("record", "all.db", results("r.csv", [f"{first},1"], "arm,state"))
    assert done.stdout == (
        "1 result recorded; the states of 19 arms not on the list, who are seen every tick, are "
        "still missing: rows arm,outcome of them go into the same file\n"
    )
    rows = [f"{name},1" for name in (first, *others)]
    done = restive("record", "all.db", results("r.csv", rows, "arm,state"))
    assert "missing" not in done.stdout


def test_an_alarm_whose_cause_was_corrected_offers_nothing_to_forget(calls):
    with rs.LiveAgent.open("calls.db") as live:
        for tick in range(40):
            arms = live.decide(tick=tick).arms
            live.record(dict.fromkeys(arms, 1 if tick < 12 else 0))
            if live.alarms():
                break
        last = live.tick
        kept = live.alarms()
    assert any(alarm.began is not None for alarm in kept)
    assert "restive live forget calls.db" in restive("status", "calls.db", status=1).stdout
    with rs.LiveAgent.open("calls.db") as live:
        for tick in range(12, last + 1):
            live.correct(dict.fromkeys(live.decision(tick).arms, 1), tick, "the export was broken")
        assert [alarm.sentence for alarm in live.alarms()] == [one.sentence for one in kept]
    restive("rebuild", "calls.db", "--out", "new.db")
    said = restive("status", "new.db", status=1).stdout
    assert "ALARM" in said
    assert (
        "it rang on results that have changed since; by those of now nothing is off (week" in said
    )
    assert "restive live forget" not in said
    numbers = [str(one.seq) for one in kept]
    restive("acknowledge", "new.db", *numbers, "--note", "the export was broken")
    restive("status", "new.db")


def listed(path, column="client"):
    with open(path) as file:
        return [row[column] for row in csv.DictReader(file)]


def test_an_outcome_without_a_word_is_refused():
    with pytest.raises(ProblemError, match="an outcome has no word"):
        Settings(1, outcomes={" ": 1})
