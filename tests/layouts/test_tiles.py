from __future__ import annotations

import time
from math import isqrt

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringlab.layout import Contiguous, Interleaved, Layout, Striped, ZigZag
from ringlab.layout.tiles import (
    Tile,
    keys_needed,
    last_hop,
    needed,
    pairs,
    tile_mask,
    tiles,
    work,
)
from tests.layouts.cases import (
    SHIPPED,
    WORDS,
    Word,
    layouts,
    lengths,
    own_positions,
    world_sizes,
)

# Rank 1 at 5 and 15 climbs rank 0's 0 and 10 in equal steps, but 12 lies before the last.
NEXT_RUN_WITHIN_A_STEP = Word((0, 2, 2, 2, 2, 1, 2, 2, 2, 2, 0, 2, 0, 2, 2, 1))

shipped_layout = pytest.mark.parametrize("layout", SHIPPED, ids=str)


def allowed(
    layout: Layout, rank: int, source: int, world_size: int, length: int, causal: bool
) -> torch.Tensor:
    """Which pairs may be computed, by comparing every position with every other."""
    queries = torch.tensor(own_positions(layout, rank, world_size, length), dtype=torch.long)
    keys = torch.tensor(own_positions(layout, source, world_size, length), dtype=torch.long)
    everything = torch.ones(len(queries), len(keys), dtype=torch.bool)
    return queries[:, None] >= keys[None, :] if causal else everything


def painted(
    layout: Layout, rank: int, source: int, world_size: int, length: int, causal: bool
) -> torch.Tensor:
    """How often the tiles compute each pair."""
    place = (layout, rank, source, world_size, length)
    rows, keys = (layout.local_length(r, world_size, length) for r in (rank, source))
    count = torch.zeros(rows, keys, dtype=torch.long)
    for tile in tiles(*place, causal=causal):
        shape = (len(tile.q), len(tile.k))
        inside = torch.ones(shape, dtype=torch.long)
        if tile.kind == "diagonal":
            inside = inside.tril()
        if tile.kind == "mask":
            inside = tile_mask(*place, tile).long()
        part = count[tile.q.start : tile.q.stop, tile.k.start : tile.k.stop]
        assert part.shape == shape
        part += inside
    return count


def shapes(found: tuple[Tile, ...]) -> list[tuple[str, range, range]]:
    return [(tile.kind, tile.q, tile.k) for tile in found]


@given(layouts, world_sizes, lengths, st.booleans())
@example(NEXT_RUN_WITHIN_A_STEP, 3, 16, True)
def test_tiles_cover_every_allowed_pair_once_and_no_other(
    layout: Layout, world_size: int, length: int, causal: bool
) -> None:
    for rank in range(world_size):
        for source in range(world_size):
            place = (layout, rank, source, world_size, length, causal)
            assert torch.equal(painted(*place), allowed(*place).long())


# Long enough for groups of rows, masks and large tiles of every sort to appear.
@given(
    st.one_of(
        st.integers(1, 400).map(Interleaved),
        st.sampled_from(WORDS),
        st.lists(st.integers(0, 2), min_size=1, max_size=40).map(lambda word: Word(tuple(word))),
        # Stretches short and long beside one another.
        st.lists(
            st.tuples(st.integers(0, 2), st.sampled_from([1, 5, 40, 150])), min_size=2, max_size=6
        ).map(lambda word: Word(tuple(rank for rank, count in word for _ in range(count)))),
    ),
    st.integers(2, 3),
    st.integers(400, 1400),
)
@settings(max_examples=30)
def test_long_staircases_are_covered_exactly(layout: Layout, world_size: int, length: int) -> None:
    for rank in range(world_size):
        source = (rank + 1) % world_size
        place = (layout, rank, source, world_size, length, True)
        assert torch.equal(painted(*place), allowed(*place).long())


@given(layouts, world_sizes, lengths, st.booleans())
def test_the_pairs_of_the_tiles_add_up_to_the_pairs_allowed(
    layout: Layout, world_size: int, length: int, causal: bool
) -> None:
    table = work(layout, world_size, length, causal=causal)
    for rank in range(world_size):
        for source in range(world_size):
            place = (layout, rank, source, world_size, length)
            count = int(allowed(*place, causal).sum())
            assert pairs(*place, causal=causal) == count
            assert sum(tile.pairs for tile in tiles(*place, causal=causal)) == count
            assert table[rank][source] == count


@given(layouts, world_sizes, lengths)
def test_tiles_are_well_formed(layout: Layout, world_size: int, length: int) -> None:
    for rank in range(world_size):
        for source in range(world_size):
            place = (layout, rank, source, world_size, length)
            for tile in tiles(*place, causal=True):
                assert len(tile.q) > 0
                assert len(tile.k) > 0
                assert tile.q.step == tile.k.step == 1
                if tile.kind == "diagonal":
                    assert len(tile.q) == len(tile.k)
                if tile.kind == "mask":
                    assert tile_mask(*place, tile).any(dim=1).all()


@given(layouts, world_sizes, lengths)
def test_tile_mask_is_what_its_kind_says(layout: Layout, world_size: int, length: int) -> None:
    for source in range(world_size):
        place = (layout, world_size - 1, source, world_size, length)
        for tile in tiles(*place, causal=True):
            part = allowed(*place, True)[tile.q.start : tile.q.stop, tile.k.start : tile.k.stop]
            assert torch.equal(tile_mask(*place, tile), part)


@given(layouts, world_sizes, lengths)
def test_a_ranks_own_block_is_one_diagonal_tile(
    layout: Layout, world_size: int, length: int
) -> None:
    for rank in range(world_size):
        own = range(layout.local_length(rank, world_size, length))
        expected = [("diagonal", own, own)] if len(own) else []
        assert shapes(tiles(layout, rank, rank, world_size, length, causal=True)) == expected


@given(layouts, world_sizes, lengths)
def test_without_a_mask_each_block_is_one_full_tile(
    layout: Layout, world_size: int, length: int
) -> None:
    for rank in range(world_size):
        for source in range(world_size):
            rows, keys = (range(layout.local_length(r, world_size, length)) for r in (rank, source))
            expected = [("full", rows, keys)] if len(rows) and len(keys) else []
            found = tiles(layout, rank, source, world_size, length, causal=False)
            assert shapes(found) == expected


@given(world_sizes, lengths)
def test_contiguous_blocks_are_full_or_skipped(world_size: int, length: int) -> None:
    sizes = Contiguous().lengths(world_size, length)
    for rank in range(world_size):
        for source in range(world_size):
            if rank == source:
                continue
            found = tiles(Contiguous(), rank, source, world_size, length, causal=True)
            whole = [("full", range(sizes[rank]), range(sizes[source]))]
            assert shapes(found) == (whole if source < rank and sizes[rank] else [])


@given(world_sizes, lengths)
def test_zigzag_blocks_are_one_full_tile_of_half_a_block(world_size: int, length: int) -> None:
    size, longer = divmod(length, 2 * world_size)
    half = [size + (rank < longer) for rank in range(world_size)]
    whole = ZigZag().lengths(world_size, length)
    for rank in range(world_size):
        for source in range(world_size):
            if source < rank:
                q, k = range(whole[rank]), range(half[source])
            elif source > rank:
                q, k = range(half[rank], whole[rank]), range(whole[source])
            else:
                continue
            found = tiles(ZigZag(), rank, source, world_size, length, causal=True)
            assert shapes(found) == ([("full", q, k)] if len(q) and len(k) else [])


@pytest.mark.parametrize("layout", [Striped(), Interleaved(1)], ids=str)
@given(world_size=world_sizes, length=lengths)
def test_striped_blocks_are_one_diagonal_tile_and_strict_for_later_sources(
    layout: Layout, world_size: int, length: int
) -> None:
    sizes = layout.lengths(world_size, length)
    for rank in range(world_size):
        for source in range(world_size):
            shift = int(source > rank)
            side = sizes[rank] - shift
            # A tile of one pair may be called full.
            kinds = ("diagonal",) if side > 1 or rank == source else ("full", "diagonal")
            found = tiles(layout, rank, source, world_size, length, causal=True)
            if side <= 0:
                assert found == ()
                continue
            [tile] = found
            assert tile.kind in kinds
            assert (tile.q, tile.k) == (range(shift, shift + side), range(side))


def test_interleaved_with_large_blocks_is_plain_full_tiles() -> None:
    found = tiles(Interleaved(256), 1, 0, 2, 2048 + 100, causal=True)
    assert shapes(found) == [
        ("full", range(256 * i, 256 * (i + 1)), range(256 * (i + 1))) for i in range(4)
    ]


def test_interleaved_with_small_blocks_is_a_rectangle_and_a_mask_for_each_group_of_rows() -> None:
    found = tiles(Interleaved(16), 1, 0, 2, 512, causal=True)
    # 256 rows in blocks of 16: the first sees 16 keys, the eighth 128, the ninth 144.
    assert shapes(found) == [
        ("full", range(128), range(16)),
        ("mask", range(16, 128), range(16, 128)),
        ("full", range(128, 256), range(144)),
        ("mask", range(144, 256), range(144, 256)),
    ]


@pytest.mark.parametrize(
    "layout", [Interleaved(2), Interleaved(7), Interleaved(130), *WORDS], ids=str
)
@pytest.mark.parametrize("length", [300, 3000, 30_000])
def test_staircases_take_few_tiles_and_linear_memory(layout: Layout, length: int) -> None:
    for rank in range(3):
        for source in range(3):
            place = (layout, rank, source, 3, length)
            rows, keys = (layout.local_length(r, 3, length) for r in (rank, source))
            found = tiles(*place, causal=True)
            masks = [len(tile.q) * len(tile.k) for tile in found if tile.kind == "mask"]
            assert len(found) <= 8 + 4 * isqrt(rows)
            assert max(masks, default=0) <= max(128 * 128, rows + keys)


@given(layouts, world_sizes, lengths, st.booleans())
def test_needed_keys_are_those_that_some_query_may_see(
    layout: Layout, world_size: int, length: int, causal: bool
) -> None:
    for rank in range(world_size):
        for source in range(world_size):
            place = (layout, rank, source, world_size, length)
            seen = int(allowed(*place, causal).any(dim=0).sum())
            assert keys_needed(*place, causal=causal) == seen
            assert needed(*place, causal=causal) == (seen > 0)
            assert bool(tiles(*place, causal=causal)) == (seen > 0)


@given(layouts, world_sizes, lengths, st.booleans())
def test_last_hop_is_the_farthest_rank_on_the_ring_that_needs_the_block(
    layout: Layout, world_size: int, length: int, causal: bool
) -> None:
    for source in range(world_size):
        hops = [
            hop
            for hop in range(1, world_size)
            if allowed(
                layout, (source + hop) % world_size, source, world_size, length, causal
            ).any()
        ]
        found = last_hop(layout, source, world_size, length, causal=causal)
        assert found == max(hops, default=0)


def test_an_empty_block_is_needed_by_nobody() -> None:
    assert last_hop(Contiguous(), 3, 4, 2, causal=False) == 0
    assert tiles(Contiguous(), 3, 0, 4, 2, causal=True) == ()
    assert tiles(Contiguous(), 0, 3, 4, 2, causal=False) == ()


@shipped_layout
@pytest.mark.parametrize("length", [1, 5, 9, 31, 97])
def test_report_c2_and_c4_tiles_of_lengths_that_do_not_divide(layout: Layout, length: int) -> None:
    for rank in range(8):
        for source in range(8):
            place = (layout, rank, source, 8, length, True)
            assert torch.equal(painted(*place), allowed(*place).long())


@shipped_layout
@pytest.mark.parametrize("world_size", [3, 5, 7, 15])
def test_report_c10_tiles_of_odd_worlds(layout: Layout, world_size: int) -> None:
    total = sum(map(sum, work(layout, world_size, 101, causal=True)))
    assert total == 101 * 102 // 2
    for rank in range(world_size):
        place = (layout, rank, (rank + 1) % world_size, world_size, 101, True)
        assert torch.equal(painted(*place), allowed(*place).long())


@pytest.mark.parametrize("layout", [Contiguous(), ZigZag(), Striped()], ids=str)
def test_a_million_tokens_on_128_ranks_are_planned_in_seconds(layout: Layout) -> None:
    start = time.perf_counter()
    count = sum(
        len(tiles(layout, rank, source, 128, 1_000_081, causal=True))
        for rank in range(128)
        for source in range(128)
    )
    assert time.perf_counter() - start < 5  # usually below half a second
    assert count == (128 * 129 // 2 if layout == Contiguous() else 128 * 128)


def test_tiles_are_planned_once() -> None:
    first = tiles(Interleaved(3), 1, 0, 2, 1000, causal=True)
    assert tiles(Interleaved(3), 1, 0, 2, 1000, causal=True) is first


def test_a_diagonal_tile_that_is_not_square_is_refused() -> None:
    with pytest.raises(ValueError, match="a diagonal tile is square; got 3 rows and 2 keys"):
        Tile(range(3), range(2), "diagonal")


def test_a_mask_of_rows_that_the_rank_does_not_have_is_refused() -> None:
    tile = Tile(range(2, 6), range(2), "mask")
    with pytest.raises(ValueError, match="rows 2 to 6 are not among the 4 tokens of rank 1"):
        tile_mask(Striped(), 1, 0, 2, 8, tile)


@pytest.mark.parametrize("source", [-1, 4])
def test_a_source_outside_the_world_is_refused(source: int) -> None:
    said = f"rank {source} is not in a world of 4"
    with pytest.raises(ValueError, match=said):
        tiles(ZigZag(), 0, source, 4, 16, causal=True)
    with pytest.raises(ValueError, match=said):
        pairs(ZigZag(), 0, source, 4, 16, causal=False)
    with pytest.raises(ValueError, match=said):
        needed(ZigZag(), 0, source, 4, 16, causal=True)
    with pytest.raises(ValueError, match=said):
        keys_needed(ZigZag(), 0, source, 4, 16, causal=True)
    with pytest.raises(ValueError, match=said):
        last_hop(ZigZag(), source, 4, 16, causal=True)


def test_the_class_of_a_layout_in_place_of_an_instance_is_refused() -> None:
    with pytest.raises(TypeError, match=r"an instance of a Layout, such as ZigZag\(\); got <class"):
        tiles(ZigZag, 0, 1, 4, 16, causal=True)  # type: ignore[arg-type]  # the mistake under test
