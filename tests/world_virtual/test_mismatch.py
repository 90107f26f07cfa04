"""Ends of an operation that do not agree: refused, with both lines."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import MessageMismatch
from tests.world_virtual.verdicts import ORDERS, error_of, line_of, verdict


def message(sent, received):
    if dist.get_rank() == 0:
        dist.send(sent, 1)
    else:
        dist.recv(received, 0)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("sent", "received"),
    [
        (torch.ones(4), torch.ones(5)),
        (torch.ones(5), torch.ones(4)),
        (torch.ones(4), torch.ones(0)),
        (torch.ones(4, 2), torch.ones(2, 4)),
        (torch.ones(4), torch.ones(4, 1)),
        (torch.ones(4), torch.ones(4, dtype=torch.float64)),
        (torch.ones(4, dtype=torch.bfloat16), torch.ones(4, dtype=torch.float16)),
        (torch.ones(4, dtype=torch.bfloat16), torch.ones(2)),
        (torch.ones(4), torch.ones(4, device="meta")),
        (torch.ones(4, device="meta"), torch.ones(4)),
    ],
    ids=lambda t: f"{list(t.shape)}-{t.dtype}-{t.device}",
)
def test_shape_dtype_and_device_of_a_message_must_agree(sent, received, order):
    error = error_of(MessageMismatch, message, 2, sent, received, order=order)
    assert f"rank 0 sends {list(sent.shape)}" in str(error)
    assert f"rank 1 receives {list(received.shape)}" in str(error)
    assert f"sent at      {line_of(message, 'dist.send')}: `dist.send(sent, 1)`" in str(error)
    assert f"received at  {line_of(message, 'dist.recv')}: `dist.recv(received, 0)`" in str(error)


def test_a_message_that_holds_no_data_says_so():
    error = error_of(MessageMismatch, message, 2, torch.ones(4), torch.ones(4, device="meta"))
    assert "[4] float32 on meta" in str(error)


def other_collective():
    x = torch.ones(4)
    if dist.get_rank() == 1:
        dist.broadcast(x, 0)
    else:
        dist.all_reduce(x)


def swapped_shapes():
    for n in (3, 4) if dist.get_rank() else (4, 3):
        dist.all_reduce(torch.ones(n))


def other_dtype():
    dist.all_reduce(torch.ones(4, dtype=torch.float64 if dist.get_rank() else torch.float32))


def other_reduction():
    dist.all_reduce(torch.ones(4), op=dist.ReduceOp.MAX if dist.get_rank() else dist.ReduceOp.SUM)


def other_root():
    dist.broadcast(torch.ones(4), dist.get_rank())


def other_place():
    dist.all_reduce(torch.ones(4, device="meta" if dist.get_rank() else "cpu"))


def other_size_gathered():
    n = 3 + dist.get_rank()
    dist.all_gather([torch.empty(n) for _ in range(2)], torch.ones(n))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("program", "one", "two"),
    [
        (other_collective, "all_reduce(SUM, [4] float32)", "broadcast(root 0, [4] float32)"),
        (swapped_shapes, "all_reduce(SUM, [4] float32)", "all_reduce(SUM, [3] float32)"),
        (other_dtype, "all_reduce(SUM, [4] float32)", "all_reduce(SUM, [4] float64)"),
        (other_reduction, "all_reduce(SUM, [4] float32)", "all_reduce(MAX, [4] float32)"),
        (other_root, "broadcast(root 0, [4] float32)", "broadcast(root 1, [4] float32)"),
        (other_place, "all_reduce(SUM, [4] float32)", "all_reduce(SUM, [4] float32 on meta)"),
        (other_size_gathered, "all_gather([3] float32)", "all_gather([4] float32)"),
    ],
)
def test_members_of_a_collective_must_make_the_same_call(program, one, two, order):
    text = str(error_of(MessageMismatch, program, 2, order=order))
    assert f"  rank 0 calls {one} at " in text
    assert f"  rank 1 calls {two} at " in text


def under_an_old_name():
    n = 3 + dist.get_rank()
    dist.all_gather_into_tensor(torch.empty(2 * n), torch.ones(n))


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_line_is_that_of_the_program_also_where_torch_wraps_a_deprecated_name():
    text = str(error_of(MessageMismatch, under_an_old_name, 2))
    assert line_of(under_an_old_name, "all_gather_into_tensor") in text
    assert "typing_extensions" not in text


def disagree_before_the_third_came():
    if dist.get_rank() < 2:
        other_reduction()


def test_two_members_that_disagree_are_reported_before_the_others_come():
    assert verdict(disagree_before_the_third_came, 3) == "MessageMismatch"


def splits(inputs, outputs):
    rank = dist.get_rank()
    x, y = torch.ones(sum(inputs[rank])), torch.ones(sum(outputs[rank]))
    dist.all_to_all_single(y, x, outputs[rank], inputs[rank])


def test_split_sizes_of_the_two_ends_must_agree():
    error = error_of(MessageMismatch, splits, 2, [[1, 2], [3, 1]], [[1, 2], [2, 1]])
    assert "rank 1 sends [3] float32 to rank 0, which expects [2] float32" in str(error)
    assert line_of(splits, "all_to_all_single") in str(error)


def all_to_all_of_other_shapes():
    rank = dist.get_rank()
    inputs = [torch.ones(2, 3), torch.ones(2, 3)]
    outputs = list(torch.ones(2, 3, 2) if rank else torch.ones(2, 2, 3))
    dist.all_to_all(outputs, inputs)


def test_shapes_of_all_to_all_must_agree_though_the_sizes_do():
    assert verdict(all_to_all_of_other_shapes, 2) == "MessageMismatch"
