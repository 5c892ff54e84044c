"""Print the tables of how-to/fit-a-log.md: python docs/replay_tables.py [LOGS]

How often the calibration refuses clean logs, and how model-based figures compare with what the
policies then really earn. Takes some minutes with 200 logs a row, the default.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import restive as rs
from log_cases import log_of, simulated_states
from restive.logs.calibration import calibrate
from restive.logs.fitted import fit_arms
from restive.logs.play import play_record, policy_player
from restive.logs.sample import sample_of
from restive.plan.policies.registry import policy_mapping

ARMS, PULLS, SHARE = 40, 10, 0.25
STEPS = (60, 240)
POLICIES = ("whittle", "myopic", "best_fixed")


def main(logs: int) -> None:
    """Print a row for each length of log."""
    print(f"| steps | refused | {' | '.join(f'{name}, inside' for name in POLICIES)} |")
    print("|---|---|" + "---|" * len(POLICIES))
    for steps in STEPS:
        rows = [one_log([steps, n], steps) for n in range(logs)]
        refused = np.mean([row[0] for row in rows])
        cells = [f"{refused:.0%}"]
        for at in range(len(POLICIES)):
            inside, off = np.array([row[1][at] for row in rows]).T
            cells.append(
                f"{off.mean():+.1%} ± {1.96 * off.std() / logs**0.5:.1%}, {inside.mean():.0%}"
            )
        print(f"| {steps} | {' | '.join(cells)} |", flush=True)


def one_log(seed: list[int], steps: int) -> tuple[bool, list[tuple[bool, float]]]:
    """Whether calibration refuses a clean log; by policy, whether its interval holds, its error."""
    rng = np.random.default_rng(seed)
    p01, p11 = rng.beta(2, 3, ARMS), rng.beta(4, 2, ARMS)
    states = simulated_states(p01, p11, steps, rng)
    step, arm = np.nonzero(rng.random(states.shape) < SHARE)
    log = log_of(arm, step, states[step, arm])
    names = [int(name) for name in log.arms]
    split = log.num_steps // 2
    known = fit_arms(log, until=split)
    calibration = calibrate(known, sample_of(log), split)
    played = rs.replay_log(log, PULLS, list(POLICIES), anyway=True, worlds=200)
    first = int(step.min()) + split
    record = states[first : first + played.num_steps][:, names]
    bandit, found = known.problem(PULLS), []
    for one in played.policies:
        player = policy_player(policy_mapping(one.policy)(bandit), bandit, known.start)
        truth = play_record(record, player, known.rewards) / len(record)
        found.append((one.low <= truth <= one.high, one.per_step / truth - 1))
    return calibration is not None and not calibration.holds, found


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
