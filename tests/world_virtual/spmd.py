"""Random programs of many kinds of communication, which run the same in every world.

A program is a list of steps that all ranks go through in order; each does its own part of each.
An asynchronous part is waited for some steps later. Ranks may then be made to swap neighbouring
steps, which is often wrong. Ranks in processes import this file, so it imports little.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from tests.world_virtual.values import GATHER, SCATTER, value, wait

MEMBERS = {"world": (0, 1, 2, 3), "pair": (1, 2), "tail": (3, 1, 2)}
"""Ranks of each group, in its order; two do not start at 0, and one is not sorted."""

REDUCTIONS = ("SUM", "MAX", "MIN")
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16, torch.int32, torch.int64,
          torch.uint8, torch.int8)  # fmt: skip


@dataclass(frozen=True)
class Step:
    """One act of communication.

    Attributes
    ----------
    kind : str
    group : str
    size : int
        Elements of one chunk.
    dtype : torch.dtype
    hold : tuple of int
        For each member after how many steps it waits; 0 is a blocking call.
    number : int
        A choice: the root, the distance in a ring, the tag, a reduction.
    pairs : tuple
        For messages: (sender, receiver) as ranks of the group.
    """

    kind: str
    group: str
    size: int
    dtype: torch.dtype
    hold: tuple[int, ...]
    number: int
    pairs: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Program:
    """Steps, and which of them each of the four ranks makes in another order.

    Attributes
    ----------
    swaps : tuple
        (rank, place): this rank makes the steps at `place` and behind it in the other order.
    """

    steps: tuple[Step, ...]
    swaps: tuple[tuple[int, int], ...] = ()

    def of(self, rank: int) -> list[Step]:
        """The steps of a rank in its own order."""
        steps = list(self.steps)
        for who, place in self.swaps:
            if who == rank and place + 1 < len(steps):
                steps[place], steps[place + 1] = steps[place + 1], steps[place]
        return steps

    def __call__(self) -> list[list[list[float]]]:
        """Run it on a rank; what each of its buffers holds at the end."""
        rank = dist.get_rank()
        names = sorted({step.group for step in self.steps} - {"world"})
        groups = {n: dist.new_group(list(MEMBERS[n]), sort_ranks=False) for n in names}
        kept: list[list[Tensor]] = []
        due: list[tuple[int, Any]] = []
        for time, step in enumerate(self.of(rank)):
            if rank in MEMBERS[step.group]:
                me = MEMBERS[step.group].index(rank)
                buffers, works = ACTS[step.kind](step, me, groups.get(step.group))
                kept.append(buffers)
                due += [(time + step.hold[me], work) for work in works if work is not None]
            for each in [each for each in due if each[0] <= time]:
                each[1].wait()
                due.remove(each)
        for _, work in due:
            wait(work)
        dist.barrier()
        for name in names:
            dist.destroy_process_group(groups[name])
        return [[buffer.double().tolist() for buffer in buffers] for buffers in kept]


Act = Callable[[Step, int, Any], tuple[list[Tensor], list[Any]]]


def _own(step: Step, member: int) -> Tensor:
    return value(member + step.number, (step.size,), step.dtype)


def _empty(step: Step, chunks: int = 1) -> Tensor:
    return torch.zeros(step.size * chunks, dtype=step.dtype)


def _is_begun(step: Step, member: int) -> bool:
    return step.hold[member] > 0


def _message(step: Step, me: int, group: Any) -> tuple[list[Tensor], list[Any]]:
    ((sender, receiver),) = step.pairs
    if me not in (sender, receiver):
        return [], []
    x = _own(step, me) if me == sender else _empty(step)
    begun, tag = _is_begun(step, me), step.number % 2
    if me == sender:
        call = dist.isend if begun else dist.send
        work = call(x, group=group, group_dst=receiver, tag=tag)
    else:
        call = dist.irecv if begun else dist.recv
        work = call(x, group=group, group_src=sender, tag=tag)
    return [x], [work] if begun else []


def _exchange(step: Step, me: int, group: Any) -> tuple[list[Tensor], list[Any]]:
    ops, buffers = [], []
    for sender, receiver in step.pairs:
        if me == sender:
            buffers.append(_own(step, me + receiver))
            ops.append(dist.P2POp(dist.isend, buffers[-1], group=group, group_peer=receiver))
        if me == receiver:
            buffers.append(_empty(step))
            ops.append(dist.P2POp(dist.irecv, buffers[-1], group=group, group_peer=sender))
    return buffers, dist.batch_isend_irecv(ops) if ops else []


def _collective(step: Step, me: int, group: Any) -> tuple[list[Tensor], list[Any]]:
    size, root = len(MEMBERS[step.group]), step.number % len(MEMBERS[step.group])
    x, many = _own(step, me), [value(me + i, (step.size,), step.dtype) for i in range(size)]
    outs, whole = [_empty(step) for _ in range(size)], _empty(step, size)
    op = getattr(dist.ReduceOp, REDUCTIONS[step.number % len(REDUCTIONS)])
    at_root, begun = me == root, _is_begun(step, me)
    common = {"group": group, "async_op": begun}
    calls: dict[str, tuple[list[Tensor], Callable[[], Any]]] = {
        "all_reduce": ([x], lambda: dist.all_reduce(x, op=op, **common)),
        # what a reduce leaves on the other ranks is nobody's business
        "reduce": ([x] * at_root, lambda: dist.reduce(x, op=op, group_dst=root, **common)),
        "broadcast": ([x], lambda: dist.broadcast(x, group_src=root, **common)),
        "all_gather": (outs, lambda: dist.all_gather(outs, x, **common)),
        "all_gather_single": ([whole], lambda: getattr(dist, GATHER[0])(whole, x, **common)),
        "reduce_scatter": ([outs[0]], lambda: dist.reduce_scatter(outs[0], many, op=op, **common)),
        "reduce_scatter_single": ([outs[0]], lambda: getattr(dist, SCATTER[0])(
            outs[0], torch.cat(many), op=op, **common)),
        "all_to_all": (outs, lambda: dist.all_to_all(outs, many, **common)),
        "gather": (outs * at_root, lambda: dist.gather(
            x, outs if at_root else None, group_dst=root, **common)),
        "scatter": ([outs[0]], lambda: dist.scatter(
            outs[0], many if at_root else None, group_src=root, **common)),
        "barrier": ([], lambda: dist.barrier(**common)),
    }  # fmt: skip
    buffers, call = calls[step.kind]
    return buffers, [call()]


def _uneven(step: Step, me: int, group: Any) -> tuple[list[Tensor], list[Any]]:
    """Member i sends (i + j + number) % 3 rows to member j."""
    size = len(MEMBERS[step.group])
    sends = [(me + j + step.number) % 3 for j in range(size)]
    x = value(me, (sum(sends), step.size), step.dtype)
    out = torch.zeros(sum(sends), step.size, dtype=step.dtype)  # the rule is symmetric
    begun = _is_begun(step, me)
    work = dist.all_to_all_single(out, x, sends, sends, group=group, async_op=begun)
    return [out], [work]


COLLECTIVES = ("all_reduce", "reduce", "broadcast", "all_gather", "all_gather_single",
               "reduce_scatter", "reduce_scatter_single", "all_to_all", "gather", "scatter",
               "barrier")  # fmt: skip
ACTS: dict[str, Act] = {
    "message": _message,
    "exchange": _exchange,
    "uneven all_to_all": _uneven,
    **dict.fromkeys(COLLECTIVES, _collective),
}


def lone_send(size: int) -> None:
    """Send what nobody receives."""
    if dist.get_rank() == 0:
        dist.send(torch.ones(size), 1)
