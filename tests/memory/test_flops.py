"""FLOPs of a prefill, and the length from which attention costs most of them."""

from __future__ import annotations

import pytest
import torch

from ringlab.memory import MODELS, attention_flops, attention_overtakes, linear_flops

LLAMA = MODELS["Llama 3 70B"]


@pytest.mark.parametrize("name", MODELS)
def test_attention_costs_more_from_the_crossover_on_and_not_before(name: str) -> None:
    model = MODELS[name]
    length = attention_overtakes(model)
    assert attention_flops(model, length) > linear_flops(model, length)
    assert attention_flops(model, length - 1) <= linear_flops(model, length - 1)


def test_claim_c4_flops_of_128_k_tokens_through_70b() -> None:
    assert attention_flops(LLAMA, 131_072) == pytest.approx(2.25e16, rel=2e-3)
    assert 2 * LLAMA.parameters() * 131_072 == pytest.approx(1.85e16, rel=2e-3)
    # Without the embedding, which is looked up, the rest costs 1.5 % less.
    assert linear_flops(LLAMA, 131_072) == pytest.approx(0.985 * 1.85e16, rel=2e-3)


def test_claim_c4_attention_overtakes_the_rest_near_107_651_tokens() -> None:
    """The claim counts all 70.55e9 parameters and L²/2 pairs."""
    assert round(2 * 70.55e9 / (2 * 128 * 64 * 80)) == 107_651
    ratio = LLAMA.multiplied() / 70.55e9
    assert attention_overtakes(LLAMA) == pytest.approx(107_651 * ratio, abs=1)
    assert attention_overtakes(LLAMA) == 106_051


def test_attention_counts_two_products_over_the_pairs_that_a_causal_mask_leaves() -> None:
    pairs = int(torch.ones(100, 100, dtype=torch.int64).tril().sum())
    qk = pv = 2 * 128 * pairs  # a multiplication and an addition a channel
    assert attention_flops(LLAMA, 100) == 80 * 64 * (qk + pv)
