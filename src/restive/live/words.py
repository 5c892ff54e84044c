"""The operators' own nouns: patients for arms, calls for pulls, weeks for ticks.

They stand in pages, in the headers of CSV files, in what `restive live` prints and in alarms. What
programs read, JSON, keeps its keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from restive.arguments import plural, shown, suggestion
from restive.errors import ProblemError

__all__ = ["PLAIN", "TAKEN", "Words", "pairs_of"]

MOST_WORD = 40
COLUMNS = ("arm", "tick")  # that are headers of files under these names, or under one's own
TAKEN = (  # other headers, which a word must not be
    "audit", "date", "elapsed", "expected", "index", "joined", "kind", "last_seen", "last_state",
    "last_state_name", "last_tick", "left", "outcome", "reason", "recorded", "state", "state_name",
    "status",
)  # fmt: skip


@dataclass(frozen=True)
class Words:
    """What the operators of a file call things; plurals are English ones where none is given."""

    arm: str = "arm"
    pull: str = "pull"
    tick: str = "tick"
    reward: str = "reward"  # which is not counted, so it may be "adherent weeks"
    arms: str = ""
    pulls: str = ""
    ticks: str = ""

    def __post_init__(self) -> None:
        for field in fields(self):
            word = getattr(self, field.name)
            if word or not field.name.endswith("s"):
                _require_word(word, field.name)
        heads = [getattr(self, name).casefold() for name in COLUMNS]
        for name, head in zip(COLUMNS, heads, strict=True):
            other = [one for one in COLUMNS if one != name]
            if head in TAKEN or head in other or heads.count(head) > 1:
                raise ProblemError(
                    f"words: {name} cannot be {shown(getattr(self, name))}, which is another "
                    "column of the files; choose another word"
                )

    @classmethod
    def from_data(cls, data: Any) -> Words:
        """Return the words of a table such as {arm: patient, pull: call}."""
        if not isinstance(data, Mapping):
            raise ProblemError(
                f'words must be a table such as arm = "patient", tick = "week", got {shown(data)}'
            )
        known = [field.name for field in fields(cls)]
        for key in data:
            if key not in known:
                raise ProblemError(f"words: there is no {shown(key)}; {suggestion(key, known)}")
        return cls(**data)

    @classmethod
    def from_text(cls, text: str) -> dict[str, str]:
        """Return the table that a text such as "arm=patient,pull=call" stands for."""
        found = pairs_of(text, "words", "arm=patient,pull=call,tick=week")
        cls.from_data(found)
        return found

    def to_data(self) -> dict[str, str]:
        """Return the words that are not the plain ones."""
        plain = Words.__dataclass_fields__
        return {
            name: getattr(self, name)
            for name in plain
            if getattr(self, name) != plain[name].default
        }

    def many(self, name: str) -> str:
        """Return the plural of "arm", "pull" or "tick" in the operators' words."""
        return getattr(self, f"{name}s") or plural(getattr(self, name))

    def count(self, number: int, name: str) -> str:
        """Return a number with its noun: 1 patient, 2,000 patients."""
        return f"{number:,} {getattr(self, name) if number == 1 else self.many(name)}"

    def when(self, tick: int, label: str = "") -> str:
        """Name a tick: week 3, or week 3 (2026-12-07) where it has a date."""
        return f"{self.tick} {tick}" + (f" ({label})" if label else "")

    def column(self, name: str) -> str:
        """Return the header of a column in the operators' words."""
        return str(getattr(self, name)) if name in COLUMNS else name


def _require_word(word: Any, name: str) -> None:
    if not isinstance(word, str) or not 0 < len(word) <= MOST_WORD:
        raise ProblemError(
            f"words: {name} must be a text of 1 to {MOST_WORD} letters, got {shown(word)}"
        )
    if not word.isprintable() or word != word.strip():
        raise ProblemError(
            f"words: {name} must have no line breaks, no control characters and no blanks at its "
            f"ends, got {shown(word)}"
        )


def pairs_of(text: str, what: str, example: str) -> dict[str, str]:
    """Return what a text such as "arm=patient,pull=call" says, or raise."""
    found: dict[str, str] = {}
    for part in text.split(","):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ProblemError(f"{what} must be given as {example}, got {shown(text)}")
        found[key] = word
    return found


PLAIN = Words()
