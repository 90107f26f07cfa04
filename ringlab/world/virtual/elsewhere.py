"""Ranks of a virtual world that live in another process, as those that live here see them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple, Protocol

import torch

from ringlab.world.errors import WorldError
from ringlab.world.source import UNKNOWN
from ringlab.world.virtual import modes
from ringlab.world.virtual.operations import Group, Launch, Operation


class Undividable(WorldError):
    """A run whose ranks cannot be spread over processes; the message says what it did."""


class Letter(NamedTuple):
    """What a rank elsewhere has posted, at the moment at which it may be matched.

    Attributes
    ----------
    kind : {"send", "recv"}
    rank, peer : int
        Who has posted it, and who is at the other end.
    tag : int
    shape : tuple of int
    dtype : torch.dtype
    """

    kind: Literal["send", "recv"]
    rank: int
    peer: int
    tag: int
    shape: tuple[int, ...]
    dtype: torch.dtype

    @classmethod
    def about(cls, op: Operation) -> Letter:
        """Describe a message of a rank that lives here."""
        assert op.tensor is not None
        assert op.peer is not None
        if not op.tensor.is_meta:
            raise Undividable(
                f"rank {op.rank} has a {op.what} that holds data, and they live in two processes: "
                "only tensors on device 'meta' go from one to another"
            )
        kind: Literal["send", "recv"] = "send" if op.kind == "send" else "recv"
        return cls(kind, op.rank, op.peer, op.tag, tuple(op.tensor.shape), op.tensor.dtype)

    def operation(self, group: Group) -> Operation:
        """The operation as it stands on the board here: active, and with no thread behind it."""
        launch = Launch(self.rank, group, -1, 1, False)
        launch.active = True
        with modes.unobserved():
            tensor = torch.empty(self.shape, dtype=self.dtype, device="meta")
        op = Operation(
            self.kind, self.kind, self.rank, group, launch, UNKNOWN, self.peer, self.tag, tensor
        )
        launch.operations.append(op)
        return op


class Elsewhere(Protocol):
    """The way to the ranks that live in other processes."""

    here: Collection[int]
    """The ranks that live in this one."""

    def tell(self, op: Operation) -> None:
        """Let the other end of a message, if it lives elsewhere, know that it may be matched.

        Raises
        ------
        Undividable
        """
        ...

    def hear(self) -> Sequence[Letter]:
        """Wait for news, a moment at most.

        Raises
        ------
        Undividable
            If there will be none.
        """
        ...
