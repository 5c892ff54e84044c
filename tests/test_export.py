"""Results as tables for other tools: the same numbers in csv, parquet and npz."""

import csv
import json
import shutil
import subprocess
import sys

import numpy as np
import pyarrow.parquet
import pytest

import restive as rs
from restive.studies import export
from restive.studies.export import export_results
from restive.studies.runner import run_study
from study_cases import (
    BAYESIAN,
    CURVES,
    FREQUENTIST,
    begin,
    changed,
    chunk_paths,
    concatenated,
    run,
)

HEAD = ["case", "learner", "mapping"]
COLUMNS = {
    "curves": [
        "time", "replications", "regret", "regret_stderr", "realised_regret",
        "realised_regret_stderr", "average_reward", "average_reward_stderr", "oracle_reward",
        "oracle_reward_stderr", "num_episodes", "num_episodes_stderr", "truth_reward",
        "truth_reward_stderr", "relaxation_bound", "bound_regret", "bound_regret_stderr",
    ],
    "replications": [
        "replication", "time", "expected_reward", "realised_reward", "num_episodes",
        "oracle_expected_reward", "oracle_realised_reward",
    ],
    "posterior": ["arm", "time", "weight", "weight_stderr"],
}  # fmt: skip
SWEPT = FREQUENTIST + '[sweep]\nhorizon = [20, 40]\nproblem.name = ["a, \\"b\\"", "é\\n"]\n'


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    """Return the ledger of a study with a sweep, whose labels are awkward in a csv file."""
    return run(changed(SWEPT, replications=9), tmp_path_factory.mktemp("swept") / "out")


def read(path):
    """Return the columns of a table, whatever its format."""
    if path.suffix == ".npz":
        with np.load(path) as file:
            return {name: file[name].tolist() for name in file.files}
    if path.suffix == ".parquet":
        return pyarrow.parquet.read_table(path).to_pydict()
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    columns = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    text = ("learner", "mapping", "problem")
    whole = ("case", "horizon", "time", "replication", "replications", "arm", "num_episodes")
    return {
        name: list(values)
        if name in text
        else [int(v) if name in whole and "." not in v else float(v) for v in values]
        for name, values in columns.items()
    }


@pytest.mark.parametrize("format", export.FORMATS)
@pytest.mark.parametrize("table", export.TABLES)
def test_every_format_holds_the_columns_of_the_docstring(ledger, tmp_path, format, table):  # noqa: A002
    path = export_results(
        ledger.folder, format=format, table=table, path=tmp_path / f"mine.{format}"
    )
    assert path == tmp_path / f"mine.{format}"
    found = read(path)
    assert list(found) == [*HEAD, "horizon", "problem", *COLUMNS[table]]
    assert len({len(column) for column in found.values()}) == 1
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("format", export.FORMATS)
def test_the_values_are_those_of_load_results(ledger, tmp_path, format):  # noqa: A002
    """To the bit, also through csv."""
    tables = {
        table: read(
            export_results(
                ledger.folder, format=format, table=table, path=tmp_path / f"{table}.{format}"
            )
        )
        for table in export.TABLES
    }
    results = rs.load_results(ledger.folder)
    assert len(results) == 8
    for found in results:
        number = found.case.number
        rows = {
            table: {
                name: [v for v, case in zip(column, columns["case"], strict=True) if case == number]
                for name, column in columns.items()
            }
            for table, columns in tables.items()
        }
        for columns in rows.values():
            assert set(columns["mapping"]) == {found.case.mapping}
            assert set(columns["learner"]) == {"tsde"}
            assert set(columns["horizon"]) == {found.case.settings.horizon}
            assert set(columns["problem"]) == {found.case.settings.problem.name}
        curves = rows["curves"]
        assert curves["time"] == found.times.tolist()
        assert curves["replications"] == [9] * len(found.times)
        for name in CURVES:
            assert curves[name] == getattr(found, name).mean.tolist()
            assert curves[f"{name}_stderr"] == getattr(found, name).stderr.tolist()
        assert set(curves["truth_reward"]) == {found.truth_reward[0]}
        assert set(curves["truth_reward_stderr"]) == {found.truth_reward[1]}
        bound = rs.relaxation_bound(found.case.settings.systems()[0])
        assert set(curves["relaxation_bound"]) == {bound}
        arrays = concatenated(ledger, found.case)
        lost = bound * found.times - arrays["expected"]
        assert curves["bound_regret"] == pytest.approx(lost.mean(axis=0), abs=1e-9)
        errors = lost.std(axis=0, ddof=1) / 3  # the root of nine replications
        assert curves["bound_regret_stderr"] == pytest.approx(errors, abs=1e-9)
        weights = found.truth_weights
        posterior = rows["posterior"]
        assert posterior["arm"] == np.repeat([0, 1, 2], len(found.times)).tolist()
        assert posterior["time"] == found.times.tolist() * 3
        assert posterior["weight"] == weights.mean.T.ravel().tolist()
        assert posterior["weight_stderr"] == weights.stderr.T.ravel().tolist()
        replications = rows["replications"]
        assert replications["replication"] == np.repeat(np.arange(9), len(found.times)).tolist()
        assert replications["time"] == found.times.tolist() * 9
        for name, array in (
            ("expected_reward", "expected"),
            ("realised_reward", "realised"),
            ("num_episodes", "episodes"),
            ("oracle_expected_reward", "oracle_expected"),
            ("oracle_realised_reward", "oracle_realised"),
        ):
            assert replications[name] == arrays[array].ravel().tolist()


@pytest.mark.parametrize("format", export.FORMATS)
def test_swept_values_that_are_not_all_numbers_are_text(tmp_path, format):  # noqa: A002
    sweep = "[sweep]\ndoubling = [true, false]\nmixing_time = [2, 3]\ntimes = [4, [1, 40]]\n"
    run(changed(BAYESIAN + sweep, replications=2, policy_mappings='["whittle"]'), tmp_path)
    path = export_results(tmp_path, format=format)
    if format == "csv":
        assert path.read_text().splitlines()[1].startswith("0,tsde,whittle,True,2,4,1,")
        return
    found = read(path)
    assert (set(found["doubling"]), set(found["mixing_time"])) == ({True, False}, {2, 3})
    assert set(found["times"]) == {"4", "[1, 40]"}


FORMULAS = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "plain", "'quoted"]


def test_what_a_spreadsheet_would_compute_is_quoted_in_csv(tmp_path):
    """And only there: other formats have text that is text, and negative numbers are numbers."""
    text = f"{FREQUENTIST}[sweep]\nproblem.name = {json.dumps(FORMULAS)}\n"
    ledger = run(changed(text, replications=3, policy_mappings='["myopic"]'), tmp_path)
    found = read(export_results(ledger.folder))
    shown = [f"'{name}" for name in FORMULAS[:5]] + FORMULAS[5:]
    assert list(dict.fromkeys(found["problem"])) == shown
    assert export._cells(np.array([-1.5, -0.0])) == [-1.5, -0.0]
    others = read(export_results(ledger.folder, format="parquet"))
    assert list(dict.fromkeys(others["problem"])) == FORMULAS


def test_by_default_the_table_is_in_the_folder(tmp_path):
    ledger = run(changed(FREQUENTIST, replications=3), tmp_path)
    assert export_results(tmp_path) == tmp_path / "curves.csv"
    assert (
        export_results(str(tmp_path), format="npz", table="posterior") == tmp_path / "posterior.npz"
    )
    before = chunk_paths(tmp_path)
    run(changed(FREQUENTIST, replications=3), tmp_path)  # tables are in nobody's way
    assert chunk_paths(ledger.folder) == before
    assert (tmp_path / "curves.csv").exists()


@pytest.mark.parametrize("format", export.FORMATS)
def test_the_ending_of_the_path_says_the_format(ledger, tmp_path, format):  # noqa: A002
    path = export_results(ledger.folder, path=tmp_path / f"MINE.{format.upper()}")
    lower = path.rename(tmp_path / f"mine.{format}")
    assert read(lower) == read(
        export_results(ledger.folder, format=format, path=tmp_path / f"o.{format}")
    )
    with pytest.raises(rs.errors.ProblemError, match="can be written as"):
        export_results(ledger.folder, format="npz", path=tmp_path / "mine.csv")


def test_a_single_replication_has_errors_that_are_no_numbers(tmp_path):
    run(changed(BAYESIAN, replications=1), tmp_path)
    for format in export.FORMATS:  # noqa: A001
        found = read(export_results(tmp_path, format=format))
        assert np.isnan(found["regret_stderr"]).all()
        assert np.isfinite(found["regret"]).all()
        for name in ("relaxation_bound", "bound_regret", "bound_regret_stderr"):
            assert np.isnan(found[name]).all()  # there is none where the truth is drawn


def test_arms_that_are_swept_and_arms_of_the_posterior(tmp_path):
    """A column for each, also where both are called arms."""
    arms = "[[{p01 = 0.2, p11 = 0.5, count = 2}], [{p01 = 0.2, p11 = 0.8, count = 3}]]"
    text = FREQUENTIST[: FREQUENTIST.index("[[problem.arm]]")]
    text += f"[prior]\nlevels = [0.2, 0.5, 0.8]\n[sweep]\nproblem.arm = {arms}\n"
    run(changed(text, replications=2), tmp_path)
    found = read(export_results(tmp_path, format="npz", table="posterior"))
    assert set(found["arm"]) == {0, 1, 2}
    (label,) = found.keys() - {*HEAD, *COLUMNS["posterior"]}
    assert len(set(found[label])) == 2


def test_cases_that_have_no_replication_are_left_out(tmp_path):
    run(changed(FREQUENTIST, replications=9), tmp_path)
    for path in chunk_paths(tmp_path)[:1]:
        path.unlink()
    found = read(export_results(tmp_path, format="parquet", table="replications"))
    assert set(found["mapping"]) == {"whittle"}


def test_nothing_to_export(tmp_path):
    begin(changed(BAYESIAN), tmp_path)
    for table in export.TABLES:
        with pytest.raises(rs.RestiveError, match="nothing to export"):
            export_results(tmp_path, table=table)
    run(changed(BAYESIAN, replications=2), tmp_path)
    with pytest.raises(rs.RestiveError, match=r"no posterior was recorded \(posterior = true\)"):
        export_results(tmp_path, table="posterior")
    assert not [path for path in tmp_path.iterdir() if path.name.endswith((".csv", ".tmp"))]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"format": "cvs"}, "unknown format 'cvs'; did you mean 'csv'?"),
        ({"format": "xlsx"}, "unknown format 'xlsx'; known are csv, parquet, npz"),
        ({"table": "curve"}, "unknown table 'curve'; did you mean 'curves'?"),
        ({"path": "mine.txt"}, "mine.txt: can be written as .csv, .parquet, .npz; got '.txt'"),
        ({"path": "nowhere/mine.csv"}, "cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_exported(ledger, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rs.RestiveError) as caught:
        export_results(ledger.folder, **options)
    assert words in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("format", export.FORMATS)
def test_endings_in_capitals_are_endings(ledger, tmp_path, format):  # noqa: A002
    path = export_results(ledger.folder, format=format, path=tmp_path / f"MINE.{format.upper()}")
    assert list(tmp_path.iterdir()) == [path]
    lower = path.rename(tmp_path / f"mine.{format}")
    assert read(lower)["time"]


def test_a_damaged_chunk_is_told_and_leaves_no_file(tmp_path):
    run(changed(FREQUENTIST, replications=9), tmp_path)
    chunk_paths(tmp_path)[1].write_bytes(b"")
    for format in export.FORMATS:  # noqa: A001
        for table in export.TABLES:
            with pytest.raises(rs.RestiveError, match="damaged"):
                export_results(tmp_path, format=format, table=table)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chunks", "lock", "manifest.json"]


def test_a_table_that_is_there_is_replaced_when_the_new_one_is_whole(ledger, tmp_path, monkeypatch):
    path = tmp_path / "mine.csv"
    path.write_text("old")

    def fail(*words):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(export, "summarise", fail)
    with pytest.raises(rs.RestiveError, match="No space left on device"):
        export_results(ledger.folder, path=path)
    assert path.read_text() == "old"
    monkeypatch.undo()
    export_results(ledger.folder, path=path)
    assert path.read_text().startswith("case,learner,mapping,horizon,problem,time,")
    assert list(tmp_path.iterdir()) == [path]


def test_without_pyarrow_the_extra_is_named(ledger, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(
        rs.RestiveError, match=r"parquet needs pyarrow: pip install 'restive\[io\]'"
    ):
        export_results(ledger.folder, format="parquet", path=tmp_path / "mine.parquet")
    assert list(tmp_path.iterdir()) == []


KILLED = """
import os, signal, sys
from restive.files import replacing
with replacing(sys.argv[1]) as temporary:
    temporary.write_text("half of it")
    print(temporary.name, flush=True)
    if sys.argv[2] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    sys.stdin.read()
"""


def half_written(path, fate):
    """Start a process that writes a file and is killed, or goes on writing; return it."""
    return subprocess.Popen(
        [sys.executable, "-c", KILLED, str(path), fate],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.parametrize("by", ["the next export", "the next run"])
def test_what_a_killed_export_left_is_removed(ledger, tmp_path, by):
    """And nothing else: neither what is still being written nor what is named otherwise."""
    folder = tmp_path / "results"
    shutil.copytree(ledger.folder, folder)
    with half_written(folder / "curves.csv", "killed") as killed:
        left = folder / killed.stdout.readline().strip()
    assert left.read_text() == "half of it"
    own = [folder / ".curves.csv.swp", folder / f".curves.csv.{16 * '0'}.tmp", folder / ".git"]
    for path in own:
        path.write_text("mine")
    with half_written(folder / "curves.csv", "alive") as writing:
        held = folder / writing.stdout.readline().strip()
        if by == "the next export":
            export_results(folder)
        else:
            run_study(ledger.study, folder)
        assert not left.exists()
        assert held.read_text() == "half of it"
        assert all(path.read_text() == "mine" for path in own)
        writing.stdin.close()
    assert (folder / "curves.csv").read_text() == "half of it"  # it was the last to end
    assert not held.exists()


def test_what_others_export_to_the_same_folder_is_left(ledger, tmp_path):
    with half_written(tmp_path / "other.csv", "killed") as killed:
        left = tmp_path / killed.stdout.readline().strip()
    export_results(ledger.folder, path=tmp_path / "curves.csv")
    assert left.exists()
