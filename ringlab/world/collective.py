"""A call of a collective, as all worlds describe it, and the bytes that it moves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor


@dataclass
class Call:
    """One member's part in a collective.

    Attributes
    ----------
    name : str
        As in ``torch.distributed``.
    inputs, outputs : list of Tensor
        What it gives and what it gets filled. Where the rule of the collective speaks of one
        chunk a member, there is one tensor a member, in group order; a call that carries
        several tensors holds them one after the other.
    agree : tuple
        What must be equal on all members: shapes, dtypes, the reduction, the root.
    reduce_op : ReduceOp or None
    root : int or None
        Group rank of the root.
    """

    name: str
    inputs: list[Tensor] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)
    agree: tuple[object, ...] = ()
    reduce_op: object | None = None
    root: int | None = None

    @property
    def is_joint(self) -> bool:
        """Whether it carries several tensors that each travel as in a call of their own."""
        own = self.outputs if self.name == "reduce_scatter" else self.inputs
        return self.name in ("all_reduce", "all_gather", "reduce_scatter") and len(own) > 1

    @property
    def sample(self) -> Tensor | None:
        """A tensor to describe the call by."""
        return next(iter([*self.inputs, *self.outputs]), None)


def collective_bytes(call: Call, member: int, members: int) -> tuple[int, int]:
    """Bytes that one member sends and receives, by the algorithm named here.

    Parameters
    ----------
    call : Call
    member : int
        Group rank.
    members : int
        Size of the group, W.

    Returns
    -------
    sent, received : int

    Notes
    -----
    With n the bytes of one member's chunk:

    * all_gather, reduce_scatter: a ring, (W-1)·n each way.
    * all_reduce of n bytes: reduce-scatter then all-gather in a ring, 2·(W-1)·n/W each way,
      rounded down.
    * broadcast, reduce of n bytes: a chain that starts (ends) at the root; everyone sends n
      but the last, and receives n but the first.
    * all_to_all, gather, scatter: one direct message a pair; nothing to oneself.
    * barrier, new_group: nothing.

    The kernel's counters agree for gloo, as of torch 2.13, but for two: it carries out a
    reduce-scatter as an all-reduce of the whole, which sends twice as much, and a reduce by
    an algorithm that sends 1.4 (W = 4) to 2.3 times (W = 2) as much.
    """
    if call.name in ("all_gather", "reduce_scatter"):
        moved = (members - 1) * _bytes(call.inputs if call.name == "all_gather" else call.outputs)
        return moved, moved
    if call.name == "all_reduce":
        moved = 2 * (members - 1) * _bytes(call.inputs) // members
        return moved, moved
    if call.name in ("broadcast", "reduce"):
        size = _bytes(call.inputs)
        distance = (member - _root(call)) % members
        first, last = (size if distance != members - 1 else 0), (size if distance else 0)
        return (first, last) if call.name == "broadcast" else (last, first)
    if call.name == "all_to_all":
        return _bytes(_but(call.inputs, member)), _bytes(_but(call.outputs, member))
    if call.name in ("gather", "scatter"):
        at_root = member == _root(call)
        many = call.outputs if call.name == "gather" else call.inputs
        one = call.inputs if call.name == "gather" else call.outputs
        away, own = (_bytes(_but(many, member)), 0) if at_root else (0, _bytes(one))
        return (own, away) if call.name == "gather" else (away, own)
    return 0, 0


def _root(call: Call) -> int:
    assert call.root is not None
    return call.root


def _but(tensors: Sequence[Tensor], index: int) -> list[Tensor]:
    return [t for i, t in enumerate(tensors) if i != index]


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(t.numel() * t.element_size() for t in tensors)
