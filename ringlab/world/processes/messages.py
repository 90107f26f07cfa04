"""What the parent and its ranks say to each other, over private socket pairs.

A message is a *header*, one of the classes below, and a *body*, raw bytes: the pickled call
or its pickled result, kept out of the header so that large tensors are not copied twice.
"""

from __future__ import annotations

import pickle
import socket
import struct
from dataclasses import dataclass
from typing import Any

import torch

from ringlab.world.ambient import Ambient
from ringlab.world.processes.recorder import Recording

_SMALL = 1 << 16  # a body up to this size is copied rather than sent by itself
_SIZES = struct.Struct("=QQ")  # bytes of the header, bytes of the body


@dataclass(frozen=True)
class Surroundings:
    """What a rank shares with its parent, as it is when a rank starts or runs something.

    Attributes
    ----------
    environ : dict
        Environment variables.
    cwd : str or None
        Working directory; None if it no longer exists.
    path : list of str
        ``sys.path``.
    """

    environ: dict[str, str]
    cwd: str | None
    path: list[str]


@dataclass(frozen=True)
class Setup:
    """Parent to rank, once: who the rank is and where it meets the others.

    Attributes
    ----------
    backend : str
        ``"gloo"``, ``"nccl"``, or ``"staged"`` for GPUs that several ranks share.
    port : int
        Port of the store that the parent hosts on 127.0.0.1.
    device : int or None
        Index of the rank's GPU.
    """

    rank: int
    size: int
    backend: str
    port: int
    threads: int
    device: int | None
    surroundings: Surroundings


@dataclass(frozen=True)
class Call:
    """Parent to rank: run the function in the body.

    Attributes
    ----------
    sources : dict
        Source text of the files that exist only in the parent: notebook cells.
    ambient : object
        The caller's grad mode, autocast and so on (``ringlab.world.ambient``).
    dtype : torch.dtype
        The caller's default dtype.
    """

    surroundings: Surroundings
    sources: dict[str, str]
    ambient: Ambient
    dtype: torch.dtype
    seed: int


@dataclass(frozen=True)
class Ready:
    """Rank to parent: it has joined the process group."""


@dataclass(frozen=True)
class Returned:
    """Rank to parent: the function returned; the body is its pickled result.

    Attributes
    ----------
    recording : Recording
        What the rank did.
    leftovers : list of str
        Operations it issued and never waited for, and process groups it tore down.
    """

    recording: Recording
    leftovers: list[str]


@dataclass(frozen=True)
class Failed:
    """Rank to parent: the function raised.

    Attributes
    ----------
    summary, traceback : str
    consequence : bool
        Whether the error only says that communication broke, as it does on every rank when
        one of them fails.
    when : float
        Moment of the failure on the machine's monotonic clock.
    """

    summary: str
    traceback: str
    consequence: bool
    when: float
    recording: Recording


@dataclass(frozen=True)
class Standing:
    """Rank to parent, on request and while it is busy: its last operation, in words."""

    operation: str
    recording: Recording


def pack(header: object, body: bytes = b"") -> list[memoryview]:
    """The pieces of a message, in the order in which they go over the wire."""
    head = pickle.dumps(header, protocol=5)
    front = _SIZES.pack(len(head), len(body)) + head
    if len(body) < _SMALL:
        return [memoryview(front + body)]
    return [memoryview(front), memoryview(body)]


def send(sock: socket.socket, header: object, body: bytes = b"") -> None:
    """Send one message over a blocking socket."""
    for piece in pack(header, body):
        sock.sendall(piece)


def receive(sock: socket.socket) -> tuple[Any, bytearray] | None:
    """The next message from a blocking socket; None when the other end is gone."""
    sizes = _exactly(sock, _SIZES.size)
    if sizes is None:
        return None
    head_size, body_size = _SIZES.unpack(sizes)
    head, body = _exactly(sock, head_size), _exactly(sock, body_size)
    if head is None or body is None:
        return None
    return pickle.loads(head), body


def _exactly(sock: socket.socket, size: int) -> bytearray | None:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        got = sock.recv_into(view)
        if got == 0:
            return None
        view = view[got:]
    return data


class Mailbox:
    """The parent's end of a rank's socket: never blocks, so that no rank can hang the parent."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.sock = sock
        self._outgoing: list[memoryview] = []
        self._incoming = bytearray(_SIZES.size)
        self._filled = 0
        self._sizes: tuple[int, int] | None = None

    def post(self, header: object, body: bytes = b"") -> None:
        """Queue a message and send what fits."""
        self.post_packed(pack(header, body))

    def post_packed(self, pieces: list[memoryview]) -> None:
        """Queue a message that was packed once for several ranks."""
        self._outgoing.extend(pieces)
        self.flush()

    @property
    def sending(self) -> bool:
        """Whether a part of a message still waits to be sent."""
        return bool(self._outgoing)

    def flush(self) -> None:
        """Send what fits. A rank that is gone is noticed elsewhere, by its exit status."""
        try:
            while self._outgoing:
                sent = self.sock.send(self._outgoing[0])
                self._outgoing[0] = self._outgoing[0][sent:]
                if not self._outgoing[0]:
                    del self._outgoing[0]
        except BlockingIOError:
            pass
        except OSError:
            self._outgoing.clear()

    def collect(self) -> tuple[list[tuple[Any, bytearray]], bool]:
        """The messages that have arrived in full, and whether more can follow."""
        messages: list[tuple[Any, bytearray]] = []
        try:
            while True:
                view = memoryview(self._incoming)[self._filled :]
                got = self.sock.recv_into(view) if view else 0
                if view and got == 0:
                    return messages, False
                self._filled += got
                if self._filled == len(self._incoming):
                    messages.extend(self._advance())
        except BlockingIOError:
            return messages, True
        except OSError:
            return messages, False

    def _advance(self) -> list[tuple[Any, bytearray]]:
        """Go from sizes to payload, or from payload to the next message's sizes."""
        done, self._filled = self._incoming, 0
        if self._sizes is None:
            self._sizes = _SIZES.unpack(done)
            self._incoming = bytearray(sum(self._sizes))
            return []
        head_size, _ = self._sizes
        self._sizes, self._incoming = None, bytearray(_SIZES.size)
        return [(pickle.loads(memoryview(done)[:head_size]), done[head_size:])]

    def close(self) -> None:
        """Close the socket; the rank takes it as an order to end."""
        self.sock.close()
