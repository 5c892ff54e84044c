"""What `restive fit` and `restive replay` say first: each number against the truth or by hand."""

import json
import re
from dataclasses import replace
from html import unescape
from types import SimpleNamespace

import numpy as np
import pytest

import restive as rs
from log_cases import log_of, simulated_log, simulated_states
from restive.errors import ProblemError
from restive.logs import decision as deciding
from restive.logs.calibration import Calibration
from restive.logs.decision import WAYS, Estimate, FitDecision, decide, share_of
from restive.logs.decision_words import Units, headline, percent_in_words, sentences, units_of
from restive.logs.fitted import fit_arms
from restive.logs.page import arm_rows, check_rows, fit_page
from restive.logs.replay import PlayedPolicy, Replay
from restive.logs.replay_words import replay_sentence
from restive.logs.summary_page import ways_chart

CALLS = Units("calls", "adherent patients", "week")


@pytest.fixture(scope="module")
def fitted():
    """Return a log that was fitted and checked."""
    return rs.fit_log(simulated_log(11, num_arms=8, steps=120))


@pytest.fixture(scope="module")
def decided(fitted):
    """Return what it comes to."""
    return decide(fitted, 2)


def played_on(states, policy, start):
    """Play a policy on states [T, K] that pulls do not change; its mean reward."""
    total = 0.0
    for now in states:
        arms = policy.select(start)
        total += now[arms].sum()
        start = start.updated(arms, now[arms])
    return total / len(states)


def test_intervals_of_the_gain_cover_the_true_gain(monkeypatch):
    """Truths from the prior, 80 logs: 76 inside are expected, with a deviation of 1.9; 69 is 3.6
    of them less.
    """
    monkeypatch.setattr(deciding, "_calibration", lambda fitted: None)
    monkeypatch.setattr(deciding, "MOST_STEPS", 40)
    monkeypatch.setattr(deciding, "LEAST_STEPS", 40)
    rng = np.random.default_rng(8)
    prior = rs.grid_prior(np.linspace(0.1, 0.9, 5), 1).arms[0]
    active = np.array([arm.active for arm in prior.candidates])
    inside = {"gain": 0, "share": 0, "by index": 0, "in turn": 0}
    for n in range(80):
        chosen = rng.integers(0, len(active), 6)
        states = simulated_states(active[chosen, 0, 1], active[chosen, 1, 1], 91, rng)
        step, arm = np.nonzero(rng.random((50, 6)) < 0.5)
        log = log_of(np.append(arm, np.arange(6)), np.append(step, np.full(6, 50)),
                        np.append(states[step, arm], states[50]))  # fmt: skip
        known = fit_arms(log, prior)
        found = decide(known, 2, seed=n)
        assert (found.num_steps, found.num_worlds) == (40, 200)
        bandit = known.problem(2)
        index, turns = (
            played_on(states[51:], policy, known.start)
            for policy in (rs.whittle(bandit), rs.policies.round_robin(bandit))
        )
        for name, truth, estimate in (
            ("gain", index - turns, found.gain),
            ("share", index / turns - 1, found.share),
            ("by index", index, found.earned["by index"]),
            ("in turn", turns, found.earned["in turn"]),
        ):
            inside[name] += estimate is None or estimate.low <= truth <= estimate.high
    assert min(inside.values()) >= 69, inside


def test_estimates_by_hand():
    values = np.array([1.0, 2.0, 3.0])
    assert Estimate.of(values) == Estimate(2.0, 1.05, 2.95)
    found = share_of(np.array([2.0, 3.0]), np.array([1.0, 1.0]))
    assert (found.mean, found.low, found.high) == pytest.approx((1.5, 1.025, 1.975))
    assert percent_in_words(Estimate(0.14, 0.05, 0.22)) == "+14% (5 to 22)"


def test_the_arms_to_pull_first_are_those_of_the_policy(fitted, decided):
    chosen = rs.whittle(fitted.problem(2)).select(fitted.start)
    assert sorted(decided.first) == sorted(fitted.log.arms[k] for k in chosen)
    assert decided.pulls_add is None
    assert decided.calibration.num_pulls > 100


def test_of_many_arms_fewer_worlds_and_steps_are_played(fitted, monkeypatch):
    for work, steps, worlds in ((10**9, 60, 200), (16 * 60 * 50, 60, 50), (16 * 40 * 12, 12, 40)):
        monkeypatch.setattr(deciding, "MOST_WORK", work)
        found = decide(fitted, 2)
        assert (found.num_steps, found.num_worlds) == (steps, worlds)
    monkeypatch.setattr(deciding, "MOST_WORK", 16 * 40 * 9)
    found = decide(fitted, 2)
    assert found.gain is None
    assert found.why_not == "8 arms are too many to play here"
    assert (
        headline(fitted, found, CALLS) == "What calls by priority are worth could not be computed."
    )


def test_what_pulls_add_is_what_they_add_to_arms_left_alone():
    """Pulls that change nothing add nothing, and that is the headline."""
    log = simulated_log(5, num_arms=5, steps=80)
    fitted = rs.fit_log(log, passive_rewards=[0, 1], checks=False)
    found = decide(fitted, 2)
    assert found.pulls_add.mean == pytest.approx(0, abs=1e-12)
    assert not found.can_differ
    said = headline(fitted, found, CALLS)
    assert said.startswith("As the problem is put, it makes no difference who gets the calls")
    assert "--controlled" in sentences(fitted, found, CALLS)[0]
    assert not any("worth" in sentence for sentence in sentences(fitted, found, CALLS))


def made(**changes):
    """Return a decision by hand."""
    earned = {
        "by index": Estimate(12.6, 11.8, 13.3),
        "always the same": Estimate(11.8, 10.7, 12.8),
        "in turn": Estimate(7.46, 6.88, 8.14),
    }
    given = {
        "num_pulls": 2, "num_steps": 52, "num_worlds": 200, "earned": earned,
        "gain": Estimate(5.1, 4.1, 6.2), "share": Estimate(0.68, 0.55, 0.82), "pulls_add": None,
        "can_differ": True, "first": ("P9", "P10"), "calibration": None,
    }  # fmt: skip
    return FitDecision(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Calls by priority instead of in turn: about +68% (55 to 82)."),
        (
            {"share": None},
            "Calls by priority instead of in turn: about +5.1 adherent patients a week (4.1 to "
            "6.2).",
        ),
        (
            {"gain": Estimate(0.1, -1, 1), "share": Estimate(0.01, -0.05, 0.07)},
            "It makes no clear difference who gets the calls: by priority instead of in turn, +1% "
            "(-5 to 7).",
        ),
        (
            {"pulls_add": Estimate(0.3, -1.2, 1.8)},
            "Calls make no difference that this log could show: +0.3 adherent patients a week "
            "(-1.2 to 1.8).",
        ),
        (
            {"num_pulls": 8, "can_differ": False},
            "Nothing to choose: everyone is seen in every week.",
        ),
        (
            {"gain": None, "why_not": "too many"},
            "What calls by priority are worth could not be computed.",
        ),
    ],
)
def test_headlines(fitted, changes, said):
    assert headline(fitted, made(**changes), CALLS) == said


def test_a_model_that_fails_is_in_doubt_in_the_headline(fitted):
    failing = [replace(fitted.checks[0], name=name, verdict="fails") for name in "abcd"]
    doubtful = replace(fitted, checks=tuple(failing))
    assert headline(doubtful, made(), CALLS) == (
        "Calls by priority instead of in turn: about +68% (55 to 82), if the model is right, which "
        "is in doubt (a, b, c and more)."
    )
    missed = Calibration(100, earned=0.9, expected=0.5, stderr=0.05)
    assert "in doubt (prediction)" in headline(fitted, made(calibration=missed), CALLS)
    said = sentences(doubtful, made(calibration=missed), CALLS)[-1]
    assert "expected 0.5 (0.371 to 0.629) a result in the second, and 0.9 came: NOT as" in said
    assert "but 4 checks of the model failed (a, b, c, d)" in said


def test_three_sentences_in_the_units_that_were_given(fitted):
    do, worth, sure = sentences(fitted, made(), CALLS)
    assert do == (
        "What to do: in each week, choose the 2 calls by priority (Whittle's index), the most "
        "promising first; the next ones go to P9, P10."
    )
    assert worth == (
        "What it is worth: 12.6 adherent patients a week (11.8 to 13.3), against 7.46 (6.88 to "
        "8.14) in turn and 11.8 (10.7 to 12.8) for always the same arms."
    )
    assert sure.startswith("How sure: the brackets hold 95% of 200 simulations of 52 weeks")
    assert units_of("calls", "x", "1w") == Units("calls", "x", "week")
    assert units_of("calls", "x", "3h").step == "step"


@pytest.mark.parametrize(
    ("column", "arm", "arms"),
    [
        ("person", "person", "people"), ("Patient_ID", "patient", "patients"),
        ("batteryNo", "battery", "batteries"), ("box", "box", "boxes"), ("id", "arm", "arms"),
        ("tail number", "tail", "tails"), ("line 2", "arm", "arms"), ("patients", "arm", "arms"),
        (None, "arm", "arms"),
    ],
)  # fmt: skip
def test_arms_are_called_as_their_column_is(column, arm, arms):
    units = units_of("calls", "x", column=column)
    assert (units.arm, units.arms) == (arm, arms)


def test_the_page_for_a_manager_has_no_words_of_the_trade(fitted, decided, tmp_path):
    words = {"unit": "calls", "reward": "adherent patients", "arm": "person"}
    page = rs.write_fit(fitted, tmp_path, 2, **words)[4].read_text()
    said = re.sub(r"<style.*?</style>|<script.*?</script>|<[^>]+>", " ", page, flags=re.S)
    assert not re.findall(r"\b(?:arms?|sightings?|by index|worlds?|pulls?)\b", said)
    assert "490 results of 8 people in 120 steps, 0 to 119" in said
    assert "always the same people" in said
    assert "calls by priority" in said


def test_going_on_says_which_way_that_is(fitted):
    unclear = made(gain=Estimate(0.1, -1, 1), share=Estimate(0.01, -0.05, 0.07))
    do = sentences(fitted, unclear, CALLS)[0]
    each = np.diff(fitted.log.starts)
    assert do.startswith(
        f"What to do: go on as you do: in the log that is {fitted.log.usual_pulls} calls a week, "
        f"and {each.min()} to {each.max()} in all for each of 8 arms. From 490 results"
    )
    always = replace(fitted, seen="always")
    assert sentences(always, unclear, CALLS)[0].startswith("What to do: go on as you do. From")


def test_pages_begin_with_the_decision_and_ask_for_trust_later(fitted, decided, tmp_path):
    paths = rs.write_fit(fitted, tmp_path, 2, unit="calls", reward="adherent patients")
    assert [p.name for p in paths][3:] == ["fit.html", "summary.html"]
    summary, page = paths[4].read_text(), paths[3].read_text()
    first = headline(fitted, decided, Units("calls", "adherent patients"))
    for text in (summary, page):
        assert f"<h1>{first}</h1>" in text
        assert "What it is worth" in text
    assert page.index("What it is worth") < page.index("Can we trust this?")
    assert summary.count("<figure") == 1
    with pytest.raises(ProblemError, match="unit must be a word or two, got 3"):
        rs.write_fit(fitted, tmp_path, 2, unit=3)


def test_what_to_do_is_a_method_of_a_fit(fitted, decided):
    assert isinstance(decided, FitDecision)
    assert fitted.decision(decided.num_pulls) == decided
    assert fitted.decision().num_pulls == fitted.usual_pulls


def test_the_chart_begins_near_intervals_that_are_far_from_zero(fitted):
    def axis(earned):
        drawn = str(ways_chart(fitted, made(earned=dict.fromkeys(WAYS, earned)), CALLS))
        axes = re.search(r'data-axes="([^"]+)"', drawn)[1]
        left, right = json.loads(unescape(axes))["x"][2:4]
        assert ("The axis does not begin at 0." in drawn) == (left > 0)
        return left, right

    left, right = axis(Estimate(150, 144, 157))
    assert 142 < left < 144
    assert 157 < right < 159
    assert axis(Estimate(12, 6, 13))[0] <= 0


def test_memory_with_a_small_p_does_not_look_like_a_failure(fitted):
    memory = next(row for row in check_rows(fitted.checks) if row[0] == "memory")
    assert memory[1] == "holds"
    assert float(memory[3]) <= 0.01
    assert memory[2].endswith("the small p speaks for chains")


def test_arms_are_sorted_as_people_do_and_states_have_names():
    rng = np.random.default_rng(3)
    states = rng.integers(0, 2, (40, 12))
    step, arm = np.nonzero(np.ones_like(states))
    names = np.array([f"P{k}" for k in range(12, 0, -1)])
    log = log_of(
        names[arm], step, np.array(["ill", "well"])[states[step, arm]], states=["ill", "well"]
    )
    fitted = rs.fit_log(log, checks=False)
    header, rows = arm_rows(fitted)
    assert [row[0] for row in rows] == [f"P{k}" for k in range(1, 13)]
    assert header[3:] == ["last seen", "steps since", "well after ill", "well after well"]
    assert rows[0][3] == ["ill", "well"][states[-1, 11]]
    place = log.arms.index("P1")
    assert rows[0][5].startswith(f"{fitted.arms.active[place, 0, 1]:.2f} (")
    assert "Chains were fitted to this log" in fit_page(fitted, "A log")


def replayed(*policies, **by_world):
    """Return a replay by hand."""
    log = simulated_log(5, num_arms=3, steps=20)
    worlds = {name: np.array(values) for name, values in by_world.items()}
    return Replay(log, 1, 10, 10, 0.5, 1.0, None, policies, (), fit_arms(log), worlds)


def test_a_replay_ends_with_a_sentence():
    model = [
        PlayedPolicy("whittle", "model-based", 1.5, 1.2, 1.8, "3 worlds"),
        PlayedPolicy("round_robin", "model-based", 1.0, 0.8, 1.2, "3 worlds"),
    ]
    said = replay_sentence(
        replayed(*model, whittle=[1.4, 1.5, 1.6], round_robin=[1.0, 1.0, 1.0]), CALLS
    )
    assert said == (
        "In short: of the policies played, whittle earns most, 1.5 (1.2 to 1.8) adherent patients "
        "a week (by the model), against 1 (0.8 to 1.2) for taking turns: +50% (40 to 60)."
    )
    unsure = replay_sentence(replayed(*model, whittle=[0.5, 2.5], round_robin=[1.0, 1.0]), CALLS)
    assert unsure.endswith("so that it is not sure to be better.")
    exact = [
        PlayedPolicy("myopic", "exact", 1.5, 1.5, 1.5),
        PlayedPolicy("round_robin", "exact", 1.0, 1.0, 1.0),
        PlayedPolicy("best fixed in hindsight", "exact", 9.0, 9.0, 9.0, "known only afterwards"),
    ]
    assert replay_sentence(replayed(*exact), CALLS) == (
        "In short: of the policies played, myopic earns most, 1.5 adherent patients a week (on the "
        "very record), against 1 for taking turns: +50%."
    )
    refused = PlayedPolicy("whittle", "refused", np.nan, np.nan, np.nan)
    assert replay_sentence(replayed(refused), CALLS).startswith("Nothing can be said")


@pytest.mark.parametrize(
    ("low", "said"), [(-0.0004, "0"), (-0.002, "-0.2"), (0.002, "0.2"), (0.006, "1"), (0.0, "0")]
)
def test_which_side_of_zero_an_end_is_on_can_be_seen(low, said):
    assert percent_in_words(Estimate(0.02, low, 0.04)) == f"+2% ({said} to 4)"


def test_arms_that_change_are_named_beside_the_figures(fitted):
    changing = SimpleNamespace(verdict="changes")
    said = sentences(replace(fitted, forgetting=changing), made(), CALLS)[-1]
    assert "but the arms change, and these figures are of the whole log" in said
    steady = SimpleNamespace(verdict="steady")
    assert "arms change" not in sentences(replace(fitted, forgetting=steady), made(), CALLS)[-1]
