"""Writing files so that a reader finds the old one, the new one, or none: never half of one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from restive.errors import RestiveError

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path to write to; it takes the final name only when everything has been written."""
    final = Path(path)
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(
            dir=final.parent, prefix=f".{final.name}.", suffix=final.suffix
        )
        os.close(handle)
        temporary = Path(name)
        yield temporary
        umask = os.umask(0)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)  # mkstemp makes files for the owner only
        os.replace(temporary, final)
        temporary = None
    except OSError as error:
        raise RestiveError(f"{final}: cannot be written: {error.strerror or error}") from None
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
