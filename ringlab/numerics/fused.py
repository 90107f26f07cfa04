"""What the fused CUDA kernels have in common, so that an adapter is two short functions.

They take 16-bit inputs only, no boolean mask, a head dimension that is a multiple of 8, and
a causal tile that is square; they return the LSE in shapes of their own.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import torch
from torch import Tensor
from torch.nn.functional import pad

from ringlab.numerics.dtypes import SIXTEEN_BIT, accumulation_dtype
from ringlab.numerics.kernel import Gradients, Kernel, Result
from ringlab.numerics.lse import canonical_lse, final_lse
from ringlab.numerics.memory_format import rows_contiguous
from ringlab.numerics.square import backward_top_left, forward_top_left
from ringlab.numerics.tile import Final, Operands


class FusedKernel(Kernel):
    """Base of adapters; a subclass calls its kernel on full and on square causal tiles."""

    devices = frozenset({"cuda"})
    dtypes = frozenset(SIXTEEN_BIT)
    partials = "that of the inputs"
    max_head_dim = 256

    @abstractmethod
    def call(self, block: Operands) -> Result:
        """Run the kernel: the output and its raw LSE."""

    @abstractmethod
    def call_backward(self, block: Operands, final: Final) -> Gradients:
        """Run the kernel's backward; `final` has the dtype of the block."""

    def refuses(self, q: Tensor, k: Tensor, causal: bool, masked: bool) -> str | None:
        """Refuse masks and wide heads too."""
        if masked:
            return "it takes no boolean mask"
        if q.shape[3] > self.max_head_dim:
            return f"it takes a head dimension up to {self.max_head_dim}, not {q.shape[3]}"
        return super().refuses(q, k, causal, masked)

    def forward(self, block: Operands) -> Result:
        """Run the kernel on padded heads, square by square."""
        head_dim = block.q.shape[3]
        block = _padded(block)
        out, lse = forward_top_left(self._tile, block) if block.causal else self._tile(block)
        return out[..., :head_dim], lse

    def backward(self, block: Operands, final: Final) -> Gradients:
        """Run the kernel's backward on padded heads, square by square."""
        head_dim = block.q.shape[3]
        final = final.to(block.q.dtype)
        lse = final_lse(final.lse, accumulation_dtype(block.q.dtype))
        final = Final(_pad_heads(final.dout), _pad_heads(final.out), lse)
        block = _padded(block)
        if block.causal:
            dq, dk, dv = backward_top_left(self._tile_backward, block, final)
        else:
            dq, dk, dv = self._tile_backward(block, final)
        return dq[..., :head_dim], dk[..., :head_dim], dv[..., :head_dim]

    def _tile(self, block: Operands) -> Result:
        out, lse = self.call(block)
        return out, canonical_lse(lse, out)

    def _tile_backward(self, block: Operands, final: Final) -> Gradients:
        # The kernels read the LSE through a bare pointer: a slice of it must be copied.
        return self.call_backward(block, replace(final, lse=final.lse.contiguous()))


def _pad_heads(x: Tensor) -> Tensor:
    """Append zeros until the head dimension is a multiple of 8: scores do not change."""
    missing = -x.shape[3] % 8
    return pad(x, (0, missing)) if missing else rows_contiguous(x)


def _padded(block: Operands) -> Operands:
    return replace(block, q=_pad_heads(block.q), k=_pad_heads(block.k), v=_pad_heads(block.v))


def cuda_problem(capability: tuple[int, int]) -> str | None:
    """Say why no GPU here has at least this compute capability, or None."""
    if not torch.cuda.is_available():
        return "there is no CUDA device, or torch was built without CUDA"
    found = torch.cuda.get_device_capability()
    if torch.version.hip is None and found < capability:
        wanted = ".".join(map(str, capability))
        return f"it needs compute capability {wanted}; this GPU has {found[0]}.{found[1]}"
    return None
