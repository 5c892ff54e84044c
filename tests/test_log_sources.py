"""Logs from data frames and from columns by name: the same log as from a file of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import date, timedelta
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import restive as rs

FIRST = date(2026, 3, 2)
ROWS = 300
RNG = np.random.default_rng(0)
COLUMNS = {
    "day": [FIRST + timedelta(days=n // 6) for n in range(ROWS)],
    "who": [f"P{n % 6}" for n in range(ROWS)],
    "region": [("north", "south")[n % 2] for n in range(ROWS)],
    "outcome": [("bad", "fair", "good")[s] for s in RNG.integers(3, size=ROWS)],
    "called": [bool(p) for p in RNG.integers(2, size=ROWS)],
}
MEANT: dict[str, Any] = {
    "time": "day", "arm": "who", "state": "outcome", "states": ["bad", "fair", "good"],
    "step": "1d", "by": "region", "pulled": "called",
}  # fmt: skip
PLAIN = {"time": "t", "arm": "a", "state": "s"}


class Frame:
    """What any library's data frame may be: nothing but a stream of Arrow data."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def typed(**types: pa.DataType) -> pa.Table:
    table = pa.table(COLUMNS)
    for name, kind in types.items():
        at = table.column_names.index(name)
        table = table.set_column(at, name, table.column(name).cast(kind))
    return table


SOURCES: dict[str, Callable[[], Any]] = {
    "lists": lambda: COLUMNS,
    "any mapping": lambda: MappingProxyType({name: tuple(v) for name, v in COLUMNS.items()}),
    "numpy arrays": lambda: {
        name: np.array(v, dtype="datetime64[ns]" if name == "day" else None)
        for name, v in COLUMNS.items()
    },
    "arrays of objects": lambda: {name: np.array(v, object) for name, v in COLUMNS.items()},
    "series": lambda: {name: pd.Series(v) for name, v in COLUMNS.items()},
    "more columns than are meant": lambda: COLUMNS | {"notes": ["a", 1, None], "short": [1]},
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas with an index": lambda: pd.DataFrame(COLUMNS).set_index("region", append=True),
    "pandas with times": lambda: pd.DataFrame(COLUMNS).astype({"day": "datetime64[ns]"}),
    "pandas with categories": lambda: pd.DataFrame(COLUMNS).astype(
        {"who": "category", "outcome": "category", "region": object}
    ),
    "arrow": lambda: pa.table(COLUMNS),
    "a batch": lambda: pa.RecordBatch.from_pydict(COLUMNS),
    "a stream, as of polars": lambda: Frame(
        typed(
            who=pa.string_view(), outcome=pa.large_string(), region=pa.dictionary("int8", "string")
        )
    ),
    "in pieces": lambda: Frame(pa.concat_tables([pa.table(COLUMNS)[:7], pa.table(COLUMNS)[7:]])),
}


def parts(log: rs.types.Log) -> tuple[Any, ...]:
    return (
        log.arms, log.states, log.kinds, log.kind_of.tolist(), log.span, log.starts.tolist(),
        log.notes, log.has_pulled, log.step_column.tolist(), log.code_column.tolist(),
    )  # fmt: skip


@pytest.mark.parametrize("name", SOURCES)
def test_a_log_is_the_same_wherever_it_stands(name, tmp_path):
    pd.DataFrame(COLUMNS).to_csv(tmp_path / "log.csv", index=False)
    expected = rs.load_log(tmp_path / "log.csv", **MEANT)
    assert parts(rs.load_log(SOURCES[name](), **MEANT)) == parts(expected)
    assert expected.num_sightings == ROWS


def test_a_frame_longer_than_a_batch_says_how_far_it_is():
    count = (1 << 17) + 5
    shares: list[float] = []
    frame = pd.DataFrame({"t": np.arange(count), "a": "x", "s": np.arange(count) % 2})
    log = rs.load_log(frame, **PLAIN, progress=shares.append)
    assert log.num_sightings == count
    assert sorted(shares) == shares
    assert len(shares) == 4  # two batches, then all is read, then sorted
    assert shares[-1] == 1.0


def test_numbers_are_cut_and_missing_ones_named():
    rng = np.random.default_rng(1)
    columns = {"t": np.arange(90) // 3, "a": np.arange(90) % 3, "s": rng.random(90)}
    cut = rs.load_log(columns, **PLAIN, states=3)
    assert np.bincount(cut.code_column >> 1).tolist() == [30, 30, 30]
    compared = rs.load_log(pd.DataFrame(columns), time="t", arm="a", state_from="s < 0.5")
    assert (compared.code_column >> 1).sum() == (columns["s"] < 0.5).sum()
    columns["s"][4] = np.nan
    for source in (
        columns,
        pd.DataFrame(columns),
        {**columns, "s": [*columns["s"][:4], None, *columns["s"][5:]]},
    ):
        with pytest.raises(rs.errors.LogError, match="row 5: s is empty"):
            rs.load_log(source, **PLAIN, states=3)
        assert rs.load_log(source, **PLAIN, states=3, skip_bad=True).num_sightings == 89


@pytest.mark.parametrize("instants", [["2026-03-29 00:30", "2026-03-29 04:30"]])
def test_times_with_a_zone_are_instants(instants):
    times = pd.to_datetime(instants).tz_localize("Europe/Berlin")
    log = rs.load_log({"t": times, "a": ["x", "x"], "s": [0, 1]}, **PLAIN, step="1h")
    assert log.step_column.tolist() == [0, 3]  # clocks were set forward


GOOD: dict[str, Any] = {"t": [1, 2, 3], "a": ["x", "x", "x"], "s": [0, 1, 0]}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        (5, "a log is a path, a data frame or columns by name, got 5"),
        ([[1, 2], [3, 4]], "a log is a path, a data frame or columns by name, got "),
        (pd.Series([1, 2]), "the data frame cannot be read: "),
        ({**GOOD, "s": "abc"}, "the columns: 's' must be a list, got 'abc'"),
        ({**GOOD, "s": 5}, "the columns: 's' must be a list with values of one type, got 5"),
        ({**GOOD, "s": [0, "good", 1]}, "the columns: 's' must be a list with values of one type"),
        ({**GOOD, "a": ["x", 3, "y"]}, "the columns: 'a' must be a list with values of one type"),
        ({**GOOD, "s": np.zeros((3, 3))}, "the columns: 's' must be a list with values of one"),
        ({**GOOD, "s": [[0], [1], [0]]}, "the columns: columns t, a, s cannot be read: "),
        ({**GOOD, "s": [0, 1]}, "the columns: not of one length: 't' has 3, 'a' has 3, 's' has 2"),
        ({"t": [], "a": [], "s": []}, "the columns: no rows below the header"),
        ({0: [1], **GOOD}, "the columns: a name must be text, got 0"),
        ({}, "the columns: there are none"),
        ({"t": [1], "a": ["x"]}, "the columns: no column 's' for state; known are t, a"),
        ({**GOOD, "t": [1, 2, 2.5]}, "row 3: time is '2.5', expected a whole number"),
        ({**GOOD, "t": [1, 2, 2]}, "1 row is of the same arm and step as another: rows 2 and 3"),
        ({**GOOD, "s": [0, -1, 0]}, "row 2: state is '-1', expected a whole number"),
        (pd.DataFrame({**GOOD, "a": ["x", 3, "y"]}), "the data frame cannot be read: Conversion "
         "failed for column a with type object"),
        (pd.DataFrame({"t": [1], "who": ["x"]}), "the data frame: 2 mistakes\n  no column 'a' for"),
        (pd.DataFrame(GOOD).iloc[:0], "the data frame: no rows below the header"),
        (pd.DataFrame([[1, 2, 3, 4]], columns=["t", "a", "s", "s"]), "the data frame"),
    ],
)  # fmt: skip
def test_what_is_no_log_gets_a_sentence(source, sentence):
    with pytest.raises(rs.RestiveError) as caught:
        rs.load_log(source, **PLAIN)
    assert sentence in str(caught.value)
    assert "Traceback" not in str(caught.value)


def test_columns_need_pyarrow_too(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(rs.RestiveError, match="reading logs needs pyarrow: pip install"):
        rs.load_log(GOOD, **PLAIN)
