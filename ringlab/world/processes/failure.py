"""How a rank tells of its exception, and whose exception the others' errors follow from."""

from __future__ import annotations

import re
import time
import traceback
from collections.abc import Iterator

import torch.distributed as dist

from ringlab.world.processes.messages import Failed
from ringlab.world.processes.recorder import Recording
from ringlab.world.source import Site, is_library

_BROKEN_CONNECTION = re.compile(
    r"connection (closed|reset|refused)|broken pipe|pair closure|timed out waiting"
    r"|socket timeout|not connected|remote process exited|ncclRemoteError|ncclSystemError"
    r"|NCCL communicator was aborted|communicator .* aborted|watchdog",
    re.IGNORECASE,
)
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+)')


def of(error: BaseException, rank: int, recording: Recording) -> Failed:
    """Describe an exception that ended a rank's program."""
    when = time.monotonic()
    last = traceback.format_exception_only(type(error), error)[-1].strip()
    summary = last.splitlines()[0] if last else type(error).__name__
    return Failed(summary, _text(error, rank), is_consequence(error), when, recording)


def is_consequence(error: BaseException) -> bool:
    """Whether an exception, or one that it was raised from, only says that a peer is gone."""
    return any(
        isinstance(link, (RuntimeError, dist.DistError))
        and _BROKEN_CONNECTION.search(str(link)) is not None
        for link in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _text(error: BaseException, rank: int) -> str:
    described = traceback.TracebackException.from_exception(error)
    _keep_own_lines(described)
    text = "".join(described.format())
    head = "Traceback (most recent call last):\n"
    return name_cells(text.replace(head, f"Traceback of rank {rank} (most recent call last):\n"))


def _keep_own_lines(described: traceback.TracebackException | None) -> None:
    """Leave out the lines of torch and of the world, in an exception and its causes."""
    if described is None:
        return
    own = [frame for frame in described.stack if not is_library(frame.filename)]
    if own:
        described.stack = traceback.StackSummary.from_list(own)
    _keep_own_lines(described.__cause__)
    _keep_own_lines(described.__context__)
    for inner in getattr(described, "exceptions", None) or ():
        _keep_own_lines(inner)


def name_cells(text: str) -> str:
    """A traceback with notebook cells in place of their temporary files.

    The files' names differ in every kernel, and a stored notebook must not.
    """

    def name(match: re.Match[str]) -> str:
        place = Site(match["file"], int(match["line"]), "").place
        return place.removesuffix(" in ") if place.startswith("cell ") else match[0]

    return _FRAME.sub(name, text)
