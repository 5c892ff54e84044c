"""Regret: the reference figures, honest bands, baselines, and what is refused."""

import csv

import numpy as np
import pytest
from scipy import stats

import restive as rs
from learning_cases import (
    CASES,
    channels,
    controlled,
    joint,
    own_rule,
    small_independent,
    small_joint,
    true_bandit,
)

LEVELS = np.arange(1, 10) / 10

# PAPER_NOTES, Bayesian setting: regret at T=2000 to +-0.3, episodes (20,000 replications).
BAYESIAN = {"best_fixed": (46.7, 357), "myopic": (59.6, 407), "whittle": (72.9, 444)}
# Frequentist instance at T=10000: episodes.
FREQUENTIST = {"best_fixed": 856, "myopic": 652, "whittle": 610}


@pytest.mark.parametrize("mapping", BAYESIAN)
def test_bayesian_reference_figures(mapping):
    """Four standard errors of the difference: false-alarm rate 6e-5 each.

    The notes' 0.3 is taken as their standard error; that of their episodes is scaled from ours,
    and 0.5 is for their rounding.
    """
    regret, episodes = BAYESIAN[mapping]
    found = rs.bayesian_regret(
        rs.grid_prior(LEVELS, 8), 3, mapping, 2000, replications=3000, seed=20, times=[500, 2000]
    )
    assert abs(found.mean[-1] - regret) < 4 * np.hypot(found.stderr[-1], 0.3)
    spread = {"best_fixed": 126, "myopic": 79, "whittle": 67}[mapping]  # of one replication
    error = spread * np.sqrt(1 / 3000 + 1 / 20_000)
    assert abs(found.num_episodes[-1] - episodes) < 4 * error + 0.5
    assert found.stderr[-1] < 0.02 * regret  # coupled and with expected rewards


@pytest.mark.parametrize("mapping", FREQUENTIST)
def test_frequentist_reference_figures(mapping, paper_bandit):
    """The notes say "about": within 2% and four of our own standard errors."""
    prior = rs.grid_prior(LEVELS, 4)
    found = rs.frequentist_regret(
        paper_bandit, prior, mapping, 10_000, replications=200, seed=21, times=[10_000]
    )
    spread = {"best_fixed": 213, "myopic": 88, "whittle": 81}[mapping]
    error = 4 * spread / np.sqrt(200)
    assert abs(found.num_episodes[-1] - FREQUENTIST[mapping]) < error + 0.02 * FREQUENTIST[mapping]
    exact = {"best_fixed": 1.0, "myopic": 1.0912173602, "whittle": 1.1190875224}[mapping]
    assert found.baseline == "exact: J t"
    assert found.average_reward_of_truth == pytest.approx(exact, abs=1e-9)


def test_the_mean_of_j_over_the_papers_prior():
    """E J = 2.067048 for best fixed; false-alarm rate 6e-5."""
    prior = rs.grid_prior(LEVELS, 8)
    found = rs.bayesian_regret(
        prior, 3, "best_fixed", 1, replications=20_000, seed=3, baseline="exact"
    )
    assert abs(found.average_reward_of_truth - 2.067048) < 4 * 0.25 / np.sqrt(20_000)


def test_the_band_covers_the_value_of_a_far_longer_run():
    """1500 estimates of 40 replications each, against one of 200,000.

    A normal band from 40 samples of a normal law covers 94.3%. Were that so, fewer than 92% or more
    than 98.5% of 1500 would be covered with probability 1.1e-4.
    """
    prior, num_pulls = small_independent()
    given = {"horizon": 30, "times": [30]}
    value = rs.bayesian_regret(prior, num_pulls, "whittle", replications=200_000, seed=1, **given)
    covered = 0
    for seed in range(1500):
        found = rs.bayesian_regret(
            prior, num_pulls, "whittle", replications=40, seed=100 + seed, **given
        )
        covered += found.lower[0] <= value.mean[0] <= found.upper[0]
    assert stats.binom.cdf(1379, 1500, 0.943) + stats.binom.sf(1477, 1500, 0.943) < 1.1e-4
    assert 1380 <= covered <= 1477


@pytest.mark.parametrize("case", CASES)
def test_expected_and_realised_rewards_have_one_mean(case):
    """Their difference has mean zero; false-alarm rate 6e-5 for each of two curves."""
    prior, num_pulls = CASES[case]()
    given = {"horizon": 60, "replications": 3000, "seed": 4, "times": [1, 60]}
    curves = [
        rs.bayesian_regret(prior, num_pulls, "whittle", rewards=kind, **given)
        for kind in ("expected", "realised")
    ]
    assert [curve.rewards for curve in curves] == ["expected", "realised"]
    assert np.array_equal(curves[0].num_episodes, curves[1].num_episodes)
    difference = curves[0].samples - curves[1].samples
    error = difference.std(axis=0, ddof=1) / np.sqrt(3000)
    assert (np.abs(difference.mean(axis=0)) <= 4 * error + 1e-12).all()
    assert curves[0].stderr[-1] < curves[1].stderr[-1]


@pytest.mark.parametrize("mapping", ["best_fixed", "myopic", "whittle", "lp_priority", own_rule])
def test_coupled_and_exact_baselines_differ_by_the_span_of_the_bias(mapping):
    """The same learner twice; four standard errors of the difference: false-alarm rate 6e-5."""
    prior, num_pulls = small_independent()
    bandit = true_bandit(prior, num_pulls)
    replications = 15 if mapping == "lp_priority" else 2000
    given = {"horizon": 200, "replications": replications, "seed": 8, "times": [50, 200]}
    exact, coupled, automatic = (
        rs.frequentist_regret(bandit, prior, mapping, baseline=kind, **given)
        for kind in ("exact", "coupled", "auto")
    )
    assert exact.baseline == automatic.baseline == "exact: J t"
    assert coupled.baseline.startswith("coupled")
    assert np.array_equal(exact.mean, automatic.mean)
    assert np.array_equal(exact.average_reward, coupled.average_reward)
    if callable(mapping):
        policy = rs.policies.index_policy(bandit, mapping)
    else:
        policy = rs.registry.policy_mapping(mapping)(bandit)
    value = rs.evaluate(bandit, policy)
    assert exact.average_reward_of_truth == pytest.approx(value.average_reward, rel=1e-12)
    difference = exact.samples - coupled.samples  # what the truth's policy misses of J t
    error = difference.std(axis=0, ddof=1) / np.sqrt(replications)
    assert (np.abs(difference.mean(axis=0)) <= value.bias_span + 4 * error + 1e-9).all()
    per_step = coupled.average_reward_of_truth
    assert abs(per_step - value.average_reward) * 200 <= value.bias_span + 4 * error[-1] + 1e-9


def test_exact_regret_of_systems_drawn_from_the_prior():
    prior, num_pulls = small_joint()
    given = {"horizon": 40, "replications": 30, "seed": 2, "times": [10, 40]}
    for mapping in ("whittle", "optimal"):
        exact = rs.bayesian_regret(prior, num_pulls, mapping, baseline="exact", **given)
        coupled = rs.bayesian_regret(prior, num_pulls, mapping, **given)
        assert coupled.baseline.startswith("coupled")
        values = [
            rs.evaluate(bandit, rs.registry.policy_mapping(mapping)(bandit))
            for bandit in prior.bandits
        ]
        earned = coupled.average_reward * exact.times
        expected = exact.average_reward_of_truth * exact.times - earned
        assert exact.mean == pytest.approx(expected, abs=1e-9)
        rates = np.array([value.average_reward for value in values])
        drawn = (exact.samples[:, 1] - exact.samples[:, 0])[:, None]
        assert np.isfinite(drawn).all()
        assert rates[prior.weights > 0].min() <= exact.average_reward_of_truth <= rates.max()


def test_a_rule_of_the_users_is_measured_by_itself_whatever_its_name():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)

    def best_fixed(arm):
        return own_rule(arm)

    curves = [
        rs.frequentist_regret(bandit, prior, rule, horizon=30, replications=5)
        for rule in (best_fixed, own_rule)
    ]
    assert np.array_equal(curves[0].mean, curves[1].mean)


def test_a_learner_that_knows_the_truth_has_no_regret():
    for case in (channels, controlled):
        prior, num_pulls = case()
        bandit = true_bandit(prior, num_pulls)
        known = rs.IndependentPrior([rs.ArmPrior([arm]) for arm in bandit.arms])
        for rewards in ("expected", "realised"):
            found = rs.frequentist_regret(
                bandit, known, "whittle", 100, replications=20, baseline="coupled", rewards=rewards
            )
            assert found.mean == pytest.approx(np.zeros(len(found.times)), abs=1e-12)


def test_the_summary_is_that_of_the_samples():
    prior, num_pulls = joint()
    found = rs.bayesian_regret(
        prior, num_pulls, "myopic", 40, replications=25, seed=1, times=[1, 7, 40]
    )
    assert found.samples.shape == (25, 3)
    assert found.replications == 25
    assert found.policy_mapping == "myopic"
    assert found.mean == pytest.approx(found.samples.mean(axis=0))
    assert found.stderr == pytest.approx(found.samples.std(axis=0, ddof=1) / 5)
    quantile = stats.t.ppf(0.975, found.replications - 1)
    assert found.upper - found.mean == pytest.approx(quantile * found.stderr, rel=1e-6)
    assert found.mean - found.lower == pytest.approx(quantile * found.stderr, rel=1e-6)
    assert found.num_episodes[0] == 1
    assert (np.diff(found.num_episodes) > 0).all()
    assert ((found.average_reward > 0) & (found.average_reward < num_pulls)).all()


def test_a_single_replication_has_no_standard_error():
    found = rs.bayesian_regret(*channels(), "myopic", 10, replications=1)
    assert np.isnan(found.stderr).all()
    assert np.isfinite(found.mean).all()


def test_default_times_run_to_the_horizon():
    for horizon in (1, 2, 10, 1000):
        found = rs.bayesian_regret(*channels(), "myopic", horizon, replications=2)
        times = found.times
        assert times[0] == 1
        assert times[-1] == horizon
        assert (np.diff(times) > 0).all()
        assert len(times) <= 50
        if horizon == 1000:
            assert len(times) > 35
            late = times[times > 50]
            assert np.ptp(np.diff(np.log(late))) < 0.03  # evenly in the logarithm


def test_recorded_times_do_not_change_what_happens():
    prior, num_pulls = channels()
    few = rs.bayesian_regret(prior, num_pulls, "whittle", 60, replications=5, times=[60])
    many = rs.bayesian_regret(prior, num_pulls, "whittle", 60, replications=5, times=range(1, 61))
    assert few.samples[:, 0].tobytes() == many.samples[:, -1].tobytes()
    assert many.samples.shape == (5, 60)


def test_threads_leave_the_curve_as_it_is_and_more_replications_extend_it():
    prior, num_pulls = channels()
    one, two = (
        rs.bayesian_regret(
            prior, num_pulls, "whittle", 50, replications=130, seed=3, threads=threads
        )
        for threads in (1, 2)
    )
    assert one.samples.tobytes() == two.samples.tobytes()
    more = rs.bayesian_regret(prior, num_pulls, "whittle", 50, replications=200, seed=3)
    assert more.samples[:130].tobytes() == one.samples.tobytes()


def test_the_horizon_can_be_hidden():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls)
    for measured in (
        lambda **more: rs.bayesian_regret(prior, num_pulls, "myopic", 200, replications=3, **more),
        lambda **more: rs.frequentist_regret(bandit, prior, "myopic", 200, replications=3, **more),
    ):
        known, hidden = measured(times=[200]), measured(times=[200], doubling=True)
        assert known.num_episodes[0] != hidden.num_episodes[0]
        told = []
        measured(progress=told.append)
        assert sum(told) == 3


def test_a_truth_outside_the_prior_can_be_measured():
    prior, num_pulls = channels()
    bandit = true_bandit(prior, num_pulls, inside=False)
    found = rs.frequentist_regret(bandit, prior, "whittle", 100, replications=50)
    assert found.baseline == "exact: J t"
    assert found.mean[-1] > 0


def test_csv_round_trip(tmp_path):
    found = rs.bayesian_regret(*channels(), "whittle", 50, replications=4, times=[1, 20, 50])
    path = tmp_path / "curve.csv"
    found.to_csv(path)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["time"]) for row in rows] == [1, 20, 50]
    for column, values in {
        "regret": found.mean,
        "stderr": found.stderr,
        "lower": found.lower,
        "upper": found.upper,
        "average_reward": found.average_reward,
        "num_episodes": found.num_episodes,
    }.items():
        assert [float(row[column]) for row in rows] == values.tolist()  # to the bit
    assert [entry.name for entry in tmp_path.iterdir()] == ["curve.csv"]


def test_a_failed_csv_leaves_the_old_one(tmp_path):
    found = rs.bayesian_regret(*channels(), "whittle", 5, replications=2)
    path = tmp_path / "curve.csv"
    path.write_text("old")
    broken = rs.types.RegretCurve(**(vars(found) | {"mean": found.mean[:-1]}))
    with pytest.raises(ValueError, match=r"shape|zip"):
        broken.to_csv(path)
    assert path.read_text() == "old"


def test_plot_draws_the_mean_and_the_band():
    found = rs.bayesian_regret(*channels(), "whittle", 50, replications=4)
    axes = found.plot()
    (line,) = axes.get_lines()
    assert line.get_xdata().tolist() == found.times.tolist()
    assert line.get_ydata().tolist() == found.mean.tolist()
    assert line.get_label() == "tsde, whittle"
    (band,) = axes.collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == pytest.approx(found.lower.min())
    assert corners[:, 1].max() == pytest.approx(found.upper.max())
    again = found.plot(ax=axes)
    assert again is axes
    found.plot(axes, label="mine")
    assert [line.get_label() for line in axes.get_lines()][2:] == ["mine"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"replications": 0}, "replications must be at least 1, got 0"),
        ({"replications": 2.0}, "replications must be a whole number"),
        ({"horizon": 0}, "horizon must be"),
        ({"horizon": 10.0}, "horizon must be"),
        ({"times": [1, 9]}, "times must rise from at least 1 to the horizon, 10; got"),
        ({"times": [0, 10]}, "times must rise from at least 1"),
        ({"times": [5, 5, 10]}, "times must rise from at least 1"),
        ({"times": [7, 5, 10]}, "times must rise from at least 1"),
        ({"times": []}, "times must be a list of whole numbers"),
        ({"times": 1}, "times must be at least 2"),
        ({"times": [1.0, 10.0]}, "times must be a list of whole numbers"),
        ({"baseline": "best"}, "baseline must be one of .*coupled.*, got 'best'"),
        ({"rewards": "mean"}, "rewards must be one of expected, realised, got 'mean'"),
        ({"threads": 0}, "threads must be"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"policy_mapping": "wittle"}, "did you mean 'whittle'"),
        ({"mixing_time": 0}, "mixing_time must be"),
    ],
)
def test_what_is_refused(given, message):
    prior, num_pulls = channels()
    given = {"horizon": 10, "replications": 3} | given
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.bayesian_regret(prior, num_pulls, **given)
    with pytest.raises(rs.errors.ProblemError, match=message):
        rs.frequentist_regret(true_bandit(prior, num_pulls), prior, **given)


def test_exact_values_that_cannot_be_had_are_an_error_or_coupled():
    prior = rs.grid_prior([0.2, 0.4, 0.6, 0.8], 8)
    with pytest.raises(rs.errors.TooLargeError, match="more than 50,000 joint states"):
        rs.bayesian_regret(prior, 3, "whittle", 5, replications=3, baseline="exact")
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.2 + 0.05 * k, 0.6) for k in range(8)], 3)
    with pytest.raises(rs.errors.TooLargeError, match="more than 50,000 joint states"):
        rs.frequentist_regret(bandit, prior, "whittle", 5, replications=3, baseline="exact")
    found = rs.frequentist_regret(bandit, prior, "whittle", 5, replications=3)
    assert found.baseline.startswith("coupled")


def test_too_many_systems_for_exact_values(monkeypatch):
    monkeypatch.setattr("restive.measure.regret.MOST_SYSTEMS_FOR_J", 3)
    prior, num_pulls = channels()
    with pytest.raises(rs.errors.TooLargeError, match="different systems were drawn"):
        rs.bayesian_regret(prior, num_pulls, "myopic", 5, replications=40, baseline="exact")
