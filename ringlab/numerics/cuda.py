"""The flash and cuDNN kernels of torch for CUDA, adapted."""

from __future__ import annotations

import functools

import torch
from torch import Tensor

from ringlab.numerics import private_ops
from ringlab.numerics.fused import FusedKernel, cuda_problem
from ringlab.numerics.kernel import Gradients, Result
from ringlab.numerics.tile import Final, Operands

_FLASH = "_scaled_dot_product_flash_attention"
_CUDNN = "_scaled_dot_product_cudnn_attention"


class CudaFlash(FusedKernel):
    """FlashAttention as torch ships it, or the version that torch was told to use instead.

    Its backward adds into dq in no fixed order unless
    ``torch.use_deterministic_algorithms(True)``.
    """

    name = "cuda_flash"

    def missing(self) -> str | None:
        """Check the operators and the GPU."""
        return private_ops.first_problem(_FLASH, _FLASH + "_backward") or cuda_problem((8, 0))

    def call(self, block: Operands) -> Result:
        """Run the operator; its LSE is [B, H, L]."""
        found = private_ops.operator(_FLASH)(
            block.q, block.k, block.v, 0.0, block.causal, False, scale=block.scale
        )
        return found[0], found[1]

    def call_backward(self, block: Operands, final: Final) -> Gradients:
        """Run the operator's backward; it reads the random state only with dropout."""
        q, k = block.q, block.k
        seed = torch.empty(2, dtype=torch.uint64, device=q.device)
        offset = torch.empty((), dtype=torch.uint64, device=q.device)
        lengths = (None, None, q.shape[2], k.shape[2])
        dq, dk, dv = private_ops.operator(_FLASH + "_backward")(
            *(final.dout, q, k, block.v, final.out, final.lse),
            *lengths,
            *(0.0, block.causal, seed, offset),
            scale=block.scale,
        )
        return dq, dk, dv


class CudaCudnn(FusedKernel):
    """The attention of cuDNN; its backward is not deterministic."""

    name = "cuda_cudnn"
    max_head_dim = 128

    def missing(self) -> str | None:
        """Check the operators, the GPU and the version of cuDNN."""
        reason = private_ops.first_problem(_CUDNN, _CUDNN + "_backward") or cuda_problem((8, 0))
        if reason is None and cudnn_version() < 90000:
            reason = f"it needs cuDNN 9; this torch has {cudnn_version()}"
        return reason

    def refuses(self, q: Tensor, k: Tensor, causal: bool, masked: bool) -> str | None:
        """Refuse a single key and deterministic mode too."""
        if torch.are_deterministic_algorithms_enabled():
            return "it is not deterministic and torch.use_deterministic_algorithms is on"
        if k.shape[2] == 1 or (causal and q.shape[2] == 1):
            return "it takes no tile of a single key"
        return super().refuses(q, k, causal, masked)

    def call(self, block: Operands) -> Result:
        """Run the operator; its LSE is [B, H, L] or [B, H, L, 1] by version."""
        found = private_ops.operator(_CUDNN)(
            *(block.q, block.k, block.v, None, True, 0.0, block.causal, False), scale=block.scale
        )
        return found[0], found[1]

    def call_backward(self, block: Operands, final: Final) -> Gradients:
        """Run the operator's backward; it reads the random state only with dropout."""
        q, k = block.q, block.k
        lse = final.lse.unsqueeze(-1) if _cudnn_lse_dim(q.device) == 4 else final.lse
        seed = torch.empty((), dtype=torch.int64, device=q.device)
        lengths = (None, None, q.shape[2], k.shape[2])
        dq, dk, dv = private_ops.operator(_CUDNN + "_backward")(
            *(final.dout, q, k, block.v, final.out, lse, seed, seed, None),
            *lengths,
            *(0.0, block.causal),
            scale=block.scale,
        )
        return dq, dk, dv


@functools.cache
def _cudnn_lse_dim(device: torch.device) -> int:
    """Dimensions of the LSE that this torch returns for cuDNN.

    The backward wants it as the forward gave it, and versions differ; asked once.
    """
    probe = torch.zeros(1, 1, 64, 64, dtype=torch.float16, device=device)
    _, lse = CudaCudnn().call(Operands(probe, probe, probe, False, None, 1.0))
    return lse.dim()


def cudnn_version() -> int:
    """Version of cuDNN as one number, 90100 for 9.1.0; 0 without it."""
    found: int | None = torch.backends.cudnn.version()
    return found or 0


@functools.cache
def prefers_cudnn() -> bool:
    """Whether cuDNN is the faster of the two: Hopper and data-centre Blackwell.

    Versions up to 9.15.0 are wrong for some lengths that 128 does not divide.
    """
    if torch.version.hip is not None or cudnn_version() <= 91500:
        return False
    return torch.cuda.get_device_capability()[0] in (9, 10)
