"""The examples in docstrings are run, and print what they show."""

import doctest

import pytest

import restive as rs

# What most users call: each has an example that can be copied.
MOST_USED = [
    "Arm", "BeliefState", "RestlessBandit", "TSDE", "World", "bayesian_regret", "best_index",
    "beta_prior", "dirichlet_prior", "evaluate", "fit_log", "frequentist_regret", "gilbert_elliott",
    "grid_prior", "index_policy", "log_of", "make_learner", "myopic", "relaxation_bound", "restore",
    "simulate", "whittle", "whittle_index",
]  # fmt: skip


@pytest.mark.parametrize("name", MOST_USED)
def test_the_example_prints_what_it_shows(name):
    thing = getattr(rs, name)
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    assert len(test.examples) >= 2
    said = []
    result = doctest.DocTestRunner().run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_examples_elsewhere_are_known_here():
    with_one = {
        name for name in rs.__all__ if ">>>" in (getattr(getattr(rs, name), "__doc__", "") or "")
    }
    assert with_one == set(MOST_USED)
