"""Kernels are compiled once: later processes reuse them, also from a read-only installation.

Permissions do not stop root, as whom tests may run, so a file stands where a folder would be made.
"""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import restive
from restive.kernels.jit.checked_cache import CheckedCacheFile

PROGRAM = """
import numpy as np
from restive.kernels import chain
law = np.empty(2)
chain.stationary_law(np.array([[0.5, 0.5], [0.25, 0.75]]), law, 1, 100)
assert abs(law[1] - 2 / 3) < 1e-15
stats = getattr(chain.stationary_law, "stats", None)
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


@pytest.fixture
def read_only_install(tmp_path: Path) -> Path:
    """Copy the package to where nothing can be written beside it."""
    root = tmp_path / "site"
    shutil.copytree(
        Path(restive.__file__).parent,
        root / "restive",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    for folder in [path for path in root.rglob("*") if path.is_dir()]:
        (folder / "__pycache__").write_text("in the way")
    return root


@pytest.fixture(scope="module")
def compiled_install(tmp_path_factory) -> Path:
    """Copy the package and compile a kernel of it."""
    root = tmp_path_factory.mktemp("compiled")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(restive.__file__).parent, root / "restive", ignore=ignored)
    assert cache_hits_and_misses(root, root) == [0, 1]
    return root


@pytest.fixture
def install(compiled_install: Path, tmp_path: Path) -> Path:
    """Copy that, with what is compiled."""
    return Path(shutil.copytree(compiled_install, tmp_path / "site"))


def cache_hits_and_misses(install: Path, home: Path) -> list[int]:
    return [int(word) for word in compiled(install, home).stdout.split()]


def compiled(install: Path, home: Path) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(install)}
    done = subprocess.run(
        [sys.executable, "-P", "-B", "-c", PROGRAM],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


def test_read_only_install_caches_in_the_users_folder(
    read_only_install: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert cache_hits_and_misses(read_only_install, home) == [0, 1]
    assert cache_hits_and_misses(read_only_install, home) == [1, 0]
    assert not list(read_only_install.rglob("*.nbi"))


def test_nowhere_to_cache_compiles_all_the_same(read_only_install: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / ".cache").write_text("in the way")
    for _ in range(2):
        assert cache_hits_and_misses(read_only_install, home)[0] == 0


def truncated(contents: bytes) -> bytes:
    return contents[: len(contents) // 2]


def flipped(contents: bytes) -> bytes:
    at = len(contents) // 2
    return contents[:at] + bytes([contents[at] ^ 1]) + contents[at + 1 :]


def test_damaged_code_is_told_and_compiled_anew(tmp_path: Path, install: Path) -> None:
    """A flipped bit in what Numba would run."""
    assert cache_hits_and_misses(install, tmp_path) == [1, 0]
    (path,) = install.rglob("*stationary_law-*.nbc")
    path.write_bytes(flipped(path.read_bytes()))
    done = compiled(install, tmp_path)
    assert done.stdout.split() == ["0", "1"]
    lines = [line for line in done.stderr.splitlines() if "first run only" not in line]
    assert lines == [
        f"restive: {path.parent}: kernels that were kept here are damaged: compiled anew"
    ]
    done = compiled(install, tmp_path)
    assert (done.stdout.split(), done.stderr) == (["1", "0"], "")


def test_a_change_in_any_kernel_is_seen(tmp_path: Path, install: Path) -> None:
    """Numba itself looks only at the file of the kernel that is called."""
    with (install / "restive" / "kernels" / "random.py").open("a") as file:
        file.write("# a change\n")
    assert cache_hits_and_misses(install, tmp_path) == [0, 1]


def kept(folder: Path, key: str, data: object, stamp: str = "now") -> CheckedCacheFile:
    """Keep something as compiled code."""
    file = CheckedCacheFile(str(folder), "kernel", stamp)
    file.save(key, data)
    return file


@pytest.mark.parametrize("name", ["kernel.nbi", "kernel.1.nbc"])
@pytest.mark.parametrize(
    "damage",
    [truncated, flipped, lambda found: b"", lambda found: bytes(len(found)), lambda found: b"a"],
)
def test_whatever_is_damaged_is_no_file(tmp_path: Path, capsys, name: str, damage) -> None:
    file = kept(tmp_path, "int64", list(range(1000)))
    kept(tmp_path, "float64", "other")
    assert file.load("int64") == list(range(1000))
    path = tmp_path / name
    path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert file.load("int64") is None
        assert file.load("float64") == (None if name == "kernel.nbi" else "other")
    told = f"restive: {tmp_path}: kernels that were kept here are damaged: compiled anew\n"
    assert capsys.readouterr().err == told  # once
    file.save("int64", "anew")
    assert file.load("int64") == "anew"


def test_files_of_other_versions_are_not_called_damaged(tmp_path: Path, capsys) -> None:
    file = kept(tmp_path, "int64", "old")
    assert CheckedCacheFile(str(tmp_path), "kernel", "later").load("int64") is None
    path = tmp_path / "kernel.nbi"
    for contents in (path.read_bytes().replace(b"numba ", b"numba 9"), pickle.dumps("0.60.0")):
        path.write_bytes(contents)
        assert file.load("int64") is None
    assert capsys.readouterr().err == ""


def test_what_was_compiled_for_another_signature_is_not_taken(tmp_path: Path) -> None:
    """Two processes that fill an empty cache may give the same name to different code."""
    file = kept(tmp_path, "int64", "code for whole numbers")
    index = (tmp_path / "kernel.nbi").read_bytes()
    (tmp_path / "kernel.nbi").unlink()
    kept(tmp_path, "float64", "other code")
    (tmp_path / "kernel.nbi").write_bytes(index)
    assert file.load("int64") is None


def test_a_cache_that_cannot_be_written_does_not_stop_anything(
    tmp_path: Path, capsys, monkeypatch
) -> None:
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    file = kept(tmp_path, "int64", "code")
    assert capsys.readouterr().err == (
        f"restive: {tmp_path}: compiled kernels cannot be kept here: No space left on device\n"
    )
    assert file.load("int64") is None
