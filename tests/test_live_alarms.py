"""Alarms: bets that are fair while the model is right, and win when it is not."""

import os
from itertools import combinations
from math import comb

import numpy as np
import pytest
from scipy.stats import binom

import restive as rs
from live_cases import created, fingerprint
from restive.live.told.alarms import (
    HIGH,
    LEVEL,
    LOW,
    MISSING,
    SPREAD,
    Capital,
    ClosedPull,
    Watches,
    hypergeometric_gains,
    missing_gains,
    reward_gains,
    spread_gains,
)

YEARS = int(os.environ.get("RESTIVE_ALARM_YEARS", "4"))  # of agents; more on demand


def pull(mean, reward, *, kind="all", last_state=1, low=0.0, high=1.0, variance=None):
    spread = mean * (1 - mean) if variance is None else variance
    return ClosedPull(kind, last_state, mean, spread, reward, low, high)


# ---------------------------------------------------------------- fair games, by enumeration


@pytest.mark.parametrize("mean", [0.03, 0.5, 0.92])
def test_bets_on_rewards_are_fair_and_are_likelihood_ratios(mean):
    good, bad = (np.array(reward_gains([pull(mean, x)])) for x in (1.0, 0.0))
    np.testing.assert_allclose(mean * np.exp(good) + (1 - mean) * np.exp(bad), 1, rtol=1e-12)
    odds = np.exp(good - bad)  # q / (1 - q) over p / (1 - p)
    np.testing.assert_allclose(np.log(odds), [-0.25, -0.5, -1, -2, 0.25, 0.5, 1, 2], rtol=1e-9)


def test_bets_on_rewards_of_more_states_are_fair_and_never_lose_more_than_all():
    rewards, law = np.array([-1.0, 0.5, 3.0]), np.array([0.2, 0.5, 0.3])
    gains = [np.exp(reward_gains([pull(law @ rewards, x, low=-1, high=3)])) for x in rewards]
    np.testing.assert_allclose(law @ gains, 1, rtol=1e-12)
    assert np.min(gains) >= 0


def test_bets_on_spread_are_fair():
    means = [0.2, 0.7, 0.5]
    total = 0.0
    for states in np.ndindex(2, 2, 2):
        chance = np.prod([m if s else 1 - m for m, s in zip(means, states, strict=True)])
        pulls = [pull(m, float(s)) for m, s in zip(means, states, strict=True)]
        total = total + chance * np.exp(spread_gains(pulls))
    np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_bets_on_missing_are_fair_whatever_the_rate():
    """Given how many are missing, all sets are equally likely: a composite null, no plug-in."""
    states = [0, 0, 1, 1, 1]
    for missing in range(6):
        total = 0.0
        for chosen in combinations(range(5), missing):
            pulls = [
                pull(0.5, None if i in chosen else 1.0, last_state=s) for i, s in enumerate(states)
            ]
            total = total + np.exp(missing_gains(pulls, 2)) / comb(5, missing)
        np.testing.assert_allclose(total, 1, rtol=1e-12)
    gains = hypergeometric_gains(3, 5, 2, 2)  # both of two missing are among three
    weights = np.array([comb(3, x) * comb(2, 2 - x) for x in range(3)])
    for gain, odds in zip(gains, (0.25, 0.5, 2, 4), strict=True):
        ratio = odds**2 * comb(5, 2) / (weights * odds ** np.arange(3)).sum()
        assert np.exp(gain) == pytest.approx(ratio)


def test_arms_of_other_kinds_and_arms_never_seen_are_not_compared():
    pulls = [pull(0.5, None, kind="a"), pull(0.5, 1.0, kind="b", last_state=0)]
    assert not any(missing_gains(pulls, 2))
    pulls = [pull(0.5, None, last_state=None), pull(0.5, 1.0, last_state=0)]
    assert not any(missing_gains(pulls, 2))


def test_capital_that_waits_sums_to_one():
    capital = Capital()
    for _ in range(1000):
        assert capital.bet(np.zeros(3)) == pytest.approx(1)  # fair and even: nothing is lost
    rich = Capital()
    for _ in range(50):
        rich.bet(np.zeros(2))
    for _ in range(6):  # a change after 50 ticks is noticed by what was staked since
        rich.bet(np.log([3.0, 3.0]))
    assert rich.value > 3**6 * 50 / 51 / 1.01


# ---------------------------------------------------------------- levels over a simulated year


def most_that_ring(years):
    """Years that may ring: more have a probability below 1e-4 where each rings with 1%."""
    return int(binom.isf(1e-4, years, LEVEL))


def test_false_alarms_of_watches_in_years_of_days():
    """All eight watches together ring with probability 1% at most, however often one looks."""
    rng = np.random.default_rng(4)
    rang, years = 0, 10 * YEARS
    for _ in range(years):
        watches = Watches(["a", "b"], 2, True)
        assert len(watches.names) == 8
        rate, truth = rng.uniform(0, 0.4), rng.uniform(0.2, 0.8, 7)
        for _day in range(365):
            shift = np.clip(truth + rng.normal(0, 0.1, 7), 0.01, 0.99)  # what is foreseen moves
            seen = rng.random(7) >= rate
            good = rng.random(7) < shift
            states = rng.integers(0, 2, 7)
            pulls = [
                pull(float(p), float(x) if s else None, kind="ab"[k % 2], last_state=int(state))
                for k, (p, x, s, state) in enumerate(zip(shift, good, seen, states, strict=True))
            ]
            if watches.close(pulls):
                rang += 1
                break
    print(f"watches: {rang} of {years} years rang")
    assert rang <= most_that_ring(years)


def year_of(path, prior, world, rng, seed):
    """Play a year of days in which results are missing by chance; return the alarms' names."""
    clock, start = rs.Clock.given(), rs.BeliefState([1] * prior.num_arms, [1] * prior.num_arms)
    missing = rng.uniform(0, 0.3)
    with rs.LiveAgent.create(
        path, prior, 3, "myopic", clock, seed, start=start, durability="process"
    ) as live:
        decision = live.decide(tick=0)
        for _ in range(365):
            states, *_ = world.pull([int(name) for name in decision.arms])
            seen = zip(decision.arms, map(int, states), rng.random(3) >= missing, strict=True)
            decision = live.step({name: state for name, state, known in seen if known})
        names = [alarm.name for alarm in live.alarms()]
    path.unlink()
    return names


CHANNELS = [rs.gilbert_elliott(a, b) for a in (0.5, 0.7) for b in (0.6, 0.9)]
LAWS = {
    "finite": rs.ArmPrior(CHANNELS),
    "continuous": rs.beta_prior(1, (4, 3), (5, 2)).arms[0],
}


@pytest.mark.parametrize("sort", LAWS)
def test_false_alarms_in_years_with_truths_from_the_prior(tmp_path, sort):
    """The forecast is the agent's own, learned on the way; nothing is wrong."""
    rng, law = np.random.default_rng(5), LAWS[sort]
    prior = rs.IndependentPrior([law] * 5)
    rang = 0
    for number in range(YEARS):
        if sort == "finite":
            arms = [CHANNELS[i] for i in rng.integers(0, 4, 5)]
        else:
            chances = zip(rng.beta(4, 3, 5), rng.beta(5, 2, 5), strict=True)
            arms = [rs.gilbert_elliott(p01, p11) for p01, p11 in chances]
        world = rs.World(rs.RestlessBandit(arms, 3), seed=number)
        rang += bool(year_of(tmp_path / "a.db", prior, world, rng, number))
    print(f"{sort}: {rang} of {YEARS} years rang")
    assert rang <= most_that_ring(YEARS)


def test_truths_that_the_prior_does_not_have_ring(tmp_path):
    worse = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.3)] * 5, 3)
    prior = rs.IndependentPrior([LAWS["finite"]] * 5)
    world, rng = rs.World(worse, seed=0), np.random.default_rng(0)
    assert LOW in year_of(tmp_path / "a.db", prior, world, rng, 0)


def test_what_each_watch_is_for():
    rng = np.random.default_rng(1)

    def first_ring(make, ticks=365):
        watches = Watches(["all"], 2, True)
        for tick in range(ticks):
            rings = watches.close(make())
            if rings:
                return rings, tick
        return [], ticks

    up, _ = first_ring(lambda: [pull(0.4, float(rng.random() < 0.55)) for _ in range(7)])
    assert up == [HIGH]

    def together():
        luck = float(rng.random() < 0.5)
        return [pull(0.5, luck if rng.random() < 0.5 else float(rng.random() < 0.5))
                for _ in range(7)]  # fmt: skip

    assert SPREAD in first_ring(together)[0]

    def missing():
        states = rng.integers(0, 2, 7)
        return [
            pull(0.5, None if rng.random() < (0.4, 0.1)[s] else float(rng.random() < 0.5),
                 last_state=int(s))
            for s in states
        ]  # fmt: skip

    assert MISSING in first_ring(missing)[0]


# ---------------------------------------------------------------- in the journal


def test_an_alarm_stays_until_acknowledged_and_then_begins_anew(tmp_path):
    path = tmp_path / "a.db"
    live = created(path, num_arms=4, num_pulls=4)
    decision = live.decide()
    for tick in range(40):
        decision = live.step(dict.fromkeys(decision.arms, (tick // 2) % 2))
        if live.alarms():
            break
    (alarm,) = live.alarms()
    assert alarm.name == SPREAD
    assert alarm.sentence.startswith("ticks are better or worse as a whole")
    decision = live.step(dict.fromkeys(decision.arms, 1))
    again = rs.LiveAgent.open(path)
    assert again.alarms() == (alarm,)
    assert fingerprint(again) == fingerprint(live)
    again.acknowledge(alarm.seq, "a holiday")
    assert again.alarms() == live.alarms() == ()
    event = live.events()[-1]
    assert event.body == {"name": SPREAD, "note": "a holiday", "of": alarm.seq}
    with rs.LiveAgent.open(path) as third:
        assert fingerprint(third) == fingerprint(live)
    for wrong in (alarm.seq, 999):
        with pytest.raises(rs.errors.ProblemError, match="there is no alarm"):
            live.acknowledge(wrong, "again")
    assert LEVEL == 0.01


def test_watches_of_a_joint_prior_make_no_products():
    assert Watches(["all"], 2, False).names == (MISSING,)
