"""Whether a log shows that pulls change anything, and what is said where it does not."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import restive as rs
from log_cases import log_of
from restive.logs.decision import decide
from restive.logs.decision_words import headline, sentences, units_of
from restive.logs.fitted import fit_arms
from restive.logs.kind_words import GAIN, KindShape
from restive.logs.replay import PlayedPolicy
from restive.logs.replay_words import replay_sentence
from restive.logs.summary_page import ways_chart

CALLS = units_of("calls", "patients", "1w")


def outreach(seed, helps, always, num_arms=200, steps=30, pulls=16):
    """People of two kinds, called at random; a call helps those who are not well, or nobody."""
    rng = np.random.default_rng([seed, 77])
    kinds = rng.random(num_arms) < 0.5
    stay = np.where(kinds, 0.9, 0.8)
    state = rng.integers(2, size=num_arms)
    rows = []
    for step in range(steps):
        called = rng.random(num_arms).argsort() < pulls
        rows += [(k, step, state[k], called[k]) for k in np.flatnonzero(called | always)]
        good = np.where(state == 1, stay, 1 - stay) + helps * (called & (state == 0))
        state = (rng.random(num_arms) < good).astype(int)
    arm, step, states, pulled = np.array(rows).T
    names = [("a", "b")[int(kinds[k])] for k in range(arm.max() + 1)]
    return log_of(arm, step, states, pulled=pulled.astype(bool), kinds=names)


def fitted(seed, helps, always):
    seen = "always" if always else "pulled"
    logged = outreach(seed, helps, always)
    return fit_arms(logged, controlled=True, passive_rewards=[0, 1], seen=seen)


@pytest.mark.parametrize("always", [True, False])
def test_pulls_that_change_nothing_are_seldom_said_to(always):
    """At most 6 of 20: if 10% of such logs are called wrongly, more have probability 3e-3."""
    shown = [fitted(seed, 0, always).shows_gain for seed in range(20)]
    assert sum(shown) <= 6


def test_pulls_that_help_are_found():
    assert all(fitted(seed, 0.3, True).shows_gain for seed in range(5))


def test_the_interval_holds_what_a_pull_adds():
    """Always seen: 60 intervals of 90%; fewer than 44 have probability 1e-4."""
    held = 0
    for seed in range(30):
        for shape in fitted(seed, 0.3, True).kind_shapes.values():
            mean, low, high = shape.gain
            assert low < mean < high
            # half of the weight is on those who are not well, of whom a pull helps each by .3
            held += low < 0.15 < high
    assert held >= 44


def test_more_kinds_need_more():
    """Bonferroni: a kind alone is clear at 1.645 standard errors, one of ten at 2.58."""

    def shows(errors, kinds):
        wide = np.array([[-1.645, 1.645]])
        own, none = (
            KindShape((GAIN,), np.array([mean]), mean + wide, 0, 9) for mean in (errors, 0.0)
        )
        shapes = {str(k): none for k in range(kinds - 1)} | {"own": own}
        given = SimpleNamespace(kind_shapes=shapes)
        given._gains = rs.types.FittedLog._gains.fget(given)
        given.shows_gain = rs.types.FittedLog.shows_gain.fget(given)
        return given.shows_gain, rs.types.FittedLog.shows_harm.fget(given)

    assert shows(1.65, 1) == (True, False)
    assert shows(-1.65, 1) == (False, True)
    assert shows(1.64, 1) == shows(-1.64, 1) == shows(-2.57, 10) == (False, False)
    assert shows(2.57, 10) == (False, False)
    assert shows(2.59, 10) == (True, False)
    assert shows(-2.59, 10) == (False, True)


def test_what_is_not_shown_is_the_headline():
    of = fitted(1, 0, True)
    assert not of.shows_gain
    found = decide(of, 16)
    said = headline(of, found, CALLS)
    first, second = of.kind_shapes
    assert said == "This log does not show that calls help anybody."
    do, worth, sure = sentences(of, found, CALLS)
    assert do.startswith(
        "What to do: go on as you do: in the log that is 16 calls a week, and 0 to 6 in all for "
        "each of 200 arms. As far as 6,000 results of 200 arms tell, calls add in patients of the "
        "next week: "
    )
    for name in (first, second):
        mean, low, high = of.kind_shapes[name].gain
        assert f"{mean:+.2g} ({low:+.2g} to {high:+.2g}) for {name}" in do
    add, gain = found.pulls_add, found.gain
    assert worth == (
        f"What it is worth: this log does not tell. By priority calls may add {add.low:.3g} to "
        f"{add.high:.3g} patients a week to what comes without any, and {gain.low:.3g} to "
        f"{gain.high:.3g} to taking turns."
    )
    assert add.low < 0 < add.high
    assert "brackets" not in sure
    assert ways_chart(of, found, CALLS) == ""
    helps = fitted(1, 0.3, True)
    assert headline(helps, decide(helps, 16), CALLS).startswith(
        "Calls by priority instead of in turn"
    )


def test_calls_that_do_harm_are_said_to():
    of = fitted(2, -0.3, True)
    assert of.shows_harm
    found = decide(of, 16)
    assert headline(of, found, CALLS) == "By this log calls seem to do harm."
    do, worth, _ = sentences(of, found, CALLS)
    assert do.startswith("What to do: find out why before you go on.")
    assert "this log does not tell" in worth


@pytest.mark.parametrize("helps", [0, 0.3])
def test_a_replay_says_so_too(helps):
    options = {"controlled": True, "passive_rewards": [0, 1], "seen": "always", "worlds": 20}
    played = rs.replay_log(outreach(1, helps, True), 16, ["whittle", "round_robin"], **options)
    said = replay_sentence(played, CALLS)
    assert played.whole.is_guessed == (not helps)
    if helps:
        assert said.startswith("In short: of the policies played, whittle earns most")
    else:
        assert said.startswith("In short: this log does not show that calls help anybody.")


def test_few_looks_ask_for_more_of_the_same():
    of = fitted(1, 0, False)
    assert not of.shows_gain
    assert sentences(of, decide(of, 16), CALLS)[0].endswith(
        "; calls to the same few in one week after another tell most."
    )


def test_rows_that_count_for_nothing_are_told():
    logged = outreach(1, 0.3, True, num_arms=20, steps=20, pulls=4)
    notes = fit_arms(logged, controlled=True, passive_rewards=[0, 1]).notes
    assert any(note.startswith("320 rows of arms that were not pulled count") for note in notes)
    of = fit_arms(logged, controlled=True, passive_rewards=[0, 1])
    assert "80 results of 20 arms" in sentences(of, decide(of, 4), CALLS)[0]
    always = fit_arms(logged, controlled=True, passive_rewards=[0, 1], seen="always")
    assert not any("count for nothing" in note for note in always.notes)


def test_what_a_fit_takes_for_granted_is_said():
    logged = outreach(1, 0.3, True, num_arms=20, steps=12, pulls=4)
    for controlled in (False, True):
        of = fit_arms(logged, controlled=controlled, passive_rewards=None if controlled else [0, 0])
        sure = sentences(of, decide(of, 4), CALLS)[-1]
        assert ("all of it if calls change nobody" in sure) == (not controlled)


def test_a_tie_with_taking_turns_is_no_win():
    known = ("model-based", 1.0, 0.8, 1.2, "")
    played = SimpleNamespace(
        policies=[PlayedPolicy("round_robin", *known), PlayedPolicy("random", *known)],
        whole=SimpleNamespace(is_guessed=False), by_world={},
    )  # fmt: skip
    assert replay_sentence(played, CALLS) == (
        "In short: none of the policies played earns more than taking turns, 1 (0.8 to 1.2) "
        "patients a week (by the model)."
    )


def test_weekly_dates_as_days_are_noticed():
    assert outreach(1, 0, True, num_arms=5, steps=4, pulls=1).steps_apart == 1
    weekly = log_of([0, 0, 1, 1], [0, 14, 7, 21], [0, 1, 1, 0])
    assert weekly.steps_apart == 7
    assert log_of([0, 1], [3, 3], [0, 1]).steps_apart == 1


def test_pulls_for_everyone_leave_nothing_to_do():
    logged = outreach(1, 0.3, True, num_arms=3, steps=20, pulls=1)
    of = fit_arms(logged, controlled=True, passive_rewards=[0, 1], seen="always")
    found = decide(of, 3)
    assert headline(of, found, CALLS).startswith("Nothing to choose")
    do = sentences(of, found, CALLS)[0]
    assert do == "What to do: nothing; there are calls for everyone in each week."


def test_where_hardly_anybody_was_left_alone_no_gain_is_claimed(tmp_path):
    """Everybody pulled in every step: nothing is said of gains, and what to do instead is."""
    rng = np.random.default_rng(4)
    step, arm = np.indices((30, 40))
    logged = log_of(arm.ravel(), step.ravel(), (rng.random(1200) < 0.6).astype(int))
    of = fit_arms(logged, controlled=True, passive_rewards=[0, 1])
    found = decide(of, 5)
    assert not of.tells_of_rest
    assert (found.gain, found.pulls_add, found.earned) == (None, None, {})
    assert len(found.first) == 5
    assert headline(of, found, CALLS) == "This log cannot tell what calls change."
    do = sentences(of, found, CALLS)[0]
    assert "leave some without calls for a few weeks, see them again, and fit again" in do
    assert "summary.html" in {path.name for path in rs.write_fit(of, tmp_path, 5)}
