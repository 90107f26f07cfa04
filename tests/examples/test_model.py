"""The model of the examples: it looks at positions, never ahead, and at one token at a time."""

from __future__ import annotations

import model
import torch
from torch import Tensor

CONFIG = model.Config(vocabulary=11, layers=2, heads=6, kv_heads=2, head_dim=4)


def decoder() -> model.Decoder:
    return model.new_decoder(CONFIG, 3, torch.device("cpu"), torch.float64)


def logits(tokens: Tensor, positions: Tensor) -> Tensor:
    return decoder()(tokens, positions, model.one_device)


def test_one_seed_gives_the_same_weights() -> None:
    torch.manual_seed(77)
    for mine, theirs in zip(decoder().parameters(), decoder().parameters(), strict=True):
        assert torch.equal(mine, theirs)


def test_a_later_token_changes_nothing_before_it_and_what_follows() -> None:
    tokens = torch.randint(11, (2, 9))
    changed = tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 11
    before, after = (logits(x, torch.arange(9)) for x in (tokens, changed))
    assert before.shape == (2, 9, 11)
    assert torch.equal(before[:, :5], after[:, :5])
    assert (before[:, 5:] != after[:, 5:]).all()


def test_logits_depend_on_distances_and_not_on_where_the_sequence_starts() -> None:
    tokens = torch.randint(11, (2, 9))
    here, there = (logits(tokens, start + torch.arange(9)) for start in (0, 1000))
    torch.testing.assert_close(here, there, rtol=0, atol=1e-10)
    apart = logits(tokens, 2 * torch.arange(9))
    assert not torch.allclose(here, apart, atol=1e-3)


def test_attention_gets_the_layer_and_its_heads() -> None:
    seen = []

    def attention(layer: int, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        seen.append((layer, q.shape, k.shape, v.shape))
        return q

    decoder()(torch.zeros(3, 5, dtype=torch.int64), torch.arange(5), attention)
    shapes = (3, 6, 5, 4), (3, 2, 5, 4), (3, 2, 5, 4)
    assert seen == [(0, *shapes), (1, *shapes)]
