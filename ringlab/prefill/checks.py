"""What a rank can refuse on its own, before any communication."""

from __future__ import annotations

from torch import Tensor

from ringlab.calls.checks import DEVICES, DTYPES, check_heads, check_length, check_scale, short
from ringlab.prefill.support import PREFILL


def check_inputs(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    """Refuse shapes, dtypes and devices that no method can work on.

    Raises
    ------
    TypeError, ValueError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    _check_shapes(name, q, k, v)
    if q.dtype not in DTYPES or k.dtype != q.dtype or v.dtype != q.dtype:
        raise TypeError(
            f"{name}: q, k and v must share one dtype of {', '.join(map(short, DTYPES))}; they "
            f"are {short(q.dtype)}, {short(k.dtype)} and {short(v.dtype)}."
        )
    if q.device != k.device or q.device != v.device or q.device.type not in DEVICES:
        raise ValueError(
            f"{name}: q, k and v must be on one device of kind {', '.join(DEVICES)}; they are on "
            f"{q.device}, {k.device} and {v.device}."
        )


def check_options(name: str, causal: bool, scale: float | None, length: int | None) -> None:
    """Refuse options of another type, which would be misread in silence.

    Raises
    ------
    TypeError
        For a causal that is not a bool, or a scale or length that is not a number. (A scale
        that is a tensor would lose its gradient.)
    ValueError
        For a scale that is not positive or a length that is negative.
    """
    if not isinstance(causal, bool):
        raise TypeError(f"{name}: causal is True or False; got {causal!r}.")
    check_scale(name, scale)
    check_length(name, length)


def _check_shapes(name: str, q: Tensor, k: Tensor, v: Tensor) -> None:
    if k.shape[3] != v.shape[3]:
        raise PREFILL.refused(
            "values of another width than keys", name, f"D is {k.shape[3]} and {v.shape[3]}"
        )
    if k.shape != v.shape:
        raise ValueError(
            f"{name}: k and v must have one shape; they have {list(k.shape)} and {list(v.shape)}."
        )
    if q.shape[2] != k.shape[2]:
        raise PREFILL.refused(
            "cross-attention (Lq != Lk)",
            name,
            f"q has {q.shape[2]} tokens and k {k.shape[2]} on this rank",
        )
    if q.shape[0] != k.shape[0] or q.shape[3] != k.shape[3] or q.shape[3] == 0:
        raise ValueError(
            f"{name}: q and k must agree in B and in D, which is at least 1; they are "
            f"{list(q.shape)} and {list(k.shape)}."
        )
    check_heads(name, q.shape[1], k.shape[1])
