"""What is promised of buffers in flight, sentence by sentence, up to where it ends."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import BufferHazard
from tests.world_virtual.test_hazards import DEVICES, exchange, hop
from tests.world_virtual.verdicts import ORDERS, error_of, verdict

NAMES = (
    "float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz "
    "complex64 complex128 bool int8 int16 int32 int64 uint8 uint16 uint32 uint64"
)
DTYPES = [getattr(torch, name) for name in NAMES.split()]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_whatever_the_dtype_a_touch_is_found_and_data_arrive(dtype, device):
    assert verdict(hop, 2, lambda sent, _: sent.zero_(), device, dtype) == "BufferHazard"
    assert verdict(hop, 2, lambda _, received: received.clone(), device, dtype) == "BufferHazard"
    for received in World(2).run(hop, lambda *_: None, device, dtype):
        assert received.dtype == dtype
        if device == "cpu":
            ones = torch.ones(4).to(dtype).view(torch.uint8)
            assert torch.equal(received.view(torch.uint8), ones)


# ---- staged at the match, written in the wait --------------------------------------------


def matched_but_not_waited_for():
    """Rank 1 looks at its buffer after rank 0 has sent and returned from its wait."""
    if dist.get_rank() == 0:
        x = torch.ones(3)
        dist.send(x, 1)
        x.zero_()  # the message is on its way
        dist.barrier()
        return None
    received = torch.zeros(3)
    memory = received.numpy()
    work = dist.irecv(received, 0)
    dist.barrier()
    before = memory.copy()
    work.wait()
    return before.tolist(), received.tolist()


@pytest.mark.parametrize("order", ORDERS)
def test_data_are_taken_at_the_match_and_come_into_the_buffer_in_the_wait_only(order):
    _, (before, after) = World(2, order=order).run(matched_but_not_waited_for)
    assert all(np.isnan(before))
    assert after == [1.0, 1.0, 1.0]


# ---- what shares no byte -----------------------------------------------------------------


def swapping(device):
    """K and V of two blocks in one allocation: each hop sends one pair and fills the other."""
    room = torch.zeros(2, 2, 5, device=device)
    for step in range(4):
        held, spare = room[step % 2], room[1 - step % 2]
        works = exchange(held, spare)
        k, v = held
        (k * v).sum()
        for work in works:
            work.wait()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("order", ORDERS)
def test_two_halves_of_one_allocation_that_swap_raise_no_alarm(order, device):
    assert verdict(swapping, 3, device, order=order) == "ok"


def gathers_a_part(index):
    x = torch.zeros(6)
    works = exchange(torch.ones(3), x[3:])
    x.index_select(0, torch.tensor(index))
    for work in works:
        work.wait()


def test_an_operator_with_an_index_counts_as_touching_all():
    """The limit on the careful side: which rows an index names is not looked at."""
    assert verdict(gathers_a_part, 2, [0, 1]) == "BufferHazard"


# ---- past the dispatcher -----------------------------------------------------------------


def through_data(touch):
    received = torch.zeros(4)
    works = exchange(torch.ones(4), received)
    touch(received.data)
    for work in works:
        work.wait()


@pytest.mark.parametrize("touch", [lambda x: x.sum(), lambda x: x.fill_(2)], ids=["read", "write"])
def test_data_is_a_view_like_any_other(touch):
    assert verdict(through_data, 2, touch) == "BufferHazard"


def by_numpy(which, write):
    buffers = {"sent": torch.ones(4), "received": torch.zeros(4)}
    memory = buffers[which].numpy()
    works = exchange(buffers["sent"], buffers["received"])
    write(memory)
    for work in works:
        work.wait()
    return buffers["received"].tolist()


def test_a_write_past_torch_is_found_where_it_changes_a_byte():
    for which in ("sent", "received"):
        error = error_of(BufferHazard, by_numpy, 2, which, lambda m: m.__setitem__(2, 5.0))
        assert "something that torch does not see" in str(error)


def test_the_limit_a_write_past_torch_that_changes_nothing_is_not_found():
    assert World(2).run(by_numpy, "sent", lambda m: m.__setitem__(2, 1.0)) == [[1.0] * 4] * 2


def test_the_limit_a_read_past_torch_of_what_is_sent_is_allowed_and_of_what_comes_gets_nan():
    seen = []
    World(2).run(by_numpy, "sent", lambda m: seen.append(m.sum()))
    assert seen == [4.0, 4.0]
    World(2).run(by_numpy, "received", lambda m: seen.append(m.sum()))
    assert np.isnan(seen[2:]).all()


def into_columns(write):
    """Outputs of an all-gather that are columns: their elements do not lie side by side."""
    size = dist.get_world_size()
    out = torch.zeros(3, size)
    memory = out.numpy()
    work = dist.all_gather([out[:, i] for i in range(size)], torch.ones(3), async_op=True)
    write(memory, out)
    work.wait()
    return out.tolist()


def test_the_limit_buffers_with_gaps_have_no_checksum_but_operators_on_them_are_seen():
    assert verdict(into_columns, 2, lambda m, _: m.__setitem__((0, 0), 5.0)) == "ok"
    assert verdict(into_columns, 2, lambda _, x: x.add_(1)) == "BufferHazard"
