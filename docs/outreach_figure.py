"""Draw assets/outreach-regret.svg and print its table: python docs/outreach_figure.py

Collapsing bandits with 50 arms, 5 pulls and 180 steps; each replication draws its truth from the
prior. TSDE, which knows only the prior, beside Whittle's index and the myopic rule, which know the
truth, and arms drawn at random, all in the same worlds.
"""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from restive.learn.learners import learner_of
from restive.learn.learners.base import Learner, Own
from restive.learn.task import Task, make_task
from restive.measure import zoo
from restive.measure.intervals import student_quantile
from restive.measure.replication import Replications, replicate
from restive.pages.axes import Dotted, Line, draw_lines
from restive.pages.drawing import write_figure
from restive.pages.looks import matplotlib_figures, settings

FloatArray = NDArray[np.float64]

ASSETS = Path(__file__).parent / "assets"
REPLICATIONS = 1000
KNOWN = "Whittle, parameters known"
INSTANCE = zoo.load("collapsing")
TIMES = np.arange(1, INSTANCE.horizon + 1)


class AtRandom:
    """A learner that pulls any arms and learns nothing."""

    def __init__(self, task: Task, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._sizes = task.num_arms, task.num_pulls

    def select(self) -> ArrayLike:
        """Draw the arms."""
        return self._rng.choice(*self._sizes, replace=False)

    def observe(self, states: NDArray[np.int64]) -> None:
        """Look away."""


def main() -> None:
    """Run all, draw and print."""
    learning = run("whittle", learner_of("tsde"))
    at_random = run("myopic", Own("random", AtRandom, "random"))
    earned = {
        KNOWN: learning.oracle_expected,
        "TSDE, which learns": learning.expected,
        "myopic, parameters known": at_random.oracle_expected,
        "random": at_random.expected,
    }
    draw({name: earned[KNOWN] - totals for name, totals in earned.items() if name != KNOWN})
    print_table(earned, without_pulls(learning))


def run(mapping: str, learner: Learner) -> Replications:
    """Run a learner, and the policy of the mapping that knows the truth, in the same worlds."""
    task = make_task(INSTANCE.prior, INSTANCE.num_pulls, mapping, INSTANCE.horizon)
    return replicate(task, learner, TIMES, REPLICATIONS)


def without_pulls(done: Replications) -> FloatArray:
    """Total reward [R] of each truth if no arm is ever pulled."""
    totals = []
    for arm in done.task.choices.kinds.arms:
        belief, total = arm.active[-1], 0.0  # each was seen in its good state one step ago
        for _ in TIMES:
            total += float(belief @ arm.passive_rewards)
            belief = belief @ arm.passive
        totals.append(total)
    return np.asarray(np.array(totals)[done.true_kinds].sum(axis=1))


def half_width(samples: FloatArray) -> FloatArray:
    """Half-width of the 95% interval of the mean over rows."""
    error = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    return np.asarray(student_quantile(len(samples)) * error)


def draw(regrets: dict[str, FloatArray]) -> None:
    """Draw regret against time."""
    lines = []
    for number, (name, samples) in enumerate(regrets.items()):
        mean, half = samples.mean(axis=0), half_width(samples)
        lines.append(Line(number, name, TIMES, mean, mean - half, mean + half))
    with settings():
        figure = matplotlib_figures().Figure(figsize=(6.4, 4.0), layout="constrained", dpi=170)
        axes = figure.subplots()
        ends = TIMES[[0, -1]]
        draw_lines(axes, lines, "linear", dotted=[Dotted(ends, [0, 0], name=KNOWN)])
        axes.set_xlabel("step")
        axes.set_ylabel("Bayesian regret")
        axes.legend(loc="upper left")
        for path in write_figure(figure, ASSETS / "outreach-regret"):
            if path.suffix == ".png":
                path.unlink()


def print_table(earned: dict[str, FloatArray], idle: FloatArray) -> None:
    """Print reward per step, what pulls add, their share of what the first adds, and regret."""
    steps = INSTANCE.horizon
    known = next(iter(earned.values()))[:, -1]
    print("| | reward per step | pulls add | of Whittle's | regret at 180 |")
    print("|---|---:|---:|---:|---:|")
    for name, totals in earned.items():
        last = totals[:, -1]
        regret = known - last
        told = "0" if name == KNOWN else f"{regret.mean():.1f} ± {half_width(regret):.1f}"
        share = (last - idle).mean() / (known - idle).mean()
        added = (last - idle).mean() / steps
        print(f"| {name} | {last.mean() / steps:.3f} | {added:.3f} | {share:.0%} | {told} |")
    print(f"| no pulls | {idle.mean() / steps:.3f} | 0 | 0% | {(known - idle).mean():.1f} |")


if __name__ == "__main__":
    main()
