"""How a collective combines the values of its members."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.world.errors import BadCall
from ringlab.world.virtual.operations import describe

_REDUCTIONS: dict[object, Callable[[Tensor, Tensor], Tensor]] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.AVG: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}


def reduction_name(op: object, tensors: Sequence[Tensor]) -> str:
    """``SUM``, ``MAX``, ... for a ``ReduceOp`` in any of torch's spellings.

    Raises
    ------
    BadCall
        For a reduction that the virtual world does not know, or that `tensors` cannot have.
    """
    names = [str(known).rsplit(".", 1)[-1] for known in _REDUCTIONS if op == known]
    if not names:
        every = ", ".join(str(known).rsplit(".", 1)[-1] for known in _REDUCTIONS)
        name = str(getattr(op, "op", op)).rsplit(".", 1)[-1]
        raise BadCall(f"the virtual world has no reduction {name}; it has {every}.")
    (name,) = names
    if name.startswith("B") and any(t.is_floating_point() or t.is_complex() for t in tensors):
        raise BadCall(f"{name} needs whole numbers; given is {describe(tensors[0])}.")
    return name


def reduce(values: Sequence[Tensor | None], op: object) -> Tensor | None:
    """Combine one value a member, in group order, in the dtype of the values."""
    combine = next(f for known, f in _REDUCTIONS.items() if op == known)
    total: Tensor | None = None
    for value in values:
        if value is None:
            return None
        total = value if total is None else combine(total, value)
    assert total is not None
    if op != dist.ReduceOp.AVG:
        return total
    whole = not (total.is_floating_point() or total.is_complex())
    return torch.div(total, len(values), rounding_mode="trunc" if whole else None)
