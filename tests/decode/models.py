"""A small transformer that generates on one device, or on ranks with sharded caches."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from ringlab import (
    Interleaved,
    ShardedKVCache,
    ZigZag,
    apply_rope,
    decode_attention,
    ring_attention,
)
from tests.decode.cases import place

LAYERS, HEADS, KV_HEADS, HEAD_DIM, WORDS = 2, 4, 2, 6, 50

Attend = Callable[[int, Tensor, Tensor, Tensor], Tensor]
"""The number of a layer, q [B, Hq, L, D], k and v [B, Hkv, L, D]; gives [B, Hq, L, D]."""


class Model(nn.Module):
    """Logits [B, L, words] of tokens [B, L] that stand at given positions [L]."""

    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        width = HEADS * HEAD_DIM
        self.words = nn.Embedding(WORDS, width)
        self.project = nn.ModuleList(
            nn.Linear(width, (HEADS + 2 * KV_HEADS) * HEAD_DIM) for _ in range(LAYERS)
        )
        self.out = nn.ModuleList(nn.Linear(width, width) for _ in range(LAYERS))
        self.head = nn.Linear(width, WORDS)
        with torch.no_grad():  # weights at which attention decides what comes next
            for factor, layers in ((3, self.project), (6, self.out)):
                for linear in layers:
                    linear.weight.mul_(factor)
        self.to(dtype)

    def forward(self, tokens: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        x = self.words(tokens)
        for layer, (project, out) in enumerate(zip(self.project, self.out, strict=True)):
            heads = project(x).unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)
            q, k, v = heads.split((HEADS, KV_HEADS, KV_HEADS), dim=1)
            q, k = apply_rope(q, positions), apply_rope(k, positions)
            y = attend(layer, q, k, v)
            x = x + torch.tanh(out(y.transpose(1, 2).flatten(2)))
        return self.head(x)


def on_one_device(prompt: Tensor, steps: int, dtype: torch.dtype) -> Tensor:
    """Greedy tokens [B, steps], each from all tokens before it, without any cache."""

    def attend(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)

    model, tokens = Model(dtype), prompt
    with torch.inference_mode():
        for _ in range(steps):
            logits = model(tokens, torch.arange(tokens.shape[1]), attend)
            tokens = torch.cat((tokens, logits[:, -1:].argmax(-1)), dim=1)
    return tokens[:, prompt.shape[1] :].clone()


def on_ranks(prompt: Tensor, steps: int, dtype: torch.dtype, method: str, block: int) -> Tensor:
    """The same on a rank: zig-zag prefill by a ring, then a cache of each layer, sharded."""
    (rank, size), layout = place(), ZigZag()
    batch, length = prompt.shape
    caches = [
        ShardedKVCache(batch, KV_HEADS, HEAD_DIM, layout=Interleaved(block), dtype=dtype)
        for _ in range(LAYERS)
    ]

    def prefill(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        caches[layer].load(k, v, layout=layout, length=length)
        return ring_attention(q, k, v, layout=layout, causal=True, length=length)

    def decode(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        caches[layer].append(k, v)
        return decode_attention(q, caches[layer], method=method)

    model, found = Model(dtype), []
    with torch.inference_mode():
        # All but the last token of the prompt is prefilled; every rank decodes from that one on.
        length -= 1
        mine = layout.shard(prompt[:, :length], rank, size, dim=1)
        model(mine, layout.positions(rank, size, length), prefill)
        token = prompt[:, length:]
        for position in range(length, length + steps):
            logits = model(token, torch.tensor([position]), decode)
            token = logits[:, -1:].argmax(-1)
            found.append(token)
    return torch.cat(found, dim=1).clone()
