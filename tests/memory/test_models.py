"""The shapes of the catalog, proven by the parameters that they give."""

from __future__ import annotations

import pytest
import torch

from ringlab.memory import MODELS, Dense, Experts, GroupedQuery, Latent, Model
from tests.memory.tensors import held, weights

every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS.keys())

KIB_PER_TOKEN = {
    "Llama 2 7B": 512,
    "Llama 3 8B": 128,
    "Llama 3 70B": 320,
    "Llama 3.1 405B": 504,
    "Qwen2.5 0.5B": 12,
    "Qwen2.5 7B": 56,
    "Qwen2.5 72B": 320,
    "Qwen3 8B": 144,
    "Qwen3 32B": 256,
    "Qwen3 235B-A22B": 188,
    "Mixtral 8x7B": 128,
    "Mistral Large 2": 352,
    "Gemma 2B": 18,
}


@every_model
def test_parameters_of_the_shape_are_those_published_to_the_last_one(model: Model) -> None:
    assert model.parameters() == model.published


@every_model
def test_parameters_are_those_of_the_tensors_of_the_checkpoint(model: Model) -> None:
    assert model.parameters() == held(weights(model, range(model.layers)), 0, 1)


@every_model
def test_every_figure_has_a_repository_and_a_date(model: Model) -> None:
    repository, date = model.source.split(", ", 1)
    assert repository.count("/") == 1
    assert date[:2] == "20"
    assert date[4] == "-"


@pytest.mark.parametrize(("name", "kib"), KIB_PER_TOKEN.items())
def test_claim_c1_kib_of_a_token_in_16_bits(name: str, kib: int) -> None:
    assert MODELS[name].kv_bytes_per_token() == kib * 1024


def test_claim_c1_a_token_of_llama_3_70b_takes_2_80_8_128_2_bytes() -> None:
    token = MODELS["Llama 3 70B"].kv_bytes_per_token()
    assert token == 2 * 80 * 8 * 128 * 2 == 327_680
    assert torch.empty(2, 80, 8, 1, 128, dtype=torch.bfloat16).nbytes == token


@pytest.mark.parametrize(
    ("dtype", "factor"),
    [(torch.float32, 4), (torch.float16, 2), (torch.float8_e4m3fn, 1), (torch.int8, 1)],
    ids=str,
)
def test_bytes_of_a_token_follow_the_dtype(dtype: torch.dtype, factor: int) -> None:
    assert MODELS["Llama 3 70B"].kv_bytes_per_token(dtype) == factor * 163_840


def test_latent_attention_caches_576_numbers_a_layer() -> None:
    assert MODELS["DeepSeek-V3"].kv_bytes_per_token() == 61 * 576 * 2 == 70_272


def test_mixtures_multiply_a_token_by_the_experts_it_passes_only() -> None:
    """The publishers' 12.9, 22, 3.3 and 36.7 billion count the embedding and norms as well."""
    active = {name: MODELS[name].multiplied() / 1e9 for name in MODELS}
    assert active["Mixtral 8x7B"] == pytest.approx(12.9 - 0.13, abs=0.03)
    assert active["Qwen3 235B-A22B"] == pytest.approx(22.2 - 0.62, abs=0.03)
    assert active["Qwen3 30B-A3B"] == pytest.approx(3.35 - 0.31, abs=0.03)
    assert active["DeepSeek-V3"] == pytest.approx(36.6, abs=0.05)


def test_dense_models_multiply_a_token_by_all_but_the_embedding_and_the_norms() -> None:
    model = MODELS["Llama 3 70B"]
    assert model.multiplied() == model.parameters() - 128_256 * 8192 - 161 * 8192


@pytest.mark.parametrize("numbers", [(10, 4, 64), (8, 0, 64), (8, 2, 0), (0, 1, 64)])
def test_query_heads_that_cannot_share_the_kv_heads_are_refused(numbers: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="cannot share"):
        GroupedQuery(*numbers)


@pytest.mark.parametrize(
    ("tp", "expected"),
    [
        (1, [range(0, 8)]),
        (2, [range(0, 4), range(4, 8)]),
        (8, [range(h, h + 1) for h in range(8)]),
        (16, [range(h, h + 1) for h in range(8) for _ in range(2)]),
        (32, [range(h, h + 1) for h in range(8) for _ in range(4)]),
    ],
)
def test_claim_c7_kv_heads_of_a_rank(tp: int, expected: list[range]) -> None:
    attention = GroupedQuery(64, 8, 128)
    assert [attention.kv_heads_of(rank, tp) for rank in range(tp)] == expected


@pytest.mark.parametrize("kv_heads", [1, 2, 6, 12])
@pytest.mark.parametrize("tp", [1, 2, 3, 4, 6, 12])
def test_claim_c7_every_kv_head_is_held_equally_often(kv_heads: int, tp: int) -> None:
    attention = GroupedQuery(12, kv_heads, 8)
    if kv_heads % tp and tp % kv_heads:
        with pytest.raises(ValueError, match="KV heads cannot be dealt"):
            attention.kv_heads_of(0, tp)
        return
    held = [head for rank in range(tp) for head in attention.kv_heads_of(rank, tp)]
    assert sorted(held) == sorted(list(range(kv_heads)) * max(1, tp // kv_heads))
    group = 12 // kv_heads
    for rank in range(tp):  # the rank's own query heads find their KV heads there
        queries = range(rank * 12 // tp, (rank + 1) * 12 // tp)
        assert {q // group for q in queries} == set(attention.kv_heads_of(rank, tp))


def test_a_mixture_counts_shared_experts_and_the_bias_of_the_router() -> None:
    experts = Experts(4, 2, 10, shared=1, router_bias=True)
    assert experts.parameters(8) == 8 * 4 + 4 + 5 * 3 * 8 * 10
    assert experts.parameters(8, tp=2) == 8 * 4 + 4 + 5 * 3 * 8 * 5
    assert experts.multiplied(8) == 8 * 4 + 3 * 3 * 8 * 10
    assert Dense(10).multiplied(8) == Dense(10).parameters(8) == 240


def test_latent_attention_holds_whole_what_every_head_needs() -> None:
    shape = Latent(4, query_rank=6, latent=5, rope_dim=2, nope_dim=3, value_dim=7)
    whole = 6 * 10 + 6 + (5 + 2) * 10 + 5
    cut = 4 * (3 + 2) * 6 + 4 * (3 + 7) * 5 + 10 * 4 * 7
    assert shape.parameters(10) == whole + cut
    assert shape.parameters(10, tp=2) == whole + cut // 2
    assert shape.cached(1) == shape.cached(4) == 7
    assert shape.pair_flops() == 2 * 4 * (5 + 7)
