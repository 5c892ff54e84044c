"""Learners with their options as one writes them on a command line: `tsde(forget_after=300)`."""

from __future__ import annotations

import re
from typing import Any

from restive.arguments import shown
from restive.errors import ProblemError

__all__ = ["learner_from_text", "names_in"]

WHOLE = re.compile(r"\s*([\w-]+(?:\s+[\w-]+)*)\s*(?:\((.*)\))?\s*")
OPTION = re.compile(r"\s*(\w+)\s*=\s*(.*?)\s*")


def learner_from_text(text: str) -> dict[str, Any]:
    """Return a learner's name and options as a table; what they mean is not looked at.

    Examples
    --------
    >>> learner_from_text("tsde(draws=4, forget_after=300)")
    {'name': 'tsde', 'draws': 4, 'forget_after': 300}
    """
    found = WHOLE.fullmatch(text)
    options = [] if found is None or not (found[2] or "").strip() else found[2].split(",")
    pairs = [OPTION.fullmatch(option) for option in options]
    if ";" in text:
        raise ProblemError(f"separate learners by commas, got {shown(text)}")
    if found is None or not all(pairs):
        raise ProblemError(
            "a learner is a name, or a name with options such as tsde(forget_after=300), got "
            f"{shown(text)}"
        )
    return {"name": found[1]} | {pair[1]: _value(pair[2]) for pair in pairs if pair}


def names_in(text: str) -> list[str]:
    """Return names, with options or without, that commas separate.

    Examples
    --------
    >>> names_in("tsde(draws=4, forget_after=300), ucb1")
    ['tsde(draws=4, forget_after=300)', 'ucb1']
    """
    return [name.strip() for name in re.split(r",(?![^(]*\))", text) if name.strip()]


def _value(text: str) -> int | float | str | None:
    if text == "None":
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text.strip("'\"")
