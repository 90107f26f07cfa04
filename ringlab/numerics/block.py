"""Attention over one block of queries and keys, forward and backward."""

from __future__ import annotations

import math

from torch import Tensor

from ringlab.numerics import ops
from ringlab.numerics.kernels import check_name
from ringlab.numerics.library import refuse_autograd
from ringlab.numerics.operands import check_backward, check_block
from ringlab.numerics.state import AttentionState


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    kernel: str | None = None,
) -> AttentionState:
    """Attend from a block of queries to a block of keys.

    Parameters
    ----------
    q : Tensor
        [B, Hq, Lq, D], float16, bfloat16, float32 or float64; any strides.
    k, v : Tensor
        [B, Hkv, Lk, D] with Hq a multiple of Hkv; query head h reads KV head h // (Hq / Hkv).
        They are never repeated in memory. Lq and Lk may differ and may be 0.
    causal : bool
        Query i of the block sees keys 0 to i of the block (top-left aligned).
    mask : Tensor, optional
        Boolean [Lq, Lk], True where a query may attend; not together with `causal`.
    scale : float, optional
        Factor on the scores; 1 / sqrt(D) by default.
    kernel : str, optional
        One of ``ringlab.numerics.available_kernels()``; the fastest that fits by default.

    Returns
    -------
    AttentionState
        out [B, Hq, Lq, D] and lse [B, Hq, Lq], float32 (float64 for float64 inputs). A query
        that may attend to no key has out 0 and lse -inf.

    Raises
    ------
    TypeError, ValueError
        If shapes, dtypes or devices do not fit, or the named kernel cannot compute the block.
    RuntimeError
        If autograd would have to differentiate the call; see `attend_backward`.

    References
    ----------
    Dao et al., FlashAttention, arXiv:2205.14135; Ainslie et al., GQA, arXiv:2305.13245.
    """
    check_block(q, k, v, causal, mask)
    refuse_autograd(q, k, v)
    if kernel is not None:
        check_name(kernel)
    out, lse = ops.attend(q, k, v, mask, causal, _scale(q, scale), kernel)
    return AttentionState(out, lse, True)


def attend_backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
    kernel: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of one block, given the result over *all* blocks.

    With the final `out` and `lse` the gradients of the blocks simply add up: dq over the
    blocks of keys, dk and dv over the blocks of queries. The forward is not run again.

    Parameters
    ----------
    dout : Tensor
        [B, Hq, Lq, D], gradient of the final output, any floating dtype.
    q, k, v, causal, mask, scale, kernel
        As given to `attend` for this block.
    out : Tensor
        [B, Hq, Lq, D], the final output, in the dtype of `q` or of the state.
    lse : Tensor
        [B, Hq, Lq], the final LSE, natural logarithm. Rows with ``-inf`` get no gradient.

    Returns
    -------
    dq : Tensor
        [B, Hq, Lq, D].
    dk, dv : Tensor
        [B, Hkv, Lk, D], summed over the query heads that share a KV head. All three are
        float32 (float64 for float64 inputs), to be added up and rounded once at the end; a
        kernel whose partial results are 16 bit has rounded them once already.

    References
    ----------
    Dao et al., FlashAttention, arXiv:2205.14135, appendix B.4; Liu et al., Ring Attention,
    arXiv:2310.01889.
    """
    check_block(q, k, v, causal, mask)
    check_backward(dout, q, out, lse)
    refuse_autograd(dout, q, k, v, out, lse)
    if kernel is not None:
        check_name(kernel)
    dq, dk, dv = ops.attend_backward(
        dout, q, k, v, out, lse, mask, causal, _scale(q, scale), kernel
    )
    return dq, dk, dv


def _scale(q: Tensor, scale: float | None) -> float:
    return 1.0 / math.sqrt(q.shape[3]) if scale is None else float(scale)
