"""What prefill holds beside the cache: the formulas, and what the methods really hold."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab import Layout, World, ZigZag
from ringlab.memory import GIB, MIB, MODELS, Deployment, GroupedQuery, Model
from ringlab.memory.feed_forward import Dense
from ringlab.memory.workspace import Method, blocks_held, prefill_workspace, score_bytes
from ringlab.meter import PeakBytes
from ringlab.prefill import all_gather_attention, ring_attention
from tests.layouts.cases import Word

LLAMA = MODELS["Llama 3.1 70B"]
TINY = Model("tiny", 60, 3, 100, GroupedQuery(6, 3, 10), Dense(80), 64, 0, "none")
METHODS = {"ring": ring_attention, "all_gather": all_gather_attention}


@pytest.mark.parametrize(
    ("cp", "part"), [(1, 1.0), (2, 1.0), (3, 1.0), (4, 0.75), (8, 0.375), (16, 0.1875)]
)
def test_claim_c17_a_ring_needs_three_blocks_at_most(cp: int, part: float) -> None:
    assert blocks_held("ring", cp) / cp == part
    assert blocks_held("all_gather", cp) == cp


@pytest.mark.parametrize(("tokens", "gib"), [(131_072, 0.5), (1_048_576, 4)])
def test_claim_c16_an_all_gather_holds_one_layer_and_not_all(tokens: int, gib: float) -> None:
    deployment = Deployment(LLAMA, cp=8)
    own = deployment.kv_bytes(0, tokens) // 80
    assert prefill_workspace(deployment, "all_gather", tokens) == int(gib * GIB) + own
    assert prefill_workspace(deployment, "ring", tokens) == int(gib * GIB) // 4


@pytest.mark.parametrize("tp", [1, 2, 8, 16])
def test_workspaces_shrink_with_the_kv_heads_of_a_rank(tp: int) -> None:
    deployment = Deployment(LLAMA, tp=tp, cp=4)
    assert prefill_workspace(deployment, "ring", 131_072) == 256 * MIB // min(tp, 8)


def test_one_rank_needs_no_workspace() -> None:
    assert prefill_workspace(Deployment(LLAMA, tp=8), "all_gather", 131_072) == 0


def test_an_unknown_method_is_refused() -> None:
    for call in (
        lambda: blocks_held("ulysses", 2),  # type: ignore[arg-type]
        lambda: prefill_workspace(Deployment(LLAMA), "ulysses", 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(ValueError, match="choose 'ring' or 'all_gather'"):
            call()


def peak(method: Method, layout: Layout, length: int, dtype: torch.dtype, batch: int) -> int:
    """Bytes that a rank's forward makes on meta tensors, without its partial results."""
    attention = TINY.attention
    place = dist.get_rank(), dist.get_world_size()
    tokens = layout.local_length(*place, length)
    q, k, v = (
        torch.empty(batch, heads, tokens, attention.head_dim, dtype=dtype, device="meta")
        for heads in (attention.heads, attention.kv_heads, attention.kv_heads)
    )
    alone = PeakBytes()
    with alone:
        METHODS[method](q, k, v, layout=layout, length=tokens, group=groups()[place[0]])
    meter = PeakBytes()
    with meter:
        METHODS[method](q, k, v, layout=layout, length=length)
    # A step may hold the state of the block beside the merged one.
    return meter.peak - alone.peak


def groups() -> list[dist.ProcessGroup]:
    """A group of one for every rank."""
    return [dist.new_group([rank]) for rank in range(dist.get_world_size())]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("layout", "length", "dtype"),
    [
        (ZigZag(), 960, torch.float32),
        (ZigZag(), 960, torch.bfloat16),
        (Word((0, 1, 1)), 960, torch.float32),
    ],
    ids=str,
)
def test_the_methods_hold_their_workspace_and_a_partial_result(
    method: Method, layout: Layout, length: int, dtype: torch.dtype
) -> None:
    for size in (2, 3, 8):
        deployment = Deployment(TINY, cp=size, kv_dtype=dtype, layout=layout)
        expected = prefill_workspace(deployment, method, length, sequences=2)
        beyond = World(size).run(peak, method, layout, length, dtype, 2)
        longest = max(layout.lengths(size, length))
        state = 2 * TINY.attention.heads * longest * (4 * TINY.attention.head_dim + 8)
        assert expected <= max(beyond) <= expected + state


@pytest.mark.parametrize(
    ("cp", "tokens", "gib"),
    [(4, 131_072, 256), (8, 131_072, 64), (16, 131_072, 16), (32, 131_072, 4),
     (32, 1_048_576, 256)],
)  # fmt: skip
def test_claim_b9_bytes_of_one_matrix_of_scores(cp: int, tokens: int, gib: int) -> None:
    assert score_bytes(Deployment(LLAMA, cp=cp), tokens) == gib * GIB
    assert score_bytes(Deployment(LLAMA, cp=cp, tp=8), tokens, 3) == 3 * gib * GIB // 8
