"""Functional collectives: operators of C++ that reach a group without its Python methods.

``torch.distributed._functional_collectives`` and what is built on it, as ``DTensor``, call
operators of the library ``_c10d_functional`` by their names in ``torch.ops``. In a rank these
names stand for objects that note the call and then make it. Of the results each is waited for by
itself, by the operator ``wait_tensor``. What compiled code and DDP's C++ issue stays unseen.

(Kernels of our own for these operators would see more, and hang: torch calls them holding the
lock of the interpreter, for which a thread of gloo may wait while it holds a lock of the group.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed import distributed_c10d as c10d
from torch.utils import _pytree as pytree

from ringlab.world.processes.last_op import Journal

_LIBRARY = "_c10d_functional"

Arguments = tuple[str, tuple[Any, ...]]
"""A method of a process group, and what it would be called with."""


def _gathered(x: Tensor, size: int) -> Tensor:
    return _like(x, size * x.shape[0] if x.dim() else size)


def _scattered(x: Tensor, size: int) -> Tensor:
    return _like(x, x.shape[0] // size)


def _all_gather(x: Tensor, size: int) -> Arguments:
    return "all_gather_single", (_gathered(x, size), x)


def _all_gather_several(xs: Sequence[Tensor], size: int) -> Arguments:
    return "all_gather_single_coalesced", ([_gathered(x, size) for x in xs], xs)


def _reduce_scatter(x: Tensor, _op: str, size: int) -> Arguments:
    return "reduce_scatter_single", (_scattered(x, size), x)


def _reduce_scatter_several(xs: Sequence[Tensor], _op: str, size: int) -> Arguments:
    return "reduce_scatter_single_coalesced", ([_scattered(x, size) for x in xs], xs)


def _all_to_all(x: Tensor, received: Sequence[int], sent: Sequence[int]) -> Arguments:
    return "all_to_all_single", (_like(x, sum(received)), x, list(received), list(sent))


def _broadcast(x: Tensor, root: int) -> Arguments:
    return "broadcast", ([x], SimpleNamespace(rootRank=root))


def _like(x: Tensor, length: int) -> Tensor:
    """A tensor without data, of another length."""
    return torch.empty((length, *x.shape[1:]), dtype=x.dtype, device="meta")


_OPERATORS: dict[str, tuple[int, Callable[..., Arguments]]] = {
    "all_reduce": (2, lambda x, _op: ("allreduce", ([x],))),
    "all_reduce_coalesced": (2, lambda xs, _op: ("allreduce_coalesced", (xs,))),
    "all_gather_into_tensor": (2, _all_gather),
    "all_gather_into_tensor_coalesced": (2, _all_gather_several),
    "reduce_scatter_tensor": (3, _reduce_scatter),
    "reduce_scatter_tensor_coalesced": (3, _reduce_scatter_several),
    "all_to_all_single": (3, _all_to_all),
    "broadcast": (2, _broadcast),
}
for _name, _also in (
    ("all_reduce", "all_reduce_"),
    ("all_reduce_coalesced", "all_reduce_coalesced_"),
    ("broadcast", "broadcast_"),
    ("all_gather_into_tensor", "all_gather_into_tensor_out"),
    ("reduce_scatter_tensor", "reduce_scatter_tensor_out"),
):
    _OPERATORS[_also] = _OPERATORS[_name]
"""For each operator the place of its argument that names the group, and what it asks of it."""


def install(journal: Journal) -> None:
    """Note the functional collectives that this process calls from here on."""
    namespace = getattr(torch.ops, _LIBRARY)
    for name, (place, understand) in _OPERATORS.items():
        operator = getattr(namespace, name)
        setattr(namespace, name, _Noted(operator, _noting(journal, operator, place, understand)))
    operator = namespace.wait_tensor
    namespace.wait_tensor = _Noted(operator, _waiting(journal, operator))


class _Noted:
    """An operator whose calls are noted; in everything else it is the operator."""

    def __init__(self, operator: Any, call: Callable[..., Any]) -> None:
        self._operator, self._call = operator, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        seen = torch._C._len_torch_dispatch_stack() or torch.compiler.is_compiling()
        return (self._operator if seen else self._call)(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._operator, name)


def _noting(
    journal: Journal, operator: Any, place: int, understand: Callable[..., Arguments]
) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        group = _group(args[place]) if len(args) > place else None
        # a group that is written in Python gets the call, and notes it there
        if journal.muted or type(group) is not dist.ProcessGroup:
            return operator(*args, **kwargs)
        entry = journal.issue(group, *understand(*args[:place]))
        try:
            result = operator(*args, **kwargs)
        except BaseException:
            journal.refused(entry)
            raise
        journal.promised(entry, [_identity(t) for t in pytree.tree_leaves(result)])
        return result

    return call


def _waiting(journal: Journal, operator: Any) -> Callable[..., Any]:
    def call(tensor: Tensor) -> Any:
        notes = journal.waits_for_tensor(_identity(tensor))
        result = operator(tensor)
        journal.waited_for_tensor(_identity(tensor), notes)
        return result

    return call


def _group(named: Any) -> Any:
    if not isinstance(named, str):
        return named
    return c10d._resolve_process_group(named)  # type: ignore[attr-defined, arg-type]  # private


def _identity(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)
