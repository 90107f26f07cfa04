"""What the collectives compute and move, once every member has arrived.

Each collective is a `Call`: named input and output buffers, and what must agree between the
members. Data are copied out of the inputs when the last member arrives and
written into each member's outputs in its own ``wait``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from ringlab.world.collective import Call
from ringlab.world.errors import MessageMismatch
from ringlab.world.virtual import modes
from ringlab.world.virtual.operations import Operation, describe, stage, write
from ringlab.world.virtual.reductions import reduce


def complete(parts: Sequence[Operation]) -> None:
    """Carry out a collective that all members have come to: stage every result."""
    calls = [part.call for part in parts]
    if calls[0].name == "all_to_all":
        _compare_splits(parts)
    with modes.unobserved():
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
