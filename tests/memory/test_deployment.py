"""Bytes on each rank, for each kind of parallelism."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
import torch

from ringlab import Interleaved, Layout, Striped, ZigZag
from ringlab.memory import DTYPES, GB, GIB, KIB, MODELS, Deployment, Model, Place
from tests.layouts.cases import Word
from tests.memory.tensors import held, weights

LLAMA = MODELS["Llama 3.1 70B"]
DEEPSEEK = MODELS["DeepSeek-V3"]
FP8 = torch.float8_e4m3fn
K128 = 131_072

H100, H200, B200 = 80 * GB, 141 * GB, 180 * GB


def small(model: Model, layers: int = 5) -> Model:
    """The model with few layers, quick to take apart."""
    return replace(model, layers=layers, first_layers=model.first_layers[:2])


@pytest.mark.parametrize(
    ("parallel", "kib"),
    [
        ({}, 320),
        ({"tp": 2}, 160),
        ({"tp": 4}, 80),
        ({"tp": 8}, 40),
        ({"tp": 16}, 40),
        ({"tp": 32}, 40),
        ({"pp": 4}, 80),
        ({"tp": 8, "pp": 2}, 20),
        ({"cp": 8}, 320),
        ({"dp": 8}, 320),
        ({"tp": 2, "kv_dtype": FP8}, 80),
    ],
    ids=str,
)
def test_claim_c7_c8_kib_of_a_cached_token_on_a_rank(parallel: dict[str, int], kib: int) -> None:
    deployment = Deployment(LLAMA, **parallel)
    ranks = range(deployment.world_size)
    assert [deployment.kv_bytes_per_token(rank) for rank in ranks] == [kib * KIB] * len(ranks)


@pytest.mark.parametrize(
    ("parallel", "gib"),
    [
        ({}, 40),
        ({"tp": 8}, 5),
        ({"tp": 16}, 5),
        ({"pp": 8}, 5),
        ({"cp": 8}, 5),
        ({"dp": 8}, 40),
        ({"tp": 2, "cp": 2, "pp": 2, "dp": 2}, 5),
    ],
    ids=str,
)
def test_claim_c2_c6_to_c9_gib_of_one_sequence_of_128_k_on_a_rank(
    parallel: dict[str, int], gib: int
) -> None:
    deployment = Deployment(LLAMA, **parallel)
    assert deployment.kv_bytes(0, K128) == gib * GIB
    assert max(deployment.kv_bytes(r, K128) for r in range(deployment.world_size)) == gib * GIB


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        (131_072, 42_949_672_960),
        (128_000, 41_943_040_000),
        (1_048_576, 320 * GIB),
        (1_000_000, 327_680_000_000),
    ],
)
def test_claim_c2_bytes_of_a_long_context(tokens: int, expected: int) -> None:
    assert Deployment(LLAMA).kv_bytes(0, tokens) == expected


@pytest.mark.parametrize(
    ("card", "weights", "alone", "fits"),
    [
        (H100, torch.bfloat16, True, False),
        (H200, torch.bfloat16, True, False),
        (B200, torch.bfloat16, True, False),
        (H100, FP8, True, False),
        (H200, FP8, True, True),
    ],
    ids=str,
)
def test_claim_c3_the_cache_of_128_k_fits_a_card_and_the_weights_beside_it_do_not(
    card: int, weights: torch.dtype, alone: bool, fits: bool
) -> None:
    deployment = Deployment(LLAMA, weight_dtype=weights)
    assert (deployment.kv_bytes(0, K128) <= card) is alone
    assert deployment.fits(card, K128) is fits


def test_claim_c3_bytes_of_the_weights() -> None:
    assert Deployment(LLAMA).weight_bytes(0) == 141_107_412_992
    assert Deployment(LLAMA, weight_dtype=FP8).peak_bytes(K128) == 70_553_706_496 + 40 * GIB
    assert Deployment(LLAMA).kv_bytes(0, 1_048_576) > B200 > H200


@pytest.mark.parametrize(("one", "other"), [(1, 8), (2, 4), (8, 2)])
def test_claim_c3_tp_and_cp_divide_the_cache_alike_and_only_tp_the_weights(
    one: int, other: int
) -> None:
    left, right = (Deployment(LLAMA, tp=tp, cp=cp) for tp, cp in [(one, other), (other, one)])
    assert left.kv_bytes(0, K128) == right.kv_bytes(0, K128)
    assert (left.weight_bytes(0) < right.weight_bytes(0)) is (one > other)
    assert Deployment(LLAMA, tp=one, cp=8).weight_bytes(0) == left.weight_bytes(0)


@pytest.mark.parametrize("tp", [1, 2, 8, 16, 64])
def test_claim_c7_ranks_together_hold_the_cache_once_or_as_often_as_heads_are_shared(
    tp: int,
) -> None:
    deployment = Deployment(LLAMA, tp=tp, cp=3, pp=7)
    total = sum(deployment.kv_bytes(r, 1001) for r in range(deployment.world_size))
    assert total == max(1, tp // 8) * 1001 * LLAMA.kv_bytes_per_token()


@pytest.mark.parametrize("tp", [1, 2, 128])
def test_claim_c7_a_latent_vector_is_on_every_rank_of_tp(tp: int) -> None:
    deployment = Deployment(DEEPSEEK, tp=tp)
    assert deployment.kv_bytes_per_token(tp - 1) == 61 * 576 * 2
    assert Deployment(DEEPSEEK, tp=tp, cp=4).kv_bytes(0, K128) == K128 // 4 * 61 * 576 * 2
    assert Deployment(MODELS["Gemma 2B"], tp=2).kv_bytes_per_token(1) == 18 * KIB


@pytest.mark.parametrize("cp", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("length", [0, 1, 7, 64, 1001])
@pytest.mark.parametrize("layout", [ZigZag(), Striped(), Interleaved(16), Word((0, 1, 0, 2))],
                         ids=str)  # fmt: skip
def test_tokens_of_a_cp_rank_are_those_of_the_layout(layout: Layout, length: int, cp: int) -> None:
    deployment = Deployment(LLAMA, tp=2, cp=cp, layout=layout)
    counts = [deployment.tokens(rank, length) for rank in range(0, deployment.world_size, 2)]
    assert counts == [len(layout.positions(rank, cp, length)) for rank in range(cp)]


def test_ranks_are_numbered_with_tp_fastest_then_cp_pp_dp() -> None:
    deployment = Deployment(LLAMA, tp=2, cp=3, pp=4, dp=5)
    assert deployment.world_size == 120
    places = [Place(*place) for place in itertools.product(range(5), range(4), range(3), range(2))]
    assert [deployment.place(rank) for rank in range(120)] == places


def test_stages_share_the_layers_and_the_first_have_one_more() -> None:
    deployment = Deployment(MODELS["Llama 3.1 405B"], pp=16)
    layers = [deployment.layers(rank) for rank in range(16)]
    assert [len(stage) for stage in layers] == [8] * 14 + [7] * 2
    assert [layer for stage in layers for layer in stage] == list(range(126))


@pytest.mark.parametrize(("total", "expected"), [(0, [0, 0, 0]), (1, [1, 0, 0]), (8, [3, 3, 2])])
def test_replicas_share_the_sequences_and_the_first_have_one_more(
    total: int, expected: list[int]
) -> None:
    deployment = Deployment(LLAMA, dp=3)
    assert [deployment.sequences(rank, total) for rank in range(3)] == expected
    assert [deployment.kv_bytes(rank, 100, total) for rank in range(3)] == [
        count * 100 * 320 * KIB for count in expected
    ]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("pp", [1, 2, 5])
@pytest.mark.parametrize("tp", [1, 2])
def test_weights_of_a_rank_are_the_slices_of_the_tensors_it_holds(
    name: str, tp: int, pp: int
) -> None:
    model = small(MODELS[name])
    deployment = Deployment(model, tp=tp, pp=pp)
    for rank in range(deployment.world_size):
        mine = held(weights(model, deployment.layers(rank)), rank % tp, tp)
        assert deployment.weight_bytes(rank) == 2 * mine


@pytest.mark.parametrize("name", ["Llama 3 70B", "Qwen3 235B-A22B", "DeepSeek-V3"])
def test_weights_follow_kv_heads_that_several_ranks_share(name: str) -> None:
    model = small(MODELS[name])
    deployment = Deployment(model, tp=16)
    for rank in range(16):
        assert deployment.weight_bytes(rank) == 2 * held(weights(model, range(5)), rank, 16)


def test_weights_do_not_depend_on_cp_and_dp() -> None:
    deployment = Deployment(LLAMA, tp=8, cp=4, dp=2)
    assert {deployment.weight_bytes(rank) for rank in range(64)} == {17_640_734_720}


def test_a_tied_head_is_held_twice_by_a_pipeline_and_once_without() -> None:
    model = MODELS["Gemma 2B"]
    alone, halves = Deployment(model), Deployment(model, pp=2)
    copy = 2 * 256_000 * 2048
    assert halves.weight_bytes(0) + halves.weight_bytes(1) == alone.weight_bytes(0) + copy


def test_rows_of_the_embedding_are_padded_to_a_multiple_of_tp() -> None:
    model = replace(small(LLAMA), vocabulary=128_255)
    assert Deployment(model, tp=8).weight_bytes(0) == Deployment(small(LLAMA), tp=8).weight_bytes(0)


GRID = [
    Deployment(MODELS["Llama 3.1 8B"], pp=4),  # the last stage holds the last norm as well
    Deployment(DEEPSEEK, tp=16, pp=8, weight_dtype=FP8),  # the first stage has no experts
    Deployment(MODELS["Llama 3 8B"], tp=2, cp=3, pp=5, dp=2),
    Deployment(MODELS["Qwen2.5 0.5B"], pp=7, cp=2, layout=ZigZag()),
    Deployment(MODELS["Gemma 2B"], tp=4, pp=4, kv_dtype=FP8),
    Deployment(small(DEEPSEEK), tp=4, cp=4, layout=Interleaved(16), weight_dtype=FP8),
    Deployment(MODELS["Mixtral 8x7B"], tp=16, pp=3, cp=2, dp=2, layout=Striped()),
]
every_deployment = pytest.mark.parametrize("deployment", GRID, ids=lambda d: d.model.name)


@every_deployment
@pytest.mark.parametrize("sequences", [1, 3])
def test_the_peak_is_that_of_the_fullest_rank(deployment: Deployment, sequences: int) -> None:
    ranks = range(deployment.world_size)
    for length in (0, 1, 1001, 70_001):
        totals = [deployment.total_bytes(rank, length, sequences) for rank in ranks]
        assert deployment.peak_bytes(length, sequences) == max(totals)
        assert totals == [
            deployment.weight_bytes(r) + deployment.kv_bytes(r, length, sequences) for r in ranks
        ]


@every_deployment
@pytest.mark.parametrize("sequences", [1, 3])
@pytest.mark.parametrize("card", [24 * GB, 80 * GB])
@pytest.mark.parametrize("reserve", [0, 2 * GIB + 1])
def test_the_longest_context_fits_and_one_more_token_does_not(
    deployment: Deployment, sequences: int, card: int, reserve: int
) -> None:
    longest = deployment.longest_context(card, sequences, reserve=reserve)
    assert longest is not None
    assert deployment.peak_bytes(longest, sequences) <= card - reserve
    assert deployment.peak_bytes(longest + 1, sequences) > card - reserve
    assert deployment.fits(card, longest, sequences, reserve=reserve)
    assert not deployment.fits(card, longest + 1, sequences, reserve=reserve)


def test_claim_c2_the_longest_context_to_the_byte() -> None:
    node = Deployment(LLAMA, tp=8)
    room = 17_640_734_720 + 1000 * 40 * KIB
    assert [node.longest_context(room + extra) for extra in (-1, 0, 40 * KIB - 1, 40 * KIB)] == [
        999,
        1000,
        1000,
        1001,
    ]
    assert node.longest_context(80 * GB) == (80 * GB - 17_640_734_720) // (40 * KIB) == 1_522_443


def test_longest_context_is_0_where_just_the_weights_fit_and_none_where_they_do_not() -> None:
    weights = Deployment(LLAMA).weight_bytes(0)
    assert Deployment(LLAMA).longest_context(weights) == 0
    assert Deployment(LLAMA).longest_context(weights - 1) is None
    assert Deployment(LLAMA).longest_context(weights, reserve=1) is None


@pytest.mark.parametrize(
    ("model", "parallel", "said"),
    [
        ("Llama 3 70B", {"tp": 3}, r"64 query heads cannot be dealt to tp=3 ranks \(64 % 3 = 1\); "
                                   r"tp can be 1, 2, 4, 8, 16, 32, 64"),
        ("Qwen2.5 7B", {"tp": 7}, r"4 KV heads cannot be dealt to tp=7 ranks.* tp can be "
                                  r"1, 2, 4, 28"),
        ("Qwen2.5 7B", {"tp": 8}, "28 query heads cannot be dealt to tp=8"),
        ("DeepSeek-V3", {"tp": 3}, "128 heads cannot be dealt to tp=3"),
        ("Llama 3 8B", {"pp": 33}, "32 layers of Llama 3 8B cannot fill pp=33 stages; pp can be 1 "
                                   "to 32"),
        ("Llama 3 8B", {"cp": 0}, "cp is a number of ranks, 1 or more; got 0"),
        ("Llama 3 8B", {"dp": 1.5}, "dp is a number of ranks, 1 or more; got 1.5"),
        ("Llama 3 8B", {"tp": True}, "tp is a number of ranks, 1 or more; got True"),
    ],
    ids=str,
)  # fmt: skip
def test_impossible_deployments_are_refused_in_words(
    model: str, parallel: dict[str, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        Deployment(MODELS[model], **parallel)


def test_a_feed_forward_that_tp_does_not_divide_is_refused() -> None:
    model = replace(DEEPSEEK, first_layers=(replace(DEEPSEEK.first_layers[0], width=18433),))
    with pytest.raises(ValueError, match="18433 feed-forward channels cannot be dealt to tp=2"):
        Deployment(model, tp=2)
    odd = replace(DEEPSEEK, feed_forward=replace(DEEPSEEK.feed_forward, width=2049))
    with pytest.raises(ValueError, match="2049 channels of an expert cannot be dealt to tp=2"):
        Deployment(odd, tp=2)


@pytest.mark.parametrize("rank", [-1, 8])
def test_a_rank_that_is_not_there_is_refused(rank: int) -> None:
    with pytest.raises(ValueError, match=f"rank {rank} is not among the 8 of this deployment"):
        Deployment(LLAMA, tp=8).kv_bytes(rank, 1)


def test_without_a_sequence_there_is_no_longest_context() -> None:
    with pytest.raises(ValueError, match="sequences is 1 or more; got 0"):
        Deployment(LLAMA, tp=8).longest_context(80 * GB, 0)


@pytest.mark.parametrize("dtype", ["bf16", torch.bool, torch.complex64, None], ids=str)
def test_formats_that_are_no_dtype_of_whole_bytes_are_refused(dtype: object) -> None:
    with pytest.raises(ValueError, match=r"weight_dtype is one of torch\.float64, .*; got"):
        Deployment(LLAMA, weight_dtype=dtype)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="kv_dtype is one of"):
        Deployment(LLAMA, kv_dtype=dtype)  # type: ignore[arg-type]


def test_every_named_format_has_the_bytes_of_its_tensors() -> None:
    for dtype in DTYPES.values():
        deployment = Deployment(LLAMA, kv_dtype=dtype, weight_dtype=dtype)
        assert deployment.kv_bytes(0, 1) == torch.empty(2, 80, 8, 128, dtype=dtype).nbytes
        assert deployment.weight_bytes(0) == LLAMA.published * torch.empty(1, dtype=dtype).nbytes


@pytest.mark.parametrize(("length", "sequences"), [(-1, 1), (1, -1)])
def test_fewer_tokens_or_sequences_than_none_are_refused(length: int, sequences: int) -> None:
    with pytest.raises(ValueError, match="-1"):
        Deployment(LLAMA).kv_bytes(0, length, sequences)
