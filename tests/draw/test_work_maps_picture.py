"""Several work maps side by side: the work of the steps is counted and has one scale."""

import pytest

from ringlab.draw import draw_work_maps
from ringlab.layout import Contiguous, Striped, ZigZag

LAYOUTS = [Contiguous(), ZigZag(), Striped()]


def busiest(layout, size, length, step):
    def pairs(rank):
        queries = layout.positions(rank, size, length)
        keys = layout.positions((rank - step) % size, size, length)
        return (keys <= queries[:, None]).sum().item()

    return max(pairs(rank) for rank in range(size))


def test_bars_below_are_the_busiest_rank_of_each_step_on_one_scale():
    axes = draw_work_maps(LAYOUTS, 3, 13).figure.axes
    for layout, axis in zip(LAYOUTS, axes[3:], strict=True):
        heights = [bar.get_height() for bar in axis.patches]
        assert heights == [busiest(layout, 3, 13, step) for step in range(3)]
    assert len({axis.get_ylim() for axis in axes[3:]}) == 1


def test_the_title_says_whose_steps_are_shortest():
    told = draw_work_maps(LAYOUTS, 4, 16).figure.get_suptitle()
    assert told == "The steps of ZigZag add up to 59 % of those of Contiguous"
    same = draw_work_maps([ZigZag(), ZigZag()], 4, 16).figure.get_suptitle()
    assert same == "The steps add up to the same"


@pytest.mark.parametrize(
    ("layouts", "size", "message"),
    [(LAYOUTS[:1], 4, "give 2 to 4"), (LAYOUTS * 2, 4, "give 2 to 4"), (LAYOUTS, 9, "1 to 8")],
)
def test_what_cannot_be_drawn_side_by_side_is_refused(layouts, size, message):
    with pytest.raises(ValueError, match=message):
        draw_work_maps(layouts, size, 16)
