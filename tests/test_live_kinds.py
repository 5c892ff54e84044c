"""Live agents of which nothing is known at first: kinds learnt as they go, and arms that rest."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from log_cases import log_of
from restive.cli import app
from restive.errors import ProblemError
from restive.live.agent import LiveAgent

BASE = rs.spread_prior(1, passive_rewards=(0, 1), points=16, controlled=True).arms[0]
LEARNER = {"name": "mean_index", "learn_kinds": "epochs"}


def made(path, count=8, **more):
    kinds = [BASE.with_weights(BASE.weights) for _ in range(2)]
    prior = rs.IndependentPrior([kinds[k % 2] for k in range(count)])
    options = {"learner": LEARNER, "missing": "as-not-pulled", "clock": rs.Clock.given()} | more
    return LiveAgent.create(path, prior, 2, **options)


def run(live, num_ticks, skip_every=3):
    """Decide and record; every third pull has no result."""
    decisions = []
    for _ in range(num_ticks):
        rng = np.random.default_rng(live.tick + 5)
        decision = live.decide(tick=live.tick + 1)
        decisions.append(list(decision.arms))
        seen = {
            arm: int(rng.integers(2))
            for i, arm in enumerate(decision.arms)
            if (decision.tick + i) % skip_every
        }
        live.record(seen)
    return decisions


def test_a_replayed_file_decides_alike(tmp_path):
    first = run(made(tmp_path / "a.db"), 24)
    live = made(tmp_path / "b.db")
    second = []
    for _ in range(24):
        second += run(live, 1)
        live.close()
        live = LiveAgent.open(tmp_path / "b.db")
    assert first == second


def test_laws_are_in_what_is_opened_again(tmp_path):
    live = made(tmp_path / "a.db")
    run(live, 10)
    with live._session.reading() as memory:
        law = memory.agent.kind_law(1).weights
    assert not np.array_equal(law, BASE.weights)
    live.close()
    live = LiveAgent.open(tmp_path / "a.db")
    with live._session.reading() as memory:
        np.testing.assert_array_equal(memory.agent.kind_law(1).weights, law)


def test_arms_rest_after_a_pull_without_a_state(tmp_path):
    live = made(tmp_path / "a.db", rest=2)
    pulled, seen = {}, {}
    for tick in range(20):
        decision = live.decide(tick=live.tick + 1)
        for arm in decision.arms:
            if arm in pulled and seen.get(arm, -1) < pulled[arm]:
                assert tick - pulled[arm] > 2
            pulled[arm] = tick
        if tick % 4 != 1:
            live.record({decision.arms[0]: 1})
            seen[decision.arms[0]] = tick


def test_nobody_rests_where_nobody_else_is_left(tmp_path):
    live = made(tmp_path / "a.db", count=3, rest=5)
    first = live.decide(tick=0).arms
    second = live.decide(tick=1).arms
    assert len(second) == 2
    assert set(second) - set(first)  # who did not rest comes first


def test_a_late_state_ends_the_rest(tmp_path):
    live = made(tmp_path / "a.db", count=4, rest=50)
    first = live.decide(tick=0)
    live.decide(tick=1)
    with live._session.reading() as memory:
        assert len(memory.unanswered) == 2
    live.record({first.arms[0]: 1}, tick=first.tick)
    with live._session.reading() as memory:
        assert len(memory.unanswered) == 1


PEOPLE = "arm,kind\n" + "".join(f"P{i},{'town' if i % 2 else 'rural'}\n" for i in range(9))


def init(folder, *more, people=PEOPLE):
    (folder / "people.csv").write_text(people, encoding="utf-8")
    file, arms = str(folder / "a.db"), str(folder / "people.csv")
    given = ["live", "init", file, "--pulls", "2", "--arms", arms, "--clock", "given", *more]
    return CliRunner().invoke(app, given, catch_exceptions=False)


def test_init_learns_kinds(tmp_path):
    said = init(tmp_path, "--states", "missed,taken", "--controlled", "--pay", "always").output
    assert "9 arms, 2 pulls a tick" in said
    assert "learner: mean_index, kinds learnt as you go" in said
    assert "assumed: a pull makes no arm worse; if it may, say --may-hurt" in said
    assert "if pulls tire arms, a list in turn may do better" in said
    assert "each arm is seen about once in 4 ticks: this learner suits if no more than 22" in said
    assert "are to come; else say --learner 'tsde(draws=16)'" in said
    live = LiveAgent.open(tmp_path / "a.db")
    assert live.settings.learner == LEARNER
    assert live.settings.rest == 1
    assert live.settings.missing == "as-not-pulled"
    with live._session.reading() as memory:
        arm = memory.agent.prior.typical(0)
        assert list(memory.roster.kinds) == ["rural", "town"]
    assert arm.pays_unpulled
    assert not BASE.moves_alike


def test_init_says_which_world_it_assumed(tmp_path):
    said = init(tmp_path, "--states", "missed,taken").output
    assert "a pull does not change how arms go on, and only what a pull finds counts" in said
    assert "--controlled or --pay always" in said
    assert LiveAgent.open(tmp_path / "a.db").settings.rest == 0


def test_pulls_may_hurt(tmp_path):
    more = ("--states", "missed,taken", "--controlled", "--pay", "always", "--may-hurt")
    assert "worse" not in init(tmp_path, *more).output
    with LiveAgent.open(tmp_path / "a.db")._session.reading() as memory:
        arms = memory.agent.prior.arms[0].candidates
    assert any(arm.active[0, 1] < arm.passive[0, 1] for arm in arms)


def test_a_fitted_law_is_learnt_on(tmp_path):
    rng = np.random.default_rng(3)
    rows = [(k, t, int(rng.integers(2))) for k in range(12) for t in range(6)]
    arm, step, state = np.array(rows).T
    log = log_of([f"P{k}" for k in arm], step, state, states=("missed", "taken"))
    fitted = rs.fit_log(log, controlled=True, passive_rewards=(0, 1), checks=False)
    rs.write_fit(fitted, tmp_path / "fit")
    more = ("--prior", str(tmp_path / "fit" / "prior.json"), "--missing", "as-not-pulled")
    people = "arm,kind\nP1,\nP2,\nnew,\n"
    with pytest.raises(ProblemError, match="states missed, taken, and --states says bad, good"):
        init(tmp_path, *more, "--states", "bad,good", people=people)
    said = init(tmp_path, *more, people=people).output
    assert "learner: mean_index, kinds learnt as you go" in said
    live = LiveAgent.open(tmp_path / "a.db")
    assert live.settings.rest == 1
    for _ in range(6):
        live.record(dict.fromkeys(live.decide(tick=live.tick + 1).arms, 1))


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ([], "say what is known: --prior FILE"),
        (["--states", "missed"], "two names or more"),
        (
            ["--levels", "0.1,0.9", "--controlled"],
            "--controlled, --pay and --may-hurt go with --states",
        ),
        (["--states", "a,b", "--learner", "ucb1"], "learner must be one that has a posterior"),
        (["--states", "a,b", "--learner", "meanindex"], "mean_index"),
        (["--states", "a,b", "--pay", "never"], "--pay must be one of"),
    ],
)
def test_bad_input_gets_a_sentence(tmp_path, more, said):
    with pytest.raises(ProblemError, match=said.replace("(", r"\(")):
        init(tmp_path, *more)
    assert not (tmp_path / "a.db").exists()


def test_one_person_is_a_kind(tmp_path):
    said = init(tmp_path, "--states", "missed,taken", "--pulls", "1", people="arm\nP1\n").output
    assert "1 arm" in said
    live = LiveAgent.open(tmp_path / "a.db")
    for _ in range(8):
        live.record({live.decide(tick=live.tick + 1).arms[0]: 1})


def test_nothing_is_bet_before_kinds_have_been_learnt(tmp_path):
    """Forecasts are what was assumed until then, so that watches stay as they began."""
    live = made(tmp_path / "a.db")
    kept = []
    for _ in range(11):
        decision = live.decide(tick=live.tick + 1)
        live.record(dict.fromkeys(decision.arms, 1))
        with live._session.reading() as memory:
            kept.append((memory.agent.kinds_learnt, json.dumps(memory.watches.to_data())))
    # what is kept after a decision is of the ticks before, whose forecasts the laws of then made
    before = [
        watches for (_, watches), (learnt, _) in zip(kept[1:], kept, strict=False) if learnt < 3
    ]
    assert len(before) == 8
    assert set(before) == {kept[0][1]}
    assert kept[-1][1] != kept[0][1]
    assert live.check() == len(live.events())
