"""Messages of the library, for whoever sits at the command line: `--step 1d`, not `step = '1d'`.

The library says what it wants in Python. Where a command has a flag of that name, its messages
name the flag; everything else stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from inspect import signature
from typing import Any

__all__ = ["flags_of", "spoken"]

VALUE = r"('[^']*'|\"[^\"]*\"|\[[^\]]*\]|True|False|[0-9][0-9.]*|a column of states)"
IN_PYTHON = re.compile(r" or LiveAgent\.create\b| \(in Python, [^()]*\)")
OTHERWISE = {"num_pulls": "pulls"}  # flags that have other names than the library's arguments


def flags_of(command: Callable[..., Any]) -> list[str]:
    """Return what a command can be told, as Python spells it."""
    own = list(signature(command).parameters)
    return own + [name for name, flag in OTHERWISE.items() if flag in own]


def spoken(message: str, flags: Collection[str]) -> str:
    """Return a message of the library with flags for arguments."""
    message = IN_PYTHON.sub("", message)
    names = "|".join(sorted(map(re.escape, flags), key=len, reverse=True))
    if not names:
        return message
    # where the library names the flag itself, that is enough
    text = re.sub(r"\b[a-z_]+(?: = \w+)? \((--[a-z][a-z -]*)\)", r"\1", message)
    text = re.sub(rf"(?<![\w-])({names}) = {VALUE}", _with_value, text)
    text = re.sub(rf"(?<![\w-])({names})(?= must\b)", _flag, text)
    return re.sub(rf"(?<![\w-])({names})\b(?! =)", _if_no_plain_word, text)


def _flag(found: re.Match[str]) -> str:
    name = OTHERWISE.get(found[1], found[1])
    return f"--{name.replace('_', '-')}"


def _if_no_plain_word(found: re.Match[str]) -> str:
    return _flag(found) if "_" in found[1] else found[0]


def _with_value(found: re.Match[str]) -> str:
    flag, value = _flag(found), found[2]
    if value == "True":
        return flag
    if value == "False":
        return flag.replace("--", "--no-", 1)
    if value.startswith("["):
        value = ",".join(part.strip(" '\"") for part in value[1:-1].split(","))
    if value == "a column of states":
        return f"{flag} COLUMN"
    plain = value.strip("'\"")
    return f'{flag} "{plain}"' if " " in plain else f"{flag} {plain}"
