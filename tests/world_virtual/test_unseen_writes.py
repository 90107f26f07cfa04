"""What touches a buffer in flight and torch does not see: a checksum and poison stand behind."""

from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import BufferHazard
from tests.world_virtual.test_hazards import exchange
from tests.world_virtual.verdicts import ORDERS, error_of, line_of, verdict


def by_numpy(x):
    memory = x.numpy()
    return lambda: memory.__setitem__(0, 7.0)


def by_pointer(x):
    value = np.array([7.0], dtype=np.float32)
    return lambda: ctypes.memmove(x.data_ptr(), value.ctypes.data, 4)


WAYS = {"numpy": by_numpy, "pointer": by_pointer}


def hop(way, which):
    buffers = {"sent": torch.ones(3), "received": torch.zeros(3)}
    touch = WAYS[way](buffers[which])
    works = exchange(buffers["sent"], buffers["received"])
    touch()
    for work in works:
        work.wait()


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", ["sent", "received"])
def test_a_write_that_torch_does_not_see_is_found_in_the_wait(which, way, order):
    error = error_of(BufferHazard, hop, 2, way, which, order=order)
    uses = "a send in flight reads" if which == "sent" else "a recv in flight fills"
    assert f"has written a buffer that {uses}" in str(error)
    assert error.issued.startswith("test_hazards.py")
    assert error.touched == line_of(hop, "work.wait()")


def swaps_two_elements():
    x = torch.tensor([1.0, 2.0])
    memory = x.numpy()
    works = exchange(x, torch.zeros(2))
    memory[:] = memory[::-1].copy()
    for work in works:
        work.wait()


def test_the_checksum_knows_the_order():
    assert verdict(swaps_two_elements, 2) == "BufferHazard"


def peeks(dtype):
    received = torch.zeros(3, dtype=dtype)
    works = exchange(torch.ones(3, dtype=dtype), received)
    seen = received.tolist()  # reads memory without an operator
    for work in works:
        work.wait()
    return seen, received.tolist()


@pytest.mark.parametrize(
    ("dtype", "poison"),
    [(torch.float32, math.nan), (torch.bfloat16, math.nan), (torch.int64, -1), (torch.uint8, 255),
     (torch.bool, True)],
)  # fmt: skip
def test_a_read_that_torch_does_not_see_gets_nan_or_minus_one_and_never_old_data(dtype, poison):
    for seen, received in World(2).run(peeks, dtype):
        assert all(value == poison or value != value for value in seen), seen
        assert math.isnan(poison) == any(value != value for value in seen)
        assert received == [1, 1, 1]


def keeps_what_it_sends():
    """An in-place collective reads its buffer until the wait, so nothing may be put into it."""
    x = torch.full((2,), dist.get_rank() + 1.0)
    memory = x.numpy()
    work = dist.all_reduce(x, async_op=True)
    before = float(memory[0])
    work.wait()
    return before, x.tolist()


def test_a_buffer_that_is_sent_and_filled_keeps_its_contents_until_the_wait():
    assert World(2).run(keeps_what_it_sends) == [(1.0, [3.0, 3.0]), (2.0, [3.0, 3.0])]


def compiled_by_inductor():
    @torch.compile(backend="inductor")
    def step(x):
        return x.add_(1).mul_(2)

    step(torch.ones(3))
    x = torch.ones(3)
    works = exchange(x, torch.zeros(3))
    step(x)
    for work in works:
        work.wait()


def test_what_inductor_would_compile_runs_operator_by_operator_on_a_rank_and_is_seen():
    torch._dynamo.reset()
    error = error_of(BufferHazard, compiled_by_inductor, 2)
    assert "writes a buffer that a send in flight reads" in str(error)
    assert error.touched == line_of(compiled_by_inductor, "return x.add_").replace(
        "compiled_by_inductor", "step"
    )


def compiled_operator_by_operator():
    x = torch.ones(3)
    works = exchange(x, torch.zeros(3))
    torch.compile(lambda t: t.add_(1).mul_(2), backend="eager")(x)
    for work in works:
        work.wait()


def test_code_that_is_compiled_operator_by_operator_is_seen():
    torch._dynamo.reset()
    error = error_of(BufferHazard, compiled_operator_by_operator, 2)
    assert "writes a buffer that a send in flight reads" in str(error)


def peeks_without_data():
    received = torch.zeros(3, device="meta")
    works = exchange(torch.ones(3, device="meta"), received)
    for work in works:
        work.wait()
    return received.device.type


def test_where_there_are_no_data_nothing_is_sealed():
    assert World(2).run(peeks_without_data) == ["meta", "meta"]
