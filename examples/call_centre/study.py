"""What do calls add? python examples/call_centre/study.py [--world main] [--seeds 20] [--jobs 2]

Puts the rules of `rules.py` side by side in a world of `world.py`: the same people with the same
luck for every rule, a new set for every seed. "Adds" is the number of engaged weeks over those of
the same people when nobody is called. Writes WORLD.txt and WORLD.json into a folder.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # a process per core is enough

import numpy as np
from rules import RULES, TOLD, nobody, oracle
from world import DRAWN, VARIANTS, Floats, World, draw_people, programme_of, run, world_named

ORACLE, IN_TURN = "oracle", "in turn"
NAMES = [ORACLE, *RULES, *TOLD]
CONFIDENCE = 0.95

Work: TypeAlias = tuple[World, str, int]  # a world, a rule and a seed


@dataclass(frozen=True)
class Year:
    """What a rule's calls added in one seed's world, in engaged weeks."""

    adds: float  # expected, given what the calls showed: the same mean, with less noise
    counted: int  # as it happened
    alone: float  # expected engaged weeks if nobody is called
    seconds: float


def play(world: World, name: str, seed: int) -> Year:
    """Let one rule make the calls in the world of one seed."""
    began = perf_counter()
    people = draw_people(world, seed)
    programme = programme_of(world, people)
    if name == ORACLE:
        rule = oracle(programme, people)
    elif name in TOLD:
        rule = TOLD[name](world, programme, seed)
    else:
        rule = RULES[name](programme, seed)
    done, alone = (run(world, people, seed, each) for each in (rule, nobody(programme, seed)))
    return Year(
        float(done.expected.sum() - alone.expected.sum()),
        int(done.engaged.sum() - alone.engaged.sum()),
        float(alone.expected.sum()),
        perf_counter() - began,
    )


def student_quantile(count: int) -> float:
    """Return the half-width of a 95% interval in standard errors, for a mean of so many numbers.

    With t = sqrt(degrees) tan(angle) Student's density is a power of a cosine.
    """
    degrees = count - 1
    angle = (np.arange(1_000_000) + 0.5) * (np.pi / 2e6)
    within = np.cumsum(np.cos(angle) ** (degrees - 1))
    place = np.searchsorted(within, CONFIDENCE * within[-1])
    return float(sqrt(degrees) * np.tan(angle[place]))


def interval(values: Floats) -> tuple[float, float]:
    """Return the mean and the half-width of its 95% interval (Student's t); nan for one value."""
    count = len(values)
    if count < 2:
        return float(np.mean(values)), float("nan")
    spread = float(np.std(values, ddof=1))
    return float(np.mean(values)), student_quantile(count) * spread / sqrt(count)


def verdict(gap: float, half_width: float) -> str:
    """Say what an interval of a difference to calling in turn shows."""
    if gap - half_width > 0:
        return "better than in turn"
    return "worse than in turn" if gap + half_width < 0 else "no difference shown"


def summary(world: str, years: dict[str, list[Year]]) -> dict[str, Any]:
    """Return the figures of a world as plain data, the best rule first."""
    adds = {name: np.array([year.adds for year in each]) for name, each in years.items()}
    rules = {}
    for name in sorted(adds, key=lambda name: -adds[name].mean()):
        mean, half_width = interval(adds[name])
        gap, gap_half_width = interval(adds[name] - adds[IN_TURN])
        counted, counted_half_width = interval(np.array([y.counted for y in years[name]], float))
        rules[name] = {
            "adds": mean,
            "adds_half_width": half_width,
            "over_in_turn": gap,
            "over_in_turn_half_width": gap_half_width,
            "verdict": "" if name == IN_TURN else verdict(gap, gap_half_width),
            "counted": counted,
            "counted_half_width": counted_half_width,
            "adds_by_seed": adds[name].tolist(),
            "seconds_a_year": float(np.mean([year.seconds for year in years[name]])),
        }
    alone = float(np.mean([year.alone for year in years[IN_TURN]]))
    return {
        "world": world,
        "parameters": asdict(world_named(world)),
        "seeds": len(years[IN_TURN]),
        "engaged_weeks_if_nobody_is_called": alone,
        "rules": rules,
    }


def table(figures: dict[str, Any]) -> str:
    """Return a summary as text."""
    world = World(**figures["parameters"])
    width = max(len(name) for name in figures["rules"])
    lines = [
        f"{figures['world']}: {world.people:,} people, {world.calls:,} calls a week, "
        f"{world.weeks} weeks; {figures['seeds']} seeds, 95% intervals",
        f"engaged weeks if nobody is called: {figures['engaged_weeks_if_nobody_is_called']:,.0f}",
        "",
        f"{'rule':{width}}  {'calls add':>15}  {'over calling in turn':>21}",
    ]
    for name, row in figures["rules"].items():
        adds = f"{row['adds']:>8,.0f} ± {row['adds_half_width']:<4,.0f}"
        gap = f"{row['over_in_turn']:>+12,.0f} ± {row['over_in_turn_half_width']:<6,.0f}"
        gap = f"{0:>12}{'':9}" if name == IN_TURN else gap
        lines.append(f"{name:{width}}  {adds}  {gap}  {row['verdict']}".rstrip())
    return "\n".join(lines) + "\n"


def study(world: str, names: list[str], seeds: int, jobs: int) -> dict[str, Any]:
    """Run every rule on every seed, on some processes; return the figures."""
    names = list(dict.fromkeys([IN_TURN, *names]))  # all are compared with it
    years: dict[str, dict[int, Year]] = {name: {} for name in names}
    work = [(world_named(world), name, seed) for seed in range(seeds) for name in names]
    began = perf_counter()
    for done, ((_, name, seed), year) in enumerate(played(work, jobs), 1):
        years[name][seed] = year
        progress = f"{world}: {done} of {len(work)} years, {perf_counter() - began:.0f} s"
        show(progress, last=done == len(work))
    return summary(
        world, {name: [each[seed] for seed in range(seeds)] for name, each in years.items()}
    )


def played(work: list[Work], jobs: int) -> Iterator[tuple[Work, Year]]:
    """Give each piece of work with its year, as they are done."""
    if jobs == 1:
        yield from ((each, play(*each)) for each in work)
        return
    with ProcessPoolExecutor(jobs) as pool:
        futures = {pool.submit(play, *each): each for each in work}
        for future in as_completed(futures):
            yield futures[future], future.result()


def show(progress: str, last: bool) -> None:
    """Write progress over the last one, where somebody is looking."""
    if sys.stderr.isatty():
        print(f"\r{progress}", end="\n" if last else "", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[1])
    some = f"{', '.join(VARIANTS)}, drawn-0, drawn-1, ...; or all, or drawn: drawn-0 to {DRAWN - 1}"
    parser.add_argument("--world", nargs="+", default=["main"], help=some)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    rules = f"some of: {', '.join(NAMES)}"
    parser.add_argument("--rules", nargs="+", choices=NAMES, default=NAMES,
                        metavar="RULE", help=rules)  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path("results/call_centre"), help="folder")
    given = parser.parse_args(arguments)
    if given.seeds < 1 or given.jobs < 1:
        parser.error("--seeds and --jobs must be 1 at least")
    groups = {"all": list(VARIANTS), "drawn": [f"drawn-{number}" for number in range(DRAWN)]}
    worlds = [name for word in given.world for name in groups.get(word, [word])]
    for name in worlds:
        world_named(name)  # mistakes before any work
    given.out.mkdir(parents=True, exist_ok=True)
    for name in worlds:
        figures = study(name, given.rules, given.seeds, given.jobs)
        text = table(figures)
        (given.out / f"{name}.json").write_text(json.dumps(figures, indent=1) + "\n")
        (given.out / f"{name}.txt").write_text(text)
        print(text, flush=True)


if __name__ == "__main__":
    main()
