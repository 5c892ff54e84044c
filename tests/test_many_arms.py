"""Many arms, few of them pulled: an answer or a refusal in one sentence, below 4 GiB."""

import subprocess
import sys

import numpy as np
import pytest

import restive as rs
from restive.arguments import memory_left, require_memory
from restive.learn.task import make_task
from restive.measure import long_runs
from restive.measure.replication import drawn_truths
from restive.problem.bandit import first_places, kinds_of

BEGIN = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
import numpy as np
import restive as rs

num_arms, num_pulls, horizon = map(int, sys.argv[1:])
levels = np.random.default_rng(1).uniform(0.05, 0.95, (50, 2))
kinds = [rs.gilbert_elliott(*map(float, pair)) for pair in levels]
bandit = rs.RestlessBandit([kinds[k % 50] for k in range(num_arms)], num_pulls)
prior = rs.grid_prior([0.2, 0.8], num_arms=num_arms)
small = {"horizon": horizon, "replications": 2}
calls = {
    "evaluate": lambda: rs.evaluate(bandit, "whittle"),
    "frequentist": lambda: rs.frequentist_regret(bandit, prior, learner="ucb1", **small),
    "bayesian": lambda: rs.bayesian_regret(prior, num_pulls, **small),
    "compare": lambda: rs.compare([(bandit, prior)], ["tsde", "ucb1"], **small),
}
for name, call in calls.items():
    try:
        found = call()
    except rs.errors.TooLargeError as error:
        found = f"refused: {error}"
    print(name, found, flush=True)
"""


def outcomes(num_arms, num_pulls, horizon=100):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN, str(num_arms), str(num_pulls), str(horizon)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


@pytest.mark.parametrize(("num_arms", "num_pulls"), [(1_000, 100), (20_000, 2_000), (100_000, 10)])
def test_many_arms_are_answered_below_four_gibibytes(num_arms, num_pulls):
    found = outcomes(num_arms, num_pulls)
    assert list(found) == ["evaluate", "frequentist", "bayesian", "compare"]
    assert "simulation" in found["evaluate"]
    assert not any(words.startswith("refused") for words in found.values())


def test_a_million_arms_are_answered_or_refused_in_a_sentence():
    for words in outcomes(1_000_000, 100_000, horizon=20).values():
        assert not words.startswith("refused") or "GiB" in words


def command(tmp_path, num_arms, *words):
    """Run a command on arms of 50 kinds, a tenth of them pulled, below 4 GiB."""
    levels = np.random.default_rng(1).uniform(0.05, 0.95, (50, 2)).tolist()
    arms = [f"[[arm]]\np01 = {a}\np11 = {b}\ncount = {num_arms // 50}" for a, b in levels]
    text = "\n".join([f"num_pulls = {num_arms // 10}", *arms])
    (tmp_path / "many.toml").write_text(text)
    limited = 'ulimit -v 4194304 && exec "$0" -m restive "$@"'
    return subprocess.run(
        ["sh", "-c", limited, sys.executable, *words],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_command_line_plans_many_arms(tmp_path):
    done = command(tmp_path, 20_000, "plan", "many.toml")
    assert done.returncode == 0, done.stderr
    assert "J was simulated: one step of 2,000 pulls" in done.stdout


@pytest.mark.parametrize(("num_arms", "learners"), [(20_000, "tsde,ucb1"), (1_000_000, "tsde")])
def test_the_command_line_compares_on_many_arms_or_says_what_they_take(
    tmp_path, num_arms, learners
):
    small = ["--horizon", "100", "--replications", "2", "--out", "out"]
    done = command(tmp_path, num_arms, "compare", "many.toml", "--learners", learners, *small)
    if num_arms == 20_000:
        assert done.returncode == 0, done.stderr
        return
    assert done.returncode == 2
    assert "1,000,000 arms would take" in done.stderr
    assert not (tmp_path / "out").exists()


def test_what_long_runs_take_is_said_before_they_begin(monkeypatch, capsys):
    arms = [rs.gilbert_elliott(0.3, 0.7)] * 3
    bandit = rs.RestlessBandit(arms, 1)
    prior = rs.grid_prior([0.2, 0.8], like=bandit)
    options = {"horizon": 60, "replications": 4, "threads": 2}
    rs.frequentist_regret(bandit, prior, **options)  # which may compile, and say so
    capsys.readouterr()
    quiet = rs.frequentist_regret(bandit, prior, **options)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(long_runs, "MANY", 60 * 4 * 3)
    told = rs.frequentist_regret(bandit, prior, **options)
    said = capsys.readouterr().err
    assert said.startswith("restive: 4 replications of 60 steps of 3 arms with tsde take about ")
    assert "on 2 processors and " in said
    assert said.endswith("iB; fewer replications or a shorter horizon take less\n")
    assert (told.samples == quiet.samples).all()


def test_a_refusal_of_memory_says_how_much_there_is():
    assert 0 < memory_left() <= 1 << 36
    with pytest.raises(
        rs.errors.TooLargeError, match=r"^it would take 4.0 TiB, and there are .*; "
    ):
        require_memory(1 << 42, "it", "take less")


def test_arms_that_are_one_object_are_looked_at_once():
    one, other = rs.gilbert_elliott(0.3, 0.7), rs.gilbert_elliott(0.3, 0.7, name="twin")
    third = rs.gilbert_elliott(0.1, 0.2)
    arms = [third, one, third, other, one]
    places, which = first_places(arms)
    assert places.tolist() == [0, 1, 3]
    assert which.tolist() == [0, 1, 0, 2, 1]
    kinds = kinds_of(rs.RestlessBandit(arms, 1))
    assert kinds.arms == (third, one)
    assert kinds.of.tolist() == [0, 1, 0, 1, 1]


def test_true_arms_that_are_given_take_one_row_of_memory():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 5, 1)
    prior = rs.grid_prior([0.2, 0.8], like=bandit)
    truths = drawn_truths(make_task(prior, 1, horizon=9, true_bandit=bandit), 1_000_000, 0)
    assert truths.shape == (1_000_000, 5)
    assert np.ptp(truths) == 0
    assert truths.strides[0] == 0
