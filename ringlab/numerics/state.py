"""The partial result of softmax attention, and its algebra."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ringlab.numerics.dtypes import accumulation_dtype
from ringlab.numerics.library import refuse_autograd
from ringlab.numerics.lse import canonical_lse, log_of, lse_dtype
from ringlab.numerics.merge import merge, merge_


@dataclass(frozen=True, eq=False)
class AttentionState:
    """Attention of some queries over a part of the keys, ready to be merged with the rest.

    States form a commutative monoid under `merge`: it is associative and commutative to
    rounding and `empty` is its exact identity. Whatever the order in which blocks of keys
    are attended to and merged, the result is the attention over all of them.

    Parameters
    ----------
    out : Tensor
        [B, H, L, D], the normalised output over the keys seen so far; float32, or float64
        for float64 inputs.
    lse : Tensor
        [B, H, L], the natural logarithm of the sum of exponentials of the scaled scores;
        float64 (float32 on a device without float64), because merging many blocks rounds it
        many times. A row that has seen no key has ``-inf`` and its `out` is not read,
        whatever is in it.

    Raises
    ------
    TypeError, ValueError
        If dtypes, shapes or devices are not as above. A raw result of a kernel goes through
        `AttentionState.canonical`.

    References
    ----------
    Milakov and Gimelshein, arXiv:1805.02867; Dao et al., FlashAttention, arXiv:2205.14135;
    Ye et al., FlashInfer, arXiv:2501.01005 (attention states as an algebra).
    """

    out: Tensor
    lse: Tensor
    # True where this package made the state, so that `out` is known to be zero in empty
    # rows: merging on an accelerator then takes one pass over memory and no host sync.
    _zeroed: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        out, lse = self.out, self.lse
        wide = lse_dtype(lse.device)
        if out.dtype not in (torch.float32, torch.float64) or lse.dtype != wide:
            raise TypeError(
                f"The out of a state is float32 or float64 and its lse is {wide}; got out "
                f"{out.dtype} and lse {lse.dtype}. For the raw result of a kernel use "
                f"AttentionState.canonical(out, lse)."
            )
        if out.dim() != 4 or out.shape[:-1] != lse.shape:
            raise ValueError(
                f"out must be [B, H, L, D] and lse [B, H, L]; got out {list(out.shape)} and lse "
                f"{list(lse.shape)}."
            )
        if out.device != lse.device:
            raise ValueError(f"out is on {out.device} but lse on {lse.device}; move one.")

    @classmethod
    def empty(
        cls,
        batch: int,
        heads: int,
        length: int,
        head_dim: int,
        *,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> AttentionState:
        """Attention over no keys: the identity of `merge`.

        Parameters
        ----------
        batch, heads, length, head_dim : int
            Shape of the output, [B, H, L, D].
        dtype : torch.dtype
            Dtype of the inputs or of the output: float64 gives a float64 output, every
            other a float32 output.
        device : torch.device or str
            Where the state lives.
        """
        shape, kind = (batch, heads, length, head_dim), accumulation_dtype(dtype)
        out = torch.zeros(shape, dtype=kind, device=device)
        lse = torch.full(shape[:-1], -math.inf, dtype=lse_dtype(out.device), device=device)
        return cls(out, lse, True)

    @classmethod
    def canonical(
        cls, out: Tensor, lse: Tensor, *, base: float = math.e, empty: Tensor | None = None
    ) -> AttentionState:
        """Make a state of what a kernel returned, whatever the habits of that kernel.

        Parameters
        ----------
        out : Tensor
            [B, H, L, D], normalised, of any floating dtype.
        lse : Tensor
            [B, H, L], or with a last axis of length 1, or with L padded at the end; of any
            floating dtype.
        base : float
            Base of the logarithm in `lse`; FlashInfer for one returns base 2.
        empty : Tensor, optional
            Boolean, broadcastable to [B, H, L]: the rows that saw no key. Without it every
            row whose lse is ``+inf``, ``-inf`` or NaN counts as empty, which covers the
            kernels in use; with it a NaN elsewhere stays a NaN, as NaNs in the inputs should.

        Raises
        ------
        TypeError
            If there is no LSE at all: without it a block cannot be merged.
        ValueError
            If the shape of `lse` does not fit that of `out`, or `base` is not a base.
        """
        lse = canonical_lse(lse, out, base=base)
        out = out.to(accumulation_dtype(out.dtype))
        rows = ~torch.isfinite(lse) if empty is None else empty
        lse = lse.masked_fill(rows, -math.inf)
        out = out.masked_fill(rows.unsqueeze(-1), 0.0)
        return cls(out, lse, True)

    def merge(self, other: AttentionState) -> AttentionState:
        """Attention over the keys of both states, which must be disjoint sets of keys.

        Parameters
        ----------
        other : AttentionState
            Same queries, heads and dtype. An LSE in another base or from a kernel is not a
            state: pass it through `canonical` first.
        """
        out, lse = merge(*self._operands(other))
        return AttentionState(out, lse, True)

    def merge_(self, other: AttentionState) -> AttentionState:
        """Merge `other` into the memory of this state and return this state."""
        merge_(*self._operands(other))
        return self

    def rows(self, start: int, stop: int | None = None) -> AttentionState:
        """View of queries `start` to `stop`, which shares memory: ``rows(h).merge_(block)``.

        Zig-zag layouts merge some blocks into the second half of the queries only.
        """
        return AttentionState(self.out[:, :, start:stop], self.lse[:, :, start:stop], self._zeroed)

    def lse_in(self, base: float) -> Tensor:
        """Return the LSE as a logarithm to `base`, for a kernel that wants it so.

        ``AttentionState.canonical(state.out, state.lse_in(2), base=2)`` gives `state` back.
        """
        return self.lse / log_of(base)

    def _operands(self, other: AttentionState) -> tuple[Tensor, Tensor, Tensor, Tensor, bool]:
        if not isinstance(other, AttentionState):
            raise TypeError(
                f"merge takes an AttentionState, not {type(other).__name__}; make one of a "
                f"kernel's result with AttentionState.canonical(out, lse, base=...)."
            )
        if self.out.shape != other.out.shape or self.out.dtype != other.out.dtype:
            raise ValueError(
                f"Only states of the same queries, heads and dtype merge; got "
                f"{list(self.out.shape)} {self.out.dtype} and {list(other.out.shape)} "
                f"{other.out.dtype}. For a part of the queries use state.rows(start, stop)."
            )
        refuse_autograd(self.out, self.lse, other.out, other.lse)
        return self.out, self.lse, other.out, other.lse, self._zeroed and other._zeroed
