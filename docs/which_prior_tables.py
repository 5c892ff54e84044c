"""Print the table of which-prior.md and draw its figure: python docs/which_prior_tables.py FOLDER

The folder is the one that the page's command writes.
"""

import sys
from math import sqrt
from pathlib import Path

import numpy as np

from restive.measure.intervals import student_quantile
from restive.pages.figures import plot_band
from restive.pages.looks import matplotlib_figures
from restive.studies.ledger import Ledger
from restive.studies.spec import Case
from restive.studies.summary import load_results

FIGURE = Path(__file__).parent / "assets" / "which-prior.svg"
NAMES = {"levels": "9 x 9 grid", "beta": "continuous"}
EARLY = 10_000


def main(folder: str) -> None:
    """Print regrets and slopes of all problems, and draw those of all."""
    ledger = Ledger.open(Path(folder))
    print(f"| problem | prior | regret at {EARLY:,} | at the end | a 1,000 steps, last half |")
    print("|---|---|---|---|---|")
    problems = list(dict.fromkeys(map(problem_of, ledger.study.cases)))
    for problem in problems:
        for case in ledger.study.cases:
            if problem_of(case) == problem:
                print_row(ledger, case)
    draw(folder, problems)


def print_row(ledger: Ledger, case: Case) -> None:
    """Print regrets of a case, and how fast it grows in the last half, with 95% intervals."""
    times = np.array(case.settings.times)
    regrets = np.concatenate(
        [arrays["oracle_expected"] - arrays["expected"] for _, arrays in ledger.chunks(case)]
    )
    half = int(np.flatnonzero(times == times[-1] // 2)[0])
    growth = (regrets[:, -1] - regrets[:, half]) * 1000 / (times[-1] - times[half])
    early = regrets[:, np.flatnonzero(times == EARLY)[0]]
    cells = (interval(early), interval(regrets[:, -1]), interval(growth, 2))
    print(f"| {problem_of(case)} | {prior_of(case)} | {' | '.join(cells)} |")


def interval(values: np.ndarray, digits: int = 0) -> str:
    """Return a mean and the half width of its 95% interval."""
    half = student_quantile(len(values)) * values.std(ddof=1) / sqrt(len(values))
    return f"{values.mean():.{digits}f} ± {half:.{digits}f}"


def problem_of(case: Case) -> str:
    """Return the name of a case's problem."""
    problem = case.settings.problem
    assert problem is not None
    return (problem.name or problem.zoo or "").removeprefix("satellite-")


def prior_of(case: Case) -> str:
    """Return the name of a case's prior."""
    prior = case.settings.prior
    return next(name for key, name in NAMES.items() if getattr(prior, key) is not None)


def draw(folder: str, problems: list[str]) -> None:
    """Draw regret against time, a panel for each problem."""
    figure = matplotlib_figures().Figure(figsize=(9, 5.2), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True)
    for summary in load_results(folder):
        problem, prior = problem_of(summary.case), prior_of(summary.case)
        ax, curve = axes.flat[problems.index(problem)], summary.regret
        plot_band(summary.times, curve.mean, curve.lower, curve.upper, prior, ax)
        ax.set_title(problem)
        ax.set_xticks([0, summary.times[-1] // 2, summary.times[-1]])
    for place, ax in enumerate(axes.flat):
        if place < 3:
            ax.set_xlabel("")
        if place % 3:
            ax.set_ylabel("")
    figure.savefig(FIGURE, format="svg", metadata={"Date": None})


if __name__ == "__main__":
    main(sys.argv[1])
