"""Which formula an operator has, and how to give it one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from ringlab.operators import attention, communication, matmul, memory, merge
from ringlab.operators.sizes import Formula, free, moved
from ringlab.timeline import Work

_FORMULAS: dict[Any, Formula] = {}
_FOUND: dict[Any, Formula | None] = {}  # what `_find` said, operator by operator


class UnpricedOperator(ValueError):
    """An operator that has no formula: it has no price, and it is not free."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"operator {name} has no formula for its FLOPs and bytes, so it has no price. Give it "
            f"one: ringlab.operators.register(torch.ops.{name.replace('::', '.')}, formula), with "
            "formula(args, kwargs, result) -> ringlab.timeline.Work."
        )


def register(operator: Any, formula: Formula) -> None:
    """Say what an operator computes and touches.

    Parameters
    ----------
    operator : OpOverload or OpOverloadPacket
        As in ``torch.ops.aten.mm.default``; of a packet, as ``torch.ops.aten.mm``, every
        overload gets the formula. A formula given later takes the place of an earlier one.
    formula : callable
        ``formula(args, kwargs, result) -> Work``. It is called with meta tensors too, so it
        looks at shapes and dtypes only.

    Raises
    ------
    TypeError
        If `operator` is not an operator of ``torch.ops``.
    """
    if isinstance(operator, torch._ops.OpOverloadPacket):
        overloads = [getattr(operator, name) for name in operator.overloads()]
    elif isinstance(operator, torch._ops.OpOverload):
        overloads = [operator]
    else:
        raise TypeError(
            f"register takes an operator such as torch.ops.aten.mm.default; got {operator!r}."
        )
    for overload in overloads:
        _FORMULAS[overload] = formula
        _FOUND.pop(overload, None)


def work(
    func: Any, args: Sequence[Any], kwargs: Mapping[str, Any] | None, result: Any
) -> Work | None:
    """Say what a call of an operator computed and touched.

    Parameters
    ----------
    func : OpOverload
        As a ``TorchDispatchMode`` sees it, for example ``torch.ops.aten.mm.default``.
    args, kwargs
        What it was called with; tensors may be on the meta device.
    result
        What it returned.

    Returns
    -------
    Work or None
        None where no formula is known: then the call has no price (see `register`).

    Notes
    -----
    As the operator's own schema and tags say, views are free, and pointwise operators and
    reductions read their inputs and write their results; an operator in place has the formula
    of the one that is not. Everything else has a formula of its own.
    """
    try:
        found = _FOUND[func]
    except KeyError:
        found = _FOUND[func] = _find(func)
    return None if found is None else found(args, kwargs or {}, result)


_MOVING = {torch.Tag.pointwise, torch.Tag.reduction, torch.Tag.view_copy}


def _find(func: Any) -> Formula | None:
    """The formula given for an operator, or the one that follows from its schema and tags."""
    known = _FORMULAS.get(func)
    if known is not None:
        return known
    if getattr(func, "is_view", False):
        return free
    if _MOVING.intersection(getattr(func, "tags", ())):
        return moved
    sibling = _functional(func)
    return None if sibling is None else _find(sibling)


def _functional(func: Any) -> Any:
    """Of an operator that works in place, as ``masked_fill_``, the one that does not, or None."""
    name = str(getattr(func, "_opname", ""))
    if not name.endswith("_") or name.endswith("__"):
        return None
    packet = getattr(getattr(torch.ops, func.namespace), name[:-1], None)
    return None if packet is None else getattr(packet, func._overloadname, None)


for _module in (attention, communication, matmul, memory, merge):
    for _operator, _formula in _module.FORMULAS.items():
        register(_operator, _formula)
