"""Buffers that are touched between the start of an operation and its wait."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as funcol

from ringlab.world import World
from ringlab.world.errors import BufferHazard
from tests.world_virtual.verdicts import ORDERS, error_of, line_of, verdict

DEVICES = ("cpu", "meta")


def exchange(sent, received):
    """A hop in a ring: send to the next rank, receive from the one before."""
    rank, size = dist.get_rank(), dist.get_world_size()
    return dist.batch_isend_irecv(
        [
            dist.P2POp(dist.isend, sent, group_peer=(rank + 1) % size),
            dist.P2POp(dist.irecv, received, group_peer=(rank - 1) % size),
        ]
    )


def hop(touch, device="cpu", dtype=torch.float32):
    """Exchange two tensors and touch them meanwhile; what the receive brought."""
    sent, received = torch.ones(4, device=device).to(dtype), torch.zeros(4, device=device).to(dtype)
    works = exchange(sent, received)
    touch(sent, received)
    for work in works:
        work.wait()
    return received


WRITES_TO_WHAT_IS_SENT = {
    "in place": lambda sent, _: sent.add_(1),
    "through a view": lambda sent, _: sent[1:].mul_(2),
    "through .data": lambda sent, _: sent.data.zero_(),
    "by indexing": lambda sent, _: sent.__setitem__(0, 3.0),
    "as out=": lambda sent, _: torch.add(torch.ones_like(sent), 1, out=sent),
    "as one of many": lambda sent, _: torch._foreach_add_(
        [torch.ones(2, device=sent.device), sent], 1.0
    ),
    "through the storage": lambda sent, _: sent.untyped_storage().fill_(1),
    "by a copy": lambda sent, _: sent.copy_(torch.ones_like(sent)),
}
TOUCHES_OF_WHAT_IS_RECEIVED = {
    "read": lambda _, received: received + 1,
    "read on the host": lambda _, received: received.sum().item(),
    "read through a view": lambda _, received: received.view(2, 2).T.contiguous(),
    "read as one of many": lambda _, received: torch.cat([torch.ones_like(received), received]),
    "read by name": lambda _, received: torch.addmm(
        torch.ones(2, 2, device=received.device), mat1=received.view(2, 2), mat2=torch.ones_like(
            received).view(2, 2)),
    "written": lambda _, received: received.zero_(),
}  # fmt: skip


ONLY_WITH_DATA = {"read on the host", "through the storage", "as out="}  # torch: or takes 10 s


def on_every_device(ways):
    """Each way on each device that it is possible on."""
    return [(way, d) for way in ways for d in DEVICES if d == "cpu" or way not in ONLY_WITH_DATA]


@pytest.mark.parametrize(("way", "device"), on_every_device(WRITES_TO_WHAT_IS_SENT))
def test_writing_to_a_buffer_that_is_being_sent_is_an_error(way, device):
    error = error_of(BufferHazard, hop, 2, WRITES_TO_WHAT_IS_SENT[way], device)
    assert (error.rank, error.operation) == (0, "send to rank 1")
    assert "rank 0 writes a buffer that a send in flight reads: [4] float32" in str(error)


@pytest.mark.parametrize(("way", "device"), on_every_device(TOUCHES_OF_WHAT_IS_RECEIVED))
def test_touching_a_buffer_that_is_being_received_is_an_error(way, device):
    error = error_of(BufferHazard, hop, 2, TOUCHES_OF_WHAT_IS_RECEIVED[way], device)
    assert (error.rank, error.operation) == (0, "recv from rank 1")
    does = "writes" if way == "written" else "reads"
    assert f"rank 0 {does} a buffer that a recv in flight fills" in str(error)


ALLOWED = {
    "reading what is sent": lambda sent, _: sent.sum(),
    "looking at shapes": lambda _, received: (received.shape, received.stride(), received.numel()),
    "views": lambda sent, received: (received.view(2, 2).T, sent.detach(), received[1:]),
    "a new tensor like it": lambda _, received: (
        torch.empty_like(received), torch.zeros_like(received), received.new_ones(3),
        torch.rand_like(received)),
    "other tensors": lambda sent, _: torch.ones(3, device=sent.device).mul_(2),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("way", ALLOWED)
def test_what_touches_no_data_and_reading_what_is_sent_is_allowed(way, device):
    assert verdict(hop, 2, ALLOWED[way], device) == "ok"


def two_lines():
    x = torch.ones(3)
    if dist.get_rank() == 0:
        work = dist.isend(x, 1)
        x.mul_(2)
        work.wait()
    else:
        dist.recv(x, 0)


@pytest.mark.parametrize("order", ORDERS)
def test_the_error_names_both_lines_and_what_to_do(order):
    error = error_of(BufferHazard, two_lines, 2, order=order)
    assert error.issued == line_of(two_lines, "dist.isend")
    assert error.touched == line_of(two_lines, "x.mul_")
    text = str(error)
    assert f"{error.issued}: `work = dist.isend(x, 1)`" in text
    assert f"aten::mul_ at {error.touched}: `x.mul_(2)`" in text
    assert "Call wait() on the send first, or use another buffer meanwhile." in text


# ---- views of one allocation -------------------------------------------------------------


def halves(device):
    """The two halves of one allocation swap: each step sends one and receives into the other."""
    both = torch.zeros(2, 3, device=device)
    for step in range(3):
        held, spare = both[step % 2], both[1 - step % 2]
        works = exchange(held, spare)
        held.sum()
        for work in works:
            work.wait()
        spare.add_(1)


def interleaved(device):
    """What is received lies between the columns that are computed on."""
    x = torch.zeros(8, 4, device=device)
    work = exchange(torch.ones(4, device=device), x[3])
    x[:, :][4:].add_(1)
    x[::2].add_(1)
    x[0:3, 1::2].mul_(2)
    x.view(2, 4, 4)[:, :3].sum()
    for each in work:
        each.wait()


def interleaved_and_touching(device):
    x = torch.zeros(8, 4, device=device)
    work = exchange(torch.ones(4, device=device), x[3])
    x[1::2].add_(1)
    for each in work:
        each.wait()


@pytest.mark.parametrize("device", DEVICES)
def test_views_that_share_no_byte_raise_no_alarm(device):
    assert verdict(halves, 3, device) == "ok"
    assert verdict(interleaved, 3, device) == "ok"
    assert verdict(interleaved_and_touching, 3, device) == "BufferHazard"


def same_memory_twice():
    x = torch.ones(3)
    alias = torch.from_numpy(x.numpy())
    works = exchange(x, torch.zeros(3))
    alias.add_(1)
    for work in works:
        work.wait()


def test_a_second_tensor_over_the_same_memory_is_the_same_buffer():
    assert verdict(same_memory_twice, 2) == "BufferHazard"


def freed():
    received = torch.zeros(2)
    works = exchange(torch.full((2,), dist.get_rank() + 1.0), received)
    others = [torch.full((2,), 9.0) for _ in range(50)]
    for work in works:
        work.wait()
    return received.tolist(), len(others)


def test_a_buffer_whose_name_is_gone_is_kept_until_it_has_been_sent():
    assert World(2).run(freed) == [([2.0, 2.0], 50), ([1.0, 1.0], 50)]


# ---- a second operation on the same buffer -----------------------------------------------


def isend_and_irecv(which):
    x, y, peer = torch.ones(4), torch.zeros(4), 1 - dist.get_rank()
    calls = {
        "send and receive": [(dist.isend, x), (dist.irecv, x)],
        "receive and send": [(dist.irecv, x), (dist.isend, x)],
        "two receives": [(dist.irecv, x[:3]), (dist.irecv, x[2:]), (dist.isend, y[:3]),
                         (dist.isend, y[2:])],
        "two sends": [(dist.isend, x), (dist.isend, x), (dist.irecv, y[:]),
                      (dist.irecv, torch.zeros(4))],
    }  # fmt: skip
    works = [call(buffer, peer) for call, buffer in calls[which]]
    for work in works:
        work.wait()


@pytest.mark.parametrize("which", ["send and receive", "receive and send", "two receives"])
def test_a_second_operation_on_a_buffer_in_flight_is_an_error(which):
    error = error_of(BufferHazard, isend_and_irecv, 2, which, order="host")
    assert "rank 0 begins a" in str(error)
    assert "before the second begins" in str(error)


def test_two_sends_may_read_one_buffer():
    assert verdict(isend_and_irecv, 2, "two sends", order="host") == "ok"


# ---- collectives -------------------------------------------------------------------------


def collective(which, touch):
    size = dist.get_world_size()
    x, out = torch.ones(4), torch.zeros(4 * size)
    work = {
        "all_reduce": lambda: dist.all_reduce(x, async_op=True),
        "broadcast": lambda: dist.broadcast(x, 0, async_op=True),
        "all_gather": lambda: dist.all_gather(list(out.chunk(size)), x, async_op=True),
        "reduce_scatter": lambda: dist.reduce_scatter(x, list(out.chunk(size)), async_op=True),
        "all_to_all": lambda: dist.all_to_all(
            list(torch.zeros(size, 4)), list(out.chunk(size)), async_op=True),
    }[which]()  # fmt: skip
    touch(x, out)
    work.wait()


TOUCHES = {
    ("all_reduce", "reads", "fills"): lambda x, _: x.sum(),
    ("broadcast", "writes", "fills"): lambda x, _: x.zero_(),
    ("all_gather", "writes", "reads"): lambda x, _: x.zero_(),
    ("all_gather", "reads", "fills"): lambda _, out: out[-1] + 1,
    ("reduce_scatter", "reads", "fills"): lambda x, _: x + 1,
    ("reduce_scatter", "writes", "reads"): lambda _, out: out.zero_(),
    ("all_to_all", "writes", "reads"): lambda _, out: out[3:5].zero_(),
}


@pytest.mark.parametrize("touch", TOUCHES)
def test_the_buffers_of_an_asynchronous_collective_are_watched(touch):
    name, does, uses = touch
    error = error_of(BufferHazard, collective, 3, name, TOUCHES[touch])
    assert f"rank 0 {does} a buffer that a" in str(error)
    assert f"{name} in flight {uses}" in str(error)


def test_reading_what_a_collective_only_reads_is_allowed():
    assert verdict(collective, 3, "all_gather", lambda x, _: x.sum()) == "ok"
    assert verdict(collective, 3, "reduce_scatter", lambda _, out: out.sum()) == "ok"


def in_place_gather():
    """The input is the rank's own part of the output, as NCCL allows and FSDP does it."""
    rank, size = dist.get_rank(), dist.get_world_size()
    out = torch.zeros(size, 2)
    out[rank] = rank + 1.0
    dist.all_gather(list(out), out[rank], async_op=True).wait()
    return out[:, 0].tolist()


def test_an_output_may_hold_the_input_of_the_same_call():
    assert World(3).run(in_place_gather) == [[1.0, 2.0, 3.0]] * 3


def one_tensor_many_times():
    dist.all_gather([torch.zeros(2)] * dist.get_world_size(), torch.ones(2))


def test_outputs_that_are_one_tensor_many_times_are_refused():
    error = error_of(BufferHazard, one_tensor_many_times, 3)
    assert "outputs that share memory" in str(error)
    assert error.issued == line_of(one_tensor_many_times, "dist.all_gather")


def functional():
    x = torch.full((2,), dist.get_rank() + 1.0)
    total = funcol.all_reduce(x, "sum", dist.group.WORLD)
    x.add_(1)  # a functional collective has its own copy
    return (total + 1).tolist()  # waits by itself


def test_functional_collectives_raise_no_alarm():
    assert World(3).run(functional) == [[7.0, 7.0]] * 3


# ---- where operators are called ----------------------------------------------------------


class Doubles(torch.autograd.Function):
    """Touches in backward what an operation that forward began still uses."""

    @staticmethod
    def forward(ctx, x, received):
        ctx.received = received
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.received, None


def reads_in_backward():
    x, received = torch.ones(4, requires_grad=True), torch.zeros(4)
    works = exchange(torch.ones(4), received)
    Doubles.apply(x, received).sum().backward()
    for work in works:
        work.wait()


def test_backward_is_watched():
    error = error_of(BufferHazard, reads_in_backward, 2)
    assert error.touched == line_of(Doubles.backward, "grad * ctx.received")


def in_inference_mode(touch):
    with torch.inference_mode():
        hop(touch)


def test_inference_mode_is_watched_and_composite_operators_in_it():
    assert verdict(in_inference_mode, 2, lambda *_: None) == "ok"
    assert verdict(in_inference_mode, 2, lambda sent, _: sent.add_(1)) == "BufferHazard"
    uses = lambda _, received: torch.nn.functional.linear(received, torch.ones(3, 4))  # noqa: E731
    assert verdict(in_inference_mode, 2, uses) == "BufferHazard"


def saved_for_backward():
    """The send reads what autograd has saved, and backward reads it again: nothing is written."""
    w = torch.ones(4, requires_grad=True)
    x = torch.ones(4)
    y = (w * x).sum()
    received = torch.empty(4)
    works = exchange(x, received)
    y.backward()
    for work in works:
        work.wait()
    return w.grad.tolist(), received.tolist()


def test_tensors_that_autograd_saved_may_be_sent():
    assert World(2).run(saved_for_backward) == [([1.0] * 4, [1.0] * 4)] * 2


def caught():
    x = torch.ones(3)
    work = dist.isend(x, 1 - dist.get_rank())
    try:
        x.add_(1)
    except Exception:
        return "went on"
    work.wait()


def test_a_program_cannot_swallow_the_error():
    assert verdict(caught, 2) == "BufferHazard"
