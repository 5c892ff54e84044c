"""TOML as text: read and parsed with every mistake said, keys found by line, plain data written.

Nothing here knows what a file is about; problems, studies and live agents share it.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any

from restive.arguments import checked_path, shown
from restive.errors import ProblemError
from restive.files import read_regular

__all__ = [
    "basic_string",
    "line_of",
    "parse_toml",
    "placed",
    "read_text",
    "require_shallow",
    "toml_of",
]

LARGEST_FILE = 1 << 28  # bytes
DEEPEST = 50  # tables and lists in one another; nothing sound has ten
TOO_DEEP = f"brackets or tables are nested too deeply (more than {DEEPEST} in one another)"
BYTE_ORDER_MARK = "\ufeff"  # with which some editors on Windows begin a file
HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"^\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=")
TWICE = re.compile(r"Cannot declare \((.*)\) twice \(at line (\d+), .*\)")  # as tomllib says it
BARE = re.compile(r"[A-Za-z0-9_-]+")

Place = tuple[str | int, ...]


def read_text(path: str | PathLike[str]) -> str:
    """Read a text file of sane size, or say what is wrong with it."""
    path = checked_path(path, "path")
    try:
        contents = read_regular(path, LARGEST_FILE)
        if len(contents) > LARGEST_FILE:
            raise ProblemError(f"{path}: larger than {LARGEST_FILE >> 20} MiB; use `count`")
        return contents.decode().replace("\r\n", "\n").removeprefix(BYTE_ORDER_MARK)
    except UnicodeDecodeError as error:
        raise ProblemError(f"{path}: not UTF-8 text (byte {error.start})") from None
    except OSError as error:
        raise ProblemError(f"{path}: cannot be read: {error.strerror}") from None


def parse_toml(text: str) -> dict[str, Any]:
    """Parse TOML, or say what is wrong with it."""
    if not isinstance(text, str):
        raise ProblemError(f"expected the text of a TOML file, got {shown(text)}")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise ProblemError(TOO_DEEP) from None
    except ValueError as error:  # also numbers with thousands of digits
        if twice := TWICE.fullmatch(str(error)):
            name = ".".join(re.findall(r"'([^']*)'", twice[1]))
            raise ProblemError(
                f"line {twice[2]}: [{name}] is there twice; where there may be several, each must "
                f"be written as [[{name}]], with two brackets"
            ) from None
        blank = "; a name with a blank needs quotes" if "'=' after a key" in str(error) else ""
        raise ProblemError(f"not valid TOML: {error}{blank}") from None
    require_shallow(data)
    return data


def require_shallow(data: Any) -> None:
    """Raise for tables and lists in one another so deep that whatever walks them would fail."""
    level = [data]
    for _ in range(DEEPEST):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    if level:
        raise ProblemError(TOO_DEEP)


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """Line, from 1, of the key at a place such as ("prior", "arm", 1, "count"), or of its table.

    It is for error messages, so a close guess is good enough.
    """
    lines = _first_lines(text)
    wanted = tuple(place)
    while wanted:
        if wanted in lines:
            return lines[wanted]
        wanted = wanted[:-1]
    return None


def placed(text: str, place: Sequence[str | int]) -> str:
    """Name a place for a person: its path and, where it is found, its line."""
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    where = where.lstrip(".") or "the study"
    line = line_of(text, place)
    return where if line is None else f"{where} (line {line})"


def _first_lines(text: str) -> dict[Place, int]:
    """First line of every table and key."""
    found: dict[Place, int] = {}
    counts: dict[Place, int] = {}
    table: Place = ()
    for number, line in enumerate(text.split("\n"), 1):
        if header := HEADER.match(line):
            table = ()
            *parents, last = _split(header[2])
            for name in parents:
                table = _newest((*table, name), counts)
            table = (*table, last)
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                found.setdefault(table, number)
                table = _newest(table, counts)
            found.setdefault(table, number)
        elif key := KEY.match(line):
            for end in range(1, len(_split(key[1])) + 1):
                found.setdefault((*table, *_split(key[1])[:end]), number)
    return found


def _newest(table: Place, counts: dict[Place, int]) -> Place:
    """Place of the last item of an array of tables, where the table is one."""
    return (*table, counts[table]) if table in counts else table


def _split(dotted: str) -> list[str]:
    return [part.strip().strip("\"'") for part in dotted.split(".")]


def toml_of(data: Mapping[str, Any]) -> str:
    """Write plain data as TOML that reads back equal, with a table to each heading."""
    return "\n".join(_written(data, ())) + "\n"


def _written(table: Mapping[str, Any], place: tuple[str, ...]) -> list[str]:
    """Return the lines of a table: its values, then the tables below it."""
    values, below = [], []
    for key, value in table.items():
        name = ".".join(map(_written_key, (*place, key)))
        if isinstance(value, dict):
            below += ["", f"[{name}]", *_written(value, (*place, key))]
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for item in value:
                below += ["", f"[[{name}]]", *_written(item, (*place, key))]
        else:
            values.append(f"{_written_key(key)} = {_written_value(value)}")
    return values + below


def _written_value(value: Any) -> str:
    if isinstance(value, dict):
        items = (f"{_written_key(key)} = {_written_value(item)}" for key, item in value.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_written_value, value)) + "]"
    if isinstance(value, str):
        return basic_string(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _written_key(key: str) -> str:
    return key if BARE.fullmatch(key) else basic_string(key)


def basic_string(text: str) -> str:
    """Write text as a TOML string."""
    # TOML's basic strings are JSON's, except that JSON leaves the control character U+007F bare
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
