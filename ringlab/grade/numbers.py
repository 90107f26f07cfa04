"""Comparing what came with what is right: form first, then numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.plain import Plain

TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5, torch.bfloat16: 1.5e-3, torch.float16: 2e-4}
"""Relative to the largest number that is expected. Of 16-bit dtypes relative to the norm: two right
answers may round a number differently, and few numbers; one rounded in between differs in most."""

ROUGH = 20.0
"""By how much more two results may differ that are of one mistake."""


@dataclass(frozen=True)
class Difference:
    """The first or largest difference between two plain values.

    Attributes
    ----------
    form : bool
        Whether types, lengths, shapes, dtypes or devices differ, rather than numbers.
    where, expected, got : str
    """

    form: bool
    where: str
    expected: str
    got: str

    def __str__(self) -> str:
        return f"{self.where}: {self.got}"


def difference(found: Plain, right: Plain, where: str, tolerance: float = 0.0) -> Difference | None:
    """Compare plain data, forms before numbers.

    Parameters
    ----------
    found, right : Plain
        Tensors are compared as float64, and must agree in shape, dtype and device; an integer
        is taken for a float, but not the other way round; a list for a tuple.
    where : str
        What to call `found`.
    tolerance : float
        Relative to the largest number of `right`; by default `TOLERANCE` of its dtype.

    Returns
    -------
    Difference or None
        None if they are equal.
    """
    return _form(found, right, where) or _values(found, right, where, tolerance)


def by_rank(
    results: tuple[Plain, ...], right: tuple[Plain, ...], tolerance: float = 0.0
) -> Difference | None:
    """Compare the results of all ranks; forms of all before the numbers of any."""
    names = [f"rank {rank}" for rank in range(len(right))]
    if len(results) != len(right):
        return Difference(True, "the results", f"{len(right)} ranks", f"{len(results)} ranks")
    for compare in (_form, lambda f, r, w: _values(f, r, w, tolerance)):
        for name, mine, wanted in zip(names, results, right, strict=True):
            found = compare(mine, wanted, name)
            if found is not None:
                return found
    return None


def close(found: Plain, right: Plain, tolerance: float = 0.0) -> bool:
    """Whether two plain values are equal, to rounding; NaN equals NaN."""
    return difference(found, right, "", tolerance) is None


def alike(found: Plain, other: Plain) -> bool:
    """Whether two plain values are about equal, `ROUGH` times the tolerance apart at most."""
    return _form(found, other, "") is None and _values(found, other, "", 0.0, ROUGH) is None


def _form(found: Any, right: Any, where: str) -> Difference | None:
    if isinstance(right, Tensor):
        wanted = _described(right)
        got = _described(found) if isinstance(found, Tensor) else f"a {type(found).__name__}"
        return None if got == wanted else Difference(True, where, wanted, got)
    if isinstance(right, (list, tuple)):
        if not isinstance(found, (list, tuple)) or len(found) != len(right):
            return Difference(True, where, f"{len(right)} entries", _kind(found))
        pairs = enumerate(zip(found, right, strict=True))
        parts = (_form(f, r, f"{where}, entry {i}") for i, (f, r) in pairs)
        return next((part for part in parts if part is not None), None)
    if isinstance(right, dict):
        if not isinstance(found, dict) or set(found) != set(right):
            return Difference(True, where, f"the keys {sorted(map(str, right))}", _kind(found))
        parts = (_form(found[key], right[key], f"{where}, {key!r}") for key in right)
        return next((part for part in parts if part is not None), None)
    allowed = (float, int) if type(right) is float else (type(right),)
    if type(found) not in allowed:
        return Difference(True, where, f"{right!r}, of type {type(right).__name__}", _kind(found))
    return None


def _values(
    found: Any, right: Any, where: str, tolerance: float, times: float = 1.0
) -> Difference | None:
    if isinstance(right, Tensor):
        return _tensors(found, right, where, tolerance, times)
    if isinstance(right, (list, tuple)):
        pairs = enumerate(zip(found, right, strict=True))
        parts = (_values(f, r, f"{where}, entry {i}", tolerance, times) for i, (f, r) in pairs)
        return next((part for part in parts if part is not None), None)
    if isinstance(right, dict):
        parts = (_values(found[k], right[k], f"{where}, {k!r}", tolerance, times) for k in right)
        return next((part for part in parts if part is not None), None)
    if isinstance(right, float):
        near = abs(found - right) <= (tolerance or 1e-9) * times * max(1e-300, abs(right))
        equal = near or found == right or (found != found and right != right)
    else:
        equal = found == right
    return None if equal else Difference(False, where, repr(right), repr(found))


def _tensors(
    found: Tensor, right: Tensor, where: str, tolerance: float, times: float
) -> Difference | None:
    if right.device.type == "meta" or not right.numel():
        return None
    limit = times * (tolerance or TOLERANCE.get(right.dtype, 0.0))
    mine, wanted = found.double(), right.double()
    largest = wanted.nan_to_num(0.0, 0.0, 0.0).abs().max().item()
    apart = (mine - wanted).abs()
    apart[(mine == wanted) | (mine.isnan() & wanted.isnan())] = 0.0
    wrong = ~(apart <= limit * max(largest, 1e-300))
    if right.dtype.itemsize == 2 and apart.norm() <= limit * wanted.norm():
        return None
    if not wrong.any():
        return None
    apart = apart.nan_to_num(torch.inf)
    place = tuple(int(i) for i in torch.unravel_index(apart.argmax(), apart.shape))
    spot = f"{where}, at {list(place)}" if place else where
    share = f"{int(wrong.sum())} of {wrong.numel()} numbers differ, here most"
    return Difference(
        False, spot, f"{wanted[place].item():.6g}", f"{mine[place].item():.6g} ({share})"
    )


def _described(tensor: Tensor) -> str:
    kind = str(tensor.dtype).removeprefix("torch.")
    return f"a tensor {list(tensor.shape)} of {kind} on {tensor.device.type}"


def _kind(value: Any) -> str:
    if isinstance(value, Tensor):
        return _described(value)
    if isinstance(value, (list, tuple, dict)):
        return f"a {type(value).__name__} of {len(value)} entries"
    return f"{value!r:.60}, of type {type(value).__name__}"
