"""Whether two views share a byte, against a count of their bytes one by one."""

from __future__ import annotations

import torch
from hypothesis import example, given
from hypothesis import strategies as st

from ringlab.world.virtual.extents import extent_of, follows, joined, overlap

ROOM = 120


@st.composite
def views(draw):
    """A view of one allocation: offset, shape and strides in elements of 1, 2 or 4 bytes."""
    dtype = draw(st.sampled_from([torch.int8, torch.int16, torch.int32]))
    whole = torch.arange(ROOM, dtype=torch.int8).view(dtype)
    shape = draw(st.lists(st.integers(0, 4), min_size=0, max_size=3))
    strides = [draw(st.integers(0, 7)) for _ in shape]
    reach = sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
    offset = draw(st.integers(0, max(0, whole.numel() - 1 - reach)))
    if offset + reach >= whole.numel():
        shape, strides = [], []
    return dtype, shape, strides, offset


def both(storage, first, second):
    return [storage.view(dtype).as_strided(shape, strides, offset)
            for dtype, shape, strides, offset in (first, second)]  # fmt: skip


def bytes_of(view):
    dtype, shape, strides, offset = view
    item = dtype.itemsize
    places = torch.full((1,), offset) if not shape else (
        offset + sum(
            (torch.arange(n) * s).view([-1] + [1] * (len(shape) - 1 - axis))
            for axis, (n, s) in enumerate(zip(shape, strides, strict=True))
        )
    ).expand(shape).flatten()  # fmt: skip
    return {int(place) * item + byte for place in places for byte in range(item)}


@example((torch.int8, [], [], 1), (torch.int8, [4, 4], [0, 5], 0))  # 16 elements in 16 bytes
@given(views(), views())
def test_overlap_is_exact_for_views_of_any_strides(first, second):
    for device in ("cpu", "meta"):
        storage = torch.zeros(ROOM, dtype=torch.int8, device=device)
        one, other = both(storage, first, second)
        extents = extent_of(one), extent_of(other)
        if None in extents:
            assert one.numel() == 0 or other.numel() == 0
            continue
        assert overlap(*extents) == overlap(*reversed(extents))
        assert overlap(*extents) == bool(bytes_of(first) & bytes_of(second))


def test_tensors_without_data_share_bytes_only_within_one_storage():
    one, other = (torch.empty(4, device="meta") for _ in range(2))
    assert not overlap(extent_of(one), extent_of(other))
    assert overlap(extent_of(one), extent_of(one[1:]))


def test_chunks_follow_each_other_and_join_into_the_whole():
    whole = torch.empty(6, dtype=torch.float64)
    first, second = (extent_of(chunk) for chunk in whole.chunk(2))
    assert follows(first, second)
    assert not follows(second, first)
    assert not follows(first, extent_of(whole[4:]))
    assert joined(first, second)[:4] == extent_of(whole)[:4]


def test_what_takes_too_long_to_decide_counts_as_overlapping():
    """Six interleaved dimensions of sizes with no common factor."""
    one = torch.empty(1 << 22, dtype=torch.int8, device="meta")
    shape = (13, 11, 9, 7, 5, 3)
    a = one.as_strided(shape, (30011, 20011, 10007, 5003, 1009, 503), 0)
    b = one.as_strided(shape, (30013, 20021, 10009, 5009, 1013, 509), 1)
    assert overlap(extent_of(a), extent_of(b)) in (True, False)
