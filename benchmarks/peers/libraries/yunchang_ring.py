"""yunchang (USP): its rings as shipped, and with an operator for CPUs in place of flash-attn."""

from __future__ import annotations

from torch import Tensor

from benchmarks.peers.libraries import cpu_operator
from benchmarks.peers.peer import Balanced, Peer
from benchmarks.peers.problem import Problem


class AsShipped(Peer):
    """The ring that it offers without flash-attn."""

    name = "yunchang"
    package = "yunchang"
    how = "`ring_pytorch_attn_func`, its ring without flash-attn, contiguous; nothing changed"
    timed = False

    def start(self) -> None:
        """Import it."""
        import yunchang  # noqa: F401

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call it, which has the heads behind the tokens."""
        from yunchang.ring import ring_pytorch_attn_func

        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        out: Tensor = ring_pytorch_attn_func(q, k, v, causal=problem.causal)
        return out.transpose(1, 2)


class WithCpuOperator(Balanced):
    """Its rings over flash-attn, with the CPU operator in its place."""

    name = "yunchang *"
    package = "yunchang"
    how = (
        "`ring_flash_attn_func`, where causal `zigzag_ring_flash_attn_func`, with the CPU operator "
        "in place of flash-attn's forward and backward"
    )
    why = (
        "Its backward keeps the first block's gradients by `.to(torch.float32)`, which copies what "
        "is half precision, all that flash-attn takes, but is the buffer itself for float32, which "
        "the next block overwrites"
    )

    def start(self) -> None:
        """Replace the two functions that call flash-attn."""
        import yunchang.kernels

        yunchang.kernels.flash_attn_forward = _forward
        yunchang.kernels.flash_attn_backward = _backward

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call the ring of the layout."""
        from yunchang.ring import ring_flash_attn_func, zigzag_ring_flash_attn_func

        q, k, v = (x.transpose(1, 2).contiguous() for x in (q, k, v))
        ring = zigzag_ring_flash_attn_func if problem.causal else ring_flash_attn_func
        out: Tensor = ring(q, k, v, causal=problem.causal)
        return out.transpose(1, 2)


def _forward(
    q: Tensor, k: Tensor, v: Tensor, *rest: object, causal: bool, **options: object
) -> tuple[Tensor, Tensor]:
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    out, lse = cpu_operator.forward(q, k, v, causal)
    return out.transpose(1, 2), lse


def _backward(
    dout: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    out: Tensor,
    lse: Tensor,
    dq: Tensor,
    dk: Tensor,
    dv: Tensor,
    dropout: float,
    scale: float,
    causal: bool,
    *rest: object,
    **options: object,
) -> None:
    dout, q, k, v, out = (x.transpose(1, 2) for x in (dout, q, k, v, out))
    found = cpu_operator.backward(dout, q, k, v, out, lse, causal)
    for buffer, gradient in zip((dq, dk, dv), found, strict=True):
        buffer.copy_(gradient.transpose(1, 2))
