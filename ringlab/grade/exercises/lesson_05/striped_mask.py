"""Which keys of another rank a rank's queries may see, with stripes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_05.deals import case_of
from ringlab.grade.exercises.lesson_05.tables import rows
from ringlab.grade.formulas import Formula, computes, observe, result
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain

Mask = Callable[[int, int, int, int], Tensor]
"""From rank, source, number of ranks and length to [Lq, Lk]."""


def _observe(answer: Any, case: Case) -> Observation:
    return observe(_masks(answer), case)


def _rows(rank: int, size: int, length: int) -> Tensor:
    return torch.arange(rank, length, size)


def _allowed(rank: int, source: int, size: int, length: int) -> Tensor:
    return _rows(source, size, length) <= _rows(rank, size, length)[:, None]


def _masks(mask: Mask) -> Formula:
    """The mask of every rank and source."""

    def every(size: int, length: int) -> list[Plain]:
        ranks = range(size)
        return [[mask(rank, source, size, length) for source in ranks] for rank in ranks]

    return every


def _is(wrong: Mask) -> Shows:
    return computes(_masks(wrong), _masks(_allowed))


def _no_leak(case: Case, seen: Observation) -> Outcome:
    """No query sees a key that is later."""
    size, length = case.integer("size"), case.integer("length")
    found: Any = seen.results[0]
    for rank in range(size):
        for source in range(size):
            early = found[rank][source] & ~_allowed(rank, source, size, length)
            if early.any():
                query, key = early.nonzero()[0].tolist()
                told = f"token {rank + query * size} sees token {source + key * size}"
                return Outcome(False, "no key that is later than the query", told)
    return Outcome(True, "no key that is later", "no key that is later")


def _shapes(case: Case, seen: Observation) -> Outcome:
    """Boolean tensors of the right shapes, not all of them false."""
    size, length = case.integer("size"), case.integer("length")
    found: Any = seen.results[0]
    if not isinstance(found, list) or [len(row) for row in found] != [size] * size:
        return Outcome(False, "a mask for every rank and source", "something else")
    for rank in range(size):
        for source in range(size):
            wanted = list(_allowed(rank, source, size, length).shape)
            got = found[rank][source]
            if not isinstance(got, Tensor) or got.dtype != torch.bool or list(got.shape) != wanted:
                kind = (
                    f"{got.dtype} {list(got.shape)}" if isinstance(got, Tensor) else f"{got!r:.40}"
                )
                where = f"rank {rank}, keys of rank {source}"
                return Outcome(False, f"torch.bool {wanted}", f"{where}: {kind}")
    some = any(bool(mask.any()) for row in found for mask in row)
    return Outcome(some, "masks that let something through", "boolean masks" if some else "none")


def _triangle(rank: int, source: int, size: int, length: int, diagonal: int) -> Tensor:
    return torch.ones_like(_allowed(rank, source, size, length)).tril(diagonal)


def _included(rank: int, source: int, size: int, length: int) -> Tensor:
    return _triangle(rank, source, size, length, 0)


def _excluded(rank: int, source: int, size: int, length: int) -> Tensor:
    return _triangle(rank, source, size, length, -1)


def _rule_turned(rank: int, source: int, size: int, length: int) -> Tensor:
    return _triangle(rank, source, size, length, -1 if source < rank else 0)


def _own_excluded(rank: int, source: int, size: int, length: int) -> Tensor:
    return _triangle(rank, source, size, length, -1 if source >= rank else 0)


def _everything(rank: int, source: int, size: int, length: int) -> Tensor:
    return torch.ones_like(_allowed(rank, source, size, length))


def _future(rank: int, source: int, size: int, length: int) -> Tensor:
    return _rows(source, size, length) >= _rows(rank, size, length)[:, None]


def _forbidden(rank: int, source: int, size: int, length: int) -> Tensor:
    return ~_allowed(rank, source, size, length)


def _by_rank(rank: int, source: int, size: int, length: int) -> Tensor:
    if source == rank:
        return _included(rank, source, size, length)
    return torch.full_like(_allowed(rank, source, size, length), source < rank)


def _of_one_length(rank: int, source: int, size: int, length: int) -> Tensor:
    return _allowed(rank, source, size, length // size * size)


def _padded(rank: int, source: int, size: int, length: int) -> Tensor:
    return _allowed(rank, source, size, -(-length // size) * size)


EXERCISE = Exercise(
    name="striped_mask",
    lesson="05",
    title="The mask of a striped ring",
    minutes=15,
    difficulty=3,
    objective="say which keys of any rank a query may see under stripes, without a leak",
    signature="striped_mask(rank, source, size, length)",
    hints=(
        "At which position of the sequence does row i of rank r stand? Compare two such positions "
        "for a source before the rank, and for one after it.",
        "Row i of rank r is token r + i * W. Row i of a later rank is later than row i of this "
        "one, so there the diagonal is excluded. torch.arange(rank, length, size) has all of a "
        "rank's positions, and the right number of them.",
    ),
    checks=(
        Check("shape", 1, _shapes),
        Check("no leak", 2, _no_leak, after="shape"),
        Check("mask", 2, rows(result(_masks(_allowed))), after="no leak"),
    ),
    cases=(
        case_of(1, 4),
        case_of(2, 6),
        case_of(3, 12),
        case_of(4, 15),
        case_of(5, 7),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "diagonal_everywhere",
            "Your mask includes the diagonal for every source. Keys of a later rank in the same "
            "row are one to W - 1 tokens later than the query: a leak, and the last rank does not "
            "show it.",
            _is(_included),
        ),
        Mistake(
            "diagonal_nowhere",
            "Your mask excludes the diagonal for every source. Nothing leaks, but a token no "
            "longer sees itself, nor the tokens just before it on earlier ranks.",
            _is(_excluded),
        ),
        Mistake(
            "rule_turned",
            "The rule is turned round: the diagonal is excluded for later sources, and included "
            "for earlier ones and for the rank itself.",
            _is(_rule_turned),
        ),
        Mistake(
            "not_itself",
            "For its own keys the rank excludes the diagonal. A token sees itself.",
            _is(_own_excluded),
        ),
        Mistake(
            "no_mask",
            "Every query sees every key. Under stripes every tile is a triangle.",
            _is(_everything),
        ),
        Mistake(
            "future_instead",
            "Your queries see the keys that are later, and not those that are earlier. Rows are "
            "queries, columns keys.",
            _is(_future),
        ),
        Mistake(
            "true_where_forbidden",
            "Your mask is True where a query may not see a key. Some functions want that; here "
            "True means that it may.",
            _is(_forbidden),
        ),
        Mistake(
            "by_rank_alone",
            "You let all keys of earlier ranks through, and none of later ones. That is the mask "
            "of contiguous tokens; with stripes every rank has early and late tokens.",
            _is(_by_rank),
        ),
        Mistake(
            "ranks_of_one_length",
            "All your masks are square, from length // size. If the length does not divide, the "
            "first ranks have one token more.",
            _is(_of_one_length),
        ),
        Mistake(
            "padded",
            "All your masks are square, with the length rounded up. Tokens that do not exist have "
            "no row and no column.",
            _is(_padded),
        ),
    ),
)
