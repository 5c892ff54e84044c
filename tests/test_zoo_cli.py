"""`restive zoo`."""

import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app


def run(*words):
    return CliRunner().invoke(app, ["zoo", *words])


def test_all_instances_are_listed():
    done = run()
    assert done.exit_code == 0
    for name in rs.zoo.names():
        assert name in done.output


@pytest.mark.parametrize("name", rs.zoo.names())
def test_an_instance_is_described(name):
    done = run(name)
    instance = rs.zoo.load(name)
    assert done.exit_code == 0
    assert instance.source in done.output
    assert f"arms: {instance.prior.num_arms}, pulls a step: {instance.num_pulls}" in done.output
    fixed = "drawn from the prior" if instance.bandit is None else "fixed"
    assert f"truth: {fixed}" in done.output


@pytest.mark.parametrize("name", [name for name in rs.zoo.names() if rs.zoo.load(name).bandit])
def test_arms_are_printed_as_a_problem(name):
    done = run(name, "--toml")
    assert done.exit_code == 0
    known = rs.zoo.load(name).bandit
    read = type(known).from_toml(done.output)
    assert (read.arms, read) == (known.arms, known)


def test_drawn_truths_have_no_arms_to_print():
    done = run("paper-bayesian", "--toml")
    assert isinstance(done.exception, rs.errors.ProblemError)
    assert "drawn from the prior" in str(done.exception)


def test_unknown_names_are_suggested():
    done = run("paper-freqentist")
    assert isinstance(done.exception, rs.errors.ProblemError)
    assert "did you mean 'paper-frequentist'?" in str(done.exception)
