"""Forged snapshots: pairs of fields that fit their own ranges and not each other.

Run with bounds checks, so that a write outside an array is seen and not only a crash:

    RESTIVE_PLAIN_NUMBA=1 NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=/tmp/checked \
        python tests/snapshot_attack.py 20000 tsde "tsde continuous"

Snapshot number n of a learner is a function of n alone. It ends with a line for each learner: how
many snapshots were refused, how many went on for 60 steps.
"""

import json
import sys
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

import restive as rs
from restive.errors import RestiveError
from restive.learn.snapshots import checksum
from test_fuzz import LIVES, lived_with

STEPS = 60
KEPT = ("prior", "format", "version", "numbers", "learner", "checksum", "policy_mapping")
NUMBERS = (0, 1, 2, 3, 5, 63, 64, 65, 1000, 2**31, -1)


def lives(name: str) -> list[str]:
    """Return snapshots of a learner as text: fresh, early and late, before a step and within."""
    agent, steps = lived_with(name)
    rng, found = Random(5), []
    sizes = [len(rewards) for rewards in agent.task.facts.rewards]
    for step in range(steps + 1):
        if step in (0, 1, 2, steps // 2, steps):
            found.append(json.dumps(agent.snapshot()))
        agent.select()
        if step in (0, steps):
            found.append(json.dumps(agent.snapshot()))
        agent.observe([rng.randrange(sizes[k]) for k in agent.awaited])
    return found


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside plain data; of long lists, some of it."""
    if path:
        yield path
    if isinstance(data, dict):
        for key in data:
            if path or key not in KEPT:
                yield from places(data[key], (*path, key))
    elif isinstance(data, list):
        for k in {*range(min(3, len(data))), *range(max(0, len(data) - 2), len(data))}:
            yield from places(data[k], (*path, k))


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def change(data: dict[str, Any], rng: Random) -> None:
    """Change one field a little, or to what another field has."""
    every = list(places(data))
    path = rng.choice(every)
    inside, key, old = at(data, path[:-1]), path[-1], at(data, path)
    if isinstance(old, bool) or old is None:
        new: Any = rng.choice([None, True, False, [], [0], [1, 0], 0])
    elif isinstance(old, int):
        new = rng.choice([old + 1, old - 1, 2 * old, *NUMBERS, data["time"]])
    elif isinstance(old, float):
        new = rng.choice([0.0, 1.0, old / 2, old * 1e-200, 1e-300, old * (1 + 1e-12)])
    elif isinstance(old, list):
        new = rng.choice([[], None, old[:-1], old[1:], [*old, *old[-1:]], old[::-1]])
    elif isinstance(old, dict):
        new = rng.choice([{}, dict(list(old.items())[1:])])
    else:
        new = old
    if rng.random() < 0.15:
        new = at(data, rng.choice(every))
    inside[key] = json.loads(json.dumps(new))


def forged(texts: list[str], number: int) -> dict[str, Any]:
    """Return snapshot `number`: one or two fields are changed, its checksum is right."""
    rng = Random(number)
    data: dict[str, Any] = json.loads(texts[number % len(texts)])
    for _ in range(rng.choice([1, 2, 2, 2, 3])):
        change(data, rng)
    data["checksum"] = checksum({key: data[key] for key in data if key != "checksum"})
    return data


def go_on(data: dict[str, Any]) -> bool:
    """Take 60 steps with a snapshot, and ask what is known; return whether it was taken."""
    try:
        agent = rs.restore(data)
    except RestiveError:
        return False
    states = np.random.default_rng(1)
    try:
        for _ in range(STEPS):
            agent.select()
            sizes = agent.task.choices.sizes[agent.awaited]
            agent.observe((states.random(len(sizes)) * sizes).astype(np.int64))
        agent.snapshot()
    except RestiveError:  # what was seen cannot be, under what is left of the prior
        pass
    return True


def attack(name: str, count: int, first: int = 0) -> tuple[int, int]:
    """Return how many of a learner's forged snapshots were refused, and how many went on."""
    texts, taken = lives(name), 0
    for number in range(first, first + count):
        data = forged(texts, number)
        try:
            taken += go_on(data)
        except Exception:
            print(f"{name}: snapshot {number}", file=sys.stderr)
            raise
    return count - taken, taken


if __name__ == "__main__":
    for life in sys.argv[2:] or LIVES:
        refused, taken = attack(life, int(sys.argv[1]))
        print(f"{life}: {refused} refused, {taken} went on", flush=True)
