"""Write the measured parts of comparison.md: python docs/comparison_tables.py FOLDER...

With a page before them (`always-seen.md`) the parts of that one. The folders are those that the
page's commands write. Every sentence is made from intervals: "with
every seed" means that the simultaneous 95% intervals of each seed, taken alone, say so.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from restive.studies.paired_differences import Ranking, rankings
from restive.studies.report.charts import learner_title
from restive.studies.report.numbers import at_end, with_half_width
from restive.studies.summary import CaseSummary, load_results

PAGE = Path(__file__).with_name("comparison.md")
PART = re.compile(r"(<!-- measured: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
AHEAD, BEHIND, EQUAL = "+", "−", "·"


class Comparison:
    """Rankings by horizon, instance and seed."""

    def __init__(self, folders: Iterable[str], with_options: bool = False) -> None:
        self.title = learner_title if with_options else plain_title
        self.rankings: dict[tuple[int, str, int], Ranking] = {}
        for folder in folders:
            for ranking in rankings(load_results(folder)):
                settings = ranking.cases[0].case.settings
                instance = settings.instance  # one with a prior of the study's own is a table
                name = instance["name"] if isinstance(instance, dict) else instance or ""
                name = name.removeprefix("satellite-")
                self.rankings[settings.horizon, name, settings.seed] = ranking
        self.horizons = sorted({horizon for horizon, _, _ in self.rankings})
        self.instances = list(dict.fromkeys(name for _, name, _ in self.rankings))
        self.seeds = sorted({seed for _, _, seed in self.rankings})
        first = {self.title(case): case for one in self.rankings.values() for case in one.cases}
        self.titles = sorted(first, key=lambda title: first[title].case.number)

    def at(self, horizon: int, instance: str, seed: int) -> Ranking:
        """Return a ranking."""
        return self.rankings[horizon, instance, seed]

    def signs(self, horizon: int, instance: str, title: str, other: str) -> str:
        """Return a sign per seed: whether `other` loses less than `title`, more, or who knows."""
        found = (self.difference(horizon, instance, seed, title, other) for seed in self.seeds)
        return "".join(sign(*pair) for pair in found)

    def places(self, ranking: Ranking) -> dict[str, int]:
        """Return where each learner stands in a ranking."""
        return {self.title(case): place for place, case in enumerate(ranking.cases)}

    def difference(
        self, horizon: int, instance: str, seed: int, title: str, other: str
    ) -> tuple[float, float, bool]:
        """Return regret minus that of another, its half-width, and whether they are told apart."""
        ranking = self.at(horizon, instance, seed)
        at = self.places(ranking)
        i, j = sorted((at[title], at[other]))
        pair = ranking.pairs[i, j]
        signed = pair.difference if at[title] == j else -pair.difference
        return signed, pair.half_width, pair.told_apart


def plain_title(case: CaseSummary) -> str:
    """Return a learner's title without its options."""
    return learner_title(case).split("(")[0]


def sign(value: float, _half_width: float, told_apart: bool) -> str:
    """Return whether the other is ahead."""
    return EQUAL if not told_apart else AHEAD if value > 0 else BEHIND


# Tables


def regrets(compared: Comparison) -> Iterator[str]:
    """Regret and place with the first seed: a row per learner, a column per instance."""
    yield from header("learner", *compared.instances)
    for title in compared.titles:
        cells = (regret(compared, name, title) for name in compared.instances)
        yield row(title, *cells)


def regret(compared: Comparison, instance: str, title: str) -> str:
    """Return a learner's regret and place."""
    ranking = compared.at(compared.horizons[-1], instance, compared.seeds[0])
    at = compared.places(ranking)[title]
    return f"{at_end(ranking.cases[at].regret)} ({ranking.place(at)})"


def against(compared: Comparison) -> Iterator[str]:
    """Difference to TSDE with the first seed, and the signs of all: a row per learner."""
    first, *others = compared.titles
    for horizon in reversed(compared.horizons):
        yield f"T = {horizon:,}:\n"
        yield from header(f"minus {first}", *compared.instances)
        for title in others:
            yield row(title, *(cell(compared, horizon, name, title) for name in compared.instances))
        yield ""


def cell(compared: Comparison, horizon: int, instance: str, title: str) -> str:
    """Return a difference to TSDE and its signs."""
    first = compared.titles[0]
    found = compared.difference(horizon, instance, compared.seeds[0], title, first)
    return f"{with_half_width(*found[:2])} {compared.signs(horizon, instance, title, first)}"


def bounds(compared: Comparison) -> Iterator[str]:
    """What is lost against the bound, and how often TSDE and its doubling rule draw."""
    yield from header(
        "instance", "bound", "Whittle falls short by", "TSDE against the bound", "draws of TSDE",
        "draws, doubling rule only",
    )  # fmt: skip
    for name in compared.instances:
        ranking = compared.at(compared.horizons[-1], name, compared.seeds[0])
        found, other = sorted(ranking.cases, key=lambda case: case.case.number)[:2]
        yield row(
            name,
            f"{found.relaxation_bound:.6f}",
            short_of_bound(found),
            at_end(found.bound_regret),
            at_end(found.num_episodes),
            at_end(other.num_episodes),
        )


def short_of_bound(found: CaseSummary) -> str:
    """Return what the policy that knows the truth loses: exactly, or as it was measured."""
    if not found.baseline.startswith("exact") or found.relaxation_bound is None:
        return at_end(found.oracle_bound_regret)
    return f"{found.times[-1] * (found.relaxation_bound - found.truth_reward[0]):,.1f}"


# Sentences


def verdicts(compared: Comparison) -> Iterator[str]:
    """Say of each learner where TSDE is ahead of it or behind."""
    first, *others = compared.titles
    beaten = [
        f"“{title}” on {name} at T = {horizon:,} (with {signs.count(BEHIND)} of them)"
        for title in others
        for horizon in compared.horizons
        for name in compared.instances
        if BEHIND in (signs := compared.signs(horizon, name, title, first))
    ]
    count = len(compared.seeds)
    if beaten:
        yield f"- With some of the {count} seeds TSDE loses more than {listed(beaten)}."
    else:
        yield f"- With none of the {count} seeds does any learner lose less than TSDE anywhere."
    for title in others:
        where = listed([always_ahead(compared, horizon, title) for horizon in compared.horizons])
        text = f"- **{title}** loses more than TSDE with every seed on {where}"
        never = [
            name
            for name in compared.instances
            if set("".join(compared.signs(h, name, title, first) for h in compared.horizons))
            == {EQUAL}
        ]
        yield text + (f". With no seed are they told apart on {listed(never)}." if never else ".")


def always_ahead(compared: Comparison, horizon: int, title: str) -> str:
    """Say on how many instances TSDE is ahead of a learner with every seed."""
    first = compared.titles[0]
    signs = [compared.signs(horizon, name, title, first) for name in compared.instances]
    always = sum(set(found) == {AHEAD} for found in signs)
    return f"{always} of {len(signs)} instances at T = {horizon:,}"


def options(compared: Comparison) -> Iterator[str]:
    """Regret of some learners with other options, and which of them are behind UCB1."""
    yield from regrets(compared)
    yield f"\nBeside {compared.titles[0]}, with every seed:\n"
    for title in compared.titles[1:]:
        signs = {
            name: compared.signs(compared.horizons[-1], name, title, compared.titles[0])
            for name in compared.instances
        }
        less = [name for name, found in signs.items() if set(found) == {BEHIND}]
        more = [name for name, found in signs.items() if set(found) == {AHEAD}]
        parts = [f"loses less than it on {listed(less)}"] if less else []
        parts += [f"loses more than it on {listed(more)}"] if more else []
        yield f"- **{title}** {listed(parts or ['is not told apart'])}."


# Text


def listed(parts: list[str]) -> str:
    """Write a list as a sentence does."""
    return " and ".join(filter(None, [", ".join(parts[:-1]), parts[-1]]))


def header(*names: str) -> Iterator[str]:
    """Return the names of a table's columns; all but the first hold numbers."""
    yield row(*names)
    yield row("---", *["---:"] * (len(names) - 1))


def row(*cells: str) -> str:
    """Return a row of a table."""
    return f"| {' | '.join(cells)} |"


def main(folders: list[str]) -> None:
    """Write the measured parts anew."""
    page = PAGE
    if folders and folders[0].endswith(".md"):
        page, folders = PAGE.with_name(folders[0]), folders[1:]
    with_options = [folder for folder in folders if "options" in folder]
    compared = Comparison(folder for folder in folders if folder not in with_options)
    made = {make.__name__: make(compared) for make in (regrets, against, verdicts, bounds)}
    if with_options:
        made["options"] = options(Comparison(with_options, with_options=True))
    text = page.read_text(encoding="utf-8")
    written = PART.sub(
        lambda part: f"{part[1]}\n{chr(10).join(made[part[2]]).strip()}\n\n{part[4]}", text
    )
    page.write_text(written, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
