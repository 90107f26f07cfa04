"""What a rank takes over from the caller: modes of torch, context, its own arguments."""

from __future__ import annotations

import contextvars
import threading
from dataclasses import dataclass

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World


def modes():
    dist.barrier()
    return (
        torch.is_grad_enabled(),
        torch.is_inference_mode_enabled(),
        torch.is_autocast_enabled("cpu"),
        torch.get_autocast_dtype("cpu") if torch.is_autocast_enabled("cpu") else None,
        torch.empty(1).device.type,
    )


@pytest.mark.parametrize(
    ("context", "expected"),
    [
        (lambda: torch.enable_grad(), (True, False, False, None, "cpu")),
        (lambda: torch.no_grad(), (False, False, False, None, "cpu")),
        (lambda: torch.inference_mode(), (False, True, False, None, "cpu")),
        (
            lambda: torch.autocast("cpu", dtype=torch.float16),
            (True, False, True, torch.float16, "cpu"),
        ),
        (lambda: torch.device("meta"), (True, False, False, None, "meta")),
    ],
    ids=["grad", "no_grad", "inference", "autocast", "device"],
)
def test_modes_of_the_caller_hold_on_every_rank(context, expected):
    with context():
        assert World(2).run(modes) == [expected] * 2
    assert World(2).run(modes) == [(True, False, False, None, "cpu")] * 2


def change_modes():
    if dist.get_rank() == 0:
        torch.set_grad_enabled(False)
    dist.barrier()
    return torch.is_grad_enabled()


def test_a_mode_that_one_rank_sets_is_its_own():
    assert World(2).run(change_modes) == [False, True]
    assert torch.is_grad_enabled()


def communicate_in_inference_mode():
    rank = dist.get_rank()
    x, y = torch.ones(2) * rank, torch.zeros(2)
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]
    )
    for work in works:
        work.wait()
    dist.all_reduce(x)
    return y.tolist(), x.tolist(), y.is_inference()


def test_buffers_made_in_inference_mode_are_filled():
    with torch.inference_mode():
        results = World(2).run(communicate_in_inference_mode)
    assert results == [([1.0, 1.0], [1.0, 1.0], True), ([0.0, 0.0], [1.0, 1.0], True)]


def inference_on_one_side():
    rank = dist.get_rank()
    with torch.inference_mode(rank == 0):
        x = torch.full((2,), rank + 1.0)
        y = torch.zeros(2)
        ops = [dist.P2POp(dist.isend, x, 1 - rank), dist.P2POp(dist.irecv, y, 1 - rank)]
        works = dist.batch_isend_irecv(ops)
    for work in works:
        work.wait()
    return y.tolist()


def test_only_one_side_may_be_in_inference_mode():
    assert World(2).run(inference_on_one_side) == [[2.0, 2.0], [1.0, 1.0]]


def receive_into_a_leaf():
    rank = dist.get_rank()
    x = torch.full((2,), float(rank), requires_grad=True)
    dist.broadcast(x, 1)
    return x.detach().tolist(), x.requires_grad, x.is_leaf


def test_a_buffer_that_requires_grad_is_filled_and_stays_a_leaf():
    assert World(2).run(receive_into_a_leaf) == [([1.0, 1.0], True, True)] * 2


name = contextvars.ContextVar("name", default="nobody")


def read_and_set():
    seen = name.get()
    name.set(f"rank {dist.get_rank()}")
    dist.barrier()
    return seen, name.get()


def test_context_variables_come_along_and_each_rank_has_its_own():
    token = name.set("caller")
    assert World(2).run(read_and_set) == [("caller", "rank 0"), ("caller", "rank 1")]
    assert name.get() == "caller"
    name.reset(token)


@dataclass
class Cache:
    keys: torch.Tensor
    length: int = 0


def write_into(tensor, nested, module, cache, *, keyword):
    rank = dist.get_rank()
    tensor += rank + 1
    nested["list"][0] += rank + 1
    nested["list"].append(rank)
    with torch.no_grad():
        module.weight += rank + 1
    cache.keys += rank + 1
    cache.length = rank
    keyword.append(rank)
    return tensor[0].item(), nested, module.weight[0, 0].item(), cache, keyword


def test_each_rank_has_its_own_copy_of_the_arguments():
    tensor, nested, cache = torch.zeros(2), {"list": [torch.zeros(1)]}, Cache(torch.zeros(1))
    module, keyword = torch.nn.Linear(1, 1, bias=False), []
    torch.nn.init.zeros_(module.weight)
    results = World(2).run(write_into, tensor, nested, module, cache, keyword=keyword)
    for rank, (value, own, weight, own_cache, own_keyword) in enumerate(results):
        assert value == weight == own["list"][0].item() == own_cache.keys.item() == rank + 1
        assert own["list"][1:] == own_keyword == [rank]
        assert own_cache.length == rank
    assert tensor.sum() == module.weight.sum() == cache.keys.sum() == nested["list"][0] == 0
    assert len(nested["list"]) == 1
    assert keyword == []


def describe(*tensors):
    return [
        (t.shape, t.stride(), t.dtype, t.requires_grad, t.is_leaf, t.tolist(), t.is_contiguous())
        for t in tensors
    ]


def test_the_copy_of_a_tensor_keeps_values_strides_dtype_and_gradient_flag():
    base = torch.arange(24.0)
    leaf = torch.arange(3.0).requires_grad_()
    tensors = [
        base.view(4, 6),
        base.view(4, 6).t(),
        base.view(4, 6)[:, ::2],
        base[3:9].view(2, 3)[:, 1],
        base[:1].expand(5),
        torch.empty(0, 3),
        torch.empty(3, 0).t(),
        torch.tensor(2.0),
        base.to(torch.bfloat16),
        leaf,
        torch.nn.Parameter(torch.ones(2)),
    ]
    results = World(2).run(describe, *tensors)
    assert results == [describe(*tensors)] * 2


def test_the_copy_of_a_result_of_autograd_is_a_leaf():
    x = torch.ones(2, requires_grad=True) * 3
    ((*_, requires_grad, is_leaf, values, _contiguous),) = World(1).run(describe, x)[0]
    assert (requires_grad, is_leaf, values) == (True, True, [3.0, 3.0])


def same(one, two, modules):
    return one is two, modules[0].weight is modules[1].weight


def test_what_occurs_twice_in_the_arguments_is_one_object_in_the_copy():
    x = torch.ones(1)
    first, second = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    second.weight = first.weight
    assert World(1).run(same, x, x, [first, second]) == [(True, True)]


def test_what_cannot_be_copied_is_shared():
    lock = threading.Lock()
    assert World(2).run(lambda given: given is lock, lock) == [True, True]


def test_a_copy_on_meta_costs_nothing_and_stays_on_meta():
    huge = torch.empty(2**40, device="meta")
    assert World(2).run(lambda t: (t.device.type, t.numel()), huge) == [("meta", 2**40)] * 2
