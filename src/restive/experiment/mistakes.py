"""Mistakes in a study, in words: where in the file, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from restive.arguments import suggestion
from restive.experiment.toml_lines import line_of

__all__ = ["told"]


def told(
    detail: ErrorDetails,
    swept: Sequence[tuple[tuple[str, ...], list[Any]]],
    choice: Sequence[int],
    text: str,
    keys_at: Callable[[tuple[int | str, ...]], list[str]],
) -> str:
    """Return a mistake in words: its place in the file, what is wrong, and what to do."""
    # a union's error names the alternative in its place; what is in the file are keys and numbers
    place = tuple(part for part in detail["loc"] if part not in ("int", "list[int]"))
    for (path, _), at in zip(swept, choice, strict=True):
        if place[: len(path)] == path:
            place = ("sweep", *path, at, *place[len(path) :])
    line = line_of(text, place)
    where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place)
    where = where.lstrip(".") or "the study"
    if line is not None:
        where += f" (line {line})"
    return f"{where}: {_in_words(detail, keys_at)}"


def _in_words(detail: ErrorDetails, keys_at: Callable[[tuple[int | str, ...]], list[str]]) -> str:
    value = detail["input"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            key, known = str(detail["loc"][-1]), keys_at(detail["loc"][:-1])
            return f"unknown key; {suggestion(key, known)}"
        case "missing":
            return "is missing"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"must be one of {context['expected']}, got {value!r:.60}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, got {value!r:.60}"
        case "less_than_equal" | "less_than":
            return f"is too large: {value!r:.60}"
        case "int_type":
            return f"must be a whole number, got {value!r:.60}"
        case "model_type" | "dict_type":
            return f"must be a table, got {value!r:.60}"
    message = detail["msg"]
    return f"{message[0].lower()}{message[1:]}, got {value!r:.60}"
