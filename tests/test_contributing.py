"""CONTRIBUTING's ways to add a policy and a learner from outside, followed to the letter."""

import numpy as np
import pytest

import restive as rs

STUDY = """
kind = "bayesian"
horizon = 40
replications = 6
seed = 1
num_pulls = 1
policy_mappings = ["oldest_first"]
learners = ["tsde", "coin"]

[prior]
levels = [0.3, 0.7]
num_arms = 3
"""


def oldest_first(arm):
    """Index of an arm [S, L]: its age, whatever its state."""
    return np.tile(np.arange(1.0, 9.0), (arm.num_states, 1))


class Coin:
    """Pulls any arm, whatever was seen."""

    def __init__(self, task, seed):
        self.rng = np.random.default_rng(seed)
        self.task = task

    def select(self):
        return self.rng.choice(self.task.num_arms, self.task.num_pulls, replace=False)

    def observe(self, states):
        pass


@pytest.fixture
def from_outside():
    rs.registry.register_mapping("oldest_first", oldest_first)
    rs.registry.register_learner("coin", Coin)
    yield
    rs.registry.unregister_learner("coin")
    rs.registry.unregister_mapping("oldest_first")


def test_a_policy_and_a_learner_from_outside_run_in_a_study(from_outside, tmp_path):
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    study = rs.load_study(tmp_path / "study.toml")
    rs.run_study(study, tmp_path / "results")
    found = {case.case.settings.learners[0]: case for case in rs.load_results(tmp_path / "results")}
    assert set(found) == {"tsde", "coin"}
    # with one arm a step, the oldest first is a tour of all arms, and TSDE follows it whatever it
    # draws: no regret at all. A coin does worse or better, but never the same.
    assert np.abs(found["tsde"].regret.mean).max() < 1e-9
    assert np.abs(found["coin"].regret.mean).max() > 1e-3


def test_once_removed_their_names_are_unknown(from_outside, tmp_path):
    rs.registry.unregister_learner("coin")
    rs.registry.unregister_mapping("oldest_first")
    try:
        (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
        with pytest.raises(rs.RestiveError) as error:
            rs.load_study(tmp_path / "study.toml")
        assert "coin" in str(error.value)
        assert "oldest_first" in str(error.value)
    finally:
        rs.registry.register_learner("coin", Coin)
        rs.registry.register_mapping("oldest_first", oldest_first)
