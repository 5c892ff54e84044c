"""Studies that the tests of specs, ledgers, executors and summaries share."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from restive.studies.ledger import Ledger
from restive.studies.runner import run_study
from restive.studies.spec import study_from_toml

FREQUENTIST = """
kind = "frequentist"
policy_mappings = ["myopic", "whittle"]
horizon = 40
times = 8
seed = 7
posterior = true
replications = 30

[problem]
num_pulls = 1
[[problem.arm]]
p01 = 0.2
p11 = 0.8
[[problem.arm]]
p01 = 0.5
p11 = 0.2
count = 2

[prior]
levels = [0.2, 0.5, 0.8]
"""
BAYESIAN = """
kind = "bayesian"
policy_mappings = ["best_fixed", "whittle"]
horizon = 40
times = 8
seed = 7
num_pulls = 1
replications = 30

[prior]
levels = [0.2, 0.5, 0.8]
num_arms = 3
"""
JOINT = """
kind = "bayesian"
policy_mappings = ["whittle", "lp_priority"]
horizon = 25
times = 6
seed = 3
num_pulls = 1
posterior = true
replications = 12

[[prior.bandit]]
weight = 2
[[prior.bandit.arm]]
p01 = 0.3
p11 = 0.6
[[prior.bandit.arm]]
p01 = 0.6
p11 = 0.4
[[prior.bandit]]
[[prior.bandit.arm]]
p01 = 0.3
p11 = 0.6
[[prior.bandit.arm]]
p01 = 0.2
p11 = 0.7
[[prior.bandit]]
[[prior.bandit.arm]]
p01 = 0.5
p11 = 0.8
[[prior.bandit.arm]]
p01 = 0.6
p11 = 0.4
"""
CONTINUOUS = """
kind = "bayesian"
learners = ["tsde", "certainty_equivalence"]
policy_mappings = ["whittle", "best_fixed"]
horizon = 60
times = 6
seed = 3
num_pulls = 2
replications = 12

[[prior.arm]]
beta = {p01 = [1, 2], particles = 32}
count = 3
pooled = true
[[prior.arm]]
[prior.arm.dirichlet]
active = [[1, 1, 0], [0, 1, 1], [1, 1, 1]]
rewards = [0, 0.4, 0.8]
particles = 32
[[prior.arm]]
[[prior.arm.candidate]]
p01 = 0.2
p11 = 0.7
[[prior.arm.candidate]]
p01 = 0.6
p11 = 0.4
"""
LEARNERS = """
kind = "frequentist"
learners = ["tsde", "ucb1", {name = "epsilon_greedy", epsilon = 0.2}]
policy_mappings = ["whittle", "lp_priority"]
horizon = 25
times = 5
seed = 3
posterior = true
replications = 12

[problem]
num_pulls = 1
[[problem.arm]]
p01 = 0.2
p11 = 0.8
[[problem.arm]]
p01 = 0.5
p11 = 0.2

[prior]
levels = [0.2, 0.5, 0.8]
"""
CHUNK = 7  # replications, so that the studies above have several chunks, the last one shorter


def frequentist(**changes):
    """Return the small frequentist study with some keys changed."""
    return changed(FREQUENTIST, **changes)


def changed(text, **changes):
    """Return the study of a text with some of its top-level keys changed."""
    return study_from_toml(changed_text(text, **changes))


def changed_text(text, **changes):
    """Return a study's text; top-level keys are replaced, or added at its beginning."""
    lines = text.splitlines()
    for key, value in changes.items():
        lines = [line for line in lines if not line.startswith(f"{key} =")]
        lines.insert(0, f"{key} = {value}")
    return "\n".join(lines) + "\n"


@contextmanager
def small_chunks(size=CHUNK):
    """Let ledgers that are begun here have small chunks: their size is in the manifest."""
    from restive.studies import manifest

    before = manifest.chunk_size
    manifest.chunk_size = lambda case: size
    try:
        yield
    finally:
        manifest.chunk_size = before


def run(study, folder, size=CHUNK, **options):
    """Run a study in small chunks; return its ledger."""
    with small_chunks(size):
        return run_study(study, folder, **{"executor": "serial", **options})


def begin(study, folder, size=CHUNK):
    """Make a ledger that has nothing but its manifest."""
    with small_chunks(size), Ledger.writing(Path(folder), study) as ledger:
        return ledger


def chunk_paths(folder):
    """Return the chunks' files, in order; not those that are just being written."""
    return sorted(Path(folder).glob("chunks/*/[0-9]*.chunk"))


def chunk_bytes(folder):
    """Return the contents of everything below chunks/, by name."""
    top = Path(folder) / "chunks"
    return {
        str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()
    }


def everything(folder):
    """Return the contents of a folder, by name."""
    folder = Path(folder)
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def concatenated(ledger, case):
    """Return the arrays of a case over all its replications."""
    parts = [arrays for _, arrays in ledger.chunks(case)]
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


CURVES = ("regret", "realised_regret", "average_reward", "oracle_reward", "num_episodes")


def bits(summary):
    """Return all numbers of a summary as bytes: equal to the bit, or not."""
    curves = [getattr(summary, name) for name in CURVES]
    if summary.truth_weights is not None:
        curves.append(summary.truth_weights)
    arrays = [array for curve in curves for array in (curve.mean, curve.stderr)]
    arrays += [summary.times, summary.truth_rewards, summary.final_regrets]
    found = [array.tobytes() for array in arrays]
    return [*found, summary.replications, summary.baseline, summary.truth_method, summary.slope]


def command(*words):
    """Return the command line of restive as a list of words."""
    return [sys.executable, "-m", "restive", *map(str, words)]


def shell(*words, **options):
    """Run restive as the shell would."""
    return subprocess.run(command(*words), capture_output=True, text=True, check=False, **options)


def start(*words, **options):
    """Start restive; it has its own group of processes and inherits nothing that warns."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command(*words), **{**pipes, "env": dict(os.environ), **options})
