"""ringlab itself."""

from __future__ import annotations

from torch import Tensor

from benchmarks.peers.peer import Balanced
from benchmarks.peers.problem import Problem
from ringlab.prefill import ring_attention


class Ringlab(Balanced):
    """The ring, zig-zag where causal."""

    name = "ringlab"
    package = "ringlab"
    how = "`ring_attention`; zig-zag where causal"

    def attend(self, problem: Problem, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Call it."""
        return ring_attention(
            q, k, v, layout=self.layout(problem), causal=problem.causal, length=problem.length
        )
