"""What `restive plan` ends with, and `restive pick`: each number against a second method."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.plan.picks import pick_arms, read_sightings
from restive.plan.policies.registry import as_policy
from restive.plan.recommendation import Earned, Gain, arm_titles, recommend, round_robin_reward
from restive.plan.recommendation_words import gain_in_words, recommendation_sentences
from restive.plan.summary import plan_bandit
from restive.problem.problem_file import problem_to_toml

CHANNELS = [rs.gilbert_elliott(p01, p11) for p01, p11 in [(0.3, 0.7), (0.4, 0.6), (0.2, 0.9)]]
PATIENT = rs.Arm(
    [[0.5, 0.5], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0.0, 1.0], [0.0, 1.0], name="Ann",
    states=["ill", "well"],
)  # fmt: skip
THREE = rs.Arm(
    [[0.6, 0.2, 0.2], [0.2, 0.5, 0.3], [0.3, 0.3, 0.4]],
    [[0.5, 0.3, 0.2], [0.3, 0.4, 0.3], [0.2, 0.2, 0.6]], [0.0, 0.4, 1.0],
)  # fmt: skip
BANDITS = {
    "one of three": rs.RestlessBandit(CHANNELS, 1),
    "two of three": rs.RestlessBandit(CHANNELS, 2),  # pulls at distances of 1 and 2
    "all": rs.RestlessBandit(CHANNELS, 3),
    "controlled, paying always": rs.RestlessBandit([PATIENT, PATIENT, CHANNELS[0]], 1),
    "three states": rs.RestlessBandit([THREE, CHANNELS[1]], 1),
    "two of four": rs.RestlessBandit([PATIENT, *CHANNELS], 2),
}


def run(*words):
    """Run a command in this process; what it prints, in one line."""
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return " ".join(result.stdout.split())


@pytest.mark.parametrize("name", BANDITS)
def test_taking_turns_earns_what_its_joint_chain_says(name):
    """The formula by arms against the joint chain of all arms, solved as for any policy."""
    bandit = BANDITS[name]
    exact = rs.evaluate(bandit, "round_robin", max_elapsed=6)
    assert exact.stderr == 0
    assert round_robin_reward(bandit) == pytest.approx(exact.average_reward, abs=1e-9)


def test_taking_turns_among_very_many_arms_is_quick_and_has_a_limit():
    """A million equal arms, one pull: pulled so rarely, each shows its stationary law."""
    many = rs.RestlessBandit([CHANNELS[0]] * 1_000_000, 1)
    assert round_robin_reward(many) == pytest.approx(0.5)
    stuck = rs.Arm(np.eye(2), np.eye(2), [0.0, 1.0])  # what it earns depends on the start
    assert round_robin_reward(rs.RestlessBandit([stuck, CHANNELS[0]], 1)) is None


def test_the_recommendation_is_the_simplest_policy_that_earns_as_much_as_any():
    bandit = BANDITS["one of three"]
    policies = {name: rs.registry.policy_mapping(name)(bandit) for name in ("whittle", "optimal")}
    policies["best_fixed"] = rs.policies.best_fixed(bandit)

    def chosen(**earned):
        return recommend(bandit, {n: Earned(*e) for n, e in earned.items()}, policies, None).policy

    assert chosen(best_fixed=(1.0, 0), whittle=(1.0005, 0), optimal=(1.0006, 0)) == "best_fixed"
    assert chosen(best_fixed=(1.0, 0), whittle=(1.1, 0), optimal=(1.1001, 0)) == "whittle"
    assert chosen(best_fixed=(1.0, 0), whittle=(1.1, 0), optimal=(1.2, 0)) == "optimal"
    assert chosen(best_fixed=(1.0, 0), whittle=(1.1, 0.1), optimal=(1.2, 0)) == "whittle"  # noise
    assert recommend(bandit, {}, {}, None) is None


@pytest.mark.parametrize("name", ["two of three", "controlled, paying always", "three states"])
def test_gains_are_differences_of_exact_values(name):
    bandit = BANDITS[name]
    found = plan_bandit(bandit).recommendation
    value = rs.evaluate(bandit, found.policy).average_reward
    turns = rs.evaluate(bandit, "round_robin", max_elapsed=6).average_reward
    fixed = rs.evaluate(bandit, "best_fixed").average_reward
    own = found.own_reward
    for gain, other in ((found.over_round_robin, turns), (found.over_best_fixed, fixed)):
        assert gain.low == gain.more == gain.high == pytest.approx(value - other, abs=1e-9)
        assert gain.share[0] == pytest.approx((value - other) / (other - own), abs=1e-7)
        share = gain.with_own(own).share[0]  # of all that the other way earns: what is printed
        assert share == pytest.approx(value / other - 1, abs=1e-7)
    said = recommendation_sentences(found, bandit)
    assert said[0].startswith(f"Recommended: {found.policy}. ")
    assert f"{value:.4f} (exact) per step" in said[1]
    assert f"than taking turns ({turns:.4f})" in said[1]
    if own:
        adds = f"pulls add {value - own:.4f}, taking turns {turns - own:.4f} and"
        assert said[2].startswith(f"Of that, {own:.4f} comes without any pull; {adds}")


def test_simulated_gains_have_intervals_that_hold_the_exact_ones():
    """20 seeds, 95% each: six or more misses would come by chance once in 3,000 times."""
    bandit = BANDITS["one of three"]
    exact = rs.evaluate(bandit, "whittle").average_reward
    turns = round_robin_reward(bandit)
    hits = 0
    for seed in range(20):
        value = rs.evaluate(bandit, "whittle", max_states=2, steps=400, seed=seed)
        earned = {"whittle": Earned(value.average_reward, value.stderr)}
        found = recommend(bandit, earned, {"whittle": rs.whittle(bandit)}, None)
        assert found.stderr > 0
        assert (
            f"(95%: {value.average_reward - 2 * value.stderr:.4f} to"
            in (recommendation_sentences(found, bandit)[1])
        )
        hits += found.over_round_robin.low <= exact - turns <= found.over_round_robin.high
    assert hits >= 15


@pytest.mark.parametrize(
    ("gain", "words"),
    [
        (Gain(1.0, 0.28, 0.28, 0.28), "28% more"),
        (Gain(1.0, 0.034, 0.034, 0.034), "3.4% more"),
        (Gain(1.0, -0.12, -0.12, -0.12), "12% less"),
        (Gain(1.0, 0.28, 0.2, 0.36), "28% (20 to 36) more"),
        (Gain(2.0, -0.4, -0.6, -0.2), "20% (10 to 30) less"),
        (Gain(1.0, 0.01, -0.02, 0.04), "as much, within the error (-2.0 to 4.0%)"),
        (Gain(1.0, 0.0, 0.0, 0.0), "as much"),
        (Gain(1.0, 1e-4, 5e-5, 2e-4), "as much"),
        (Gain(1.0, 0.023, 0.02299, 0.02301), "2.3% more"),
        (Gain(0.0, 0.25, 0.25, 0.25), "0.25 more per step"),  # no share of nothing
        (Gain(-1.0, 0.25, 0.2, 0.3), "0.25 (0.2 to 0.3) more per step"),
    ],
)
def test_gains_in_words(gain, words):
    assert gain_in_words(gain) == words


def test_the_plan_begins_with_a_recommendation_and_ends_with_a_command(tmp_path):
    path = tmp_path / "problem.toml"
    run("init", path)
    out = run("plan", path)
    assert "Recommended: whittle. In each step pull the arms with the highest Whittle index." in out
    assert "It earns 1.0962 (exact) per step: 23% more than taking turns (0.8929) and" in out
    assert "Pull first, if nothing was seen lately: arms downlink and 1; others are as good" in out
    assert out.startswith("Recommended: ")
    assert out.endswith(f"restive pick {path} --sightings last.csv")
    assert "estimates" not in out
    for name in ("prior.json", "arms.csv"):  # as beside the problem of a fit
        (tmp_path / name).touch()
    out = run("plan", path)
    assert "and what follows takes them as certain." in out
    assert out.index("These arms are estimates") < out.index("Recommended: whittle")
    assert out.endswith(f"restive pick {tmp_path}")
    wrote = run("plan", path, "--index-table", tmp_path / "i.csv", "--plot", tmp_path / "i.svg")
    assert wrote.endswith(f"written: {tmp_path / 'i.csv'}, {tmp_path / 'i.svg'}")


def test_where_pulls_make_no_difference_that_is_what_is_said(tmp_path):
    path = tmp_path / "idle.toml"
    path.write_text('pay = "always"\nnum_pulls = 1\n[[arm]]\np01 = 0.3\np11 = 0.6\ncount = 3')
    out = run("plan", path)
    assert "It makes no difference which arms you pull: every policy earns 1.2857 (exact)" in out
    assert "Recommended" not in out
    path.write_text("num_pulls = 3\n[[arm]]\np01 = 0.3\np11 = 0.6\ncount = 3")
    assert "Nothing to choose: all arms are pulled in every step" in run("plan", path)


PROBLEM = """
num_pulls = 2
states = ["ill", "well"]
[[arm]]
name = "Ann"
p01 = 0.3
p11 = 0.7
[[arm]]
name = "Bo"
p01 = 0.2
p11 = 0.5
[[arm]]
p01 = 0.4
p11 = 0.9
count = 2
"""


@pytest.fixture
def problem(tmp_path):
    """Return the path of a problem with names."""
    path = tmp_path / "people.toml"
    path.write_text(PROBLEM)
    return path


@pytest.mark.parametrize("policy", ["whittle", "optimal", "best_fixed", "round_robin"])
def test_the_list_is_what_the_policy_selects_with_a_reason_each(problem, tmp_path, policy):
    seen, out = tmp_path / "last.csv", tmp_path / "list.csv"
    seen.write_text("\ufeffArm;State;Ago\nAnn;ill;1\nBo;well;2\n2;1;1\n", encoding="utf-8")
    bandit = rs.load_problem(problem)
    state = rs.BeliefState([0, 1, 1, 1], [1, 2, 1, 10**6])
    assert read_sightings(seen, bandit) == state
    said = run("pick", problem, "--sightings", seen, "--policy", policy, "--out", out)
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    chosen = as_policy(policy, bandit).select(state)
    assert sorted(int(row["arm"]) for row in rows) == chosen.tolist()
    for row in rows:
        k = int(row["arm"])
        belief = np.linalg.matrix_power(bandit[k].active, min(int(state.elapsed[k]), 500))
        expected = belief[state.last_state[k], 1]
        assert float(row["expected_reward"]) == pytest.approx(expected, abs=1e-6)
        assert f"chance of {expected:.0%}" in row["reason"]
        assert ("not seen lately" in row["reason"]) == (k == 3)
    assert f"written: {out}" in said
    assert "pull 2 of 4 arms" in said


def test_the_reason_names_a_state_that_the_arm_may_be_in(tmp_path):
    """It said "now ok with a chance of 0%" of arms that stay broken until somebody comes."""
    path = tmp_path / "machines.toml"
    path.write_text(
        'num_pulls = 1\npay = "always"\nstates = ["broken", "ok"]\n[[arm]]\nrewards = [0, 1]\n'
        "count = 2\nactive = [[0, 1], [0, 1]]\npassive = [[1, 0], [0.2, 0.8]]\n"
    )
    picked = run("pick", path, "--out", tmp_path / "list.csv")
    assert "now broken with a chance of 100%" in picked
    seen = tmp_path / "last.csv"
    seen.write_text("arm,state,ago\n0,ok,2\n1,ok,3\n")
    picked = run("pick", path, "--sightings", seen, "--out", tmp_path / "list.csv")
    assert "now ok with a chance of 64%" in picked
    assert "A sighting is a pull" in " ".join(run("pick", "--help").replace("│", " ").split())


def test_the_highest_index_comes_first(problem):
    bandit = rs.load_problem(problem)
    policy = rs.whittle(bandit)
    state = rs.BeliefState([0, 1, 0, 1], [1, 1, 1, 1])
    picks = pick_arms(bandit, policy, state)
    assert [found.arm for found in picks] == np.argsort(-policy.index(state))[:2].tolist()
    assert [found.place for found in picks] == [1, 2]


def test_without_sightings_the_list_is_that_of_the_plan(problem, tmp_path):
    said = run("pick", problem, "--out", tmp_path / "list.csv")
    first = re.findall(r"^(\d+),(\d+)", (tmp_path / "list.csv").read_text(), re.M)
    recommended = plan_bandit(rs.load_problem(problem)).recommendation
    assert recommended.policy == "whittle"
    assert sorted(int(arm) for _, arm in first) == list(recommended.first)
    assert "No sightings were given" in said


def test_arms_that_are_always_seen_must_be_in_sightings(tmp_path):
    """What they are in now is known: a list that guesses it looks right and is wrong."""
    bandit = rs.RestlessBandit(
        [rs.gilbert_elliott(0.2, 0.8, name="press", seen="always"), rs.gilbert_elliott(0.2, 0.8)], 1
    )
    path = tmp_path / "last.csv"
    path.write_text("arm,state,ago\n1,0,3\n")
    with pytest.raises(rs.RestiveError, match=r"always seen are missing: press; give their"):
        read_sightings(path, bandit)
    for ago in ("", "0", "1"):
        path.write_text(f"arm,state,ago\n1,0,3\npress,0,{ago}\n")
        state = read_sightings(path, bandit)
        assert state.last_state.tolist() == [0, 0]
        assert state.elapsed.tolist() == [1, 3]
    path.write_text("arm,state,ago\n1,0,3\n0,0,3\n")
    with pytest.raises(rs.RestiveError, match="line 3: the arm is always seen: give its state now"):
        read_sightings(path, bandit)
    problem = tmp_path / "problem.toml"
    problem.write_text(problem_to_toml(bandit))
    said = run("pick", problem, "--out", tmp_path / "list.csv")
    assert "always seen, which are taken to be in the highest of their states" in " ".join(
        said.split()
    )
    assert "their state now). The next list:" in " ".join(said.split())


def test_a_list_calls_arms_by_name_and_says_how_to_come_back(problem, tmp_path, monkeypatch):
    """Numbers stand where nobody gave a name, or several arms have it."""
    monkeypatch.chdir(tmp_path)
    said = run("pick", problem, "--out", "list.csv")
    assert re.findall(r"│ (\S+) +│", said) == [
        row["name"] or row["arm"]
        for row in csv.DictReader(Path("list.csv").read_text().splitlines())
    ]
    assert "0 (" not in said
    assert "columns arm, state and ago (steps since: 1 for those just pulled" in said
    assert said.endswith(f"restive pick {problem} --sightings last.csv")
    Path("last.csv").write_text("arm,state,ago\nAnn,ill,1\n")
    again = run("pick", problem, "--sightings", "last.csv", "--policy", "myopic")
    assert again.endswith(f"restive pick {problem} --policy myopic --sightings last.csv")
    twins = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.8, name="press")] * 2, 1)
    assert arm_titles(twins, [1]) == ["1 (press)"]


@pytest.mark.parametrize(("less", "tied", "nearly"), [(0, 1, 1), (0.005, 0, 1), (0.05, 0, 0)])
def test_near_ties_are_told(less, tied, nearly):
    arms = [rs.gilbert_elliott(p, p) for p in (0.5, 0.5 - less)]  # coins: their chance is the index
    bandit = rs.RestlessBandit(arms, 1)
    found = plan_bandit(bandit).recommendation
    assert (found.tied, found.nearly) == (tied, nearly)
    said = recommendation_sentences(replace(found, policy="whittle", matters=True), bandit)[-1]
    assert ("others are as good" in said, "nearly as good" in said) == (tied, nearly and not tied)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no column arm and no column state and no column ago"),
        ("arm,state\nAnn,ill\n", "no column ago; needed are arm .* found: arm, state"),
        ("arm,state,ago\nAn,ill,1", "line 2: no arm 'An'; .* did you mean 'Ann'?"),
        ("arm,state,ago\n7,ill,1", "line 2: no arm '7'; they are 0 to 3, or names"),
        ("arm,state,ago\nAnn,so so,1", "line 2: state 'so so' is none of ill, well"),
        ("arm,state,ago\nAnn,ill,0", "line 2: ago must be steps since .*, got '0'"),
        ("arm,state,ago\nAnn,ill,1\n\n0,well,2", "line 4: arm '0' is in line 2 already"),
        ("arm,state,ago\nAn,ill,1\nBo,?,1", "2 mistakes\n  line 2: .*\n  line 3: "),
    ],
)
def test_mistakes_in_sightings_are_named_with_their_lines(problem, tmp_path, text, message):
    path = tmp_path / "last.csv"
    path.write_text(text)
    with pytest.raises(rs.RestiveError, match=f"last.csv: {message}"):
        read_sightings(path, rs.load_problem(problem))


def test_a_name_that_several_arms_have_must_be_a_number(tmp_path):
    twins = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.6, name="twin")] * 2, 1)
    path = tmp_path / "last.csv"
    path.write_text("arm,state,ago\ntwin,1,1")
    with pytest.raises(rs.RestiveError, match="2 arms are called 'twin'; give the number"):
        read_sightings(path, twins)


def test_among_equals_the_simplest_is_recommended_and_the_search_for_a_table_comes_last():
    bandit = BANDITS["one of three"]
    names = ("best_fixed", "myopic", "lp_priority", "best_index")
    policies = {name: rs.registry.policy_mapping(name)(bandit) for name in names}
    earned = {name: Earned(1.0 + 0.1 * (name != "best_fixed"), 0.0) for name in names}
    for name in names[1:]:
        assert recommend(bandit, earned, policies, None).policy == name
        del earned[name]


def test_what_depends_on_the_start_is_neither_recommended_nor_a_verdict(tmp_path):
    """Arms that stay where they are: what any policy earns is what they began with."""
    path = tmp_path / "stuck.toml"
    path.write_text("num_pulls = 1\n[[arm]]\np01 = 0\np11 = 1\ncount = 3")
    out = run("plan", path, "--discount", 0.9, "--max-elapsed", 5)
    assert "whittle: J depends on the start: 0.000000 to 1.000000" in out
    assert "No recommendation: no policy has a J that is the same however the arms begin" in out
    assert "no difference" not in out
    assert "Recommended" not in out
    bandit = BANDITS["one of three"]
    policies = {name: rs.registry.policy_mapping(name)(bandit) for name in ("myopic", "whittle")}
    earned = {"whittle": Earned(1.0, 0.0), "myopic": Earned(1.5, 0.0, depends_on_start=True)}
    found = recommend(bandit, earned, policies, None)
    assert (found.policy, found.matters) == ("whittle", True)


def test_that_nothing_matters_is_said_only_where_every_policy_is_known():
    idle = rs.RestlessBandit([CHANNELS[0]] * 3, 1)
    policies = {"best_fixed": rs.policies.best_fixed(idle)}
    turns = round_robin_reward(idle)
    earned = {"best_fixed": Earned(turns, 0.0)}
    assert recommend(idle, earned, policies, None).matters  # the optimum has no value
    assert recommend(idle, earned, policies, turns + 0.1).matters  # and may earn more
    assert not recommend(idle, earned, policies, turns).matters
