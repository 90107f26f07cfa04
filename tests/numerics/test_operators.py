"""attend, attend_backward and merge as torch operators: shapes, compilation, records, cost."""

from __future__ import annotations

import ast
import pathlib
import time
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.library import opcheck
from torch.utils._python_dispatch import TorchDispatchMode

import ringlab.numerics
from ringlab.numerics import AttentionState, attend, attend_backward
from tests.numerics.cases import Case, case
from tests.numerics.test_attend import projected

OPS = torch.ops.ringlab
LAYOUTS = {"contiguous": lambda x: x, "sequence-major": projected}
MASKS = {
    "full": (None, False),
    "diagonal": (None, True),
    "mask": (torch.ones(7, 9, dtype=torch.bool).tril(2), False),
}
every_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
every_mask = pytest.mark.parametrize(("mask", "causal"), MASKS.values(), ids=MASKS.keys())
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])


def block(dtype: torch.dtype, layout: Callable[[Tensor], Tensor]) -> Case:
    return Case(*(layout(x) for x in case(dtype=dtype)))


@pytest.mark.parametrize(
    ("mask", "dtype", "layout"),
    [
        ("full", torch.float32, "contiguous"),
        ("diagonal", torch.bfloat16, "sequence-major"),
        ("mask", torch.float32, "sequence-major"),
    ],
)
def test_attend_is_a_sound_operator(mask: str, dtype: torch.dtype, layout: str) -> None:
    q, k, v, dout = block(dtype, LAYOUTS[layout])
    options = (*MASKS[mask], 0.3, None)
    opcheck(OPS.attend.default, (q, k, v, *options))
    out, lse = OPS.attend(q, k, v, *options)
    opcheck(OPS.attend_backward.default, (dout, q, k, v, out, lse, *options))


@every_layout
def test_merge_is_a_sound_operator(layout: Callable[[Tensor], Tensor]) -> None:
    q, k, v, _ = block(torch.float32, layout)
    states = (
        *OPS.attend(q, k, v, None, True, 0.3, None),
        *OPS.attend(q, v, k, None, True, 1.0, None),
    )
    opcheck(OPS.merge.default, (*states, True))
    opcheck(OPS.merge_.default, (*states, False))


def described(tensors: tuple[Tensor, ...]) -> list[tuple[object, ...]]:
    return [(x.shape, x.dtype, x.stride()) for x in tensors]


@every_layout
@every_mask
@every_dtype
@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
def test_meta_tensors_have_the_shape_dtype_and_strides_of_real_ones(
    layout: Callable[[Tensor], Tensor],
    mask: Tensor | None,
    causal: bool,
    dtype: torch.dtype,
    kernel: str,
) -> None:
    def results(given: Case, mask: Tensor | None) -> list[tuple[object, ...]]:
        q, k, v, dout = given
        options: dict[str, Any] = {"mask": mask, "causal": causal, "kernel": kernel}
        done = attend(q, k, v, **options)
        merged = done.merge(done)
        gradients = attend_backward(dout, q, k, v, done.out, done.lse, **options)
        return described((done.out, done.lse, merged.out, merged.lse, *gradients))

    given = block(dtype, layout)
    meta = Case(*(x.to("meta") for x in given))
    assert described(tuple(meta)) == described(tuple(given))
    assert results(meta, mask) == results(given, mask)


@pytest.mark.parametrize("sizes", [{"keys": 0}, {"queries": 0}, {"queries": 1, "heads": 8}])
def test_meta_tensors_of_degenerate_blocks(sizes: dict[str, int]) -> None:
    q, k, v, _ = case(**sizes)
    real = attend(q, k, v)
    meta = attend(q.to("meta"), k.to("meta"), v.to("meta"))
    assert described((meta.out, meta.lse)) == described((real.out, real.lse))


def two_blocks(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    state = attend(q, k[:, :, :4], v[:, :, :4]).merge(attend(q, k[:, :, 4:], v[:, :, 4:]))
    state.rows(3).merge_(attend(q[:, :, 3:], k, v, causal=True, scale=0.1))
    return state.out, state.lse


def test_blocks_and_merges_compile_into_one_graph() -> None:
    q, k, v, _ = case()
    compiled = torch.compile(two_blocks, backend="aot_eager", fullgraph=True)
    assert all(map(torch.equal, compiled(q, k, v), two_blocks(q, k, v)))


def test_gradients_compile_into_one_graph() -> None:
    q, k, v, dout = case()
    done = attend(q, k, v)

    def gradients(*tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        return attend_backward(*tensors, causal=True)

    compiled = torch.compile(gradients, backend="aot_eager", fullgraph=True)
    tensors = (dout, q, k, v, done.out, done.lse)
    assert all(map(torch.equal, compiled(*tensors), gradients(*tensors)))


class Recorder(TorchDispatchMode):
    """Notes the operators that a recording of a program would see."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_recorder_sees_one_operator_for_each_call(device: str) -> None:
    q, k, v, dout = (x.to(device) for x in case())
    with Recorder() as recorder:
        done = attend(q, k, v, causal=True)
        merged = done.merge(done)
        merged.merge_(done)
        attend_backward(dout, q, k, v, done.out, done.lse)
    names = ("attend", "merge", "merge_", "attend_backward")
    assert recorder.seen == [f"ringlab.{name}.default" for name in names]


def test_sixteen_thousand_calls_on_meta_tensors_take_seconds() -> None:
    """Usual is 20 to 30 microseconds a call; the bound leaves room for a busy machine."""
    q, k, v, _ = (x.to("meta") for x in case())
    state = attend(q, k, v)

    def fastest(call: Callable[[], object]) -> float:
        def hundred() -> float:
            start = time.perf_counter()
            for _ in range(100):
                call()
            return (time.perf_counter() - start) / 100

        return min(hundred() for _ in range(10))

    assert fastest(lambda: attend(q, k, v, causal=True)) < 150e-6
    assert fastest(lambda: state.merge(state)) < 150e-6
    assert fastest(lambda: state.merge_(state)) < 150e-6


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kernel", ["cpu_flash", "reference"])
def test_autocast_does_not_reach_into_a_kernel(dtype: torch.dtype, kernel: str) -> None:
    q, k, v, dout = case(dtype=dtype)

    def results() -> tuple[Tensor, ...]:
        done = attend(q, k, v, kernel=kernel)
        merged = done.merge(done)
        gradients = attend_backward(dout, q, k, v, done.out, done.lse, kernel=kernel)
        return done.out, done.lse, merged.out, merged.lse, *gradients

    outside = results()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = results()
    assert all(map(torch.equal, inside, outside))


def test_inference_mode_gives_the_same_bits() -> None:
    q, k, v, _ = case()
    outside = two_blocks(q, k, v)
    with torch.inference_mode():
        inside = two_blocks(q, k, v)
    assert all(map(torch.equal, inside, outside))


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_report_b4_a_call_that_autograd_would_cut_is_refused(position: int, device: str) -> None:
    operands = [x.to(device) for x in case()[:3]]
    operands[position].requires_grad_()
    with pytest.raises(RuntimeError, match=r"ringlab\.ring_attention"):
        attend(*operands)
    with torch.no_grad():
        attend(*operands)


def test_report_b4_the_operator_itself_refuses_too() -> None:
    q, k, v, _ = case()
    with pytest.raises(RuntimeError, match=r"ringlab\.ring_attention"):
        OPS.attend(q.requires_grad_(), k, v, None, False, 0.3, None)


def test_report_b4_merging_and_backward_refuse_what_autograd_would_cut() -> None:
    q, k, v, dout = case()
    done = attend(q, k, v)
    tracked = AttentionState(done.out.clone().requires_grad_(), done.lse)
    for merge in (tracked.merge, tracked.merge_, done.merge, done.merge_):
        with pytest.raises(RuntimeError, match="attend_backward"):
            merge(tracked)
    with pytest.raises(RuntimeError, match="attend_backward"):
        attend_backward(dout.requires_grad_(), q, k, v, done.out, done.lse)


def imports(path: pathlib.Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_the_floor_does_not_communicate_and_stands_on_no_other() -> None:
    folder = pathlib.Path(ringlab.numerics.__file__).parent
    for path in folder.glob("*.py"):
        for name in imports(path):
            assert not name.startswith("torch.distributed"), f"{path.name} imports {name}"
            if name.startswith("ringlab"):
                assert name.startswith("ringlab.numerics"), f"{path.name} imports {name}"
