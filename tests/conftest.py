"""Settings that hold for every test."""

import os

# One thread for linear algebra, before numpy is loaded: the matrices are small, and two test
# processes that each start a thread per core only get in each other's way.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# What is printed into a file or a pipe is as wide as COLUMNS says, if it says so.
os.environ.pop("COLUMNS", None)

import signal
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from chromium import CHROMIUM
from postgres_server import POSTGRES

settings.register_profile("restive", derandomize=True, deadline=None, max_examples=40)
settings.load_profile("restive")
# Hypothesis also draws constants that it finds in the source of loaded modules. What a test draws
# would then depend on which tests ran before it in its process, and on any number in the source.
providers._get_local_constants = lambda: providers._local_constants


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a program that is not there; pytest counts it as deselected."""
    needed = {"tab": CHROMIUM, "postgres": POSTGRES}
    missing = {fixture for fixture, program in needed.items() if program is None}
    left_out = [item for item in items if missing.intersection(item.fixturenames)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not missing.intersection(item.fixturenames)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Deal tests to several processes by what they share."""
    from dealing import Dealer

    return Dealer(config, log)


def pytest_report_header(config):
    """Say so."""
    lines = {
        "no Chromium here: the tests of pages in a browser are left out": CHROMIUM,
        "no PostgreSQL here: the tests of agents in its databases are left out": POSTGRES,
    }
    return [line for line, program in lines.items() if program is None]


@pytest.fixture(autouse=True)
def _numpy_speaks_up():
    """Make a stray nan, infinity or division by zero an error instead of a number."""
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        yield


@pytest.fixture(scope="session")
def paper_bandit():
    """Return the frequentist instance of Section 6: K=4, N=2, all good half of the time."""
    import restive as rs

    levels = [(0.3, 0.7), (0.4, 0.6), (0.5, 0.5), (0.6, 0.4)]
    return rs.RestlessBandit([rs.gilbert_elliott(p01, p11) for p01, p11 in levels], num_pulls=2)


# A shell starts background jobs with Ctrl-C ignored, and what the tests start would inherit that.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)
