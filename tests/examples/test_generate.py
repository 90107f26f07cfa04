"""Generating over ranks gives what one device gives, and each way to get it wrong is noticed."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache

import generate
import model
import pytest
import torch
from torch import Tensor

from ringlab import Contiguous, ShardedKVCache, World

CPU = torch.device("cpu")
NEW = 6


def options(*given: str, prompt: int = 13, dtype: str = "float64") -> argparse.Namespace:
    return generate.arguments(
        [f"--new-tokens={NEW}", f"--prompt-tokens={prompt}", f"--dtype={dtype}", *given]
    )


@cache
def alone(prompt: int, dtype: str = "float64") -> generate.Generated:
    return generate.generate_alone(options(prompt=prompt, dtype=dtype), CPU)


@pytest.mark.parametrize("method", generate.METHODS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_report_j1_tokens_and_logits_are_those_of_one_device_on_every_rank(
    size: int, method: str
) -> None:
    for found in World(size).run(generate.generate, options(f"--method={method}"), CPU):
        assert torch.equal(found.tokens, alone(13).tokens)
        torch.testing.assert_close(found.logits, alone(13).logits, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("prompt", [1, 2, 5])
def test_report_c7_prompts_shorter_than_the_ranks_are_fine(prompt: int) -> None:
    for found in World(4).run(generate.generate, options(prompt=prompt), CPU):
        assert torch.equal(found.tokens, alone(prompt).tokens)
        torch.testing.assert_close(found.logits, alone(prompt).logits, rtol=1e-10, atol=1e-10)


def test_float32_differs_by_rounding_only() -> None:
    (first, *others) = World(3).run(generate.generate, options(dtype="float32"), CPU)
    torch.testing.assert_close(first.logits, alone(13, "float32").logits, rtol=1e-4, atol=1e-4)
    for found in others:
        assert torch.equal(found.logits, first.logits)


def test_the_prompts_and_the_weights_give_different_tokens() -> None:
    """A comparison of tokens that are all alike would prove little."""
    assert len(set(alone(13).tokens.flatten().tolist())) > NEW


@pytest.mark.parametrize(
    "given", ["--new-tokens=0", "--prompt-tokens=0", "--sequences=0", "--method=ulysses"]
)
def test_a_wrong_command_line_is_refused(given: str) -> None:
    with pytest.raises(SystemExit):
        generate.arguments([given])


def turn_by_local_positions(patch: pytest.MonkeyPatch) -> None:
    right = model.apply_rope
    patch.setattr(model, "apply_rope", lambda x, positions: right(x, torch.arange(x.shape[2])))


def pair_keys_with_values_of_other_tokens(patch: pytest.MonkeyPatch) -> None:
    right = ShardedKVCache.load

    def wrong(cache: ShardedKVCache, k: Tensor, v: Tensor, **given: object) -> None:
        right(cache, k.flip(2), v, **given)

    patch.setattr(ShardedKVCache, "load", wrong)


def forget_the_prompt(patch: pytest.MonkeyPatch) -> None:
    right = ShardedKVCache.load

    def wrong(cache: ShardedKVCache, k: Tensor, v: Tensor, **given: object) -> None:
        right(cache, 0 * k, 0 * v, **given)

    patch.setattr(ShardedKVCache, "load", wrong)


def take_the_logits_of_another_rank(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(generate.ZigZag, "owner", lambda *_: 1)


def attend_to_the_future(patch: pytest.MonkeyPatch) -> None:
    right = generate.ring_attention
    patch.setattr(
        generate, "ring_attention", lambda *qkv, **given: right(*qkv, **{**given, "causal": False})
    )


def attend_in_another_layout(patch: pytest.MonkeyPatch) -> None:
    right = generate.ring_attention
    other = {"layout": Contiguous()}
    patch.setattr(
        generate, "ring_attention", lambda *qkv, **given: right(*qkv, **{**given, **other})
    )


WRONG = [
    turn_by_local_positions,
    pair_keys_with_values_of_other_tokens,
    forget_the_prompt,
    take_the_logits_of_another_rank,
    attend_to_the_future,
    attend_in_another_layout,
]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.__name__)
def test_a_wrong_generation_does_not_pass_the_check(
    wrong: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = alone(13)
    wrong(monkeypatch)
    found = World(2).run(generate.generate, options(), CPU)[0]
    with pytest.raises(SystemExit, match="do not generate what one device generates"):
        generate.check(found, expected)


def test_the_check_passes_what_is_right(capsys: pytest.CaptureFixture[str]) -> None:
    generate.check(World(2).run(generate.generate, options(), CPU)[1], alone(13))
    assert "12 of 12 tokens are the same" in capsys.readouterr().out
