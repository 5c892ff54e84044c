"""A fuzzer: sound inputs, broken in every way, for every function that reads what others wrote.

An entry point is a row of `ENTRY_POINTS`: its sound inputs, and a call that may return or raise a
RestiveError and nothing else. Input number n of an entry point is a function of n alone, so a
failure names the number that shows it again: `broken(ENTRY_POINTS["study"], 1234)`.
"""

import json
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from random import Random
from typing import Any

__all__ = ["ENTRY_POINTS", "EntryPoint", "broken", "entry_point"]

DEEP = "deeply nested"  # stands for brackets that Python's own writers refuse to write
VALUES = [
    *(None, True, False, 0, -1, 1, 2, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63)),
    *(10**15, 10**15 + 1, 10**30, 0.5, -0.0, 1.5, 1e308, 1e-320, float("nan"), float("inf")),
    *("", "a", "whittle", "tsde", "ucb1", "paper-bayesian", "file", "\x00", "\ud800", "é" * 50),
    *("..", "/dev/zero", "=1+1", [], {}, [[]], [{}], {"": 0}, {"name": "a"}, [0.1] * 5, [[0.5]]),
    *([0.2, 0.8], [[0.5, 0.5], [0.5, 0.5]], ["myopic", "whittle"], [1, 2, 3], DEEP),
]  # fmt: skip
SNIPPETS = [
    *(b"\x00", b"\xff", b"\xef\xbb\xbf", b"\n", b"\r", b'"', b"'", b"[", b"]", b"[[", b"]]", b"{"),
    *(b"}", b"=", b"#", b",", b".", b"-", b"+", b"inf", b"nan", b"-nan", b"1e999", b"9" * 5000),
    *(b"[" * 3000, b"{" * 3000, b"a = [" + b"[" * 3000, b"true", b"1979-05-27", b"0x", b"1_0"),
    *(b"[sweep]\n", b"[[arm]]\n", b'""""', b"\\u0000", b"\\ud800", b"count = 0\n", b"e300"),
]


@dataclass(frozen=True)
class EntryPoint:
    """Something that reads what others wrote."""

    call: Callable[[Any], object]
    sound: Callable[[], Sequence[Any]]  # bytes, or plain data; made when it is first needed
    written: Callable[[Any], Any] = lambda data: data  # plain data that was broken, as it is read


ENTRY_POINTS: dict[str, EntryPoint] = {}


def entry_point(
    name: str,
    sound: Callable[[], Sequence[Any]],
    written: Callable[[Any], Any] = lambda data: data,
) -> Any:
    """Register the function that follows under a name."""

    def register(call: Callable[[Any], object]) -> Callable[[Any], object]:
        ENTRY_POINTS[name] = EntryPoint(call, cache(sound), written)
        return call

    return register


def broken(point: EntryPoint, number: int) -> Any:
    """Return input `number` of an entry point."""
    rng = Random(number)
    sound = rng.choice(point.sound())
    times = 1 + int(rng.expovariate(0.7))
    if isinstance(sound, bytes):
        for _ in range(times):
            sound = _broken_bytes(sound, rng)
        return sound
    data = deepcopy(sound)
    for _ in range(times):
        data = _broken_data(data, rng)
    return point.written(data)


def json_bytes(data: Any) -> bytes:
    """Write plain data as JSON, with brackets that are nested too deeply where it says so."""
    text = json.dumps(data)
    return text.replace(json.dumps(DEEP), "[" * 20_000 + "]" * 20_000).encode()


def nested(data: Any, depth: int = 3000) -> Any:
    """Return plain data with lists that are nested too deeply where it says so."""
    if isinstance(data, dict):
        return {key: nested(value, depth) for key, value in data.items()}
    if isinstance(data, list):
        return [nested(value, depth) for value in data]
    if data == DEEP:
        data = []
        for _ in range(depth):
            data = [data]
    return data


def _broken_bytes(text: bytes, rng: Random) -> bytes:
    at = rng.randrange(len(text) + 1)
    end = min(len(text), at + int(rng.expovariate(1 / 8)) + 1)
    match rng.randrange(8):
        case 0:
            return text[:at] + rng.choice(SNIPPETS) + text[at:]
        case 1:
            return text[:at] + rng.choice(SNIPPETS) + text[end:]
        case 2:
            return text[:at] + text[end:]
        case 3:
            return text[:at]
        case 4:
            return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :]
        case 5:
            return text[:at] + text[at:end] * rng.randrange(2, 50) + text[end:]
        case 6:
            start = rng.randrange(len(text) + 1)
            return text[:at] + text[start : start + rng.randrange(60)] + text[end:]
    lines = text.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def _broken_data(data: Any, rng: Random) -> Any:
    """Break plain data at one place, anywhere in it."""
    places = list(_places(data))
    if not places:
        return rng.choice(VALUES)
    holder, key = rng.choice(places)
    match rng.randrange(7):
        case 0 | 1 | 2:
            holder[key] = deepcopy(rng.choice(VALUES))
        case 3:
            del holder[key]
        case 4:  # what is somewhere else in it
            other, name = rng.choice(places)
            holder[key] = deepcopy(other[name])
        case 5 if isinstance(holder, dict):
            holder[f"{key}{rng.choice(['s', '', ' ', '.'])}"] = holder.pop(key)
        case 5:
            holder.extend(deepcopy(holder) * rng.randrange(1, 4))
        case 6:
            holder[key] = _nudged(holder[key], rng)
    return data


def _places(data: Any) -> Any:
    """Yield every (table or list, key) in plain data."""
    if isinstance(data, dict | list):
        for key in list(data) if isinstance(data, dict) else range(len(data)):
            yield data, key
            yield from _places(data[key])


def _nudged(value: Any, rng: Random) -> Any:
    if isinstance(value, bool) or value is None:
        return not value
    if isinstance(value, int):
        return value + rng.choice([-1, 1, 10**6])
    if isinstance(value, float):
        return value * rng.choice([-1, 0.999999, 1e300])
    if isinstance(value, str):
        return value[: rng.randrange(len(value) + 1)] + rng.choice(["", "x", "\n", "\u202e"])
    return [value]
