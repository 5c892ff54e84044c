"""The results folder: whole files, nothing done twice, damage found, nothing foreign touched."""

import errno
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tracemalloc
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import sleep

import numpy as np
import pytest
from typer.testing import CliRunner

import restive as rs
from restive.cli import app
from restive.measure.replication import NUMBERS
from restive.studies import manifest as manifest_module
from restive.studies.chunk_file import DamagedChunkError, decoded, encoded
from restive.studies.ledger import Ledger
from restive.studies.runner import run_study
from restive.studies.spec import study_from_toml
from restive.studies.work import Chunk, run_chunk
from study_cases import (
    BAYESIAN,
    CHUNK,
    FREQUENTIST,
    begin,
    bits,
    changed,
    changed_text,
    chunk_bytes,
    chunk_paths,
    everything,
    frequentist,
    run,
    shell,
    start,
)

STUDY = frequentist()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """Return the contents of the chunks of the small study, run without any disturbance."""
    folder = tmp_path_factory.mktemp("undisturbed")
    run(STUDY, folder)
    return chunk_bytes(folder)


def manifest_of(folder):
    return json.loads((Path(folder) / "manifest.json").read_text())


def no_leftovers(folder):
    """Whether a folder has nothing in it but what the ledger's docstring names."""
    names = {path.name for path in Path(folder).rglob("*") if path.is_file()}
    return all(name in ("manifest.json", "lock") or name.endswith(".chunk") for name in names)


# ---------------------------------------------------------------- what is in it


def test_the_manifest_tells_what_was_run(tmp_path):
    ledger = run(
        replace(STUDY, title="Four [channels]"), tmp_path / "deep" / "er", executor="threads"
    )
    manifest = manifest_of(tmp_path / "deep" / "er")
    assert manifest == ledger.manifest
    assert manifest["format"] == 1
    assert manifest["title"] == "Four [channels]"
    assert manifest["study"] == STUDY.data
    assert manifest["study"]["seed"] == 7
    assert manifest["hash"] == STUDY.hash
    assert manifest["replications"] == 30
    assert manifest["chunk_sizes"] == {"0000-tsde-myopic": CHUNK, "0001-tsde-whittle": CHUNK}
    assert manifest["restive"] == rs.__version__
    assert manifest["versions"]["numpy"] == np.__version__
    assert manifest["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert manifest["machine"].startswith("Linux")
    assert set(manifest) >= {"commit", "begun"}
    assert manifest["numbers"] == NUMBERS
    (once,) = manifest["runs"]
    assert once["commit"] == manifest["commit"]
    assert once["versions"] == manifest["versions"]
    assert once["executor"] == "threads"
    assert once["seconds"] > 0


def test_the_files_are_those_of_the_docstring(tmp_path):
    run(STUDY, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chunks", "lock", "manifest.json"]
    assert [str(path.relative_to(tmp_path)) for path in chunk_paths(tmp_path)] == [
        f"chunks/{case}/{first:010d}-{count}.chunk"
        for case in ("0000-tsde-myopic", "0001-tsde-whittle")
        for first, count in ((0, 7), (7, 7), (14, 7), (21, 7), (28, 2))
    ]


def test_chunks_hold_what_the_engine_gives(tmp_path):
    ledger = run(STUDY, tmp_path)
    case = STUDY.cases[1]
    whole = run_chunk(case.settings.to_json(), 0, 30)
    for first, arrays in ledger.chunks(case):
        for name, array in arrays.items():
            assert array.tobytes() == whole[name][first : first + CHUNK].tobytes()
            assert array.dtype == whole[name].dtype
    assert set(arrays) == set(whole)


@pytest.mark.parametrize(
    "array",
    [
        np.zeros((0, 5)),
        np.zeros((3, 0, 2)),
        np.arange(6).reshape(2, 3).T,
        np.arange(4, dtype=">i8"),
        np.array([np.nan, np.inf, -0.0, 5e-324]),
        np.arange(10)[::-3],
    ],
)
def test_arrays_come_back_to_the_bit(array):
    found = decoded(b"".join(encoded({"b": array, "a": np.ones(2)})))
    assert found["b"].shape == array.shape
    assert (
        found["b"].tobytes()
        == np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"))).tobytes()
    )
    assert list(found) == ["a", "b"]
    order = b"".join(encoded({"a": np.ones(2), "b": array}))
    assert order == b"".join(encoded({"b": array, "a": np.ones(2)}))


# ---------------------------------------------------------------- the same again


def test_the_same_call_again_does_nothing(tmp_path, monkeypatch):
    run(STUDY, tmp_path)
    before = everything(tmp_path)
    monkeypatch.setattr("restive.studies.executors.run_chunk", None)
    told = []
    run(STUDY, tmp_path, progress=told.append)
    assert everything(tmp_path) == before
    assert [(p.done, p.to_do, p.total) for p in told] == [(0, 0, 60)]


def test_a_run_that_fails_goes_on_where_it_stopped(tmp_path, undisturbed):
    class StopError(Exception):
        pass

    def stop(progress):
        if progress.done >= 3 * CHUNK:
            raise StopError

    with pytest.raises(StopError):
        run(STUDY, tmp_path, progress=stop)
    kept = chunk_bytes(tmp_path)
    assert len(kept) == 3
    told = []
    run(STUDY, tmp_path, progress=told.append)
    assert (told[0].to_do, told[0].total, told[-1].done) == (60 - 21, 60, 60 - 21)
    assert told[-1].cases == {"myopic": 30, "whittle": 30}
    assert chunk_bytes(tmp_path) == undisturbed
    assert len(manifest_of(tmp_path)["runs"]) == 2
    assert no_leftovers(tmp_path)


def test_a_run_in_an_empty_folder_and_one_that_was_killed_before_its_manifest(
    tmp_path, undisturbed
):
    (tmp_path / f".manifest.json.{16 * 'a'}.json").write_text("{")
    (tmp_path / "lock").write_text("process 1 on nowhere\n")
    run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed
    assert no_leftovers(tmp_path)


def test_half_written_files_of_a_kill_are_removed(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    folder = tmp_path / "chunks" / "0000-tsde-myopic"
    (folder / f".0000000000-7.chunk.{8 * '0f'}.chunk").write_bytes(b"half")
    (tmp_path / f".manifest.json.{8 * '0f'}.json").write_bytes(b"half")
    run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed
    assert no_leftovers(tmp_path)


def test_files_of_the_users_in_a_results_folder_are_left_alone(tmp_path):
    run(STUDY, tmp_path)
    own = {".gitignore": "*", ".env": "secret", "notes.txt": "mine", ".cache/x": "y"}
    for name, text in own.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    run(STUDY, tmp_path, replications=40)
    assert {name: (tmp_path / name).read_text() for name in own} == own


# ---------------------------------------------------------------- more, fewer, others


def test_more_replications_leave_the_earlier_chunks_as_they_are(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in chunk_paths(tmp_path)}
    told = []
    ledger = run(STUDY, tmp_path, replications=44, progress=told.append)
    assert (told[0].to_do, told[0].total) == (2 * 14, 88)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    found = chunk_bytes(tmp_path)
    assert {name: found[name] for name in undisturbed} == undisturbed
    assert sorted(found.keys() - undisturbed.keys()) == [
        f"{case}/{first:010d}-{count}.chunk"
        for case in ("0000-tsde-myopic", "0001-tsde-whittle")
        for first, count in ((30, 5), (35, 7), (42, 2))
    ]
    assert manifest_of(tmp_path)["replications"] == ledger.study.replications == 44
    assert [ledger.replications_done(case) for case in STUDY.cases] == [44, 44]
    whole = run(replace(STUDY, replications=44), tmp_path / "whole")
    for one, other in zip(rs.load_results(tmp_path), rs.load_results(whole.folder), strict=True):
        assert bits(one) == bits(other)


def test_fewer_replications_keep_what_is_there(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    before = everything(tmp_path)
    ledger = run(STUDY, tmp_path, replications=10)
    assert everything(tmp_path) == before
    assert ledger.study.replications == 30
    assert [found.replications for found in rs.load_results(tmp_path)] == [30, 30]


def test_the_ledger_of_a_study_goes_on_when_the_title_changes(tmp_path):
    run(STUDY, tmp_path)
    run(replace(STUDY, title="another", replications=35), tmp_path)
    assert [found.replications for found in rs.load_results(tmp_path)] == [35, 35]
    assert Ledger.open(tmp_path).study.title == "another"
    ledger = run(replace(STUDY, title="a third"), tmp_path)  # with nothing to run
    assert ledger.study.title == manifest_of(tmp_path)["title"] == "a third"
    assert ledger.study.replications == 35


@pytest.mark.parametrize("replications", [4, 6])
def test_keys_of_a_sweep_in_another_order_are_the_same_cases(tmp_path, replications):
    """The same hash must mean the same cases in the same folders."""
    sweeps = ("horizon = [10, 20]\nseed = [1, 2]", "seed = [1, 2]\nhorizon = [10, 20]")
    one, other = (study_from_toml(f"{BAYESIAN}[sweep]\n{sweep}\n") for sweep in sweeps)
    assert one.hash == other.hash
    run(one, tmp_path / "mixed", size=3, replications=4)
    run(other, tmp_path / "mixed", size=3, replications=replications)
    run(one, tmp_path / "whole", size=3, replications=4)
    run(one, tmp_path / "whole", size=3, replications=replications)
    assert chunk_bytes(tmp_path / "mixed") == chunk_bytes(tmp_path / "whole")
    mixed, whole = (rs.load_results(tmp_path / name) for name in ("mixed", "whole"))
    assert [(f.case.settings, f.replications) for f in mixed] == [
        (f.case.settings, f.replications) for f in whole
    ]
    assert [bits(f) for f in mixed] == [bits(f) for f in whole]


def test_another_study_is_refused_with_the_difference(tmp_path):
    run(STUDY, tmp_path)
    before = everything(tmp_path)
    other = frequentist(horizon=41, doubling="true")
    with pytest.raises(rs.RestiveError) as caught:
        run(other, tmp_path)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path}: holds another study; ")
    assert message.splitlines()[1:] == [
        "  horizon: 40 there, 41 in this study",
        "  doubling: false there, true in this study",
    ]
    assert everything(tmp_path) == before
    with pytest.raises(rs.RestiveError, match=r"mixing_time: not given there, 3 in this study"):
        run(frequentist(mixing_time=3), tmp_path)
    with pytest.raises(rs.RestiveError, match=r"problem: .* there, not given in this study"):
        run(changed(BAYESIAN), tmp_path)


def test_results_of_another_version_are_not_added_to(tmp_path):
    run(STUDY, tmp_path)
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(manifest_of(tmp_path) | {"restive": "0.0.1"}))
    before = everything(tmp_path)
    with pytest.raises(rs.RestiveError, match=r"started by restive 0\.0\.1, this is"):
        run(STUDY, tmp_path)
    assert everything(tmp_path) == before
    assert len(rs.load_results(tmp_path)) == 2  # reading is fine


def test_results_of_other_random_numbers_are_not_added_to(tmp_path, monkeypatch):
    run(STUDY, tmp_path)
    monkeypatch.setattr("restive.studies.ledger.NUMBERS", NUMBERS + 1)
    before = everything(tmp_path)
    with pytest.raises(rs.RestiveError) as caught:
        run(STUDY, tmp_path, replications=40)
    assert f"numbers of version {NUMBERS}, this restive draws version {NUMBERS + 1}" in str(
        caught.value
    )
    assert everything(tmp_path) == before
    assert len(rs.load_results(tmp_path)) == 2  # reading is fine


def test_the_version_of_the_numbers_is_that_of_the_numbers():
    """If a change that is meant breaks this, raise `NUMBERS` in kernels.loop.engine and mend it."""
    found = run_chunk(STUDY.cases[1].settings.to_json(), 0, 200)
    drawn = run_chunk(changed(BAYESIAN).cases[1].settings.to_json(), 0, 200)
    assert (
        NUMBERS,
        int(found["episodes"].sum()),
        int(drawn["true_kinds"].sum()),
        round(float(found["realised"].sum())),
        round(float(drawn["oracle_realised"].sum())),
        round(float(drawn["expected"].sum()), 6),
    ) == (5, 13864, 2340, 9659, 13203, 10692.270203)


def test_other_code_in_a_folder_is_told_and_recorded(tmp_path, monkeypatch):
    def code(commit, numpy):
        monkeypatch.setattr("restive.studies.manifest._commit", lambda: commit)
        monkeypatch.setattr("restive.studies.manifest._versions", lambda: {"numpy": numpy})
        manifest_module.code.cache_clear()

    told = []
    code("abc", "2.1")
    run(STUDY, tmp_path, tell=told.append)
    run(STUDY, tmp_path, tell=told.append, replications=35)
    code("def", "2.1")
    run(STUDY, tmp_path, tell=told.append, replications=35)  # nothing to do
    assert told == []
    run(STUDY, tmp_path, tell=told.append, replications=40)
    code(None, "2.2")
    run(STUDY, tmp_path, tell=told.append, replications=45)
    assert len(told) == 2
    assert "what commit abc (numpy 2.1) began, with commit def (numpy 2.1); both" in told[0]
    assert "what commit def (numpy 2.1) began, with commit not known (numpy 2.2); " in told[1]
    ledger = Ledger.open(tmp_path)
    assert [once["commit"] for once in ledger.manifest["runs"]] == ["abc", "abc", "def", None]
    assert ledger.commits == "commits abc, def, not known"
    assert "0.1.0, commits abc, def, not known" in shell("status", tmp_path).stdout
    manifest_module.code.cache_clear()


def test_the_code_of_a_run_that_is_killed_is_recorded(tmp_path):
    begin(STUDY, tmp_path)

    class KilledError(Exception):
        pass

    def look(progress):
        if progress.done:
            (once,) = manifest_of(tmp_path)["runs"]
            assert (once["seconds"], once["commit"]) == (0, manifest_of(tmp_path)["commit"])
            raise KilledError

    with pytest.raises(KilledError):
        run(STUDY, tmp_path, progress=look)


def test_changes_that_are_not_committed_are_told_apart(tmp_path, monkeypatch):
    place = tmp_path / "src" / "restive" / "studies" / "manifest.py"
    place.parent.mkdir(parents=True)
    monkeypatch.setattr("restive.studies.manifest.__file__", str(place))
    assert manifest_module._commit() is None
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=b"]
    place.write_text("one")
    for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)
    clean = manifest_module._commit()
    assert len(clean) == 12
    names = {clean}
    for text in ("two", "three"):
        place.write_text(text)
        names.add(manifest_module._commit())
        assert manifest_module._commit().startswith(f"{clean}-dirty-")
    assert len(names) == 3


# ---------------------------------------------------------------- folders of others


@pytest.mark.parametrize(
    "names",
    [
        ["thesis.tex"],
        [".gitignore"],
        ["chunks/0000-tsde-myopic/0000000000-7.chunk"],
        ["manifest.json", ".env", ".git/config", "index.js"],
    ],
    ids=str,
)
def test_a_folder_of_others_is_refused_and_left_as_it_is(tmp_path, names):
    """Also one with the manifest of another program."""
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text('{"manifest_version": 3}')
    before = everything(tmp_path)
    with pytest.raises(rs.RestiveError) as caught:
        run(STUDY, tmp_path)
    assert str(caught.value).startswith(str(tmp_path))
    assert everything(tmp_path) == before


def test_a_file_in_the_place_of_the_folder(tmp_path):
    path = tmp_path / "file"
    path.write_text("mine")
    for place in (path, path / "below"):
        with pytest.raises(rs.RestiveError, match="Not a directory"):
            run(STUDY, place)
    assert path.read_text() == "mine"


def read_only(path, flags, *words, real=os.open, **options):
    if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
        raise OSError(errno.EROFS, "Read-only file system")
    return real(path, flags, *words, **options)


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refuse(*words, **options):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(rs.RestiveError, match="cannot be used: Permission denied"):
        run(STUDY, tmp_path / "new")
    monkeypatch.undo()
    monkeypatch.setattr(os, "open", read_only)
    with pytest.raises(rs.RestiveError, match="cannot be written: lock: Read-only file system"):
        run(STUDY, tmp_path)


def test_a_folder_that_is_read_only_is_not_being_written(tmp_path, monkeypatch):
    """An archive of results, on a disk or under a user that may only read."""
    run(STUDY, tmp_path)
    monkeypatch.setattr(os, "open", read_only)
    assert not Ledger.open(tmp_path).is_being_written()
    (tmp_path / "lock").unlink()
    assert not Ledger.open(tmp_path).is_being_written()


def test_reading_writes_nothing(tmp_path):
    run(STUDY, tmp_path)
    (tmp_path / "lock").unlink()
    before = everything(tmp_path)
    ledger = Ledger.open(tmp_path)
    assert not ledger.is_being_written()
    rs.load_results(tmp_path)
    assert everything(tmp_path) == before


# ---------------------------------------------------------------- damage


def damaged_then_redone(folder, undisturbed, path, contents):
    """Damage a chunk: readers say so, the next run tells it and makes it anew."""
    path.write_bytes(contents)
    with pytest.raises(
        DamagedChunkError, match=rf"damaged: .*; to redo it, .*restive run {folder}"
    ):
        rs.load_results(folder)
    lines = []
    run(STUDY, folder, tell=lines.append)
    assert len(lines) == 1
    assert lines[0].startswith(f"{path}: damaged: ")
    assert chunk_bytes(folder) == undisturbed


def test_truncated_chunks_are_redone(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    path = chunk_paths(tmp_path)[6]
    whole = path.read_bytes()
    head = whole.index(b"\n")
    for length in (0, 1, head // 2, head, head + 1, head + 9, len(whole) // 2, len(whole) - 1):
        damaged_then_redone(tmp_path, undisturbed, path, whole[:length])


def test_longer_and_other_files_are_redone(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    path, other = chunk_paths(tmp_path)[0], chunk_paths(tmp_path)[4]
    whole = path.read_bytes()
    wrong = (
        whole + b"\0",
        whole + whole,
        b"\n" + whole,
        b"[]\n",
        b"{}\n",
        b"null\n",
        b'{"format": "restive chunk 1"}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
        whole.replace(b"restive chunk 1", b"restive chunk 2", 1),
        other.read_bytes(),  # of two replications instead of seven
    )
    for contents in wrong:
        damaged_then_redone(tmp_path, undisturbed, path, contents)


def test_any_flipped_byte_is_found():
    """Every byte of the header and every byte of the arrays, in one bit and in all of them."""
    arrays = {
        "a": np.arange(6.0).reshape(2, 3),
        "b": np.array([[1], [2]]),
        "none": np.zeros((0, 2)),
    }
    whole = b"".join(encoded(arrays))
    for place in range(len(whole)):
        for flip in (1, 4, 32, 128, 255):
            contents = bytearray(whole)
            contents[place] ^= flip
            with suppress(DamagedChunkError):
                found = decoded(bytes(contents))
                # only what is not in the arrays can be other: white space between JSON's tokens
                assert contents[place] in b" \t\r"
                assert whole[place] in b" \t\r"
                assert all(np.array_equal(found[name], arrays[name]) for name in arrays)


def test_flipped_bytes_in_a_run(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    path = chunk_paths(tmp_path)[3]
    whole = path.read_bytes()
    rng = np.random.default_rng(1)
    for place in rng.choice(len(whole), 25, replace=False):
        contents = bytearray(whole)
        contents[place] ^= 1 << rng.integers(8)
        damaged_then_redone(tmp_path, undisturbed, path, bytes(contents))


def test_a_chunk_under_the_name_of_another_count_is_redone(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    path = chunk_paths(tmp_path)[1]
    path.rename(path.with_name("0000000007-5.chunk"))
    lines = []
    run(STUDY, tmp_path, tell=lines.append)
    assert "damaged" in lines[0]
    assert chunk_bytes(tmp_path) == undisturbed


@pytest.mark.parametrize("pair", [(0, 1), (0, 5)])
def test_a_chunk_under_the_name_of_another_is_redone(tmp_path, undisturbed, pair):
    """Of other replications, or of another case: its numbers are good, and in the wrong place."""
    run(STUDY, tmp_path)
    paths = [chunk_paths(tmp_path)[i] for i in pair]
    paths[1].write_bytes(paths[0].read_bytes())
    lines = []
    run(STUDY, tmp_path, tell=lines.append)
    assert len(lines) == 1
    assert str(paths[1]) in lines[0]
    assert chunk_bytes(tmp_path) == undisturbed


def folder_in_the_way(path):
    path.mkdir()
    (path / "mine.txt").write_text("mine")


def dangling_loop(path):
    path.symlink_to(path.name)


def a_socket(path):
    with socket.socket(socket.AF_UNIX) as listening:
        place = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            listening.bind(path.name)
        finally:
            os.chdir(place)


@pytest.mark.parametrize("make", [folder_in_the_way, os.mkfifo, dangling_loop, a_socket])
@pytest.mark.parametrize("place", ["chunk", "case", "chunks"])
def test_what_is_no_chunk_is_set_aside_and_the_run_goes_on(tmp_path, undisturbed, make, place):
    """A folder, a pipe, a link or a socket, in the place of a chunk or of a folder of them."""
    run(STUDY, tmp_path)
    path = chunk_paths(tmp_path)[1]
    if place == "chunk":
        path.unlink()
    else:
        path = path.parent if place == "case" else path.parents[1]
        if make is folder_in_the_way:  # a folder is what should be there
            make = Path.touch
        shutil.rmtree(path)
    make(path)
    assert CliRunner().invoke(app, ["status", str(tmp_path)]).exit_code == 0
    lines = []
    run(STUDY, tmp_path, tell=lines.append)
    (line,) = lines
    aside = path.with_name(line.split()[-1])
    assert line.startswith(f"{path}: ")
    assert line.endswith(f"; it is set aside as {path.name}.{aside.suffix.removeprefix('.')}")
    assert os.path.lexists(aside)
    if (aside / "mine.txt").parent.is_dir() and place == "chunk":
        assert (aside / "mine.txt").read_text() == "mine"
    found = {name: text for name, text in chunk_bytes(tmp_path).items() if ".stray-" not in name}
    assert found == undisturbed
    lines.clear()
    run(STUDY, tmp_path, tell=lines.append)
    assert lines == []


STRAY = [
    "00000000000-7.chunk",  # eleven digits
    "0000000007-07.chunk",
    "0000000000-7.chunk\n",
    "\u0660" * 10 + "-7.chunk",  # digits, but not ours
    "0000000000-7 (1).chunk",
    "0000000000-7.chunk.bak",
    "Thumbs.db",
    "9" * 200 + "-1.chunk",
]


def test_stray_files_among_the_chunks_change_nothing(tmp_path, undisturbed):
    run(STUDY, tmp_path, replications=20)
    case = tmp_path / "chunks" / "0000-tsde-myopic"
    for name in STRAY:
        (case / name).write_bytes(b"not ours")
    (tmp_path / "chunks" / "0000").mkdir()
    lines = []
    run(STUDY, tmp_path, tell=lines.append, replications=30)
    # the last has a chunk's name indeed: it is told as damaged
    (line,) = lines
    assert line.startswith(str(case / STRAY[-1]))
    for name in STRAY[:-1]:
        assert (case / name).read_bytes() == b"not ours"
        (case / name).unlink()
    assert [found.replications for found in rs.load_results(tmp_path)] == [30, 30]


def test_missing_chunks_in_the_middle_are_redone(tmp_path, undisturbed):
    run(STUDY, tmp_path)
    paths = chunk_paths(tmp_path)
    for number in (0, 3, 4, 7):
        paths[number].unlink()
    (found,) = rs.load_results(tmp_path)  # of the first case the beginning is missing
    assert (found.case.mapping, found.replications) == ("whittle", 14)
    run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed


def test_results_before_a_gap_are_read(tmp_path):
    run(STUDY, tmp_path)
    chunk_paths(tmp_path)[2].unlink()
    myopic, whittle = rs.load_results(tmp_path)
    assert (myopic.replications, whittle.replications) == (14, 30)
    few = run(STUDY, tmp_path / "few", replications=14)
    assert bits(rs.load_results(few.folder)[0]) == bits(myopic)


@pytest.mark.parametrize("order", [sorted, lambda names: sorted(names, reverse=True)])
def test_replications_that_are_there_twice_are_read_once(tmp_path, monkeypatch, order):
    """Say, because folders were merged by hand; whatever the order in which files are listed."""
    ledger = run(STUDY, tmp_path)
    before = rs.load_results(tmp_path)
    case = STUDY.cases[0]
    arrays = ledger.read(Chunk(case, 0, 7))
    ledger.write(Chunk(case, 0, 3), {name: array[:3] for name, array in arrays.items()})
    real = os.listdir
    monkeypatch.setattr(os, "listdir", lambda folder: order(real(folder)))
    assert ledger.replications_done(case) == 30
    assert list(ledger.missing(case)) == []
    assert [bits(found) for found in rs.load_results(tmp_path)] == [bits(one) for one in before]


@pytest.mark.parametrize("first", [0, 10**10 - 1, 10**10, 10**14])
def test_chunks_of_late_replications_are_found_again(tmp_path, first):
    ledger = begin(STUDY, tmp_path)
    case = STUDY.cases[0]
    ledger.write(Chunk(case, first, 2), {"expected": np.zeros((2, 3))})
    assert ledger.finished(case) == [Chunk(case, first, 2)]


def test_a_damaged_manifest_is_told(tmp_path):
    run(STUDY, tmp_path)
    path = tmp_path / "manifest.json"
    whole = path.read_bytes()
    for contents in (b"", whole[:-3], whole[:200], b"\xff", b"[]", b"null", b"3", b'"a"', b"{}",
                     b"[" * 100_000, whole.replace(b'"format": 1', b'"format": 2')):  # fmt: skip
        path.write_bytes(contents)
        for call in (lambda: rs.load_results(tmp_path), lambda: run(STUDY, tmp_path)):
            with pytest.raises(rs.RestiveError) as caught:
                call()
            assert "manifest.json" in str(caught.value)


KEYS = ("format", "title", "study", "hash", "replications", "chunk_sizes", "restive", "runs",
        "numbers", "versions")  # fmt: skip
WRONG = {"none": None, "negative": -1, "huge": 10**30, "float": 1.5, "list": [], "table": {},
         "text": "text", "bool": True}  # fmt: skip
FINE = {("title", "text"), ("restive", "text"), ("runs", "list"), ("format", "bool"),
        ("versions", "table"), ("numbers", "missing")}  # fmt: skip


@pytest.mark.parametrize("key", KEYS)
def test_a_manifest_with_a_wrong_value_is_told(tmp_path, key):
    """When it is opened: nothing is run with, or counted up to, a value that is none."""
    manifest = begin(STUDY, tmp_path).manifest
    path = tmp_path / "manifest.json"
    values = {name: value for name, value in WRONG.items() if (key, name) not in FINE}
    wrong = [manifest | {key: value} for value in values.values()]
    if (key, "missing") not in FINE:
        wrong.append({name: value for name, value in manifest.items() if name != key})
    for data in wrong:
        path.write_text(json.dumps(data))
        with pytest.raises(rs.RestiveError, match=r"manifest\.json"):
            Ledger.open(tmp_path)


@pytest.mark.parametrize("size", [0, -3, "7", 1.5, None, True, [7]])
def test_a_manifest_with_a_wrong_chunk_size_is_told(tmp_path, size):
    manifest = begin(STUDY, tmp_path).manifest
    manifest["chunk_sizes"]["0001-tsde-whittle"] = size
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(rs.RestiveError, match=r"manifest\.json"):
        Ledger.open(tmp_path)


def test_flipped_bytes_in_a_manifest_are_told_or_harmless(tmp_path):
    """What decides the numbers is hashed; the rest is checked for what it must be."""
    run(STUDY, tmp_path)
    chunks = chunk_bytes(tmp_path)
    path = tmp_path / "manifest.json"
    whole = path.read_bytes()
    rng = np.random.default_rng(2)
    digits = whole.index(b'"replications"') + 16  # one more digit would be a long run
    for place in rng.choice(len(whole), 300, replace=False):
        if digits - 2 <= place < digits + 5:
            continue
        contents = bytearray(whole)
        contents[place] ^= 1 << rng.integers(8)
        path.write_bytes(contents)
        with suppress(rs.RestiveError):
            run(STUDY, tmp_path)
    path.write_bytes(whole)
    run(STUDY, tmp_path)
    found = chunk_bytes(tmp_path)
    assert {name: found[name] for name in chunks} == chunks


# ---------------------------------------------------------------- two at once

HOLDER = """
import sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from study_cases import frequentist
from restive.studies.ledger import Ledger
with Ledger.writing(Path({folder!r}), frequentist()):
    print("held", flush=True)
    sys.stdin.read()
"""


def holder(folder):
    """Start a process that holds a folder; return it once it does."""
    code = HOLDER.format(tests=str(Path(__file__).parent), folder=str(folder))
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    return process


def test_two_runs_in_one_folder(tmp_path, undisturbed, monkeypatch):
    monkeypatch.setattr("restive.studies.ledger.sleep", lambda seconds: None)
    begin(STUDY, tmp_path)
    with holder(tmp_path) as process:
        before = everything(tmp_path)
        assert Ledger.open(tmp_path).is_being_written()
        assert f"process {process.pid} on" in (tmp_path / "lock").read_text()
        with pytest.raises(rs.RestiveError) as caught:
            run(STUDY, tmp_path)
        message = str(caught.value)
        assert message.startswith(f"{tmp_path}: another run is writing here (process {process.pid}")
        assert everything(tmp_path) == before
        status = shell("status", tmp_path)
        assert "a run is writing here now" in status.stdout
        assert rs.load_results(tmp_path) == []  # readers need no lock
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not Ledger.open(tmp_path).is_being_written()
        run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed


def test_a_folder_is_free_again_when_the_holder_ends(tmp_path):
    with Ledger.writing(tmp_path, STUDY) as ledger:
        assert ledger.is_being_written()
    assert not ledger.is_being_written()
    with pytest.raises(ZeroDivisionError), Ledger.writing(tmp_path, STUDY):
        raise ZeroDivisionError
    assert not ledger.is_being_written()


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_leads_elsewhere_is_refused_and_not_followed(tmp_path, link):
    """Neither what it leads to nor anything else is touched."""
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "results"
    folder.mkdir()
    link(precious, folder / "lock")
    with pytest.raises(rs.RestiveError, match=r"lock: a link.*; remove it$"):
        run(STUDY, folder)
    assert precious.read_text() == "mine"
    assert [path.name for path in folder.iterdir()] == ["lock"]
    (folder / "lock").unlink()  # what the message says
    run(STUDY, folder)


def test_a_lock_to_a_file_that_is_not_there_makes_none(tmp_path):
    folder = tmp_path / "results"
    folder.mkdir()
    (folder / "lock").symlink_to(tmp_path / "new")
    with pytest.raises(rs.RestiveError, match=r"lock: a link, a pipe or"):
        run(STUDY, folder)
    assert not (tmp_path / "new").exists()


def test_a_lock_that_is_a_pipe_is_refused_and_not_waited_for(tmp_path):
    run(STUDY, tmp_path)
    (tmp_path / "lock").unlink()
    os.mkfifo(tmp_path / "lock")
    assert not Ledger.open(tmp_path).is_being_written()
    with pytest.raises(rs.RestiveError, match="a pipe or a device, and no file of its own"):
        run(STUDY, tmp_path)


def test_a_file_system_without_locks_is_told(tmp_path, undisturbed, monkeypatch):
    def refuse(handle, operation):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", refuse)
    lines = []
    ledger = run(STUDY, tmp_path, tell=lines.append)
    assert lines == [
        f"{tmp_path}: no locks here; make sure that no other run writes to this folder"
    ]
    assert chunk_bytes(tmp_path) == undisturbed
    assert not ledger.is_being_written()


# ---------------------------------------------------------------- the folder is taken away


def at_replication(number, action):
    """Return a progress function that acts once, when so many replications are done."""
    left = [action]

    def look(progress):
        if progress.done >= number and left:
            left.pop()()

    return look


def moved(folder):
    folder.rename(folder.with_name("elsewhere"))


def moved_and_replaced(folder):
    moved(folder)
    folder.mkdir()


def moved_and_copied_back(folder):
    moved(folder)
    shutil.copytree(folder.with_name("elsewhere"), folder)


def moved_and_begun_anew(folder):
    moved(folder)
    begin(STUDY, folder)


def lock_removed(folder):
    (folder / "lock").unlink()


def lock_replaced(folder):
    (folder / "lock").unlink()
    (folder / "lock").touch()


TAKEN_AWAY = [
    moved,
    moved_and_replaced,
    moved_and_copied_back,
    moved_and_begun_anew,
    shutil.rmtree,
    lock_removed,
    lock_replaced,
]


@pytest.mark.parametrize("executor", ["serial", "threads"])
@pytest.mark.parametrize("done", [0, CHUNK, 60])
@pytest.mark.parametrize("act", TAKEN_AWAY)
def test_a_folder_that_is_taken_away_ends_the_run(tmp_path, undisturbed, act, done, executor):
    """Also after the last chunk; nothing is written where the folder was, and all can go on."""
    folder = tmp_path / "results"
    after = {}

    def take_away():
        act(folder)
        after.update(everything(folder))

    with pytest.raises(rs.RestiveError) as caught:
        run(STUDY, folder, progress=at_replication(done, take_away), executor=executor)
    assert str(caught.value).startswith(f"{folder}: was moved, removed or replaced while a run ")
    assert everything(folder) == after
    assert folder.exists() == bool(after) or act is moved_and_replaced
    there = folder.with_name("elsewhere")
    if act in (lock_removed, lock_replaced):
        there = folder
    if there.exists():
        run(STUDY, there)
        assert chunk_bytes(there) == undisturbed


@pytest.mark.parametrize("done", [CHUNK, 60])
def test_chunks_that_are_removed_while_a_run_writes_are_missed(tmp_path, undisturbed, done):
    def remove():
        chunk_paths(tmp_path)[0].unlink()

    with pytest.raises(rs.RestiveError, match="7 replications that were kept here are gone"):
        run(STUDY, tmp_path, progress=at_replication(done, remove))
    run(STUDY, tmp_path)  # what the message says
    assert chunk_bytes(tmp_path) == undisturbed


@pytest.mark.parametrize("depth", [1, 2])
def test_a_folder_of_chunks_that_vanishes_is_not_made_anew(tmp_path, undisturbed, depth):
    def remove():
        shutil.rmtree(chunk_paths(tmp_path)[0].parents[depth - 1])

    with pytest.raises(rs.RestiveError, match=r"No such file or directory.*run the same command"):
        run(STUDY, tmp_path, progress=at_replication(CHUNK, remove))
    assert len(list((tmp_path / "chunks").iterdir()) if depth == 1 else [0]) == 1
    run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed


def test_the_command_line_says_so_in_one_sentence(tmp_path):
    text = tmp_path / "study.toml"
    text.write_text(changed_text(FREQUENTIST, horizon=3000, replications=300))
    folder = tmp_path / "results"
    begin(changed(text.read_text()), folder, size=1)
    process = start("run", text, "--out", folder)
    while not chunk_paths(folder) and process.poll() is None:
        sleep(0.005)
    folder.rename(tmp_path / "elsewhere")
    _, errors = process.communicate()
    assert process.returncode == 2
    assert errors.startswith(f"restive: {folder}: was moved")
    assert "Traceback" not in errors
    assert not folder.exists()
    assert shell("run", tmp_path / "elsewhere").returncode == 0


# ---------------------------------------------------------------- what reaches the disk


def test_files_and_their_folders_are_flushed_around_the_rename(tmp_path, monkeypatch):
    """A file's contents before it gets its name, the name before the next step."""
    seen = []
    real_fsync, real_replace = os.fsync, os.replace

    def fsync(handle):
        seen.append(os.fstat(handle).st_ino)
        real_fsync(handle)

    def rename(source, target):
        seen.append((os.stat(source).st_ino, Path(target)))
        real_replace(source, target)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "replace", rename)
    run(STUDY, tmp_path)
    renames = [at for at, entry in enumerate(seen) if isinstance(entry, tuple)]
    assert len(renames) == 10 + 3  # chunks, and the manifest at three moments
    for at in renames:
        inode, target = seen[at]
        assert seen[at - 1] == inode
        assert seen[at + 1] == target.parent.stat().st_ino


# ---------------------------------------------------------------- a full disk


def full(number):
    """Return a stand-in for a call that works so many times and then finds the disk full."""
    calls = iter(range(10**9))

    def wrapper(real):
        def call(*words, **options):
            if next(calls) >= number:
                raise OSError(errno.ENOSPC, "No space left on device")
            return real(*words, **options)

        return call

    return wrapper


@pytest.mark.parametrize("call", ["replace", "write", "touch"])
@pytest.mark.parametrize("number", [0, 1, 2, 5])
def test_a_full_disk(tmp_path, monkeypatch, undisturbed, call, number):
    if call == "write":
        fails = full(number)(lambda: None)

        def pieces(arrays, what):
            first, *rest = encoded(arrays, what)
            yield first  # a part of it fits
            fails()
            yield from rest

        monkeypatch.setattr("restive.studies.ledger.encoded", pieces)
    elif call == "touch":
        monkeypatch.setattr(Path, "touch", full(number)(Path.touch))
    else:
        monkeypatch.setattr(os, call, full(number)(getattr(os, call)))
    with pytest.raises(rs.RestiveError, match="No space left on device") as caught:
        run(STUDY, tmp_path)
    monkeypatch.undo()
    if chunk_paths(tmp_path):
        assert "what is done is kept: free some space" in str(caught.value)
    found = chunk_bytes(tmp_path) if (tmp_path / "chunks").exists() else {}
    assert all(undisturbed.get(name) == contents for name, contents in found.items())
    run(STUDY, tmp_path)
    assert chunk_bytes(tmp_path) == undisturbed
    assert no_leftovers(tmp_path)


def test_writes_that_the_system_cuts_short(tmp_path, undisturbed):
    """For real, by a limit on the size of files: the manifest fits, no chunk does."""
    study = tmp_path / "study.toml"
    study.write_text(FREQUENTIST)
    folder = tmp_path / "out"
    begin(STUDY, folder)
    size = max(len(contents) for contents in undisturbed.values()) // 2
    assert size > (folder / "manifest.json").stat().st_size + 500
    done = shell(
        "run", study, "--out", folder, "--executor", "serial",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("restive: ")
    assert "cannot be written: File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert chunk_paths(folder) == []
    assert no_leftovers(folder)
    assert shell("run", study, "--out", folder).returncode == 0
    assert chunk_bytes(folder) == undisturbed


# ---------------------------------------------------------------- told before anything runs


def test_what_is_wrong_with_a_case_is_told_before_the_folder_is_made(tmp_path):
    text = BAYESIAN.replace("levels = [0.2, 0.5, 0.8]", "levels = [0.0, 1.0]")
    with pytest.raises(rs.RestiveError):
        run_study(study_from_toml(text), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_an_exact_baseline_that_cannot_be_had_is_told_before_the_folder_is_made(tmp_path):
    study = study_from_toml(
        'kind = "frequentist"\nhorizon = 10\npolicy_mappings = ["myopic"]\nbaseline = "exact"\n'
        "[problem]\nnum_pulls = 2\n[[problem.arm]]\np01 = 0.1\np11 = 0.9\ncount = 5\n"
        "[[problem.arm]]\np01 = 0.2\np11 = 0.9\ncount = 3\n[prior]\nlevels = [0.1, 0.2, 0.9]\n"
    )
    with pytest.raises(rs.errors.TooLargeError, match="joint states"):
        run_study(study, tmp_path / "new", replications=3)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"executor": "thread"},
        {"executor": None},
        {"executor": "serial", "scheduler": "tcp://127.0.0.1:1"},
        {"executor": "dask", "scheduler": "tcp://127.0.0.1:1", "workers": 2},
        {"workers": 0},
        {"workers": 1.5},
        {"workers": True},
        {"replications": 0},
        {"replications": "many"},
        {"replications": 10**16},
    ],
    ids=str,
)
def test_wrong_options_are_told_before_the_folder_is_made(tmp_path, options):
    with pytest.raises(rs.errors.ProblemError):
        run_study(STUDY, tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("path", [None, 3, "a\0b", b"bytes", ["a"]])
def test_what_is_no_path_is_told(tmp_path, path):
    for call in (
        lambda: run_study(STUDY, path),
        lambda: run_study(path, tmp_path / "new"),
        lambda: rs.load_study(path),
        lambda: rs.load_problem(path),
        lambda: rs.load_results(path),
        lambda: rs.write_report(path),
        lambda: rs.export_results(path),
    ):
        with pytest.raises(rs.errors.ProblemError, match="must be a path, got"):
            call()
    run(STUDY, tmp_path / "there", replications=2)
    if path is not None:
        with pytest.raises(rs.errors.ProblemError, match="must be a path, got"):
            rs.write_report(tmp_path / "there", path)
    for options in ({"format": 3}, {"table": None}):
        with pytest.raises(rs.errors.ProblemError, match="unknown"):
            rs.export_results(tmp_path / "there", **options)


def test_a_study_is_run_from_its_path(tmp_path):
    (tmp_path / "mine.toml").write_text(FREQUENTIST)
    ledger = run(tmp_path / "mine.toml", tmp_path / "out", replications=2)
    assert (ledger.study.title, ledger.study.hash) == ("mine", STUDY.hash)


def test_the_plan_of_a_very_long_run_takes_little_memory(tmp_path):
    """What is to be done is counted, not listed."""

    class StopError(Exception):
        pass

    def stop(progress):
        assert progress.to_do == 2 * 700_000
        raise StopError

    tracemalloc.start()
    try:
        with pytest.raises(StopError):
            run(STUDY, tmp_path, replications=700_000, progress=stop)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20
