"""Compiling all kernels ahead, on all cores, so that nobody waits for it later.

Each chore uses some kernels once, in a process of its own. Kernels that are cached already take
no time.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import sleep

import numpy as np

from restive.errors import RestiveError
from restive.kernels.loop.choosing import top_of_each
from restive.learn.evidence import Evidence
from restive.learn.make import TSDE, make_learner
from restive.learn.priors.continuous import DirichletArmPrior
from restive.learn.priors.finite import ArmPrior
from restive.learn.priors.independent import IndependentPrior, beta_prior, grid_prior
from restive.learn.snapshots import restore
from restive.live.creating import rebuild_file
from restive.live.people.operator_files import AssumedWorld, create_from_files
from restive.logs.fitting import fit_log, write_fit
from restive.logs.reading import load_log
from restive.logs.replay import replay_log
from restive.measure.batch import BatchWorld
from restive.measure.regret import bayesian_regret, frequentist_regret
from restive.measure.world import World
from restive.plan.evaluate import evaluate
from restive.plan.policies.optimal import optimal
from restive.plan.policies.whittle import channel_whittle_index, whittle_index
from restive.plan.relaxation import relaxation_bound
from restive.problem.arm import Arm, gilbert_elliott
from restive.problem.bandit import RestlessBandit
from restive.threads import available_threads

__all__ = ["CHORES", "compile_kernels"]

LEVELS = [0.2, 0.5, 0.8]


def _agents() -> None:
    """Agents of TSDE's family, online."""
    agent = TSDE(grid_prior(LEVELS, 3), num_pulls=1, horizon=50, seed=0)
    for _ in range(20):
        agent.observe([0] * len(agent.select()))
    rested = next(k for k in range(3) if k not in agent.select())
    agent.observe([1])
    agent.skip(2)
    agent.observe_late(rested, 0, agent.time - 1)
    agent.beliefs([0])
    agent.impossible([0], [0])
    restore(agent.snapshot()).posterior(0)
    make_learner("epsilon_greedy", grid_prior(LEVELS, 3), 1, horizon=9, seed=0).select()


def _worlds() -> None:
    """Many copies of a world at once."""
    copies = BatchWorld(_outreach(), [0])
    copies.pull([[0]])
    assert copies.beliefs.shape == (1, 2, 3)
    top_of_each(np.zeros((1, 2)), np.zeros((1, 1), dtype=np.int64))


def _regret() -> None:
    """Replications of TSDE's family."""
    bayesian_regret(grid_prior(LEVELS, 3), 1, horizon=20, replications=2, seed=0)


def _other_learners() -> None:
    """All learners that are not of TSDE's family, online and replicated."""
    bandit = _outreach()
    prior = IndependentPrior([ArmPrior([arm]) for arm in bandit.arms])
    for name in ("ucb1", "beta_bernoulli", "regenerative_cycle", "restless_ucb"):
        learner = make_learner(name, prior, 1, horizon=40, seed=0, max_elapsed=2)
        for _ in range(3):
            learner.observe([0] * len(learner.select()))
        if name == "ucb1":
            learner.skip(1)
        frequentist_regret(
            bandit, prior, horizon=40, learner=name, replications=1, seed=0, max_elapsed=2
        )
    seen = RestlessBandit([gilbert_elliott(0.3, 0.6, seen="always")] * 2, 1)
    prior = IndependentPrior([DirichletArmPrior(np.ones((2, 2)), None, [0, 1], seen="always")] * 2)
    for name in ("tsde", "wiql"):
        frequentist_regret(seen, prior, horizon=20, learner=name, replications=1, seed=0)
        learner = make_learner(name, prior, 1, horizon=20, seed=0)
        learner.select()
        learner.observe([0, 1])


def _plans() -> None:
    """Policies and their values."""
    bandit = _outreach()
    for policy in ("best_fixed", "myopic", "whittle", "lp_priority", "best_index"):
        evaluate(bandit, policy)
        evaluate(bandit, policy, max_states=2)
    optimal(RestlessBandit(bandit.arms[:2], 1), max_elapsed=3)
    relaxation_bound(bandit)
    slow = Arm([[0.99, 0.01], [0.02, 0.98]], [[0.98, 0.02], [0.01, 0.99]], [0, 1])
    whittle_index(slow)
    whittle_index(bandit.arms[1], discount=0.9)
    channel_whittle_index(np.array([0.2]), np.array([0.7]), 5)
    paid = [Arm(arm.active, arm.passive, arm.rewards, arm.rewards) for arm in bandit.arms]
    World(RestlessBandit(paid, 1), seed=0, hidden=True).pull(np.array([0]))


def _logs() -> None:
    """A log fitted, checked and replayed; without pyarrow there are none."""
    if find_spec("pyarrow") is None:
        return
    shown = np.random.default_rng(0).integers(2, size=60)
    columns = {"arm": ["a", "b"] * 30, "step": np.repeat(np.arange(30), 2), "state": shown}
    log = load_log(columns, arm="arm", time="step", state="state")
    with TemporaryDirectory() as folder:
        write_fit(fit_log(log), Path(folder, "fit"))
    replay_log(log, num_pulls=1, policies=["whittle", "tsde"])


def _particles() -> None:
    """Continuous priors."""
    evidence = Evidence(2)
    for age in (1, 2, 3):
        evidence.add(0, age, 1)
        evidence.add(1, age, 0)
    for passive in (None, [[1, 1], [1, 1]]):
        prior = DirichletArmPrior([[1, 1], [1, 1]], passive, rewards=[0, 1])
        prior.mixing_time()
        prior.given(evidence).particles()


def _particle_learners() -> None:
    """TSDE's family under continuous priors, online and replicated."""
    _learn_continuously(beta_prior(3))


def _controlled_particle_learners() -> None:
    """The same where pulls change the law: the channels' kernels, and those of any arm's index."""
    arm = DirichletArmPrior([[1, 1], [1, 1]], [[1, 2], [1, 1]], rewards=[0, 1])
    _learn_continuously(IndependentPrior([arm] * 2))


def _learn_continuously(prior: IndependentPrior) -> None:
    agent = TSDE(prior, num_pulls=1, horizon=50, seed=0)
    for t in range(40):
        agent.observe([t % 2] * len(agent.select()))
    agent.skip(40)
    rested = 1 - min(1, int(agent.select()[0]))
    agent.observe([1])
    agent.observe_late(rested, 0, agent.time - 1)
    agent.beliefs([0])
    agent.impossible([0], [0])
    restore(agent.snapshot()).posterior(0)
    bayesian_regret(prior, 1, horizon=60, replications=2, seed=0)


def _live() -> None:
    """A live file whose kinds are learnt as it goes, until they were, and its rebuilding."""
    people = "arm,kind\n" + "".join(f"{k},{'ab'[k % 2]}\n" for k in range(6))
    with TemporaryDirectory() as folder:
        path, arms = Path(folder, "live.db"), Path(folder, "people.csv")
        arms.write_text(people, encoding="utf-8")
        live, *_ = create_from_files(
            path, None, None, arms, None, {"num_pulls": 2, "audit_pulls": 1},
            {"clock": "given", "start": None, "zone": "UTC", "by_hand": False},
            AssumedWorld(("bad", "good"), True, True, True), "warm-up",
        )  # fmt: skip
        with live:
            for tick in range(6):
                first, second = live.decide(tick=tick).arms
                live.record({first: tick % 2, second: "not-pulled"})
            live.explain("0")
        rebuild_file(path, None)


def _outreach() -> RestlessBandit:
    """Arms with two and three states that need pulls."""
    two = Arm([[0.3, 0.7], [0.1, 0.9]], [[0.9, 0.1], [0.4, 0.6]], [0, 1])
    three = Arm(
        [[0.2, 0.6, 0.2], [0.1, 0.3, 0.6], [0.1, 0.1, 0.8]],
        [[0.8, 0.1, 0.1], [0.4, 0.5, 0.1], [0.2, 0.4, 0.4]],
        [0, 0.5, 1],
    )
    return RestlessBandit([two, three], 1)


# The longest first, so that all cores end at about the same time; two that share many kernels do
# not run side by side, since both would compile them.
CHORES: dict[str, Callable[[], None]] = {
    "particle-learners": _particle_learners,
    "other-learners": _other_learners,
    "plans": _plans,
    "agents": _agents,
    "logs": _logs,
    "regret": _regret,
    "controlled-particle-learners": _controlled_particle_learners,
    "particles": _particles,
    "worlds": _worlds,
    "live": _live,
}


def compile_kernels(
    chores: Sequence[str] = tuple(CHORES), progress: Callable[[str], None] = lambda chore: None
) -> None:
    """Compile the kernels of some chores; `progress` is called with each that is done."""
    unknown = [chore for chore in chores if chore not in CHORES]
    if unknown:
        raise RestiveError(f"{unknown[0]!r} is not one of {', '.join(CHORES)}")
    waiting, running = list(chores), dict[str, subprocess.Popen[str]]()
    try:
        while waiting or running:
            while waiting and len(running) < available_threads():
                chore = waiting.pop(0)
                running[chore] = _begin(chore)
            for chore, process in list(running.items()):
                if process.poll() is not None:
                    del running[chore]
                    _require_well(chore, process)
                    progress(chore)
            sleep(0.05)
    finally:
        for process in running.values():
            process.kill()


def _begin(chore: str) -> subprocess.Popen[str]:
    code = f"from restive.cli.chores import CHORES; CHORES[{chore!r}]()"
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def _require_well(chore: str, process: subprocess.Popen[str]) -> None:
    _, said = process.communicate()
    if process.returncode != 0:
        last = said.strip().splitlines()[-1:] or ["no reason given"]
        raise RestiveError(f"compiling the kernels of {chore} failed: {last[0]}")
