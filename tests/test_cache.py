"""Kernels are compiled once: later processes reuse them, also from a read-only installation.

Permissions do not stop root, as whom tests may run, so a file stands where a folder would be made.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import restive

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


def cache_hits_and_misses(install: Path, home: Path) -> list[int]:
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONPATH": str(install)}
    done = subprocess.run(
        [sys.executable, "-P", "-B", "-c", PROGRAM],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [int(word) for word in done.stdout.split()]


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
