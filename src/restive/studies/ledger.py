"""The ledger: a folder that holds what a study has done so far, and survives any kill.

    DIR/manifest.json                    the study, its hash, chunk sizes, the code of every run
    DIR/lock                             held by the run that is writing
    DIR/chunks/0000-tsde-whittle/0000000000-262.chunk   replications 0 to 261 of a case

Every file appears under its name only when it is whole. The finished chunks are the only record of
progress: what is missing is what no chunk covers. Readers need no lock. Folders are made when a
run begins and never again: one that vanishes while it writes ends the run.

One run writes at a time, and knows when its folder is taken away: it holds the lock, an open file,
of which the system lets go when the process ends, however it does. The same file tells whether the
folder's name still leads to the folder that was locked. Where the system or the file system has no
locks, the latter still holds, and the user is warned of the former.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from errno import ELOOP, ENOENT, ENOTDIR
from pathlib import Path
from secrets import token_hex
from shlex import quote
from stat import S_ISREG
from time import perf_counter, sleep
from typing import Any

from restive.arguments import counted, one_line, silent
from restive.errors import RestiveError
from restive.files import CAREFUL, leftover_of, remove_leftovers, replacing, try_lock
from restive.measure.replication import NUMBERS
from restive.studies.chunk_file import (
    DamagedChunkError,
    UnreadableChunkError,
    encoded,
    read_chunk,
)
from restive.studies.manifest import (
    MANIFEST,
    VERSION,
    code,
    code_in_words,
    difference,
    new_manifest,
    now,
    read_manifest,
)
from restive.studies.spec import Case, Study
from restive.studies.work import Arrays, Chunk, fits

__all__ = ["Ledger", "can_continue"]

CHUNKS = "chunks"
CHUNK_NAME = re.compile(r"(\d{10,})-(\d+)\.chunk")
LOCK = "lock"
NOT_OURS = "a link, a pipe or a device, and no file of its own; remove it"
ATTEMPTS = 20  # to lock a folder
SECONDS = 0.05  # between two of them
HOLDER_BYTES = 200  # of the lock's text that are shown


def _only_read() -> None:
    """Stand in for the check of a lock: who only reads holds none."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """A results folder."""

    folder: Path
    study: Study  # with as many replications as have been asked for so far
    manifest: dict[str, Any]
    require_held: Callable[[], None] = field(default=_only_read, compare=False)

    def __repr__(self) -> str:
        folder, cases = repr(str(self.folder)), counted(len(self.study.cases), "case")
        return one_line(f"Ledger({folder}, {cases})", f"Ledger({cases})")

    @classmethod
    @contextmanager
    def writing(
        cls, folder: Path, study: Study, tell: Callable[[str], None] = silent
    ) -> Iterator[Ledger]:
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
            cls.open(folder)  # another program's manifest is refused before anything is touched
        with locked(folder, tell) as require_held:
            if (folder / MANIFEST).exists():
                ledger = replace(cls.open(folder), require_held=require_held)._continued(study)
            else:
                ledger = cls(folder, study, new_manifest(study), require_held)._written()
            ledger._make_folders(tell)
            yield ledger

    @classmethod
    def open(cls, folder: Path) -> Ledger:
        """Read a results folder."""
        manifest, study = read_manifest(folder / MANIFEST)
        return cls(folder, study, manifest)

    def _continued(self, study: Study) -> Ledger:
        """Take up this ledger for a study: the same one, with as many replications or more."""
        if study.hash != self.study.hash:
            raise RestiveError(
                f"{self.folder}: holds another study; name another folder with --out, or undo this:"
                "\n  " + "\n  ".join(difference(self.study.data, study.data))
            )
        if self.manifest["restive"] != VERSION:
            raise RestiveError(
                f"{self.folder}: was started by restive {self.manifest['restive']}, this is "
                f"{VERSION}: numbers may differ; name another folder"
            )
        if self.manifest["numbers"] != NUMBERS:
            raise RestiveError(
                f"{self.folder}: its replications have numbers of version "
                f"{self.manifest['numbers']}, this restive draws version {NUMBERS}: new ones "
                "would not match; name another folder"
            )
        replications = max(study.replications, self.study.replications)
        # with the cases as this ledger has them: they have numbers
        now = replace(self.study, title=study.title, replications=replications)
        if now == self.study:
            return self
        changed = {"title": now.title, "replications": now.replications}
        return replace(self, study=now, manifest=self.manifest | changed)._written()

    def _written(self) -> Ledger:
        with self._keeping(self.folder / MANIFEST) as temporary:
            temporary.write_text(json.dumps(self.manifest, indent=1) + "\n", encoding="utf-8")
        return self

    def _make_folders(self, tell: Callable[[str], None]) -> None:
        """Make the cases' folders, and clear away what a kill or somebody else left in them."""
        remove_leftovers(self.folder)
        for folder in (self.folder / CHUNKS, *map(self._folder_of, self.study.cases)):
            if os.path.lexists(folder) and not folder.is_dir():
                self._set_aside(folder, f"{folder}: not a folder", tell)
            try:
                folder.mkdir(exist_ok=True)
            except OSError as error:
                raise RestiveError(f"{folder}: cannot be made: {error.strerror}") from None
            remove_leftovers(folder)

    @contextmanager
    def noted(self, executor: str, tell: Callable[[str], None]) -> Iterator[None]:
        """Note a run in the manifest: its code when it begins, its time when it ends.

        A run that is killed has taken no time. Code that differs from earlier runs' is reported.
        """
        mine = code()
        others = [other for other in self.codes if other != mine]
        if others:
            tell(
                f"{self.folder}: continues what {code_in_words(others[-1])} began, with "
                f"{code_in_words(mine)}; both should give the same numbers (version {NUMBERS}): "
                "if in doubt, start again in another folder"
            )
        run = {"begun": now(), "seconds": 0.0, "executor": executor, **mine}
        self.manifest["runs"].append(run)
        self._written()
        clock = perf_counter()
        try:
            yield
        except BaseException:
            run["seconds"] = round(perf_counter() - clock, 3)
            with suppress(RestiveError):  # what went wrong first is what matters
                self._written()
            raise
        run["seconds"] = round(perf_counter() - clock, 3)
        self._written()

    @property
    def codes(self) -> list[dict[str, Any]]:
        """Commit and versions of packages of the runs, each once, in order."""
        found: list[dict[str, Any]] = []
        for run in [self.manifest, *self.manifest["runs"]]:
            one = {key: run[key] for key in ("commit", "versions")}
            if one not in found:
                found.append(one)
        return found

    @property
    def commits(self) -> str:
        """The commits that took part, in a line."""
        names = dict.fromkeys(one["commit"] or "not known" for one in self.codes)
        return f"commit{'s' * (len(names) > 1)} {', '.join(names)}"

    def is_being_written(self) -> bool:
        """Whether a run is writing here now, as far as its lock can tell."""
        return is_locked(self.folder)

    def finished(self, case: Case) -> list[Chunk]:
        """Chunks of a case that are there, in order of replications."""
        try:
            names = os.listdir(self._folder_of(case))
        except OSError as error:
            if error.errno in (ENOENT, ENOTDIR, ELOOP):  # a run that begins sets that right
                return []
            raise RestiveError(f"{self.folder}: cannot be read: {error.strerror}") from None
        chunks = [chunk for name in names if (chunk := _named(case, name))]
        return sorted(chunks, key=lambda chunk: (chunk.first, -chunk.count))

    def num_missing(self, case: Case) -> int:
        """Replications that are still to be run."""
        count = at = 0
        for done in [*self.finished(case), Chunk(case, self.study.replications, 0)]:
            count += max(0, done.first - at)
            at = max(at, done.first + done.count)
        return count

    def missing(self, case: Case) -> Iterator[Chunk]:
        """Chunks that are still to be run, cut at multiples of the chunk's size."""
        size = self.manifest["chunk_sizes"][case.name]
        at = 0
        for done in [*self.finished(case), Chunk(case, self.study.replications, 0)]:
            while at < done.first:
                end = min(done.first, (at // size + 1) * size)
                yield Chunk(case, at, end - at)
                at = end
            at = max(at, done.first + done.count)

    def remove_damaged(self, tell: Callable[[str], None]) -> None:
        """Read every chunk; damaged ones are reported and removed, to be run again.

        What has a chunk's name but cannot be read, say a folder, is set aside.
        """
        for case in self.study.cases:
            for chunk in self.finished(case):
                path = self._path_of(chunk)
                try:
                    self.read(chunk)
                except UnreadableChunkError as error:
                    self._set_aside(path, str(error), tell)
                except DamagedChunkError as error:
                    tell(f"{error}; it is run again")
                    path.unlink(missing_ok=True)

    def require_complete(self) -> None:
        """Raise unless all that is wanted is there, in the folder that was written to."""
        self.require_held()
        lacking = sum(self.num_missing(case) for case in self.study.cases)
        if lacking:
            raise RestiveError(
                f"{self.folder}: {lacking:,} replications that were kept here are gone: files were "
                "removed while the run was writing; run the same command again"
            )

    def write(self, chunk: Chunk, arrays: Arrays) -> None:
        """Keep a chunk."""
        with self._keeping(self._path_of(chunk)) as temporary, temporary.open("wb") as file:
            for piece in encoded(arrays, _described(chunk)):
                file.write(piece)

    def read(self, chunk: Chunk) -> Arrays:
        """Read a chunk."""
        arrays = read_chunk(self._path_of(chunk), _described(chunk))
        if not fits(arrays, chunk.case, chunk.count):
            raise DamagedChunkError(f"{self._path_of(chunk)}: damaged: not what its name says")
        return arrays

    def chunks(self, case: Case) -> Iterator[tuple[int, Arrays]]:
        """First replication and arrays of each chunk, in order, as far as they have no gap."""
        at = 0
        for chunk in self.finished(case):
            if chunk.first > at:
                return
            if chunk.first == at:  # else it is there already
                try:
                    arrays = self.read(chunk)
                except DamagedChunkError as error:
                    raise DamagedChunkError(
                        f"{error}; to redo it, run the same command again, or restive run "
                        f"{quote(str(self.folder))}"
                    ) from None
                yield at, arrays
                at += chunk.count

    def replications_done(self, case: Case) -> int:
        """Replications of a case that are there without a gap."""
        at = 0
        for chunk in self.finished(case):
            if chunk.first == at:
                at += chunk.count
        return at

    def _folder_of(self, case: Case) -> Path:
        return self.folder / CHUNKS / case.name

    def _path_of(self, chunk: Chunk) -> Path:
        return self._folder_of(chunk.case) / _file_name(chunk)

    def _set_aside(self, path: Path, why: str, tell: Callable[[str], None]) -> None:
        """Rename what stands in the way, whatever it is: it may be somebody's."""
        target = path.with_name(f"{path.name}.stray-{token_hex(4)}")
        try:
            path.rename(target)
        except OSError as error:
            raise RestiveError(
                f"{why}, and cannot be moved out of the way: {error.strerror}"
            ) from None
        tell(f"{why}; it is set aside as {target.name}")

    @contextmanager
    def _keeping(self, path: Path) -> Iterator[Path]:
        """Replace a file; where that fails, say how to continue."""
        self.require_held()
        try:
            with replacing(path) as temporary:
                yield temporary
        except RestiveError as error:
            self.require_held()  # if that is why, it says so better
            raise RestiveError(
                f"{error}; what is done is kept: free some space, or fix it, and run the same "
                "command again"
            ) from None


def _file_name(chunk: Chunk) -> str:
    return f"{chunk.first:010d}-{chunk.count}.chunk"


def _named(case: Case, name: str) -> Chunk | None:
    """Return the chunk that a file's name says, None for a stray file."""
    match = CHUNK_NAME.fullmatch(name)
    chunk = match and Chunk(case, int(match[1]), int(match[2]))
    return chunk if chunk and _file_name(chunk) == name else None  # not in other digits


def _described(chunk: Chunk) -> str:
    """Say in a chunk's file which one it is, so that a file in the wrong place is noticed."""
    settings = hashlib.sha256(chunk.case.settings.to_json().encode()).hexdigest()
    return f"{settings[:16]} from {chunk.first}"


def _is_own(name: str) -> bool:
    """Whether a file may be left over from a run that was killed before its manifest was there."""
    return name == LOCK or leftover_of(name) == MANIFEST


@contextmanager
def locked(folder: Path, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Lock a folder; yield a function that raises unless its name still leads to it."""
    handle = _opened(folder)
    try:
        if not _acquire(handle, folder):
            tell(f"{folder}: no locks here; make sure that no other run writes to this folder")
        mine = os.fstat(handle)
        _require_same(folder, mine)
        with suppress(OSError):  # a full disk: what is written here only names the holder
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"process {os.getpid()} on {platform.node()}\n".encode(), 0)
        yield lambda: _require_same(folder, mine)
    finally:
        os.close(handle)


def is_locked(folder: Path) -> bool:
    """Whether a run holds a folder now; False where there is no lock that can be asked."""
    try:
        handle = os.open(folder / LOCK, os.O_RDONLY | CAREFUL)
    except OSError:
        return False
    try:
        return try_lock(handle, shared=True) is False
    finally:
        os.close(handle)


def _opened(folder: Path) -> int:
    """Open the lock's file, which is made where there is none; links are not followed."""
    path = folder / LOCK
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | CAREFUL, 0o666)
    except OSError as error:
        if path.is_symlink():
            raise RestiveError(f"{path}: {NOT_OURS}") from None
        raise RestiveError(f"{folder}: cannot be written: {LOCK}: {error.strerror}") from None
    found = os.fstat(handle)
    if not S_ISREG(found.st_mode) or found.st_nlink > 1:
        os.close(handle)
        raise RestiveError(f"{path}: {NOT_OURS}")
    return handle


def _acquire(handle: int, folder: Path) -> bool:
    """Lock an open file, or raise if somebody else has; False where there are no locks."""
    for attempt in range(ATTEMPTS):  # `status` looks at the lock for a moment
        sleep(SECONDS if attempt else 0)
        if (locked := try_lock(handle)) is not False:
            return locked is True
    holder = os.pread(handle, HOLDER_BYTES, 0).decode(errors="replace").strip()
    raise RestiveError(
        f"{folder}: another run is writing here ({holder}); wait for it, or name another folder"
    )


def _require_same(folder: Path, mine: os.stat_result) -> None:
    try:
        same = os.path.samestat(os.lstat(folder / LOCK), mine)
    except OSError:
        same = False
    if not same:
        raise RestiveError(
            f"{folder}: was moved, removed or replaced while a run was writing to it (its {LOCK} "
            "is not the one that the run holds); what is done is wherever the folder is now: "
            "restive run THERE continues it"
        )


def can_continue(ledger: Ledger, study: Study) -> bool:
    """Whether a study was begun in a results folder, by this version."""
    made = (ledger.manifest["restive"], ledger.manifest["numbers"])
    return study.hash == ledger.study.hash and made == (VERSION, NUMBERS)
