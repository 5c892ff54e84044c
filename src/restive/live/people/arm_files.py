"""Files of who the arms are, who joins and who leaves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from restive.arguments import shown
from restive.errors import ConflictError, ProblemError
from restive.live.agent import LiveAgent
from restive.live.people.roster import LONG_AGO, NewArm, no_kind
from restive.live.people.sheets import Sheet, listed
from restive.live.settings import Settings

__all__ = ["arms_of_names", "arms_of_sheet", "names_of_sheet", "require_new", "whole"]


def arms_of_sheet(
    sheet: Sheet, kinds: Sequence[str], settings: Settings, tick: int, known: Mapping[str, NewArm]
) -> list[NewArm]:
    """Return the arms of a file: arm, kind, and last_state with last_seen or elapsed.

    Parameters
    ----------
    sheet
        The file.
    kinds
        The kinds there are; a file needs no column for them where there is one.
    settings, tick
        The clock by which `last_seen` is a date and the names of states, and the tick at which the
        arms join.
    known
        Arms of a prior file: what is known of them holds where this file says nothing else.
    """
    sheet.require("arm")
    if len(kinds) > 1 and not known:
        sheet.require("kind")
    arms, wrong = [], []
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
        try:
            arms.append(_arm_of_row(row, kinds, settings, tick, known))
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    if wrong:
        raise ProblemError(listed(sheet, wrong, "nothing was changed"))
    return arms


def arms_of_names(live: LiveAgent, names: Sequence[str]) -> list[NewArm]:
    """Return the arms of names alone, where their kinds need not be said; or raise."""
    words, kinds, found = live.settings.words, live.kinds, []
    for name in dict.fromkeys(names):
        same = live.names_but_for_capitals(name)
        if same and name not in same:
            raise ConflictError(
                f"there is {same[0]!r} already; a new name must differ by more than capitals; "
                "nothing was changed"
            )
        if not same and len(kinds) > 1:
            raise ProblemError(
                f"of which kind is {name!r}: {', '.join(kinds)}? Write a CSV file with a line "
                f"for each {words.arm}, and give its name instead. Its first line is "
                f"{words.column('arm')},kind, its next {name},{kinds[0]}; nothing was changed"
            )
        found.append(NewArm(name, live.kinds_of([name])[0] if same else kinds[0]))
    return found


def names_of_sheet(live: LiveAgent, sheet: Sheet) -> list[str]:
    """Return the names in a file of arms that are there, or raise."""
    sheet.require("arm")
    wrong = []
    for line, row in zip(sheet.lines, sheet.rows, strict=True):
        try:
            live.kinds_of([row["arm"]])
        except ProblemError as error:
            wrong.append((line, row["arm"], str(error)))
    if wrong:
        raise ProblemError(listed(sheet, wrong, "nothing was changed"))
    return [row["arm"] for row in sheet.rows]


def require_new(live: LiveAgent, sheet: Sheet, arms: Sequence[NewArm]) -> None:
    """Raise if arms of a file are there as another kind, or twice in the file."""
    wrong, lines = [], dict[str, int]()
    for line, arm in zip(sheet.lines, arms, strict=True):
        first = lines.setdefault(arm.name, line)
        if first != line:
            wrong.append((line, arm.name, f"is in line {first} already"))
        elif arm.name in live.names_but_for_capitals(arm.name):
            (kind,) = live.kinds_of([arm.name])
            if kind != arm.kind:
                wrong.append((line, arm.name, f"is there already, of kind {kind!r}"))
    if wrong:
        raise ConflictError(listed(sheet, wrong, "nothing was changed"))


def _arm_of_row(
    row: Mapping[str, str], kinds: Sequence[str], settings: Settings, tick: int,
    known: Mapping[str, NewArm],
) -> NewArm:  # fmt: skip
    name, kind = row["arm"], row.get("kind", "")
    if name in known and not row.get("last_state") and kind in ("", known[name].kind):
        return known[name]
    if not kind and len(kinds) > 1:
        raise ProblemError(f"its kind is missing: one of {', '.join(kinds)}")
    kind = kind or kinds[0]
    if kind not in kinds:
        raise ProblemError(no_kind(kind, kinds))
    if not row.get("last_state"):
        if row.get("last_seen") or row.get("elapsed"):
            raise ProblemError("last_state is missing, though it tells when it was seen")
        return NewArm(name, kind)
    state = settings.state_of(row["last_state"], "last_state")
    if row.get("elapsed"):
        return NewArm(name, kind, state, whole(row["elapsed"], "elapsed"))
    if not row.get("last_seen"):
        return NewArm(name, kind, state, LONG_AGO)
    elapsed = tick - settings.clock.tick_of(row["last_seen"], before=True)
    if elapsed < 1:
        raise ProblemError(
            f"last_seen {row['last_seen']} is not before the {settings.words.tick} of joining"
        )
    return NewArm(name, kind, state, elapsed)


def whole(text: str, what: str) -> int:
    """Return a whole number that a cell holds, or raise."""
    if not text.isdecimal() or len(text) > 9:
        raise ProblemError(f"{what} must be a whole number, got {shown(text)}")
    return int(text)
