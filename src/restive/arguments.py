"""Arguments that many functions take, checked in one place."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from math import inf, log10
from numbers import Integral
from os import PathLike
from pathlib import Path
from secrets import randbits
from typing import Any

from restive.errors import ProblemError, TooLargeError

__all__ = [
    "MOST_ARMS",
    "bytes_in_words",
    "checked_count",
    "checked_elapsed",
    "checked_path",
    "checked_seed",
    "checked_text",
    "count_in_words",
    "counted",
    "drawn_seed",
    "duration",
    "known_name",
    "memory_left",
    "one_line",
    "plural",
    "require_memory",
    "shown",
    "silent",
    "suggestion",
]

MOST = 10**15  # steps, ages, replications: times and places are 64-bit numbers
MOST_ELAPSED = 10**7
MOST_ARMS = 10**7  # a number of arms is one typing slip away from filling the memory
MOST_BYTES = 1 << 36  # of the arrays of one call, whatever the machine
LONGEST_LINE = 100  # letters of a repr
IRREGULAR = {"person": "people", "child": "children", "man": "men", "woman": "women"}

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86_400, 365.25 * 86_400
DURATIONS = (  # up to which each is used, its length, and how it is written
    (1, 1, "{:.1f} s"),
    (100, 1, "{:.0f} s"),
    (90 * MINUTE, MINUTE, "{:.0f} min"),
    (48 * HOUR, HOUR, "{:.1f} h"),
    (1000 * DAY, DAY, "{:.0f} days"),
    (inf, YEAR, "{:,.1f} years"),
)


class _Silent:
    """Keeps to itself what it is told; help() shows it by name where it is a default."""

    def __call__(self, *told: Any) -> None: ...

    def __repr__(self) -> str:
        return "silent"


silent = _Silent()


def shown(value: Any) -> str:
    """Show the beginning of a value in a message, whatever it is."""
    try:
        text = repr(value)
    except RecursionError:
        return f"a {type(value).__name__} that is nested too deeply"
    except ValueError:  # Python refuses to write out whole numbers of thousands of digits
        return "a very large number"
    return text if len(text) <= 60 else f"{text[:57]}..."


def one_line(full: str, short: str) -> str:
    """Return an object's repr: in full where that fits on a line, else the short one."""
    line = full if len(full) <= LONGEST_LINE else short
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 4]}...)"


def checked_count(value: Any, what: str, least: int = 1, most: int = MOST) -> int:
    """Return a whole number from `least` to `most`, or raise."""
    if isinstance(value, bool) or not isinstance(value, Integral):  # numpy's too
        raise ProblemError(f"{what} must be a whole number, got {shown(value)}")
    number = int(value)
    if number < least:
        raise ProblemError(f"{what} must be at least {least}, got {value}")
    if number > most:
        raise ProblemError(f"{what} must be at most {most:,}, got {shown(number)}")
    return number


def require_memory(size: float, what: str, advice: str) -> None:
    """Raise for arrays that this process cannot have, given in bytes, before they are asked for."""
    most = memory_left()
    if size > most:
        raise TooLargeError(
            f"{what} would take {bytes_in_words(size)}, and there are {bytes_in_words(most)}; "
            f"{advice}"
        )


def memory_left() -> int:
    """Bytes that this process may still have, at most: of the machine, or below its own limit."""
    most = MOST_BYTES
    try:
        import resource

        page = os.sysconf("SC_PAGE_SIZE")
        most = min(most, os.sysconf("SC_PHYS_PAGES") * page)
        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        if allowed != resource.RLIM_INFINITY:
            taken = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * page
            most = min(most, max(0, allowed - taken))
    except (ImportError, AttributeError, OSError, ValueError):  # not on this system
        pass
    return most


def duration(seconds: float) -> str:
    """Return a time for a person: "12 s", "3 min", "2.5 h", "9 days", "55.6 years"."""
    unit, written = next((unit, written) for most, unit, written in DURATIONS if seconds < most)
    return written.format(seconds / unit)


def bytes_in_words(size: float) -> str:
    """Return a number of bytes for a person: "12.0 KiB", "185.5 GiB"."""
    for name in ("B", "KiB", "MiB", "GiB"):
        if size < 1000:
            return f"{size:,.0f} {name}" if name == "B" else f"{size:,.1f} {name}"
        size /= 1024
    return f"{size:,.1f} TiB" if size < MOST else f"about 10^{log10(size):.0f} TiB"


def checked_elapsed(max_elapsed: Any) -> int:
    """Return a number of ages."""
    return checked_count(max_elapsed, "max_elapsed", most=MOST_ELAPSED)


def checked_path(path: Any, what: str) -> Path:
    """Return a path that can be one, or raise."""
    text = os.fspath(path) if isinstance(path, str | PathLike) else None
    if not isinstance(text, str) or "\0" in text:
        raise ProblemError(f"{what} must be a path, got {shown(path)}")
    return Path(text)


def checked_text(text: Any, what: str) -> str:
    """Return a word or two for people, or raise."""
    if not isinstance(text, str) or not text.strip():
        raise ProblemError(f"{what} must be a word or two, got {shown(text)}")
    return text.strip()


def checked_seed(seed: Any) -> int:
    """Return a seed in [0, 2^64), or raise."""
    if isinstance(seed, bool) or not isinstance(seed, Integral) or not 0 <= int(seed) < 2**64:
        raise ProblemError(f"seed must be a whole number from 0 to 2^64 - 1, got {shown(seed)}")
    return int(seed)


def drawn_seed(seed: Any) -> int:
    """Return a seed, drawn where None is given: small enough to be typed in again."""
    return randbits(32) if seed is None else checked_seed(seed)


def counted(count: int, noun: str) -> str:
    """Return a number with its noun: 1 pull, 2 pulls."""
    return f"{count:,} {noun if count == 1 else plural(noun)}"


def plural(noun: str) -> str:
    """Return the plural of an English noun."""
    small = noun.lower()
    if small in IRREGULAR:
        return IRREGULAR[small]
    if small.endswith("y") and small[-2:-1] not in ("a", "e", "i", "o", "u", ""):
        return f"{noun[:-1]}ies"
    return noun + ("es" if small.endswith(("s", "x", "z", "ch", "sh")) else "s")


def count_in_words(logarithm: float) -> str:
    """Write a count that may be huge, given its decimal logarithm."""
    return f"{round(10**logarithm):,}" if logarithm < 15 else f"about 10^{logarithm:.0f}"


def known_name(name: str, known: Iterable[str]) -> str:
    """Return a name as it is registered: capitals do not matter, blanks and hyphens are as good as
    underscores. One that is not known is returned in that spelling too.
    """
    known, plain = tuple(known), re.sub(r"[\s-]+", "_", name.strip())
    if name in known:
        return name
    return next((each for each in known if each.lower() == plain.lower()), plain)


def suggestion(word: object, known: Iterable[str], cutoff: float = 0.5) -> str:
    """Suggest what may have been meant by a word that is not known."""
    known = tuple(known)
    near = difflib.get_close_matches(str(word), known, n=1, cutoff=cutoff)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"
