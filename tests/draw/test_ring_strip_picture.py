"""The strip of the ring has one arrow for each send, from the sender's row to the receiver's."""

from collections import Counter

import pytest
from matplotlib.patches import FancyArrowPatch

from ringlab.draw import draw_ring_strip
from ringlab.timeline import Timeline
from tests.draw.made import ring


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_there_is_one_arrow_for_each_send_between_the_rows_of_its_ends(size):
    timeline = ring(size)
    arrows = [
        patch
        for patch in draw_ring_strip(timeline).figure.axes[0].patches
        if isinstance(patch, FancyArrowPatch)
    ]
    drawn = Counter((a._posA_posB[0][1], a._posA_posB[1][1]) for a in arrows)
    assert drawn == Counter((e.rank, e.peer) for e in timeline if e.kind == "send")


def test_boxes_name_the_block_in_hand_and_columns_the_bytes():
    texts = [t.get_text() for t in draw_ring_strip(ring(3)).figure.axes[0].texts]
    assert [t for t in texts if t.startswith("KV")] == [
        "KV 0", "KV 1", "KV 2", "KV 2", "KV 0", "KV 1", "KV 1", "KV 2", "KV 0",
    ]  # fmt: skip
    assert texts.count("3 messages\n1 KiB each") == 2


def test_messages_of_unlike_size_are_given_from_smallest_to_largest():
    timeline = ring(3)
    first = next(n for n, e in enumerate(timeline) if e.kind == "send")
    larger = timeline.events[first]._replace(bytes_out=4096)
    mixed = Timeline(3, (*timeline.events[:first], larger, *timeline.events[first + 1 :]))
    texts = [t.get_text() for t in draw_ring_strip(mixed).figure.axes[0].texts]
    assert "3 messages\n1 KiB to 4 KiB" in texts


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no point-to-point message"):
        draw_ring_strip(Timeline(3))
    with pytest.raises(ValueError, match="up to 12"):
        draw_ring_strip(Timeline(13))
