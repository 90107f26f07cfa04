"""FLOPs of a causal prefill, and the length from which attention costs more than the rest.

A multiplication and an addition are two; only matrix products count. The whole sequence is
counted, whatever the number of ranks.
"""

from __future__ import annotations

from ringlab.memory.model import Model


def attention_flops(model: Model, length: int) -> int:
    """FLOPs of attention over the ``length * (length + 1) / 2`` pairs that a causal mask leaves."""
    return model.layers * model.attention.pair_flops() * (length * (length + 1) // 2)


def linear_flops(model: Model, length: int) -> int:
    """FLOPs of everything else: each token times each parameter that it meets in a product."""
    return 2 * length * model.multiplied()


def attention_overtakes(model: Model) -> int:
    """Find the shortest causal prefill in which attention costs more FLOPs than the rest.

    With c FLOPs a pair over all layers and P parameters that a token is multiplied by,
    ``c * n * (n + 1) / 2 > 2 * n * P`` from ``n = floor(4 * P / c)`` on; for grouped queries
    c = 4 * layers * Hq * D, so n is about ``P / (layers * Hq * D)``.
    """
    return 4 * model.multiplied() // (model.layers * model.attention.pair_flops())
