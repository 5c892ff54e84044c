"""The manifest of a results folder: what is run there and by which code, checked when read."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from restive.arguments import MOST
from restive.errors import RestiveError
from restive.experiment.provenance import VERSION, code
from restive.experiment.spec import Study, digest, study_from_data
from restive.experiment.work import chunk_size
from restive.files import read_regular
from restive.replication import NUMBERS

__all__ = ["MANIFEST", "difference", "new_manifest", "now", "read_manifest"]

MANIFEST = "manifest.json"
FORMAT = 1
LARGEST = 1 << 28  # bytes

Count = Annotated[int, Field(ge=1, le=MOST)]


class Record(BaseModel):
    """A table of the manifest."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Run(Record):
    """A run that took part."""

    begun: str
    seconds: float = Field(ge=0, allow_inf_nan=False)  # 0 for one that was killed
    executor: str
    commit: str | None
    versions: dict[str, str]


class Manifest(Record):
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
    runs: list[Run]


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
