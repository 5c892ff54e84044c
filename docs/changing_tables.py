"""Write the measured parts of how-to/changing-world.md: python docs/changing_tables.py [FOLDER]

FOLDER is what the page's command writes; what is needed of it is kept in
assets/changing-world.json, and the parts and the picture are made from that. Every sentence is made
from intervals: a ratio is of regret with forgetting to regret without, in the same worlds, with its
95% interval.
"""

import json
import re
import sys
from collections.abc import Iterator
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np

import restive as rs
from restive.measure.intervals import student_quantile
from restive.pages.axes import Line, draw_lines
from restive.pages.drawing import write_figure
from restive.pages.looks import matplotlib_figures, settings
from restive.studies.summary import CaseSummary, load_results

DOCS = Path(__file__).parent
PAGE = DOCS / "how-to" / "changing-world.md"
STORED = DOCS / "assets" / "changing-world.json"
PICTURE = DOCS / "assets" / "changing-world"
PART = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

NEVER = "never"
STAYING = ("calls-8", "channels-16")
CALIBRATED = ("channels-16", "channels-16-switch", "channels-16-drift")
PLACES = 5  # digits of what is kept
# what was wished for: instance, steps remembered, the most that the ratio should be
GOALS = (
    ("calls-8-switch", "1000", 0.4),
    ("calls-8", "1000", 2.5),
    ("channels-16-switch", "1000", 2 / 3),
    ("channels-16-drift", "1000", 2 / 3),
)


# What is kept


def kept(folder: str) -> dict[str, Any]:
    """Return what the page needs of a results folder."""
    cases: dict[tuple[str, int], dict[str, CaseSummary]] = {}
    for found in load_results(folder):
        settings_of = found.case.settings
        here = cases.setdefault((str(settings_of.instance), settings_of.seed), {})
        here[memory_of(found)] = found
    stored: dict[str, Any] = {}
    for (instance, seed), learners in cases.items():
        world = stored.setdefault(
            instance, {"horizon": int(learners[NEVER].times[-1]), "seeds": {}}
        )
        without = learners[NEVER]
        world["seeds"][str(seed)] = {
            memory: {
                "regret": short([found.regret.mean[-1], found.regret.upper[-1]]),
                "ratio": short(ratio(found.final_regrets, without.final_regrets)),
            }
            for memory, found in learners.items()
        }
        world["oracle"] = short([float(without.oracle_reward.mean[-1])])[0]
        world["replications"] = without.replications
        if seed == 0:
            even = np.linspace(0, without.times[-1], 41)[1:]
            some = np.unique(np.abs(without.times - even[:, None]).argmin(axis=1))
            world["times"] = without.times[some].tolist()
            world["curves"] = {
                memory: [short(part[some]) for part in (
                    found.regret.mean, found.regret.lower, found.regret.upper)]
                for memory, found in learners.items()
            }  # fmt: skip
    for instance in CALIBRATED:
        stored[instance]["held"] = {
            memory: short([share_held(instance, memory)])[0] for memory in (NEVER, "1000")
        }
    return stored


def share_held(instance: str, memory: str) -> float:
    """Share of 90% intervals, of p01 and of p11, that hold what is so at present.

    Of every arm after each quarter of the steps, in three runs of plain numpy chains; an interval
    goes from grid level to grid level and, since the truth lies between levels, half a step beyond.
    """
    found = rs.zoo.load(instance)
    begins = getattr(found.bandit, "begins", (1,))
    bandits = getattr(found.bandit, "bandits", (found.bandit,))
    truths = np.array([[arm.active[:, 1] for arm in bandit.arms] for bandit in bandits])
    candidates = np.array([one.active[:, 1] for one in found.prior.arms[0].candidates])
    levels = np.unique(candidates)
    every = np.arange(truths.shape[1])
    held = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        forget_after = None if memory == NEVER else int(memory)
        agent = rs.TSDE(
            found.prior, found.num_pulls, horizon=found.horizon, seed=seed,
            forget_after=forget_after,
        )  # fmt: skip
        states = (rng.random(len(every)) < truths[0, :, 1]).astype(int)
        for t in range(1, found.horizon + 1):
            truth = truths[np.searchsorted(begins, t, side="right") - 1]
            agent.observe(states[agent.select()])
            states = (rng.random(len(every)) < truth[every, states]).astype(int)
            if t % (found.horizon // 4):
                continue
            for k, j in np.ndindex(truth.shape):
                weights = np.asarray(agent.posterior(k).weights)
                totals = np.cumsum([weights[candidates[:, j] == level].sum() for level in levels])
                low, high = levels[(totals >= 0.05).argmax()], levels[(totals >= 0.95).argmax()]
                held.append(low - 0.05 <= truth[k, j] <= high + 0.05)
    return float(np.mean(held))


def memory_of(found: CaseSummary) -> str:
    """Return how long a case's learner remembers."""
    entry = found.case.settings.learners[0]
    return NEVER if isinstance(entry, str) else str(entry["forget_after"])


def short(numbers: Any) -> list[float]:
    """Round to what a page could show."""
    return [float(f"{float(number):.{PLACES}g}") for number in numbers]


def ratio(some: np.ndarray, others: np.ndarray) -> tuple[float, float]:
    """Ratio of means over the same worlds, and half its 95% interval (delta method)."""
    value = some.mean() / others.mean()
    spread = (some - value * others).std(ddof=1) / others.mean()
    return float(value), float(student_quantile(len(some)) * spread / sqrt(len(some)))


# What is said


def regrets(stored: dict[str, Any]) -> Iterator[str]:
    """Regret with the first seed, and its ratio to that without forgetting for each seed."""
    memories = [name for name in next(iter(stored.values()))["seeds"]["0"] if name != NEVER]
    yield row("world", "never forgets", *(f"after {int(name):,} steps" for name in memories))
    yield row("---", *["---:"] * (1 + len(memories)))
    for instance, world in stored.items():
        first = world["seeds"]["0"]
        cells = [with_half(first[NEVER]["regret"])]
        for name in memories:
            times = ", ".join(f"{one[name]['ratio'][0]:.2f}" for one in world["seeds"].values())
            cells.append(f"{with_half(first[name]['regret'])} (× {times})")
        yield row(f"{instance}, T = {world['horizon']:,}", *cells)


def verdicts(stored: dict[str, Any]) -> Iterator[str]:
    """Say what each memory does in each world, from the intervals of all seeds."""
    for instance, world in stored.items():
        said = [_said(world, name) for name in world["curves"] if name != NEVER]
        yield f"- **{instance}**: {'; '.join(said)}."


def _said(world: dict[str, Any], name: str) -> str:
    ends = [interval(seed[name]["ratio"]) for seed in world["seeds"].values()]
    low, high = min(end[0] for end in ends), max(end[1] for end in ends)
    if all(end[1] < 1 for end in ends):
        what = "loses less with every seed"
    elif all(end[0] > 1 for end in ends):
        what = "loses more with every seed"
    else:
        what = "is not told apart from never forgetting with every seed"
    return (
        f"a memory of {int(name):,} steps {what} (between {low:.2f} and {high:.2f} times as much)"
    )


def goals(stored: dict[str, Any]) -> Iterator[str]:
    """Say whether what was wished for holds."""
    for instance, name, most in GOALS:
        ends = [interval(seed[name]["ratio"]) for seed in stored[instance]["seeds"].values()]
        if all(high <= most for _, high in ends):
            what = "holds with every seed"
        elif all(low > most for low, _ in ends):
            what = "fails with every seed"
        else:
            what = "is not decided with every seed"
        measured = ", ".join(f"{low:.2f} to {high:.2f}" for low, high in ends)
        middle = sum(low + high for low, high in ends) / (2 * len(ends))
        half = sqrt(sum((high - low) ** 2 / 4 for low, high in ends)) / len(ends)
        yield (
            f"- {instance}, {int(name):,} steps: at most {most:.2f} times the regret {what} "
            f"({measured}; of all seeds together {middle:.2f} ± {half:.2f})."
        )


def calibration(stored: dict[str, Any]) -> Iterator[str]:
    """Say how many intervals hold the truth of the moment."""
    yield row(
        "90% intervals that hold the truth of the moment", "never forgets", "after 1,000 steps"
    )
    yield row("---", "---:", "---:")
    for instance in CALIBRATED:
        held = stored[instance]["held"]
        yield row(instance, *(f"{100 * share:.0f}%" for share in held.values()))


def interval(pair: list[float]) -> tuple[float, float]:
    """Return the ends of an interval from its middle and half-width."""
    return pair[0] - pair[1], pair[0] + pair[1]


def with_half(pair: list[float]) -> str:
    """Write a mean and the half-width of its interval."""
    return f"{pair[0]:,.0f} ± {pair[1] - pair[0]:,.0f}"


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def draw(stored: dict[str, Any]) -> None:
    """Draw regret in the worlds that change."""
    worlds = {name: world for name, world in stored.items() if name not in STAYING}
    with settings():
        figure = matplotlib_figures().Figure(figsize=(9.6, 3.4), layout="constrained", dpi=170)
        every = figure.subplots(1, len(worlds))
        for axes, (name, world) in zip(every, worlds.items(), strict=True):
            lines = [
                Line(number, memory, *map(np.array, (world["times"], *curve)))
                for number, (memory, curve) in enumerate(world["curves"].items())
            ]
            draw_lines(axes, lines, "linear")
            axes.set_title(name)
            axes.set_xticks([0, world["horizon"] // 2, world["horizon"]])
            axes.set_xlabel("steps")
            axes.set_ylabel("regret")
            if axes is every[0]:
                drawn = axes.get_lines()[: len(lines)]
                axes.legend(drawn, [line.name for line in lines], title="forgets after")
        for path in write_figure(figure, PICTURE):
            if path.suffix == ".png":
                path.unlink()


def main(folders: list[str]) -> None:
    """Write the measured parts anew, from a results folder where one is given."""
    if folders:
        text = json.dumps(kept(folders[0]), separators=(",", ":"))
        STORED.write_text(text.replace('},"', '},\n"') + "\n", encoding="utf-8")
    stored = json.loads(STORED.read_text(encoding="utf-8"))
    made = {make.__name__: make(stored) for make in (regrets, verdicts, goals, calibration)}
    page = PAGE.read_text(encoding="utf-8")
    written = PART.sub(
        lambda part: f"{part[1]}\n{chr(10).join(made[part[2]]).strip()}\n\n{part[4]}", page
    )
    PAGE.write_text(written, encoding="utf-8")
    draw(stored)


if __name__ == "__main__":
    main(sys.argv[1:])
