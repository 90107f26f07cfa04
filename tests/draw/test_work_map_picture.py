"""Areas of the work map are the counted pairs, for every rank, source and step."""

import itertools

import numpy as np
import pytest

from ringlab.draw import draw_work_map
from ringlab.draw.pairs import regions
from ringlab.layout import Contiguous, Interleaved, Striped, ZigZag
from ringlab.layout.tiles import work

LAYOUTS = [Contiguous(), ZigZag(), Striped(), Interleaved(3)]


def area(path):
    """Of a compound path of polygons, from its corners alone."""
    total = 0.0
    for polygon in path.to_polygons(closed_only=True):
        x, y = np.asarray(polygon).T
        total += abs(np.dot(x[:-1], y[1:]) - np.dot(y[:-1], x[1:])) / 2
    return total


def drawn_areas(axis):
    found = {}
    for patch in axis.patches:
        _, rank, source, _ = patch.get_gid().split("-")
        key = int(rank), int(source)
        found[key] = found.get(key, 0) + area(patch.get_path())
    return found


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("size", "length", "causal"),
    [(1, 9, True), (3, 31, True), (5, 64, True), (8, 4, True), (3, 10, False)],
)
def test_areas_are_the_pairs_of_the_mask(layout, size, length, causal):
    axis = draw_work_map(layout, size, length, causal=causal).figure.axes[0]
    positions = [set(layout.positions(r, size, length).tolist()) for r in range(size)]
    drawn = drawn_areas(axis)
    for rank, source in itertools.product(range(size), repeat=2):
        pairs = sum(q >= k or not causal for q in positions[rank] for k in positions[source])
        assert drawn.get((rank, source), 0) == pytest.approx(pairs)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_each_pair_is_covered_where_it_lies(layout):
    size, length = 3, 20
    found = regions(layout, size, length, causal=True)
    for q, k in itertools.product(range(length), repeat=2):
        covering = [
            region for region in found
            for shape in region.shapes if _inside(shape, k + 0.5, q + 0.5)
        ]  # fmt: skip
        assert len(covering) == (q >= k)
        for region in covering:
            assert q in layout.positions(region.rank, size, length)
            assert k in layout.positions(region.source, size, length)
            assert region.step == (region.rank - region.source) % size


def _inside(shape, x, y):
    """Whether a ray to the right crosses the outline an odd number of times."""
    crossed = 0
    for (ax, ay), (bx, by) in zip(shape, (*shape[1:], shape[0]), strict=True):
        if (ay > y) != (by > y):
            crossed += x < ax + (y - ay) / (by - ay) * (bx - ax)
    return crossed % 2 == 1


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_bars_beside_it_are_the_work_of_ranks_and_steps(layout):
    size, length = 4, 50
    table = work(layout, size, length, causal=True)
    _, ranks, steps = draw_work_map(layout, size, length).figure.axes
    lengths = {bar.get_gid(): bar.get_width() for bar in ranks.patches}
    for rank, step in itertools.product(range(size), repeat=2):
        assert lengths.get(f"work-{rank}-{step}", 0) == table[rank][(rank - step) % size]
    heights = {bar.get_gid(): bar.get_height() for bar in steps.patches}
    for step in range(size):
        busiest = max(table[rank][(rank - step) % size] for rank in range(size))
        assert heights[f"step-{step}"] == busiest


def test_the_title_says_how_even_the_work_is():
    even = draw_work_map(ZigZag(), 4, 64).figure.get_suptitle()
    assert even == "ZigZag: every rank computes the same number of pairs"
    assert "1.74 times the mean" in draw_work_map(Contiguous(), 4, 64).alt


def test_diagonal_and_full_tiles_differ_by_hatch():
    axis = draw_work_map(ZigZag(), 4, 64).figure.axes[0]
    hatches = {p.get_gid().rsplit("-", 1)[1]: p.get_hatch() for p in axis.patches}
    assert set(hatches) == {"full", "diagonal"}
    assert hatches["full"] != hatches["diagonal"]


@pytest.mark.parametrize(
    ("layout", "size", "length", "message"),
    [(ZigZag(), 9, 64, "1 to 8"), (Striped(), 4, 1000, "draw a shorter sequence")],
)
def test_what_cannot_be_drawn_is_refused(layout, size, length, message):
    with pytest.raises(ValueError, match=message):
        draw_work_map(layout, size, length)
