"""Where compiled kernels are kept on disk, so that a machine compiles them once.

They lie in a folder whose name tells the mode and a digest of all kernels' sources and of Numba's
version: a kernel contains those that it calls, from whatever file, so a change in any of them makes
another folder and stale code is never found. The last few folders in use are kept. They are in the
folder that NUMBA_CACHE_DIR names, or else beside the kernels, or else, where an installation is
read-only, in the user's cache folder; where none can be written, kernels compile in each process.
Numba also goes by where the sources lie: an installation that is moved compiles anew.

Numba itself writes each file in one go, so a crash leaves none half written. What it cannot read
all the same is compiled anew and told (`cache_guard`; not in plain mode, where a file that was
cut short is an error until it is deleted, and so is a full disk). Nobody notices a flipped bit in
machine code: there are no checksums.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from threading import RLock
from typing import Any

import numba

from restive.kernels.jit.mode import MODE

__all__ = ["kept_on_disk"]

KERNELS = Path(__file__).parents[1]
FOLDERS_KEPT = 4  # so that two versions or modes in turn do not delete each other's

config: Any = numba.config
_changing = RLock()


def kept_on_disk(compiled: Callable[..., Any], **options: Any) -> Any:
    """Return what `compiled` makes with these options and, where possible, with Numba's cache.

    Numba reads where its cache is when a function is decorated, and only then. It keeps nothing of
    a function that has no file.
    """
    folder = _folder()
    if folder is None:
        return compiled(**options)
    with _changing:
        before = config.CACHE_DIR
        config.CACHE_DIR = str(folder)
        try:
            return compiled(cache=True, **options)
        except RuntimeError as error:
            if "cannot cache" not in str(error):
                raise
            return compiled(**options)
        finally:
            config.CACHE_DIR = before


@cache
def _folder() -> Path | None:
    """Return the folder of these kernels, made if need be, or None where nothing can be written."""
    found = sorted(KERNELS.rglob("*.py"))
    sources = b"".join(path.read_bytes() for path in found)
    digest = sha256(sources + numba.__version__.encode()).hexdigest()[:16]
    for root in _roots():
        folder = root / f"restive-{MODE}-{digest}"
        try:
            is_new = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
            os.utime(folder)  # in use
        except OSError:
            continue
        if is_new:
            _forget_oldest(root)
        return folder
    return None


def _roots() -> Iterator[Path]:
    if config.CACHE_DIR:
        yield Path(config.CACHE_DIR)
        return
    yield KERNELS / "__pycache__"
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    yield Path(home or os.path.expanduser("~/.cache")) / "restive"


def _forget_oldest(root: Path) -> None:
    """Delete all but the folders used last; a process that still reads there compiles anew."""
    try:
        folders = sorted(root.glob("restive-*"), key=lambda path: path.stat().st_mtime)
    except OSError:  # another process deletes some now
        return
    for folder in folders[:-FOLDERS_KEPT]:
        shutil.rmtree(folder, ignore_errors=True)
