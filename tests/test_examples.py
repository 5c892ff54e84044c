"""The examples in docstrings are run, and print what they show."""

import doctest
from operator import attrgetter

import pytest

import restive as rs

# What most users call: each has an example that can be copied.
MOST_USED = [
    "Arm", "BeliefState", "RestlessBandit", "TSDE", "World", "bayesian_regret", "beta_prior",
    "dirichlet_prior", "evaluate", "fit_log", "frequentist_regret", "gilbert_elliott", "grid_prior",
    "load_log", "make_learner", "myopic", "policies.best_index", "policies.index_policy",
    "policies.whittle_index", "relaxation_bound", "restore", "simulate", "whittle",
]  # fmt: skip


@pytest.mark.parametrize("name", MOST_USED)
def test_the_example_prints_what_it_shows(name):
    thing = attrgetter(name)(rs)
    (test,) = doctest.DocTestFinder(recurse=False).find(thing, name, globs={})
    assert len(test.examples) >= 2
    said = []
    result = doctest.DocTestRunner().run(test, out=said.append)
    assert result.failed == 0, "".join(said)


def test_examples_elsewhere_are_known_here():
    with_one = {
        name
        for name in (*rs.__all__, *(f"policies.{name}" for name in rs.policies.__all__))
        if ">>>" in (getattr(attrgetter(name)(rs), "__doc__", "") or "")
    }
    assert with_one == set(MOST_USED)
