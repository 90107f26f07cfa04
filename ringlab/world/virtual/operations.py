"""The operations of a run: one rank's part in a message or a collective, and what carries it.

An :class:`Operation` is one rank's part in a message or a collective. A :class:`Launch` is
what a rank hands over at once: one operation, or a whole ``batch_isend_irecv``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from ringlab.operators.sizes import dtype_name
from ringlab.world.errors import MessageMismatch
from ringlab.world.source import Site
from ringlab.world.virtual import modes

Order = Literal["stream", "host"]
Kind = Literal["send", "recv", "collective"]


@dataclass(frozen=True, eq=False)
class Group:
    """A process group, one object for all its members (so it hashes by identity).

    Attributes
    ----------
    name : str
        The name torch gave it, equal on all members.
    ranks : tuple of int
        World ranks in group order.
    """

    name: str
    ranks: tuple[int, ...]


class Launch:
    """What one rank hands to one group at once.

    Attributes
    ----------
    number : int
        Counts the launches of a rank.
    size : int
        How many operations it holds once it is complete.
    whole : bool
        Whether it finishes as one: no operation of it is done before all are.
    active : bool
        Whether its operations may be matched; one that waits in line is not.
    unmatched : int
        Operations that have no partner yet, those not handed over yet included.
    waited : int
        Operations that have been waited for.
    """

    __slots__ = (
        "active",
        "group",
        "number",
        "operations",
        "rank",
        "size",
        "unmatched",
        "waited",
        "whole",
    )

    def __init__(self, rank: int, group: Group, number: int, size: int, whole: bool) -> None:
        self.rank, self.group, self.number = rank, group, number
        self.size, self.whole = size, whole
        self.active = False
        self.unmatched, self.waited = size, 0
        self.operations: list[Operation] = []

    @property
    def done(self) -> bool:
        """Whether every operation in it has been matched."""
        return self.unmatched == 0


class Operation:
    """One rank's part in a message or a collective.

    Attributes
    ----------
    peer : int or None
        World rank at the other end; None for a collective or a receive from any source.
    tensor : Tensor or None
        What a send sends or a receive fills; a collective keeps its own in `call`.
    call : object
        The collective's description and buffers (``ringlab.world.virtual.collectives``).
    serial : int
        Counts the operations of a run in the order in which they were posted.
    event : int
        Where the recording holds it.
    shelf, opposite : list of Operation
        Where the board keeps the unmatched messages of this edge, and those they meet.
    finish : callable or None
        Writes the received data into the program's tensors; run once, in ``wait``.
    """

    __slots__ = (
        "call",
        "event",
        "finish",
        "group",
        "kind",
        "launch",
        "matched",
        "name",
        "opposite",
        "peer",
        "rank",
        "serial",
        "shelf",
        "site",
        "tag",
        "tensor",
        "waited",
    )

    def __init__(
        self,
        kind: Kind,
        name: str,
        rank: int,
        group: Group,
        launch: Launch,
        site: Site,
        peer: int | None = None,
        tag: int = 0,
        tensor: Tensor | None = None,
        call: Any = None,
    ) -> None:
        self.kind, self.name, self.rank, self.group = kind, name, rank, group
        self.launch, self.site, self.peer, self.tag = launch, site, peer, tag
        self.tensor, self.call = tensor, call
        self.serial = self.event = -1
        self.matched = self.waited = False
        self.finish: Callable[[], None] | None = None
        self.shelf: list[Operation] = _NOWHERE
        self.opposite: list[Operation] = _NOWHERE

    @property
    def done(self) -> bool:
        """Whether a wait for it would return."""
        return self.launch.unmatched == 0 if self.launch.whole else self.matched

    def release(self) -> None:
        """Let go of the program's tensors; the handle may outlive them."""
        self.tensor = self.call = self.finish = None

    @property
    def what(self) -> str:
        """Name it without its place: ``send to rank 1``."""
        if self.kind == "send":
            return f"{self.name} to rank {self.peer}"
        if self.kind == "recv":
            return f"{self.name} from {'any rank' if self.peer is None else f'rank {self.peer}'}"
        return f"{self.name} over ranks {list(self.group.ranks)}"

    def __str__(self) -> str:
        return f"{self.what} at {self.site}"


_NOWHERE: list[Operation] = []  # of what is not a message


def transfer(send: Operation, recv: Operation) -> None:
    """Check that two ends agree, and stage the data that the receiver's wait will write."""
    source, target = send.tensor, recv.tensor
    assert source is not None and target is not None
    if (
        source.shape != target.shape
        or source.dtype != target.dtype
        or source.is_meta != target.is_meta
    ):
        raise MessageMismatch(
            f"rank {send.rank} sends {describe(source)} and rank {recv.rank} receives "
            f"{describe(target)}.\n"
            f"  sent at      {send.site}\n"
            f"  received at  {recv.site}\n"
            "Both ends must have one shape and one dtype. Without a check gloo fills the buffer in "
            "part, reinterprets its bytes or aborts the process; where only the shapes differ, "
            "view() one side as the other."
        )
    staged = stage(source)
    if staged is not None:
        recv.finish = lambda: write(target, staged)


def describe(tensor: Tensor) -> str:
    """Shape and dtype, for messages: ``[2, 3] float32``."""
    place = "" if tensor.device.type == "cpu" else f" on {tensor.device.type}"
    return f"{list(tensor.shape)} {dtype_name(tensor.dtype)}{place}"


def same_place(one: Tensor, other: Tensor) -> bool:
    """Whether both hold data, or neither does (meta)."""
    return one.is_meta == other.is_meta


def stage(tensor: Tensor) -> Tensor | None:
    """A copy of what a tensor holds at this moment; None where it holds nothing (meta)."""
    if tensor.is_meta:
        return None
    with modes.unobserved():
        return tensor.detach().clone()


def write(target: Tensor, value: Tensor) -> None:
    """Fill a buffer of the program's with received data, whatever mode it was made in."""
    with torch.inference_mode(target.is_inference()), torch.no_grad():
        target.copy_(value.view(target.shape))
