"""What cannot work is refused at the call, by name, before a byte is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist

from ringlab import Contiguous, Interleaved, RankFailed, World, ZigZag
from ringlab.prefill import SUPPORT, Feature, all_gather_attention, ring_attention
from tests.prefill.cases import METHODS, Attend, every_method

REFUSED = [row for row in SUPPORT if row.status == "refused"]
BY_ARGUMENT = [(row, name) for row in REFUSED for name in row.arguments]


def q() -> torch.Tensor:
    return torch.randn(1, 2, 3, 4)


def assert_refused_silently(call: Callable[[], object], kind: type[Exception], *words: str) -> None:
    """Fail unless the ranks raise, in words, and nothing has been sent."""
    world = World(2)
    with pytest.raises(RankFailed) as caught:
        world.run(call)
    assert not [event for event in world.timeline if event.kind != "compute"]
    cause = caught.value.__cause__
    assert type(cause) is kind, cause
    for word in words:
        assert word in str(cause)


@every_method
@pytest.mark.parametrize(("row", "argument"), BY_ARGUMENT, ids=lambda x: str(getattr(x, "name", x)))
def test_report_d1_d4_a_feature_that_is_missing_is_refused_by_name(
    method: Attend, row: Feature, argument: str
) -> None:
    with pytest.raises(NotImplementedError) as caught:
        method(q(), q(), q(), **{argument: None})
    for word in (method.__name__, row.name, f"{argument}=", row.note):
        assert word in str(caught.value)


def double_backward(method: Attend) -> None:
    x = q().requires_grad_()
    (grad,) = torch.autograd.grad(method(x, x, x).square().sum(), x, create_graph=True)
    grad.sum().backward()


def forward_mode(method: Attend) -> None:
    with torch.autograd.forward_ad.dual_level():
        method(q(), torch.autograd.forward_ad.make_dual(q(), q()), q())


def vmap(method: Attend) -> None:
    x = torch.randn(5, 1, 2, 3, 4)
    torch.func.vmap(method)(x, x, x)


def functional_grad(method: Attend) -> None:
    torch.func.grad(lambda x: method(x, x, x).square().sum())(q())


def other_queries(method: Attend) -> None:
    method(q()[:, :, :1], q(), q())


def wide_values(method: Attend) -> None:
    method(q(), q(), torch.randn(1, 2, 3, 5))


def distributed_tensor(method: Attend) -> None:
    from torch.distributed.tensor import DTensor, init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    x = DTensor.from_local(q(), mesh)
    method(x, x, x)


def nested_tensor(method: Attend) -> None:
    x = torch.nested.nested_tensor(
        [torch.randn(2, 3, 4), torch.randn(5, 3, 4)], layout=torch.jagged
    )
    method(x, x, x)


def sparse_tensor(method: Attend) -> None:
    method(q(), q().to_sparse(), q())


WITHOUT_ARGUMENT = {
    "double backward": [double_backward],
    "forward-mode derivatives": [forward_mode],
    "vmap and other torch.func transforms": [vmap, functional_grad],
    "cross-attention (Lq != Lk)": [other_queries],
    "values of another width than keys": [wide_values],
    "DTensor, nested and sparse tensors": [distributed_tensor, nested_tensor, sparse_tensor],
}
TRIGGERS = [(name, trigger) for name, triggers in WITHOUT_ARGUMENT.items() for trigger in triggers]


def test_every_refused_row_of_the_table_is_walked_here() -> None:
    by_argument = {row.name for row in REFUSED if row.arguments}
    assert by_argument.isdisjoint(WITHOUT_ARGUMENT)
    assert by_argument | set(WITHOUT_ARGUMENT) == {row.name for row in REFUSED}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own use of it
@every_method
@pytest.mark.parametrize(("name", "trigger"), TRIGGERS, ids=lambda x: getattr(x, "__name__", "row"))
def test_what_has_no_argument_is_refused_by_name_too(
    method: Attend, name: str, trigger: Callable[[Attend], None]
) -> None:
    (note,) = (row.note for row in REFUSED if row.name == name)
    words = (method.__name__, name, note)
    if trigger is double_backward:  # the first backward is right, and sends
        with pytest.raises(RankFailed, match="does not support double backward") as caught:
            World(2).run(trigger, method)
        assert type(caught.value.__cause__) is NotImplementedError
        assert all(word in str(caught.value.__cause__) for word in words)
    else:
        assert_refused_silently(lambda: trigger(method), NotImplementedError, *words)


def bad(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.zeros(shape, dtype=dtype)


BAD_CALLS: list[tuple[str, Callable[[Attend], object], type[Exception], str]] = [
    ("three dimensions", lambda f: f(bad(2, 3, 4), q(), q()), ValueError,
     "q must be [B, H, L, D]; its shape is [2, 3, 4]"),
    ("a list", lambda f: f([1.0], q(), q()), TypeError, "q is a list, not a Tensor"),
    ("no keys given", lambda f: f(q(), q(), None), TypeError, "v is a NoneType, not a Tensor"),
    ("heads", lambda f: f(bad(1, 10, 3, 4), bad(1, 4, 3, 4), bad(1, 4, 3, 4)), ValueError,
     "10 query heads cannot share 4 KV heads (10 % 4 = 2); pass k and v with 1, 2, 5, 10 heads"),
    ("no heads", lambda f: f(q(), bad(1, 0, 3, 4), bad(1, 0, 3, 4)), ValueError, "0 KV heads"),
    ("head width", lambda f: f(bad(1, 2, 3, 8), q(), q()), ValueError, "agree in B and in D"),
    ("no width", lambda f: f(*[bad(1, 2, 3, 0)] * 3), ValueError, "which is at least 1"),
    ("batch", lambda f: f(bad(2, 2, 3, 4), q(), q()), ValueError, "agree in B and in D"),
    ("values of other heads", lambda f: f(q(), q(), bad(1, 1, 3, 4)), ValueError,
     "k and v must have one shape"),
    ("two dtypes", lambda f: f(q(), q().half(), q().half()), TypeError,
     "float32, float16 and float16"),
    ("integers", lambda f: f(*[bad(1, 2, 3, 4, dtype=torch.int32)] * 3), TypeError,
     "share one dtype of float32, float64, bfloat16, float16"),
    ("two devices", lambda f: f(q(), q().to("meta"), q()), ValueError, "cpu, meta and cpu"),
    ("a mask as causal", lambda f: f(q(), q(), q(), causal=torch.ones(3, 3)), TypeError,
     "causal is True or False"),
    ("a learnt scale", lambda f: f(q(), q(), q(), scale=torch.tensor(0.1)), TypeError,
     "scale is a number or None; got Tensor"),
    ("a negative scale", lambda f: f(q(), q(), q(), scale=-0.1), ValueError, "positive number"),
    ("a length of text", lambda f: f(q(), q(), q(), length="6"), TypeError,
     "length is an int or None"),
    ("a negative length", lambda f: f(q(), q(), q(), length=-6), ValueError,
     "length is a number of tokens, 0 or more; got -6"),
    ("a length of true", lambda f: f(q(), q(), q(), length=True), TypeError, "length is an int"),
    ("tokens that do not fit", lambda f: f(q(), q(), q(), length=9), ValueError,
     "holds 3 tokens, but Contiguous() of length 9 over 2 ranks gives it"),
    ("a layout's class", lambda f: f(q(), q(), q(), layout=ZigZag), TypeError,
     "layout is an instance of a Layout"),
    ("no such kernel", lambda f: f(q(), q(), q(), kernel="fast"), ValueError, "no kernel 'fast'"),
    ("a kernel without LSE", lambda f: f(q(), q(), q(), kernel="math"), ValueError, "no LSE"),
    ("a kernel elsewhere", lambda f: f(q(), q(), q(), kernel="cuda_flash"), ValueError,
     "cannot compute this block"),
    ("a kernel of 16 bit", lambda f: f(q(), q(), q(), kernel="cpu_flash_float32"), ValueError,
     "not float32"),
    ("a mesh", lambda f: f(q(), q(), q(), group="cp"), TypeError, "mesh.get_group(dimension)"),
    ("not a member", lambda f: f(q(), q(), q(), group=dist.GroupMember.NON_GROUP_MEMBER),
     ValueError, "no member of the group"),
]  # fmt: skip


@every_method
@pytest.mark.parametrize(
    ("call", "kind", "words"), [x[1:] for x in BAD_CALLS], ids=[x[0] for x in BAD_CALLS]
)
def test_a_call_that_cannot_work_is_refused_before_anything_is_sent(
    method: Attend, call: Callable[[Attend], object], kind: type[Exception], words: str
) -> None:
    assert_refused_silently(lambda: call(method), kind, words)


@every_method
@pytest.mark.parametrize(
    ("given", "meant"),
    [("is_causal", "causal"), ("softmax_scale", "scale"), ("mesh", "group=mesh.get_group()")],
)
def test_an_argument_of_another_library_is_answered_with_its_name_here(
    method: Attend, given: str, meant: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"It is called {meant} here")):
        method(q(), q(), q(), **{given: True})


@every_method
def test_an_unknown_argument_is_never_swallowed(method: Attend) -> None:
    with pytest.raises(TypeError, match="has no argument 'casual'"):
        method(q(), q(), q(), casual=True)


@every_method
def test_without_a_process_group_the_error_says_how_to_get_one(method: Attend) -> None:
    with pytest.raises(RuntimeError, match=r"World\(n\).run"):
        method(q(), q(), q())


def test_a_kernel_that_takes_no_mask_is_refused_for_a_layout_that_needs_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ringlab.numerics.kernels import KERNELS

    def no_masks(q: Any, k: Any, causal: bool, masked: bool) -> str | None:
        return "it takes no boolean mask" if masked else None

    monkeypatch.setattr(KERNELS["cpu_flash"], "refuses", no_masks, raising=False)

    def call(layout: Any) -> None:
        x = layout.shard(torch.randn(1, 1, 11, 4), dist.get_rank(), dist.get_world_size())
        for method in METHODS:
            method(x, x, x, layout=layout, causal=True, kernel="cpu_flash", length=11)

    World(2).run(call, Contiguous())
    assert_refused_silently(lambda: call(Interleaved(3)), ValueError, "no boolean mask")


def test_the_table_names_each_feature_once_and_says_what_to_use_instead() -> None:
    names = [row.name for row in SUPPORT]
    arguments = [name for row in SUPPORT for name in row.arguments]
    assert len(set(names)) == len(names)
    assert len(set(arguments)) == len(arguments)
    assert all(row.note for row in SUPPORT)
    assert not any(row.arguments for row in SUPPORT if row.status == "supported")
    assert {ring_attention, all_gather_attention} == set(METHODS)
