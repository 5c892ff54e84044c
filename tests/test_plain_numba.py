"""Kernels compiled by public `numba.njit` alone: the same bits, and when that happens by itself."""

import json
import os
import subprocess
import sys

import pytest

# A small chore of each room that computes; they share kernels, since plain Numba compiles slowly.
# What `serve` says goes through `live`, and `pages` only draws.
CHORES = """
import json, sys
from pathlib import Path
from tempfile import TemporaryDirectory
import numpy as np
import restive as rs
from restive.paper.runs import paper_study
from restive.studies.runner import run_study
from restive.studies.spec import study_from_data
from restive.studies.work import run_chunk

arm = rs.Arm([[0.3, 0.7], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0, 1])
bandit = rs.RestlessBandit([rs.gilbert_elliott(0.2, 0.7), rs.gilbert_elliott(0.4, 0.6), arm], 1)
prior = rs.grid_prior([0.2, 0.5, 0.8], 3)


def problem():
    return rs.theory.belief_table(arm), rs.theory.stationary(arm.passive)


def plan():
    # waiting times and sign changes, and a joint chain
    indices = rs.policies.whittle_index(arm, max_elapsed=9).index
    return indices, rs.evaluate(bandit, "myopic").average_reward


def learn():
    agent = rs.TSDE(prior, 1, horizon=40, seed=1)
    said = []
    for t in range(20):
        said.append(agent.select())
        agent.observe([t % 3 % 2])
    return *said, *(agent.posterior(k).weights for k in range(3))


def measure():
    ran = rs.simulate(bandit, rs.myopic(bandit), 40, seed=1)
    return ran.arms, ran.rewards


def studies():
    data = {"kind": "bayesian", "num_pulls": 1, "horizon": 40, "replications": 4}
    data |= {"policy_mappings": ["whittle"], "prior": {"levels": [0.2, 0.5, 0.8], "num_arms": 3}}
    with TemporaryDirectory() as folder:
        run_study(study_from_data(data), Path(folder), executor="serial")
        (found,) = rs.load_results(folder)
        return found.regret.mean, found.regret.upper


def paper():
    (case, *_) = paper_study("frequentist").cases
    done = run_chunk(case.settings.model_copy(update={"horizon": 60}).to_json(), 0, 2)
    return done["expected"], done["episodes"]


def live():
    with TemporaryDirectory() as folder:
        path = Path(folder) / "live.db"
        agent = rs.LiveAgent.create(path, prior, 1, clock=rs.Clock.calls(), seed=1)
        said = []
        for t in range(12):
            decision = agent.decide()
            agent.record({name: t % 3 % 2 for name in decision.arms})
            said += [[int(name) for name in decision.arms], decision.expected]
        told = agent.belief("0"), agent.posterior("0").weights
        agent.close()
    return *said, *told


def logs():
    rng = np.random.default_rng(1)
    columns = {"arm": [0, 1] * 45, "step": np.arange(90) // 2, "state": rng.integers(0, 2, 90)}
    log = rs.load_log(columns, time="step", arm="arm", state="state")
    fitted = rs.fit_log(log, checks=False)
    return fitted.arms.passive, fitted.arms.low


said = {
    chore.__name__: [np.asarray(array, dtype=float).tobytes().hex() for array in chore()]
    for chore in (problem, plan, learn, measure, studies, paper, logs, live)
}
sys.stdout.write(json.dumps(said))
"""


def ran(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def told(done: subprocess.CompletedProcess[str]) -> list[str]:
    return [line for line in done.stderr.splitlines() if "restive: compiling" not in line]


def test_every_room_computes_the_same_bits():
    usual, plain = ran(CHORES), ran(CHORES, RESTIVE_PLAIN_NUMBA="1")
    found = json.loads(usual.stdout)
    assert json.loads(plain.stdout) == found
    assert sum(len(number) for chore in found.values() for number in chore) > 2_000
    assert told(usual) == told(plain) == []


MODE = """
from restive.kernels.jit.mode import MODE
from restive.kernels.chain import stationary_law
print(MODE, "restive.kernels.jit.parts" in __import__("sys").modules)
"""


@pytest.mark.parametrize("version", ["0.61.2", "0.69.0rc1", "1.0.0", "unknown"])
def test_an_untried_numba_compiles_plainly_and_says_so_once(version):
    done = ran(f"import numba; numba.__version__ = {version!r}\n{MODE}")
    assert done.stdout.split() == ["plain", "False"]
    assert told(done) == [
        f"restive: Numba {version} was not tried: kernels compile plainly, to the same numbers but "
        "more slowly (RESTIVE_PLAIN_NUMBA=1 does so without this line)"
    ]


def test_a_numba_of_another_inside_compiles_plainly_and_says_so_once():
    done = ran(f"import numba.core.codegen\ndel numba.core.codegen.JITCodeLibrary\n{MODE}")
    assert done.stdout.split()[0] == "plain"
    (line,) = told(done)
    assert "is not as expected (cannot import name 'JITCodeLibrary'" in line


@pytest.mark.parametrize(
    ("environment", "mode"),
    [
        ({}, "tricks"),
        ({"RESTIVE_PLAIN_NUMBA": "0"}, "tricks"),
        ({"RESTIVE_PLAIN_NUMBA": "1"}, "plain"),
        ({"RESTIVE_PLAIN_NUMBA": "1", "NUMBA_DISABLE_JIT": "1"}, "python"),
    ],
)
def test_who_sets_a_switch_is_not_told(environment, mode):
    done = ran(MODE, **environment)
    assert done.stdout.split()[0] == mode
    assert done.stderr == ""
