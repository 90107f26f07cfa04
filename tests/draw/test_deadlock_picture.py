"""The graph of a deadlock has one arrow for each wait, and the line of code of each."""

import pytest
import torch
import torch.distributed as dist
from matplotlib.patches import FancyArrowPatch

from ringlab import Deadlock, World
from ringlab.draw import draw_deadlock
from tests.draw.specimens import deadlock, deadlock_with_bystanders, peer_left


def send_first():
    rank, size = dist.get_rank(), dist.get_world_size()
    dist.send(torch.ones(3), (rank + 1) % size)
    dist.recv(torch.empty(3), (rank - 1) % size)


def arrows(picture):
    """For each arrow its number, the ranks at its ends, and whether it is solid."""
    axis = picture.figure.axes[0]
    centres = {
        patch.center: int(patch.get_gid().removeprefix("rank-"))
        for patch in axis.patches
        if (patch.get_gid() or "").startswith("rank-")
    }
    return {
        int(patch.get_gid().removeprefix("wait-")): (
            centres[patch.patchA.center], centres[patch.patchB.center],
            patch.get_linestyle() in ("-", "solid"),
        )
        for patch in axis.patches
        if isinstance(patch, FancyArrowPatch)
    }  # fmt: skip


@pytest.mark.parametrize("size", [2, 3, 8])
def test_each_wait_of_the_cycle_is_a_solid_arrow_to_the_rank_waited_for(size):
    drawn = arrows(draw_deadlock(deadlock(size)))
    assert drawn == {rank + 1: (rank, (rank + 1) % size, True) for rank in range(size)}


def test_a_rank_that_waits_for_itself_has_a_loop():
    picture = draw_deadlock(deadlock(1))
    loops = [p for p in picture.figure.axes[0].patches if isinstance(p, FancyArrowPatch)]
    assert [loop.get_gid() for loop in loops] == ["wait-1"]
    assert "Rank 0 waits for itself" in picture.alt


def test_ranks_outside_the_cycle_wait_on_dashed_arrows():
    drawn = arrows(draw_deadlock(deadlock_with_bystanders()))
    assert [drawn[number] for number in (4, 5, 6)] == [(5, 4, False), (4, 2, False), (3, 2, False)]


def test_no_two_ranks_share_a_place():
    axis = draw_deadlock(deadlock_with_bystanders()).figure.axes[0]
    places = [p.center for p in axis.patches if (p.get_gid() or "").startswith("rank-")]
    for n, (x, y) in enumerate(places):
        assert all(abs(x - a) + abs(y - b) > 0.6 for a, b in places[:n])


def test_each_number_leads_to_its_line_of_code():
    listing = draw_deadlock(deadlock(3)).figure.axes[1]
    lines = [t.get_text() for t in listing.texts if "waits for" in t.get_text()]
    assert lines[2] == "rank 2 waits for rank 0: send to rank 0\nring.py:7 in my_ring"


def test_a_deadlock_of_a_real_run_is_drawn_with_its_lines():
    with pytest.raises(Deadlock) as caught:
        World(4).run(send_first)
    picture = draw_deadlock(caught.value)
    assert sorted(ends[:2] for ends in arrows(picture).values()) == [
        (0, 1), (1, 2), (2, 3), (3, 0),
    ]  # fmt: skip
    assert picture.alt.count("test_deadlock_picture.py") == 4
    assert "in send_first" in picture.alt


def test_a_rank_that_left_is_named():
    assert "Rank 2 has returned, and rank 1 waits for it" in draw_deadlock(peer_left()).alt


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="carries no waits"):
        draw_deadlock(Deadlock("bare"))
    with pytest.raises(ValueError, match="at most 12"):
        draw_deadlock(deadlock(13))
