"""Do gains that a fit states hold in the true world? python docs/claims_table.py [logs] [first]

Worlds are drawn at random: how people differ (alike, as a normal law, far apart, in clusters, with
heavy tails), what a call does (nothing, little, much, harm; to all or very unequally), who is
called (at random, in turn, for two weeks running, those seen bad or good, everybody in every week),
how many people there are, for how long, and whether they are seen when called or in every week.
Each log is fitted, and what it states is held against the mean of 30 plays in the true world.
How-to/fit-a-log.md has the table.
"""

import sys
from typing import NamedTuple

import numpy as np

import restive as rs
from restive.logs import decision
from restive.logs.fitted import fit_arms
from restive.logs.lists import mean_index_policy

LAWS = ("alike", "normal", "far apart", "clusters", "heavy tails")
EFFECTS = (0.0, 0.0, 0.3, 0.6, 1.0, -0.5)
DESIGNS = ("at random", "in turn", "two running", "seen bad", "seen good", "everybody")
LOGS, PLAYED = 100, 30
CLAIMS = ("calls add", "gain over turns", "in turn", "by priority", "a call adds")


class Programme(NamedTuple):
    """A true world, the log that it left, and where it stands then."""

    law: str
    effect: float
    design: str
    seen: str
    calls: int
    chances: np.ndarray  # [K, 4] of a good week: called after a bad and a good one, left alone
    state: np.ndarray  # [K]
    log: rs.types.Log


def main() -> None:
    """Print how often claims held, by what worlds are like."""
    logs = int(sys.argv[1]) if len(sys.argv) > 1 else LOGS
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    decision._calibration = lambda fitted: None  # which is not looked at
    rows = []
    for seed in range(first, first + logs):
        rows.append(_one(seed))
        print(*rows[-1], file=sys.stderr, flush=True)
    print(
        "| worlds | logs | claims made | " + " | ".join(CLAIMS) + " | a gain where there is none |"
    )
    print("|---|---|---|" + "---|" * (len(CLAIMS) + 1))
    _print_row("all", rows)
    for at, names in enumerate((LAWS, sorted(set(EFFECTS)), DESIGNS, ("pulled", "always"))):
        for name in names:
            _print_row(str(name), [row for row in rows if row[0][at] == name])


def _print_row(name, rows) -> None:
    made = [row for row in rows if row[1] is not None]
    held = [f"{sum(row[1][c] for row in made)}" if made else "" for c in range(len(CLAIMS))]
    false = sum(row[2] for row in made if row[0][1] == 0)
    none = sum(row[0][1] == 0 for row in made)
    print(f"| {name} | {len(rows)} | {len(made)} | {' | '.join(held)} | {false} of {none} |")


def _one(seed: int):
    """Return what a world is like, which claims held, if any, and whether one is of gain."""
    world = _drawn(seed)
    what = (world.law, world.effect, world.design, world.seen)
    known = fit_arms(world.log, controlled=True, passive_rewards=[0, 1], seen=world.seen)
    found = decision.decide(known, world.calls, seed=seed)
    if found.gain is None:
        return what, None, False
    bandit = known.problem(world.calls)
    steps, people = found.num_steps, np.arange(len(world.state))
    order = np.argsort(-known.start.elapsed, kind="stable")
    policy = mean_index_policy(known, bandit)

    def in_turn(week, last, elapsed):
        return order[(week * world.calls + np.arange(world.calls)) % len(people)]

    def by_priority(week, last, elapsed):
        return policy.select(rs.BeliefState(last, elapsed))

    index, turns, alone = (
        np.mean([_played(world, known.start, way, steps, seed, n) for n in range(PLAYED)])
        for way in (by_priority, in_turn, lambda week, last, elapsed: people[:0])
    )
    called, left = world.chances[:, :2], world.chances[:, 2:]
    settled = left[:, 0] / (1 - left[:, 1] + left[:, 0])
    shares = np.stack([1 - settled, settled], axis=1)
    truth = (index - alone, index - turns, turns, index, ((called - left) * shares).sum(1).mean())
    ((_, low, high),) = [shape.gain for shape in known.kind_shapes.values()]
    stated = [
        (one.low, one.high)
        for one in (found.pulls_add, found.gain, found.earned["in turn"], found.earned["by index"])
    ]
    held = [a <= t <= b for (a, b), t in zip([*stated, (low, high)], truth, strict=True)]
    return what, held, known.shows_gain or found.gain.low > 0


def _drawn(seed: int) -> Programme:
    rng = np.random.default_rng([seed, 43])
    law, effect = str(rng.choice(LAWS)), float(rng.choice(EFFECTS))
    design = str(rng.choice(DESIGNS, p=[0.25, 0.15, 0.2, 0.15, 0.15, 0.1]))
    seen = "always" if rng.random() < 0.25 and design != "everybody" else "pulled"
    count = int(np.exp(rng.uniform(np.log(40), np.log(2000 if rng.random() < 0.2 else 400))))
    weeks = int(rng.integers(20, 80))
    calls = max(2, int(count / rng.uniform(3, 12)))
    odds = _odds(rng, law, effect, count)
    left = odds[:, :2]
    chances = 1 / (1 + np.exp(-np.clip(np.hstack([left + odds[:, 2:], left]), -6, 6)))
    settled = chances[:, 2] / (1 - chances[:, 3] + chances[:, 2])
    state, rows = (rng.random(count) < settled).astype(int), []
    last, before, people = np.full(count, -1), None, rng.permutation(count)
    for week in range(weeks):
        chosen = _chosen(rng, design, week, calls, people, last, before)
        before = chosen
        told = np.arange(count) if seen == "always" else chosen
        rows.append(np.stack([told, np.full(len(told), week), state[told], np.isin(told, chosen)]))
        last[told] = state[told]
        row = state + 2 * ~np.isin(np.arange(count), chosen)
        state = (rng.random(count) < chances[np.arange(count), row]).astype(int)
    arm, step, states, pulled = np.concatenate(rows, axis=1)
    told = {"arm": arm, "week": step, "good": states, "called": pulled.astype(bool)}
    log = rs.load_log(
        told, arm="arm", time="week", state="good", states=["0", "1"], pulled="called"
    )
    there = np.array([int(name) for name in log.arms])  # whom nobody has seen is in no log
    return Programme(
        law, effect, design, seen, min(calls, len(there) - 1), chances[there], state[there], log
    )


def _odds(rng, law: str, effect: float, count: int) -> np.ndarray:
    """Log odds [K, 4] of a good week: left alone after a bad and a good one, what a call adds."""
    mean = rng.normal([-1.2, 1.2], 0.8)
    if law == "clusters":
        sorts = rng.integers(2, 5)
        which = rng.choice(sorts, count, p=rng.dirichlet(np.full(sorts, 3.0)))
        level = mean + rng.normal(0, 1, (sorts, 2))
        adds = effect * rng.choice([0, 1, 2], (sorts, 2), p=[0.4, 0.3, 0.3])
        noise = 0.15 * rng.normal(size=(count, 4)) * [1, 1, effect != 0, effect != 0]
        return np.hstack([level, adds])[which] + noise
    spread = {
        "alike": rng.uniform(0.1, 0.3), "normal": rng.uniform(0.4, 1.2),
        "far apart": rng.uniform(1.3, 2.0), "heavy tails": rng.uniform(0.4, 0.8),
    }[law]  # fmt: skip
    unequal, along = abs(effect) * rng.choice([0.3, 0.8, 1.5]), rng.uniform(-0.5, 0.7)
    levels = rng.normal(size=(count, 2)) @ np.linalg.cholesky([[1, along], [along, 1]]).T
    adds = rng.normal(size=(count, 2)) @ np.linalg.cholesky([[1, 0.5], [0.5, 1]]).T
    if law == "heavy tails":
        tails = np.sqrt(3 / rng.chisquare(3, (count, 1)))
        levels, adds = levels * tails, adds * tails
    return np.hstack([mean + spread * levels, effect + unequal * adds])


def _chosen(rng, design, week, calls, people, last, before) -> np.ndarray:
    count = len(people)
    if design == "everybody":
        return np.arange(count)
    if design == "in turn":
        return people[(week * calls + np.arange(calls)) % count]
    if design == "two running" and week % 2:
        return before
    wanted = {"seen bad": 0, "seen good": 1}.get(design, -2)
    return np.argsort(-((last == wanted) + 1.2 * rng.random(count)))[:calls]


def _played(world: Programme, start, way, weeks: int, seed: int, number: int) -> float:
    """Good people a week."""
    state, total, rng = world.state.copy(), 0, np.random.default_rng([seed, number, 7])
    last, elapsed = start.last_state.copy(), start.elapsed.copy()
    for week in range(weeks):
        total += state.sum()
        if world.seen == "always":
            last[:], elapsed[:] = state, 1
        chosen = way(week, last, elapsed)
        row = state + 2
        row[chosen] -= 2
        elapsed += 1
        last[chosen], elapsed[chosen] = state[chosen], 1
        state = (rng.random(len(state)) < world.chances[np.arange(len(state)), row]).astype(int)
    return total / weeks


if __name__ == "__main__":
    main()
