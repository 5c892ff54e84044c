"""Kernels are compiled once: later processes reuse them, also from a read-only installation.

What is damaged is compiled anew, what is stale is never found, and a full disk stops nothing.

Permissions do not stop root, as whom tests may run, so a file stands where a folder would be made.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import restive
from restive.kernels.jit import cache
from restive.kernels.jit.cache import FOLDERS_KEPT
from restive.kernels.jit.compiler import kernel

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
def kept(compiled_install: Path, tmp_path: Path) -> Path:
    """Copy what is compiled, to where kernels are kept if NUMBA_CACHE_DIR says so."""
    (folder,) = compiled_install.rglob("restive-*")
    return Path(shutil.copytree(folder.parent, tmp_path / "kept"))


def cache_hits_and_misses(install: Path, home: Path, **environment: str) -> list[int]:
    return [int(word) for word in compiled(install, home, **environment).stdout.split()]


def compiled(install: Path, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(install)}
    done = subprocess.run(
        [sys.executable, "-P", "-B", "-c", PROGRAM],
        env=env | environment,
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


def test_modes_do_not_share_what_is_compiled(compiled_install: Path, kept: Path) -> None:
    found = [
        cache_hits_and_misses(
            compiled_install, kept, NUMBA_CACHE_DIR=str(kept), RESTIVE_PLAIN_NUMBA=plain
        )
        for plain in ("0", "1", "1", "0")
    ]
    assert found == [[1, 0], [0, 1], [1, 0], [1, 0]]
    assert len(list(kept.rglob("*stationary_law-*.nbc"))) == 2


def truncated(contents: bytes) -> bytes:
    return contents[: len(contents) // 2]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", [truncated, lambda found: b""])
def test_what_cannot_be_read_is_told_and_compiled_anew(
    compiled_install: Path, kept: Path, suffix: str, damage
) -> None:
    (path,) = kept.rglob(f"*stationary_law-*.{suffix}")
    path.write_bytes(damage(path.read_bytes()))
    done = compiled(compiled_install, kept, NUMBA_CACHE_DIR=str(kept))
    assert done.stdout.split() == ["0", "1"]
    lines = [line for line in done.stderr.splitlines() if "restive: compiling" not in line]
    assert lines == [
        f"restive: {path.parent}: kernels that were kept here are damaged: compiled anew"
    ]
    done = compiled(compiled_install, kept, NUMBA_CACHE_DIR=str(kept))
    assert (done.stdout.split(), done.stderr) == (["1", "0"], "")


def test_a_change_in_any_kernel_is_seen(compiled_install: Path, kept: Path) -> None:
    """Numba itself looks only at the file of the kernel that is called."""
    path = compiled_install / "restive" / "kernels" / "random.py"
    before = path.read_bytes()
    path.write_bytes(before + b"# a change\n")
    assert cache_hits_and_misses(compiled_install, kept, NUMBA_CACHE_DIR=str(kept)) == [0, 1]
    path.write_bytes(before)
    assert cache_hits_and_misses(compiled_install, kept, NUMBA_CACHE_DIR=str(kept)) == [1, 0]


def test_only_the_folders_used_last_are_kept(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(cache.config, "CACHE_DIR", str(tmp_path))
    for age in range(2 * FOLDERS_KEPT):
        (tmp_path / f"restive-old-{age}").mkdir()
        os.utime(tmp_path / f"restive-old-{age}", (1e9 - age, 1e9 - age))
    own = cache._folder.__wrapped__()
    kept = [tmp_path / f"restive-old-{age}" for age in range(FOLDERS_KEPT - 1)]
    assert sorted(tmp_path.iterdir()) == [*kept, own]
    (tmp_path / "restive-other").mkdir()
    assert cache._folder.__wrapped__() == own  # not new, so nothing goes
    assert len(list(tmp_path.iterdir())) == FOLDERS_KEPT + 1


@pytest.fixture
def own_folder(tmp_path: Path, monkeypatch) -> Path:
    """Let kernels that are made from now on be kept elsewhere."""
    monkeypatch.setattr(cache, "_folder", lambda: tmp_path)
    return tmp_path


def test_what_was_compiled_for_another_signature_is_not_taken(own_folder: Path) -> None:
    """Two processes that fill an empty cache may give the same name to different code."""

    def halved(number):
        return number / 2

    assert kernel(halved)(3) == 1.5
    (index,) = own_folder.rglob("*.nbi")
    of_whole_numbers = index.read_bytes()
    index.unlink()
    assert kernel(halved)(3.0) == 1.5
    index.write_bytes(of_whole_numbers)
    assert len(list(own_folder.rglob("*.nbc"))) == 1
    again = kernel(halved)
    assert again(3) == 1.5
    assert sum(again.stats.cache_misses.values()) == 1


def test_a_cache_that_cannot_be_written_does_not_stop_anything(
    own_folder: Path, capsys, monkeypatch
) -> None:
    def full(source, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert kernel(lambda number: number + 1)(3) == 4
    told = [line for line in capsys.readouterr().err.splitlines() if "first run" not in line]
    assert len(told) == 1
    assert told[0].startswith(f"restive: {own_folder}")
    assert told[0].endswith("compiled kernels cannot be kept here: No space left on device")
