"""The picture of the ring says what the timeline says."""

import io

import pytest
import torch
import torch.distributed as dist
from matplotlib.patches import FancyArrowPatch
from PIL import Image

from ringlab import Timeline, World
from ringlab.draw import draw_ring
from ringlab.draw.ring_steps import ring_steps


def pass_on(direction):
    rank, size = dist.get_rank(), dist.get_world_size()
    held = torch.full((3,), float(rank))
    seen = [rank]
    for _ in range(size - 1):
        arriving = torch.empty(3)
        for handle in dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, held, group_peer=(rank + direction) % size),
                dist.P2POp(dist.irecv, arriving, group_peer=(rank - direction) % size),
            ]
        ):
            handle.wait()
        held = arriving
        seen.append(int(held[0]))
    return seen


def ring_timeline(size, direction=1):
    world = World(size)
    seen = world.run(pass_on, direction)
    return world.timeline, seen


@pytest.mark.parametrize("size", [2, 3, 5, 8])
@pytest.mark.parametrize("direction", [1, -1])
def test_the_block_in_hand_is_the_one_the_rank_really_received(size, direction):
    timeline, seen = ring_timeline(size, direction)
    steps = ring_steps(timeline)
    assert [[held[rank] for held, _ in steps] for rank in range(size)] == seen


@pytest.mark.parametrize("size", [2, 4, 5, 12])
def test_there_is_one_arrow_for_each_send(size):
    timeline, _ = ring_timeline(size)
    figure = draw_ring(timeline).figure
    arrows = [
        patch
        for axis in figure.axes
        for patch in axis.patches
        if isinstance(patch, FancyArrowPatch)
    ]
    assert len(arrows) == timeline.count("send") == size * (size - 1)


def test_labels_name_ranks_blocks_and_bytes():
    timeline, _ = ring_timeline(3)
    texts = [t.get_text() for axis in draw_ring(timeline).figure.axes for t in axis.texts]
    assert texts.count("12 B") == timeline.count("send")
    assert texts.count("rank 1") == 3
    assert texts.count("KV 1") == 3


def test_no_two_rank_boxes_touch_up_to_the_largest_ring():
    timeline, _ = ring_timeline(12)
    axis = draw_ring(timeline).figure.axes[0]
    spots = [t.get_position() for t in axis.texts if t.get_text().startswith("KV")]
    apart = min(
        max(abs(ax - bx) / 0.68, abs(ay - by) / 0.52)
        for i, (ax, ay) in enumerate(spots)
        for bx, by in spots[:i]
    )
    assert apart > 1


def test_a_notebook_gets_a_png_and_words(tmp_path):
    timeline, _ = ring_timeline(4)
    picture = draw_ring(timeline)
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert "ring of 4 ranks" in metadata["image/png"]["alt"]
    with Image.open(io.BytesIO(picture.save(tmp_path / "ring.png").read_bytes())) as image:
        assert image.width > 1000


def test_the_words_say_where_each_block_ends():
    timeline, seen = ring_timeline(3)
    for rank in range(3):
        assert f"rank {rank} holds KV {seen[rank][-1]}" in draw_ring(timeline).alt


def test_a_timeline_without_messages_is_refused():
    with pytest.raises(ValueError, match="no point-to-point message"):
        draw_ring(Timeline(3))


def test_too_many_ranks_are_refused():
    with pytest.raises(ValueError, match="up to 12"):
        draw_ring(Timeline(13))


@pytest.mark.parametrize("direction", [1, -1])
def test_byte_labels_stand_beside_their_arrows_whichever_way_the_ring_turns(direction):
    timeline, _ = ring_timeline(4, direction)
    axis = draw_ring(timeline).figure.axes[0]
    arrows = [p for p in axis.patches if isinstance(p, FancyArrowPatch)]
    labels = [t.get_position() for t in axis.texts if t.get_text() == "12 B"]
    for arrow in arrows:
        (ax, ay), (bx, by) = arrow._posA_posB
        middle = arrow.get_connectionstyle()((ax, ay), (bx, by), shrinkA=0, shrinkB=0).vertices[1]
        nearest = min((x - middle[0]) ** 2 + (y - middle[1]) ** 2 for x, y in labels)
        assert nearest < 0.5**2
