"""axolotl-ringmaster, whose ring does without flash-attn by explicit softmax."""

from __future__ import annotations

import torch.distributed as dist
from torch import Tensor

from benchmarks.peers.peer import Peer
from benchmarks.peers.problem import Problem


class Ringmaster(Peer):
    """Its point-to-point ring, contiguous: its zig-zag asks for a CUDA kernel."""

    name = "axolotl-ringmaster"
    package = "axolotl-ringmaster"
    how = (
        "`ring_p2p_attention`, contiguous, blocks by explicit softmax, as it does without "
        "flash-attn; nothing changed"
    )

    def start(self) -> None:
        """Import it."""
        import ringmaster.ring.p2p_attn  # noqa: F401

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call it; its result has the heads behind the tokens."""
        from ringmaster.ring.p2p_attn import ring_p2p_attention

        out: Tensor = ring_p2p_attention(
            q, k, v, group=dist.group.WORLD, causal=problem.causal, scaling=problem.dim**-0.5
        )
        return out.transpose(1, 2)
