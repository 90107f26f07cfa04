"""Inside the modes of PyTorch: inference, autocast, compilation, and tensors without data."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Interleaved, ShardedKVCache, World, ZigZag, cost, decode_attention
from tests.decode.cases import (
    Sequence,
    assert_exact,
    attend,
    cache_of,
    every_method,
    place,
    sequence,
)


def by_turns(given: Sequence, method: str) -> Tensor:
    """Load, append and attend, each in another mode, with memory that grows in between."""
    rank, size = place()
    cache = cache_of(given)
    with torch.inference_mode():
        shards = [ZigZag().shard(x[:, :, :200], rank, size) for x in given[1:]]
        cache.load(*shards, layout=ZigZag())
        cache.append(given.k[:, :, 200:201], given.v[:, :, 200:201])
    cache.append(given.k[:, :, 201:], given.v[:, :, 201:])
    with torch.no_grad():
        first = decode_attention(given.q.clone().requires_grad_(), cache, method=method)
    assert not first.requires_grad
    with torch.inference_mode():
        second = decode_attention(given.q, cache, method=method)
    assert second.is_inference()
    assert torch.equal(first, second)
    return second.clone()


@every_method
def test_a_cache_is_used_in_inference_mode_and_outside_by_turns(method: str) -> None:
    given = sequence(203)
    for found in World(2).run(by_turns, given, method):
        assert_exact(found, given)


@every_method
def test_a_world_that_starts_in_inference_mode_computes_the_same(method: str) -> None:
    given = sequence(21)
    expected = World(3).run(attend, given, method)
    with torch.inference_mode():
        found = World(3).run(attend, given, method)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def under_autocast(given: Sequence, dtype: torch.dtype) -> Tensor:
    cache = cache_of(given._replace(k=given.k.to(dtype)))
    with torch.autocast("cpu", dtype=dtype):
        cache.append(given.k, given.v)
        return decode_attention(given.q, cache)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_computes_as_on_inputs_of_its_dtype(dtype: torch.dtype) -> None:
    given = sequence(21, dtype=torch.float32)
    narrow = Sequence(*(x.to(dtype) for x in given))
    expected = World(3).run(attend, narrow, "split_k")
    for found, exact in zip(World(3).run(under_autocast, given, dtype), expected, strict=True):
        assert found.dtype == dtype
        assert torch.equal(found, exact)


def compiled_step(given: Sequence) -> tuple[list[tuple[Tensor, Tensor]], list[str]]:
    """Decode token by token, compiled and not, on two caches; and what was compiled."""
    graphs: list[str] = []

    def compiler(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        graphs.extend(str(n.target) for n in graph.graph.nodes if n.op.startswith("call"))
        return graph.forward

    def layer(q: Tensor, k: Tensor, v: Tensor, cache: ShardedKVCache) -> Tensor:
        cache.append(k * 2, v)
        return decode_attention(q, cache).sin()

    compiled, found = torch.compile(layer, backend=compiler), []
    one, other = cache_of(given), cache_of(given)
    for token in range(given.length):
        row = slice(token, token + 1)
        own = [x[:, :, row] for x in given]
        found.append((compiled(*own, one), layer(*own, other)))
    return found, graphs


@pytest.mark.processes
def test_report_i6_compiled_code_breaks_around_the_calls_and_is_not_compiled_again() -> None:
    with torch.no_grad(), World(2, backend="gloo", threads=1) as world:
        for steps, graphs in world.run(compiled_step, sequence(5, 5)):
            assert all(torch.equal(*pair) for pair in steps)
            assert graphs == ["<built-in function mul>", "sin"]


def everything(given: Sequence, method: str) -> Tensor:
    rank, size = place()
    cache, prompt = cache_of(given, layout=Interleaved(2)), given.length - 3
    shards = [ZigZag().shard(x[:, :, :prompt], rank, size) for x in given[1:]]
    cache.load(*shards, layout=ZigZag(), length=prompt)
    cache.append(given.k[:, :, prompt:], given.v[:, :, prompt:])
    return decode_attention(given.q, cache, method=method)


@every_method
@pytest.mark.parametrize("new", [1, 3])
def test_the_same_happens_with_data_and_without(method: str, new: int) -> None:
    given, recorded = sequence(23, new), []
    for device in ("cpu", "meta"):
        with World(3) as world:
            outs = world.run(everything, Sequence(*(x.to(device) for x in given)), method)
            assert {(out.shape, out.device.type) for out in outs} == {(given.q.shape, device)}
            recorded.append(
                [
                    event._replace(site="", work=None)
                    for event in world.timeline
                    if event.kind != "compute" or event.name.startswith("ringlab")
                ]
            )
    assert recorded[0] == recorded[1]


def million(method: str) -> None:
    length, options = 1 << 20, {"dtype": torch.bfloat16, "device": "meta"}
    local = ZigZag().local_length(dist.get_rank(), dist.get_world_size(), length)
    cache = ShardedKVCache(1, 8, 128, capacity=length + 8, **options)
    k = torch.empty(1, 8, local, 128, **options)
    cache.load(k, k, layout=ZigZag(), length=length)
    for _ in range(2):
        cache.append(*(torch.empty(1, 8, 1, 128, **options),) * 2)
        decode_attention(torch.empty(1, 64, 1, 128, **options), cache, method=method)


def test_a_million_tokens_on_128_ranks_take_seconds() -> None:
    start = time.perf_counter()
    with World(128) as world:
        world.run(million, "split_k")
        hops = world.timeline.hops(77)
    assert time.perf_counter() - start < 60  # usually under 10 on two idle cores
    call = cost.Decode(128, 1 << 20, 1, 64, 8, 128, torch.bfloat16)
    traffic = cost.cache_load(call, ZigZag())
    for _ in range(2):
        traffic = traffic.then(cost.decode_split_k(call))
    assert hops == traffic.hops(77)
