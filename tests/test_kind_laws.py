"""The law of a kind that a log speaks for, where pulls change how arms move or states are many."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive.cli import world
from restive.cli.world import asked_world
from restive.logs.counts import first_states

TYPES = np.array([(0.08, 0.75, 0.45, 0.95), (0.30, 0.92, 0.38, 0.94), (0.04, 0.60, 0.07, 0.66)])


def call_log(num_arms, steps, chance, seed, kinds=None, never=()):
    """People of three types, called now and then; calls are written down, and the first step."""
    rng = np.random.default_rng(seed)
    p = TYPES[rng.choice(3, num_arms, p=[0.45, 0.35, 0.2])]
    state = (rng.random(num_arms) < p[:, 0] / (p[:, 0] + 1 - p[:, 1])).astype(int)
    rows = []
    for step in range(steps):
        pulled = rng.random(num_arms) < chance
        pulled[list(never)] = False
        seen = pulled | (step == 0)
        rows += [(k, step, state[k], pulled[k]) for k in np.flatnonzero(seen)]
        good = np.where(pulled, p[np.arange(num_arms), 2 + state], p[np.arange(num_arms), state])
        state = (rng.random(num_arms) < good).astype(int)
    arm, step, states, pulls = np.array(rows).T
    return log_of(arm, step, states, kinds=kinds, pulled=pulls.astype(bool)), p


def sorts_of(p):
    alone, pulled = (p[:, a] / (p[:, a] + 1 - p[:, a + 1]) for a in (0, 2))
    much = pulled - alone >= 0.2
    return np.array([much, ~much & (alone >= 0.5), ~much & (alone < 0.5)]).astype(float)


def gain_of(p):
    """What a pull adds to the chance of good in the next step, of people who were left alone."""
    good = p[:, 0] / (p[:, 0] + 1 - p[:, 1])
    return np.mean((1 - good) * (p[:, 2] - p[:, 0]) + good * (p[:, 3] - p[:, 1]))


def test_few_looks_have_a_law_of_any_shape_from_all_arms():
    """300 arms called about 5 times each, beyond what was 100 at most; types show in the shape."""
    log, p = call_log(300, 60, 0.08, seed=1)
    fitted = rs.fit_log(log, controlled=True, passive_rewards=[0, 1], checks=False)
    (prior,) = fitted.kind_priors
    assert isinstance(prior, rs.ArmPrior)
    (note,) = (note for note in fitted.notes if note.startswith("kind"))
    seen = len(np.unique(np.flatnonzero(first_states(log, 60, pulled_only=True) >= 0)))
    assert f"weights of 1,024 points from {seen} arms" in note
    shape = fitted.kind_shapes["all"]
    truth = np.concatenate([sorts_of(p).mean(axis=1), [gain_of(p)], p.mean(axis=0)])
    low, high = shape.intervals.T
    assert ((low <= shape.means) & (shape.means <= high)).all()
    assert ((low <= truth) & (truth <= high)).sum() >= 7
    assert shape.what[0] == "gain much from pulls"
    assert shape.sentence.startswith(f"{seen} arms say: about ")
    mean, (first, last) = shape.means[0], shape.intervals[0]
    assert f"{100 * mean:.0f}% ({100 * first:.0f} to {100 * last:.0f}) gain much" in shape.sentence
    assert f"p11 if pulled {shape.means[7]:.2f} (" in shape.sentence


def test_first_sightings_count():
    """Arms that were seen once say where arms are that nobody pulls; a kind of them has a law."""
    log = log_of([*range(60), 0], [*[0] * 60, 1], [*[1] * 60, 1])
    fitted = rs.fit_log(log, controlled=True, checks=False)
    (prior,) = fitted.kind_priors
    good = np.array([arm.passive[1, 1] for arm in prior.candidates])
    assert prior.weights @ good > 0.6  # 1/2 without the first sightings


def test_arms_that_are_seen_often_have_a_dirichlet_law():
    log, _ = call_log(30, 500, 0.4, seed=2)
    fitted = rs.fit_log(log, controlled=True, checks=False)
    assert isinstance(fitted.kind_priors[0], rs.DirichletArmPrior)
    assert any("kind 'all': one Dirichlet law, " in note for note in fitted.notes)
    assert not fitted.kind_shapes


def test_a_kind_of_one_arm_and_one_that_was_never_pulled():
    kinds = ["many"] * 28 + ["one", "never"]
    log, _ = call_log(30, 40, 0.2, seed=3, kinds=kinds, never=[29])
    fitted = rs.fit_log(log, controlled=True, passive_rewards=[0, 1], checks=False)
    notes = "\n".join(fitted.notes)
    assert "kind 'one': weights of 1,024 points from 1 arm (one arm says little" in notes
    assert "kind 'never': no arm of it was seen, so all chains are held equally likely" in notes
    never = fitted.kind_priors[log.kinds.index("never")]
    np.testing.assert_array_equal(never.weights, 1 / 1024)
    assert "never" not in fitted.kind_shapes
    agent = rs.TSDE(fitted.prior, 2, "myopic", start=fitted.start)
    assert len(agent.select()) == 2


def test_candidates_are_written_once(tmp_path):
    log, _ = call_log(60, 40, 0.1, seed=4, kinds=["a", "b"] * 30)
    fitted = rs.fit_log(log, controlled=True, passive_rewards=[0, 1], checks=False)
    rs.write_fit(fitted, tmp_path)
    data = json.loads((tmp_path / "prior.json").read_text())
    assert [type(kind["candidates"]) for kind in data["kinds"]] == [list, str]
    assert data["kinds"][0]["shape"] == fitted.kind_shapes["a"].to_data()
    found = rs.load_prior(tmp_path / "prior.json")
    assert found.kinds["a"].candidates is found.kinds["b"].candidates
    for k, own in enumerate(found.prior.arms):
        np.testing.assert_array_equal(own.weights, fitted.prior.arms[k].weights)
    data["kinds"][1]["candidates"] = "c"
    (tmp_path / "prior.json").write_text(json.dumps(data))
    with pytest.raises(rs.RestiveError, match="kind 'b': no earlier kind 'c' has candidates"):
        rs.load_prior(tmp_path / "prior.json")
    page = (tmp_path / "fit.html").read_text()
    assert fitted.kind_shapes["b"].sentence in page


def test_first_states_are_those_of_the_log():
    log = log_of(
        [0, 0, 1, 1, 2], [3, 5, 1, 2, 4], [1, 0, 0, 1, 1], pulled=[True, True, False, True, False]
    )
    np.testing.assert_array_equal(first_states(log, 10), [1, 0, 1])  # steps count from 0
    np.testing.assert_array_equal(first_states(log, 3), [1, 0, -1])
    np.testing.assert_array_equal(first_states(log, 10, pulled_only=True), [1, 1, -1])


@pytest.mark.parametrize(
    ("controlled", "pay", "typed", "expected"),
    [
        (None, None, "y\ny\n", (True, "always")),
        (None, None, "n\nn\n", (False, "pulled")),
        (True, None, "y\n", (True, "always")),
        (None, "pulled", "y\n", (True, "pulled")),
        (False, "always", "", (False, "always")),
    ],
)
def test_who_sits_at_a_terminal_is_asked_what_was_not_said(
    controlled, pay, typed, expected, monkeypatch, capsys
):
    monkeypatch.setattr("sys.stdin", io.StringIO(typed))
    found = asked_world(controlled, pay, ask=True)
    assert (found.controlled, found.pay, found.assumed) == (*expected, "")
    asked = capsys.readouterr().out
    assert ("change how arms go on" in asked) == (controlled is None)
    assert ("every arm count" in asked) == (pay is None)


@pytest.mark.parametrize(
    ("controlled", "pay", "line"),
    [
        (None, None, "assumed: a pull does not change how arms go on, and only what a pull finds "
         "counts; if that is not so, say --controlled or --pay always or both"),
        (True, None, "assumed: a pull changes how arms go on, and only what a pull finds counts; "
         "if that is not so, say --pay always"),
        (None, "always", "assumed: a pull does not change how arms go on, and every arm counts in "
         "every step; if that is not so, say --controlled"),
        (False, "pulled", ""),
    ],
)  # fmt: skip
def test_elsewhere_a_line_names_the_world_that_was_assumed(controlled, pay, line):
    found = asked_world(controlled, pay, ask=False)
    assert found == (bool(controlled), pay or "pulled", line)


def test_nobody_is_asked_without_a_terminal():
    assert not world.in_terminal()
