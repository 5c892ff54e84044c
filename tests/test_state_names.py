"""States by name: on arms and priors, for agents, in logs and in what is written."""

import json

import numpy as np
import pytest

import restive as rs
from log_cases import log_of

NAMES = ["bad", "good"]


def test_names_are_no_part_of_an_arms_numbers_but_of_its_equality():
    plain, named = (rs.gilbert_elliott(0.3, 0.7, states=states) for states in (None, NAMES))
    assert plain.numbers == named.numbers
    assert plain != named
    assert named == rs.gilbert_elliott(0.3, 0.7, states=tuple(NAMES))
    assert (plain.state_name(1), named.state_name(1)) == ("1", "good")
    assert (plain.state_label(1), named.state_label(1)) == ("state 1", "state 1 (good)")
    assert rs.Arm(active=named.active, rewards=[0, 1], states=NAMES) == named


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ("ab", "arm 'x': states must be a list of names, got 'ab'"),
        (3, "states must be a list of names, got 3"),
        (["a"], "states must hold one name for each of its 2 states, got 1"),
        (["a", "a"], r"two states have the same name: \['a', 'a'\]"),
        (["a", 1], "a state's name must be text, got 1"),
        (["a", " "], "a state's name must be text, got ' '"),
    ],
)
def test_names_that_are_none(states, words):
    with pytest.raises(rs.errors.ProblemError, match=words):
        rs.gilbert_elliott(0.3, 0.7, name="x", states=states)
    with pytest.raises(rs.errors.ProblemError, match="prior: "):
        rs.beta_prior(1, states=states)


def test_a_grid_is_like_a_bandit_in_all_that_is_known():
    arms = [
        rs.gilbert_elliott(0.3, 0.7, (0, 2), states=NAMES),
        rs.gilbert_elliott(0.2, 0.6),
        rs.gilbert_elliott(0.1, 0.6, (0, 2), states=NAMES),
    ]
    bandit = rs.RestlessBandit(arms, 1)
    prior = rs.grid_prior([0.2, 0.9], like=bandit)
    assert prior.arms[0] is prior.arms[2], "tables are made once"
    for k, arm in enumerate(bandit):
        assert [c.active[:, 1].tolist() for c in prior.candidates(k)] == [
            [0.2, 0.2], [0.2, 0.9], [0.9, 0.2], [0.9, 0.9],
        ]  # fmt: skip
        assert prior.typical(k).rewards.tolist() == arm.rewards.tolist()
        assert prior.typical(k).states == arm.states
    rs.frequentist_regret(bandit, prior, horizon=10, replications=2)
    with pytest.raises(
        rs.errors.ProblemError, match="needs num_arms, or like = a bandit, and not both"
    ):
        rs.grid_prior([0.2], 2, like=bandit)
    with pytest.raises(rs.errors.ProblemError, match="needs num_arms, or like = a bandit"):
        rs.grid_prior([0.2])
    with pytest.raises(rs.errors.ProblemError, match="like must be a RestlessBandit, got 3"):
        rs.grid_prior([0.2], like=3)


def test_candidates_agree_in_the_names_of_their_states():
    arms = [rs.gilbert_elliott(0.3, 0.7, states=states) for states in (NAMES, ["off", "on"])]
    with pytest.raises(rs.errors.ProblemError, match="their names must agree"):
        rs.ArmPrior(arms)


@pytest.mark.parametrize("learner", ["tsde", "ucb1"])
def test_an_agent_is_shown_states_by_name_or_number(learner):
    prior = rs.grid_prior([0.2, 0.8], num_arms=3, states=NAMES)
    by_name, by_number = (rs.make_learner(learner, prior, 2, horizon=99, seed=4) for _ in range(2))
    rng = np.random.default_rng(1)
    for _ in range(30):
        states = rng.integers(2, size=2)
        assert by_name.select().tolist() == by_number.select().tolist()
        by_name.observe([NAMES[state] for state in states])
        by_number.observe(states)
    assert by_name.belief_state == by_number.belief_state
    again = rs.restore(json.loads(json.dumps(by_name.snapshot())))
    again.select()
    again.observe(["good", "bad"])
    assert again.belief_state.last_state[again.belief_state.elapsed == 1].tolist() == [1, 0]


def test_what_is_no_state_is_refused_by_name_and_leaves_the_agent_as_it_was():
    agent = rs.TSDE(rs.grid_prior([0.2, 0.8], num_arms=2, states=NAMES), 1, seed=1)
    (arm,) = agent.select()
    for states, words in (
        (["god"], f"arm {arm}: 'god' is not one of its states; did you mean 'good'?"),
        ([7], f"arm {arm}: state 7 is not one of its states 0 to 1 \\(bad, good\\)"),
    ):
        with pytest.raises(rs.errors.ProblemError, match=words):
            agent.observe(states)
    agent.observe(np.array(["good"]))
    agent.select()
    agent.observe([], arms=[])
    agent.observe_late(1 - arm, "bad", agent.time - 1)
    assert agent.belief_state.last_state[1 - arm] == 0
    plain = rs.TSDE(rs.grid_prior([0.2, 0.8], num_arms=2), 1)
    plain.select()
    with pytest.raises(
        rs.errors.ProblemError, match="'good' is a name, but the prior's arms have no"
    ):
        plain.observe(["good"])
    certain = rs.IndependentPrior([rs.ArmPrior([rs.gilbert_elliott(1, 1, states=NAMES)])])
    sure = rs.TSDE(certain, 1, mixing_time=1, max_elapsed=3, policy_mapping="myopic")
    sure.select()
    with pytest.raises(
        rs.errors.ProblemError, match=r"arm 0: state 0 \(bad\) has probability zero"
    ):
        sure.observe(["bad"])


def test_a_log_hands_its_names_to_problem_prior_and_agent(tmp_path):
    rng = np.random.default_rng(3)
    arms, steps = np.repeat(np.arange(4), 60), np.tile(np.arange(60), 4)
    codes = rng.integers(2, size=240)
    named = log_of(arms, steps, np.array(NAMES)[codes], states=NAMES)
    plain = log_of(arms, steps, codes)
    assert named.states == tuple(NAMES)
    assert (named.state_names, plain.state_names) == (tuple(NAMES), None)
    fitted, numbered = rs.fit_log(named), rs.fit_log(plain)
    assert fitted.problem(1)[0].states == tuple(NAMES)
    assert numbered.problem(1)[0].states is None
    assert fitted.problem(1)[0].numbers == numbered.problem(1)[0].numbers
    assert repr(fitted).startswith("FittedLog(240 sightings of 4 arms; ")
    rs.write_fit(fitted, tmp_path, 1)
    assert rs.load_problem(tmp_path / "problem.toml")[0].states == tuple(NAMES)
    found = rs.load_prior(tmp_path / "prior.json")
    agent = rs.TSDE(found.prior, 1, start=found.start)
    agent.select()
    agent.observe(["good"])
    with pytest.raises(rs.errors.ProblemError, match="row 2: state is 'bda', expected one of bad,"):
        log_of([0, 0], [0, 1], ["bad", "bda"], states=NAMES)


def test_names_travel_through_a_study(tmp_path):
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7, states=NAMES)] * 2, 1)
    (tmp_path / "p.toml").write_text(bandit.to_toml())
    (tmp_path / "study.toml").write_text(
        "kind = 'frequentist'\nhorizon = 10\nproblem.file = 'p.toml'\nprior.levels = [0.3, 0.7]\n"
    )
    study = rs.load_study(tmp_path / "study.toml")
    truth, _, _ = study.cases[0].settings.systems()
    assert truth == bandit
