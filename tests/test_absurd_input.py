"""Input that nobody means: each gets one RestiveError, before a kernel is let loose on it."""

import json
import os

import numpy as np
import pytest

import restive as rs
from restive.files import replacing

CHANNEL = rs.gilbert_elliott(0.3, 0.7)
BANDIT = rs.RestlessBandit([CHANNEL] * 3, 1)
PRIOR = rs.grid_prior([0.1, 0.5, 0.9], 3)


class Choosing:
    """A policy that always selects the same."""

    def __init__(self, arms):
        self.arms = arms

    def select(self, state):
        return self.arms


@pytest.mark.parametrize("arms", [[-1], [3], [0, 0], [0, 1], [], [0.5], None, ["a"]])
def test_a_mapping_whose_policy_selects_nonsense(arms):
    def mapping(bandit):
        assert isinstance(bandit, rs.RestlessBandit)
        return Choosing(arms)

    agent = rs.TSDE(PRIOR, 1, mapping)
    with pytest.raises(
        rs.errors.ProblemError, match=r"the policy selected .* expected 1 different arms"
    ):
        agent.select()


@pytest.mark.parametrize("elapsed", [10**15 + 1, 2**62, 2**63 - 1])
def test_an_age_beyond_all_times(elapsed):
    with pytest.raises(rs.errors.ProblemError, match="elapsed must be at most"):
        rs.BeliefState([0], [elapsed])


def test_the_oldest_start_that_is_allowed_runs():
    start = rs.BeliefState([0] * 3, [10**15] * 3)
    curve = rs.bayesian_regret(PRIOR, 1, horizon=50, replications=3, start=start)
    assert np.isfinite(curve.mean).all()


def edited(path, value):
    agent = rs.TSDE(PRIOR, 1, seed=3)
    for _ in range(5):
        agent.observe([1] * len(agent.select()))
    agent.select()
    data = json.loads(json.dumps(agent.snapshot()))
    place = data
    for key in path[:-1]:
        place = place[key]
    assert place[path[-1]] != value
    place[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seen", 1, 0), 10**9),
        (("seen", 2, 0), 10**12),
        (("posterior", "changed", 1), [-1]),
        (("posterior", "groups", 0), 10**9),
        (("episodes", "clock", "REASON"), 10**9),
        (("selected",), [-1]),
        (("posterior", "weights", 0, 0, 0), float("nan")),
        (("posterior", "weights", 0, 0, 1), 0.125),
        (("posterior", "lost", 0), 10**12),
        (("evidence", "0", "cells", 0, 3), 2),
        (("replication",), "a"),
        (("mixing_time",), 10**15),
        (("checksum",), "0"),
    ],
)
def test_a_snapshot_that_was_edited(path, value):
    with pytest.raises(rs.errors.ProblemError, match="checksum does not match"):
        rs.restore(edited(path, value))


@pytest.mark.parametrize("gap", [1e-8, 1e-9, 1e-12, 2**-53])
def test_a_discount_that_floating_point_cannot_tell_from_one(gap):
    with pytest.raises(rs.errors.ProblemError, match="discount must be 1 or at most 1 - 1e-7"):
        rs.policies.whittle_index(CHANNEL, discount=1 - gap)


def test_the_largest_discount_below_one_is_close_to_the_average():
    found = rs.policies.whittle_index(CHANNEL, discount=1 - 1e-7)
    assert found.indexable
    assert found.index == pytest.approx(rs.policies.whittle_index(CHANNEL).index, abs=1e-5)


def test_a_candidate_of_weight_zero_may_be_anything():
    absorbing = rs.gilbert_elliott(0.0, 0.5)
    agents = [
        rs.TSDE(rs.IndependentPrior([rs.ArmPrior(*given)] * 2), 1, seed=1)
        for given in (([absorbing, CHANNEL], [0, 1]), ([CHANNEL], [1]))
    ]
    for _ in range(60):
        arms = [agent.select().tolist() for agent in agents]
        assert arms[0] == arms[1]
        for agent in agents:
            agent.observe([1])
    assert agents[0].posterior(0).weights.tolist() == [0, 1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: rs.TSDE(PRIOR, 1, horizon=100, mixing_time=10**12),
        lambda: rs.bayesian_regret(PRIOR, 1, horizon=10, replications=10**14),
        lambda: rs.bayesian_regret(PRIOR, 1, horizon=2**64, replications=2),
        lambda: rs.simulate(BANDIT, rs.myopic(BANDIT), 10**13),
        lambda: rs.policies.whittle_index(CHANNEL, max_elapsed=10**12),
        lambda: rs.grid_prior([0.1], 10**12),
        lambda: rs.RestlessBandit(CHANNEL, 1),
        lambda: rs.RestlessBandit(3, 1),
        lambda: rs.ArmPrior(None),
        lambda: rs.IndependentPrior(rs.ArmPrior([CHANNEL])),
        lambda: rs.JointPrior(None),
        lambda: rs.TSDE(PRIOR, 1, start=3),
        lambda: rs.evaluate(BANDIT, None),
        lambda: rs.evaluate(BANDIT, "whittel"),
        lambda: rs.evaluate(BANDIT, rs.myopic(BANDIT), start=3),
        lambda: rs.evaluate(BANDIT, rs.myopic(BANDIT), max_states="a"),
        lambda: rs.policies.index_policy(BANDIT, None),
        lambda: rs.simulate(BANDIT, "whittel", 10),
        lambda: rs.World(None),
        lambda: rs.World(BANDIT, replication="a"),
        lambda: rs.frequentist_regret(PRIOR, BANDIT),
        lambda: rs.TSDE(PRIOR, 1).posterior("a"),
        lambda: rs.TSDE(PRIOR, 1).belief(1.5),
        lambda: rs.Arm(np.array([[1j]]), rewards=[0]),
    ],
)
def test_what_is_no_such_thing_or_far_too_large(call):
    with pytest.raises(rs.RestiveError):
        call()


SLIP = 10**12


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: rs.grid_prior([0.1], num_arms=SLIP), "num_arms must be .* got 1000000000000"),
        (lambda: rs.RestlessBandit(range(SLIP), 1), "number of arms must be .* got 1000000000000"),
        (lambda: rs.RestlessBandit([CHANNEL], SLIP), "number of arms, 1, got 1000000000000"),
        (lambda: rs.RestlessBandit([CHANNEL], 10**5000), "arms, 1, got a very large number"),
        (lambda: rs.TSDE(PRIOR, 1, horizon=10**5000), "horizon .* got a very large number"),
        (
            lambda: rs.bayesian_regret(PRIOR, 1, horizon=10, replications=10**14),
            "results of 100,000,000,000,000 replications of 3 arms, recorded .* would take",
        ),
    ],
)
def test_a_slip_in_a_number_is_named_before_anything_is_tried(call, named, monkeypatch):
    monkeypatch.setattr("restive.measure.regret.tell_if_long", None)  # which tries out how long
    with pytest.raises(rs.RestiveError, match=named):
        call()


def test_very_large_weights_are_weights():
    assert rs.ArmPrior([CHANNEL, rs.gilbert_elliott(0.9, 0.9)], [1e308] * 2).weights.tolist() == [
        0.5,
        0.5,
    ]


def test_ctrl_c_while_a_file_is_made_leaves_nothing(tmp_path, monkeypatch):
    """At the worst moment: the temporary file is there, and its name not yet handed on."""
    real = os.close

    def interrupted(handle):
        real(handle)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "close", interrupted)
    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "a.chunk"):
        pass
    monkeypatch.undo()
    assert list(tmp_path.iterdir()) == []


def test_files_have_the_rights_that_new_files_have(tmp_path):
    (tmp_path / "plain").touch()
    with replacing(tmp_path / "a.chunk") as temporary:
        temporary.write_bytes(b"whole")
    modes = {path.name: path.stat().st_mode for path in tmp_path.iterdir()}
    assert modes == {"plain": modes["plain"], "a.chunk": modes["plain"]}


def test_files_are_written_through_links_and_never_over_devices(tmp_path):
    curve = rs.bayesian_regret(PRIOR, 1, horizon=5, replications=2)
    target, link = tmp_path / "real.csv", tmp_path / "link.csv"
    target.write_text("old")
    link.symlink_to(target)
    curve.to_csv(link)
    assert link.is_symlink()
    assert target.read_text().startswith("time,")
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(rs.RestiveError, match="not a regular file"):
        curve.to_csv(tmp_path / "pipe.csv")


def test_a_registered_mapping_given_as_a_function_is_in_the_snapshot():
    agent = rs.TSDE(PRIOR, 1, policy_mapping=rs.whittle, seed=2)
    agent.select()
    assert rs.restore(agent.snapshot()).select().tolist() == agent.select().tolist()
