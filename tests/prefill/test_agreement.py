"""Ranks that do not make the same call find out together, in the one message before the first."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Contiguous, Interleaved, Layout, Striped, World, ZigZag
from ringlab.calls.notes import fingerprint
from ringlab.layout import Run
from ringlab.prefill.agreement import Note
from tests.prefill.cases import METHODS, Attend, every_method

Call = Callable[[Attend, int], Tensor]


def q(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape or (1, 2, 3, 4), dtype=dtype)


def same(method: Attend, x: Tensor, **options: Any) -> Tensor:
    return method(x, x, x, **options)


def grouped(method: Attend, heads: int) -> Tensor:
    return method(q(1, 4, 3, 4), q(1, heads, 3, 4), q(1, heads, 3, 4))


HALF, BRAIN = torch.float16, torch.bfloat16

# What rank 1 of 3 does otherwise, and what every rank must then be told.
DISAGREEMENTS: dict[str, tuple[Call, str]] = {
    "batch": (lambda f, r: same(f, q(1 + (r == 1), 2, 3, 4)), "the batch size B: {} [1, 2, 1]"),
    "query heads": (lambda f, r: f(q(1, 2 + 2 * (r == 1), 3, 4), q(), q()), "heads: {} [2, 4, 2]"),
    "KV heads": (lambda f, r: grouped(f, 1 + (r == 1)), "the number of KV heads: {} [1, 2, 1]"),
    "head width": (lambda f, r: same(f, q(1, 2, 3, 4 + (r == 1))), "D: {} [4, 5, 4]"),
    "dtype": (
        lambda f, r: same(f, q(dtype=BRAIN if r == 1 else HALF)),
        "the dtype: {} ['float16', 'bfloat16', 'float16']",
    ),
    "causal": (lambda f, r: same(f, q(), causal=r == 1), "causal: {} [False, True, False]"),
    "scale": (lambda f, r: same(f, q(), scale=1.0 + r), "scale: {} [1.0, 2.0, 3.0]"),
    "kernel": (
        lambda f, r: same(f, q(), kernel="reference" if r == 1 else None),
        "kernel: {} [None, 'reference', None]",
    ),
    "layout": (
        lambda f, r: same(f, q(), layout=Striped() if r == 1 else ZigZag()),
        "the layout; on this rank it is",
    ),
    "block of a layout": (
        lambda f, r: same(f, q(), layout=Interleaved(3 + r)),
        "the layout; on this rank it is Interleaved(block=",
    ),
    "gradients": (
        lambda f, r: same(f, q().requires_grad_(r == 1)),
        "requires a gradient: {} [False, True, False]",
    ),
    "lengths": (
        lambda f, r: same(f, q(1, 2, 3 + r, 4)),
        "[3, 4, 5] tokens, but Contiguous() of length 12 over 3 ranks gives [4, 4, 4]",
    ),
    "order of lengths": (
        lambda f, r: same(f, q(1, 2, 3 + r // 2, 4)),
        "[3, 3, 4] tokens, but Contiguous() of length 10 over 3 ranks gives [4, 3, 3]",
    ),
}


def caught(method: Attend, call: Call) -> str:
    """What a rank is told; it survives, so that every rank can be asked."""
    try:
        call(method, dist.get_rank())
    except ValueError as error:
        return str(error)
    return "nothing"


@every_method
@pytest.mark.parametrize("what", DISAGREEMENTS)
def test_report_h5_ranks_that_disagree_are_all_told_so(method: Attend, what: str) -> None:
    call, words = DISAGREEMENTS[what]
    with World(3) as world:
        told = world.run(caught, method, call)
        timeline = world.timeline.communication()
    for message in told:
        assert method.__name__ in message
        assert words.format("rank by rank it is") in message
    assert [event.name for event in timeline.of(0)] == ["all_gather", "all_gather"]


@every_method
def test_ranks_that_agree_are_told_nothing(method: Attend) -> None:
    def call(method: Attend, rank: int) -> Tensor:
        return same(method, q(1, 2, (4, 3, 3)[rank], 4), scale=0.5, causal=True)

    assert World(3).run(caught, method, call) == ["nothing"] * 3


@every_method
@pytest.mark.parametrize("length", [9, None])
def test_wrong_tokens_of_one_rank_alone_are_named_without_other_ranks(
    method: Attend, length: int | None
) -> None:
    def alone(method: Attend) -> str:
        return caught(method, lambda f, _: same(f, q(), layout=ZigZag(), length=length))

    expected = "rank 0 holds 3 tokens, but ZigZag() of length 9 over 1 ranks gives it 9"
    (told,) = World(1).run(alone, method)
    assert (expected in told) if length else told == "nothing"


class Plain(Layout):
    """A layout without a representation of its own, as a user may write it."""

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        return Contiguous().runs(rank, world_size, length)

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Plain)


def test_layouts_that_differ_only_in_their_address_agree() -> None:
    def call() -> None:
        for method in METHODS:
            same(method, q(), layout=Plain())

    first, second = Plain(), Plain()
    assert re.search("0x", repr(first))
    assert fingerprint(first) == fingerprint(second)
    World(3).run(call)


def test_layouts_that_differ_have_different_fingerprints() -> None:
    layouts = [Contiguous(), ZigZag(), Striped(), Interleaved(2), Interleaved(3), Plain()]
    assert len({fingerprint(layout) for layout in layouts}) == len(layouts)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("kernel", [None, "cpu_flash", "reference", "flash_attn"])
def test_a_note_survives_its_eight_integers(dtype: torch.dtype, kernel: str | None) -> None:
    note = Note(1 << 40, 2, 3, 4, 5, dtype, kernel, True, False, 0.1234567890123, 0xFFFFFFFF)
    words = note.pack()
    assert len(words) == 8
    assert Note.unpack(words) == note
    other = dataclasses.replace(note, causal=False, gradients=True)
    assert Note.unpack(other.pack()) == other
