"""A small decoder in which attention is an argument, so that it runs on one device or on many.

Grouped queries, rotary embedding by global position, RMSNorm, a gated feed-forward layer. It
gets the tokens that its rank holds, and their positions in the whole sequence; everything but
attention looks at one token at a time and needs no change to run on a shard.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention, silu

from ringlab import apply_rope

Attention = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""Of a layer: its number, q [B, Hq, L, D], k and v [B, Hkv, L, D] -> [B, Hq, L, D]."""


@dataclass(frozen=True)
class Config:
    """Sizes of a decoder."""

    vocabulary: int = 64
    layers: int = 2
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 16

    @property
    def hidden(self) -> int:
        """Width of the residual stream."""
        return self.heads * self.head_dim


class Layer(nn.Module):
    """Attention and a gated feed-forward layer, each after a norm and beside a residual."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        hidden, self.config = config.hidden, config
        width = (config.heads + 2 * config.kv_heads) * config.head_dim
        self.attention_norm = nn.RMSNorm(hidden)
        self.qkv = nn.Linear(hidden, width, bias=False)
        self.out = nn.Linear(hidden, hidden, bias=False)
        self.feed_forward_norm = nn.RMSNorm(hidden)
        self.up = nn.Linear(hidden, 4 * hidden, bias=False)
        self.down = nn.Linear(2 * hidden, hidden, bias=False)

    def forward(self, x: Tensor, positions: Tensor, number: int, attention: Attention) -> Tensor:
        """Take x [B, L, C] of tokens at positions [L]."""
        heads = self.qkv(self.attention_norm(x)).unflatten(-1, (-1, self.config.head_dim))
        sizes = (self.config.heads, self.config.kv_heads, self.config.kv_heads)
        q, k, v = heads.transpose(1, 2).split(sizes, dim=1)  # [B, H, L, D]
        # K is turned by global position before it travels.
        q, k = apply_rope(q, positions), apply_rope(k, positions)
        x = x + self.out(attention(number, q, k, v).transpose(1, 2).flatten(2))
        gate, up = self.up(self.feed_forward_norm(x)).chunk(2, dim=-1)
        return x + self.down(silu(gate) * up)


class Decoder(nn.Module):
    """Tokens in, logits out."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embedding = nn.Embedding(config.vocabulary, config.hidden)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.hidden)
        self.head = nn.Linear(config.hidden, config.vocabulary, bias=False)

    def forward(self, tokens: Tensor, positions: Tensor, attention: Attention) -> Tensor:
        """Give the logits [B, L, V] of tokens [B, L] at positions [L]."""
        x = self.embedding(tokens)
        for number, layer in enumerate(self.layers):
            x = layer(x, positions, number, attention)
        return self.head(self.norm(x))


def new_decoder(config: Config, seed: int, device: torch.device, dtype: torch.dtype) -> Decoder:
    """Make a decoder; one seed gives every rank the same weights."""
    torch.manual_seed(seed)
    return Decoder(config).to(device, dtype)


def one_device(_: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Causal attention to a sequence that is on one device."""
    return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
