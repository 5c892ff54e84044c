"""Do gains that a fit states hold in the true world? python docs/worth_table.py

Logs of 150 people of two kinds who are seen in every week of a year; 30 at random are called in
each. Log odds of a good week differ between people with a standard deviation of 0.7, and what a
call adds to them with one of 0.3. How-to/fit-a-log.md has the table.
"""

import numpy as np

import restive as rs
from restive.logs import decision
from restive.logs.fitted import fit_arms

PEOPLE, WEEKS, CALLS, LOGS, PLAYED = 150, 52, 30, 40, 30
ODDS = {"north": (-2.0, 1.0), "south": (-1.5, 1.5)}


def main() -> None:
    """Print a row for each effect of a call on log odds."""
    decision._calibration = lambda fitted: None  # which takes a second, and is not looked at
    print("| a call adds | effect shown | true gain | stated | intervals that hold it |")
    print("|---|---|---|---|---|")
    for effect in (0.0, 0.3, 0.6, 1.0, 2.0):
        true, stated, inside, shown, adds = [], [], 0, 0, []
        for seed in range(LOGS):
            known, gain, added = _one(effect, seed)
            adds.append(added)
            if not known.shows_gain:
                continue
            found = decision.decide(known, CALLS, seed=seed)
            shown += 1
            true.append(gain)
            stated.append(found.share.mean)
            inside += found.share.low <= gain <= found.share.high
        gains = f"{np.mean(true):+.0%} | {np.mean(stated):+.0%}" if shown else "| "
        print(f"| {np.mean(adds):+.2f} | {shown} of {LOGS} | {gains} | {inside} of {shown} |")


def _one(effect: float, seed: int) -> tuple[rs.types.FittedLog, float, float]:
    """Return a fit, the true gain of its index over taking turns, and what a call truly adds."""
    rng = np.random.default_rng([seed, int(10 * effect)])
    kinds = [("north", "south")[k >= PEOPLE * 0.6] for k in range(PEOPLE)]
    left = np.array([ODDS[kind] for kind in kinds]) + 0.7 * rng.standard_normal((PEOPLE, 2))
    spread = 0.3 * rng.standard_normal((PEOPLE, 2)) if effect else 0.0
    chances = 1 / (1 + np.exp(-np.hstack([left + effect + spread, left])))
    arms, state, rows = np.arange(PEOPLE), rng.integers(2, size=PEOPLE), []
    for week in range(WEEKS):
        called = rng.random(PEOPLE).argsort() < CALLS
        rows.append(np.column_stack([arms, np.full(PEOPLE, week), state, called]))
        state = _next(chances, state, called, rng)
    arm, week, states, pulled = np.concatenate(rows).T
    log = rs.log_of(arm, week, states, pulled=pulled.astype(bool), kinds=kinds)
    known = fit_arms(log, controlled=True, passive_rewards=[0, 1], seen="always")
    index, ones = rs.whittle(known.problem(CALLS)), np.ones(PEOPLE, dtype=np.int64)
    ways = (
        lambda week, now: index.select(rs.BeliefState(now, ones)),
        lambda week, now: (week * CALLS + np.arange(CALLS)) % PEOPLE,
    )
    earned = [
        sum(_played(chances, state, way, np.random.default_rng([seed, n])) for n in range(PLAYED))
        for way in ways
    ]
    shares = np.bincount(states, minlength=2) / len(states)
    adds = ((chances[:, :2] - chances[:, 2:]) * shares).sum(axis=1).mean()
    return known, earned[0] / earned[1] - 1, adds


def _next(chances, state, called, rng):
    row = state + 2 * ~called
    return (rng.random(PEOPLE) < chances[np.arange(PEOPLE), row]).astype(int)


def _played(chances, state, way, rng) -> int:
    """Good weeks of all people in half a year."""
    total = 0
    for week in range(WEEKS // 2):
        total += state.sum()
        called = np.zeros(PEOPLE, dtype=bool)
        called[way(week, state)] = True
        state = _next(chances, state, called, rng)
    return total


if __name__ == "__main__":
    main()
