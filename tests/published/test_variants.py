from __future__ import annotations

from collections import Counter

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from benchmarks.published.variants import VARIANTS, Variant
from ringlab import World
from ringlab.timeline import Timeline
from tests import oracle

every_variant = pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)

B, KV_HEADS, D = 2, 2, 16


def run_both(variant: Variant, q: Tensor, k: Tensor, v: Tensor, dout: Tensor) -> list[Tensor]:
    """Run forward and backward on this rank's shards."""
    rank, size = dist.get_rank(), dist.get_world_size()
    shards = [variant.layout.shard(x, rank, size).contiguous() for x in (q, k, v, dout)]
    out, saved = variant.forward(*shards[:3])
    return [out, *variant.backward(shards[3], saved)]


def operands(variant: Variant, ranks: int, tokens: int) -> list[Tensor]:
    """q, k, v and dout of a problem; BurstAttention's backward takes as many KV heads as heads."""
    generator = torch.Generator().manual_seed(ranks)
    heads = KV_HEADS if variant.name == "BurstAttention" else 3 * KV_HEADS
    sizes = [(B, n, tokens * ranks, D) for n in (heads, KV_HEADS, KV_HEADS, heads)]
    return [torch.randn(size, generator=generator) for size in sizes]


def recorded(variant: Variant, ranks: int, tokens: int) -> Timeline:
    with World(ranks) as world:
        world.run(run_both, variant, *operands(variant, ranks, tokens))
        return world.timeline


@every_variant
@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_a_variant_computes_attention_and_its_gradients(variant: Variant, ranks: int) -> None:
    q, k, v, dout = operands(variant, ranks, 10)
    with World(ranks) as world:
        found = world.run(run_both, variant, q, k, v, dout)
    exact = oracle.attention(q, k, v, dout, causal=variant.causal)
    wanted = (exact.out, exact.dq, exact.dk, exact.dv)
    for parts, whole in zip(zip(*found, strict=True), wanted, strict=True):
        assert oracle.error(variant.layout.unshard(list(parts)), whole) < 2e-6


def hops(variant: Variant, ranks: int) -> Counter[int]:
    """How many messages of each size the last rank sends for two tokens a rank."""
    sent = recorded(variant, ranks, 2).events
    return Counter(e.bytes_out for e in sent if e.kind == "send" and e.rank == ranks - 1)


ONE = B * KV_HEADS * 2 * D * 4  # bytes of a rank's K, or V, of two tokens in float32


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(
    "name",
    ["ring-flash-attention zig-zag", "ring-flash-attention striped", "pith-train zig-zag"],
)
def test_a_backward_hop_is_four_messages_and_dk_dv_make_one_hop_more(name: str, ranks: int) -> None:
    keys_and_values, gradients = 2 * 2 * (ranks - 1), 2 * ranks
    assert hops(VARIANTS[name], ranks) == {ONE: keys_and_values + gradients}


@pytest.mark.parametrize("ranks", [2, 4])
def test_dk_and_dv_travel_in_float32(ranks: int) -> None:
    variant = VARIANTS["ring-flash-attention zig-zag"]
    tensors = [x.bfloat16() for x in operands(variant, ranks, 2)]
    with World(ranks) as world:
        world.run(run_both, variant, *tensors)
        sent = Counter(e.dtype for e in world.timeline.events if e.kind == "send" and e.rank == 0)
    assert sent == {"bfloat16": 2 * 2 * (ranks - 1), "float32": 2 * ranks}


@pytest.mark.parametrize("ranks", [2, 4])
def test_burst_attention_sends_its_queries_round_in_backward(ranks: int) -> None:
    small = ONE // D  # the LSE, and delta
    # K and V forward; dO and Q backward, and dQ one hop more
    large = 2 * (ranks - 1) + 2 * (ranks - 1) + ranks
    assert hops(VARIANTS["BurstAttention"], ranks) == {ONE: large, small: 2 * (ranks - 1)}


@pytest.mark.parametrize("ranks", [2, 4])
def test_contiguous_pith_train_sends_each_gradient_straight_home(ranks: int) -> None:
    # The last rank has blocks of every other one.
    assert hops(VARIANTS["pith-train contiguous"], ranks) == {ONE: 4 * (ranks - 1)}
