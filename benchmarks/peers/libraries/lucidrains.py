"""ring-attention-pytorch by lucidrains, whose plain PyTorch path runs on CPUs."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from benchmarks.peers.peer import Peer
from benchmarks.peers.problem import Problem


class RingAttentionPytorch(Peer):
    """Its function of q, k and v, contiguous."""

    name = "ring-attention-pytorch"
    package = "ring-attention-pytorch"
    how = (
        "`ring_flash_attn` with `ring_reduce_col`, buckets of 1024 (its default), contiguous; "
        "nothing changed"
    )
    why = (
        "Its backward unpacks the pair that its last ring pass returns as dK and dV, so that "
        "autograd adds both into dK. With GQA it takes query head h to KV head h modulo Hkv, "
        "where others take h // (Hq / Hkv)"
    )

    def start(self) -> None:
        """Import it."""
        import ring_attention_pytorch  # noqa: F401

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call it, which has the heads behind the tokens."""
        from ring_attention_pytorch.ring_flash_attention import ring_flash_attn

        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        out: Tensor = ring_flash_attn(
            q, k, v, causal=problem.causal, ring_reduce_col=True, ring_size=dist.get_world_size()
        )
        return out.transpose(1, 2)
