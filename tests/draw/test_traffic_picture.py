"""Cells of the matrix are the bytes of the edges; bars of the hops are those of the hops."""

import pytest

from ringlab.draw import draw_hops, draw_traffic
from ringlab.timeline import Timeline
from tests.draw.made import event, ring


def cells(picture):
    axis = picture.figure.axes[0]
    texts = {t.get_position(): t.get_text() for t in axis.texts}
    return {
        patch.get_gid(): texts[round(patch.get_x() + 0.47, 6), round(patch.get_y() + 0.46, 6)]
        for patch in axis.patches
        if patch.get_gid()
    }


def test_each_edge_is_a_cell_with_its_bytes_from_row_to_column():
    picture = draw_traffic(ring(3))
    assert cells(picture) == {f"edge-{r}-{(r + 1) % 3}": "2\nKiB" for r in range(3)}
    for patch in picture.figure.axes[0].patches:
        if patch.get_gid():
            _, source, target = patch.get_gid().split("-")
            assert round(patch.get_y() + 0.46) == int(source)
            assert round(patch.get_x() + 0.47) == int(target)


def test_bytes_of_collectives_stand_in_a_column_of_their_own():
    events = [event(r, "collective", out=1024 * (r + 1), into=1) for r in range(2)]
    picture = draw_traffic(Timeline(2, tuple(events)))
    assert cells(picture) == {"collective-0": "1\nKiB", "collective-1": "2\nKiB"}
    assert "All bytes move in collectives" in picture.alt


def test_the_finding_tells_a_ring_from_other_patterns():
    assert "neighbour alone" in draw_traffic(ring(4)).alt
    star = Timeline(3, tuple(event(0, "send", peer=p, out=8) for p in (1, 2)))
    assert "2 of 6 edges carry messages" in draw_traffic(star).alt


@pytest.mark.parametrize(
    ("timeline", "message"), [(Timeline(2), "nothing was sent"), (Timeline(13), "up to 12")]
)
def test_what_cannot_be_drawn_is_refused(timeline, message):
    with pytest.raises(ValueError, match=message):
        draw_traffic(timeline)


def test_bars_are_the_bytes_of_each_hop_and_marks_the_formula():
    axis = draw_hops(ring(4), [1024, 2048, 1024], rank=2).figure.axes[0]
    assert [bar.get_height() * 1024 for bar in axis.patches] == [1024] * 3
    assert [mark * 2048 for mark in axis.lines[0].get_ydata()] != [1024, 2048, 1024]
    assert "Not all bars agree" in axis.get_title()
    assert axis.get_ylabel() == "sent by rank 2 (KiB)"


def test_agreement_is_told():
    assert "Every bar ends where its formula puts it" in draw_hops(ring(4), [1024] * 3).alt


def test_a_formula_of_another_number_of_hops_is_refused():
    with pytest.raises(ValueError, match="made 3 hops and the formula has 2"):
        draw_hops(ring(4), [1024] * 2)
