"""Operators of communication: recorded as messages, so they are not priced as computing too."""

from __future__ import annotations

from typing import Any

import torch

from ringlab.operators.sizes import Formula, free

_NAMESPACES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


def _operators(namespace: str) -> list[Any]:
    """Every operator that the installed torch has in a namespace."""
    prefix = f"{namespace}::"
    names = {
        schema.name.removeprefix(prefix)
        for schema in torch._C._jit_get_all_schemas()
        if schema.name.startswith(prefix)
    }
    return [getattr(getattr(torch.ops, namespace), name) for name in sorted(names)]


FORMULAS: dict[Any, Formula] = {
    operator: free for namespace in _NAMESPACES for operator in _operators(namespace)
}
