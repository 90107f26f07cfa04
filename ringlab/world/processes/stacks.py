"""Reads the tracebacks that ``faulthandler`` writes, even for a rank stuck outside Python."""

from __future__ import annotations

import functools
import os
import re
import sysconfig

from ringlab.world.source import Site, is_library

_THREAD = re.compile(r"^(?:Current thread|Thread) 0x[0-9a-f]+|^Stack \(most recent call first\)")
_FRAME = re.compile(r'^  File "(?P<file>.*)", line (?P<line>\d+) in (?P<function>.*)$')
_WATCHER = os.path.join("world", "processes", "orphans.py")
_LIBRARIES = tuple(
    os.path.join(path, "")
    for path in {sysconfig.get_path(kind) for kind in ("stdlib", "purelib", "platlib")}
)


def parse(text: str) -> list[list[Site]]:
    """The stacks in what ``faulthandler`` wrote, one a thread, innermost line first.

    The thread that took the signal comes first: the main thread, which runs the program, or
    the one that crashed. The thread that answers the parent's questions is left out.
    """
    threads: list[list[Site]] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            threads.append([])
        elif threads and (frame := _FRAME.match(line)):
            site = Site(frame["file"], int(frame["line"]), frame["function"])
            threads[-1].append(site)
    threads = [stack for stack in threads if stack and not stack[0].filename.endswith(_WATCHER)]
    return threads[::-1]  # faulthandler lists the youngest thread first, the signalled one last


def complete(text: bytes | bytearray) -> bool:
    """Whether ``faulthandler`` has written all of it, to the bottom of the main thread."""
    return bytes(text[-16:]).endswith((b" in <module>\n", b"\n  ...\n"))


def place(stack: list[Site]) -> list[Site]:
    """The lines of a stack that tell a person where it stands, outermost first.

    The last line of the user's own program, and below it, where the program has called into
    an installed package that is not torch, that package's innermost line.
    """
    inner = next((site for site in stack if not is_library(site.filename)), None)
    sites = (own_line(stack), inner) if inner else stack[:1]
    return [site for site in dict.fromkeys(sites) if site is not None]


def own_line(stack: list[Site]) -> Site | None:
    """The innermost line of the user's own program, which is in no installed package."""
    return next(
        (s for s in stack if not is_library(s.filename) and not _is_installed(s.filename)), None
    )


@functools.lru_cache(maxsize=4096)
def _is_installed(filename: str) -> bool:
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return filename.startswith((*_LIBRARIES, os.path.join(package, "")))
