"""Kinds of attention: what a layer holds and caches, and a rank of tensor parallelism of it.

All counts are of elements; bytes follow from a dtype (`ringlab.memory.deployment`).
"""

from __future__ import annotations

from dataclasses import dataclass

from ringlab.memory.dealing import check_divides, listed


@dataclass(frozen=True)
class GroupedQuery:
    """Attention whose query heads share KV heads: MHA, GQA and MQA.

    Parameters
    ----------
    heads, kv_heads, head_dim : int
        Hq, Hkv and D; Hq a multiple of Hkv.
    bias : bool
        Whether the projections to q, k and v add a bias.
    qk_norm : bool
        Whether each head of q and k passes an RMSNorm.

    Raises
    ------
    ValueError
        If the query heads cannot share the KV heads.

    References
    ----------
    Ainslie et al., "GQA: Training Generalized Multi-Query Transformer Models from Multi-Head
    Checkpoints", arXiv 2305.13245.
    """

    heads: int
    kv_heads: int
    head_dim: int
    bias: bool = False
    qk_norm: bool = False

    def __post_init__(self) -> None:
        if min(self.heads, self.kv_heads, self.head_dim) < 1 or self.heads % self.kv_heads:
            raise ValueError(
                f"{self.heads} query heads of {self.head_dim} channels cannot share "
                f"{self.kv_heads} KV heads; take positive numbers, the first a multiple of the "
                "last."
            )

    def check(self, tp: int) -> None:
        """Refuse tensor parallelism that would cut a head."""
        check_divides("query heads", self.heads, tp)
        if self.kv_heads % tp and tp % self.kv_heads:
            fit = [n for n in range(1, self.heads + 1) if self.heads % n == 0]
            fit = [n for n in fit if self.kv_heads % n == 0 or n % self.kv_heads == 0]
            raise ValueError(
                f"{self.kv_heads} KV heads cannot be dealt to tp={tp} ranks: each rank takes "
                f"equally many, or equally many ranks share each; tp can be {listed(fit)}."
            )

    def kv_heads_of(self, tp_rank: int, tp: int) -> range:
        """Give the KV heads of a rank: Hkv / tp of them, or one, which tp / Hkv ranks share."""
        self.check(tp)
        if tp <= self.kv_heads:
            count = self.kv_heads // tp
            return range(tp_rank * count, (tp_rank + 1) * count)
        head = tp_rank // (tp // self.kv_heads)
        return range(head, head + 1)

    def cached(self, tp: int = 1) -> int:
        """Count the elements of K and V that a rank caches for a token in one layer."""
        return 2 * len(self.kv_heads_of(0, tp)) * self.head_dim

    def parameters(self, hidden: int, tp: int = 1) -> int:
        """Count a rank's parameters of one layer; K and V projections follow the KV heads."""
        queries, keys = self.heads // tp * self.head_dim, self.cached(tp) // 2
        biases = (queries + 2 * keys) * self.bias
        return self._products(hidden, queries, keys) + biases + 2 * self.head_dim * self.qk_norm

    def multiplied(self, hidden: int) -> int:
        """Count the parameters that a token is multiplied by in one layer."""
        return self._products(hidden, self.heads * self.head_dim, self.kv_heads * self.head_dim)

    def pair_flops(self) -> int:
        """Count the FLOPs of one (query, key) pair in one layer, all heads: QK and PV."""
        return 4 * self.heads * self.head_dim

    @staticmethod
    def _products(hidden: int, queries: int, keys: int) -> int:
        return 2 * hidden * queries + 2 * hidden * keys  # q and out, k and v


@dataclass(frozen=True)
class Latent:
    """Multi-head latent attention (MLA): one small vector a token is cached for all heads.

    Every rank of tensor parallelism holds the whole vector, since every head needs it.

    Parameters
    ----------
    heads : int
    query_rank, latent : int
        Width of the compressed queries, and of the compressed keys and values.
    rope_dim, nope_dim, value_dim : int
        Channels of a head's keys with and without rotary embedding, and of its values. The
        rotary part of K is one for all heads and cached beside the latent vector.

    References
    ----------
    DeepSeek-AI, "DeepSeek-V2", arXiv 2405.04434, section 2.1.
    """

    heads: int
    query_rank: int
    latent: int
    rope_dim: int
    nope_dim: int
    value_dim: int

    def check(self, tp: int) -> None:
        """Refuse tensor parallelism that would cut a head."""
        check_divides("heads", self.heads, tp)

    def cached(self, tp: int = 1) -> int:
        """Count the elements that a rank caches for a token in one layer, whatever `tp`."""
        self.check(tp)
        return self.latent + self.rope_dim

    def parameters(self, hidden: int, tp: int = 1) -> int:
        """Count a rank's parameters of one layer; the projections down are on every rank."""
        self.check(tp)
        down, up = self._products(hidden, self.heads // tp)
        return down + up + self.query_rank + self.latent  # two RMSNorms

    def multiplied(self, hidden: int) -> int:
        """Count the parameters that a token is multiplied by in one layer."""
        return sum(self._products(hidden, self.heads))

    def pair_flops(self) -> int:
        """Count the FLOPs of one (query, key) pair in one layer with keys written out per head."""
        return 2 * self.heads * (self.nope_dim + self.rope_dim + self.value_dim)

    def _products(self, hidden: int, heads: int) -> tuple[int, int]:
        down = hidden * (self.query_rank + self.latent + self.rope_dim)
        queries = self.query_rank * heads * (self.nope_dim + self.rope_dim)
        keys = self.latent * heads * (self.nope_dim + self.value_dim)
        return down, queries + keys + heads * self.value_dim * hidden
