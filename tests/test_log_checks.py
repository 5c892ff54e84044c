"""Checks: false alarms on clean logs, power on faulty ones, and what they are made of."""

from __future__ import annotations

import numpy as np
import pytest

import restive as rs
from log_cases import log_of, simulated_log, simulated_states
from restive.kernels.logs.checks import Items, covariances, shuffle_states, simulate_states
from restive.logs.checks import LEVEL, check_log
from restive.logs.fitted import fit_arms
from restive.logs.held_out import held_out

CLEAN = 60


def checks_of(log: rs.types.Log, seed: int = 0) -> dict[str, object]:
    return {check.name: check for check in check_log(fit_arms(log), seed)}


@pytest.fixture(scope="module")
def clean() -> list[dict[str, object]]:
    return [checks_of(simulated_log([1, n], num_arms=15, steps=150), n) for n in range(CLEAN)]


def test_false_alarms_on_clean_logs_are_as_rare_as_stated(clean):
    """Each check fails at most once in 100 clean logs; five of 60 have chance 2e-4 at that rate."""
    names = [name for name in clean[0] if name != "memory"]
    failed = {name: sum(found[name].verdict == "fails" for found in clean) for name in names}
    assert max(failed.values()) <= 4, failed
    assert sum(failed.values()) <= 0.02 * CLEAN * len(names)


def test_p_values_of_clean_logs_are_not_small(clean):
    """At most a share x of them is below x, for every check; 0.1 of 60 is 6, 14 has chance 2e-3."""
    for name in clean[0]:
        if name != "memory":
            assert sum(found[name].p <= 0.1 for found in clean) <= 14, name


@pytest.mark.parametrize(
    ("fault", "check", "size"),
    [
        ("order 2", "order 2", 2.0),
        ("drift", "drift", 2.0),
        ("dependence", "dependence", 1.0),
        ("gaps", "gaps", 2.0),
    ],
)
def test_faults_are_found(fault, check, size):
    found = [
        checks_of(simulated_log([2, n], num_arms=20, steps=250, fault=fault, size=size))[check]
        for n in range(5)
    ]
    assert sum(c.verdict == "fails" for c in found) >= 4
    assert all(c.advice for c in found if c.verdict == "fails")


def test_arms_without_memory_are_called_so():
    rng = np.random.default_rng(3)
    share = rng.random(20)
    states = (rng.random((200, 20)) < share).astype(int)
    step, arm = np.indices(states.shape)
    log = log_of(arm.ravel(), step.ravel(), states.ravel())
    found = checks_of(log)["memory"]
    assert found.verdict == "fails"
    assert "pull the best arms" in found.advice
    predicted = held_out(log)
    assert predicted.chain_against_coin.verdict != "holds"


def test_faults_of_either_sign_do_not_cancel():
    """Half of the arms get better, half get worse: no drift on average, yet it is found."""
    rng = np.random.default_rng(4)
    early = simulated_states(np.full(30, 0.4), np.full(30, 0.6), 150, rng)
    p01 = np.repeat([0.2, 0.6], 15)
    late = simulated_states(p01, p01 + 0.2, 150, rng)
    states = np.concatenate([early, late])
    step, arm = np.indices(states.shape)
    found = checks_of(log_of(arm.ravel(), step.ravel(), states.ravel()))["drift"]
    assert found.verdict == "fails"
    assert found.arms_off > 10
    assert found.worst_arm is not None


def test_calendar_faults(tmp_path):
    """Sundays are bad for everybody; the check of weekdays finds and names them."""
    rng = np.random.default_rng(5)
    lines = ["day,arm,ok"]
    state = np.zeros(15, int)
    for day in range(280):
        chance = np.where(state, 0.7, 0.4) * (0.5 if (day + 3) % 7 == 6 else 1)
        state = (rng.random(15) < chance).astype(int)
        date = np.datetime64("1970-01-01") + day
        lines += [f"{date},a{k},{s}" for k, s in enumerate(state)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = rs.load_log(tmp_path / "log.csv", time="day", arm="arm", state="ok", step="1d")
    found = checks_of(log)
    assert found["weekday"].verdict == "fails"
    assert found["weekday"].finding.startswith("Sunday: -0.")
    assert "hour" not in found


def test_hours_are_looked_at_where_steps_are_hours(tmp_path):
    rng = np.random.default_rng(6)
    lines = ["at,arm,ok"]
    for hour in range(600):
        moment = np.datetime64("2026-01-05T00:00") + np.timedelta64(hour, "h")
        good = rng.random(8) < (0.2 if hour % 24 < 4 else 0.7)
        lines += [f"{moment},a{k},{int(s)}" for k, s in enumerate(good)]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    log = rs.load_log(tmp_path / "log.csv", time="at", arm="arm", state="ok", step="1h")
    found = checks_of(log)["hour"]
    assert found.verdict == "fails"
    assert found.finding.startswith("0 to 4 h: -0.")


def test_checks_are_the_same_every_time_and_with_any_number_of_threads(monkeypatch):
    log = simulated_log(7, num_arms=6, steps=80)
    first = check_log(fit_arms(log), 3)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    assert [repr(check) for check in check_log(fit_arms(log), 3)] == [repr(c) for c in first]
    other = check_log(fit_arms(log), 4)
    assert [repr(check) for check in other] != [repr(c) for c in first]


def test_too_little_is_undecided():
    log = log_of([0, 0, 0, 1, 1], [0, 1, 2, 0, 1], [0, 1, 0, 1, 0])
    found = checks_of(log)
    assert {check.verdict for check in found.values()} == {"undecided"}


def test_what_cannot_vary_is_undecided():
    """Arms that never change: no check can say anything, least of all that memory is missing."""
    arm = np.tile(np.arange(60), 2)
    found = checks_of(log_of(arm, np.repeat([0, 1], 60), arm % 2))
    assert {check.verdict for check in found.values()} == {"undecided"}
    assert found["memory"].finding == "nothing varies that could be compared"
    assert not any("nan" in check.finding for check in found.values())


# --- what they are made of ---------------------------------------------------------------------


def test_simulated_states_have_the_law_of_the_chain():
    """Transitions over one and three steps, three states, against powers of the matrix."""
    active = np.array([[0.1, 0.6, 0.3], [0.3, 0.3, 0.4], [0.5, 0.2, 0.3]])
    passive = np.array([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])
    size = 60_000
    states = np.zeros(size, dtype=np.int16)
    ages = np.where(np.arange(size) % 2 == 0, 1, 3)
    starts = np.array([0, size])
    simulate_states(starts, ages, active[None], passive[None], np.uint64(1), 1, states)
    for age, law in ((1, active), (3, active @ passive @ passive)):
        at = np.flatnonzero(ages[1:] == age) + 1
        table = np.zeros((3, 3))
        np.add.at(table, (states[at - 1], states[at]), 1)
        # about 10,000 in each row: a standard error of 0.005
        assert np.abs(table / table.sum(axis=1)[:, None] - law).max() < 0.025


def test_shuffling_keeps_each_arms_states():
    states = np.array([0, 1, 1, 0, 1, 2, 2, 2, 0, 1], dtype=np.int16)
    starts = np.array([0, 5, 10])
    shuffled = {tuple(states)}
    for replicate in range(50):
        drawn = states.copy()
        shuffle_states(starts, np.uint64(0), replicate, drawn)
        assert sorted(drawn[:5]) == sorted(states[:5])
        assert sorted(drawn[5:]) == sorted(states[5:])
        shuffled.add(tuple(drawn))
    assert len(shuffled) > 40


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("refined", [False, True])
def test_covariances_equal_numpys(given, refined):
    rng = np.random.default_rng(0)
    states = rng.integers(0, 2, 400).astype(np.int16)
    target, source, split = rng.integers(0, 400, (3, 300)).astype(np.int32)
    numbers = rng.random(300)
    starts, arm_of_stratum = np.array([0, 50, 130, 131, 300]), np.array([0, 0, 1, 1])
    none = np.zeros(0, dtype=np.int32)
    out = np.empty((2, 3))
    items = Items(
        target, none if given else source, numbers, split if refined else none, starts,
        arm_of_stratum,
    )  # fmt: skip
    covariances(states, np.array([0.0, 1.0]), items, np.empty((2, 6)), out)
    expected = np.zeros((2, 3))
    x, y = numbers if given else states[source].astype(float), states[target].astype(float)
    for group in range(4):
        items = np.arange(starts[group], starts[group + 1])
        for state in range(2) if refined else [None]:
            own = items if state is None else items[states[split[items]] == state]
            if len(own) > 1:
                table = np.cov(x[own], y[own], bias=True) * len(own)
                expected[arm_of_stratum[group]] += [table[0, 1], table[0, 0], table[1, 1]]
    assert out == pytest.approx(expected)


def test_dependence_is_the_mean_correlation_of_arms():
    rng = np.random.default_rng(1)
    common = rng.random((300, 1)) < 0.5
    states = np.where(rng.random((300, 6)) < 0.5, common, rng.random((300, 6)) < 0.5).astype(int)
    step, arm = np.indices(states.shape)
    found = checks_of(log_of(arm.ravel(), step.ravel(), states.ravel()))["dependence"]
    table = np.corrcoef(states.T)
    assert found.size == pytest.approx(table[~np.eye(6, dtype=bool)].mean(), abs=0.01)
    assert found.p <= LEVEL


def test_what_was_held_out_is_predicted_by_what_was_fitted_before():
    """With the truth as the only candidate, the mean log chance is that of the chain itself."""
    rng = np.random.default_rng(2)
    states = simulated_states(np.full(12, 0.2), np.full(12, 0.9), 200, rng)
    step, arm = np.indices(states.shape)
    log = log_of(arm.ravel(), step.ravel(), states.ravel())
    found = held_out(log, rs.ArmPrior([rs.gilbert_elliott(0.2, 0.9)]))
    now, before = states[140:], states[139:-1]
    chance = np.where(before == 1, 0.9, 0.2)
    chance = np.where(now == 1, chance, 1 - chance)
    assert found.split == 140
    assert found.chain == pytest.approx(np.log(chance).mean())
    coin = (states[:140].sum(axis=0) + 2 * (states[:140].sum() + 1) / (140 * 12 + 2)) / 142
    expected = np.log(np.where(now == 1, coin, 1 - coin)).mean()
    assert found.coin == pytest.approx(expected)
    assert found.chain_against_coin.verdict == "holds"
    assert (found.in_bin > 0).sum() == 2  # 0.2 and 0.9


def test_chains_of_order_two_win_where_the_truth_is_one():
    log = simulated_log(9, num_arms=10, steps=800, share=1.1, fault="order 2", size=3.0)
    found = held_out(log)
    assert found.second_against_chain.verdict == "holds"
