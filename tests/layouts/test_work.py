"""The closed forms of causal work and of what each rank needs, with equal shards."""

from __future__ import annotations

from fractions import Fraction

import pytest

from ringlab.layout import Contiguous, Layout, Striped, ZigZag
from ringlab.layout.tiles import keys_needed, last_hop, pairs, tiles, work

worlds = pytest.mark.parametrize("world_size", [1, 2, 3, 4, 5, 8])
L = 960  # divides by 2 * W for each of these world sizes


def per_rank(layout: Layout, world_size: int, length: int) -> list[int]:
    return [sum(row) for row in work(layout, world_size, length, causal=True)]


def per_step(layout: Layout, world_size: int, length: int) -> list[list[int]]:
    """Pairs of each rank at each step of a ring: at step t rank r holds block (r - t) % W."""
    table = work(layout, world_size, length, causal=True)
    ranks = range(world_size)
    return [[table[r][(r - step) % world_size] for r in ranks] for step in ranks]


def skipped(layout: Layout, world_size: int, length: int) -> list[int]:
    """Blocks that each rank has no work on."""
    ranks = range(world_size)
    return [
        sum(not tiles(layout, rank, source, world_size, length, causal=True) for source in ranks)
        for rank in ranks
    ]


# Whole blocks in the future (C28)


@pytest.mark.parametrize(
    ("world_size", "share"), [(2, Fraction(1, 4)), (4, Fraction(3, 8)), (8, Fraction(7, 16))]
)
def test_contiguous_skips_a_fixed_share_of_the_blocks(world_size: int, share: Fraction) -> None:
    assert skipped(Contiguous(), world_size, L) == list(reversed(range(world_size)))
    assert Fraction(sum(skipped(Contiguous(), world_size, L)), world_size**2) == share


@worlds
def test_contiguous_skips_at_step_t_on_rank_r_exactly_if_t_exceeds_r(world_size: int) -> None:
    for step, row in enumerate(per_step(Contiguous(), world_size, L)):
        assert [pairs == 0 for pairs in row] == [step > rank for rank in range(world_size)]


@worlds
@pytest.mark.parametrize("layout", [ZigZag(), Striped()], ids=str)
def test_balanced_layouts_skip_no_block(layout: Layout, world_size: int) -> None:
    assert skipped(layout, world_size, L) == [0] * world_size


@worlds
def test_zigzag_skips_half_of_every_other_ranks_block(world_size: int) -> None:
    block = (L // world_size) ** 2
    for rank, row in enumerate(work(ZigZag(), world_size, L, causal=True)):
        assert [2 * n for source, n in enumerate(row) if source != rank] == [block] * (
            world_size - 1
        )


# Skipping work does not shorten the path, and blocks may stop early (C29)


@worlds
def test_contiguous_takes_as_long_as_its_busiest_rank_at_each_step(world_size: int) -> None:
    c = L // world_size
    path = sum(map(max, per_step(Contiguous(), world_size, L)))
    assert path == (world_size - 1) * c**2 + c * (c + 1) // 2


@worlds
def test_early_stop_sends_half_of_all_messages(world_size: int) -> None:
    hops = [last_hop(Contiguous(), j, world_size, L, causal=True) for j in range(world_size)]
    assert hops == [world_size - 1 - source for source in range(world_size)]
    assert sum(hops) == world_size * (world_size - 1) // 2


@worlds
def test_early_stop_leaves_the_wrap_link_idle_and_the_last_link_as_busy(world_size: int) -> None:
    received = [0] * world_size
    for source in range(world_size):
        for hop in range(1, last_hop(Contiguous(), source, world_size, L, causal=True) + 1):
            received[(source + hop) % world_size] += 1
    assert received == list(range(world_size))


@worlds
@pytest.mark.parametrize("layout", [ZigZag(), Striped()], ids=str)
def test_balanced_layouts_cannot_stop_a_block_early(layout: Layout, world_size: int) -> None:
    hops = [last_hop(layout, j, world_size, L, causal=True) for j in range(world_size)]
    assert hops == [world_size - 1] * world_size


# Who needs what (C30)


def need(layout: Layout, world_size: int, length: int) -> list[int]:
    """Remote tokens that each rank needs."""
    ranks = range(world_size)
    return [
        sum(keys_needed(layout, r, s, world_size, length, causal=True) for s in ranks if s != r)
        for r in ranks
    ]


def share_needed(layout: Layout, world_size: int, length: int) -> Fraction:
    return Fraction(sum(need(layout, world_size, length)), (world_size - 1) * length)


@worlds
def test_contiguous_rank_r_needs_r_blocks(world_size: int) -> None:
    c = L // world_size
    assert need(Contiguous(), world_size, L) == [rank * c for rank in range(world_size)]


@worlds
def test_zigzag_rank_r_needs_2w_minus_2_minus_r_chunks(world_size: int) -> None:
    c = L // (2 * world_size)
    expected = [(2 * world_size - 2 - rank) * c for rank in range(world_size)]
    assert need(ZigZag(), world_size, L) == expected


@pytest.mark.parametrize("world_size", [2, 3, 4, 5, 8])
def test_shares_of_the_remote_tokens_needed(world_size: int) -> None:
    assert share_needed(Contiguous(), world_size, L) == Fraction(1, 2)
    assert share_needed(ZigZag(), world_size, L) == Fraction(3, 4)
    assert share_needed(Striped(), world_size, 32 * world_size) == Fraction(63, 64)


def chunk_hops(world_size: int, direction: int) -> Fraction:
    """Share of a ring's traffic if each half of a zig-zag block stops where it is last needed."""
    half = L // (2 * world_size)
    total = 0
    for source in range(world_size):
        for keys_below in (0, half):
            total += max(
                hop
                for hop in range(world_size)
                if hop == 0
                or keys_needed(
                    ZigZag(),
                    (source + direction * hop) % world_size,
                    source,
                    world_size,
                    L,
                    causal=True,
                )
                > keys_below
            )
    return Fraction(total, 2 * world_size * (world_size - 1))


@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_zigzag_halves_that_stop_early_save_little_unless_the_ring_is_reversed(
    world_size: int,
) -> None:
    assert chunk_hops(world_size, +1) == 1 - Fraction(1, 2 * world_size)
    assert chunk_hops(world_size, -1) == Fraction(3, 4)


# Imbalance (C31)


@worlds
def test_contiguous_work_per_rank(world_size: int) -> None:
    c = L // world_size
    expected = [rank * c**2 + c * (c + 1) // 2 for rank in range(world_size)]
    assert per_rank(Contiguous(), world_size, L) == expected


@pytest.mark.parametrize(
    ("world_size", "expected"),
    [
        (2, [528, 1552]),
        (4, [136, 392, 648, 904]),
        (8, [36, 100, 164, 228, 292, 356, 420, 484]),
    ],
)
def test_contiguous_work_of_64_tokens(world_size: int, expected: list[int]) -> None:
    assert per_rank(Contiguous(), world_size, 64) == expected


@worlds
@pytest.mark.parametrize("length", [960, 960_000])
def test_contiguous_imbalance_nears_two_minus_one_rank(world_size: int, length: int) -> None:
    ranks = per_rank(Contiguous(), world_size, length)
    ratio = Fraction(max(ranks) * world_size, sum(ranks))
    c = length // world_size
    assert ratio == Fraction((2 * world_size - 1) * c + 1, length + 1)
    assert ratio == pytest.approx(2 - 1 / world_size, rel=1 / length)


# Balance (C32)


@worlds
def test_zigzag_work_is_the_same_on_every_rank_at_every_step(world_size: int) -> None:
    c = L // (2 * world_size)
    own, *others = per_step(ZigZag(), world_size, L)
    assert own == [2 * c**2 + c] * world_size
    assert others == [[2 * c**2] * world_size] * (world_size - 1)
    assert per_rank(ZigZag(), world_size, L) == [2 * world_size * c**2 + c] * world_size


@pytest.mark.parametrize(("world_size", "expected"), [(2, 1040), (4, 520), (8, 260)])
def test_zigzag_work_of_64_tokens(world_size: int, expected: int) -> None:
    assert per_rank(ZigZag(), world_size, 64) == [expected] * world_size


def test_zigzag_pairs_of_256_tokens_on_4_ranks() -> None:
    assert per_rank(ZigZag(), 4, 256) == [8224] * 4


@worlds
def test_striped_work_per_rank(world_size: int) -> None:
    c = L // world_size
    expected = [c * (world_size * c + 2 * r + 2 - world_size) // 2 for r in range(world_size)]
    assert per_rank(Striped(), world_size, L) == expected


@pytest.mark.parametrize(
    ("world_size", "expected"),
    [(2, [1024, 1056]), (4, [496, 512, 528, 544]), (8, list(range(232, 289, 8)))],
)
def test_striped_work_of_64_tokens(world_size: int, expected: list[int]) -> None:
    assert per_rank(Striped(), world_size, 64) == expected


@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("length", [64, 1024])
def test_striped_imbalance(world_size: int, length: int) -> None:
    ranks = per_rank(Striped(), world_size, length)
    assert Fraction(max(ranks) * world_size, sum(ranks)) == Fraction(
        length + world_size, length + 1
    )


def test_striped_steps_differ_by_one_diagonal() -> None:
    counts = {n for row in per_step(Striped(), 4, 64) for n in row}
    assert counts == {120, 136}


@pytest.mark.parametrize(("world_size", "leaked"), [(2, 32), (4, 96), (8, 224)])
def test_an_inclusive_diagonal_everywhere_would_leak_the_future(
    world_size: int, leaked: int
) -> None:
    c = 64 // world_size
    inclusive = c * (c + 1) // 2
    extra = sum(
        inclusive - pairs(Striped(), rank, source, world_size, 64, causal=True)
        for rank in range(world_size)
        for source in range(world_size)
    )
    assert extra == leaked == world_size * (world_size - 1) // 2 * c
