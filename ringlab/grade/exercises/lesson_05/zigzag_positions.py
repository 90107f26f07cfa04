"""Which tokens a rank has under zig-zag, for any length."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_05.deals import (
    Positions,
    case_of,
    contiguous,
    parts,
    striped,
    zigzag,
)
from ringlab.grade.exercises.lesson_05.tables import rows
from ringlab.grade.formulas import Formula, computes, observe, result
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain
from ringlab.grade.shows import any_of, fails

Deal = Callable[[int, int], Positions]


def _dealt(deal: Deal) -> Formula:
    return lambda size, length: [list[Plain](mine) for mine in deal(size, length)]


def _is(wrong: Deal) -> Shows:
    return computes(_dealt(wrong), _dealt(zigzag))


def _each_once(case: Case, seen: Observation) -> Outcome:
    """Every token is somewhere, and nowhere twice; nothing else is."""
    held: Any = seen.results[0] if seen.results else None
    if not isinstance(held, (list, tuple)) or not all(isinstance(x, (list, tuple)) for x in held):
        return Outcome(False, "a list of lists", f"{held!r:.60}")
    counts = Counter(token for mine in held for token in mine if type(token) is int)
    wanted = range(case.integer("length"))
    missing = [token for token in wanted if not counts[token]]
    double = [token for token in wanted if counts[token] > 1]
    others = sum(map(len, held)) - sum(counts[token] for token in wanted)
    counted = {"missing": missing, "more than once": double}
    told = [f"{what} {tokens[:5]}" for what, tokens in counted.items() if tokens]
    told += [f"{others} entries that are no tokens"] * (others > 0)
    passed = not (missing or double or others) and len(held) == case.integer("size")
    return Outcome(
        passed, "each token on one rank", "each token on one rank" if passed else ", ".join(told)
    )


def _pairs(partner: Callable[[int, int], int]) -> Deal:
    """Piece r and another one of 2 W on rank r."""

    def deal(size: int, length: int) -> Positions:
        pieces = parts(length, 2 * size)
        return [pieces[rank] + pieces[partner(rank, size) % len(pieces)] for rank in range(size)]

    return deal


def _reversed(size: int, length: int) -> Positions:
    pieces = parts(length, 2 * size)
    return [pieces[rank] + pieces[2 * size - 1 - rank][::-1] for rank in range(size)]


def _late_first(size: int, length: int) -> Positions:
    pieces = parts(length, 2 * size)
    return [pieces[2 * size - 1 - rank] + pieces[rank] for rank in range(size)]


def _pieces_of(length: int, ends: list[int]) -> Positions:
    ends = [min(end, length) for end in ends]
    return [list(range(a, b)) for a, b in pairwise(ends)]


def _cut(ends: Callable[[int, int], list[int]]) -> Deal:
    """Zig-zag of pieces that end elsewhere."""

    def deal(size: int, length: int) -> Positions:
        pieces = _pieces_of(length, ends(size, length))
        return [pieces[rank] + pieces[2 * size - 1 - rank] for rank in range(size)]

    return deal


def _down(size: int, length: int) -> list[int]:
    return [piece * (length // (2 * size)) for piece in range(2 * size + 1)]


def _rest_to_the_last(size: int, length: int) -> list[int]:
    return [*_down(size, length)[:-1], length]


def _up(size: int, length: int) -> list[int]:
    return [piece * -(-length // (2 * size)) for piece in range(2 * size + 1)]


def _longer_ones_last(size: int, length: int) -> list[int]:
    return [piece * length // (2 * size) for piece in range(2 * size + 1)]


def _token_by_token(size: int, length: int) -> Positions:
    owner = [*range(size), *reversed(range(size))]
    return [[t for t in range(length) if owner[t % (2 * size)] == rank] for rank in range(size)]


EXERCISE = Exercise(
    name="zigzag_positions",
    lesson="05",
    title="Zig-zag for any length",
    minutes=15,
    difficulty=2,
    objective="deal out a sequence of any length so that every rank has early and late tokens",
    signature="zigzag_positions(size, length)",
    hints=(
        "First cut the sequence into 2 W pieces, and look at nothing but their lengths. Which "
        "pieces does rank r get, if piece 0 and the last piece belong together?",
        "divmod(length, 2 * size) gives the length of the short pieces and how many are longer by "
        "one. Rank r has piece r and piece 2 * size - 1 - r, each in ascending order.",
    ),
    checks=(
        Check("each token once", 1, _each_once),
        Check("positions", 3, rows(result(_dealt(zigzag))), after="each token once"),
    ),
    cases=(
        case_of(1, 5),
        case_of(2, 8),
        case_of(4, 16),
        case_of(4, 13),
        case_of(3, 23),
        case_of(4, 3),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "late_piece_reversed",
            "Each rank has the right tokens, but those of its late piece run backwards. A shard is "
            "in ascending order: its own block is causal as it stands only then.",
            _is(_reversed),
        ),
        Mistake(
            "late_piece_first",
            "Each rank has the right tokens, with the late piece before the early one. A shard is "
            "in ascending order.",
            _is(_late_first),
        ),
        Mistake(
            "remainder_dropped",
            "The last tokens are on no rank: you rounded the length of the pieces down. Pieces may "
            "differ by one token.",
            _is(_cut(_down)),
        ),
        Mistake(
            "remainder_to_the_last_piece",
            "The last piece takes the whole remainder, so rank 0 has more tokens than the others. "
            "Give one more token to each of the first pieces instead.",
            _is(_cut(_rest_to_the_last)),
        ),
        Mistake(
            "rounded_up",
            "You rounded the length of the pieces up. Then the last pieces are short or missing, "
            "and rank 0 has too little. Torch's chunk does that.",
            any_of(_is(_cut(_up)), fails("IndexError")),
        ),
        Mistake(
            "longer_pieces_elsewhere",
            "Your pieces differ by one token at most, but the longer ones do not come first.",
            _is(_cut(_longer_ones_last)),
        ),
        Mistake(
            "mirror_of_w_pieces",
            "You mirrored in the first half: W - 1 - r. There are 2 W pieces, and the mirror image "
            "of piece r is counted from the end of all of them.",
            _is(_pairs(lambda rank, size: size - 1 - rank)),
        ),
        Mistake(
            "off_by_one",
            "The mirror image of piece 0 is the last piece, and pieces are counted from 0: its "
            "number is 2 W - 1.",
            _is(_pairs(lambda rank, size: 2 * size - rank)),
        ),
        Mistake(
            "not_mirrored",
            "Rank r has pieces r and W + r. Then the last rank has the later of both halves, and "
            "most work: the second half must be dealt out backwards.",
            _is(_pairs(lambda rank, size: size + rank)),
        ),
        Mistake(
            "token_by_token",
            "You dealt out single tokens, there and back. That balances too, but it is not this "
            "layout: here a rank has two pieces of neighbours.",
            _is(_token_by_token),
        ),
        Mistake(
            "striped",
            "That is the striped layout, each W-th token. Zig-zag deals out pieces.",
            _is(striped),
        ),
        Mistake(
            "contiguous",
            "Each rank has one stretch of neighbours, so the last one has nearly twice the mean of "
            "the work. Cut 2 W pieces, and give each rank an early and a late one.",
            _is(contiguous),
        ),
    ),
)
