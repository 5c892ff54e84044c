"""Replay: exact on a full record, model-based with its calibration, matched for random logs."""

from __future__ import annotations

import numpy as np
import pytest

import restive as rs
from log_cases import log_of, simulated_log, simulated_states
from oracles.logs_naive import naive_replay
from restive.logs.calibration import calibrate
from restive.logs.fitted import fit_arms
from restive.logs.play import Worlds, play_worlds
from restive.logs.sample import sample_of


def full_log(seed: int, num_arms: int = 8, steps: int = 120) -> rs.types.Log:
    return simulated_log(seed, num_arms=num_arms, steps=steps, share=1.1)


def states_of(log: rs.types.Log) -> np.ndarray:
    record = np.full((log.num_steps, log.num_arms), -1)
    for block in log.blocks():
        record[block.steps, block.arms] = block.states
    return record


@pytest.mark.parametrize("policy", ["whittle", "myopic", "best_fixed"])
def test_a_full_record_is_played_as_by_a_plain_loop(policy):
    log = full_log(1)
    played = rs.replay_log(log, 3, [policy])
    found = played.policies[0]
    known = fit_arms(log, until=60)
    bandit = known.problem(3)
    made = rs.registry.policy_mapping(policy)(bandit)
    tables = [made.table(k) for k in range(8)]
    start = list(zip(known.start.last_state, known.start.elapsed, strict=True))
    expected = naive_replay(states_of(log)[60:], tables, 3, start)
    assert found.kind == "exact"
    assert found.per_step == pytest.approx(expected / 60)
    assert (found.low, found.high) == (found.per_step, found.per_step)


def test_arms_that_pay_while_not_pulled_are_counted_as_by_a_plain_loop():
    log = simulated_log(5, num_arms=5, steps=120, share=1.0)
    unpulled = np.array([0.2, 0.7])
    found = rs.replay_log(log, 2, ["whittle", "best_fixed"], passive_rewards=unpulled)
    known = fit_arms(log, until=60, passive_rewards=unpulled)
    states = np.array([log.block(k, k + 1).states for k in range(5)])
    for played, name in zip(found.policies, ("whittle", "best_fixed"), strict=False):
        policy = rs.registry.policy_mapping(name)(known.problem(2))
        belief, total = known.start, 0.0
        for t in range(60, 120):
            chosen = set(policy.select(belief).tolist())
            for k in range(5):
                total += float(states[k, t]) if k in chosen else unpulled[states[k, t]]
            arms = np.array(sorted(chosen))
            belief = belief.updated(arms, states[arms, t])
        assert played.kind == "exact"
        assert played.per_step == pytest.approx(total / 60, rel=1e-12)
    gains = sorted((states[k, 60:] - unpulled[states[k, 60:]]).mean() for k in range(5))
    base = unpulled[states[:, 60:]].mean(axis=1).sum()
    assert found.policies[-1].per_step == pytest.approx(base + sum(gains[-2:]), rel=1e-12)


@pytest.mark.parametrize("share", [1.0, 0.5])
def test_where_pulls_change_nothing_all_policies_earn_the_same(share):
    log = simulated_log(5, num_arms=5, steps=120, share=share)
    options = {"passive_rewards": [0, 1], "anyway": True, "random_pulls": True}
    found = rs.replay_log(log, 2, ["whittle", "round_robin", "tsde"], **options)
    kind = "exact" if share == 1 else "model-based"
    earned = [p.per_step for p in found.policies if p.kind == kind and p.policy != "tsde"]
    assert len(earned) >= 2
    assert earned == pytest.approx([earned[0]] * len(earned), rel=1e-12)
    refused = [p for p in found.policies if p.kind == "refused"]
    assert [p.policy for p in refused] == ["whittle", "round_robin", "tsde"]
    assert any("count all arms" in note for note in found.notes)


def test_hindsight_and_the_log_itself():
    log = full_log(2)
    played = rs.replay_log(log, 2, ["random"])
    later = states_of(log)[60:]
    assert played.logged_per_step == pytest.approx(later.sum() / 60)
    assert played.logged_pulls == 8
    assert played.policies[-1].per_step == pytest.approx(np.sort(later.mean(axis=0))[-2:].sum())
    found = played.policies[0]
    # 20 seeds of 120 pulls each: a standard error of about 0.02
    assert found.per_step == pytest.approx(2 * later.mean(), abs=0.1)
    assert found.low < found.per_step < found.high


def test_learners_play_on_a_record():
    log = full_log(3, num_arms=5, steps=60)
    prior = rs.grid_prior([0.2, 0.5, 0.8], 5).arms[0]
    played = rs.replay_log(log, 2, ["tsde", "tsde:myopic"], prior=prior)
    assert [p.kind for p in played.policies] == ["exact"] * 3
    again = rs.replay_log(log, 2, ["tsde", "tsde:myopic"], prior=prior)
    assert [p.per_step for p in again.policies] == [p.per_step for p in played.policies]


def test_arms_fitted_on_the_same_log_are_called_in_sample():
    log = full_log(4)
    played = rs.replay_log(log, 3, ["whittle"], fitted=rs.fit_log(log, checks=False))
    assert played.num_steps == log.num_steps
    assert any("in sample" in note for note in played.notes)


def test_where_arms_were_not_always_seen_the_model_is_used():
    log = simulated_log(5, num_arms=8, steps=160, share=0.5)
    played = rs.replay_log(log, 3, ["whittle", "random"])
    assert played.calibration.holds
    assert {p.kind for p in played.policies} == {"model-based"}
    assert all(p.low < p.per_step < p.high for p in played.policies)
    assert played.policies[0].per_step > played.policies[1].per_step


def test_a_model_that_misses_what_was_earned_is_refused():
    log = simulated_log(6, num_arms=12, steps=300, share=0.5, fault="drift", size=3.0)
    with pytest.raises(rs.errors.AssumptionError, match=r"outside.*--anyway"):
        rs.replay_log(log, 3, ["whittle"])
    played = rs.replay_log(log, 3, ["whittle"], anyway=True)
    assert played.policies[0].note == "the model failed its calibration"


def test_calibration_is_right_when_the_model_is():
    """Truths from the prior: what was earned lies in the 95% interval in 95% of logs, give or take.

    Of 120 logs 114 are expected, with a standard deviation of 2.4; 106 is 3.4 of them less.
    """
    rng = np.random.default_rng(7)
    prior = rs.grid_prior(np.linspace(0.1, 0.9, 9), 1).arms[0]
    active = np.array([arm.active for arm in prior.candidates])
    inside, offs = 0, []
    for _ in range(120):
        chosen = rng.integers(0, 81, 8)
        states = simulated_states(active[chosen, 0, 1], active[chosen, 1, 1], 80, rng)
        step, arm = np.nonzero(rng.random(states.shape) < 0.5)
        log = log_of(arm, step, states[step, arm])
        found = calibrate(fit_arms(log, prior, until=40), sample_of(log), 40)
        inside += found.holds
        offs.append((found.earned - found.expected) / found.stderr)
    assert inside >= 106
    assert 0.8 < np.std(offs) < 1.2  # and the interval is not wider than it must be


def test_model_based_intervals_cover_what_a_policy_really_earns():
    """The policy is then played in the true world: inside the 95% interval in 95% of 120 cases."""
    rng = np.random.default_rng(8)
    prior = rs.grid_prior(np.linspace(0.1, 0.9, 9), 1).arms[0]
    active = np.array([arm.active for arm in prior.candidates])
    inside = 0
    for n in range(120):
        chosen = rng.integers(0, 81, 6)
        p01, p11 = active[chosen, 0, 1], active[chosen, 1, 1]
        states = simulated_states(p01, p11, 90, rng)
        step, arm = np.nonzero(rng.random((50, 6)) < 0.5)
        log = log_of(np.append(arm, np.arange(6)), np.append(step, np.full(6, 50)),
                        np.append(states[step, arm], states[50]))  # fmt: skip
        known = fit_arms(log, prior)
        policy = rs.myopic(known.problem(2))
        drawn = play_worlds(Worlds(known, 200, n), policy, known.start, 39)
        low, high = np.quantile(drawn, [0.025, 0.975])
        truth, state = 0.0, known.start
        for now in states[51:]:
            arms = policy.select(state)
            truth += now[arms].sum()
            state = state.updated(arms, now[arms])
        inside += low <= truth <= high
    assert inside >= 106


def test_worlds_continue_where_the_log_ends():
    """The first step's states have the law b(s, n) of the last sighting, also under control."""
    arm = rs.Arm([[0.3, 0.7], [0.1, 0.9]], [[0.8, 0.2], [0.5, 0.5]], [0, 1])
    log = log_of([0, 0, 0, 1], [0, 1, 9, 4], [1, 0, 1, 0])
    known = fit_arms(log, rs.ArmPrior([arm]), controlled=True)
    worlds = Worlds(known, 20_000, 1)
    table = rs.theory.belief_table(arm, 10)
    run = worlds.run(3)
    first = next(run)
    expected = [table[1, 0, 1], table[0, 5, 1]]
    assert first.mean(axis=0) == pytest.approx(expected, abs=0.015)
    worlds.pull(np.zeros((20_000, 1), dtype=int))  # only the first arm
    second = next(run)
    for state in (0, 1):
        for k, matrix in enumerate((arm.active, arm.passive)):
            found = second[first[:, k] == state, k].mean()
            assert found == pytest.approx(matrix[state, 1], abs=0.03)


def test_matched_replay_of_a_random_log():
    """Pulls at random: what matches is a fair sample of what the policy would have pulled."""
    rng = np.random.default_rng(9)
    states = simulated_states(rng.uniform(0.1, 0.5, 10), rng.uniform(0.5, 0.9, 10), 2000, rng)
    rows = [
        (int(k), t, states[t, k]) for t in range(2000) for k in rng.choice(10, 3, replace=False)
    ]
    log = log_of(*np.array(rows).T)
    played = rs.replay_log(
        log, 3, ["myopic", "round_robin", "random"], random_pulls=True, worlds=40
    )
    matched = {p.policy: p for p in played.policies if p.kind in ("matched", "refused")}
    assert matched["random"].kind == "refused"
    assert matched["round_robin"].low < 3 * states[1000:].mean() < matched["round_robin"].high
    assert matched["myopic"].per_step > matched["round_robin"].per_step
    short = log_of(*np.array(rows[:60]).T)
    few = rs.replay_log(short, 1, ["myopic"], random_pulls=True, anyway=True, worlds=20)
    assert few.policies[-1].kind == "refused"
    assert "are needed" in few.policies[-1].note


def test_random_and_round_robin_are_policies(paper_bandit):
    state = rs.BeliefState([0, 1, 0, 1], [3, 9, 4, 1])
    assert rs.policies.round_robin(paper_bandit).select(state).tolist() == [1, 2]
    policy = rs.policies.random_policy(paper_bandit, seed=1)
    drawn = np.array([policy.select(state) for _ in range(3000)])
    assert np.bincount(drawn.ravel()) / 3000 == pytest.approx([0.5] * 4, abs=0.05)
    assert (drawn[:, 0] < drawn[:, 1]).all()
    again = rs.policies.random_policy(paper_bandit, seed=1)
    assert np.array_equal(drawn[:50], [again.select(state) for _ in range(50)])


def test_each_arm_gets_its_turn_in_round_robin():
    bandit = rs.RestlessBandit([rs.gilbert_elliott(0.3, 0.7)] * 7, 3)
    policy, state = rs.policies.round_robin(bandit), rs.BeliefState([1] * 7, [1] * 7)
    turns = []
    for _ in range(14):
        arms = policy.select(state)
        turns += arms.tolist()
        state = state.updated(arms, [0] * 3)
    assert sorted(np.bincount(turns)) == [6] * 7
    assert [sorted(turns[i : i + 3]) for i in (0, 3, 6, 9)] == [
        [0, 1, 2],
        [3, 4, 5],
        [0, 1, 6],
        [2, 3, 4],
    ]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"policies": ["whitle"]}, "unknown policy 'whitle'; did you mean 'whittle'"),
        ({"policies": "whittle"}, "policies must be a list of names"),
        ({"policies": ["tsde:nothing"]}, "unknown policy mapping 'nothing'"),
        ({"split": 1.5}, "split must be between 0 and 1"),
        ({"split": 0.001}, "cannot be split"),
        ({"num_pulls": 99}, "num_pulls must be between 1"),
        ({"worlds": 3}, "worlds must be at least 20"),
    ],
)
def test_mistakes_get_a_sentence(options, sentence):
    log = simulated_log(10, num_arms=4, steps=60)
    with pytest.raises(rs.errors.ProblemError, match=sentence):
        rs.replay_log(log, **{"num_pulls": 2, **options})


def test_a_log_that_lasts_too_long_is_not_played():
    log = log_of([0, 0, 0, 1], [0, 1, 4 * 10**9, 0], [0, 1, 1, 1])
    with pytest.raises(
        rs.errors.ProblemError, match="lasts 2,000,000,001 steps, more than 10,000,000"
    ):
        rs.replay_log(log, 1, ["whittle"])
