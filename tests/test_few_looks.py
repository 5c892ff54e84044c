"""Which learner suits how many looks: the advice against the figures that it was chosen on."""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.errors import ProblemError
from restive.learn.advice import BEYOND, SUITED, learner_sentence

DOCS = Path(__file__).parent.parent / "docs"
sys.path.insert(0, str(DOCS))
try:
    import few_looks_tables as tables
finally:
    sys.path.remove(str(DOCS))

STORED = json.loads(tables.STORED.read_text(encoding="utf-8"))


def test_the_advice_loses_least_where_it_was_measured():
    """No single learner loses less over all cells and horizons; nor by a tenth at its looks."""
    ratios = tables.ratios(STORED)
    names = list(tables.LEARNERS)
    advised = [names.index(tables.advised(looks)) for looks, _ in ratios]
    logs = np.log([row for _, row in ratios])
    chosen = logs[np.arange(len(logs)), advised]
    assert chosen.mean() < logs.mean(axis=0).min()
    ends = [0, *(most for most, _ in SUITED), np.inf]
    looks = np.array([found for found, _ in ratios])
    for low, high in itertools.pairwise(ends):
        some = (low < looks) & (looks <= high)
        assert chosen[some].mean() < logs[some].mean(axis=0).min() + np.log(1.1)


def test_stored_figures_can_be_made_again():
    cell = next(c for c in STORED["cells"] if c["world"] == "channels" and c["K"] == 10)
    size = (cell["K"], cell["N"])
    found = tables.losses("channels", cell["law_known"], size, "mean", 1)
    assert cell["losses"]["mean"][1] == found


def test_the_page_says_what_the_figures_say():
    assert tables.measured(STORED) in tables.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("size", "learner", "words"),
    [
        ((2000, 50, 60), {"name": "mean_index"}, "each arm is seen about 2 times in 60 steps"),
        ((2000, 50, 10), {"name": "mean_index"}, "less than once in 10 steps"),
        ((10, 1, 100), {"name": "tsde", "draws": 16}, "tsde(draws=16) suits that"),
        ((10, 1, 10_000), {"name": "tsde", "draws": 4}, "about 1,000 times"),
        ((8, 1, 10**6), {"name": "tsde"}, "about 120,000 times in 1,000,000 steps: tsde suits"),
    ],
)
def test_the_learner_follows_what_is_to_come(size, learner, words):
    advice = rs.registry.suited_learner(*size)
    assert advice.learner == learner
    assert words in advice.sentence
    assert advice.looks == size[1] * size[2] / size[0]
    rs.make_learner(prior=rs.grid_prior([0.2, 0.8], 3), num_pulls=1, **advice.learner)
    (later,) = [
        rs.registry.suited_learner(*size[:2], 1).learner
    ]  # in the last step nothing can be learnt
    assert later == {"name": "mean_index"}


def test_nothing_is_said_of_many_looks():
    assert learner_sentence(10, 10) == learner_sentence(9, 2) == learner_sentence(4, 2, 101) == ""
    assert learner_sentence(4, 2, 100)
    said = learner_sentence(9, 3, always=True, nouns=("patient", "weeks"))
    assert said == (
        "each patient is seen once in 3 weeks; which learner suits depends on how many weeks are "
        "to come: up to 15 mean_index, up to 150 tsde(draws=16), up to 6,000 tsde(draws=4), then "
        "tsde"
    )
    assert BEYOND == {"name": "tsde"}


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ((3, 4, 5), "4 of 3 arms cannot be pulled"),
        ((0, 1, 5), "num_arms must be"),
        ((3, 1, 0), "horizon must be"),
    ],
)
def test_what_makes_no_sense_is_said(size, message):
    with pytest.raises(ProblemError, match=message):
        rs.registry.suited_learner(*size)


MANY = """
num_pulls = 1
[[arm]]
count = 40
p01 = 0.2
p11 = 0.7
"""


def test_plan_and_compare_say_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("many.toml").write_text(MANY, encoding="utf-8")
    said = CliRunner().invoke(app, ["plan", "many.toml"], catch_exceptions=False).output
    assert "each arm is seen once in 40 steps" in " ".join(said.split())
    given = ["compare", "many.toml", "--learners", "ucb1,tsde", "--horizon", "20"]
    said = CliRunner().invoke(app, [*given, "--replications", "2"], catch_exceptions=False).output
    assert "each arm is seen less than once in 20 steps: mean_index suits" in " ".join(said.split())
