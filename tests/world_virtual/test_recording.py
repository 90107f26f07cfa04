"""Which operators of a rank the timeline of a virtual world holds, and what it says of them."""

from __future__ import annotations

import contextlib

import pytest
import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from ringlab import World, ring_attention
from ringlab.numerics import AttentionState, attend
from ringlab.timeline import region
from ringlab.world import WorldError
from ringlab.world.virtual import tables
from tests.world_virtual.verdicts import line_of


def computed(program, size=1, *args, rank=0):
    with World(size) as world:
        world.run(program, *args)
        return world.timeline.of(rank, "compute")


def names(events):
    return [event.name.removeprefix("aten::") for event in events]


def layer():
    x = torch.ones(3, 4, dtype=torch.bfloat16)
    w = torch.ones(5, 4, dtype=torch.bfloat16)
    y = x @ w.t()
    with region("gate"):
        return y.view(15).relu()


def test_an_operator_is_recorded_with_its_line_its_shape_and_its_work():
    _, _, product, gate = computed(layer)
    assert (product.name, product.kind, product.launch, product.group) == (
        "aten::mm", "compute", -1, ()
    )  # fmt: skip
    assert (product.shape, product.dtype) == ((3, 4), "bfloat16")
    assert product.site == line_of(layer, "x @ w.t()")
    assert product.work[:5] == ("matmul", 2 * 3 * 4 * 5, 2 * (12 + 20), 2 * 15, "bfloat16")
    assert (gate.name, gate.label, product.label) == ("aten::relu", "gate", "")


def test_views_and_allocations_are_not_recorded():
    def only_views():
        x = torch.empty(4, 6)
        return x.view(24)[3:].reshape(3, 7).T.detach().unsqueeze_(0).expand(2, 7, 3)

    assert computed(only_views) == ()


def own_operators(device):
    q, k = (torch.ones(1, 4, n, 8, device=device) for n in (6, 5))
    with torch.no_grad():
        state = attend(q, k, k)
        state = state.merge(attend(q, k, k, causal=True))
        state.merge_(AttentionState(state.out.clone(), state.lse.clone()))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_an_operator_of_the_library_is_one_event_and_its_inside_is_none(device):
    recorded = names(computed(own_operators, 1, device))
    assert recorded == ["ones", "ones", "ringlab::attend", "ringlab::attend", "ringlab::merge",
                        "clone", "clone", "ringlab::merge_"]  # fmt: skip


def test_data_do_not_change_what_is_recorded():
    events = [computed(own_operators, 1, device) for device in ("cpu", "meta")]
    assert events[0] == events[1]


def masked(allowed):
    mask = torch.arange(12).view(3, 4) < allowed
    q, k = torch.ones(1, 1, 3, 8), torch.ones(1, 1, 4, 8)
    with torch.no_grad():
        attend(q, k, k, mask=mask)


def masked_twice():
    masked(5)
    masked(7)


def test_equal_shapes_do_not_hide_that_masks_differ():
    flops = [event.work.flops for event in computed(masked_twice) if "attend" in event.name]
    assert flops == [4 * 8 * 5, 4 * 8 * 7]


def trains():
    w = torch.ones(4, 4, requires_grad=True)
    x = torch.ones(2, 4)
    loss = (x @ w).sum()
    loss.backward()


def test_backward_is_recorded_at_the_line_that_starts_it():
    events = computed(trains)
    (product, gradient) = (event for event in events if event.name == "aten::mm")
    assert product.site == line_of(trains, "x @ w")
    assert gradient.site == line_of(trains, "loss.backward()")


def checkpointed():
    w = torch.ones(4, 4, requires_grad=True)
    checkpoint(lambda x: (x @ w).tanh(), torch.ones(2, 4), use_reentrant=False).sum().backward()


def test_what_a_checkpoint_computes_again_is_recorded_again():
    recorded = names(computed(checkpointed))
    assert recorded.count("tanh") == 2
    assert recorded.count("mm") == 3


def infers():
    with torch.inference_mode():
        torch.nn.functional.linear(torch.ones(2, 4), torch.ones(3, 4), torch.ones(3))


def test_in_inference_mode_composite_operators_are_taken_apart():
    assert names(computed(infers)) == ["ones", "ones", "ones", "addmm"]


def communicates():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, parts = torch.ones(4), torch.zeros(size, 4)
    y = torch.zeros(4)
    dist.all_reduce(x)
    dist.all_gather(list(parts), x)
    dist.reduce_scatter(x, list(parts))
    works = dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, x, (rank + 1) % size), dist.P2POp(dist.irecv, y, (rank - 1) % size)]
    )
    for work in works:
        work.wait()


@pytest.mark.parametrize("rank", [0, 2])
def test_what_the_world_does_itself_is_not_the_ranks_compute(rank):
    """Copies into and out of messages, reductions, and the arguments of the program."""
    assert names(computed(communicates, 3, rank=rank)) == ["ones", "zeros", "zeros"]


def steps():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = torch.ones(4), torch.ones(4)
    for _ in range(2):
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, x, (rank + 1) % size),
                dist.P2POp(dist.irecv, y, (rank - 1) % size),
            ]
        )
        x.sum()
        for work in works:
            work.wait()
        x, y = y, x
    dist.all_reduce(x)
    x.sum()


def test_the_step_counts_the_launches_that_were_waited_for():
    with World(3) as world:
        world.run(steps)
        kinds = [(event.kind, event.step) for event in world.timeline.of(1)]
    hop = [("send", 0), ("recv", 0), ("compute", 0), ("wait", 0), ("wait", 0)]
    assert kinds == [("compute", 0)] * 2 + hop + [(kind, 1) for kind, _ in hop] + [
        ("collective", 2), ("wait", 2), ("compute", 3)
    ]  # fmt: skip


def trains_a_ring():
    q, k = (torch.randn(1, h, 6, 8, requires_grad=True) for h in (4, 2))
    with region("layer"):
        out = ring_attention(q, k, k, causal=True)
    out.backward(torch.randn_like(out))


def test_two_runs_give_equal_timelines_with_everything_computed():
    with World(3) as world:
        world.run(trains_a_ring)
        first = world.timeline
        world.run(trains_a_ring)
        assert world.timeline == first
    events = first.of(2, "compute")
    assert [e.name for e in events].count("ringlab::attend") == 3
    assert [e.name for e in events].count("ringlab::attend_backward") == 3
    # forward shows what the library names within the layer, and nothing is left without work
    assert all(e.work is not None for e in events)


def shards():
    from torch.distributed.tensor import DTensor, Shard

    mesh = dist.init_device_mesh("cpu", (dist.get_world_size(),))
    x = DTensor.from_local(torch.ones(2, 4), mesh, [Shard(0)])
    return (x * 2).to_local()


def test_of_a_sharded_tensor_what_the_rank_computes_is_recorded():
    (event,) = (e for e in computed(shards, 2) if e.name == "aten::mul")
    assert event.shape == (2, 4)
    assert event.site == line_of(shards, "x * 2")


def compiled():
    step = torch.compile(lambda x: (x @ x).sin(), backend="aot_eager")
    step(torch.ones(3, 3))


def test_compiled_code_is_recorded_as_it_runs_and_tracing_is_not():
    torch._dynamo.reset()
    recorded = names(computed(compiled))
    assert recorded == ["ones", "mm", "sin"]


def test_a_mode_of_the_program_still_sees_everything():
    from torch.utils.flop_counter import FlopCounterMode

    def counted():
        with FlopCounterMode(display=False) as counter:
            torch.ones(3, 4) @ torch.ones(4, 5)
        return counter.get_total_flops()

    with World(2) as world:
        assert world.run(counted) == [2 * 3 * 4 * 5] * 2
        assert names(world.timeline.of(1, "compute")) == ["ones", "ones", "mm"]


def leaves_a_mode():
    torch._C._push_on_torch_dispatch_stack(TorchDispatchMode())


def fails():
    raise ValueError


@pytest.mark.parametrize("program", [layer, leaves_a_mode, fails])
def test_a_thread_that_ends_holds_no_mode_which_would_outlive_python(program, monkeypatch):
    left = []
    forget = tables.stop_being_rank
    monkeypatch.setattr(
        tables,
        "stop_being_rank",
        lambda: (left.append(torch._C._len_torch_dispatch_stack()), forget()),
    )
    with contextlib.suppress(WorldError):
        World(2).run(program)
    assert left == [0, 0]
    assert torch._C._len_torch_dispatch_stack() == 0  # and neither does the caller's


@pytest.mark.parametrize("size", [2, 3, 5])
def test_a_collective_is_recorded_with_the_bytes_of_its_documented_algorithm(size):
    def program():
        x = torch.ones(60, dtype=torch.float32)
        dist.all_reduce(x)
        dist.all_gather_single(torch.empty(60 * size), x)
        dist.reduce_scatter_single(torch.empty(60 // size), x[: 60 // size * size].clone())

    with World(size) as world:
        world.run(program)
    whole, part = 240, 60 // size * 4
    sent = [event.bytes_out for event in world.timeline.of(0, "collective")]
    assert sent == [2 * (size - 1) * whole // size, (size - 1) * whole, (size - 1) * part]
