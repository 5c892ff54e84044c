"""Interruptible work: the same results and errors on any threads, and none left behind."""

import os
import signal
import threading
import time
from contextlib import suppress

import pytest

from restive import threads
from restive.studies.runner import run_study
from restive.threads import on_all_cores, stop_if_interrupted, worker_pool
from study_cases import FREQUENTIST, changed, chunk_paths

COUNTS = (1, 2, 5)


@pytest.fixture(params=COUNTS, ids=lambda count: f"{count} threads")
def num_threads(request, monkeypatch):
    monkeypatch.setattr(threads, "available_threads", lambda: request.param)
    return request.param


def no_worker_is_left():
    return not [t for t in threading.enumerate() if t.name.startswith("restive-worker")]


@pytest.mark.parametrize("count", [0, 1, 7, 8, 100])
def test_every_task_is_done_once_and_reported(num_threads, count):
    done, told = [], []
    on_all_cores(done.append, count, told.append)
    assert sorted(done) == list(range(count))
    assert sum(told) == count
    assert no_worker_is_left()


def test_the_error_is_that_of_the_first_task_that_fails(num_threads):
    def task(number):
        if number == 20:
            time.sleep(0.02)  # so that later ones fail before it
        if number >= 20:
            raise ValueError(number)

    with pytest.raises(ValueError, match=r"^20$"):
        on_all_cores(task, 200)
    assert no_worker_is_left()


def test_work_that_nobody_waits_for_ends_where_it_looks():
    begun = threading.Event()

    def for_ever():
        begun.set()
        while True:
            with suppress(Exception):  # what the work itself catches does not keep it going
                stop_if_interrupted()

    with suppress(KeyboardInterrupt), worker_pool(2) as pool:
        running = pool.submit(for_ever)
        waiting = [pool.submit(for_ever) for _ in range(5)]
        begun.wait()
        raise KeyboardInterrupt
    assert running.done()
    assert sum(other.cancelled() for other in waiting) >= 4
    assert no_worker_is_left()


def test_off_the_main_thread_tasks_are_done_one_by_one(num_threads):
    doing = set()
    thread = threading.Thread(
        target=on_all_cores, args=(lambda _: doing.add(threading.current_thread()), 50)
    )
    thread.start()
    thread.join()
    assert doing == {thread}


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_ctrl_c_in_a_study_does_not_wait_for_its_chunks(tmp_path, executor):
    """A chunk of one replication of so many steps takes minutes."""
    study = changed(FREQUENTIST, horizon=10**9, times=2, replications=4)
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    def begin(progress):
        threading.Timer(0.5, interrupt).start()

    with pytest.raises(KeyboardInterrupt):
        run_study(study, tmp_path / "out", executor=executor, workers=2, progress=begin)
    assert time.perf_counter() - sent[0] < 10
    assert not chunk_paths(tmp_path / "out")
    assert no_worker_is_left()
