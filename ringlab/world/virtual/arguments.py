"""A rank's own copy of the arguments, as a rank in a process of its own would get it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree


def private_copy(value: Any) -> Any:
    """Copy tensors, modules, containers and objects, so that ranks do not write into one.

    A tensor keeps its strides and loses its history, as one that is sent to a process does.
    What occurs twice is one object in the copy, too. What cannot be copied, for example a
    lock, is shared.
    """
    leaves, spec = pytree.tree_flatten(value)
    memo: dict[int, Any] = {}
    with _CopyTensors():
        own = [_copy(leaf, memo) for leaf in leaves]
    return pytree.tree_unflatten(own, spec)


def _copy(leaf: Any, memo: dict[int, Any]) -> Any:
    try:
        return copy.deepcopy(leaf, memo)
    except Exception:  # whatever an object raises that does not want to be copied
        return leaf


class _CopyTensors(TorchFunctionMode):
    """Lets ``copy.deepcopy`` copy tensors that are results of a computation, too."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        if func is Tensor.__deepcopy__ and type(args[0]) is Tensor:
            tensor, memo = args
            if id(tensor) not in memo:
                memo[id(tensor)] = _copy_tensor(tensor)
            return memo[id(tensor)]
        return func(*args, **(kwargs or {}))


def _copy_tensor(tensor: Tensor) -> Tensor:
    with torch.no_grad():
        source = tensor.detach()
        if source.layout is not torch.strided or source.is_contiguous():
            own = source.clone()
        else:
            # the strides matter: what is not contiguous must stay so
            steps = zip(source.shape, source.stride(), strict=True)
            extent = 1 + sum((n - 1) * step for n, step in steps) if source.numel() else 0
            own = source.as_strided((extent,), (1,)).clone()
            own = own.as_strided(source.shape, source.stride())
    return own.requires_grad_(tensor.requires_grad)
