"""Where a live agent's file must not lie: on network file systems, which share no memory."""

from __future__ import annotations

from pathlib import Path

from restive.errors import StoreError

__all__ = ["require_local"]

NETWORK = {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "fuse.sshfs", "glusterfs"}
MOUNTS = Path("/proc/self/mounts")


def require_local(path: Path) -> None:
    """Raise if a file is on a network file system; systems that do not tell are trusted."""
    kind = file_system(path.resolve().parent, _mounts())
    if kind in NETWORK:
        raise StoreError(
            f"{path}: is on a network file system ({kind}), where several processes would damage "
            "it; keep the file on a local disk and reach it through `restive serve`"
        )


def file_system(folder: Path, mounts: str) -> str:
    """Return the type of the file system that holds a folder, "" if that is not known."""
    found, longest = "", -1
    for line in mounts.splitlines():
        _, where, kind, *_ = [*line.split(" "), "", "", ""]
        place = where.replace("\\040", " ")
        inside = place == "/" or f"{folder}/".startswith(f"{place}/")
        if inside and len(place) >= longest:  # of two on one place, the later hides the other
            found, longest = kind, len(place)
    return found


def _mounts() -> str:
    try:
        return MOUNTS.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
