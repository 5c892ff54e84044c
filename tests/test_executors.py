"""Where the work runs changes nothing: the same bytes on threads, on clusters, after kills."""

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from time import sleep

import numpy as np
import pytest

import restive as rs
from restive import threads
from restive.cli import main
from restive.studies import executors, on_dask
from restive.studies.executors import TLS
from restive.studies.ledger import Ledger
from restive.studies.runner import run_study
from restive.studies.work import Chunk, run_chunk
from study_cases import (
    BAYESIAN,
    CONTINUOUS,
    FREQUENTIST,
    JOINT,
    LEARNERS,
    begin,
    bits,
    changed,
    changed_text,
    chunk_bytes,
    chunk_paths,
    frequentist,
    run,
    shell,
    start,
)

KILLS = int(os.environ.get("RESTIVE_KILLS", "3"))  # of the driver; more on demand
STUDIES = {
    "frequentist": FREQUENTIST,
    "bayesian": BAYESIAN,
    "joint": JOINT,
    "continuous": CONTINUOUS,
    "learners": LEARNERS,
}


@pytest.fixture(scope="module", params=STUDIES)
def undisturbed(request, tmp_path_factory):
    """Return a study, the contents of its chunks and its summaries, run one after the other."""
    folder = tmp_path_factory.mktemp("serial")
    study = changed(STUDIES[request.param])
    run(study, folder)
    return study, chunk_bytes(folder), [bits(found) for found in rs.load_results(folder)]


def same(folder, undisturbed):
    """Whether a folder holds the same bytes, and reads the same to the bit."""
    _, contents, summaries = undisturbed
    found = [bits(summary) for summary in rs.load_results(folder)]
    return chunk_bytes(folder) == contents and found == summaries


# ---------------------------------------------------------------- here and on threads


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_give_the_same_bytes(tmp_path, undisturbed, workers):
    run(undisturbed[0], tmp_path, executor="threads", workers=workers)
    assert same(tmp_path, undisturbed)


def test_by_default_there_is_a_thread_per_processor(tmp_path, undisturbed):
    run_study(undisturbed[0], tmp_path)
    assert [bits(found) for found in rs.load_results(tmp_path)] == undisturbed[2]


@contextmanager
def shuffling(name, *words, seed=0):
    """Be an executor that takes tasks by the dozen and gives them back in any order."""
    rng = np.random.default_rng(seed)

    def execute(tasks):
        for some in itertools.batched(tasks, 12) if sys.version_info >= (3, 12) else [list(tasks)]:
            for i in rng.permutation(len(some)):
                task = some[i]
                yield task, run_chunk(task.case.settings.to_json(), task.first, task.count)

    yield execute


@pytest.mark.parametrize("seed", range(3))
def test_any_order_gives_the_same_bytes(tmp_path, monkeypatch, undisturbed, seed):
    monkeypatch.setattr(
        "restive.studies.runner.open_executor",
        lambda *words, **options: shuffling(*words, seed=seed),
    )
    run(undisturbed[0], tmp_path)
    assert same(tmp_path, undisturbed)


@pytest.mark.parametrize("size", [1, 4, 1000])
def test_any_cut_into_chunks_gives_the_same_summary(tmp_path, undisturbed, size):
    study, _, summaries = undisturbed
    run(study, tmp_path, size=size)
    assert [bits(found) for found in rs.load_results(tmp_path)] == summaries


def test_chunks_of_any_sizes_give_the_same_summary(tmp_path, undisturbed):
    study, _, summaries = undisturbed
    ledger = begin(study, tmp_path)
    rng = np.random.default_rng(8)
    for case in study.cases:
        cuts = [0, *sorted(rng.choice(np.arange(1, study.replications), 4, replace=False))]
        for first, last in itertools.pairwise([*map(int, cuts), study.replications]):
            arrays = run_chunk(case.settings.to_json(), first, last - first)
            ledger.write(Chunk(case, first, last - first), arrays)
    assert [bits(found) for found in rs.load_results(tmp_path)] == summaries


def test_a_case_runs_alike_alone_and_among_others(tmp_path, undisturbed):
    study, contents, _ = undisturbed
    mapping = study.cases[1].mapping
    text = next(text for text in STUDIES.values() if changed(text).hash == study.hash)
    run(changed(text, learners='["tsde"]', policy_mappings=f'["{mapping}"]'), tmp_path)
    alone = {name.split("/")[1]: found for name, found in chunk_bytes(tmp_path).items()}
    among = {
        name.split("/")[1]: found for name, found in contents.items() if name.startswith("0001")
    }
    # what a file says of itself may name the case; the arrays are after the first line
    assert {name: found.partition(b"\n")[2] for name, found in alone.items()} == {
        name: found.partition(b"\n")[2] for name, found in among.items()
    }


def test_what_a_chunk_costs_is_bounded():
    """Chunks are short enough to lose, whatever the study."""
    from restive.studies.work import chunk_size, result_bytes

    for text in (
        FREQUENTIST,
        BAYESIAN.replace("horizon = 40", "horizon = 1_000_000_000"),
        BAYESIAN.replace("times = 8", "times = 1_000_000").replace("= 40", "= 10_000_000"),
        JOINT,
    ):
        for case in changed(text).cases:
            size = chunk_size(case)
            assert size >= 1
            assert size == 1 or size * result_bytes(case) <= 1 << 24
            assert size == 1 or size * case.settings.horizon <= 1 << 22


# ---------------------------------------------------------------- errors and early ends


def test_an_error_in_a_chunk_comes_through_and_what_is_done_is_kept(tmp_path, monkeypatch):
    """Here, that the prior rules out what is seen: arm 0 is never seen in the good state."""
    study = changed(FREQUENTIST.replace("levels = [0.2, 0.5, 0.8]", "levels = [0.5]"))
    real = executors.run_chunk

    def fail(text, first, count):
        if first >= 14:
            raise rs.errors.ProblemError("what was seen has probability zero")
        return real(text, first, count)

    monkeypatch.setattr(executors, "run_chunk", fail)
    for name in ("serial", "threads"):
        with pytest.raises(rs.errors.ProblemError, match="what was seen has probability zero"):
            run(study, tmp_path / name, executor=name, workers=2)
        assert len(chunk_paths(tmp_path / name)) <= 4
    monkeypatch.undo()
    run(study, tmp_path / "serial")
    run(study, tmp_path / "threads", executor="threads")
    assert chunk_bytes(tmp_path / "serial") == chunk_bytes(tmp_path / "threads")


def test_what_has_not_begun_when_the_reader_stops_never_does(tmp_path, monkeypatch):
    """Else Ctrl-C would wait for chunks that nobody wants."""
    ended = threading.Event()
    ran = []

    def chunk(text, first, count):
        ran.append(first)
        if len(ran) > 1:
            ended.wait(60)  # until the pool is told to end, which the first chunk's reader does
        return run_chunk(text, first, count)

    class Pool(ThreadPoolExecutor):
        def shutdown(self, *words, **options):
            ended.set()
            super().shutdown(*words, **options)

    monkeypatch.setattr(executors, "run_chunk", chunk)
    monkeypatch.setattr(threads, "ThreadPoolExecutor", Pool)

    def stop(progress):
        if progress.done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(frequentist(), tmp_path, executor="threads", workers=1, progress=stop)
    assert len(ran) <= 2  # the one that was written, and the one that was running
    assert len(chunk_paths(tmp_path)) == 1


@pytest.mark.parametrize("executor", ["serial", "threads"])
def test_the_driver_keeps_only_a_few_results(tmp_path, monkeypatch, executor):
    """However slow it is to write them."""
    begun, written, most = [], [], []
    real_chunk, real_write = executors.run_chunk, Ledger.write

    def chunk(*words):
        begun.append(words)
        return real_chunk(*words)

    def write(self, task, arrays):
        sleep(0.002)
        most.append(len(begun) - len(written))
        written.append(task)
        real_write(self, task, arrays)

    monkeypatch.setattr(executors, "run_chunk", chunk)
    monkeypatch.setattr(Ledger, "write", write)
    run(frequentist(), tmp_path, size=1, executor=executor, workers=2)
    assert len(begun) == len(written) == 60
    assert max(most) <= 6  # two that run, two more for each thread


def test_tables_of_many_cases_are_made_once_each(tmp_path, monkeypatch):
    """Chunks of many cases take turns: what one has made must not be thrown away for the next."""
    from restive.studies import work

    made = []
    real = work.make_task

    def counted(*words, **named):
        made.append(1)
        return real(*words, **named)

    study = changed(BAYESIAN + "[sweep]\nseed = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]\n")
    work.prepared.cache_clear()
    work._task.cache_clear()
    monkeypatch.setattr(work, "make_task", counted)
    run(study, tmp_path)
    assert len(chunk_paths(tmp_path)) == 100
    assert len(made) <= 2 * len(study.cases)


# ---------------------------------------------------------------- kills of the driver


def test_a_driver_that_is_killed_again_and_again(tmp_path):
    """At moments given by a seed: so many more chunks, and then a little later."""
    study = frequentist(horizon=3000, replications=300)
    size = 3 if KILLS <= 10 else 1
    run(study, tmp_path / "whole", size=size)
    text = tmp_path / "study.toml"
    text.write_text(changed_text(FREQUENTIST, horizon=3000, replications=300))
    folder = tmp_path / "killed"
    begin(study, folder, size=size)
    total = len(chunk_paths(tmp_path / "whole"))
    rng = np.random.default_rng(KILLS)
    moments = set()
    for number in range(KILLS):
        before = len(chunk_paths(folder))
        # in turn while it starts, and after some chunks
        wanted = before + int(rng.integers(1, max(2, (total - before) // (KILLS - number + 1))))
        driver = start("run", text, "--out", folder, "--workers", 1 + number % 2)
        if number % 3 == 1:
            sleep(float(rng.uniform(0, 1.5)))
        else:
            while len(chunk_paths(folder)) < wanted and driver.poll() is None:
                sleep(0.005)
            sleep(float(rng.uniform(0, 0.01)))
        driver.send_signal(signal.SIGKILL)
        _, errors = driver.communicate()
        assert "Traceback" not in errors
        done = len(chunk_paths(folder))
        moments.add("nothing" if done == before else "all" if done == total else "some")
        whole = chunk_bytes(tmp_path / "whole")
        now = {name: found for name, found in chunk_bytes(folder).items() if "/." not in name}
        assert all(whole[name] == found for name, found in now.items())
    assert "some" in moments
    done = shell("run", text, "--out", folder)
    assert done.returncode == 0
    assert done.stderr == ""
    assert chunk_bytes(folder) == chunk_bytes(tmp_path / "whole")
    for one, other in zip(
        rs.load_results(folder), rs.load_results(tmp_path / "whole"), strict=True
    ):
        assert bits(one) == bits(other)


# ---------------------------------------------------------------- Dask


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of two worker processes that is there already."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    ) as found:
        yield found


def test_an_existing_cluster_gives_the_same_bytes(tmp_path, cluster, undisturbed):
    lines = []
    address = cluster.scheduler_address
    assert address.startswith("tcp://")
    run(undisturbed[0], tmp_path, executor="dask", scheduler=address, tell=lines.append)
    assert same(tmp_path, undisturbed)
    assert len(lines) == 1
    assert lines[0].startswith("dashboard: http://")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    """Return the files of a certificate that vouches for itself."""
    folder = tmp_path_factory.mktemp("tls")
    files = TLS(folder / "cert.pem", folder / "cert.pem", folder / "key.pem")
    words = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    places = ["-keyout", str(files.key), "-out", str(files.cert)]
    subprocess.run(["openssl", "req", *words, *places], check=True, capture_output=True)
    return files


def test_a_cluster_that_is_spoken_to_in_tls(tmp_path, certificate):
    from distributed import LocalCluster
    from distributed.security import Security

    whole = run(frequentist(), tmp_path / "whole")
    roles = {
        f"tls_{role}_{what}": str(getattr(certificate, what))
        for role in ("scheduler", "worker", "client")
        for what in ("cert", "key")
    }
    security = Security(tls_ca_file=str(certificate.ca_file), require_encryption=True, **roles)
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tls://", security=security,
        dashboard_address="127.0.0.1:0", silence_logs=50,
    ) as found:  # fmt: skip
        address = found.scheduler_address
        assert address.startswith("tls://")
        run(frequentist(), tmp_path / "tls", executor="dask", scheduler=address, tls=certificate)
    assert chunk_bytes(tmp_path / "tls") == chunk_bytes(whole.folder)


def test_tls_that_cannot_be(tmp_path, certificate, capsys, monkeypatch):
    study = frequentist()
    for scheduler in (None, "tcp://127.0.0.1:1"):
        with pytest.raises(rs.errors.ProblemError, match="TLS goes with a scheduler at tls://"):
            run(study, tmp_path / "out", executor="dask", scheduler=scheduler, tls=certificate)
    wrong = replace(certificate, key=tmp_path / "none.pem")
    with pytest.raises(rs.errors.ProblemError, match=r"none\.pem: cannot be read: No such file"):
        run(study, tmp_path / "out", executor="dask", scheduler="tls://127.0.0.1:1", tls=wrong)
    text = tmp_path / "study.toml"
    text.write_text(FREQUENTIST)
    words = ["run", str(text), "--out", str(tmp_path / "out"), "--tls-key", "key.pem"]
    monkeypatch.setattr(sys, "argv", ["restive", *words])
    with pytest.raises(SystemExit):
        main()
    assert capsys.readouterr().err == (
        "restive: give --tls-ca-file, --tls-cert and --tls-key together\n"
    )
    assert not (tmp_path / "out").exists()


def test_a_worker_that_is_killed_changes_nothing(tmp_path, cluster):
    from distributed import Client

    with Client(cluster) as client:
        pids = list(client.run(os.getpid).values())
    assert len(pids) == 2
    killed = []

    def kill(progress):
        if progress.done >= 6 and not killed:
            killed.append(pids[0])
            os.kill(pids[0], signal.SIGKILL)

    study = frequentist(replications=60)
    run(study, tmp_path / "whole", size=2)
    address = cluster.scheduler_address
    run(study, tmp_path / "killed", 2, executor="dask", scheduler=address, progress=kill)
    assert killed
    assert chunk_bytes(tmp_path / "killed") == chunk_bytes(tmp_path / "whole")


def test_a_task_whose_workers_die_is_given_up_in_the_end(tmp_path, cluster, monkeypatch):
    from distributed import KilledWorker

    class Deadly:
        """A client all of whose tasks kill their workers."""

        submitted = 0
        status = "running"

        def run(self, function, *words, workers, on_error):
            return {worker: function(*words) for worker in workers}

        def submit(self, *words, **options):
            self.submitted += 1
            return self

        def nthreads(self):
            return {"worker": 1}

        def result(self):
            raise KilledWorker("task", None, 3)

        def release(self):
            pass

        def cancel(self, futures):
            pass

    class Completed(list):
        """Futures that are completed as soon as they are added."""

        def __init__(self, with_results):
            super().__init__()

        add = list.append

        def has_ready(self):
            return len(self) > 0

        def __next__(self):
            return self.pop()

    monkeypatch.setattr("distributed.as_completed", Completed)
    client = Deadly()
    case = frequentist().cases[0]
    with pytest.raises(rs.RestiveError, match="the workers that ran replications 3 to 7 of myopic"):
        list(on_dask._execute(client, [Chunk(case, 3, 5)]))
    assert client.submitted == 1 + on_dask.MOST_RETURNS


def test_an_error_on_a_worker_comes_through(tmp_path, cluster, monkeypatch):
    address = cluster.scheduler_address
    monkeypatch.setattr(on_dask, "run_chunk", os.path.join)  # which does not take numbers
    with pytest.raises(rs.RestiveError, match="TypeError"):
        run(frequentist(), tmp_path, executor="dask", scheduler=address)


def test_a_worker_that_joins_late_does_the_work(tmp_path):
    """Nobody is there at first: the run waits for somebody to come."""
    from distributed import LocalCluster

    whole = run(frequentist(), tmp_path / "whole")
    helpers, lines = [], []
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        address = cluster.scheduler_address

        def join(line):
            """Start a worker once the run has said that nobody is there."""
            lines.append(line)
            if "no worker" in line:
                helpers.append(dask_worker(address))

        folder = tmp_path / "late"
        try:
            run(frequentist(), folder, executor="dask", scheduler=address, tell=join)
        finally:
            for helper in helpers:
                helper.terminate()
                helper.wait()
    assert len(helpers) == 1
    assert lines[1:] == [f"{address}: no worker is there; waiting for one: dask worker {address}"]
    assert chunk_bytes(folder) == chunk_bytes(whole.folder)


def dask_worker(address, **environment):
    """Start a worker process that joins the cluster at this address."""
    words = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--death-timeout", "60"]
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", address, *words],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | environment,
    )


def test_a_worker_without_restive_is_refused(tmp_path):
    """Handed a task it would end itself, and the driver would wait for ever."""
    from distributed import LocalCluster

    stub = tmp_path / "stub" / "restive" / "__init__.py"
    stub.parent.mkdir(parents=True)
    stub.write_text("raise ModuleNotFoundError('No module named restive')")
    with LocalCluster(n_workers=0, dashboard_address="127.0.0.1:0", silence_logs=50) as cluster:
        address = cluster.scheduler_address
        helper = dask_worker(address, PYTHONPATH=str(tmp_path / "stub"))
        try:
            words = r"the Dask worker at tcp://.* has no restive of this version \(No module named"
            with pytest.raises(rs.RestiveError, match=words):
                run(frequentist(), tmp_path / "out", executor="dask", scheduler=address)
        finally:
            helper.terminate()
            helper.wait()
    assert chunk_paths(tmp_path / "out") == []


def test_a_worker_whose_numbers_are_others_is_refused(tmp_path, cluster, monkeypatch):
    monkeypatch.setattr(on_dask, "NUMBERS", 99)
    address = cluster.scheduler_address
    with pytest.raises(rs.RestiveError, match=r"other random numbers \(version \d+, here 99\)"):
        run(frequentist(), tmp_path, executor="dask", scheduler=address)
    assert chunk_paths(tmp_path) == []


def test_a_scheduler_that_dies_is_told_and_what_is_done_is_kept(tmp_path, monkeypatch):
    from distributed import LocalCluster

    monkeypatch.setattr(on_dask, "CONNECT_SECONDS", 1)
    cluster = LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        silence_logs=50,
    )
    address = cluster.scheduler_address

    def close(progress):
        if progress.done:
            cluster.close()

    with pytest.raises(rs.RestiveError, match="run the same command again"):
        run(frequentist(), tmp_path, 1, executor="dask", scheduler=address, progress=close)
    assert len(chunk_paths(tmp_path)) >= 1
    run(frequentist(), tmp_path)
    whole = run(frequentist(), tmp_path / "whole", 1)
    assert chunk_bytes(tmp_path) == chunk_bytes(whole.folder)


def test_a_scheduler_that_is_not_there(tmp_path):
    """In a process of its own: what Dask leaves behind then is not ours to tidy."""
    address = "tcp://127.0.0.1:1"
    text = tmp_path / "study.toml"
    text.write_text(FREQUENTIST)
    code = "from restive.studies import on_dask; on_dask.CONNECT_SECONDS = 0.2; "
    code += "from restive.cli import main; main()"
    words = ["run", str(text), "--out", str(tmp_path / "out"), "--scheduler", address]
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert f"restive: {address}: no Dask scheduler answers" in done.stderr
    assert chunk_paths(tmp_path / "out") == []


def test_somebody_else_listens_at_the_address(tmp_path):
    """In a process of its own, since Dask goes on waiting there."""
    text = tmp_path / "study.toml"
    text.write_text(FREQUENTIST)
    code = "from restive.studies import on_dask; on_dask.CONNECT_SECONDS = 0.5; "
    code += "on_dask.GRACE_SECONDS = 0.5; from restive.cli import main; main()"
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        threading.Thread(target=talk_http, args=[other], daemon=True).start()
        words = ["run", str(text), "--out", str(tmp_path / "out"), "--scheduler", address]
        done = subprocess.run(
            [sys.executable, "-c", code, *words],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert done.returncode == 2
    assert f"restive: {address}: " in done.stderr
    assert "no Dask scheduler answers" in done.stderr
    assert "Traceback" not in done.stderr


def talk_http(server):
    """Answer as a web server does that is asked something it does not understand."""
    with suppress(OSError):
        while True:
            connection = server.accept()[0]
            connection.recv(1000)
            connection.sendall(b"HTTP/1.0 400 Bad request\r\n\r\n" + b"what?" * 1000)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.0, 2.0])
def test_ctrl_c_while_a_cluster_starts_leaves_no_traceback(tmp_path, seconds):
    text = tmp_path / "study.toml"
    text.write_text(changed_text(FREQUENTIST, horizon=2000, replications=20_000))
    folder = tmp_path / "out"
    words = ("run", text, "--out", folder, "--executor", "dask", "--workers", 2)
    driver = start(*words, start_new_session=True)
    while not (folder / "manifest.json").exists() and driver.poll() is None:
        sleep(0.005)
    sleep(seconds)
    os.killpg(driver.pid, signal.SIGINT)
    out, errors = driver.communicate(timeout=60)
    assert (driver.returncode, out) == (130, "")
    assert "Traceback" not in errors
    kept = f"what is done is kept in {folder}, " if chunk_paths(folder) else "nothing was finished"
    assert f"restive: stopped; {kept}" in errors.splitlines()[-1]


def test_a_scheduler_that_is_killed_is_told_in_one_sentence(tmp_path):
    """From the command line, where Dask would write pages of tracebacks."""
    file = tmp_path / "scheduler.json"
    scheduler = subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard",
         "--host", "127.0.0.1", "--scheduler-file", str(file)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    helper = None
    try:
        while not file.exists():
            sleep(0.01)
        sleep(0.1)
        address = json.loads(file.read_text())["address"]
        helper = dask_worker(address)
        text, folder = tmp_path / "study.toml", tmp_path / "out"
        study = frequentist(horizon=1000, replications=3000)
        text.write_text(changed_text(FREQUENTIST, horizon=1000, replications=3000))
        begin(study, folder, size=2)
        driver = start("run", text, "--out", folder, "--scheduler", address, "--executor", "dask")
        while len(chunk_paths(folder)) < 5 and driver.poll() is None:
            sleep(0.005)
        scheduler.kill()
        errors = driver.communicate(timeout=120)[1]
    finally:
        scheduler.kill()
        scheduler.wait()
        if helper is not None:
            helper.kill()
            helper.wait()
    assert driver.returncode == 2
    assert "Traceback" not in errors
    *_, last = errors.splitlines()
    assert last.startswith("restive: the Dask cluster failed: the scheduler has gone; ")
    assert last.endswith("what is done is kept: run the same command again")


def test_without_distributed_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(rs.RestiveError, match=r"pip install 'restive\[cluster\]'"):
        run(frequentist(), tmp_path, executor="dask")


def test_a_cluster_of_its_own_gives_the_same_bytes_and_ends_on_ctrl_c(tmp_path):
    """From the command line: two worker processes, which read the main module anew.

    A terminal sends Ctrl-C to all of them; a second command goes on without a cluster.
    """
    study = frequentist(horizon=1000, replications=300)
    whole = run(study, tmp_path / "whole", size=2)
    text = tmp_path / "study.toml"
    text.write_text(changed_text(FREQUENTIST, horizon=1000, replications=300))
    folder = tmp_path / "out"
    begin(study, folder, size=2)
    words = ("run", text, "--out", folder)
    driver = start(*words, "--executor", "dask", "--workers", 2, start_new_session=True)
    while len(chunk_paths(folder)) < 20 and driver.poll() is None:
        sleep(0.005)
    os.killpg(driver.pid, signal.SIGINT)
    out, errors = driver.communicate()
    assert (driver.returncode, out) == (130, "")
    assert "Traceback" not in errors
    first, last = errors.splitlines()
    assert first.startswith("restive: dashboard: http://127.0.0.1:")
    assert last.startswith(f"restive: stopped; what is done is kept in {folder}, ")
    by_cluster = chunk_bytes(folder)
    assert 20 <= len(by_cluster) < 300
    assert by_cluster.items() <= chunk_bytes(whole.folder).items()
    assert shell(*words).returncode == 0
    assert chunk_bytes(folder) == chunk_bytes(whole.folder)
    runs = Ledger.open(folder).manifest["runs"]
    assert [once["executor"] for once in runs] == ["dask", "threads"]
