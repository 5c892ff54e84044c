"""The law of a kind, from all its arms: against enumeration, plain EM, and what was simulated."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

import restive as rs
from restive.learn import kinds
from restive.learn.kinds import FIRST_SIGHT, UNKNOWN_ARMS, estimate_kind
from restive.problem.beliefs import settled_elapsed
from restive.problem.chains import stationary
from restive.threads import WORK_AT_ONCE

FEW = rs.spread_prior(1, points=12, controlled=True).arms[0]
MANY = rs.spread_prior(1, controlled=True).arms[0]
COARSE = rs.spread_prior(1, points=64, controlled=True).arms[0].candidates
THREE = rs.spread_prior(1, rewards=(0, 1, 3), points=9).arms[0]


def looked_at(num_arms, looks, gap, law, seed, size=2):
    """Sightings of arms drawn from a finite prior, from their first on; and which they are."""
    rng = np.random.default_rng(seed)
    which = rng.choice(len(law.candidates), num_arms, p=law.weights)
    rows = []
    for k, m in enumerate(which.tolist()):
        arm = law.candidates[m]
        state = rng.choice(size, p=stationary(arm))
        rows.append((k, 0, FIRST_SIGHT, state))
        for _ in range(looks - 1):
            age = int(rng.integers(1, gap + 1))
            belief = arm.active[state] @ np.linalg.matrix_power(arm.passive, age - 1)
            seen = rng.choice(size, p=belief / belief.sum())
            rows.append((k, state, age, seen))
            state = seen
    return np.array(rows).T, which


def by_paths(arm, sightings):
    """Probability of an arm's sightings: a sum over all paths of states in between."""
    total = 1.0
    for last, age, seen in sightings:
        if age == FIRST_SIGHT:
            total *= stationary(arm)[seen]
            continue
        chance = 0.0
        for path in product(range(arm.num_states), repeat=age - 1):
            states = [last, *path, seen]
            own = arm.active[states[0], states[1]]
            for here, then in pairwise(states[1:]):
                own *= arm.passive[here, then]
            chance += own
        total *= chance
    return total


def likelihoods_of(base, rows):
    return np.array([
        [by_paths(arm, [row[1:] for row in rows.T.tolist() if row[0] == k])
         for arm in base.candidates]
        for k in range(rows[0].max() + 1)
    ])  # fmt: skip


@pytest.mark.parametrize("base", [FEW, THREE], ids=["controlled", "three states"])
def test_the_evidence_is_that_of_all_hidden_paths(base):
    rows, _ = looked_at(7, 3, 4, base, seed=1, size=base.typical.num_states)
    found = estimate_kind(base, *rows)
    chances = likelihoods_of(base, rows) @ found.prior.weights
    assert found.log_evidence == pytest.approx(np.log(chances).sum(), rel=1e-11)
    assert found.num_arms == 7


@pytest.mark.parametrize("base", [FEW, THREE], ids=["controlled", "three states"])
def test_the_weights_are_those_of_plain_em(base):
    rows, _ = looked_at(40, 3, 4, base, seed=2, size=base.typical.num_states)
    likelihoods = likelihoods_of(base, rows)
    law = base.weights
    for _ in range(200_000):
        shares = likelihoods * law / (likelihoods @ law)[:, None]
        better = (shares.sum(axis=0) + UNKNOWN_ARMS * base.weights) / (40 + UNKNOWN_ARMS)
        done = np.abs(better - law).max() < 1e-15
        law = better
        if done:
            break
    found = estimate_kind(base, *rows, tolerance=1e-13)
    assert found.converged
    np.testing.assert_allclose(found.prior.weights, law, atol=1e-9)


def test_no_law_is_better_by_more_than_the_tolerance():
    rows, _ = looked_at(60, 3, 5, FEW, seed=3)
    likelihoods = likelihoods_of(FEW, rows)

    def value(law):
        return np.log(likelihoods @ law).sum() + UNKNOWN_ARMS * (FEW.weights @ np.log(law))

    best = value(estimate_kind(FEW, *rows, tolerance=1e-13).prior.weights)
    for tolerance in (1e-1, 1e-2, 1e-4):
        found = estimate_kind(FEW, *rows, tolerance=tolerance)
        assert value(found.prior.weights) >= best - tolerance * (60 + UNKNOWN_ARMS)


def test_nothing_seen_leaves_the_base():
    found = estimate_kind(MANY, [], [], [], [])
    assert found.prior is MANY
    assert (found.num_arms, found.log_evidence, found.converged) == (0, 0.0, True)
    found = estimate_kind(MANY, [4, 5], [0, 1], [1, 2], [1, 1], counts=[0, 0])
    assert found.prior is MANY


def test_one_arm_moves_the_law_a_little():
    """One arm and UNKNOWN_ARMS more: no share moves by more than one in 21."""
    found = estimate_kind(MANY, [0, 0], [0, 1], [FIRST_SIGHT, 1], [1, 1])
    change = np.abs(found.prior.weights - MANY.weights).sum() / 2
    assert found.num_arms == 1
    assert 0 < change < 1 / (1 + UNKNOWN_ARMS)
    good = np.array([arm.active[1, 1] for arm in MANY.candidates])
    assert found.prior.weights @ good > MANY.weights @ good


def test_types_within_a_kind_are_told_apart():
    """Two kinds with one mean chance: half of the arms at .05 and half at .95, or all at .5."""
    rng = np.random.default_rng(5)
    pulled = np.array([arm.active[0, 1] for arm in MANY.candidates])
    for chances in ((0.05, 0.95), (0.5, 0.5)):
        arms = np.repeat(np.arange(400), 6)
        seen = (rng.random(2400) < np.array(chances)[arms % 2]).astype(int)
        found = estimate_kind(MANY, arms, np.zeros_like(arms), np.ones_like(arms), seen)
        law = found.prior.weights
        assert law @ pulled == pytest.approx(0.5, abs=0.04)
        extreme = law[pulled < 0.2].sum(), law[pulled > 0.8].sum()
        if chances[0] == 0.5:
            assert max(extreme) < 0.05
        else:
            assert min(extreme) > 0.4


def test_order_names_counts_and_threads_change_no_bit(monkeypatch):
    rows, _ = looked_at(1500, 6, 30, MANY, seed=6)
    found = estimate_kind(MANY, *rows)
    rng = np.random.default_rng(0)
    mixed = rows[:, rng.permutation(rows.shape[1])]
    mixed[0] = rng.permutation(10_000)[mixed[0]]
    twice = np.concatenate([mixed, mixed], axis=1)
    counts = np.repeat([1, 0], rows.shape[1])
    monkeypatch.setattr("restive.threads.available_threads", lambda: 3)
    again = estimate_kind(MANY, *twice, counts=counts)
    np.testing.assert_array_equal(again.prior.weights, found.prior.weights)
    assert again.log_evidence == found.log_evidence
    assert again.num_arms == found.num_arms == 1500


def test_arms_that_showed_the_same_are_one_row():
    rows, _ = looked_at(500, 2, 2, MANY, seed=7)
    merged = kinds._merged(2, *rows, None)
    assert len(merged.numbers) < 20
    assert merged.numbers.sum() == 500


def test_arms_seen_hundreds_of_thousands_of_times_do_not_underflow():
    found = estimate_kind(MANY, [0, 0, 1], [0, 1, 1], [1, 1, 3], [0, 1, 1], [400_000, 700_000, 5])
    assert np.isfinite(found.log_evidence)
    assert found.log_evidence < 0
    assert found.prior.weights.sum() == pytest.approx(1)


def test_what_no_candidate_allows_is_named():
    base = rs.ArmPrior([rs.gilbert_elliott(0, 0.5), rs.gilbert_elliott(0, 0.7)])
    with pytest.raises(rs.RestiveError, match="arm 8: what was seen of it has probability zero"):
        estimate_kind(base, [7, 8], [1, 0], [1, 1], [0, 1])


def test_candidates_without_weight_get_none():
    base = rs.ArmPrior([rs.gilbert_elliott(0.1, 0.5), rs.gilbert_elliott(0.3, 0.7)], [1, 0])
    found = estimate_kind(base, [0, 1], [1, 0], [1, 1], [0, 1])
    np.testing.assert_array_equal(found.prior.weights, [1, 0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"states": [2]}, "states must be from 0 to 1, got 2"),
        ({"ages": [0]}, "ages must be from 1"),
        ({"arms": [0.5]}, "arms must be a list of whole numbers"),
        ({"arms": [0, 1]}, "must be of one length"),
        ({"counts": [-1]}, "counts must be from 0"),
    ],
)
def test_wrong_sightings_are_named(change, message):
    good = {"arms": [0], "last_states": [1], "ages": [1], "states": [0]}
    with pytest.raises(rs.RestiveError, match=message):
        estimate_kind(FEW, **(good | change))


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("controlled", [False, True])
def test_spread_points_are_even(size, controlled):
    """Means of rows and of their products are those of the uniform law."""
    prior = rs.spread_prior(2, rewards=range(size), controlled=controlled)
    assert prior.arms[0] is prior.arms[1]
    arms = prior.arms[0].candidates
    assert len(arms) == 1024
    assert prior.arms[0].moves_alike is not controlled
    rows = np.array([np.concatenate([arm.active, arm.passive]) for arm in arms])
    np.testing.assert_allclose(rows.mean(axis=0), 1 / size, atol=0.01)
    squares = (rows**2).mean(axis=0)
    np.testing.assert_allclose(squares, 2 / (size * (size + 1)), atol=0.01)
    others = rows.reshape(1024, -1)
    together = np.cov(others[:, [0, size]].T)[0, 1]  # two rows of one chain
    assert abs(together) < 0.01
    assert max(settled_elapsed(arm) for arm in arms[::64]) < 10_000


@pytest.mark.parametrize("size", [2, 3])
def test_helpful_points_are_better_when_pulled(size):
    (arm,) = rs.spread_prior(1, rewards=range(size), controlled=True, helpful=True).arms
    active, passive = (
        np.cumsum([getattr(one, which)[:, ::-1] for one in arm.candidates], axis=2)
        for which in ("active", "passive")
    )
    assert (active >= passive - 1e-12).all()
    assert len(arm.candidates) > 1000
    if size == 2:  # the larger and the smaller of two even numbers
        good = arm.weights @ active[:, 0, 0], arm.weights @ passive[:, 0, 0]
        np.testing.assert_allclose(good, [2 / 3, 1 / 3], atol=0.01)


def test_the_slowest_and_fastest_points_settle():
    arms = rs.spread_prior(1, points=4096).arms[0].candidates
    slow = sorted(arms, key=lambda arm: abs(arm.passive[1, 1] - arm.passive[0, 1]))
    assert settled_elapsed(slow[-1]) < 10_000


def test_spread_points_like_a_bandit():
    bandit = rs.RestlessBandit(
        [
            rs.gilbert_elliott(0.2, 0.7),
            rs.Arm([[0.5, 0.5], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0, 1], [0, 1]),
            rs.Arm(np.full((3, 3), 1 / 3), None, [0, 1, 2]),
            rs.gilbert_elliott(0.1, 0.6),
        ],
        1,
    )
    prior = rs.spread_prior(like=bandit, points=16)
    assert prior.arms[0] is prior.arms[3]
    for own, arm in zip(prior.arms, bandit.arms, strict=True):
        assert own.moves_alike is arm.is_uncontrolled
        np.testing.assert_array_equal(own.typical.rewards, arm.rewards)
        np.testing.assert_array_equal(own.typical.passive_rewards, arm.passive_rewards)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs num_arms, or like"),
        ({"num_arms": 2, "points": 1}, "points must be at least 2"),
        ({"num_arms": 2, "rewards": [1]}, "rewards must hold a number for each of two states"),
        ({"num_arms": 2, "rewards": range(40), "controlled": True}, "use a DirichletArmPrior"),
        ({"num_arms": 2, "controlled": 1}, "controlled must be True or False"),
        ({"like": 3}, "like must be a RestlessBandit"),
    ],
)
def test_wrong_spread_priors_are_named(arguments, message):
    with pytest.raises(rs.RestiveError, match=message):
        rs.spread_prior(**arguments)


def test_progress_ends_at_one():
    rows, _ = looked_at(50, 3, 5, MANY, seed=8)
    shares = []
    estimate_kind(MANY, *rows, progress=shares.append)
    assert shares[-1] == 1.0
    assert all(0 < share <= 1 for share in shares)
    assert kinds.CHUNK * len(MANY.candidates) < WORK_AT_ONCE  # Ctrl-C is heard in between
