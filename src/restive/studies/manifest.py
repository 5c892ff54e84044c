"""The manifest of a results folder: what is run there and by which code, checked when read.

Code is the commit of the checkout, where there is one, and the versions of packages.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from restive.arguments import MOST
from restive.errors import RestiveError
from restive.files import read_regular
from restive.measure.replication import NUMBERS
from restive.studies.spec import Study, digest, study_from_data
from restive.studies.work import chunk_size

__all__ = [
    "MANIFEST",
    "VERSION",
    "code",
    "code_in_words",
    "difference",
    "new_manifest",
    "now",
    "read_manifest",
]

MANIFEST = "manifest.json"
FORMAT = 1
LARGEST = 1 << 28  # bytes
VERSION = version("restive")
PACKAGES = ("numpy", "numba", "llvmlite", "pydantic")  # whose versions are kept

Count = Annotated[int, Field(ge=1, le=MOST)]


class ManifestTable(BaseModel):
    """A table of the manifest."""

    model_config = ConfigDict(extra="forbid", strict=True)


class PastRun(ManifestTable):
    """A run that took part."""

    begun: str
    seconds: float = Field(ge=0, allow_inf_nan=False)  # 0 for one that was killed
    executor: str
    commit: str | None
    versions: dict[str, str]


class Manifest(ManifestTable):
    """All that a manifest holds."""

    format: Literal[1]
    title: str
    study: dict[str, Any]
    hash: str
    replications: Count
    chunk_sizes: dict[str, Count]  # by name of the case
    restive: str
    numbers: Count
    versions: dict[str, str]
    commit: str | None
    machine: str
    begun: str
    runs: list[PastRun]


def new_manifest(study: Study) -> dict[str, Any]:
    """Return the manifest of a study that begins here and now."""
    return {
        "format": FORMAT,
        "title": study.title,
        "study": study.data,
        "hash": study.hash,
        "replications": study.replications,
        "chunk_sizes": {case.name: chunk_size(case) for case in study.cases},
        "restive": VERSION,
        "numbers": NUMBERS,
        **code(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "begun": now(),
        "runs": [],
    }


def read_manifest(path: Path) -> tuple[dict[str, Any], Study]:
    """Read a manifest and the study in it, or raise a RestiveError that says what is wrong."""
    try:
        manifest = json.loads(read_regular(path, LARGEST))
    except OSError as error:
        why = "there is none" if not path.exists() else error.strerror
        raise RestiveError(f"{path.parent}: not a results folder: {MANIFEST}: {why}") from None
    except (ValueError, RecursionError):
        raise RestiveError(
            f"{path}: damaged: not valid JSON; start again in another folder"
        ) from None
    if isinstance(manifest, dict) and manifest.get("format", FORMAT) != FORMAT:
        raise RestiveError(f"{path}: format {manifest['format']!r:.60}, expected {FORMAT}")
    try:
        Manifest.model_validate(manifest)
        json.dumps(manifest, ensure_ascii=False).encode()  # text that is none would fail later
        study = study_from_data(manifest["study"], title=manifest["title"])
        right = digest(manifest["study"]) == manifest["hash"] and manifest[
            "chunk_sizes"
        ].keys() == {case.name for case in study.cases}
    except (ValidationError, ValueError, RestiveError, RecursionError):
        right = False
    if not right:
        raise RestiveError(f"{path}: damaged, or changed by hand: it does not fit its own hash")
    return manifest, replace(study, replications=manifest["replications"])


def now() -> str:
    """Return the time, as a manifest keeps it."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def difference(old: Any, new: Any, place: str = "") -> list[str]:
    """Say where two studies differ, a line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in dict.fromkeys([*old, *new])
            for line in difference(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))
        ]
    return [] if old == new else [f"{place}: {_short(old)} there, {_short(new)} in this study"]


def _short(value: Any) -> str:
    if value is None:
        return "not given"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


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
