"""One process with as many threads as the others have ranks: SDPA on the whole problem."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.peers.peer import Peer
from benchmarks.peers.problem import Problem


class OneProcess(Peer):
    """SDPA."""

    name = "one process, SDPA"
    package = "torch"
    how = "`scaled_dot_product_attention` with two threads, no other rank"
    ranks = 1
    threads = 2

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call it."""
        return scaled_dot_product_attention(
            q, k, v, is_causal=problem.causal, enable_gqa=problem.heads != problem.kv_heads
        )
