"""An operation that a rank has issued: what it is, and whether it is finished."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from ringlab.world.processes.operations import Operation
from ringlab.world.source import Site


@dataclass(eq=False)
class Entry:
    """An operation that a rank has issued.

    Attributes
    ----------
    ranks : tuple of int
        World ranks of its group.
    gpu_work : object
        For an operation that the GPU carries out: what to ask whether it is complete.
    waited : bool
        Whether the program has waited for it.
    sender : int or None
        Group rank from which a receive from any rank was served.
    """

    operation: Operation
    ranks: tuple[int, ...]
    serial: int
    launch: int
    site: Site
    gpu_work: Any = None
    waited: bool = False
    sender: int | None = None

    @property
    def peer(self) -> int | None:
        """World rank at the other end of a message; of a receive from any, once it is over."""
        member = self.sender if self.operation.peer is None else self.operation.peer
        return None if member is None else self.ranks[member]

    @property
    def finished(self) -> bool:
        """Whether it is known to be complete."""
        if self.gpu_work is None:
            return self.waited
        work = self.gpu_work
        return bool(work.query() if isinstance(work, torch.cuda.Event) else work.is_completed())

    def __str__(self) -> str:
        op = self.operation
        size = max(op.sent, op.received)
        if op.kind == "collective":
            what = f"{op.name} over ranks {list(self.ranks)}"
        else:
            other = "any rank" if self.peer is None else f"rank {self.peer}"
            what = f"{op.name} of {size:,} bytes {'to' if op.kind == 'send' else 'from'} {other}"
        return f"{what}, issued at {self.site}"
