"""Plain data as TOML that reads back equal, with a table to each heading."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from restive.problem_file import basic_string

__all__ = ["toml_text"]

BARE = re.compile(r"[A-Za-z0-9_-]+")

Place = tuple[str, ...]


def toml_text(data: Mapping[str, Any]) -> str:
    """Return a table as the text of a file."""
    return "\n".join(_lines(data, ())) + "\n"


def _lines(table: Mapping[str, Any], place: Place) -> list[str]:
    """Return the lines of a table: its values, then the tables below it."""
    values, below = [], []
    for key, value in table.items():
        name = ".".join(map(_key, (*place, key)))
        if isinstance(value, dict):
            below += ["", f"[{name}]", *_lines(value, (*place, key))]
        elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            for item in value:
                below += ["", f"[[{name}]]", *_lines(item, (*place, key))]
        else:
            values.append(f"{_key(key)} = {_value(value)}")
    return values + below


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_key(key)} = {_value(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, str):
        return basic_string(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _key(key: str) -> str:
    return key if BARE.fullmatch(key) else basic_string(key)
