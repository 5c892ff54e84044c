"""Do gains that a fit states hold in the true world? python docs/worth_table.py

Logs of 150 people of two kinds, of whom 30 at random are called in each week of a year. Log odds of
a good week differ between people with a standard deviation of 0.7, and what a call adds to them
with one of 0.3. How-to/fit-a-log.md has the tables: people who are seen in every week, and people
who are seen when they are called.
"""

import numpy as np

import restive as rs
from restive.logs import decision
from restive.logs.fitted import fit_arms

PEOPLE, WEEKS, CALLS, LOGS, PLAYED = 150, 52, 30, 20, 30
ODDS = {"north": (-2.0, 1.0), "south": (-1.5, 1.5)}


def main() -> None:
    """Print a table for each way to see people, a row for each effect of a call on log odds."""
    decision._calibration = lambda fitted: None  # which takes a second, and is not looked at
    for seen in ("always", "pulled"):
        print(f"\nseen: {seen}\n")
        print("| a call adds | shown | true gain | stated | held | calls add | stated | held |")
        print("|---|---|---|---|---|---|---|---|")
        for effect in (0.0, 0.3, 0.6, 1.0, 2.0):
            _print_row(seen, effect)


def _print_row(seen: str, effect: float) -> None:
    rows, step = [], []
    for seed in range(LOGS):
        known, truth, added = _one(seen, effect, seed)
        step.append(added)
        if known.shows_gain:
            found = decision.decide(known, CALLS, seed=seed)
            stated = (found.share, found.pulls_add)
            inside = [s.low <= t <= s.high for s, t in zip(stated, truth, strict=True)]
            rows.append((*truth, *(s.mean for s in stated), *inside))
    if not rows:
        print(f"| {np.mean(step):+.2f} | 0 of {LOGS} | | | | | | |", flush=True)
        return
    gain, add, share, adds = np.mean([row[:4] for row in rows], axis=0)
    held = np.sum([row[4:] for row in rows], axis=0)
    of = f"of {len(rows)}"
    print(
        f"| {np.mean(step):+.2f} | {len(rows)} of {LOGS} | {gain:+.1%} | {share:+.1%} | "
        f"{held[0]} {of} | {add:.1f} | {adds:.1f} | {held[1]} {of} |",
        flush=True,
    )


def _one(
    seen: str, effect: float, seed: int
) -> tuple[rs.types.FittedLog, tuple[float, float], float]:
    """Return a fit; its index's true gain over turns, and over no calls; what a call truly adds."""
    rng = np.random.default_rng([seed, int(10 * effect)])
    kinds = np.where(np.arange(PEOPLE) >= PEOPLE * 0.6, "south", "north")
    left = np.array([ODDS[kind] for kind in kinds]) + 0.7 * rng.standard_normal((PEOPLE, 2))
    spread = 0.3 * rng.standard_normal((PEOPLE, 2)) if effect else 0.0
    chances = 1 / (1 + np.exp(-np.hstack([left + effect + spread, left])))
    arms, state, rows = np.arange(PEOPLE), rng.integers(2, size=PEOPLE), []
    for week in range(WEEKS):
        called = rng.random(PEOPLE).argsort() < CALLS
        rows.append(np.column_stack([arms, np.full(PEOPLE, week), state, called]))
        state = _next(chances, state, called, rng)
    told = np.concatenate(rows)
    arm, week, states, pulled = told[told[:, 3] == 1].T if seen == "pulled" else told.T
    columns = {"arm": arm, "week": week, "state": states, "pulled": pulled, "kind": kinds[arm]}
    log = rs.load_log(columns, time="week", arm="arm", state="state", by="kind", pulled="pulled")
    known = fit_arms(log, controlled=True, passive_rewards=[0, 1], seen=seen)
    order = np.argsort(-known.start.elapsed, kind="stable")
    ways = (
        lambda: _by_index(known, seen),
        lambda: lambda week, now: order[(week * CALLS + np.arange(CALLS)) % PEOPLE],
        lambda: lambda week, now: order[:0],
    )
    index, turns, alone = (
        np.mean([_played(chances, state, way(), seed, n) for n in range(PLAYED)]) for way in ways
    )
    shares = np.bincount(told[:, 2], minlength=2) / len(told)
    adds = ((chances[:, :2] - chances[:, 2:]) * shares).sum(axis=1).mean()
    return known, (index / turns - 1, index - alone), adds


def _by_index(known, seen):
    """Return what chooses by the fit's index, week by week, and remembers what it has seen."""
    index = rs.whittle(known.problem(CALLS))
    last, elapsed = known.start.last_state.copy(), known.start.elapsed.copy()

    def way(week, now):
        if seen == "always":
            last[:], elapsed[:] = now, 1
        chosen = index.select(rs.BeliefState(last, elapsed))
        elapsed[:] += 1
        last[chosen], elapsed[chosen] = now[chosen], 1
        return chosen

    return way


def _next(chances, state, called, rng):
    row = state + 2 * ~called
    return (rng.random(PEOPLE) < chances[np.arange(PEOPLE), row]).astype(int)


def _played(chances, state, way, seed, number) -> float:
    """Good people a week, over half a year."""
    total, rng = 0, np.random.default_rng([seed, number])
    for week in range(WEEKS // 2):
        total += state.sum()
        called = np.zeros(PEOPLE, dtype=bool)
        called[way(week, state)] = True
        state = _next(chances, state, called, rng)
    return total / (WEEKS // 2)


if __name__ == "__main__":
    main()
