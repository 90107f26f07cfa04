"""Inside the modes of PyTorch: checkpointing, autocast, inference, compilation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from ringlab import Contiguous, Layout, World, ZigZag
from ringlab.prefill import all_gather_attention, ring_attention
from tests import oracle
from tests.prefill.cases import (
    Attend,
    Inputs,
    Step,
    assert_exact,
    every_method,
    forward,
    inputs,
    same_bits,
    step,
    whole,
)


def shards(given: Inputs, layout: Layout) -> list[Tensor]:
    place = dist.get_rank(), dist.get_world_size()
    return [layout.shard(x, *place) for x in given]


def two_layers(method: Attend, given: Inputs, layout: Layout, reentrant: bool | None) -> Step:
    """Two layers of attention, the second on the output of the first, checkpointed or not."""
    q, k, v, dout = shards(given, layout)
    leaves = [x.requires_grad_() for x in (q, k, v)]

    def layer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return method(q, k * 0.5, v + q, layout=layout, causal=True).sin()

    def run(*args: Tensor) -> Tensor:
        if reentrant is None:
            return layer(*args)
        result: Tensor = checkpoint(layer, *args, use_reentrant=reentrant)
        return result

    out = run(run(*leaves), *leaves[1:])
    # backward() and not grad(): reentrant checkpointing takes no other.
    out.backward(dout)
    return Step(out.detach(), *(x.grad for x in leaves))


@every_method
@pytest.mark.parametrize("layout", [Contiguous(), ZigZag()], ids=str)
@pytest.mark.parametrize("reentrant", [True, False], ids=["reentrant", "not-reentrant"])
def test_report_i1_f11_checkpointed_layers_with_uneven_work_give_the_same_bits(
    method: Attend, layout: Layout, reentrant: bool
) -> None:
    given = inputs(26, kv_heads=6)
    plain = World(4).run(two_layers, method, given, layout, None)
    again = World(4).run(two_layers, method, given, layout, reentrant)
    assert all(same_bits(*pair) for pair in zip(plain, again, strict=True))


class Calls(TorchDispatchMode):
    """Counts the blocks that are computed, forward and backward."""

    def __init__(self) -> None:
        super().__init__()
        self.count: Counter[str] = Counter()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func.namespace == "ringlab":
            self.count[func._schema.name] += 1
        return func(*args, **(kwargs or {}))


def counted(method: Attend, given: Inputs) -> tuple[dict[str, int], dict[str, int]]:
    q, k, v, dout = shards(given, ZigZag())
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with Calls() as first:
        out = method(*leaves, layout=ZigZag(), causal=True)
    with Calls() as second:
        out.backward(dout)
    return dict(first.count), dict(second.count)


@every_method
def test_report_a16_backward_computes_no_forward_again(method: Attend) -> None:
    for there, back in World(4).run(counted, method, inputs(32)):
        assert there["ringlab::attend"] == 4
        assert back == {"ringlab::attend_backward": 4}


def autocast_step(method: Attend, given: Inputs, dtype: torch.dtype) -> Step:
    q, k, v, dout = shards(given, ZigZag())
    leaves = [x.requires_grad_() for x in (q, k, v)]
    with torch.autocast("cpu", dtype=dtype):
        out = method(*leaves, layout=ZigZag(), causal=True)
    return Step(out.detach(), *torch.autograd.grad(out, leaves, dout.to(out.dtype)))


@every_method
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_autocast_computes_as_on_inputs_of_its_dtype(method: Attend, dtype: torch.dtype) -> None:
    given = inputs(26, dtype=torch.float32)
    narrow = Inputs(*(x.to(dtype) for x in given))
    with_it = World(3).run(autocast_step, method, given, dtype)
    without = World(3).run(step, method, narrow, ZigZag(), causal=True)
    for found, expected in zip(with_it, without, strict=True):
        assert found.out.dtype == dtype
        assert found.dq.dtype == torch.float32
        assert same_bits(found, Step(expected.out, *(x.float() for x in expected[1:])))


@every_method
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
def test_autocast_gives_the_dtype_that_sdpa_gives(method: Attend, dtype: torch.dtype) -> None:
    def mixed(other: torch.dtype) -> tuple[torch.dtype, torch.dtype]:
        q, k = torch.zeros(1, 2, 3, 4, dtype=dtype), torch.zeros(1, 2, 3, 4, dtype=other)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return method(q, k, k).dtype, scaled_dot_product_attention(q, k, k).dtype

    for found, expected in World(2).run(mixed, dtype):
        assert found == expected
    if dtype != torch.float64:
        for found, expected in World(2).run(mixed, torch.float16):
            assert found == expected


@every_method
@pytest.mark.parametrize("mode", [torch.inference_mode, torch.no_grad])
def test_without_gradients_nothing_is_saved(method: Attend, mode: Any) -> None:
    given = inputs(21)

    def run(given: Inputs) -> Tensor:
        kept: list[Tensor] = []
        hooks = torch.autograd.graph.saved_tensors_hooks(kept.append, lambda x: x)
        with mode(), hooks:
            q, k, v, _ = shards(given, ZigZag())
            out = method(q.requires_grad_(mode is torch.no_grad), k, v, layout=ZigZag())
        assert not out.requires_grad
        assert out.is_inference() == (mode is torch.inference_mode)
        assert not kept
        return out.clone()

    found = ZigZag().unshard(World(3).run(run, given))
    torch.testing.assert_close(found, oracle.attention(*given).out, rtol=1e-12, atol=1e-12)


@every_method
def test_a_world_that_starts_in_inference_mode_computes_the_same(method: Attend) -> None:
    given = inputs(21)
    expected = World(3).run(forward, method, given, ZigZag(), causal=True)
    with torch.inference_mode():
        found = World(3).run(forward, method, given, ZigZag(), causal=True)
    assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))


def create_graph_step(method: Attend, given: Inputs) -> Step:
    """A first derivative with create_graph=True, of which no second is asked."""
    q, k, v, dout = shards(given, ZigZag())
    leaves = [x.requires_grad_() for x in (q, k, v)]
    out = method(*leaves, layout=ZigZag(), causal=True)
    grads = torch.autograd.grad(out, leaves, dout, create_graph=True)
    return Step(out.detach(), *(grad.detach() for grad in grads))


@every_method
def test_create_graph_is_no_obstacle_to_the_first_derivative(method: Attend) -> None:
    given = inputs(21)
    found = whole(World(3).run(create_graph_step, method, given), ZigZag())
    assert_exact(found, given, causal=True)


def compiled_step(method: Attend, given: Inputs, group: bool) -> tuple[Step, Step, list[str]]:
    q, k, v, dout = shards(given, ZigZag())
    ring = dist.new_group([1, 0], sort_ranks=False) if group else None
    graphs: list[str] = []

    def compiler(graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        graphs.extend(str(n.target) for n in graph.graph.nodes if n.op.startswith("call"))
        return graph.forward

    def layer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return method(q * 2, k, v, layout=ZigZag(), group=ring).sin()

    def run(fn: Any) -> Step:
        leaves = [x.detach().clone().requires_grad_() for x in (q, k, v)]
        out = fn(*leaves)
        return Step(out.detach(), *torch.autograd.grad(out, leaves, dout))

    compiled = torch.compile(layer, backend=compiler)
    run(compiled)
    return run(compiled), run(layer), graphs


@pytest.mark.processes
@pytest.mark.parametrize(
    ("method", "group"), [(ring_attention, True), (all_gather_attention, False)]
)
def test_report_i6_compiled_code_breaks_once_around_the_call(method: Attend, group: bool) -> None:
    with World(2, backend="gloo", threads=1) as world:
        ranks = world.run(compiled_step, method, inputs(24), group)
    for compiled, plain, graphs in ranks:
        assert same_bits(compiled, plain)
        # One graph before the call and one after it, and none in the second call.
        assert graphs == ["<built-in function mul>", "sin"]


@every_method
def test_report_i6_compiled_code_gives_the_same_bits_on_virtual_ranks(method: Attend) -> None:
    for compiled, plain, _ in World(2).run(compiled_step, method, inputs(24), True):
        assert same_bits(compiled, plain)
