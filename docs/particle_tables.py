"""Print the figures of concepts/continuous-priors.md: python docs/particle_tables.py [SETS]

Root mean square errors of posterior means, in posterior standard deviations, over data sets of
channels and of arms with three states; 12 sets by default, which takes some minutes.
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import restive as rs
from oracles.posterior_naive import Quadrature, metropolis
from particle_cases import Follower, cells_of, evidence_of, sightings, some_ages

SIZES = (100, 1_000, 10_000, 100_000)
CHANNEL = rs.beta_prior(1).arms[0]
THREE = rs.DirichletArmPrior(np.ones((3, 3)), np.ones((3, 3)), rewards=[0, 0.5, 1])


def main(sets: int) -> None:
    """Print a row for each way, and how often particles were drawn anew."""
    rows: dict[str, list[str]] = {}
    for t in SIZES:
        rng = np.random.default_rng(t)
        found: dict[str, list[np.ndarray]] = {}
        renewals = []
        for key in range(sets):
            seen = sightings(rs.gilbert_elliott(*rng.random(2)), some_ages(t, rng), rng)
            exact = Quadrature(cells_of(seen))
            follower = Follower(CHANNEL, key).see(seen)
            followed = np.array([follower.mean(follower.p01), follower.mean(follower.p11)])
            given = CHANNEL.given(evidence_of(seen)).particles().mean().active[:, 1]
            for name, means in (("followed one by one", followed), ("given at once", given)):
                found.setdefault(name, []).append((means - exact.means) / exact.deviations)
            renewals.append(int(follower.arm.renewals[0]))
        for key in range(max(1, sets // 4)):
            rewards = [0, 0.5, 1]
            truth = rs.Arm(rng.dirichlet(np.ones(3), 3), rng.dirichlet(np.ones(3), 3), rewards)
            seen = sightings(truth, some_ages(t, rng), rng)
            mean, deviation = metropolis(np.ones((3, 3)), np.ones((3, 3)), cells_of(seen), rng)
            run = Follower(THREE, key).see(seen)
            errors = (run.arm.matrices @ run.weights - mean) / deviation
            found.setdefault("twelve free numbers, followed", []).append(errors)
        for name, errors in found.items():
            rows.setdefault(name, []).append(f"{np.sqrt(np.mean(np.square(errors))):.3f}")
        rows.setdefault("renewals", []).append(f"{np.mean(renewals):.1f}")
    for name, cells in rows.items():
        print(f"| {name} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 12)
