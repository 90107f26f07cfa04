"""What a call of a process group's method means: kind, peer, buffers, bytes.

``torch.distributed`` turns every public function into a call of one of these methods, whose
names differ between torch releases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from ringlab.timeline import EventKind
from ringlab.world.collective import Call, collective_bytes
from ringlab.world.peers import require_member


@dataclass(frozen=True)
class Operation:
    """One rank's part in a message or a collective, numbers only: no tensor is kept.

    Attributes
    ----------
    peer : int or None
        Group rank at the other end of a message.
    sent, received : int
        Bytes, for a collective by its documented algorithm.
    """

    kind: EventKind
    name: str
    peer: int | None
    sent: int
    received: int
    shape: tuple[int, ...]
    dtype: str
    on_gpu: bool


def understand(method: str, args: Sequence[Any], member: int, members: int) -> Operation:
    """Describe the call ``group.method(*args)`` made by group rank `member` of `members`.

    Raises
    ------
    BadCall
        If a message's other end is no member.
    """
    if method in ("send", "recv", "recv_anysource"):
        peer = None if method == "recv_anysource" else int(args[1])
        kind: EventKind = "send" if method == "send" else "recv"
        if peer is not None:
            require_member(kind, peer, members)
        tensor: Tensor = args[0][0]
        size = tensor.numel() * tensor.element_size()
        sent, received = (size, 0) if kind == "send" else (0, size)
        return _operation(kind, kind, peer, sent, received, tensor)
    try:
        call = _CALLS[method](args, members)
        sent, received = collective_bytes(call, member, members)
    except Exception:  # wrong arguments: torch will say so, and better
        return Operation("collective", method, None, 0, 0, (), "", on_gpu=False)
    return _operation("collective", call.name, None, sent, received, call.sample)


def _operation(
    kind: EventKind, name: str, peer: int | None, sent: int, received: int, tensor: Tensor | None
) -> Operation:
    shape = () if tensor is None else tuple(tensor.shape)
    dtype = "" if tensor is None else str(tensor.dtype).removeprefix("torch.")
    on_gpu = tensor is not None and tensor.is_cuda
    return Operation(kind, name, peer, sent, received, shape, dtype, on_gpu)


def _one_to_all(name: str) -> Callable[[Sequence[Any], int], Call]:
    return lambda args, _: Call(name, args[0], args[0], root=args[1].rootRank)


def _chunks(whole: Tensor, members: int) -> list[Tensor]:
    size = whole.numel() // members
    flat = whole.detach().reshape(-1)
    return [flat.narrow(0, i * size, size) for i in range(members)]


def _split(whole: Tensor, sizes: list[int] | None, members: int) -> list[Tensor]:
    length = whole.shape[0] if whole.dim() else 0
    return list(whole.detach().split(sizes or [length // members] * members))


_CALLS: dict[str, Callable[[Sequence[Any], int], Call]] = {
    "allreduce": lambda a, _: Call("all_reduce", a[0], a[0]),
    "allreduce_coalesced": lambda a, _: Call("all_reduce", a[0], a[0]),
    "reduce": _one_to_all("reduce"),
    "broadcast": _one_to_all("broadcast"),
    "allgather": lambda a, _: Call("all_gather", a[1], a[0][0]),
    "all_gather_single": lambda a, w: Call("all_gather", [a[1]], _chunks(a[0], w)),
    "reduce_scatter": lambda a, _: Call("reduce_scatter", a[1][0], a[0]),
    "reduce_scatter_single": lambda a, w: Call("reduce_scatter", _chunks(a[1], w), [a[0]]),
    "alltoall": lambda a, _: Call("all_to_all", a[1], a[0]),
    "all_to_all_single": lambda a, w: Call(
        "all_to_all", _split(a[1], a[3], w), _split(a[0], a[2], w)
    ),
    "gather": lambda a, _: Call("gather", a[1], a[0][0] if a[0] else [], root=a[2].rootRank),
    "scatter": lambda a, _: Call("scatter", a[1][0] if a[1] else [], a[0], root=a[2].rootRank),
    "barrier": lambda _a, _w: Call("barrier"),
    "all_gather_single_coalesced": lambda a, _: Call("all_gather", list(a[1]), list(a[0])),
    "reduce_scatter_single_coalesced": lambda a, w: Call(
        "reduce_scatter", [chunk for x in a[1] for chunk in _chunks(x, w)], list(a[0])
    ),
}
_CALLS["_allgather_base"] = _CALLS["all_gather_single"]
_CALLS["_reduce_scatter_base"] = _CALLS["reduce_scatter_single"]
_CALLS["alltoall_base"] = _CALLS["all_to_all_single"]
_CALLS["allgather_into_tensor_coalesced"] = _CALLS["all_gather_single_coalesced"]
_CALLS["reduce_scatter_tensor_coalesced"] = _CALLS["reduce_scatter_single_coalesced"]

METHODS = ("send", "recv", "recv_anysource", *_CALLS)
"""Every method of a process group that moves data."""
