"""The paper's two experiments (Section 6): regret of TSDE under three policy mappings.

Run it as `python examples/paper_regret.py [replications]`: our figures beside the paper's.
"""

import sys

import restive as rs

LEVELS = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
MAPPINGS = ("best_fixed", "myopic", "whittle")
PAPER_BAYESIAN = {"best_fixed": 2.05, "myopic": 2.16, "whittle": 2.17}
PAPER_FREQUENTIST = {"best_fixed": 1.00, "myopic": 1.09, "whittle": 1.12}
CHANNELS = [(0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4)]


def show(name: str, paper: float, curve: rs.RegretCurve) -> None:
    print(
        f"{name:<11} {curve.average_reward_of_truth:10.4f} {paper:9.2f} "
        f"{curve.average_reward[-1]:10.4f} {curve.mean[-1]:9.1f} +- {1.96 * curve.stderr[-1]:<5.1f}"
        f"{curve.num_episodes[-1]:9.0f}"
    )


def main(replications: int) -> None:
    header = f"{'mapping':<11} {'J':>10} {'paper':>9} {'learner':>10} {'regret':>9}"
    header += f"{'episodes':>18}"
    print(f"Bayesian: K=8, N=3, T=2000, {replications} systems drawn from the prior")
    print(header)
    for name in MAPPINGS:
        prior = rs.grid_prior(LEVELS, num_arms=8)
        curve = rs.bayesian_regret(prior, 3, name, horizon=2000, replications=replications)
        show(name, PAPER_BAYESIAN[name], curve)
    bandit = rs.RestlessBandit([rs.gilbert_elliott(*pair) for pair in CHANNELS], num_pulls=2)
    print(f"\nFrequentist: K=4, N=2, T=10000, {replications} runs")
    print(header)
    for name in MAPPINGS:
        prior = rs.grid_prior(LEVELS, num_arms=4)
        curve = rs.frequentist_regret(bandit, prior, name, replications=replications)
        show(name, PAPER_FREQUENTIST[name], curve)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
