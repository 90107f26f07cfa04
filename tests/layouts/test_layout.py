from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ringlab.layout import Contiguous, Interleaved, Layout, Run, Striped, ZigZag
from tests.layouts.cases import (
    EVERY_LAYOUT,
    SHIPPED,
    layouts,
    lengths,
    own_positions,
    owners,
    world_sizes,
)

every_layout = pytest.mark.parametrize("layout", EVERY_LAYOUT, ids=str)
shipped_layout = pytest.mark.parametrize("layout", SHIPPED, ids=str)


def split(layout: Layout, x: torch.Tensor, world_size: int, dim: int = -2) -> list[torch.Tensor]:
    return [layout.shard(x, rank, world_size, dim) for rank in range(world_size)]


@given(layouts, world_sizes, lengths)
def test_positions_are_those_of_the_definition_ascending(
    layout: Layout, world_size: int, length: int
) -> None:
    for rank in range(world_size):
        positions = layout.positions(rank, world_size, length)
        assert positions.dtype == torch.int64
        assert positions.tolist() == own_positions(layout, rank, world_size, length)


@given(layouts, world_sizes, lengths)
def test_lengths_count_the_tokens_of_each_rank(
    layout: Layout, world_size: int, length: int
) -> None:
    placed = owners(layout, world_size, length)
    counts = [placed.count(rank) for rank in range(world_size)]
    assert list(layout.lengths(world_size, length)) == counts
    assert [layout.local_length(rank, world_size, length) for rank in range(world_size)] == counts


@given(layouts, world_sizes, lengths)
def test_owner_is_that_of_the_definition(layout: Layout, world_size: int, length: int) -> None:
    found = [layout.owner(position, world_size, length) for position in range(length)]
    assert found == owners(layout, world_size, length)


@given(layouts, world_sizes, lengths, st.sampled_from([(1, -2), (0, 0), (2, -1), (1, 1)]))
def test_unshard_undoes_shard(
    layout: Layout, world_size: int, length: int, dims: tuple[int, int]
) -> None:
    place, dim = dims
    shape = [2, 3]
    shape.insert(place, length)
    x = torch.arange(6 * length).reshape(shape)
    assert torch.equal(layout.unshard(split(layout, x, world_size, dim), dim), x)


@given(layouts, world_sizes, lengths)
def test_a_shard_holds_the_tokens_at_its_positions(
    layout: Layout, world_size: int, length: int
) -> None:
    x = torch.arange(2 * length).reshape(length, 2)
    for rank in range(world_size):
        expected = [[2 * i, 2 * i + 1] for i in own_positions(layout, rank, world_size, length)]
        assert layout.shard(x, rank, world_size).tolist() == expected


@every_layout
def test_shards_of_strided_inputs_are_contiguous_copies(layout: Layout) -> None:
    x = torch.randn(2, 13, 3, 4).transpose(1, 2)  # [B, H, L, D]
    for rank in range(3):
        part = layout.shard(x, rank, 3)
        assert part.is_contiguous()
        assert part.untyped_storage().data_ptr() != x.untyped_storage().data_ptr()


def test_a_shard_of_everything_is_still_a_copy() -> None:
    x = torch.randn(5, 2)
    Contiguous().shard(x, 0, 1).zero_()
    assert x.count_nonzero() == 10


@every_layout
def test_gradients_come_back_to_the_tokens_they_left(layout: Layout) -> None:
    x = torch.randn(2, 3, 11, 4, dtype=torch.float64, requires_grad=True)
    weights = torch.randn(2, 3, 11, 4, dtype=torch.float64)
    parts = [part * (rank + 1) for rank, part in enumerate(split(layout, x, 4))]
    (layout.unshard(parts) * weights).sum().backward()
    factors = torch.tensor([owner + 1.0 for owner in owners(layout, 4, 11)], dtype=torch.float64)
    assert x.grad is not None
    assert torch.equal(x.grad, weights * factors[:, None])


@every_layout
def test_meta_tensors_are_sharded_and_put_back_by_shape(layout: Layout) -> None:
    x = torch.empty(2, 3, 11, 4, device="meta", dtype=torch.bfloat16)
    parts = split(layout, x, 4)
    assert [part.shape[2] for part in parts] == list(layout.lengths(4, 11))
    back = layout.unshard(parts)
    assert (back.shape, back.dtype, back.device) == (x.shape, x.dtype, x.device)


@every_layout
def test_a_default_device_does_not_reach_the_index_arithmetic(layout: Layout) -> None:
    x = torch.arange(13)
    with torch.device("meta"):
        assert layout.positions(1, 3, 13).device.type == "cpu"
        assert torch.equal(layout.unshard(split(layout, x, 3, -1), -1), x)


def test_layouts_used_under_inference_mode_can_be_trained_with_afterwards() -> None:
    x = torch.randn(7, 2)
    with torch.inference_mode():
        ZigZag().unshard(split(ZigZag(), x, 2))
    leaf = x.clone().requires_grad_()
    ZigZag().unshard(split(ZigZag(), leaf, 2)).square().sum().backward()
    assert leaf.grad is not None
    assert torch.equal(leaf.grad, 2 * x)


def test_layouts_compare_and_hash_by_kind_and_parameters() -> None:
    assert Contiguous() == Contiguous()
    assert Interleaved(4) == Interleaved(4) != Interleaved(8)
    assert Striped() != Interleaved(1)
    assert len({Contiguous(), ZigZag(), Striped(), Interleaved(1), ZigZag(), Interleaved(1)}) == 4


def test_lengths_that_do_not_divide_go_to_the_first_chunks() -> None:
    assert Contiguous().lengths(4, 10) == (3, 3, 2, 2)
    assert [Contiguous().positions(r, 4, 10).tolist() for r in (1, 2)] == [[3, 4, 5], [6, 7]]
    # Chunks of 2, 2, 2, 1, 1, 1, 1, 1; rank 0 owns the first and the last.
    assert ZigZag().lengths(4, 11) == (3, 3, 3, 2)
    assert ZigZag().positions(0, 4, 11).tolist() == [0, 1, 10]


@given(st.integers(1, 50), world_sizes, st.integers(0, 100), st.integers(0, 100))
def test_an_interleaved_token_stays_where_it_is_when_the_sequence_grows(
    block: int, world_size: int, length: int, more: int
) -> None:
    layout = Interleaved(block)
    for rank in range(world_size):
        before = layout.positions(rank, world_size, length).tolist()
        assert layout.positions(rank, world_size, length + more).tolist()[: len(before)] == before


def test_a_million_tokens_take_few_runs() -> None:
    for layout, most in ((Contiguous(), 1), (ZigZag(), 2), (Striped(), 1), (Interleaved(1), 1)):
        assert len(layout.runs(5, 128, 1_000_003)) <= most
    assert len(Interleaved(256).runs(5, 128, 1_000_003)) == 31


@shipped_layout
@pytest.mark.parametrize("length", [17, 31, 1009])
@pytest.mark.parametrize("world_size", [2, 4, 8])
def test_report_c2_prime_lengths_are_split_without_padding(
    layout: Layout, world_size: int, length: int
) -> None:
    x = torch.arange(length)
    assert sum(layout.lengths(world_size, length)) == length
    assert torch.equal(layout.unshard(split(layout, x, world_size, 0), 0), x)


@shipped_layout
@pytest.mark.parametrize("length", [0, 1, 3, 8, 9, 15])
def test_report_c4_sequences_shorter_than_the_world_or_twice_it(
    layout: Layout, length: int
) -> None:
    x = torch.randn(1, 2, length, 3)
    parts = split(layout, x, 8)
    assert [part.shape[2] for part in parts] == list(layout.lengths(8, length))
    assert torch.equal(layout.unshard(parts), x)


@shipped_layout
@pytest.mark.parametrize("world_size", [3, 5, 7, 15])
def test_report_c10_odd_world_sizes(layout: Layout, world_size: int) -> None:
    placed = owners(layout, world_size, 64)
    found = [layout.positions(rank, world_size, 64).tolist() for rank in range(world_size)]
    assert found == [[i for i in range(64) if placed[i] == rank] for rank in range(world_size)]


@shipped_layout
@pytest.mark.parametrize("world_size", [1, 2, 3, 4, 8])
def test_report_e1_sharded_position_ids_are_the_positions(layout: Layout, world_size: int) -> None:
    ids = torch.arange(37)
    for rank in range(world_size):
        positions = layout.positions(rank, world_size, 37)
        assert torch.equal(layout.shard(ids, rank, world_size, dim=-1), positions)


@every_layout
@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((4, 4, 8), "rank 4 is not in a world of 4; ranks are 0 to 3"),
        ((-1, 4, 8), "rank -1 is not in a world of 4"),
        ((0, 0, 8), "world_size is the number of ranks, 1 or more; got 0"),
        ((0, 2, -3), "length is a number of tokens, 0 or more; got -3"),
    ],
)
def test_places_that_do_not_exist_are_refused(
    layout: Layout, place: tuple[int, int, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        layout.positions(*place)
    with pytest.raises(ValueError, match=said):
        layout.local_length(*place)


@shipped_layout
def test_runs_of_a_place_that_does_not_exist_are_refused(layout: Layout) -> None:
    with pytest.raises(ValueError, match="rank 4 is not in a world of 4"):
        layout.runs(4, 4, 8)


def test_a_rank_that_is_no_integer_is_refused() -> None:
    with pytest.raises(TypeError, match=r"rank must be an int; got 1\.5"):
        ZigZag().positions(1.5, 4, 8)  # type: ignore[arg-type]  # the mistake under test


@every_layout
@pytest.mark.parametrize("position", [-1, 8])
def test_a_position_outside_the_sequence_has_no_owner(layout: Layout, position: int) -> None:
    with pytest.raises(ValueError, match=f"position {position} is not in a sequence of 8 tokens"):
        layout.owner(position, 2, 8)


@pytest.mark.parametrize("block", [0, -4, 2.0])
def test_a_block_that_is_no_number_of_tokens_is_refused(block: int) -> None:
    with pytest.raises(ValueError, match="block is a number of tokens, 1 or more"):
        Interleaved(block)


def test_a_dimension_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \[5\] has no dimension -2"):
        Striped().shard(torch.zeros(5), 0, 2)


def test_no_parts_are_refused() -> None:
    with pytest.raises(ValueError, match="one tensor a rank"):
        Striped().unshard([])


def test_parts_in_the_wrong_order_are_refused_where_their_lengths_tell() -> None:
    first, second = split(Contiguous(), torch.zeros(5, 2), 2)
    with pytest.raises(ValueError, match=r"part of rank 0 has shape \[2, 2\], but \[3, 2\] fits"):
        Contiguous().unshard([second, first])


@pytest.mark.parametrize("odd_one", [torch.zeros(2, 3), torch.zeros(2), torch.zeros(1, 2, 2)])
def test_parts_of_another_shape_are_refused(odd_one: torch.Tensor) -> None:
    with pytest.raises(ValueError, match="part of rank 1 has shape"):
        Contiguous().unshard([torch.zeros(2, 2), odd_one])


def test_parts_of_another_dtype_are_refused() -> None:
    with pytest.raises(ValueError, match=r"rank 1 is torch\.float64 on cpu, that of rank 0 torch"):
        Contiguous().unshard([torch.zeros(2, 2), torch.zeros(2, 2, dtype=torch.float64)])


@dataclass(frozen=True)
class Stub(Layout):
    """Gives every rank the same runs, which are mostly wrong."""

    given: tuple[Run, ...]

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        return self.given


@pytest.mark.parametrize(
    "given_runs",
    [
        (Run(4, 1, 2), Run(0, 1, 2)),
        (Run(0, 1, 3), Run(2, 1, 2)),
        (Run(0, 2, 5),),
        (Run(-1, 1, 2),),
        (Run(0, 0, 2),),
    ],
    ids=["descending", "overlapping", "beyond the end", "before the start", "step of 0"],
)
def test_runs_that_do_not_ascend_in_the_sequence_are_refused(given_runs: tuple[Run, ...]) -> None:
    with pytest.raises(ValueError, match=r"Stub.*rank 0 of 2, 8 tokens: Run.* is out of place"):
        Stub(given_runs).positions(0, 2, 8)


def test_a_layout_that_loses_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="places 4 tokens of a sequence of 5 on 2 ranks"):
        Stub((Run(0, 1, 2),)).lengths(2, 5)
    with pytest.raises(ValueError, match="position 3 of 5 to none of 2 ranks"):
        Stub((Run(0, 1, 2),)).owner(3, 2, 5)


def test_a_layout_that_places_one_token_twice_and_one_never_is_refused() -> None:
    with pytest.raises(ValueError, match="position 2 of 4 is on no rank"):
        Stub((Run(0, 1, 2),)).unshard([torch.zeros(2, 1)] * 2)


def test_two_layouts_of_a_plain_class_are_not_taken_for_each_other() -> None:
    class Plain(Layout):
        def __init__(self, start: int) -> None:
            self.start = start

        def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
            return (Run(self.start, 1, 1),)

    assert Plain(0).positions(0, 1, 2).tolist() == [0]
    assert Plain(1).positions(0, 1, 2).tolist() == [1]


@dataclass
class Movable(Layout):
    """Equal by value but free to change, so that no cache may hold it."""

    start: int

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        return (Run(self.start, 1, 1),)


def test_a_layout_that_cannot_be_a_key_is_refused() -> None:
    with pytest.raises(TypeError, match=r"Movable must be hashable: use @dataclass\(frozen=True\)"):
        Movable(0).positions(0, 1, 1)
