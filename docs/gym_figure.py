"""Draw assets/gym-learning.svg and print what how-to/gym.md says of it: python docs/gym_figure.py

The learner is the page's own, with ten seeds that were not looked at when its numbers were chosen.
What it has learnt after each round is worth what `worth` finds, exactly.
"""

import re
from pathlib import Path
from time import process_time
from typing import Any

import gymnasium
import numpy as np

import restive as rs
import restive.gym
from restive.pages.axes import Dotted, Line, draw_lines
from restive.pages.drawing import write_figure
from restive.pages.looks import LIGHT, matplotlib_figures, settings

FOLDER = Path(__file__).parent
SEEDS = range(10, 20)


def main() -> None:
    """Learn with ten seeds, draw and print."""
    page = learner_of_the_page()
    begin = process_time()
    learnt = [page["learn"](seed) for seed in SEEDS]
    seconds = process_time() - begin
    values = np.array([[page["worth"](weights) for weights in rounds] for rounds in learnt])
    each = page["POLICIES"] * page["WORLDS"] * page["STEPS"]
    bandit = page["PROBLEM"]
    known = {
        "bound": rs.relaxation_bound(bandit),
        "Whittle": rs.evaluate(bandit, "whittle").average_reward,
        "myopic": rs.evaluate(bandit, "myopic").average_reward,
        "random": random_reward(bandit),
    }
    draw(values, each * np.arange(1, values.shape[1] + 1), known)
    print(known | {"optimum": rs.optimal(bandit).average_reward})
    print("at the end:", np.sort(values[:, -1]).round(6))
    for limit in ("myopic", "Whittle"):
        print(f"rounds until above {limit}:", (values > known[limit]).argmax(axis=1))
    print(f"{each * values.shape[1]:,} steps and {seconds / len(SEEDS):.2f} CPU s a seed")


def learner_of_the_page() -> dict[str, Any]:
    """Return what the page's learner defines."""
    text = (FOLDER / "how-to" / "gym.md").read_text(encoding="utf-8")
    (code,) = (
        block
        for block in re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
        if "def learn(" in block
    )
    names: dict[str, Any] = {"gymnasium": gymnasium, "np": np, "rs": rs}
    exec(code[: code.index("\nlearnt = ")], names)
    return names


def random_reward(bandit: rs.RestlessBandit) -> float:
    """Average reward of arms drawn at random, where a pull does not change how an arm moves."""
    assert all(arm.is_uncontrolled for arm in bandit.arms)
    each = [rs.theory.stationary(arm) @ arm.rewards for arm in bandit.arms]
    return float(bandit.num_pulls * np.mean(each))


def draw(values: np.ndarray, steps: np.ndarray, known: dict[str, float]) -> None:
    """Draw average reward against environment steps: each seed, their mean, and what is known."""
    millions = steps / 1e6
    mean = Line(0, "mean", millions, values.mean(axis=0), values.min(axis=0), values.max(axis=0))
    with settings():
        figure = matplotlib_figures().Figure(figsize=(6.4, 4.0), layout="constrained", dpi=170)
        axes = figure.subplots()
        ends = np.array([0, millions[-1]])
        dotted = [Dotted(ends, [value, value]) for value in known.values()]
        draw_lines(axes, [mean], "linear", dotted=dotted)
        for row in values:
            axes.plot(millions, row, color=LIGHT["mute"], linewidth=0.6, zorder=1)
        for name, value in known.items():
            axes.annotate(
                name, (millions[-1], value), (4, 0), textcoords="offset points", va="center"
            )
        axes.set_xlim(0, millions[-1])
        axes.set_xlabel("environment steps (millions)")
        axes.set_ylabel("average reward")
        for path in write_figure(figure, FOLDER / "assets" / "gym-learning"):
            if path.suffix == ".png":
                path.unlink()


if __name__ == "__main__":
    main()
