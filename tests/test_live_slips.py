"""Slips of whoever runs a programme at a terminal: what they are told, and the way out."""

import csv
import re
from pathlib import Path

import pytest

import restive as rs
from restive.errors import ProblemError, RestiveError
from test_live_terminal import MONDAYS, calls, restive, results, week

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
        f"{a.lower()}, engaged: rename the one that is meant to 'client'; the first line must be client,outcome"
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
