"""Lists: pages of arms, as operators see them, and tables that can be exported."""

from __future__ import annotations

import json
from math import isnan
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from restive.arguments import checked_count, shown, suggestion
from restive.errors import ProblemError
from restive.files import replacing, require_target
from restive.live.clock import utc_time
from restive.live.journal.sql_tables import Progress
from restive.live.memory import Memory
from restive.live.people.sheets import sheet_text, write_text
from restive.live.session import Session, journalable
from restive.live.settings import Settings
from restive.live.told import learned
from restive.live.told.answers import ArmRow

if TYPE_CHECKING:
    from restive.live.view import LiveView

__all__ = ["MOST_PAGE", "ORDERS", "arm_row", "arm_rows", "export_table", "table_rows"]

MOST_PAGE = 1000
EXPORTS = (".csv", ".jsonl", ".parquet")
ORDERS = ("name", "index", "pulls", "age", "belief")  # of a list of arms
QUERIES = {  # of tables that can be exported
    "pulls": "SELECT tick, name AS arm, kind, status, state, audit, expected, recorded "
    "FROM pull JOIN arm USING (slot) JOIN prior ON arm.prior = prior.id "
    "ORDER BY tick, slot",
    "events": "SELECT seq, kind, tick, at, request, actor, body, digest FROM event ORDER BY seq",
    "arms": 'SELECT name AS arm, kind, joined, "left" FROM arm JOIN prior ON arm.prior = prior.id '
    "ORDER BY slot",
}


def arm_row(memory: Memory, slot: int) -> ArmRow:
    """Return an arm as an operator sees it."""
    waiting = slot >= memory.num_joined
    state = tick = index = good = None
    if not waiting:
        now = memory.open_sightings
        if slot in now:
            state, tick = now[slot], memory.tick
        elif slot in memory.ever_seen:
            state, time = memory.agent.last_seen(slot)
            tick = time - 1
        good = float(learned.belief(memory, slot)[-1])
        if memory.tick >= 0:
            (value,) = memory.agent.index_of([slot])
            index = None if isnan(value) else value
    return ArmRow(
        name=memory.roster.names[slot],
        kind=memory.roster.kind_of[slot],
        joined=memory.joined[slot],
        left=memory.gone.get(slot),
        waiting=waiting,
        last_state=state,
        last_tick=tick,
        index=index,
        good=good,
        pulls=memory.pulls.get(slot, 0),
    )


def arm_rows(session: Session, after: str | int | None, limit: int, by: str) -> list[ArmRow]:
    """Return a page of arms."""
    limit = checked_count(limit, "limit", 1, MOST_PAGE)
    memory = session.memory
    if not isinstance(by, str) or by not in ORDERS:
        raise ProblemError(f"by must be one of {', '.join(ORDERS)}, got {shown(by)}")
    if by == "name":
        found = session.journal.connection.execute(
            "SELECT slot FROM arm WHERE name > ? ORDER BY name LIMIT ?",
            ("" if after is None else journalable(str(after), "after"), limit),
        )
        return [arm_row(memory, slot) for (slot,) in found]
    skipped = 0 if after is None else checked_count(after, "after", 0)
    urgency = np.full(len(memory.roster), -np.inf)
    joined = memory.num_joined
    if by == "pulls":
        urgency[list(memory.pulls)] = list(memory.pulls.values())
    elif by == "age":
        urgency[:joined] = memory.agent.belief_state.elapsed
    elif by == "belief":
        urgency[:joined] = learned.chances_of_the_top(memory)
    elif memory.tick >= 0:
        urgency[:joined] = np.nan_to_num(memory.agent.index(), nan=-np.inf)
    urgency[list(memory.gone)] = -np.inf
    order = np.argsort(-urgency, kind="stable")
    return [arm_row(memory, int(slot)) for slot in order[skipped : skipped + limit]]


def table_rows(
    session: Session, name: str, progress: Progress | None
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Return the columns and rows of a table."""
    if isinstance(name, str) and name == "beliefs":
        return _beliefs(session.memory)
    if not isinstance(name, str) or name not in QUERIES:
        raise ProblemError(
            f"there is no table {shown(name)}; {suggestion(name, [*QUERIES, 'beliefs'])}"
        )
    execute = session.journal.connection.execute
    (total,) = execute(f"SELECT count(*) FROM {name.removesuffix('s')}").fetchone()
    cursor, rows = session.journal.connection.stream(QUERIES[name]), []
    for row in cursor:  # one by one: whoever waits can stop it
        rows.append(_readable(row) if name == "events" else row)
        if progress is not None and len(rows) % 1024 == 0:
            progress(len(rows), total)
    columns = [column[0] for column in cursor.description]
    return columns, rows


def _readable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the row of an event with its time and digest as texts."""
    return (*row[:3], utc_time(row[3]).isoformat(), *row[4:-1], row[-1].hex().upper())


def _beliefs(memory: Memory) -> tuple[list[str], list[tuple[Any, ...]]]:
    settings = memory.settings
    columns = ["arm", "kind", "last_state", "last_tick"]
    columns += [
        f"belief_{settings.state_name(state)}" for state in range(memory.roster.most_states)
    ]
    rows = []
    for slot in range(memory.num_joined):
        if slot in memory.gone:
            continue
        row = arm_row(memory, slot)
        law = [*learned.belief(memory, slot).tolist(), *[None] * memory.roster.most_states]
        rows.append(
            (row.name, row.kind, row.last_state, row.last_tick, *law[: memory.roster.most_states])
        )
    return columns, rows


def export_table(
    live: LiveView, table: str, path: str | PathLike[str], progress: Progress | None = None
) -> int:
    """Write a table to a new file, in the format that its ending names; return the rows' number."""
    suffix = require_target(path, EXPORTS, absent=True)
    columns, rows = live.table(table, progress)
    if table != "events":  # a line of the journal is for programs
        columns, rows = _with_names(live.settings, columns, rows)
        columns = [live.settings.words.column(column) for column in columns]
    if suffix == ".csv":
        write_text(path, sheet_text(columns, rows))
    elif suffix == ".jsonl":
        lines = (json.dumps(dict(zip(columns, row, strict=True))) for row in rows)
        write_text(path, "".join(f"{line}\n" for line in lines))
    else:
        try:
            import pyarrow
            from pyarrow.parquet import write_table
        except ImportError:
            raise ProblemError("Parquet needs `pip install 'restive[io]'`") from None
        by_column = list(zip(*rows, strict=True)) or [()] * len(columns)
        arrays = {name: list(cells) for name, cells in zip(columns, by_column, strict=True)}
        with replacing(path) as temporary:
            write_table(pyarrow.table(arrays), temporary)
    return len(rows)


def _with_names(
    settings: Settings, columns: list[str], rows: list[tuple[Any, ...]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Give each column of states one of their names, where they have names."""
    for state in ("state", "last_state"):
        if state in columns and settings.has_names:
            at = columns.index(state)
            columns = [*columns[: at + 1], f"{state}_name", *columns[at + 1 :]]
            names = [None if row[at] is None else settings.state_name(row[at]) for row in rows]
            rows = [
                (*row[: at + 1], name, *row[at + 1 :])
                for row, name in zip(rows, names, strict=True)
            ]
    return columns, rows
