"""The ledger: a folder that holds what a study has done so far, and survives any kill.

    DIR/manifest.json                    the study, its hash, chunk sizes, the code of every run
    DIR/lock                             held by the run that is writing
    DIR/chunks/0000-tsde-whittle/0000000000-262.chunk   replications 0 to 261 of a case

Every file appears under its name only when it is whole. The finished chunks are the only record of
progress: what is missing is what no chunk covers. Readers need no lock.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from shlex import quote
from time import perf_counter, sleep
from typing import Any

from restive.arguments import checked_count
from restive.errors import RestiveError
from restive.experiment.chunk_file import DamagedChunkError, encoded, read_chunk
from restive.experiment.spec import Case, Study, digest, study_from_data
from restive.experiment.work import Arrays, Task, chunk_size
from restive.files import replacing
from restive.replication import NUMBERS

__all__ = ["Ledger"]

FORMAT = 1
MANIFEST = "manifest.json"
LOCK = "lock"
LOCK_ATTEMPTS = 20
CHUNK_NAME = re.compile(r"^(\d{10,})-(\d+)\.chunk$")
VERSION = version("restive")
PACKAGES = ("numpy", "numba", "llvmlite", "pydantic")


@dataclass(frozen=True)
class Ledger:
    """A results folder."""

    folder: Path
    study: Study  # with as many replications as have been asked for so far
    manifest: dict[str, Any]

    @classmethod
    @contextmanager
    def writing(cls, folder: Path, study: Study) -> Iterator[Ledger]:
        """Hold a folder for writing: one that is new or empty, or in which this study was begun.

        What a kill has left half-written is removed.
        """
        try:
            names = os.listdir(folder) if folder.exists() else []
            if MANIFEST not in names and any(not _is_own(name) for name in names):
                raise RestiveError(
                    f"{folder}: holds something else already; name a new or an empty folder"
                )
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RestiveError(f"{folder}: cannot be used: {error.strerror}") from None
        if MANIFEST in names:
            cls.open(folder)  # the manifest of something else is told before anything is touched
        with _locked(folder):
            for leftover in (f".{MANIFEST}.*", "chunks/*/.*.chunk.*"):
                for path in folder.glob(leftover):
                    path.unlink(missing_ok=True)
            if (folder / MANIFEST).exists():
                yield cls.open(folder)._continued(study)
            else:
                yield cls(folder, study, _manifest(study))._written()

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """Read a results folder."""
        path = folder / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            why = "there is none" if not path.exists() else error.strerror
            raise RestiveError(f"{folder}: no results folder: {MANIFEST}: {why}") from None
        except (ValueError, RecursionError):
            raise RestiveError(f"{path}: damaged: not valid JSON; begin anew elsewhere") from None
        try:
            if manifest["format"] != FORMAT:
                raise RestiveError(f"{path}: format {manifest['format']!r:.60}, expected {FORMAT}")
            if digest(manifest["study"]) != manifest["hash"]:
                raise KeyError("hash")
            study = study_from_data(manifest["study"], title=manifest["title"])
            replications = checked_count(manifest["replications"], "replications")
            study = replace(study, replications=replications)
            sizes = manifest["chunk_sizes"]
            for size in sizes.values():
                checked_count(size, "chunk size")
            manifest.setdefault("numbers", 1)  # folders from before it was kept
            checked_count(manifest["numbers"], "numbers")
            right = (
                set(sizes) == {case.name for case in study.cases}
                and isinstance(manifest["title"], str)
                and isinstance(manifest["restive"], str)
                and isinstance(manifest["versions"], dict)
                and all(run["seconds"] >= 0 for run in manifest["runs"])
                and isinstance(manifest["runs"], list)
            )
            if not right:
                raise KeyError("hash")
        except (KeyError, TypeError, AttributeError, ValueError):  # also a ProblemError
            raise RestiveError(
                f"{path}: damaged, or changed by hand: it does not fit its own hash"
            ) from None
        return cls(folder, study, manifest)

    def _continued(self, study: Study) -> Ledger:
        """Take up this ledger for a study: the same one, with as many replications or more."""
        if study.hash != self.study.hash:
            raise RestiveError(
                f"{self.folder}: holds another study; name another folder, or undo this:\n  "
                + "\n  ".join(_difference(self.study.data, study.data))
            )
        if self.manifest["restive"] != VERSION:
            raise RestiveError(
                f"{self.folder}: was begun by restive {self.manifest['restive']}, this is "
                f"{VERSION}: numbers may differ; name another folder"
            )
        if self.manifest["numbers"] != NUMBERS:
            raise RestiveError(
                f"{self.folder}: its replications have numbers of version "
                f"{self.manifest['numbers']}, this restive draws version {NUMBERS}: they would be "
                "other replications; name another folder"
            )
        replications = max(study.replications, self.study.replications)
        # with the cases as this ledger has them: they have numbers
        now = replace(self.study, title=study.title, replications=replications)
        if now == self.study:
            return self
        changed = {"title": now.title, "replications": now.replications}
        return replace(self, study=now, manifest=self.manifest | changed)._written()

    def _written(self) -> Ledger:
        with (
            _keeping(self.folder / MANIFEST) as temporary,
            temporary.open("w", encoding="utf-8") as file,
        ):
            file.write(json.dumps(self.manifest, indent=1) + "\n")
            file.flush()
            os.fsync(file.fileno())  # chunks can be run again after a power cut, this could not
        return self

    @contextmanager
    def noted(self, executor: str, tell: Callable[[str], None]) -> Iterator[None]:
        """Note a run in the manifest: its code when it begins, its time when it ends.

        A run that is killed has taken no time. Code that is not that of the earlier runs is told.
        """
        code = {"commit": _commit(), "versions": _versions()}
        others = [other for other in self.codes if other != code]
        if others:
            tell(
                f"{self.folder}: goes on what {_code_in_words(others[-1])} has begun, with "
                f"{_code_in_words(code)}; both should give the same numbers (version {NUMBERS}): "
                "in doubt begin anew in another folder"
            )
        run = {"begun": _now(), "seconds": 0.0, "executor": executor, **code}
        self.manifest["runs"].append(run)
        self._written()
        clock = perf_counter()
        try:
            yield
        finally:
            run["seconds"] = round(perf_counter() - clock, 3)
            self._written()

    @property
    def codes(self) -> list[dict[str, Any]]:
        """Commit and versions of packages of the runs, each once, in order."""
        found: list[dict[str, Any]] = []
        for run in [self.manifest, *self.manifest["runs"]]:
            code = {key: run[key] for key in ("commit", "versions") if key in run}
            if len(code) == 2 and code not in found:
                found.append(code)
        return found

    @property
    def commits(self) -> str:
        """The commits that took part, in a line."""
        names = dict.fromkeys(code["commit"] or "not known" for code in self.codes)
        return f"commit{'s' * (len(names) > 1)} {', '.join(names)}"

    def is_being_written(self) -> bool:
        """Whether a run is writing here now."""
        try:
            import fcntl

            with (self.folder / LOCK).open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return False
        except BlockingIOError:
            return True
        except (ImportError, OSError):  # no lock, or none that can be asked for
            return False

    def finished(self, case: Case) -> list[Task]:
        """Chunks of a case that are there, in order of replications."""
        try:
            names = os.listdir(self._folder_of(case))
        except FileNotFoundError:
            return []
        found = [match for name in names if (match := CHUNK_NAME.match(name))]
        tasks = [Task(case, int(match[1]), int(match[2])) for match in found]
        return sorted(tasks, key=lambda task: (task.first, -task.count))

    def num_missing(self, case: Case) -> int:
        """Replications that are still to be run."""
        count = at = 0
        for done in [*self.finished(case), Task(case, self.study.replications, 0)]:
            count += max(0, done.first - at)
            at = max(at, done.first + done.count)
        return count

    def missing(self, case: Case) -> Iterator[Task]:
        """Chunks that are still to be run, cut at multiples of the chunk's size."""
        size = self.manifest["chunk_sizes"][case.name]
        at = 0
        for done in [*self.finished(case), Task(case, self.study.replications, 0)]:
            while at < done.first:
                end = min(done.first, (at // size + 1) * size)
                yield Task(case, at, end - at)
                at = end
            at = max(at, done.first + done.count)

    def remove_damaged(self, tell: Callable[[str], None]) -> None:
        """Read every chunk; those that are damaged are told and removed, to be run again."""
        for case in self.study.cases:
            for task in self.finished(case):
                try:
                    self.read(task)
                except DamagedChunkError as error:
                    tell(f"{error}; it is run again")
                    self._path_of(task).unlink(missing_ok=True)

    def write(self, task: Task, arrays: Arrays) -> None:
        """Keep a chunk."""
        path = self._path_of(task)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RestiveError(f"{path.parent}: cannot be made: {error.strerror}") from None
        with _keeping(path) as temporary, temporary.open("wb") as file:
            for piece in encoded(arrays, _described(task)):
                file.write(piece)

    def read(self, task: Task) -> Arrays:
        """Read a chunk."""
        arrays = read_chunk(self._path_of(task), _described(task))
        if any(len(array) not in (0, task.count) for array in arrays.values()):
            raise DamagedChunkError(f"{self._path_of(task)}: damaged: not what its name says")
        return arrays

    def chunks(self, case: Case) -> Iterator[tuple[int, Arrays]]:
        """First replication and arrays of each chunk, in order, as far as they have no gap."""
        at = 0
        for task in self.finished(case):
            if task.first > at:
                return
            if task.first == at:  # else it is there already
                try:
                    arrays = self.read(task)
                except DamagedChunkError as error:
                    raise DamagedChunkError(
                        f"{error}; run the same command again, or restive run "
                        f"{quote(str(self.folder))}: it is redone"
                    ) from None
                yield at, arrays
                at += task.count

    def replications_done(self, case: Case) -> int:
        """Replications of a case that are there without a gap."""
        at = 0
        for task in self.finished(case):
            if task.first == at:
                at += task.count
        return at

    def _folder_of(self, case: Case) -> Path:
        return self.folder / "chunks" / case.name

    def _path_of(self, task: Task) -> Path:
        return self._folder_of(task.case) / f"{task.first:010d}-{task.count}.chunk"


@contextmanager
def _keeping(path: Path) -> Iterator[Path]:
    """Replace a file; where that fails, say how to go on."""
    try:
        with replacing(path) as temporary:
            yield temporary
    except RestiveError as error:
        raise RestiveError(
            f"{error}; what is done is kept: make room, or mend it, and run the same command again"
        ) from None


def _described(task: Task) -> str:
    """Say in a chunk's file which one it is, so that a file in the wrong place is noticed."""
    settings = hashlib.sha256(task.case.settings.to_json().encode()).hexdigest()
    return f"{settings[:16]} from {task.first}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a folder; the system lets go of it when the process ends, however it does."""
    try:
        import fcntl
    except ImportError:  # a system without such locks
        yield
        return
    path = folder / LOCK
    try:
        file = path.open("a+", encoding="utf-8")
    except OSError as error:
        raise RestiveError(f"{folder}: cannot be written: {error.strerror}") from None
    with file:
        for attempt in range(LOCK_ATTEMPTS):  # `status` looks at the lock for a moment
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if attempt + 1 < LOCK_ATTEMPTS:
                    sleep(0.05)
                    continue
                file.seek(0)
                raise RestiveError(
                    f"{folder}: another run is writing here ({file.read().strip()}); "
                    "wait for it, or name another folder"
                ) from None
            except OSError:  # a file system without locks
                break
        with suppress(OSError):  # a full disk: what is written here only names the holder
            file.truncate(0)
            file.write(f"process {os.getpid()} on {platform.node()}\n")
            file.flush()
        yield


def _is_own(name: str) -> bool:
    """Whether a file may be left over from a run that was killed before its manifest was there."""
    return name == LOCK or name.startswith(f".{MANIFEST}.")


def _manifest(study: Study) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "title": study.title,
        "study": study.data,
        "hash": study.hash,
        "replications": study.replications,
        "chunk_sizes": {case.name: chunk_size(case) for case in study.cases},
        "restive": VERSION,
        "numbers": NUMBERS,
        "versions": _versions(),
        "commit": _commit(),
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors",
        "begun": _now(),
        "runs": [],
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _difference(old: Any, new: Any, place: str = "") -> list[str]:
    """Say where two studies differ, a line each."""
    if isinstance(old, dict) and isinstance(new, dict):
        return [
            line
            for key in dict.fromkeys([*old, *new])
            for line in _difference(old.get(key), new.get(key), f"{place}.{key}".lstrip("."))
        ]
    return [] if old == new else [f"{place}: {_short(old)} there, {_short(new)} in this study"]


def _short(value: Any) -> str:
    if value is None:
        return "not given"
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def _code_in_words(code: dict[str, Any]) -> str:
    versions = (f"{package} {number}" for package, number in code["versions"].items())
    return f"commit {code['commit'] or 'not known'} ({', '.join(versions)})"


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
