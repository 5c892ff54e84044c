"""Ctrl-C ends a long run with KeyboardInterrupt, and the process works on."""

import os
import signal
import subprocess
import sys

import pytest

PATIENCE = 300  # seconds; an interrupt that is not heard would last for hours

LONG_RUN = """
import signal, sys, threading
import numpy as np
import restive as rs
from learning_cases import channels, posed, small_independent, trace
from restive.learn.learners import learner
from restive.measure.replication import replicate

signal.signal(signal.SIGINT, signal.default_int_handler)


class Lazy:
    def __init__(self, task, seed):
        self.num_pulls = task.num_pulls

    def select(self):
        return range(self.num_pulls)

    def observe(self, states):
        pass


def long_run(horizon, replications):
    times = np.array([horizon])
    if kind == "own":
        return rs.bayesian_regret(
            *channels(), "myopic", horizon, learner=Lazy, replications=replications, threads=threads
        )
    if kind == "agent":
        return rs.TSDE(*channels(), "myopic").skip(horizon)
    if kind == "simulate":
        agent = rs.TSDE(*channels(), "myopic")
        return rs.simulate(rs.RestlessBandit(
            [agent.prior.candidates(k)[0] for k in range(4)], 2), agent, horizon)
    if kind == "lp_priority":
        setup = posed(*small_independent(), "lp_priority", horizon)
    else:
        setup = posed(*channels(), "whittle", horizon, learner=learner(kind))
    return replicate(*setup, times, replications, threads=threads)


def before_and_after():
    arms, states = trace(posed(*channels(), "whittle", 200), 200, seed=1)
    small = long_run(50, 3)
    return arms.tobytes(), states.tobytes(), getattr(small, "expected", np.zeros(1)).tobytes()


for word in sys.argv[1:]:
    kind, threads = word.split()[0], int(word.split()[1])
    expected = before_and_after()  # and everything is compiled
    for attempt in range(2):
        try:
            print("ready", flush=True)
            long_run(10**7 if kind == "simulate" else 10**10, 3)
        except KeyboardInterrupt:
            pass
        else:
            sys.exit("it came to its end")
        assert before_and_after() == expected
        assert threading.active_count() == 1, threading.enumerate()
    print("works on", flush=True)
"""


# kinds of runs and threads
FAMILY = ["tsde 1", "tsde 2", "lp_priority 2"]
OTHERS = ["ucb1 2", "regenerative_cycle 1", "own 1", "own 2"]
ONLINE = ["agent 1", "simulate 1"]


@pytest.mark.parametrize(
    "runs", [FAMILY, OTHERS, ONLINE], ids=["family of TSDE", "others", "online"]
)
def test_ctrl_c_is_heard_and_the_process_works_on(runs):
    """Each run is interrupted twice, all in one process."""
    process = subprocess.Popen(
        [sys.executable, "-c", LONG_RUN, *runs],
        env=os.environ | {"PYTHONPATH": os.path.dirname(__file__)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for run in runs:
            for _ in range(2):
                assert process.stdout.readline() == "ready\n", (run, process.stderr.read())
                with pytest.raises(subprocess.TimeoutExpired):  # it is in the middle of it
                    process.wait(0.7)
                process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == "works on\n", (run, process.stderr.read())
        said, errors = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert said == "", errors[-2000:]
    assert process.returncode == 0, errors[-2000:]
    assert "Fatal" not in errors
