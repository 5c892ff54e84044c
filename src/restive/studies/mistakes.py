"""Mistakes in a study, in words: where in the file, what is wrong, what to do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_core import ErrorDetails

from restive.arguments import suggestion
from restive.errors import ProblemError
from restive.problem.toml_text import placed

__all__ = ["PlacedError", "place_of", "told", "told_at"]

Swept = Sequence[tuple[tuple[str, ...], list[Any]]]
Place = tuple[str | int, ...]

MISSING = {
    "kind": ": give kind = 'bayesian' or 'frequentist', or instance = ...",
    "prior": ": give [prior] with levels = [...], beta = {...}, [prior.dirichlet], [[prior.arm]], "
    "[[prior.bandit]] or zoo = ...",
    "horizon": ": give the number of steps, as horizon = 1000",
}


class PlacedError(ProblemError):
    """A mistake that is known to stand at some place below the table that is checked."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


def told(
    detail: ErrorDetails,
    swept: Swept,
    choice: Sequence[int],
    text: str,
    keys_at: Callable[[tuple[int | str, ...]], list[str]],
) -> str:
    """Return a mistake in words: its place in the file, what is wrong, and what to do."""
    return told_at(place_of(detail), _in_words(detail, keys_at), swept, choice, text)


def place_of(detail: ErrorDetails) -> Place:
    """Return the place of a mistake in the study."""
    place = detail["loc"]
    if place[:1] == ("times",):  # a union: its errors name the alternative in their place
        place = tuple(part for part in place if part not in ("int", "list[int]"))
    own: Place = getattr(detail.get("ctx", {}).get("error"), "place", ())
    return place + own


def told_at(place: Place, words: str, swept: Swept, choice: Sequence[int], text: str) -> str:
    """Return words with the place in the file, which may be in the sweep."""
    for (path, _), at in zip(swept, choice, strict=True):
        if place[: len(path)] == path:
            place = ("sweep", *path, at, *place[len(path) :])
    return f"{placed(text, place)}: {words}"


def _in_words(detail: ErrorDetails, keys_at: Callable[[tuple[int | str, ...]], list[str]]) -> str:
    value = detail["input"]
    context = detail.get("ctx", {})
    match detail["type"]:
        case "extra_forbidden":
            key, known = str(detail["loc"][-1]), keys_at(detail["loc"][:-1])
            return f"unknown key; {suggestion(key, known)}"
        case "missing":
            return f"is missing{MISSING.get(str(detail['loc'][-1]), '')}"
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"must be one of {context['expected']}, got {value!r:.60}"
        case "greater_than_equal":
            return f"must be at least {context['ge']}, got {value!r:.60}"
        case "less_than_equal":
            return f"must be at most {context['le']:,}, got {value!r:.60}"
        case "less_than":
            return f"must be at most {context['lt'] - 1:,}, got {value!r:.60}"
        case "int_type":
            return f"must be a whole number, got {value!r:.60}"
        case "list_type":
            written = f'; write ["{value}"]' if isinstance(value, str) else ""
            return f"must be a list, got {value!r:.60}{written}"
        case "too_short":
            return "must have at least one item, got none"
        case "model_type" | "dict_type":
            return f"must be a table, got {value!r:.60}"
    message = detail["msg"]
    return f"{message[0].lower()}{message[1:]}, got {value!r:.60}"
