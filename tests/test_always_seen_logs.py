"""Logs of arms that are always seen: the truth is recovered, and files lead to a plan."""

from pathlib import Path

import numpy as np
import pytest

import restive as rs
from restive.logs.log import Log


def simulated(arms: int = 30, steps: int = 200) -> tuple[Log, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    chance = np.array([[0.2, 0.7], [0.6, 0.9]])  # of good, by [pulled, last state]
    state, rows = rng.integers(0, 2, arms), []
    counts = np.zeros((arms, 4, 2))
    for t in range(steps):
        pulled = rng.random(arms) < np.where(state == 0, 0.5, 0.2)  # who is bad is pulled more
        rows += [(str(k).zfill(2), t, int(state[k]), bool(pulled[k])) for k in range(arms)]
        following = (rng.random(arms) < chance[pulled.astype(int), state]).astype(int)
        if t < steps - 1:
            counts[np.arange(arms), state + 2 * ~pulled, following] += 1
        state = following
    arm, step, seen, by = map(list, zip(*rows, strict=True))
    return rs.log_of(arm=arm, step=step, state=seen, pulled=by), chance, counts


def test_the_truth_is_recovered_and_files_lead_to_a_plan(tmp_path: Path) -> None:
    log, chance, counts = simulated()
    fitted = rs.fit_log(log, controlled=True, seen="always", passive_rewards=[0, 1])
    for k in (0, 17):
        np.testing.assert_array_equal(fitted.counts.moves(np.array([k]))[0], counts[k])
        alphas = np.concatenate([fitted.kind_priors[0].active, fitted.kind_priors[0].passive])
        expected = (alphas + counts[k]) / (alphas + counts[k]).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(fitted.arms.active[k], expected[:2], atol=1e-12)
        np.testing.assert_allclose(fitted.arms.passive[k], expected[2:], atol=1e-12)
    # about 1,000 moves or more in each row: 5 standard errors, one false alarm in a million
    np.testing.assert_allclose(fitted.arms.active[:, :, 1].mean(axis=0), chance[1], atol=0.08)
    np.testing.assert_allclose(fitted.arms.passive[:, :, 1].mean(axis=0), chance[0], atol=0.08)
    rs.write_fit(fitted, tmp_path, 5)
    assert 'seen = "always"' in (tmp_path / "problem.toml").read_text()
    assert all(arm.always_seen for arm in rs.load_problem(tmp_path / "problem.toml").arms)
    found = rs.load_prior(tmp_path / "prior.json")
    assert [found.evidence(k) for k in range(30)] == [fitted.evidence(k) for k in range(30)]
    assert found.prior.arms[3].posterior_alphas.tolist() == (
        fitted.prior.arms[3].posterior_alphas.tolist()
    )
    played = rs.replay_log(log, 5, ["whittle", "random", "tsde"], controlled=True, seen="always",
                           passive_rewards=[0, 1], random_pulls=True, worlds=20)  # fmt: skip
    kinds = [p.kind for p in played.policies]
    assert kinds == ["model-based"] * 3 + ["refused"] * 3
    assert played.policies[0].per_step > played.policies[1].per_step


def test_a_log_that_does_not_say_who_was_pulled_is_refused() -> None:
    log = rs.log_of(arm=["a", "b"] * 30, step=[t // 2 for t in range(60)], state=[0, 1, 1] * 20)
    with pytest.raises(rs.RestiveError, match="--pulled COLUMN"):
        rs.fit_log(log, controlled=True, seen="always")
    with pytest.raises(rs.RestiveError, match="seen"):
        rs.fit_log(log, seen="sometimes")
