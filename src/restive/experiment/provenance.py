"""Which code ran: commit and versions of packages, as a ledger keeps them."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = ["VERSION", "code", "code_in_words"]

VERSION = version("restive")
PACKAGES = ("numpy", "numba", "llvmlite", "pydantic")


@cache  # what is loaded stays what it is
def code() -> dict[str, Any]:
    """Return the commit and the versions of packages of this process."""
    return {"commit": _commit(), "versions": _versions()}


def code_in_words(code: dict[str, Any]) -> str:
    """Return them in a line."""
    versions = (f"{package} {number}" for package, number in code["versions"].items())
    return f"commit {code['commit'] or 'not known'} ({', '.join(versions)})"


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _commit() -> str | None:
    """Commit of the checkout that restive is run from, None when it is installed.

    Changes that are not committed are named by their digest.
    """
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    try:
        name = _git(root, "rev-parse", "--short=12", "HEAD").decode().strip()
        changes = _git(root, "diff", "HEAD", "--", "src")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{name}-dirty-{hashlib.sha256(changes).hexdigest()[:8]}" if changes else name


def _git(root: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", "-C", str(root), *words], capture_output=True, timeout=10, check=True
    ).stdout
