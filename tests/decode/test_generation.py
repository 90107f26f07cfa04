"""Greedy decoding gives the tokens of one device, whatever the ranks and the method."""

from __future__ import annotations

from functools import lru_cache

import pytest
import torch
from torch import Tensor

from ringlab import World
from tests.decode.cases import METHODS
from tests.decode.models import WORDS, on_one_device, on_ranks

STEPS = 64


def prompt() -> Tensor:
    return torch.randint(WORDS, (2, 13), generator=torch.Generator().manual_seed(0))


@lru_cache(maxsize=2)
def expected(dtype: torch.dtype) -> Tensor:
    tokens = on_one_device(prompt(), STEPS, dtype)
    assert all(len(set(row.tolist())) > 8 for row in tokens), "the model repeats itself"
    return tokens


QUICK = [(1, "split_k"), (2, "split_k"), (2, "all_gather"), (2, "ring"), (3, "split_k")]
SLOW = [pytest.mark.slow, pytest.mark.timeout(600)]
CASES = [
    pytest.param(size, method, marks=[] if (size, method) in QUICK else SLOW)
    for size in (1, 2, 3, 4, 8)
    for method in METHODS
]


@pytest.mark.parametrize(("size", "method"), CASES)
def test_report_j1_sixty_four_greedy_tokens_are_those_of_one_device(size: int, method: str) -> None:
    dtype, block = (torch.float32, 1) if size % 2 else (torch.float64, 2)
    for tokens in World(size).run(on_ranks, prompt(), STEPS, dtype, method, block):
        assert torch.equal(tokens, expected(dtype))
