"""The merge of two partial results: nothing but memory traffic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ringlab.numerics import merge as operators
from ringlab.operators.sizes import Formula, dtype_name, size
from ringlab.timeline import Work

# The kernels of the one-pass merge: difference, sigmoid, comparison, fill, conversion, lerp,
# log-sum-exp. Only lerp touches the outputs; the others touch the LSEs.
KERNELS = 7


def merge(args: Sequence[Any], kwargs: Mapping[str, Any], result: Any) -> Work:
    """Read two outputs with their LSEs, write one: 12·D bytes a query and head in float32.

    The passes over the LSE alone are 1/D of that and are not counted.
    """
    out, lse, other_out, other_lse = args[:4]
    read = size(out, lse, other_out, other_lse)
    return Work("merge", 0, read, read // 2, dtype_name(out.dtype), launches=KERNELS)


FORMULAS: dict[Any, Formula] = {operators.merge: merge, operators.merge_: merge}
