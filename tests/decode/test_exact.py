"""The numbers of every method, on every rank, against float64 attention on one device."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from torch import Tensor

from ringlab import Interleaved, ShardedKVCache, World, decode_attention
from tests import oracle
from tests.decode.cases import (
    METHODS,
    Sequence,
    assert_exact,
    cache_of,
    every_block,
    every_method,
    every_size,
    expected,
    filled,
    run,
    sequence,
)


@every_method
@every_size
@every_block
def test_a_new_token_sees_all_that_the_ranks_hold(method: str, size: int, block: int) -> None:
    given = sequence(37, seed=size)
    assert_exact(run(given, size, method, block), given)


@every_method
@pytest.mark.parametrize("size", [2, 8])
def test_report_c7_ranks_that_hold_nothing_take_part(method: str, size: int) -> None:
    for length in (1, 2, 3):
        given = sequence(length)
        assert_exact(run(given, size, method), given)
        assert_exact(run(given, size, method, block=16), given)


def by_steps(given: Sequence, method: str, block: int, new: int) -> list[Tensor]:
    """Outputs of `new` tokens at a time, each appended right before, from the first token on."""
    cache, found = cache_of(given, layout=Interleaved(block)), []
    for start in range(0, given.length, new):
        rows = slice(start, start + new)
        cache.append(given.k[:, :, rows], given.v[:, :, rows])
        found.append(decode_attention(given.q[:, :, rows], cache, method=method))
    return found


@every_method
@pytest.mark.parametrize("new", [1, 2, 3, 4, 5])
def test_report_d16_each_of_several_new_tokens_sees_exactly_its_own_past(
    method: str, new: int
) -> None:
    given = sequence(11, 11)
    exact = expected(given)
    for block in (1, 2, 16):
        for found in World(3).run(by_steps, given, method, block, new):
            torch.testing.assert_close(torch.cat(found, 2), exact, rtol=1e-12, atol=1e-12)


@every_method
@pytest.mark.parametrize("heads", [(8, 1), (8, 2), (8, 8), (6, 3), (1, 1)], ids=str)
@pytest.mark.parametrize("new", [1, 3])
def test_report_b8_query_heads_share_kv_heads(
    method: str, heads: tuple[int, int], new: int
) -> None:
    given = sequence(17, new, heads=heads[0], kv_heads=heads[1], head_dim=12)
    assert_exact(run(given, 3, method, block=2), given)


@every_method
def test_report_a1_a2_scores_whose_exponential_would_overflow(method: str) -> None:
    given = sequence(16)
    assert oracle.attention(*given, scale=100.0).lse.max() > 709
    found = run(given, 4, method, scale=100.0)
    torch.testing.assert_close(found, expected(given, 100.0), rtol=1e-10, atol=1e-10)


@every_method
@pytest.mark.parametrize("scale", [0.7, 3.0])
def test_the_scale_of_the_scores_is_free(method: str, scale: float) -> None:
    given = sequence(13, 2)
    assert_exact(run(given, 3, method, scale=scale), given, scale)


@every_method
def test_report_a14_one_key_outweighs_all_others_wherever_it_lives(method: str) -> None:
    given = sequence(9, batch=1, heads=1, kv_heads=1)
    for token in range(9):
        k = given.k.clone()
        k[:, :, token] = 60 * given.q[:, :, 0]
        marked = given._replace(k=k)
        found = run(marked, 4, method)
        torch.testing.assert_close(found, given.v[:, :, token : token + 1], rtol=1e-9, atol=1e-9)
        assert_exact(found, marked)


@every_method
def test_report_d16_a_new_token_does_not_see_those_after_it(method: str) -> None:
    given = sequence(23, 4, dtype=torch.float32)
    before = run(given, 3, method, block=2)
    for token in (20, 22):
        k, v = given.k.clone(), given.v.clone()
        k[:, :, token] += 3.0
        v[:, :, token] -= 5.0
        after = run(given._replace(k=k, v=v), 3, method, block=2)
        same = token - 19  # the first query stands at position 19
        assert torch.equal(before[:, :, :same], after[:, :, :same])
        assert not torch.isclose(before[:, :, same:], after[:, :, same:]).all(-1).any()


@settings(max_examples=25)
@drawn(
    method=st.sampled_from(METHODS),
    block=st.integers(1, 9),
    size=st.integers(1, 5),
    length=st.integers(1, 60),
    new=st.integers(0, 60),
    batch=st.integers(0, 3),
    kv_heads=st.integers(1, 3),
    group=st.integers(1, 3),
    head_dim=st.integers(1, 9),
)
def test_any_shape_is_exact(
    method: str,
    block: int,
    size: int,
    length: int,
    new: int,
    batch: int,
    kv_heads: int,
    group: int,
    head_dim: int,
) -> None:
    given = sequence(
        length,
        min(new, length),
        batch=batch,
        heads=kv_heads * group,
        kv_heads=kv_heads,
        head_dim=head_dim,
    )
    assert_exact(run(given, size, method, block), given)


def sequence_major(x: Tensor) -> Tensor:
    """[B, H, L, D] over [B, L, H, D] memory, as a projection leaves it."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def strided_heads(x: Tensor) -> Tensor:
    """[B, H, L, D] whose head dimension has stride L."""
    return x.transpose(2, 3).contiguous().transpose(2, 3)


def every_second(x: Tensor) -> Tensor:
    """[B, H, L, D] out of a tensor twice as wide in every dimension."""
    wide = x.repeat_interleave(2, 0).repeat_interleave(2, 1).repeat(1, 1, 2, 2)
    return wide[::2, ::2, : x.shape[2], : x.shape[3]]


def arranged(given: Sequence, method: str, arrange: object) -> Tensor:
    """Decode on tensors that lie in memory in a way of their own."""
    assert callable(arrange)
    mine = Sequence(*(arrange(x) for x in given))
    return decode_attention(mine.q, filled(mine), method=method)


@every_method
@pytest.mark.parametrize(
    "arrange", [sequence_major, strided_heads, every_second], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("new", [1, 3])
def test_report_h1_tensors_may_have_any_strides(method: str, arrange: object, new: int) -> None:
    given = sequence(14, new)
    for found in World(3).run(arranged, given, method, arrange):
        assert_exact(found, given)


def two_layers(layers: list[Sequence], method: str) -> list[Tensor]:
    """Two layers, each with a cache of its own, token by token and in turns."""
    caches: list[ShardedKVCache] = [cache_of(given, layout=Interleaved(2)) for given in layers]
    found: list[list[Tensor]] = [[] for _ in layers]
    for position in range(layers[0].length):
        row = slice(position, position + 1)
        for given, cache, outs in zip(layers, caches, found, strict=True):
            cache.append(given.k[:, :, row], given.v[:, :, row])
            outs.append(decode_attention(given.q[:, :, row], cache, method=method))
    return [torch.cat(outs, 2) for outs in found]


@every_method
def test_caches_of_several_layers_do_not_disturb_each_other(method: str) -> None:
    layers = [sequence(9, 9, seed=0), sequence(9, 9, seed=1, head_dim=6)]
    for found in World(4).run(two_layers, layers, method):
        for out, given in zip(found, layers, strict=True):
            assert_exact(out, given)


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
def test_all_ranks_come_to_the_same_bits_in_every_dtype(method: str, dtype: torch.dtype) -> None:
    given = sequence(300, 2, head_dim=32, dtype=dtype)
    assert run(given, 4, method, block=2).dtype == dtype  # run compares the ranks
