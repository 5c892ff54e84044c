"""Print the tables of comparison.md: python docs/comparison_tables.py FOLDER...

The folders are those that the page's commands write.
"""

import sys
from collections.abc import Iterable

from restive.experiment import CaseSummary, load_results
from restive.experiment.paired_differences import Ranking, rankings
from restive.report.charts import learner_title
from restive.report.numbers import at_end, with_half_width

REFUSED = "refused: too large"


def main(folders: Iterable[str]) -> None:
    """Print all tables."""
    compared = [ranking for folder in folders for ranking in rankings(load_results(folder))]
    print_regrets(compared)
    print_differences(compared)
    print_bounds_and_draws(compared)


def print_regrets(compared: list[Ranking]) -> None:
    """Print regret and place: a row per learner, a column per instance."""
    print_header("learner", *map(instance, compared))
    for title in titles(compared):
        print_row(title, *(regret(ranking, title) for ranking in compared))


def regret(ranking: Ranking, title: str) -> str:
    """Return a learner's regret and place."""
    at = places(ranking).get(title)
    if at is None:
        return REFUSED
    return f"{at_end(ranking.cases[at].regret)} ({ranking.place(at)})"


def print_differences(compared: list[Ranking]) -> None:
    """Print regret minus that of the first learner: a row per instance, a column per learner."""
    first, *others = titles(compared)
    print_header(f"minus {first}", *others)
    for ranking in compared:
        cells = (difference(ranking, title, first) for title in others)
        print_row(instance(ranking), *cells)


def difference(ranking: Ranking, title: str, first: str) -> str:
    """Return the paired difference of regrets, with a star if the two are told apart."""
    at = places(ranking)
    if title not in at:
        return REFUSED
    i, j = sorted((at[first], at[title]))
    pair = ranking.pairs[i, j]
    signed = pair.difference if at[title] == j else -pair.difference
    return with_half_width(signed, pair.half_width) + "*" * pair.told_apart


def print_bounds_and_draws(compared: list[Ranking]) -> None:
    """Print what is lost against the bound, and how often the first two learners draw."""
    first, second = titles(compared)[:2]
    names = ("bound", "knows the truth", first, f"episodes, {first}", f"episodes, {second}")
    print_header("instance", *names)
    for ranking in compared:
        found, other = ordered(ranking)[:2]
        print_row(
            instance(ranking),
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


def titles(compared: list[Ranking]) -> list[str]:
    """Return the learners' titles, in the order of the study."""
    return list(dict.fromkeys(learner_title(c) for ranking in compared for c in ordered(ranking)))


def ordered(ranking: Ranking) -> list[CaseSummary]:
    """Return the cases in the order of the study."""
    return sorted(ranking.cases, key=lambda case: case.case.number)


def places(ranking: Ranking) -> dict[str, int]:
    """Return where each learner is in a ranking."""
    return {learner_title(case): at for at, case in enumerate(ranking.cases)}


def instance(ranking: Ranking) -> str:
    """Return the short name of an instance."""
    return ranking.point.removeprefix("instance ").removeprefix("satellite-")


def print_header(*names: str) -> None:
    """Print the names of a table's columns; all but the first hold numbers."""
    print()
    print_row(*names)
    print_row("---", *["---:"] * (len(names) - 1))


def print_row(*cells: str) -> None:
    """Print a row of a table."""
    print("|", " | ".join(cells), "|")


if __name__ == "__main__":
    main(sys.argv[1:])
