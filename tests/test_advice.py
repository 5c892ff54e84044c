"""What a message of planning advises is done here, in Python and on the command line."""

import json
import re

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.plan.joint_chain import JointStates
from restive.problem.bandit import kinds_of

PERIODIC = """
[[arm]]
active = [[0.5, 0.5], [0.2, 0.8]]
passive = [[0.0, 1.0], [1.0, 0.0]]
rewards = [0.0, 1.0]
"""
QUICK = """
[[arm]]
p01 = 0.3
p11 = 0.6
"""
HELD_BACK = """
[[arm]]
active = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
passive = [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]]
rewards = [0.0, 0.5, 0.9]
"""
EARN_ALIKE = """
[[arm]]
active = [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
passive = [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]]
rewards = [0.5, 0.0, 1.0]
"""
SLOW = """
[[arm]]
p01 = 5e-4
p11 = 0.9995
"""


@pytest.fixture
def plan(tmp_path):
    """Run `restive plan` on arms; its JSON, or its message."""

    def run(arms, *options):
        path = tmp_path / "problem.toml"
        path.write_text("num_pulls = 1\n" + arms)
        words = ["plan", str(path), "--json", *options]
        result = CliRunner().invoke(app, words)
        if isinstance(result.exception, rs.RestiveError):
            return str(result.exception)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


@pytest.mark.parametrize(
    ("arms", "words", "options"),
    [
        (PERIODIC, "pass --discount below 1, and --max-elapsed", ["--max-elapsed", "30"]),
        (HELD_BACK, "pass --discount below 1", []),
        (EARN_ALIKE, "pass --discount below 1", []),
    ],
)
def test_a_discount_gives_an_index_where_the_average_reward_has_none(plan, arms, words, options):
    message = plan(arms + QUICK)
    assert message.startswith("arm 0: ")
    assert words in message
    found = plan(arms + QUICK, "--discount", "0.95", *options)
    assert found["discount"] == 0.95
    assert np.isfinite(found["arms"][0]["limiting_index"])
    values = {row["policy"]: row["average_reward"] for row in found["policies"]}
    assert values["whittle"] > 0
    assert values["myopic"] > 0


def test_a_discount_is_that_of_the_index_and_leaves_the_rest_alone(plan):
    plain, discounted = (
        plan(QUICK + SLOW.replace("5e-4", "0.1").replace("0.9995", "0.9")),
        plan(QUICK + SLOW.replace("5e-4", "0.1").replace("0.9995", "0.9"), "--discount", "0.5"),
    )
    assert plain["discount"] == 1
    assert plain["relaxation_bound"] == discounted["relaxation_bound"]
    limits = [[arm["limiting_index"] for arm in found["arms"]] for found in (plain, discounted)]
    assert limits[0] != limits[1]
    for policy in (1, 3, 4):
        assert plain["policies"][policy] == discounted["policies"][policy]


def test_a_bound_needs_no_index(plan):
    """Pulling holds the chain back, so there is no index; gain and bound are there all the same."""
    found = plan(HELD_BACK + QUICK, "--discount", "0.9")
    assert found["note"] == ""
    values = {row["policy"]: row["average_reward"] for row in found["policies"]}
    assert values["lp_priority"] <= values["optimal"] <= found["relaxation_bound"] + 1e-9


def test_where_there_is_no_bound_the_plan_says_why(plan):
    found = plan(PERIODIC + QUICK, "--discount", "0.9", "--max-elapsed", "20")
    assert found["relaxation_bound"] is None
    assert "the passive chain is periodic" in found["note"]
    assert found["arms"][0]["mixing_time"] is None
    assert all(row["share_of_bound"] is None for row in found["policies"])


def test_a_number_of_ages_plans_arms_that_mix_too_slowly(plan):
    message = plan(SLOW + QUICK)
    (ages,) = re.findall(r"pass --max-elapsed (\d+)", message)
    found = plan(SLOW + QUICK, "--max-elapsed", ages, "--max-states", "1000")
    assert found["arms"][0]["limiting_index"] > 0
    values = {row["policy"]: row["average_reward"] for row in found["policies"]}
    assert 0.5 <= values["whittle"] <= found["relaxation_bound"]


def test_ages_hold_the_belief_of_a_chain_that_never_settles():
    arm = rs.RestlessBandit.from_toml("num_pulls = 1\n" + PERIODIC).arms[0]
    with pytest.raises(rs.errors.AssumptionError, match="give max_elapsed, the same wherever"):
        rs.theory.belief_table(arm)
    assert rs.theory.belief_table(arm, 7).shape == (2, 7, 2)


def test_fewer_ages_make_a_table_that_fits():
    arm = rs.Arm(np.full((100, 100), 0.01), rewards=np.linspace(0, 1, 100))
    with pytest.raises(rs.errors.TooLargeError, match="use a smaller max_elapsed"):
        rs.theory.belief_table(arm, 100_000)
    assert rs.theory.belief_table(arm, 10).shape == (100, 10, 100)


class LastFirst:
    """A policy of one's own, which cannot be simulated."""

    def __init__(self, bandit):
        self.bandit = bandit

    def select(self, state):
        return np.sort(np.argsort(-state.elapsed, kind="stable")[: self.bandit.num_pulls])


def test_more_states_solve_a_policy_that_cannot_be_simulated():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6)] * 3, 1)
    with pytest.raises(
        rs.errors.TooLargeError,
        match=r"more than 5 joint states of 3 arms.*; raise max_states; only",
    ):
        rs.evaluate(bandit, LastFirst(bandit), max_states=5)
    assert rs.evaluate(bandit, LastFirst(bandit), max_states=5000).stderr == 0


def test_fewer_pulls_make_a_joint_chain():
    arms = [rs.gilbert_elliott(0.3, 0.6)] * 14
    many, few = rs.RestlessBandit(arms, 13), rs.RestlessBandit(arms, 12)
    with pytest.raises(rs.errors.TooLargeError, match=r"can end in 8,192 ways.*pull fewer arms"):
        rs.evaluate(many, LastFirst(many))
    kinds = kinds_of(few)
    assert JointStates(few, kinds, np.array([2])).most_outcomes == 4096


def test_every_way_to_a_small_optimum_that_the_refusal_names():
    arms = [
        rs.gilbert_elliott(0.3, 0.8),
        rs.gilbert_elliott(0.2, 0.7),
        rs.gilbert_elliott(0.4, 0.6),
    ]
    bandit = rs.RestlessBandit(arms, 1)
    with pytest.raises(rs.errors.TooLargeError) as caught:
        rs.optimal(bandit, max_states=500)
    for way in ("raise max_states", "lower max_elapsed", "whittle or lp_priority", "_bound"):
        assert way in str(caught.value)
    best = rs.optimal(bandit, max_states=100_000).average_reward
    assert rs.optimal(bandit, max_states=500, max_elapsed=5).average_reward > 0
    for name in ("whittle", "lp_priority"):
        assert rs.evaluate(bandit, name).average_reward <= best + 1e-9
    assert best <= rs.relaxation_bound(bandit)
