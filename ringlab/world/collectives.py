"""What the collectives compute and move, once every member has arrived.

Each collective is a :class:`Call`: named input and output buffers, and what must agree
between the members. Data are copied out of the inputs when the last member arrives and
written into each member's outputs in its own ``wait``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ringlab.world.errors import MessageMismatch
from ringlab.world.operations import Operation, describe, stage, write
from ringlab.world.reductions import reduce


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


def complete(parts: Sequence[Operation]) -> None:
    """Carry out a collective that all members have come to: stage every result."""
    calls = [part.call for part in parts]
    if calls[0].name == "all_to_all":
        _compare_splits(parts)
    results = _RULES[calls[0].name](calls)
    for part, result in zip(parts, results, strict=True):
        # a member that gets nothing has no results for its buffers
        part.finish = _writer(list(zip(part.call.outputs, result, strict=False)))


def _writer(pairs: list[tuple[Tensor, Tensor | None]]) -> Callable[[], None]:
    def finish() -> None:
        for target, value in pairs:
            if value is not None:
                write(target, value)

    return finish


def compare(first: Operation, other: Operation) -> None:
    """Check that two members make the same call.

    Raises
    ------
    MessageMismatch
    """
    if (other.call.name, other.call.agree) == (first.call.name, first.call.agree):
        return
    ends = "\n".join(
        f"  rank {p.rank} calls {p.call.name}{_terms(p.call)} at {p.site}" for p in (first, other)
    )
    raise MessageMismatch(
        f"the members of group {list(first.group.ranks)} do not make the same call:\n{ends}\n"
        "All members must call the same collectives in the same order, with the same shapes, "
        "dtype, reduction and root; gloo and NCCL would mix the data up or hang."
    )


def _terms(call: Call) -> str:
    return "(" + ", ".join(str(term) for term in call.agree) + ")"


# ---- rules: calls of all members -> for each member, one value per output tensor ---------

Results = list[list[Tensor | None]]


def _staged(tensors: Sequence[Tensor]) -> list[Tensor | None]:
    return [stage(t) for t in tensors]


def _column(calls: Sequence[Call], index: int) -> list[Tensor | None]:
    return _staged([call.inputs[index] for call in calls])


def _all_gather(calls: Sequence[Call]) -> Results:
    width = len(calls[0].inputs)
    gathered = [stage(call.inputs[i]) for i in range(width) for call in calls]
    return [gathered for _ in calls]


def _reduce_scatter(calls: Sequence[Call]) -> Results:
    op, members = calls[0].reduce_op, len(calls)
    width = len(calls[0].outputs)
    return [
        [reduce(_column(calls, i * members + member), op) for i in range(width)]
        for member in range(members)
    ]


def _all_reduce(calls: Sequence[Call]) -> Results:
    op = calls[0].reduce_op
    width = len(calls[0].inputs)
    values = [reduce(_column(calls, i), op) for i in range(width)]
    return [values for _ in calls]


def _reduce(calls: Sequence[Call]) -> Results:
    value = reduce(_column(calls, 0), calls[0].reduce_op)
    return [[value] if member == calls[0].root else [] for member in range(len(calls))]


def _broadcast(calls: Sequence[Call]) -> Results:
    root = calls[0].root
    assert root is not None
    values = _staged(calls[root].inputs)
    return [values for _ in calls]


def _scatter(calls: Sequence[Call]) -> Results:
    root = calls[0].root
    assert root is not None
    return [[value] for value in _staged(calls[root].inputs)]


def _gather(calls: Sequence[Call]) -> Results:
    values = [stage(call.inputs[0]) for call in calls]
    return [values if member == calls[0].root else [] for member in range(len(calls))]


def _compare_splits(parts: Sequence[Operation]) -> None:
    calls = [part.call for part in parts]
    for sender, call in enumerate(calls):
        for receiver, other in enumerate(calls):
            given, wanted = call.inputs[receiver], other.outputs[sender]
            if describe(given) != describe(wanted):
                send, recv = parts[sender], parts[receiver]
                raise MessageMismatch(
                    f"{call.name}: rank {send.rank} sends {describe(given)} to rank {recv.rank}, "
                    f"which expects {describe(wanted)}.\n"
                    f"  called at  {send.site}\n  and at     {recv.site}\n"
                    "What one end splits off for the other, the other must expect from it: shapes "
                    "(split sizes) and dtypes must agree."
                )


def _all_to_all(calls: Sequence[Call]) -> Results:
    return [_column(calls, member) for member in range(len(calls))]


def _barrier(calls: Sequence[Call]) -> Results:
    return [[] for _ in calls]


_RULES: dict[str, Callable[[Sequence[Call]], Results]] = {
    "all_gather": _all_gather,
    "reduce_scatter": _reduce_scatter,
    "all_reduce": _all_reduce,
    "reduce": _reduce,
    "broadcast": _broadcast,
    "scatter": _scatter,
    "gather": _gather,
    "all_to_all": _all_to_all,
    "barrier": _barrier,
    "new_group": _barrier,
}


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
