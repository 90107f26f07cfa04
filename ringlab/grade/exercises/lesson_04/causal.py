"""What the causal rings share: right results, the work that is needed, mistaken masks."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake, Outcome
from ringlab.grade.exercises.lesson_03.ring import inputs, shards
from ringlab.grade.exercises.lesson_03.ring_mistakes import FAILED
from ringlab.grade.numbers import close
from ringlab.grade.observation import Observation
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results, any_of, gives
from ringlab.grade.windows import work_of

FULL, OWN, NONE = "full", "own", "none"
Rule = Callable[[int, int, int], str]
"""What ``rule(rank, owner, world_size)`` lets a rank see of a block: everything, what lies on and
below the diagonal, or nothing."""


def causal(rank: int, owner: int, _size: int) -> str:
    """The right rule, for parts of neighbouring tokens."""
    return OWN if owner == rank else FULL if owner < rank else NONE


def masked(rule: Rule, diagonal: int = 0) -> Results:
    """What every rank returns by this rule; `diagonal` -1 hides a position from itself."""

    def each(case: Case) -> tuple[Plain, ...]:
        size, tokens = case.world_size, case.integer("tokens")
        ones = torch.ones(tokens, tokens, dtype=torch.bool)
        seen = {FULL: ones, OWN: ones.tril(diagonal), NONE: ~ones}
        ranks = range(size)
        rows = [torch.cat([seen[rule(r, owner, size)] for owner in ranks], 1) for r in ranks]
        whole = inputs(case)
        out = exact_attention(*whole, allowed=torch.cat(rows)).out.to(whole.q.dtype)
        return tuple(out.chunk(size, dim=2))

    return each


right = lru_cache(maxsize=64)(masked(causal))


def tile_flops(case: Case) -> int:
    """FLOPs of the two products of one tile, computed whole."""
    q, k, _ = shards(case)[0]
    return 4 * q.numel() * k.shape[2]


def work(case: Case, seen: Observation) -> Outcome:
    """Rank r computes r + 1 tiles at most."""
    tile = tile_flops(case)
    for rank in range(case.world_size):
        tiles = work_of(seen.timeline, rank) / tile
        if tiles > rank + 1:
            return Outcome(
                False,
                f"rank {rank} computes {rank + 1} of {case.world_size} tiles",
                f"rank {rank} computed as much as {tiles:g} tiles take",
            )
    return Outcome(True, "no work for empty tiles", "no work for empty tiles")


def exact(case: Case, seen: Observation) -> bool:
    """Whether the run ended, with right numbers."""
    return seen.failure is None and close(seen.results, right(case))


def _everything(_rank: int, _owner: int, _size: int) -> str:
    return FULL


def _earlier_whole(rank: int, owner: int, _size: int) -> str:
    return FULL if owner <= rank else NONE


def _own_everywhere(_rank: int, _owner: int, _size: int) -> str:
    return OWN


def _own_on_earlier(rank: int, owner: int, _size: int) -> str:
    return OWN if owner <= rank else NONE


def _later_ones(rank: int, owner: int, _size: int) -> str:
    return OWN if owner == rank else FULL if owner > rank else NONE


def _other_way(rank: int, owner: int, size: int) -> str:
    """The rule for the owner that a ring in the other direction would bring."""
    return causal(rank, (2 * rank - owner) % size, size)


def _without(rows: Callable[[int, int], int], fill: float) -> Results:
    """Strictly masked; the first ``rows(rank, size)`` rows of a rank come out as `fill`."""

    def each(case: Case) -> tuple[Plain, ...]:
        outs = masked(causal, -1)(case)
        for rank, out in enumerate(outs):
            assert isinstance(out, Tensor)
            out[:, :, : rows(rank, case.world_size)] = fill
        return outs

    return each


def _first_of_all(rank: int, _size: int) -> int:
    return int(rank == 0)


def _first_of_each(_rank: int, _size: int) -> int:
    return 1


def _not_a_number(case: Case) -> tuple[Plain, ...]:
    """NaN on every rank that meets an empty tile: all but the last."""
    *some, last = (out for out in right(case) if isinstance(out, Tensor))
    return (*(torch.full_like(out, torch.nan) for out in some), last)


OF_RINGS = (
    "unmatched_last_send",
    "send_before_receive",
    "receives_into_what_is_sent",
    "reads_before_wait",
    "handle_not_waited_for",
)
STALLS = tuple(mistake for mistake in FAILED if mistake.name in OF_RINGS)

MASKS = (
    Mistake(
        "nan_from_empty_rows",
        "Every rank but the last returns NaN. A tile of which nothing is allowed has no maximum "
        "and no sum of weights: its softmax is 0 / 0, and NaN times a weight of 0 is NaN. Skip "
        "such a tile; then there is nothing to merge.",
        gives(_not_a_number, right),
    ),
    Mistake(
        "no_mask",
        "There is no mask: every query sees all keys, the later ones too.",
        gives(masked(_everything), right),
    ),
    Mistake(
        "own_block_not_masked",
        "Blocks of later ranks are skipped, but within its own block a query sees later keys. The "
        "diagonal tile needs a mask.",
        gives(masked(_earlier_whole), right),
    ),
    Mistake(
        "own_mask_on_every_block",
        "The mask of the own block lies on the blocks of other ranks as well. Row and column of a "
        "tile are no positions: of an earlier rank's block everything is allowed.",
        any_of(gives(masked(_own_everywhere), right), gives(masked(_own_on_earlier), right)),
    ),
    Mistake(
        "a_position_does_not_see_itself",
        "A position does not see itself: your mask is strict. The very first query then has no "
        "key at all. Allowed is key <= query.",
        any_of(
            gives(masked(causal, -1), right),
            gives(_without(_first_of_all, torch.nan), right),
            gives(_without(_first_of_each, torch.nan), right),
        ),
    ),
    Mistake(
        "skips_the_earlier_ones",
        "You skip the blocks of earlier ranks, and compute with those of later ones. Earlier "
        "ranks hold earlier tokens, and those are what a query sees.",
        gives(masked(_later_ones), right),
    ),
    Mistake(
        "wrong_owner",
        "What you skip is chosen as if the ring turned the other way. In step t a rank that sends "
        "to the next one has the block of rank (rank - t) % W.",
        gives(masked(_other_way), right),
    ),
)
"""Mistakes that show in the numbers."""
