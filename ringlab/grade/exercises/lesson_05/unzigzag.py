"""The way back from zig-zag shards to the sequence."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.exercises.lesson_05.deals import zigzag
from ringlab.grade.looks import inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives, where

Back = Callable[[list[Tensor]], Tensor]


@lru_cache(maxsize=64)
def _sequence(case: Case) -> Tensor:
    draw = torch.Generator().manual_seed(case.seed)
    return torch.randn(2, 3, case.integer("length"), 4, generator=draw)


@lru_cache(maxsize=64)
def _shards(case: Case) -> list[Tensor]:
    x = _sequence(case)
    held = zigzag(case.integer("size"), x.shape[2])
    return [x[:, :, torch.tensor(mine, dtype=torch.int64)] for mine in held]


def _observe(answer: Any, case: Case) -> Observation:
    return on_ranks(lambda *shards: answer(list(shards)), [tuple(_shards(case))])


def _right(case: Case) -> tuple[Plain, ...]:
    return (_sequence(case),)


def _is(wrong: Back) -> Shows:
    return gives(lambda case: (wrong(_shards(case)),), _right)


def _even(case: Case, _seen: Observation) -> bool:
    """Whether all pieces have one length."""
    return case.integer("length") % (2 * case.integer("size")) == 0


def _end_to_end(shards: list[Tensor]) -> Tensor:
    return torch.cat(shards, 2)


def _order(shards: list[Tensor]) -> Tensor:
    held = zigzag(len(shards), sum(x.shape[2] for x in shards))
    return torch.tensor([token for mine in held for token in mine])


def _layout_again(shards: list[Tensor]) -> Tensor:
    return torch.cat(shards, 2)[:, :, _order(shards)]


def _halves(
    shards: list[Tensor], *, short_first: bool = False
) -> tuple[list[Tensor], list[Tensor]]:
    middles = [(x.shape[2] + (not short_first)) // 2 for x in shards]
    early = [x[:, :, :middle] for x, middle in zip(shards, middles, strict=True)]
    late = [x[:, :, middle:] for x, middle in zip(shards, middles, strict=True)]
    return early, late


def _not_turned(shards: list[Tensor]) -> Tensor:
    early, late = _halves(shards)
    return torch.cat([*early, *late], 2)


def _flipped(shards: list[Tensor]) -> Tensor:
    early, late = _halves(shards)
    return torch.cat([*early, torch.cat(late, 2).flip(2)], 2)


def _short_first(shards: list[Tensor]) -> Tensor:
    early, late = _halves(shards, short_first=True)
    return torch.cat([*early, *reversed(late)], 2)


def _stripes(shards: list[Tensor]) -> Tensor:
    return torch.stack(shards, 3).flatten(2, 3)


def _case(title: str, size: int, length: int, seed: int) -> Case:
    return Case(title, seed=seed, options={"size": size, "length": length})


EXERCISE = Exercise(
    name="unzigzag",
    lesson="05",
    title="The way back",
    minutes=15,
    difficulty=2,
    objective="put the shards of a zig-zag layout together again, whatever the length",
    signature="unzigzag(shards)",
    hints=(
        "Laid end to end the shards have the right shape, and rows of other tokens. Where in the "
        "sequence does row i of that belong?",
        "Two ways. Concatenate the positions of all ranks, and invert that index: "
        "inverse[order] = arange(length), or order.argsort(). Or cut each shard into its early "
        "and its late piece, the early one being the longer if they differ, and lay out all early "
        "pieces in the order of the ranks and all late ones in the opposite order.",
    ),
    checks=(
        Check("sequence", 3, results(_right)),
        Check("arguments", 1, inputs_kept, after="sequence"),
    ),
    cases=(
        _case("1 rank, 5 tokens", 1, 5, 81),
        _case("2 ranks, 8 tokens", 2, 8, 82),
        _case("4 ranks, 24 tokens", 4, 24, 83),
        _case("4 ranks, 13 tokens", 4, 13, 84),
        _case("3 ranks, 23 tokens", 3, 23, 85),
        _case("5 ranks, 3 tokens", 5, 3, 86),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "end_to_end",
            "You laid the shards end to end. The shape is right, and most rows belong to other "
            "tokens: rank 0 holds the last tokens too.",
            _is(_end_to_end),
        ),
        Mistake(
            "layout_again",
            "You applied the layout once more instead of its inverse. `order` says which token a "
            "row holds; to undo it you need the row in which a token is.",
            _is(_layout_again),
        ),
        Mistake(
            "late_pieces_not_turned",
            "The early pieces are right, and the late ones are in the order of the ranks. Rank 0 "
            "has the last piece, so they follow one another the other way round.",
            _is(_not_turned),
        ),
        Mistake(
            "late_half_flipped",
            "You turned the late half token by token. The pieces come in the opposite order, but "
            "inside each of them tokens ascend.",
            _is(_flipped),
        ),
        Mistake(
            "short_piece_first",
            "It is right where the pieces of a shard are of one length. Where they differ, the "
            "early piece is the longer one: the first pieces get one token more.",
            _is(_short_first),
        ),
        Mistake(
            "striped_back",
            "You took a row of each shard in turn. That is the way back from stripes.",
            where(_even, _is(_stripes)),
        ),
    ),
)
