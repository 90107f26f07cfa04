"""Calls that are wrong whatever the other ranks do: refused where they are made."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.distributed as dist
from torch._subclasses import FakeTensorMode

from ringlab.world.errors import BadCall, RankFailed
from tests.world_virtual.verdicts import ORDERS, error_of, line_of

STRIDED = torch.arange(12.0).view(3, 4)


def send_strided():
    dist.send(STRIDED.t(), 1 - dist.get_rank())


def receive_strided():
    dist.recv(STRIDED[:, :2], 1 - dist.get_rank())


def reduce_strided():
    dist.all_reduce(STRIDED.t())


def broadcast_strided():
    dist.broadcast(STRIDED.t(), 0)


def scatter_strided():
    parts = [STRIDED[:, i] for i in range(2)] if dist.get_rank() == 0 else None
    dist.scatter(torch.empty(3), parts, src=0)


def gather_into_strided():
    out = torch.empty(6, 4).t()
    dist.all_gather_single(out, torch.ones(12)) if hasattr(
        dist, "all_gather_single"
    ) else dist.all_gather_into_tensor(out, torch.ones(12))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    "program",
    [
        send_strided,
        receive_strided,
        reduce_strided,
        broadcast_strided,
        scatter_strided,
        gather_into_strided,
    ],
)
def test_buffers_must_be_contiguous(program, order):
    error = error_of(RankFailed, program, 2, order=order)
    assert isinstance(error.__cause__, BadCall)
    assert "contiguous" in str(error)
    assert f"rank {error.rank} failed: BadCall: " in str(error)


def send_to_cuda():
    with FakeTensorMode():
        x = torch.empty(2, device="cuda")
    dist.send(x, 1 - dist.get_rank())


def reduce_on_cuda():
    with FakeTensorMode():
        x = torch.empty(2, device="cuda")
    dist.all_reduce(x)


@pytest.mark.parametrize("program", [send_to_cuda, reduce_on_cuda])
def test_cuda_tensors_are_refused_with_a_pointer_to_the_world_that_takes_them(program):
    error = error_of(RankFailed, program, 2)
    assert isinstance(error.__cause__, BadCall)
    assert "World(size, backend='nccl')" in str(error)


def reduce_sparse():
    dist.all_reduce(torch.ones(3).to_sparse())


def two_dtypes():
    dist.all_gather_into_tensor(torch.empty(4), torch.ones(2, dtype=torch.float64))


def two_places():
    dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2, device="meta"))


def unknown_reduction():
    dist.all_reduce(torch.ones(1), op=dist._make_nccl_premul_sum(2.0))


def bits_of_floats():
    dist.all_reduce(torch.ones(1), op=dist.ReduceOp.BAND)


def wrong_output_size():
    dist.all_gather_into_tensor(torch.empty(5), torch.ones(2))


def wrong_number_of_outputs():
    dist.all_gather([torch.empty(2)], torch.ones(2))


def wrong_shape_of_outputs():
    dist.all_gather([torch.empty(2), torch.empty(3)], torch.ones(2))


def wrong_splits():
    dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 2], [3, 2])


def does_not_divide():
    dist.all_to_all_single(torch.empty(3), torch.ones(3))


def wrong_number_to_all():
    dist.all_to_all([torch.empty(2)] * 3, [torch.ones(2)] * 3)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("program", "said"),
    [
        (reduce_sparse, "send dense tensors"),
        (two_dtypes, "all buffers of a call must have one dtype"),
        (two_places, "[2] float32 on meta"),
        (unknown_reduction, "no reduction PREMUL_SUM; it has SUM, AVG, PRODUCT, MAX, MIN"),
        (bits_of_floats, "BAND needs whole numbers"),
        (wrong_output_size, "needs a contiguous output of 4 elements"),
        (wrong_number_of_outputs, "needs 2 tensors of that shape"),
        (wrong_shape_of_outputs, "needs 2 tensors of that shape"),
        (wrong_splits, "input split sizes [3, 2] must be 2 numbers that add up to the length 4"),
        (does_not_divide, "3, does not divide by 2 ranks"),
        (wrong_number_to_all, "needs one input and one output a rank"),
    ],
)
def test_a_call_that_cannot_work_is_refused_in_words_at_its_line(program, said):
    error = error_of(RankFailed, program, 2)
    assert isinstance(error.__cause__, BadCall)
    assert said in str(error.__cause__)
    assert line_of(program, "dist.").split(" ")[0].replace(":", '", line ') in str(error)


def caught_and_gone_on():
    with contextlib.suppress(BadCall):
        dist.send(STRIDED.t(), 1 - dist.get_rank())
    x = torch.ones(1)
    dist.all_reduce(x)
    return x.item()


def test_a_refused_call_leaves_nothing_behind():
    from ringlab.world import World

    assert World(2).run(caught_and_gone_on) == [2.0, 2.0]
