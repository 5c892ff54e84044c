"""Logs as files: what is read, in which steps, and what is said of mistakes."""

from __future__ import annotations

import gzip
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import restive as rs
from log_cases import log_of
from oracles.logs_naive import naive_counts
from restive.logs import log as log_module
from restive.logs.counts import count_log
from restive.logs.reading.file import HEADER_BYTES
from restive.logs.time_steps import Steps, ZoneOffsets, step_rule

PLAIN = {"time": "at", "arm": "line", "state": "ok"}
MICROS = 1_000_000


def written(path, text, encoding="utf-8"):
    path.write_bytes(text.encode(encoding) if isinstance(text, str) else text)
    return path


def sightings(log):
    """Return {(arm, step, state, pulled)}."""
    return {
        (log.arms[arm], int(step), int(state), bool(pulled))
        for block in log.blocks()
        for arm, step, state, pulled in zip(
            block.arms, block.steps, block.states, block.pulled, strict=True
        )
    }


def test_rows_become_sightings(tmp_path):
    path = written(tmp_path / "log.csv", "at,line,ok\n5,a,1\n7,a,0\n6,b,1\n")
    log = rs.load_log(path, **PLAIN)
    assert sightings(log) == {("a", 0, 1, True), ("a", 2, 0, True), ("b", 1, 1, True)}
    assert (log.num_steps, log.span, log.states) == (3, "5 to 7", ("0", "1"))


def test_one_word_and_blanks_say_who_was_pulled(tmp_path):
    text = "at,line,ok,who\n5,a,1,called\n7,a,0,\n6,b,1,{}\n"
    log = rs.load_log(written(tmp_path / "log.csv", text.format("called")), **PLAIN, pulled="who")
    assert sightings(log) == {("a", 0, 1, True), ("a", 2, 0, False), ("b", 1, 1, True)}
    assert log.notes[0] == "'called' in column 'who' is taken as pulled, a blank as not pulled"
    path = written(tmp_path / "no.csv", "at,line,ok,who\n5,a,1,no\n7,a,0,\n")
    with pytest.raises(rs.errors.ProblemError, match="line 3: pulled is empty"):  # no, or nothing?
        rs.load_log(path, **PLAIN, pulled="who")


def test_states_that_were_not_named_are_told(tmp_path):
    path = written(tmp_path / "log.csv", "at,line,ok\n1,a,yes\n2,a,no\n3,a,Maybe\n4,a,no\n")
    log = rs.load_log(path, **PLAIN, skip_bad=True)
    assert log.notes[0] == "'yes' is taken as the good state"
    assert log.notes[1].startswith("1 row was left out (line 4): state is ..., expected")
    with pytest.raises(rs.errors.LogError, match=r"state is 'Maybe' \(did you mean 'maybe'\?\)"):
        rs.load_log(path, **PLAIN, states=["no", "maybe", "yes"])


def test_a_column_that_is_not_there_gets_no_silly_guess(tmp_path):
    path = written(tmp_path / "log.csv", "date,client,answered_ok\n1,a,1\n")
    with pytest.raises(rs.errors.ProblemError, match="known are date, client, answered_ok"):
        rs.load_log(path, time="week", arm="client", state="answered_ok")


def test_leaving_out_all_rows_is_no_advice(tmp_path):
    path = written(tmp_path / "log.csv", "at,line,ok\nx,a,1\ny,a,0\n")
    with pytest.raises(rs.errors.LogError, match="none of 2 rows is good; mend them:\n") as raised:
        rs.load_log(path, **PLAIN)
    assert "skip" not in str(raised.value)


@pytest.mark.parametrize(
    "text",
    [
        "at;line;ok\n5;a;1\n7;a;0\n6;b;1\n",
        "\ufeffat,line,ok\r\n5,a,1\r\n7,a,0\r\n6,b,1\r\n",
        'x,"ok",at,line\n,1,5,a\n9,"0",7,"a"\n"q""u, o\nte",1,6,b',
        "at,line,ok\n\n5 , a,1\n\n7,\ta ,0\n6,b,1\n\n",
        "at\tline\tok\n5\ta\t1\n7\ta\t0\n6\tb\t1\n",
        "at,line,ok\n5,a,true\n7,a,FALSE\n6,b,True\n",
        "at,line,ok\n5,a,1.0\n7,a,0.0\n6,b,1.0\n",
        "at,line,ok\r5,a,1\r7,a,0\r6,b,1\r",
    ],
)
def test_many_ways_to_write_the_same(tmp_path, text):
    plain = written(tmp_path / "plain.csv", "at,line,ok\n5,a,1\n7,a,0\n6,b,1\n")
    other = written(tmp_path / "other.csv", text)
    assert sightings(rs.load_log(other, **PLAIN)) == sightings(rs.load_log(plain, **PLAIN))


def test_parquet_is_read_like_csv(tmp_path):
    import pandas as pd

    frame = pd.DataFrame({
        "at": pd.to_datetime(["2026-01-01 10:00", "2026-01-03 09:00", "2026-01-02 11:30"]),
        "line": ["a", "a", 'odd "name", here'],
        "ok": [True, False, True],
    })  # fmt: skip
    frame.to_parquet(tmp_path / "log.parquet")
    frame.to_csv(tmp_path / "log.csv", index=False)
    logs = [
        rs.load_log(tmp_path / f"log.{ending}", **PLAIN, step="1d") for ending in ("parquet", "csv")
    ]
    assert sightings(logs[0]) == sightings(logs[1])
    assert 'odd "name", here' in logs[0].arms
    frame.assign(ok=["a", "b", "c"]).to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(rs.errors.LogError, match="row 3: state is 'c'"):
        rs.load_log(tmp_path / "bad.parquet", **PLAIN, states=["a", "b"], step="1d")


NAMES = st.sampled_from(["a", "b", "long name", "d"])


@given(
    st.lists(
        st.tuples(NAMES, st.integers(0, 40), st.integers(0, 2)),
        min_size=2,
        max_size=60,
        unique_by=lambda row: row[:2],
    ),
    st.integers(1, 20),
)
def test_any_order_and_any_size_of_block_give_the_same_counts(rows, size):
    arms, steps, states = zip(*rows, strict=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(log_module, "BLOCK_ROWS", size)
        log = log_of(arms, steps, states, num_states=3)
        counts = count_log(log)
    expected = naive_counts(rows)
    for k, name in enumerate(log.arms):
        last, age, following, number = counts.evidence(k).cells()
        found = dict(zip(zip(last, age, following, strict=True), number, strict=True))
        assert found == expected[name]


@pytest.mark.parametrize("num_arms", [3, 70_000])
def test_rows_are_sorted_by_arm_then_time_then_place(num_arms):
    """Also where arms have numbers of more than 16 bits."""
    rng = np.random.default_rng(num_arms)
    arms = rng.integers(num_arms, size=100_000).astype(np.int32)
    times, lines = rng.integers(-50, 50, size=100_000), np.arange(100_000, dtype=np.uint32)
    found = log_module.Rows(arms, times, lines, arms.astype(np.int16)).in_order()
    order = sorted(lines.tolist(), key=lambda at: (arms[at], times[at], at))
    assert found.lines.tolist() == order
    assert (found.arms == arms[order]).all()


def test_huge_ages_and_many_states_are_counted():
    """Cells that do not fit into 64 bits together with an arm."""
    steps = np.array([0, 2**42 - 2, 0, 7, 2**42 - 2]) - (2**41 - 1)
    log = log_of([0, 0, 1, 1, 1], steps, [1023, 5, 0, 1023, 1], num_states=1024)
    counts = count_log(log)
    assert [*zip(*(c.tolist() for c in counts.evidence(0).cells()), strict=True)] == [
        (1023, 2**42 - 2, 5, 1)
    ]
    assert {*zip(*(c.tolist() for c in counts.evidence(1).cells()), strict=True)} == {
        (0, 7, 1023, 1),
        (1023, 2**42 - 9, 1, 1),
    }


def test_counts_of_a_shuffled_file_equal_a_loop_over_its_rows(tmp_path):
    rng = random.Random(1)
    places = [(k, t) for k in range(30) for t in range(200) if rng.random() < 0.4]
    rows = [(f"arm {k}", t, rng.randrange(2)) for k, t in places]
    rng.shuffle(rows)
    text = "step,arm,state\n" + "".join(f"{t},{arm},{s}\n" for arm, t, s in rows)
    log = rs.load_log(written(tmp_path / "log.csv", text), time="step", arm="arm", state="state")
    assert any("sorted" in note for note in log.notes)
    counts, expected = count_log(log), naive_counts(rows)
    for k, name in enumerate(log.arms):
        last, age, following, number = counts.evidence(k).cells()
        found = dict(zip(zip(last, age, following, strict=True), number, strict=True))
        assert found == expected[name]


def test_a_row_takes_150_bytes_at_most(tmp_path):
    """So that 10^7 rows fit into 1.5 GB."""
    import tracemalloc

    import pyarrow as pa

    rows = 500_000
    text = "".join(f"{t},a{k},{(t + k) % 2}\n" for t in range(rows // 50) for k in range(50))
    path = written(tmp_path / "log.csv", "at,line,ok\n" + text)
    del text
    before = pa.total_allocated_bytes()
    peaks = []
    tracemalloc.start()
    log = rs.load_log(
        path, **PLAIN, progress=lambda share: peaks.append(pa.total_allocated_bytes() - before)
    )
    peak = tracemalloc.get_traced_memory()[1] + max(peaks)
    tracemalloc.stop()
    assert log.num_sightings == rows
    assert peak < 150 * rows


# --- states ------------------------------------------------------------------------------------


def test_states_by_a_comparison(tmp_path):
    path = written(tmp_path / "log.csv", "at,line,delay\n1,a,14.9\n2,a,15\n3,a,-2\n4,a,1.5e1\n")
    log = rs.load_log(path, time="at", arm="line", state_from="delay < 15")
    assert [s for _, _, s, _ in sorted(sightings(log))] == [1, 0, 1, 0]
    assert log.states == ("not delay < 15", "delay < 15")
    text = written(tmp_path / "text.csv", "at,line,was\n1,a,fine\n2,a,late\n")
    log = rs.load_log(text, time="at", arm="line", state_from="was == fine")
    assert [s for _, _, s, _ in sorted(sightings(log))] == [1, 0]


def test_states_by_quantiles(tmp_path):
    values = np.random.default_rng(0).permutation(300)
    text = "at,line,x\n" + "".join(f"{t},a,{x}\n" for t, x in enumerate(values))
    log = rs.load_log(
        written(tmp_path / "log.csv", text), time="at", arm="line", state="x", states=3
    )
    found = [s for _, t, s, _ in sorted(sightings(log), key=lambda row: row[1])]
    assert found == [int(x * 3 // 300) for x in values]
    assert "cut at" in log.notes[0]


def test_named_states_and_kinds_and_pulls(tmp_path):
    text = "at,line,was,region,called\n1,a,bad,north,yes\n2,a,good,north,no\n1,b,ok,south,1\n"
    log = rs.load_log(
        written(tmp_path / "log.csv", text), time="at", arm="line", state="was",
        states=["bad", "ok", "good"], by="region", pulled="called",
    )  # fmt: skip
    assert sightings(log) == {("a", 0, 0, True), ("a", 1, 2, False), ("b", 0, 1, True)}
    assert [log.kinds[k] for k in log.kind_of] == ["north", "south"]


# --- steps and zones ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "UTC"]
)
def test_zones_agree_with_zoneinfo(zone):
    first = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()) * MICROS
    instants = first + np.arange(0, 400 * 86_400, 1237) * MICROS
    offsets = ZoneOffsets(zone, int(instants[0]), int(instants[-1]))
    local = offsets.local(instants)
    for instant, shown in zip(instants.tolist(), local.tolist(), strict=True):
        wall = datetime.fromtimestamp(instant // MICROS, ZoneInfo(zone)).replace(tzinfo=UTC)
        assert shown == int(wall.timestamp()) * MICROS
    back, missing, twice = offsets.instants(local)
    assert not missing.any()
    assert (back[~twice] == instants[~twice]).all()


def test_days_follow_the_calendar_of_the_zone(tmp_path):
    """A day of 23 hours is a step too, and late evening in UTC is the next day in Berlin."""
    noon = [datetime(2026, 3, 27, 12) + timedelta(days=n) for n in range(4)]
    text = "at,line,ok\n" + "".join(f"{t:%Y-%m-%d %H:%M},a,{n % 2}\n" for n, t in enumerate(noon))
    log = rs.load_log(written(tmp_path / "a.csv", text), **PLAIN, step="1d", zone="Europe/Berlin")
    assert [t for _, t, _, _ in sorted(sightings(log))] == [0, 1, 2, 3]
    text = "at,line,ok\n2026-03-29T22:30:00Z,a,1\n2026-03-29T12:00:00+00:00,a,0\n"
    log = rs.load_log(written(tmp_path / "b.csv", text), **PLAIN, step="1d", zone="Europe/Berlin")
    assert {(t, s) for _, t, s, _ in sightings(log)} == {(1, 1), (0, 0)}


def test_hours_are_counted_in_absolute_time(tmp_path):
    """On the day of 23 hours, 01:00 and 03:00 are one hour apart."""
    text = "at,line,ok\n2026-03-29 01:00,a,1\n2026-03-29 03:00,a,0\n"
    log = rs.load_log(written(tmp_path / "a.csv", text), **PLAIN, step="1h", zone="Europe/Berlin")
    assert sorted(t for _, t, _, _ in sightings(log)) == [0, 1]
    assert log.label(1) == "2026-03-29 03:00:00"
    text = "at,line,ok\n2026-10-25 02:30,a,1\n2026-10-25 03:30,a,0\n"
    log = rs.load_log(written(tmp_path / "b.csv", text), **PLAIN, step="1h", zone="Europe/Berlin")
    assert sorted(t for _, t, _, _ in sightings(log)) == [0, 2]
    assert any("occur twice" in note for note in log.notes)
    text = "at,line,ok\n2026-03-29 02:30,a,1\n2026-03-29 03:30,a,0\n"
    with pytest.raises(rs.errors.LogError, match=r"line 2: time '2026-03-29 02:30' does not exist"):
        rs.load_log(written(tmp_path / "c.csv", text), **PLAIN, step="1h", zone="Europe/Berlin")


def test_weeks_begin_on_mondays(tmp_path):
    text = "at,line,ok\n2026-11-13,a,1\n2026-11-15,b,1\n2026-11-16,a,0\n2026-11-22,b,0\n"
    log = rs.load_log(written(tmp_path / "a.csv", text), **PLAIN, step="1w")
    assert {(a, t) for a, t, _, _ in sightings(log)} == {("a", 0), ("b", 0), ("a", 1), ("b", 1)}
    assert log.span == "2026-11-09 to 2026-11-16"


def test_times_in_milliseconds(tmp_path):
    """Numbers as large as milliseconds since 1970, also negative ones, and far apart."""
    times = [-(2**41) + 1, 1_700_000_000_000, 1_700_086_400_000, 2**41 - 1]
    text = "at,line,ok\n" + "".join(f"{t},a,{t % 2}\n" for t in times)
    log = rs.load_log(written(tmp_path / "log.csv", text), **PLAIN, step=86_400_000)
    first = times[0] // 86_400_000
    assert [step for _, step, _, _ in sorted(sightings(log), key=lambda row: row[1])] == [
        t // 86_400_000 - first for t in times
    ]


@given(st.dates(), st.integers(0, 86_399), st.integers(-14 * 4, 14 * 4), st.booleans())
def test_dates_are_read_as_python_reads_them(day, second, quarters, short):
    import pyarrow as pa

    from restive.logs.reading.times import AWARE, LOCAL, _times, time_of

    moment = datetime(day.year, day.month, day.day) + timedelta(seconds=second)
    sign, minutes = "-" if quarters < 0 else "+", abs(quarters) * 15
    offset = f"{sign}{minutes // 60:02d}{'' if short else ':'}{minutes % 60:02d}"
    texts = [day.isoformat(), moment.isoformat(), moment.isoformat(" ") + offset]
    epoch = datetime(1970, 1, 1)
    local = (moment - epoch) // timedelta(microseconds=1)
    expected = [
        ((datetime(day.year, day.month, day.day) - epoch) // timedelta(microseconds=1), LOCAL),
        (local, LOCAL),
        (local - quarters * 15 * 60 * MICROS, AWARE),
    ]
    assert [time_of(text) for text in texts] == expected
    for text, (time, kind) in zip(texts, expected, strict=True):  # many of a kind at once
        times, kinds = _times(pa.array([text.encode()] * 2, "binary"))
        assert (times.tolist(), kinds.tolist()) == ([time] * 2, [kind] * 2)


ODD_TIMES = [
    "5.",
    "5.25",
    "-7",
    "-.5",
    "+5",
    "1e5",
    "0x1F",
    "12345678901234",
    "-2199023255551",
    "2199023255552",
    "2026-1-1",
    "0000-01-01",
    "2026-02-29",
    "2026-13-01",
    "2026-01-01T25:00",
    "2026-01-01T10",
    "2026-01-01T10:00:60",
    "2026-01-01T10:00:0",
    "2026-01-01t10:00:00.z",
    "2026-01-01T10:00:00.1234567",
    "2026-01-01T10:00+02:",
    "2026-01-01T10:00+24:00",
    "2026-01-01T10:00+02:60",
    "2026-01-01Z",
    "2026-01-01T10:00.5",
    "0001-01-01T00:00+10:00",
]


def test_odd_times_are_read_alike_one_by_one_and_at_once():
    import pyarrow as pa

    from restive.logs.reading.times import UNREADABLE, _times, time_of

    for text in ODD_TIMES:
        times, kinds = _times(pa.array([text.encode()], "binary"))
        assert (int(times[0]), int(kinds[0])) == time_of(text), text
    readable = [text for text in ODD_TIMES if time_of(text)[1] != UNREADABLE]
    assert readable == [
        "5.", "5.25", "-7", "-2199023255551", "2026-01-01t10:00:00.z",
        "2026-01-01T10:00:00.1234567", "0001-01-01T00:00+10:00",
    ]  # fmt: skip
    assert time_of("2026-01-01T10:00:00.1234567")[0] % MICROS == 123_456


@given(st.floats(allow_nan=False, allow_infinity=False), st.decimals(-1000, 1000, places=4))
def test_numbers_are_read_as_python_reads_them(number, decimal):
    import pyarrow as pa

    from restive.logs.reading.columns import _numbers

    for texts in ([repr(number), str(decimal)], [repr(number)], [str(decimal), "-0", "5."]):
        (found,) = _numbers(pa.array([text.encode() for text in texts], "binary"))
        assert found.tobytes() == np.array([float(text) for text in texts]).tobytes()


def test_calendar_of_steps():
    steps = Steps.spanning(step_rule("1h"), 0, 10**12, aware=False)
    assert steps.hours(np.array([0, 23, 25])).tolist() == [0, 23, 1]
    assert steps.weekdays(np.array([0, 24])).tolist() == [3, 4]  # 1970 began on a Thursday
    assert Steps.spanning(step_rule(5), 0, 10, aware=False).weekdays(np.array([1])) is None


# --- mistakes ----------------------------------------------------------------------------------

DATED = {**PLAIN, "step": "1d"}
BAD = {
    "empty file": ("", PLAIN, "is empty; the first line must name the columns"),
    "header only": ("at,line,ok\n", PLAIN, "no rows below the header"),
    "unknown column": (
        "at,line,okay\n1,a,1\n",
        PLAIN,
        "no column 'ok' for state; did you mean 'okay'",
    ),
    "column twice": ("at,at,line,ok\n1,1,a,1\n", PLAIN, "2 columns are called 'at'"),
    "short row": ("at,line,ok\n1,a,1\n2,a\n", PLAIN, "line 3: has another number of fields"),
    "text for a time": ("at,line,ok\n1,a,1\nsoon,a,0\n", PLAIN, "line 3: time is 'soon', expected"),
    "date among numbers": (
        "at,line,ok\n1,a,1\n2026-01-01,a,0\n",
        PLAIN,
        "line 3: time is '2026-01-01', expected a number",
    ),
    "no such day": (
        "at,line,ok\n2026-02-28,a,1\n2026-02-29,a,0\n",
        DATED,
        "line 3: time is '2026-02-29'",
    ),
    "fraction of a step": (
        "at,line,ok\n1,a,1\n1.5,a,0\n",
        PLAIN,
        "line 3: time is '1.5', expected a whole number",
    ),
    "dates without a step": (
        "at,line,ok\n2026-01-01,a,1\n",
        PLAIN,
        "say how long a step is, as step = '1d'",
    ),
    "step of a number": ("at,line,ok\n1,a,1\n", DATED, "holds numbers, so step is a number too"),
    "offsets without a zone": (
        "at,line,ok\n2026-01-01T00:00Z,a,1\n",
        DATED,
        "say whose days count",
    ),
    "empty arm": ("at,line,ok\n1,,1\n2,a,1\n", PLAIN, "line 2: arm is empty"),
    "empty state": ("at,line,ok\n1,a,\n2,a,1\n", PLAIN, "line 2: state is empty"),
    "mixed states": (
        "at,line,ok\n1,a,1\n2,a,maybe\n",
        PLAIN,
        "line 3: state is 'maybe', expected a whole number",
    ),
    "names without an order": (
        "at,line,ok\n1,a,bad\n2,a,good\n",
        PLAIN,
        "name the states in order, worst first",
    ),
    "numbers that are no states": (
        "at,line,ok\n1,a,0.3\n2,a,0.7\n",
        PLAIN,
        "cut it with state_from",
    ),
    "one state only": ("at,line,ok\n1,a,0\n2,a,0\n", PLAIN, "every row is of state 0"),
    "same arm and step": (
        "at,line,ok\n1,a,0\n2,a,0\n1,a,1\n",
        PLAIN,
        r"lines 2 and 4 \(1\).*same_step \(--same-step\): 'last'",
    ),
    "duplicate row": ("at,line,ok\n1,a,0\n1,a,0\n2,a,1\n", PLAIN, "lines 2 and 3"),
    "stray quote": ('at,line,ok\n1,a"b,1\n2,a,0\n', PLAIN, "line 2: has a quote inside a field"),
    "open quote": (
        'at,line,ok\n1,a,1\n2,"a,0\n',
        PLAIN,
        "line 3: has a quote that is never closed",
    ),
    "open quote in the header": (
        'at,line,"ok\n1,x,0\n2,x,1\n3,x,0\n',
        PLAIN,
        "line 1 has a quote that is never closed",
    ),
    "stray quote in the header": (
        '\nat,line,ok,5"\n1,x,0,1\n2,x,1,1\n',
        PLAIN,
        "line 2 has a quote inside a field",
    ),
    "not UTF-8": (b"at,line,ok\n1,caf\xe9,1\n2,a,0\n", PLAIN, "line 2: arm is not UTF-8"),
    "header not UTF-8": (b"at,caf\xe9,ok\n1,a,1\n", PLAIN, "line 1 is not UTF-8"),
    "UTF-16": ("at,line,ok\n1,a,1\n".encode("utf-16"), PLAIN, "is UTF-16; save it as CSV in UTF-8"),
    "binary": (b"PK\x03\x04\0\0\0\0\n", PLAIN, "is not text"),
    "time too large": (
        "at,line,ok\n1,a,1\n99999999999999,a,0\n",
        PLAIN,
        "line 3: time is '99999999999999'",
    ),
    "huge ages": (
        "at,line,ok\n0,a,1\n999999999999,a,0\n",
        {**PLAIN, "step": "0.0001"},
        "is a time wrong, or the step too short",
    ),
    "unknown zone": (
        "at,line,ok\n2026-01-01,a,1\n",
        {**DATED, "zone": "Mars/Base"},
        "zone 'Mars/Base' is not known",
    ),
    "zone for numbers": ("at,line,ok\n1,a,1\n", {**PLAIN, "zone": "UTC"}, "zone is for dates"),
    "wrong step": (
        "at,line,ok\n1,a,1\n",
        {**PLAIN, "step": "1 fortnight"},
        "step must be a number or a length of time",
    ),
    "state said twice": (
        "at,line,ok\n1,a,1\n",
        {**PLAIN, "state_from": "ok < 1"},
        "say what an arm's state is",
    ),
    "no comparison": (
        "at,line,ok\n1,a,1\n",
        {"time": "at", "arm": "line", "state_from": "ok 1"},
        "a column, a comparison and a value",
    ),
    "text compared": (
        "at,line,ok\n1,a,x\n",
        {"time": "at", "arm": "line", "state_from": "ok < x"},
        "only be compared by == and !=",
    ),
    "text never there": (
        "at,line,ok\n1,a,x\n",
        {"time": "at", "arm": "line", "state_from": "ok == y"},
        "no row has ok 'y'",
    ),
    "number expected": (
        "at,line,ok\n1,a,x\n2,a,3\n",
        {"time": "at", "arm": "line", "state_from": "ok < 5"},
        "line 2: ok is 'x', expected a number",
    ),
    "unknown name": (
        "at,line,ok\n1,a,good\n2,a,fair\n",
        {**PLAIN, "states": ["bad", "good"]},
        "line 3: state is 'fair', expected one of bad, good",
    ),
    "quantiles of one value": (
        "at,line,ok\n1,a,3\n2,a,3\n",
        {**PLAIN, "states": 2},
        "cannot be cut into 2 states",
    ),
    "two kinds": (
        "at,line,ok\n1,a,1\n2,a,0\n",
        {**PLAIN, "by": "at"},
        "line 3: arm 'a' is '2' here and '1' before",
    ),
    "no truth value": (
        "at,line,ok\n1,a,1\n2,a,7\n",
        {**PLAIN, "pulled": "ok"},
        "line 3: pulled is '7', expected 1 or 0",
    ),
    "words of their own": (
        "at,line,ok,who\n1,a,1,called\n2,a,0,not called\n",
        {**PLAIN, "pulled": "who"},
        "column 'who' holds 'called', 'not called', and which of them means .* one word and blanks",
    ),
    "a time that is too large": (
        f"at,line,ok\n{2**41 - 1},a,1\n{2**41},a,0\n",
        PLAIN,
        f"1 bad row; mend it.*\n  line 3: time is '{2**41}', expected a whole number \\(up to 2e12",
    ),
    "a step that is too long": (
        "at,line,ok\n1,a,1\n",
        {**PLAIN, "step": "99999999999999999999"},
        "step must be at least a millionth and at most 2,199,023,255,552",
    ),
    "compressed": (
        gzip.compress(b"at,line,ok\n1,a,1\n"),
        PLAIN,
        "is compressed; unpack it first",
    ),
    "same_step misspelt": (
        "at,line,ok\n1,a,1\n",
        {**PLAIN, "same_step": "first"},
        "same_step must be one of",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_each_mistake_gets_a_sentence(tmp_path, case):
    text, options, sentence = BAD[case]
    path = written(tmp_path / "log.csv", text)
    with pytest.raises(rs.RestiveError, match=sentence) as caught:
        rs.load_log(path, **options)
    assert "Traceback" not in str(caught.value)


def test_missing_file_and_wrong_parquet(tmp_path):
    with pytest.raises(rs.RestiveError, match="cannot be read: No such file"):
        rs.load_log(tmp_path / "none.csv", **PLAIN)
    written(tmp_path / "bad.parquet", "no parquet")
    with pytest.raises(rs.RestiveError, match="is not a Parquet file"):
        rs.load_log(tmp_path / "bad.parquet", **PLAIN)


def test_a_damaged_parquet_file_gets_a_sentence(tmp_path):
    import pyarrow
    import pyarrow.parquet

    path = tmp_path / "log.parquet"
    columns = {"at": [*range(1000)], "line": ["a"] * 1000, "ok": [0, 1] * 500}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, compression="snappy")
    whole = path.read_bytes()
    told = []
    for at in range(4, 2000, 50):  # within the columns; a few changes do no harm
        wrong = bytes(byte ^ 0xFF for byte in whole[at : at + 8])
        path.write_bytes(whole[:at] + wrong + whole[at + 8 :])
        try:
            rs.load_log(path, **PLAIN)
        except rs.RestiveError as error:
            told.append(str(error))
    assert any(text.startswith(f"{path}: columns at, line, ok cannot be read") for text in told)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path):
    paths = [os.devnull]
    if hasattr(os, "mkfifo"):
        paths += [tmp_path / "pipe.csv", tmp_path / "pipe.parquet"]
        for path in paths[1:]:
            os.mkfifo(path)  # nobody writes: whoever waits for it waits for ever
    for path in paths:
        with pytest.raises(rs.RestiveError, match="cannot be read: not a regular file"):
            rs.load_log(path, **PLAIN)


def test_without_pyarrow_a_log_that_was_read_is_fitted(tmp_path, monkeypatch):
    log = log_of([0, 0, 0, 1, 1, 1], [0, 1, 2, 0, 1, 2], [0, 1, 1, 1, 0, 1])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    path = written(tmp_path / "log.csv", "at,line,ok\n5,a,1\n")
    with pytest.raises(rs.RestiveError) as caught:
        rs.load_log(path, **PLAIN)
    assert str(caught.value) == "reading logs needs pyarrow: pip install 'restive[io]'"
    rs.write_fit(rs.fit_log(log, checks=False), tmp_path / "fit")
    assert rs.load_prior(tmp_path / "fit" / "prior.json").names == ("0", "1")


def test_all_mistakes_are_named_and_can_be_left_out(tmp_path):
    text = "at,line,ok\n" + "".join(f"{t},a,{t % 2 if t % 10 else 'x'}\n" for t in range(1, 400))
    path = written(tmp_path / "log.csv", text)
    with pytest.raises(rs.errors.LogError) as caught:
        rs.load_log(path, **PLAIN)
    assert [line for line, _ in caught.value.mistakes] == list(range(11, 401, 10))
    assert "39 bad rows" in str(caught.value)
    assert "and 19 more" in str(caught.value)
    log = rs.load_log(path, **PLAIN, skip_bad=True)
    assert log.num_sightings == 360
    assert any(note.startswith("39 rows were left out") for note in log.notes)


def test_lines_are_counted_through_quotes_and_blank_lines(tmp_path):
    text = 'at,line,ok\n\n1,"a\nb",1\n\n2,"a\nb",x\n3,a,0\n'
    with pytest.raises(rs.errors.LogError, match="line 6: state is 'x'"):
        rs.load_log(written(tmp_path / "log.csv", text), **PLAIN)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_columns_name_may_have_two_lines(tmp_path, end):
    text = f'at,line,"o{end}k"{end}1,x,0{end}2,x,1{end}'
    options = {**PLAIN, "state": f"o{end}k"}
    log = rs.load_log(written(tmp_path / "log.csv", text), **options)
    assert sightings(log) == {("x", 0, 0, True), ("x", 1, 1, True)}
    with pytest.raises(rs.errors.LogError, match="line 5: state is 'y'"):
        rs.load_log(written(tmp_path / "log.csv", text + "3,x,y"), **options)


def test_a_header_is_read_whole_or_refused(tmp_path):
    path = tmp_path / "log.csv"
    names = b"at,line,ok," + b",".join(b"%d" % number for number in range(70_000))
    names = names.ljust(HEADER_BYTES - 2, b"x")
    others = b"," * (names.count(b",") - 2) + b"\r\n"
    rows = b"1,a,0" + others + b"2,a,1" + others
    written(path, names + b"\r\n" + rows)
    assert rs.load_log(path, **PLAIN).num_sightings == 2
    unclosed = b'at,line,"ok\n' + b"1,a,0\n" * 99_999
    for text in (names + b"x\r\n" + rows, names + b"x" * 9, unclosed):
        with pytest.raises(rs.RestiveError, match="the columns, is longer than 524,288 bytes"):
            rs.load_log(written(path, text), **PLAIN)


def test_an_arm_without_a_good_row_is_no_arm(tmp_path):
    text = "at,line,ok\n1,a,1\n2,b,x\n3,a,0\n"
    log = rs.load_log(written(tmp_path / "log.csv", text), **PLAIN, skip_bad=True)
    assert log.arms == ("a",)
    assert log.num_sightings == 2


def test_rows_that_are_left_out_have_no_say_in_the_order_of_arms(tmp_path):
    text = 'at,line,ok,kind\n1,b,1,q\n2,a"b,1,q\n3,c,x,r\n4,"a,b",1,r\n5,d,1,\n6,,1,r\n7,a,0,q\n'
    text += '7,b,0,r\n8,"a""b",0,r\n8,d,0,q\n8,c,0,r\n'
    path = written(tmp_path / "log.csv", text)
    log = rs.load_log(path, **PLAIN, by="kind", skip_bad=True)
    kinds = {arm: log.kinds[kind] for arm, kind in zip(log.arms, log.kind_of, strict=True)}
    assert " ".join(kinds) == 'b a,b a a"b d c'
    assert "".join(kinds.values()) == "qrqrqr"
    assert {(arm, at) for arm, at, _, _ in sightings(log)} == {
        ("b", 0), ("a,b", 3), ("a", 6), ('a"b', 7), ("d", 7), ("c", 7)
    }  # fmt: skip


def test_what_counts_within_a_step(tmp_path):
    text = "at,line,ok\n2026-01-01 18:00,a,1\n2026-01-01 09:00,a,0\n2026-01-02,a,1\n"
    path = written(tmp_path / "log.csv", text)
    last = rs.load_log(path, **DATED, same_step="last")
    worst = rs.load_log(path, **DATED, same_step="worst")
    assert [s for _, _, s, _ in sorted(sightings(last))] == [1, 1]
    assert [s for _, _, s, _ in sorted(sightings(worst))] == [0, 1]
    assert any("1 of 3 rows is of the same" in note for note in last.notes)
    for same_step, state in (("last", 1), ("worst", 0)):  # pulled, and seen again later that day
        log = log_of([0, 0], [4, 4], [0, 1], pulled=[1, 0], same_step=same_step)
        assert list(sightings(log)) == [("0", 0, state, True)]
