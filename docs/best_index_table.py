"""Print the table of best_index in concepts/policies.md: python docs/best_index_table.py

Random systems of nine families, small enough that their optimum is known. What is closed is the
share of the summed gap between the optimum and Whittle's index. The optima take about a quarter of
an hour; they are kept in tests/stored/optima.json, and solved again where that file is not there.
What the mappings earn is computed each time and kept in tests/stored/best_index.json.
"""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.random import Generator

import restive as rs

STORED = Path(__file__).parents[1] / "tests" / "stored" / "optima.json"
EARNED = STORED.with_name("best_index.json")
MAPPINGS = ("whittle", "lp_priority", "best_index")
SYSTEMS = 12  # of each family
MAX_STATES = 500_000


def two_states(p01: float, p11: float) -> list[list[float]]:
    """Return the matrix of a two-state chain."""
    return [[1 - p01, p01], [1 - p11, p11]]


def on_the_grid(rng: Generator) -> rs.Arm:
    """Draw a channel of the paper's grid."""
    return rs.gilbert_elliott(*(rng.integers(1, 10, size=2) / 10))


def two_state(rng: Generator) -> rs.Arm:
    """Draw a channel with any probabilities and any reward of its good state."""
    return rs.Arm(two_states(*rng.uniform(0.05, 0.95, 2)), None, [0, rng.uniform(0.4, 1)])


def slow(rng: Generator) -> rs.Arm:
    """Draw a channel that seldom moves."""
    rise, fall = rng.uniform(0.03, 0.3, 2)
    return rs.Arm(two_states(rise, 1 - fall), None, [0, rng.uniform(0.6, 1)])


def collapsing(rng: Generator) -> rs.Arm:
    """Draw an arm that pulls mend, paid only when pulled."""
    return rs.Arm(*_collapsing(rng), [0, 1])


def adherence(rng: Generator) -> rs.Arm:
    """Draw an arm that pulls mend, paid always."""
    return rs.Arm(*_collapsing(rng), [0, 1], [0, 1])


def _collapsing(rng: Generator) -> tuple[list[list[float]], list[list[float]]]:
    stay_bad, stay_good = rng.uniform(0.8, 1), rng.uniform(0.6, 0.9)
    responsive = rng.random() < 0.4
    pulled_bad = rng.uniform(0, 0.2) if responsive else rng.uniform(0.6, 0.8)
    pulled_good = rng.uniform(0.9, 1)
    return two_states(1 - pulled_bad, pulled_good), two_states(1 - stay_bad, stay_good)


def sticky(rng: Generator) -> rs.Arm:
    """Draw a three-state arm that mostly stays, the same pulled or not."""
    return rs.Arm(_sticky(rng), None, np.sort(rng.random(3)))


def sticky_controlled(rng: Generator) -> rs.Arm:
    """Draw a three-state arm that mostly stays, in its own way when pulled."""
    return rs.Arm(_sticky(rng), _sticky(rng), np.sort(rng.random(3)))


def _sticky(rng: Generator) -> np.ndarray:
    stay = rng.uniform(0.5, 0.95, 3)
    rows = np.diag(stay)
    for s, share in enumerate(rng.random(3)):
        first, second = (j for j in range(3) if j != s)
        rows[s, [first, second]] = (1 - stay[s]) * share, (1 - stay[s]) * (1 - share)
    return rows


# name -> how an arm is drawn, arms, pulls
FAMILIES: dict[str, tuple[Callable[[Generator], rs.Arm], int, int]] = {
    "channels of the paper's grid": (on_the_grid, 4, 2),
    "two states, any rewards": (two_state, 3, 1),
    "the same, two pulls": (two_state, 4, 2),
    "slow channels": (slow, 3, 1),
    "collapsing": (collapsing, 3, 1),
    "collapsing, two pulls": (collapsing, 4, 2),
    "collapsing, paid always": (adherence, 3, 1),
    "three sticky states": (sticky, 3, 1),
    "three sticky states, controlled": (sticky_controlled, 3, 1),
}


def system(family: str, number: int) -> rs.RestlessBandit:
    """Draw a system of a family."""
    draw, num_arms, num_pulls = FAMILIES[family]
    rng = np.random.default_rng([list(FAMILIES).index(family), number])
    return rs.RestlessBandit([draw(rng) for _ in range(num_arms)], num_pulls)


def optima() -> dict[str, dict[str, float]]:
    """Return the optimum of the first systems of each family that are small enough, by number."""
    if STORED.exists():
        return json.loads(STORED.read_text())
    found: dict[str, dict[str, float]] = {}
    for family in FAMILIES:
        found[family] = {}
        number = 0
        while len(found[family]) < SYSTEMS:
            try:
                best = rs.optimal(system(family, number), max_states=MAX_STATES)
                found[family][str(number)] = best.average_reward
            except rs.errors.TooLargeError:
                pass
            number += 1
        print(family, "solved", flush=True)
    STORED.write_text(json.dumps(found, indent=1) + "\n")
    return found


def worst(bandit: rs.RestlessBandit, mapping: str) -> float:
    """Return a mapping's J, that of the worst start where it depends on it."""
    return rs.evaluate(bandit, mapping, max_states=MAX_STATES).average_reward_range[0]


def earned(family: str, number: str) -> dict[str, float]:
    """Return what each mapping earns on a system."""
    bandit = system(family, int(number))
    return {mapping: worst(bandit, mapping) for mapping in MAPPINGS}


def row(known: dict[str, float], earned: dict[str, dict[str, float]]) -> dict[str, float]:
    """Return sums over systems, of the optimum and of what mappings miss of it."""
    sums = dict.fromkeys(("optimum", *MAPPINGS, "largest"), 0.0)
    for number, optimum in known.items():
        sums["optimum"] += optimum
        for mapping in MAPPINGS:
            sums[mapping] += optimum - earned[number][mapping]
        sums["largest"] = max(sums["largest"], 1 - earned[number]["whittle"] / optimum)
    return sums


def table(earned: dict[str, dict[str, dict[str, float]]]) -> str:
    """Return the table of what mappings earn, by family, system and mapping."""
    lines = [
        "| family | arms, pulls | Whittle | at most | LP priority | best_index | closed |",
        "|---|---|---|---|---|---|---|",
    ]
    rows = {family: row(known, earned[family]) for family, known in optima().items()}
    total = {key: sum(sums[key] for sums in rows.values()) for key in rows["collapsing"]}
    total["largest"] = max(sums["largest"] for sums in rows.values())
    for family, sums in {**rows, "all": total}.items():
        size = "{1}, {2}".format(*FAMILIES[family]) if family in FAMILIES else ""
        whittle, priority, best = (sums[name] / sums["optimum"] for name in MAPPINGS)
        lines.append(
            f"| {family} | {size} | {whittle:.3%} | {sums['largest']:.2%} | {priority:.2%} |"
            f" {best:.3%} | {1 - best / whittle:.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Compute what mappings earn and print the table."""
    found = {
        family: {number: earned(family, number) for number in known}
        for family, known in optima().items()
    }
    EARNED.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


if __name__ == "__main__":
    main()
