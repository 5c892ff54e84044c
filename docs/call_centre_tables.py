"""Write call-centre-study.md from figures: python docs/call_centre_tables.py [FOLDER]

FOLDER is what `examples/call_centre/study.py` writes; its figures are taken into
assets/call-centre-study.json, world by world and rule by rule. The page's tables, sentences and
picture are made from that file. Every sentence is made from 95% intervals.
"""

import json
import re
import sys
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

from restive.measure.intervals import student_quantile
from restive.pages.looks import LIGHT, matplotlib_figures

DOCS = Path(__file__).parent
PAGE = DOCS / "call-centre-study.md"
STORED = DOCS / "assets" / "call-centre-study.json"
FIGURE = DOCS / "assets" / "call-centre-study.svg"
PART = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

IN_TURN = "in turn"
SIMPLE = (IN_TURN, "random", "worst first", "give up after two")
OURS = ("mean index, no history", "mean index, with history", "mean index, law given")
RESTED = "mean index, rested"
VARIANTS = {
    "small": "200 people, 5 calls",
    "large": "20,000 people, 500 calls",
    "tiring": "calls that tire",
    "shock": "a shock",
    "wrong": "wrong records",
}

Figures = dict[str, Any]


def gather(folder: Path, stored: Figures) -> Figures:
    """Take in the figures of a folder: rules that it has replace those that are stored."""
    for path in sorted(folder.glob("*.json")):
        found = json.loads(path.read_text(encoding="utf-8"))
        world = {"seeds": found["seeds"], "alone": found["engaged_weeks_if_nobody_is_called"]}
        adds = {name: row["adds_by_seed"] for name, row in found["rules"].items()}
        old = stored.get(found["world"], {})
        if old.get("seeds") == found["seeds"]:
            adds = old["adds"] | adds
        stored[found["world"]] = world | {"adds": adds}
    return stored


def interval(values: Any) -> tuple[float, float]:
    """Return a mean and the half-width of its 95% interval (Student's t)."""
    own = np.asarray(values, dtype=float)
    half = student_quantile(len(own)) * own.std(ddof=1) / sqrt(len(own))
    return float(own.mean()), float(half)


def difference(world: Figures, name: str, other: str = IN_TURN) -> tuple[float, float]:
    """Return what a rule adds over another, seed by seed, and the half-width."""
    return interval(np.subtract(world["adds"][name], world["adds"][other]))


def percent(world: Figures, name: str) -> tuple[float, float]:
    """Return the same over calling in turn, in percent of what that adds."""
    base = float(np.mean(world["adds"][IN_TURN]))
    mean, half = difference(world, name)
    return 100 * mean / base, 100 * half / base


# Tables and sentences


def main_table(figures: Figures) -> list[str]:
    """All rules of the main world, the best first."""
    world = figures["main"]
    lines = ["| rule | calls add | over calling in turn | |", "|---|---:|---:|---:|"]
    for name in sorted(world["adds"], key=lambda name: -np.mean(world["adds"][name])):
        mean, half = interval(world["adds"][name])
        cells = ["", ""]
        if name != IN_TURN:
            gap, gap_half = difference(world, name)
            share, share_half = percent(world, name)
            cells = [f"{gap:+,.0f} ± {gap_half:,.0f}", f"{share:+.0f}% ± {share_half:.0f}%"]
        shown = f"**{name}**" if name in OURS else name
        lines.append(f"| {shown} | {mean:,.0f} ± {half:,.0f} | {cells[0]} | {cells[1]} |")
    return lines


def main_words(figures: Figures) -> list[str]:
    """What the main world shows of the three paths, and of each beside the rule of thumb."""
    world, lines = figures["main"], []
    for name in (*OURS, RESTED):
        share, half = percent(world, name)
        lines.append(
            f"- **{name}** adds {share:.0f}% more than calling in turn ({share - half:.0f}% to "
            f"{share + half:.0f}%), and is {verdict(world, name, best_simple(world))}."
        )
    return lines


def best_simple(world: Figures) -> str:
    """Return the simple rule that adds most."""
    return max(
        (name for name in SIMPLE if name in world["adds"]),
        key=lambda name: np.mean(world["adds"][name]),
    )


def verdict(world: Figures, name: str, other: str) -> str:
    """Say whether a rule is told apart from another."""
    mean, half = difference(world, name, other)
    gap = f"{abs(mean):,.0f} ± {half:,.0f}"
    if mean - half > 0:
        return f"better than “{other}”, by {gap}"
    if mean + half < 0:
        return f"worse than “{other}”, by {gap}"
    return f"not told apart from “{other}” ({mean:+,.0f} ± {half:,.0f})"


def variant_table(figures: Figures) -> list[str]:
    """What rules add over calling in turn in percent, by variant."""
    worlds = {name: figures[name] for name in VARIANTS if name in figures}
    rules = [*SIMPLE[1:], *OURS, RESTED, "TSDE, law given"]
    lines = [
        f"| over calling in turn | {' | '.join(VARIANTS[name] for name in worlds)} |",
        f"|---|{'---:|' * len(worlds)}",
    ]
    for rule in rules:
        cells = []
        for world in worlds.values():
            known = rule in world["adds"]
            cells.append("{:+.0f}% ± {:.0f}%".format(*percent(world, rule)) if known else "-")
        lines.append(f"| {rule} | {' | '.join(cells)} |")
    seeds = [f"{world['seeds']} of “{VARIANTS[name]}”" for name, world in worlds.items()]
    return [*lines, "", f"Seeds: {', '.join(seeds)}."]


def variant_words(figures: Figures) -> list[str]:
    """Where a recommended path loses to calling in turn, or to the best simple rule."""
    lines = []
    for name, title in VARIANTS.items():
        if name not in figures:
            continue
        world = figures[name]
        best = best_simple(world)
        parts = [
            f"“{rule}” is {verdict(world, rule, best)}"
            for rule in (*OURS, RESTED)
            if rule in world["adds"]
        ]
        lines.append(f"- **{title}**: {'; '.join(parts)}.")
    return lines


def rest_words(figures: Figures) -> list[str]:
    """What resting is worth beside the same path without it, where both were played."""
    return [
        f"- In the {name} world “{RESTED}” is {verdict(figures[name], RESTED, OURS[0])}."
        for name in ("main", *VARIANTS)
        if RESTED in figures.get(name, {"adds": {}})["adds"]
    ]


def drawn_table(figures: Figures) -> list[str]:
    """What the paths add over calling in turn in the worlds on which defaults were chosen."""
    names = numbered(figures)
    rules = ["give up after two", *OURS]
    lines = [f"| world | calls in turn add | {' | '.join(rules)} |", f"|---|{'---:|' * 5}"]
    for name in names:
        world = figures[name]
        cells = ["{:+.0f}% ± {:.0f}%".format(*percent(world, rule)) for rule in rules]
        lines.append(f"| {name} | {np.mean(world['adds'][IN_TURN]):,.0f} | {' | '.join(cells)} |")
    means = [np.mean([percent(figures[name], rule)[0] for name in names]) for rule in rules]
    lines.append(f"| mean | | {' | '.join(f'{mean:+.0f}%' for mean in means)} |")
    return lines


def numbered(figures: Figures) -> list[str]:
    """Return the names of the worlds drawn by seed, in order."""
    names = [name for name in figures if name.startswith("drawn-")]
    return sorted(names, key=lambda name: int(name[6:]))


MEASURED = {
    make.__name__: make
    for make in (
        main_table,
        main_words,
        variant_table,
        variant_words,
        rest_words,
        drawn_table,
    )
}


def page_text(text: str, figures: Figures) -> str:
    """Return the page with its measured parts made anew."""
    return PART.sub(
        lambda part: f"{part[1]}\n{chr(10).join(MEASURED[part[2]](figures))}\n\n{part[4]}", text
    )


def draw(figures: Figures) -> None:
    """Draw what all rules of the main world add, with their intervals."""
    world = figures["main"]
    names = sorted(
        (name for name in world["adds"] if name != "oracle"),
        key=lambda name: np.mean(world["adds"][name]),
    )
    figure = matplotlib_figures().Figure(figsize=(8, 4.2), layout="constrained")
    axes = figure.subplots()
    for place, name in enumerate(names):
        mean, half = interval(world["adds"][name])
        colour = LIGHT["c0"] if name in OURS else LIGHT["mute"]
        axes.errorbar(mean, place, xerr=half, fmt="o", capsize=3, color=colour)
    axes.axvline(float(np.mean(world["adds"][IN_TURN])), color=LIGHT["mute"], linestyle=":")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("engaged weeks that calls add in a year (95% intervals)")
    figure.savefig(FIGURE, format="svg", metadata={"Date": None})


def main(words: list[str]) -> None:
    """Take in figures, where a folder is given, and write the page and its picture."""
    figures = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    for folder in words:
        figures = gather(Path(folder), figures)
    STORED.write_text(json.dumps(figures) + "\n", encoding="utf-8")
    PAGE.write_text(page_text(PAGE.read_text(encoding="utf-8"), figures), encoding="utf-8")
    draw(figures)


if __name__ == "__main__":
    main(sys.argv[1:])
