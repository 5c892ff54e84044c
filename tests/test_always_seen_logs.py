"""Logs of arms that are always seen: the truth is recovered, and files lead to a plan."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from log_cases import log_of
from restive.cli import app
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
    return log_of(arm=arm, step=step, state=seen, pulled=by), chance, counts


def chances_of(law: rs.ArmPrior) -> np.ndarray:
    """Chances [M, 4] of good after bad and good, pulled, and not."""
    return np.array([[*arm.active[:, 1], *arm.passive[:, 1]] for arm in law.candidates])


def test_the_truth_is_recovered_and_files_lead_to_a_plan(tmp_path: Path) -> None:
    log, chance, counts = simulated()
    fitted = rs.fit_log(log, controlled=True, seen="always", passive_rewards=[0, 1])
    for k in (0, 17):
        np.testing.assert_array_equal(fitted.counts.moves(np.array([k]))[0], counts[k])
        law, chances = fitted.kind_priors[0], chances_of(fitted.kind_priors[0])
        logs = (np.log(chances) * counts[k, :, 1] + np.log(1 - chances) * counts[k, :, 0]).sum(1)
        weights = law.weights * np.exp(logs - logs.max())
        np.testing.assert_allclose(fitted.prior.arms[k].weights, weights / weights.sum(), atol=1e-9)
    # about 1,000 moves or more in each row: 5 standard errors, one false alarm in a million
    np.testing.assert_allclose(fitted.arms.active[:, :, 1].mean(axis=0), chance[1], atol=0.08)
    np.testing.assert_allclose(fitted.arms.passive[:, :, 1].mean(axis=0), chance[0], atol=0.08)
    rs.write_fit(fitted, tmp_path, 5)
    assert 'seen = "always"' in (tmp_path / "problem.toml").read_text()
    assert all(arm.always_seen for arm in rs.load_problem(tmp_path / "problem.toml").arms)
    found = rs.load_prior(tmp_path / "prior.json")
    assert [found.evidence(k) for k in range(30)] == [fitted.evidence(k) for k in range(30)]
    assert found.prior.arms[3].weights.tolist() == fitted.prior.arms[3].weights.tolist()
    played = rs.replay_log(log, 5, ["whittle", "random", "tsde"], controlled=True, seen="always",
                           passive_rewards=[0, 1], random_pulls=True, worlds=20)  # fmt: skip
    kinds = [p.kind for p in played.policies]
    assert kinds == ["model-based"] * 3 + ["refused"] * 3
    assert played.policies[0].per_step > played.policies[1].per_step


def logged(arms: int, steps: int, seed: int, *, memory: bool = False, drift: bool = False) -> Log:
    """Return a log of arms of their own chances; who is bad is called more often.

    With `memory` two bad states in a row are followed by another one more often than they should
    be; with `drift` all do better in the second half.
    """
    rng = np.random.default_rng([26, seed])
    chance = rng.beta([[4, 6], [6, 8]], [[8, 3], [4, 2]], size=(arms, 2, 2))
    state, before, rows = rng.integers(0, 2, arms), np.ones(arms, dtype=int), []
    for t in range(steps):
        pulled = rng.random(arms) < np.where(state == 0, 0.35, 0.1)
        rows += [(str(k).zfill(3), t, int(state[k]), bool(pulled[k])) for k in range(arms)]
        good = chance[np.arange(arms), pulled.astype(int), state]
        if memory:
            good = good - 0.25 * ((state == 0) & (before == 0)) * good
        if drift and t >= steps // 2:
            good = good + 0.15 * (1 - good)
        before, state = state, (rng.random(arms) < good).astype(int)
    arm, step, seen, by = map(list, zip(*rows, strict=True))
    return log_of(arm=arm, step=step, state=seen, pulled=by)


def verdicts(log: Log, seed: int = 0) -> dict[str, str]:
    fitted = rs.fit_log(log, controlled=True, seen="always", passive_rewards=[0, 1], seed=seed)
    return {check.name: check.verdict for check in fitted.checks}


def test_clean_logs_pass_and_faults_are_found() -> None:
    """Many arms, few steps, and pulls that go by the state: within an arm chains seem to turn back.

    A check fails a clean log in one of a hundred: of these 22 at most 2 may, which is more once in
    700 times.
    """
    clean = [verdicts(logged(250, 40, seed), seed) for seed in range(3)]
    failed = [name for found in clean for name, verdict in found.items() if verdict == "fails"]
    assert len(failed) <= 2, failed
    assert all(found["memory"] == "holds" for found in clean)
    assert verdicts(logged(250, 40, 7, memory=True))["order 2"] == "fails"
    assert verdicts(logged(250, 40, 8, drift=True))["drift"] == "fails"


def test_posteriors_hold_the_truth_as_often_as_they_say() -> None:
    """Of 400 arms' four chances 95% within 95% intervals, but for 5 standard errors (2.7 points).

    A little more, if anything: the law of the kind is estimated as wider than it is.
    """
    log, rng = logged(400, 40, 3), np.random.default_rng([26, 3])
    chance = rng.beta([[4, 6], [6, 8]], [[8, 3], [4, 2]], size=(400, 2, 2))
    fitted = rs.fit_log(log, controlled=True, seen="always", checks=False)
    law, chances = fitted.kind_priors[0], chances_of(fitted.kind_priors[0])
    assert law.weights @ chances == pytest.approx([6 / 10, 8 / 10, 4 / 12, 6 / 9], abs=0.04)
    truth = chance[:, [1, 1, 0, 0], [0, 1, 0, 1]]
    weights = np.array([fitted.prior.arms[k].weights for k in range(400)])
    below = (weights[:, :, None] * (chances < truth[:, None])).sum(axis=1)
    assert 0.923 <= ((below > 0.025) & (below < 0.975)).mean() <= 0.985
    assert abs(np.mean(below) - 0.5) < 5 / np.sqrt(12 * below.size)


def test_from_a_csv_to_a_plan_a_replay_and_a_live_agent(tmp_path: Path) -> None:
    log = logged(6, 40, 5)
    rows = ["week,person,state,called"]
    for block in log.blocks():
        rows += [
            f"{t},{log.arms[k]},{['ill', 'well'][s]},{'yes' if by else 'no'}"
            for k, t, s, by in zip(block.arms, block.steps, block.states, block.pulled, strict=True)
        ]
    (tmp_path / "log.csv").write_text("\n".join(rows))
    columns = [
        "--time",
        "week",
        "--arm",
        "person",
        "--state",
        "state",
        "--states",
        "ill,well",
        "--pulled",
        "called",
    ]
    world = ["--controlled", "--pay", "always", "--seen", "always", "--pulls", "2"]
    where, folder, file = (str(tmp_path / name) for name in ("log.csv", "fit", "a.db"))

    def run(*command: str) -> str:
        done = CliRunner().invoke(app, list(command))
        assert done.exit_code == 0, done.output
        return done.output

    run("fit", where, *columns, *world, "--out", folder)
    bandit = rs.load_problem(f"{folder}/problem.toml")
    assert all(arm.always_seen and arm.pays_unpulled for arm in bandit.arms)
    assert "seeing everyone" not in run("plan", f"{folder}/problem.toml")
    told = run("replay", where, *columns, *world, "--worlds", "20", "--policies", "whittle,random")
    half = [block.states[block.steps >= 20] for block in log.blocks()]
    earned = sum(int(states.sum()) for states in half) / 20
    assert f"the log earned {earned:.4f}" in " ".join(told.split())
    assert "of pulled arms" not in told
    run("live", "init", file, "--prior", f"{folder}/prior.json", "--pulls", "2")
    prior = rs.load_prior(f"{folder}/prior.json")
    with rs.LiveAgent.open(file) as live:
        assert len(live.decide().arms) == 2
        for name, law in zip(prior.names, prior.prior.arms, strict=True):
            found = live.posterior(name)
            rows_of = np.concatenate([found.active, found.passive], axis=1)[:, :, 1]
            np.testing.assert_allclose(
                found.weights @ rows_of, law.weights @ chances_of(law), atol=1e-9
            )
        assert live.record(dict.fromkeys(prior.names, "well")).closed


def test_a_log_that_does_not_say_who_was_pulled_is_refused() -> None:
    log = log_of(arm=["a", "b"] * 30, step=[t // 2 for t in range(60)], state=[0, 1, 1] * 20)
    with pytest.raises(rs.RestiveError, match="--pulled COLUMN"):
        rs.fit_log(log, controlled=True, seen="always")
    with pytest.raises(rs.RestiveError, match="seen"):
        rs.fit_log(log, seen="sometimes")
