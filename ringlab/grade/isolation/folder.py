"""The folder in which an answer may write: how full it is, and its end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def own_folder() -> Iterator[str]:
    """A new folder, removed afterwards whatever is in it."""
    folder = tempfile.mkdtemp(prefix="ringlab-grade-")
    try:
        yield folder
    finally:
        remove(folder)


def remove(folder: str) -> None:
    """Remove a folder, however deep it is and whatever its permissions."""
    with contextlib.suppress(OSError):
        os.rmdir(folder)  # mostly it is empty
        return
    pending = [folder]
    entries = 0
    while pending and entries < 10_000:  # so that every folder can be entered
        with contextlib.suppress(OSError):
            os.chmod(pending[-1], 0o700)
        try:
            with os.scandir(pending.pop()) as found:
                inside = [e.path for e in found if e.is_dir(follow_symlinks=False)]
        except OSError:
            continue
        entries += len(inside)
        pending += inside
    subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def overfull(folder: str, most_bytes: int, most_entries: int) -> bool:
    """Whether more bytes or more entries lie in a folder than allowed."""
    used = entries = 0
    pending = [folder]
    while pending:
        try:
            with os.scandir(pending.pop()) as found:
                for entry in found:
                    entries += 1
                    used += entry.stat(follow_symlinks=False).st_blocks * 512
                    if used > most_bytes or entries > most_entries:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
        except OSError:
            continue
    return False
