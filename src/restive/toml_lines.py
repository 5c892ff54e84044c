"""Where in a TOML text a key stands: for error messages, so a close guess is good enough."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["line_of", "placed"]

HEADER = re.compile(r"^\s*(\[\[?)\s*([^\[\]]+?)\s*\]\]?\s*(#.*)?$")
KEY = re.compile(r"^\s*([\w.\"'-]+(?:\s*\.\s*[\w\"'-]+)*)\s*=")

Place = tuple[str | int, ...]


def line_of(text: str, place: Sequence[str | int]) -> int | None:
    """Line, from 1, of the key at a place such as ("prior", "arm", 1, "count"), or of its table."""
    lines = _lines(text)
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


def _lines(text: str) -> dict[Place, int]:
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
