"""Messages between the grader, its workers and the processes that run answers.

A frame is its length and its bytes. What an untrusted process sent is bounded before it is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, Protocol

LENGTH = 8


class Readable(Protocol):
    """What gives bytes: a file, or a descriptor."""

    def read(self, size: int, /) -> bytes | None:
        """Up to `size` bytes; none at the end."""


class Writable(Protocol):
    """What takes bytes."""

    def write(self, data: bytes, /) -> int | None:
        """Take bytes."""

    def flush(self) -> None:
        """Pass on what was taken."""


class Descriptor:
    """An open descriptor, to be read without looking ahead.

    Parameters
    ----------
    fd : int
    """

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end."""
        return os.read(self.fd, size)


def pack(data: bytes) -> bytes:
    """One frame."""
    return len(data).to_bytes(LENGTH, "big") + data


def write(stream: Writable, header: dict[str, Any], parts: Sequence[bytes]) -> None:
    """Send a header, which is JSON, and parts, which are bytes."""
    text = json.dumps({**header, "parts": len(parts)}).encode()
    stream.write(b"".join([pack(text), *map(pack, parts)]))
    stream.flush()


def read_header(stream: Readable) -> dict[str, Any] | None:
    """Receive the header that `write` sent; None if the other side is gone."""
    head = receive(stream)
    if head is None:
        return None
    header: dict[str, Any] = json.loads(head)
    return header


def read_parts(stream: Readable, header: dict[str, Any]) -> list[bytes] | None:
    """Receive the parts that belong to a header; None if the other side is gone."""
    parts = [receive(stream) for _ in range(header.pop("parts"))]
    return None if None in parts else [part for part in parts if part is not None]


def receive(stream: Readable) -> bytes | None:
    """Receive one frame; None if the other side is gone."""
    head = _exactly(stream, LENGTH)
    return None if head is None else _exactly(stream, int.from_bytes(head, "big"))


def _exactly(stream: Readable, size: int) -> bytes | None:
    pieces = []
    while size:
        piece = stream.read(min(size, 1 << 20))
        if not piece:
            return None
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def take(data: bytearray) -> bytes | None:
    """Take the first frame out of what has arrived; None if it is not whole yet."""
    end = LENGTH + announced(data)
    if len(data) < max(end, LENGTH):
        return None
    frame = bytes(data[LENGTH:end])
    del data[:end]
    return frame


def announced(data: bytearray) -> int:
    """How long the first frame of what has arrived says that it is."""
    return int.from_bytes(data[:LENGTH], "big") if len(data) >= LENGTH else 0


def send(fd: int, data: bytes) -> None:
    """Write one frame to a descriptor."""
    view = memoryview(pack(data))
    while view:
        view = view[os.write(fd, view) :]
