"""Continuous priors in studies: what their tables say, and what is wrong with them."""

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.learn.task import Task
from restive.studies import timing
from restive.studies.spec import study_from_toml
from restive.studies.work import run_chunk
from study_cases import CONTINUOUS, FREQUENTIST, changed, changed_text

BETA = changed_text(FREQUENTIST, posterior="false").replace(
    "levels = [0.2, 0.5, 0.8]", "beta = {p01 = [1, 2], p11 = [3, 1]}"
)
DRAWN = """
kind = "bayesian"
policy_mappings = ["whittle"]
horizon = 40
num_pulls = 1
replications = 4
[prior]
num_arms = 3
"""


def prior_of(text):
    return study_from_toml(text).cases[0].settings.systems()[1]


def test_beta_has_the_rewards_of_the_problem():
    text = BETA.replace("p11 = 0.8\n", "p11 = 0.8\nrewards = [0.2, 0.9]\n")
    first, second, third = prior_of(text).arms
    assert first.rewards.tolist() == [0.2, 0.9]
    assert second is third
    assert second == rs.beta_prior(1, (1, 2), (3, 1)).arms[0]


def test_dirichlet():
    table = "[prior.dirichlet]\nactive = [[1, 1, 0], [1, 1, 1], [2, 1, 1]]\nparticles = 64\n"
    found = prior_of(DRAWN + table + "rewards = [0, 0.5, 1]\n")
    assert found.num_arms == 3
    assert found.arms[0] is found.arms[2]
    assert found.arms[0] == rs.DirichletArmPrior(
        [[1, 1, 0], [1, 1, 1], [2, 1, 1]], rewards=[0, 0.5, 1], particles=64
    )


def test_arms_may_be_mixed_and_pooled():
    found = prior_of(CONTINUOUS)
    assert [type(arm).__name__ for arm in found.arms] == ["DirichletArmPrior"] * 4 + ["ArmPrior"]
    assert found.pooled == [[0, 1, 2]]
    assert found.arms[0] is found.arms[1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BETA.replace("[1, 2]", "[1]"), "p01 must be two positive Beta parameters"),
        (BETA.replace("p01 = [1, 2]", "p10 = [1, 2]"), "prior.beta.p10 .line 21.: unknown key"),
        (BETA.replace("beta = ", "levels = [0.5]\nbeta = "), "give levels or beta, not both"),
        (BETA.replace("posterior = false", "posterior = true"), "leave posterior out"),
        (DRAWN + "dirichlet = {active = [[1, 1], [1, 1]]}", "arm 0: rewards is missing"),
        (DRAWN + "dirichlet = {active = [[1, 1], [1]]}", "must be"),
        (DRAWN + "dirichlet = {active = [[0, 0], [1, 1]]}", "row 0 of active is all zero"),
        (DRAWN.replace("num_arms = 3", "beta = {}"), "beta needs num_arms"),
        (changed_text(CONTINUOUS, baseline="'exact'"), "use baseline = 'coupled'"),
        (
            CONTINUOUS.replace("[prior.arm.dir", "[prior.arm.beta]\n[prior.arm.dir"),
            "give beta or dirichlet, not both",
        ),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(rs.errors.ProblemError, match=words.replace("(", r"\(")):
        study_from_toml(text)


def test_drawn_truths_have_no_number():
    """What one chunk calls its truths, another does not know."""
    arrays = run_chunk(changed(CONTINUOUS).cases[0].settings.to_json(), 3, 2)
    assert (arrays["true_kinds"] == -1).all()
    assert np.isfinite(arrays["expected"]).all()


def test_best_fixed_is_measured_against_the_policy_that_knows(tmp_path):
    study = changed(CONTINUOUS, policy_mappings='["best_fixed"]', learners='["tsde"]')
    rs.run_study(study, tmp_path)
    found = rs.load_results(tmp_path)[0]
    assert found.baseline.startswith("coupled")
    assert np.isfinite(found.regret.mean).all()


@pytest.mark.parametrize(
    ("mapping", "active", "rewards"),
    [
        ("whittle", [[1, 1, 1], [1, 1, 1], [0, 1, 1]], [0, 0.5, 1]),
        ("best_index", [[1, 1], [1, 1]], [0, 1]),
        ("optimal", [[9, 9], [9, 9]], [0, 1]),
    ],
    ids=["whittle", "best_index", "optimal"],
)
def test_a_check_of_a_study_that_makes_tables_for_each_draw(mapping, active, rewards, tmp_path):
    table = f"[prior.dirichlet]\nactive = {active}\nrewards = {rewards}\n"
    text = DRAWN.replace("whittle", mapping).replace("num_arms = 3", "num_arms = 2")
    path = tmp_path / "study.toml"
    path.write_text(text + table, encoding="utf-8")
    found = CliRunner().invoke(app, ["run", str(path), "--check"])
    assert found.exit_code == 0, found.exception
    assert mapping in found.output


def test_the_estimate_of_a_step_holds_the_tables_that_are_made_for_each_draw(monkeypatch):
    """Every index table that takes longer is seen in it, as often as one is made."""
    text = DRAWN + "[prior.dirichlet]\nactive = [[1, 1, 1], [1, 1, 1], [0, 1, 1]]\n"
    settings = study_from_toml(text + "rewards = [0, 0.5, 1]\n").cases[0].settings
    clock, made = [0.0], []
    monkeypatch.setattr(timing, "perf_counter", lambda: clock[0])
    plain = Task.particle_table

    def slow(task, arm, label):
        made.append(arm.numbers not in task.cached_tables)
        clock[0] += 1.0 * made[-1]
        return plain(task, arm, label)

    monkeypatch.setattr(Task, "particle_table", slow)
    seconds = timing.seconds_per_step(settings, with_oracle=False)
    in_trial = seconds * settings.horizon
    assert in_trial > 20  # most of three tables an episode
    assert in_trial < sum(made)  # and the trial that compiles does not count
