"""Mistakes in a study, in words: where in the file, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from restive.arguments import suggestion
from restive.errors import ProblemError
from restive.experiment.toml_lines import placed

__all__ = ["PlacedError", "told"]


class PlacedError(ProblemError):
    """A mistake that is known to stand at some place below the table that is checked."""

    def __init__(self, place: tuple[str | int, ...], message: str) -> None:
        super().__init__(message)
        self.place = place


def told(
    detail: ErrorDetails,
    swept: Sequence[tuple[tuple[str, ...], list[Any]]],
    choice: Sequence[int],
    text: str,
    keys_at: Callable[[tuple[int | str, ...]], list[str]],
) -> str:
    """Return a mistake in words: its place in the file, what is wrong, and what to do."""
    place = detail["loc"]
    if place[:1] == ("times",):  # a union: its errors name the alternative in their place
        place = tuple(part for part in place if part not in ("int", "list[int]"))
    place += getattr(detail.get("ctx", {}).get("error"), "place", ())
    for (path, _), at in zip(swept, choice, strict=True):
        if place[: len(path)] == path:
            place = ("sweep", *path, at, *place[len(path) :])
    return f"{placed(text, place)}: {_in_words(detail, keys_at)}"


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
