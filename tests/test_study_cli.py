"""`restive run`, `status` and `export`: what they print, how they refuse, how they stop."""

import os
import pty
import re
import signal
import sys
from time import sleep

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import restive as rs
from restive.cli import app, main, progress
from restive.studies.ledger import Ledger
from restive.studies.runner import Progress
from study_cases import (
    BAYESIAN,
    FREQUENTIST,
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


@pytest.fixture
def study(tmp_path):
    """Return the path of a small study."""
    path = tmp_path / "small.toml"
    path.write_text('title = "Small [b]study"\n' + FREQUENTIST)
    return path


def cli(*words):
    """Run a command in this process; its output, once it has ended well."""
    result = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    assert result.stderr == ""
    return result.stdout


def rows_of(out):
    """Return the rows of a printed table, by their first cell."""
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in out.splitlines()]
    return {row[0]: row[1:] for row in rows if row}


def refused(capsys, monkeypatch, *words):
    """Run a command as the shell would; what it says on stderr."""
    monkeypatch.setattr(sys, "argv", ["restive", *map(str, words)])
    with pytest.raises(SystemExit) as caught:
        main()
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert "Traceback" not in err
    return err


# ---------------------------------------------------------------- run


def test_a_run_prints_what_load_results_says(study, tmp_path):
    out = cli("run", study, "--out", tmp_path / "out")
    assert "Small [b]study" in out
    table = rows_of(out)
    for found in rs.load_results(tmp_path / "out"):
        assert table[found.case.mapping] == [
            "30",
            f"{found.regret.mean[-1]:.4g}",
            f"{stats.t.ppf(0.975, found.replications - 1) * found.regret.stderr[-1]:.2g}",
            f"{found.average_reward.mean[-1]:.5g}",
            f"{found.truth_reward[0]:.5g}",
            f"{found.num_episodes.mean[-1]:.4g}",
        ]
    assert f"kept in {tmp_path / 'out'}; to see it: restive report {tmp_path / 'out'}" in out
    assert cli("run", study, "--out", tmp_path / "out") == out


def test_options_of_a_run(study, tmp_path):
    folder = tmp_path / "out"
    cli("run", study, "--out", folder, "--replications", 5, "--executor", "serial")
    cli("run", study, "--out", folder, "--replications", 9, "--executor", "threads", "--workers", 2)
    ledger = Ledger.open(folder)
    assert ledger.study.replications == 9
    assert [once["executor"] for once in ledger.manifest["runs"]] == ["serial", "threads"]
    assert ledger.manifest["title"] == "Small [b]study"
    assert [found.replications for found in rs.load_results(folder)] == [9, 9]


def test_a_results_folder_is_run_on_and_run_again_elsewhere(study, tmp_path):
    folder, other = tmp_path / "out", tmp_path / "other"
    run(frequentist(), folder, replications=5)
    cli("run", folder, "--replications", 9)
    assert [found.replications for found in rs.load_results(folder)] == [9, 9]
    cli("run", folder, "--out", other)
    here, there = rs.load_results(folder), rs.load_results(other)
    assert [bits(found) for found in here] == [bits(found) for found in there]


def test_a_relative_folder_and_a_problem_beside_the_study(tmp_path, monkeypatch):
    (tmp_path / "studies").mkdir()
    bandit, _, _ = frequentist().cases[0].settings.systems()
    (tmp_path / "studies" / "channels.toml").write_text(bandit.to_toml())
    text = 'kind = "frequentist"\nhorizon = 5\nreplications = 2\nproblem.file = "channels.toml"\n'
    (tmp_path / "studies" / "mine.toml").write_text(text + "prior.levels = [0.2, 0.5, 0.8]")
    monkeypatch.chdir(tmp_path)
    cli("run", "studies/mine.toml", "--out", "results/mine")
    assert rs.load_results("results/mine")[0].case.settings.systems()[0] == bandit
    assert Ledger.open(tmp_path / "results" / "mine").study.title == "mine"


def test_a_damaged_chunk_is_told_and_redone(study, tmp_path):
    cli("run", study, "--out", tmp_path / "out")
    before = chunk_bytes(tmp_path / "out")
    path = chunk_paths(tmp_path / "out")[1]
    path.write_bytes(path.read_bytes()[:-1])
    done = shell("run", study, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert (
        done.stderr == f"restive: {path}: damaged: its checksum does not match; it is run again\n"
    )
    assert chunk_bytes(tmp_path / "out") == before


def test_a_check_tells_what_would_be_run_and_runs_nothing(study, tmp_path):
    study.write_text(FREQUENTIST + "[sweep]\nhorizon = [20, 40, 60]\n")
    out = cli("run", study, "--check", "--replications", 1000)
    assert "small: 6 cases" in out
    table = rows_of(out)
    assert table["horizon 60, whittle"][:4] == ["3", "1", "60", "1,000"]
    assert re.search(r"about .* on \d+ processors?, .*B on disk, about .*B of memory", out)
    assert "nothing was run" in out
    assert list(tmp_path.iterdir()) == [study]
    study.write_text(changed_text(FREQUENTIST, policy_mappings='["whittle"]'))
    assert "small: 1 case " in cli("run", study, "--check")
    again = cli("run", study, "--check", "--out", tmp_path / "out")
    assert "nothing was run" in again
    assert list(tmp_path.iterdir()) == [study]


def test_the_estimate_of_disk_is_what_is_used(study, tmp_path):
    from restive.studies.timing import estimate

    run(frequentist(), tmp_path / "out")
    case = frequentist().cases[0]
    found = estimate(case, 30, 2)
    used = sum(
        len(contents)
        for name, contents in chunk_bytes(tmp_path / "out").items()
        if name.startswith("0000")
    )
    heads = 1000 * len(chunk_paths(tmp_path / "out"))
    assert found.disk_bytes <= used <= found.disk_bytes + heads
    assert found.seconds > 0


# ---------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["run", "gone.toml", "--out", "x"], "gone.toml: cannot be read: No such file"),
        (["run", ".", "--out", "x"], ".: cannot be read: Is a directory"),
        (["run", "small.toml"], "name a results folder: --out DIR"),
        (["run", "small.toml", "--out", "small.toml"], "small.toml: cannot be used: Not a dir"),
        (["run", "small.toml", "--out", "."], ".: holds something else already"),
        (["run", "small.toml", "--out", "x", "--executor", "thread"], "did you mean 'threads'?"),
        (
            ["run", "small.toml", "--out", "x", "--executor", "serial", "--scheduler", "tcp://x:1"],
            "a scheduler goes with the executor 'dask', not with 'serial'",
        ),
        (
            ["run", "small.toml", "--out", "x", "--workers", "2", "--scheduler", "tcp://x:1"],
            "give workers or a scheduler: tcp://x:1 has workers of its own",
        ),
        (["run", "small.toml", "--check", "--replications", "9" * 17], "at most 1,000,000,000,"),
        (["status", "gone"], "gone: not a results folder: manifest.json: there is none"),
        (["status", "small.toml"], "small.toml: not a results folder: manifest.json"),
        (["export", "gone"], "gone: not a results folder: manifest.json: there is none"),
        (["export", "gone", "--format", "xls"], "unknown format 'xls'"),
        (["export", "gone", "--table", "curve"], "unknown table 'curve'; did you mean 'curves'?"),
        (["report", "gone"], "gone: not a results folder: manifest.json: there is none"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_what_is_wrong_is_one_line_and_status_two(
    capsys, monkeypatch, study, tmp_path, words, message
):
    monkeypatch.chdir(tmp_path)
    err = refused(capsys, monkeypatch, *words)
    assert err.startswith("restive: ")
    assert message in err
    assert err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    "words",
    [
        ["--replications", "0"],
        ["--replications", "many"],
        ["--replications", "1.5"],
        ["--workers", "0"],
        ["--workers", "-1"],
        ["--executer", "serial"],
        ["--out"],
    ],
    ids=str,
)
def test_options_that_are_none_are_status_two(capsys, monkeypatch, study, tmp_path, words):
    err = refused(capsys, monkeypatch, "run", study, *words)
    assert words[0] in err
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


def test_all_mistakes_of_a_study_are_told(capsys, monkeypatch, tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("kind = 'bayes'\nhorizon = 0\nsede = 1\n[prior]\nlevels = [0.5]\n")
    err = refused(capsys, monkeypatch, "run", path, "--check")
    assert err.startswith(f"restive: {path}: ")
    for words in ("kind (line 1): ", "horizon (line 2): ", "sede (line 3): unknown key; did you"):
        assert words in err


MANY_AGES = """
kind = "frequentist"
learners = ["tsde", {name = "restless_ucb", max_age = 10_000_000}]
horizon = 20
problem = {num_pulls = 1, arm = [{p01 = 0.3, p11 = 0.5, count = 500}]}
prior.levels = [0.3, 0.5]
"""
NEVER_SETTLED = """
kind = "frequentist"
horizon = 20
problem = {num_pulls = 1, arm = [{p01 = 1, p11 = 0, count = 2}]}
prior.levels = [0.5]
"""
MANY_PULLS = """
kind = "frequentist"
baseline = "exact"
horizon = 20
problem = {num_pulls = 50, arm = [{p01 = 0.3, p11 = 0.5, count = 51}]}
prior.levels = [0.3, 0.5]
"""

OPTIMAL = """
kind = "bayesian"
horizon = 20
policy_mappings = ["optimal"]
prior.zoo = "paper-bayesian"
"""


@pytest.mark.parametrize(
    ("text", "case", "words"),
    [
        (MANY_AGES, "restless_ucb(max_age=10000000), whittle", "use a smaller max_age"),
        (NEVER_SETTLED, "whittle", "give max_elapsed, the same wherever the arm is used"),
        (MANY_PULLS, "whittle", "pull fewer arms; use baseline = 'coupled'"),
        (OPTIMAL, "optimal", "use whittle or lp_priority"),
    ],
    ids=["learner", "periodic", "pulls", "optimal"],
)
def test_what_is_wrong_with_a_case_names_file_and_case(
    capsys, monkeypatch, tmp_path, text, case, words
):
    path = tmp_path / "large.toml"
    path.write_text(text)
    for options in (["--check"], ["--out", tmp_path / "out"]):
        err = refused(capsys, monkeypatch, "run", path, *options)
        assert err.startswith(f"restive: {path}: {case}: ")
        assert words in err
        assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_another_study_is_refused_with_the_difference(capsys, monkeypatch, study, tmp_path):
    folder = tmp_path / "out"
    run(frequentist(), folder)
    study.write_text(changed_text(FREQUENTIST, seed=8))
    err = refused(capsys, monkeypatch, "run", study, "--out", folder)
    assert err == (
        f"restive: {folder}: holds another study; name another folder with --out, or undo this:\n"
        "  seed: 7 there, 8 in this study\n"
    )


# ---------------------------------------------------------------- status and export


def test_status_tells_how_far_a_study_is(study, tmp_path):
    folder = tmp_path / "out"
    begin(frequentist(), folder)
    out = cli("status", folder)
    assert rows_of(out)["whittle"] == ["0", "30", "0", "0"]
    assert f"not complete, and nothing is running; to continue: restive run {folder}" in out
    cli("run", folder)  # as it says
    out = cli("status", folder)
    assert rows_of(out) == {"myopic": ["30", "30", "5", "0"], "whittle": ["30", "30", "5", "0"]}
    assert f"complete; to see it: restive report {folder}" in out
    chunk_paths(folder)[7].write_bytes(b"")
    chunk_paths(folder)[2].unlink()
    out = cli("status", folder)
    assert rows_of(out) == {"myopic": ["23", "30", "4", "0"], "whittle": ["23", "30", "5", "1"]}
    assert "not complete" in out


def test_export_prints_where_the_table_is(study, tmp_path):
    folder = tmp_path / "out"
    run(frequentist(), folder)
    assert cli("export", folder) == f"{folder / 'curves.csv'}\n"
    path = tmp_path / "mine.npz"
    words = ("--format", "npz", "--table", "posterior", "--out", path)
    assert cli("export", folder, *words) == f"{path}\n"
    with np.load(path) as file:
        found = rs.load_results(folder)[0].truth_weights
        assert file["weight"][: found.mean.size].tolist() == found.mean.T.ravel().tolist()


def test_export_refuses_a_posterior_that_was_not_recorded(capsys, monkeypatch, tmp_path):
    run(changed(BAYESIAN), tmp_path)
    err = refused(capsys, monkeypatch, "export", tmp_path, "--table", "posterior")
    assert err.count("\n") == 1
    assert "nothing to export: no posterior was recorded" in err


# ---------------------------------------------------------------- Ctrl-C


def test_ctrl_c_says_how_to_go_on_and_the_same_command_does(study, tmp_path):
    text = changed_text(FREQUENTIST, horizon=4000, replications=400)
    study.write_text(text)
    long = frequentist(horizon=4000, replications=400)
    run(long, tmp_path / "whole", size=4)
    folder = tmp_path / "out"
    begin(long, folder, size=4)
    driver = start("run", study, "--out", folder)
    while len(chunk_paths(folder)) < 5 and driver.poll() is None:
        sleep(0.002)
    driver.send_signal(signal.SIGINT)
    out, err = driver.communicate()
    assert (driver.returncode, out) == (130, "")
    assert err == (
        f"restive: stopped; what is done is kept in {folder}, and the same command continues from "
        "there\n"
    )
    kept, whole = chunk_bytes(folder), chunk_bytes(tmp_path / "whole")
    assert 5 <= len(kept) < len(whole)
    assert kept.items() <= whole.items()  # also: nothing is half-written
    assert sorted(path.name for path in folder.iterdir()) == ["chunks", "lock", "manifest.json"]
    assert "not complete, and nothing is running" in cli("status", folder)
    done = shell("run", study, "--out", folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert chunk_bytes(folder) == whole


@pytest.mark.parametrize("moment", ["spec.load_study", "summary.load_results"])
def test_ctrl_c_before_and_after_the_run_is_status_130(
    capsys, monkeypatch, study, tmp_path, moment
):
    """Say, while the summary of a long study is read."""

    def stop(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"restive.studies.{moment}", stop)
    monkeypatch.setattr(sys, "argv", ["restive", "run", str(study), "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as caught:
        main()
    assert caught.value.code == 130
    assert "Traceback" not in capsys.readouterr().err


# ---------------------------------------------------------------- what is shown meanwhile


@pytest.mark.parametrize(
    ("done", "seconds", "line"),
    [
        (0, 60, "200 of 1,000 replications, none new so far"),
        (300, 150, "500 of 1,000 replications, 2/s, 4 min left"),
        (3, 600, "203 of 1,000 replications, 0.01/s, 44.3 h left"),
        (800, 3600, "1,000 of 1,000 replications, 0.22/s, 0.0 s left"),
    ],
)
def test_a_line_of_a_log_says_how_far_it_is(done, seconds, line):
    there = {"myopic": 100 + done // 2, "whittle": 100 + done - done // 2}
    assert progress._how_far(Progress(done, 800, there, 500), seconds) == line


def test_a_log_has_a_line_a_minute_also_while_nothing_ends(capsys, monkeypatch):
    """A comparison was silent for ten minutes, until its first replications ended."""
    monkeypatch.setattr(progress, "LOG_SECONDS", 0.05)

    def lines():
        sleep(0.3)
        return capsys.readouterr().err.splitlines()

    with progress.run_display("a study") as show:
        first = lines()
        assert len(first) >= 2
        assert all(re.fullmatch(r"[-\d]+ [:\d]+ a study: being prepared", line) for line in first)
        show(Progress(0, 800, {"myopic": 100, "whittle": 100}, 500))
        assert lines()[-1].endswith(" a study: 200 of 1,000 replications, none new so far")
        show(Progress(100, 800, {"myopic": 150, "whittle": 150}, 500))
        assert " a study: 300 of 1,000 replications, " in lines()[-1]
    capsys.readouterr()
    assert lines() == []  # it ends with the run


def test_the_log_of_a_run_that_is_no_minute_long_is_quiet(tmp_path, capsys):
    begin(frequentist(), tmp_path / "out")
    with progress.run_display("a study") as show:
        rs.run_study(frequentist(), tmp_path / "out", executor="serial", progress=show)
    assert capsys.readouterr().err == ""


def test_who_stops_before_anything_is_finished_is_told_so(tmp_path, capsys):
    from typer import Exit

    from restive.cli.study import going_on

    folder = tmp_path / "out"
    (folder / "chunks" / "0000-tsde-whittle").mkdir(parents=True)
    (folder / "chunks" / "0000-tsde-whittle" / ".half-written").touch()
    with pytest.raises(Exit), going_on(folder):
        raise KeyboardInterrupt
    said = capsys.readouterr().err
    assert said == ("restive: stopped; nothing was finished yet; the same command begins anew\n")
    begin(frequentist(), tmp_path / "run")
    rs.run_study(frequentist(), tmp_path / "run", executor="serial")
    with pytest.raises(Exit), going_on(tmp_path):  # as a reproduction has it, a folder deeper
        raise KeyboardInterrupt
    assert f"what is done is kept in {tmp_path}, and" in capsys.readouterr().err


def test_a_terminal_shows_a_bar_for_all_and_for_each_case(study, tmp_path):
    study.write_text('title = "Small [b]study"\n' + FREQUENTIST)
    above, below = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    driver = start("run", study, "--out", tmp_path / "out", stderr=below, env=environment)
    os.close(below)
    shown = b""
    while True:
        try:
            part = os.read(above, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(above)
    out, _ = driver.communicate()
    assert driver.returncode == 0
    assert "kept in" in out
    text = shown.decode()
    assert "100%" in text
    assert "Small [b]study" in text
    assert "myopic" in text
    assert re.search(r"\d replications/s", text)


def test_a_run_that_is_no_terminals_is_quiet(study, tmp_path):
    done = shell("run", study, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert done.stderr == ""
    assert "\x1b" not in done.stdout


def test_a_terminal_without_unicode(study, tmp_path):
    """Words that it has no letters for are written in others; nothing fails."""
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    out = tmp_path / "café"
    done = shell("run", study, "--out", out, env=env)
    assert (done.returncode, done.stderr) == (0, "")
    assert "+-" in done.stdout
    assert "kept in" in done.stdout
    assert "caf?" in done.stdout
    for words in (["status", out], ["report", out], ["export", out], ["zoo"]):
        done = shell(*words, env=env)
        assert (done.returncode, done.stderr) == (0, "")
    done = shell("status", tmp_path / "naïve", env=env)
    assert done.returncode == 2
    assert "na?ve: not a results folder" in done.stderr
