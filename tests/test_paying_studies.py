"""Studies and comparisons of arms that pay in every step."""

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.studies.paired_differences import rankings
from restive.studies.report.ranking import ranking_remarks
from restive.studies.runner import require_sound, run_study
from restive.studies.spec import study_from_toml
from restive.studies.summary import load_results

TRUTH = """
kind = "frequentist"
policy_mappings = ["whittle"]
horizon = 40
times = [10, 40]
replications = 4
seed = 3

[problem]
num_pulls = 1
pay = "always"
[[problem.arm]]
active = [[0.3, 0.7], [0.1, 0.9]]
passive = [[0.8, 0.2], [0.4, 0.6]]
rewards = [0.0, 1.0]
count = 2

[prior]
pay = "always"
[[prior.arm]]
count = 2
[[prior.arm.candidate]]
active = [[0.3, 0.7], [0.1, 0.9]]
passive = [[0.8, 0.2], [0.4, 0.6]]
rewards = [0.0, 1.0]
[[prior.arm.candidate]]
active = [[0.7, 0.3], [0.1, 0.9]]
passive = [[0.8, 0.2], [0.2, 0.8]]
rewards = [0.0, 1.0]
passive_rewards = [0.0, 1.0]
weight = 2
"""


def arm(active, passive):
    return rs.Arm(active, passive, [0, 1], [0, 1])


TRUE = arm([[0.3, 0.7], [0.1, 0.9]], [[0.8, 0.2], [0.4, 0.6]])
OTHER = arm([[0.7, 0.3], [0.1, 0.9]], [[0.8, 0.2], [0.2, 0.8]])


def systems(text):
    return study_from_toml(text).cases[0].settings.systems()


def test_pay_always_makes_the_arms_of_problem_and_prior_pay_in_every_step():
    bandit, prior, _ = systems(TRUTH)
    assert bandit.arms == (TRUE, TRUE)
    assert prior.candidates(1) == (TRUE, OTHER)
    study = study_from_toml(TRUTH)
    assert study_from_toml(study.to_toml()).hash == study.hash


def test_a_study_earns_what_regret_says(tmp_path):
    run_study(study_from_toml(TRUTH), tmp_path / "results", executor="serial")
    (found,) = load_results(tmp_path / "results")
    prior = rs.IndependentPrior([rs.ArmPrior([TRUE, OTHER], [1, 2])] * 2)
    bandit = rs.RestlessBandit([TRUE, TRUE], 1)
    curve = rs.frequentist_regret(bandit, prior, horizon=40, times=[10, 40], replications=4, seed=3)
    assert found.regret.mean == pytest.approx(curve.mean, rel=1e-12)
    assert found.average_reward.mean == pytest.approx(curve.average_reward, rel=1e-12)
    assert found.truth_reward[0] == rs.evaluate(bandit, "whittle").average_reward
    assert found.relaxation_bound == pytest.approx(rs.relaxation_bound(bandit))


def test_a_grid_and_whole_systems_may_pay_always():
    grid = 'kind = "bayesian"\nhorizon = 9\nnum_pulls = 1\n[prior]\nnum_arms = 2\n'
    levels = "levels = [0.2, 0.6]\n"
    cases = {
        levels: [[0, 1], [0, 0]],
        levels + 'pay = "always"\n': [[0, 1], [0, 1]],
        levels + 'pay = "always"\nrewards = [1.0, 3.0]\n': [[1, 3], [1, 3]],
        levels + "rewards = [1.0, 3.0]\npassive_rewards = [0.5, 2.0]\n": [[1, 3], [0.5, 2]],
    }
    for text, rewards in cases.items():
        _, prior, _ = systems(grid + text)
        found = prior.candidates(1)[2]
        assert [found.rewards.tolist(), found.passive_rewards.tolist()] == rewards
    whole = 'kind = "bayesian"\nhorizon = 9\nnum_pulls = 1\n[prior]\npay = "always"\n'
    whole += "[[prior.bandit]]\n[[prior.bandit.arm]]\np01 = 0.2\np11 = 0.6\ncount = 2\n"
    _, prior, _ = systems(whole)
    assert prior.bandits[0].arms[1].passive_rewards.tolist() == [0, 1]


def test_a_file_that_pays_always_is_taken_in(tmp_path):
    (tmp_path / "people.toml").write_text(
        'num_pulls = 1\npay = "always"\n[[arm]]\np01 = 0.2\np11 = 0.7\n'
    )
    (tmp_path / "study.toml").write_text(
        'kind = "frequentist"\nhorizon = 9\n[problem]\nfile = "people.toml"\n'
        '[prior]\nlevels = [0.2, 0.7]\npay = "always"\n'
    )
    study = rs.load_study(tmp_path / "study.toml")
    bandit, _, _ = study.cases[0].settings.systems()
    assert bandit.arms[0].passive_rewards.tolist() == [0, 1]
    assert study_from_toml(study.to_toml()).hash == study.hash
    require_sound(study)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('pay = "always"', 'pay = "sometimes"', "pay"),
        ("passive_rewards = [0.0, 1.0]", "passive_rewards = [0.0, 2.0]", "candidate 1 has passive"),
        ("[[prior.arm]]\n", "rewards = [0.0, 1.0]\n[[prior.arm]]\n", "goes with levels only"),
    ],
)
def test_mistakes_are_placed(old, new, message):
    with pytest.raises(rs.errors.ProblemError, match=message) as caught:
        study_from_toml(TRUTH.replace(old, new))
    assert "line" in str(caught.value)


def test_a_prior_that_pays_otherwise_than_the_problem_is_refused():
    study = study_from_toml(TRUTH.replace('pay = "always"\n[[problem', "[[problem"))
    with pytest.raises(rs.errors.ProblemError, match="passive_rewards are"):
        require_sound(study)


def test_a_grid_whose_rewards_are_wrong_is_refused():
    text = 'kind = "bayesian"\nhorizon = 9\nnum_pulls = 1\n[prior]\nnum_arms = 2\n'
    with pytest.raises(rs.errors.ProblemError, match="rewards must hold one number per state"):
        study_from_toml(text + "levels = [0.2]\npassive_rewards = [0.0]\n")
    with pytest.raises(rs.errors.ProblemError, match="a zoo instance says what its arms pay"):
        study_from_toml(
            'kind = "bayesian"\nhorizon = 9\n[prior]\nzoo = "collapsing"\npay = "always"\n'
        )


def test_a_ranking_remarks_on_learners_that_solve_another_problem(tmp_path):
    text = TRUTH.replace("replications", 'learners = ["tsde", "ucb1"]\nreplications')
    run_study(study_from_toml(text), tmp_path / "paid", executor="serial")
    (ranking,) = rankings(load_results(tmp_path / "paid"))
    (remark,) = ranking_remarks(ranking)
    assert remark.startswith("Arms also pay while not pulled: UCB1 plans")
    pulled = text.replace('pay = "always"', "").replace("passive_rewards = [0.0, 1.0]\n", "")
    run_study(study_from_toml(pulled), tmp_path / "pulled", executor="serial")
    (ranking,) = rankings(load_results(tmp_path / "pulled"))
    (remark,) = ranking_remarks(ranking)
    assert remark.startswith("A fixed set of arms is best, since only pulled arms pay")


def test_exports_count_all_arms(tmp_path):
    run_study(study_from_toml(TRUTH), tmp_path / "results", executor="serial")
    path = rs.export_results(tmp_path / "results", path=tmp_path / "curves.npz")
    rows = np.load(path)
    (found,) = load_results(tmp_path / "results")
    assert rows["average_reward"] == pytest.approx(found.average_reward.mean)


def test_a_comparison_from_the_command_line_says_what_to_think_of_it(tmp_path):
    words = ["compare", "qian-pair", "--learners", "tsde,ucb1", "--horizon", "50"]
    words += ["--replications", "2", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, words, catch_exceptions=False)
    assert done.exit_code == 0
    said = "Arms also pay while not pulled: UCB1 plans for what pulled arms pay"
    assert said in " ".join(done.output.split())
    assert said in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
