"""What cannot work is refused at the call, by name, before a byte is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab import Interleaved, RankFailed, ShardedKVCache, Striped, World, ZigZag
from ringlab.decode import SUPPORT, Feature, decode_attention
from tests.decode.cases import METHODS, every_method, messages

REFUSED = [row for row in SUPPORT if row.status == "refused"]
BY_ARGUMENT = [(row, name) for row in REFUSED for name in row.arguments]


def x(*shape: int, **options: Any) -> Tensor:
    return torch.zeros(shape or (1, 2, 3, 4), **options)


def cache(tokens: int = 3, **options: Any) -> ShardedKVCache:
    made = ShardedKVCache(1, 2, 4, **options)
    made.append(x(1, 2, tokens, 4), x(1, 2, tokens, 4))
    return made


def assert_refused_silently(call: Callable[[], object], kind: type[Exception], *words: str) -> None:
    """Fail unless the ranks raise, in words, and nothing has been sent."""
    world = World(2)
    with pytest.raises(RankFailed) as caught:
        world.run(call)
    assert messages(world.timeline) == []
    cause = caught.value.__cause__
    assert type(cause) is kind, cause
    for word in words:
        assert word in str(cause)


@pytest.mark.parametrize(("row", "argument"), BY_ARGUMENT, ids=lambda v: str(getattr(v, "name", v)))
def test_report_d1_d4_a_feature_that_is_missing_is_refused_by_name(
    row: Feature, argument: str
) -> None:
    with pytest.raises(NotImplementedError) as caught:
        decode_attention(x(), None, **{argument: None})
    for word in ("decode_attention", row.name, f"{argument}=", row.note):
        assert word in str(caught.value)


def query_with_gradient() -> None:
    decode_attention(x(requires_grad=True), cache())


def keys_with_gradient() -> None:
    cache().append(x(requires_grad=True), x())


def prompt_with_gradient() -> None:
    cache().load(x(), x(requires_grad=True), layout=ZigZag(), length=6)


def forward_mode() -> None:
    with torch.autograd.forward_ad.dual_level():
        decode_attention(torch.autograd.forward_ad.make_dual(x(), x()), cache())


def vmap() -> None:
    held = cache()
    torch.func.vmap(lambda q: decode_attention(q, held))(x(5, 1, 2, 3, 4))


def wide_values() -> None:
    cache().append(x(), x(1, 2, 3, 5))


def distributed_tensor() -> None:
    from torch.distributed.tensor import DTensor, init_device_mesh

    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    decode_attention(DTensor.from_local(x(), mesh), cache())


def nested_tensor() -> None:
    parts = [x(2, 3, 4), x(2, 5, 4)]
    decode_attention(torch.nested.nested_tensor(parts, layout=torch.jagged), cache())


def sparse_tensor() -> None:
    cache().append(x().to_sparse(), x())


WITHOUT_ARGUMENT: dict[str, list[Callable[[], None]]] = {
    "gradients": [query_with_gradient, keys_with_gradient, prompt_with_gradient],
    "layouts whose owners change with the length": [
        lambda: cache(layout=ZigZag()),
        lambda: cache(layout=Striped()),
    ],
    "forward-mode derivatives": [forward_mode],
    "vmap and other torch.func transforms": [vmap],
    "values of another width than keys": [wide_values],
    "DTensor, nested and sparse tensors": [distributed_tensor, nested_tensor, sparse_tensor],
}
TRIGGERS = [(name, trigger) for name, triggers in WITHOUT_ARGUMENT.items() for trigger in triggers]


def test_every_refused_row_of_the_table_is_walked_here() -> None:
    by_argument = {row.name for row in REFUSED if row.arguments}
    assert by_argument.isdisjoint(WITHOUT_ARGUMENT)
    assert by_argument | set(WITHOUT_ARGUMENT) == {row.name for row in REFUSED}


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated")  # torch's own use of it
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
@pytest.mark.parametrize(("row", "trigger"), TRIGGERS, ids=lambda v: getattr(v, "__name__", "row"))
def test_what_has_no_argument_is_refused_by_name_too(row: str, trigger: Callable[[], None]) -> None:
    note = next(feature.note for feature in REFUSED if feature.name == row)
    assert_refused_silently(trigger, NotImplementedError, row, note)


BAD_CALLS: list[tuple[str, Callable[[], object], type[Exception], str]] = [
    ("no cache", lambda: decode_attention(x(), x()), TypeError, "got a Tensor"),
    ("no such method", lambda: decode_attention(x(), cache(), method="tree"), ValueError,
     "method is one of split_k, all_gather, ring; got 'tree'"),
    ("a list", lambda: decode_attention([1], cache()), TypeError, "q is a list"),
    ("three dimensions", lambda: decode_attention(x(2, 3, 4), cache()), ValueError,
     "must be [B, H, L, D]"),
    ("batch", lambda: decode_attention(x(2, 2, 1, 4), cache()), ValueError, "with B = 1 and D = 4"),
    ("width", lambda: decode_attention(x(1, 2, 1, 8), cache()), ValueError, "with B = 1 and D = 4"),
    ("heads", lambda: decode_attention(x(1, 3, 1, 4), cache()), ValueError,
     "3 query heads cannot share 2 KV heads"),
    ("no heads", lambda: decode_attention(x(1, 0, 1, 4), cache()), ValueError, "pass some"),
    ("dtype", lambda: decode_attention(x(dtype=torch.half), cache()), TypeError,
     "q is float16 and the cache float32"),
    ("device", lambda: decode_attention(x(device="meta"), cache()), ValueError,
     "q is on meta and the cache on cpu"),
    ("more queries than tokens", lambda: decode_attention(x(1, 2, 4, 4), cache()), ValueError,
     "q holds 4 tokens, the last ones of the sequence, but the cache only 3"),
    ("nothing appended", lambda: decode_attention(x(1, 2, 1, 4), cache(0)), ValueError,
     "append their keys and values first"),
    ("a learnt scale", lambda: decode_attention(x(), cache(), scale=x(1)), TypeError,
     "scale is a number or None"),
    ("a negative scale", lambda: decode_attention(x(), cache(), scale=-1.0), ValueError,
     "positive number"),
    ("no such kernel", lambda: decode_attention(x(), cache(), kernel="fast"), ValueError,
     "no kernel 'fast'"),
    ("a kernel elsewhere", lambda: decode_attention(x(), cache(), kernel="cuda_flash"), ValueError,
     "cannot compute this block"),
    ("a kernel of 16 bit", lambda: decode_attention(x(), cache(), kernel="cpu_flash_float32"),
     ValueError, "not float32"),
    ("keys of another shape", lambda: cache().append(x(), x(1, 2, 2, 4)), ValueError,
     "k and v must have one shape"),
    ("keys of another cache", lambda: cache().append(x(1, 4, 1, 4), x(1, 4, 1, 4)), ValueError,
     "with B = 1, Hkv = 2 and D = 4, as the cache; they are [1, 4, 1, 4]"),
    ("keys of another dtype", lambda: cache().append(x(dtype=torch.half), x(dtype=torch.half)),
     TypeError, "k is float16 and the cache float32; convert it"),
    ("keys elsewhere", lambda: cache().append(x(device="meta"), x(device="meta")), ValueError,
     "k is on meta and the cache on cpu; move it"),
    ("no room", lambda: cache(3, capacity=4).append(x(), x()), ValueError,
     "3 tokens beside the 3 in the cache are more than its capacity of 4"),
    ("no room for a prompt", lambda: cache(3, capacity=4).load(x(), x(), layout=ZigZag(), length=6),
     ValueError, "6 tokens beside the 3 in the cache are more than its capacity of 4"),
    ("a prompt in no layout", lambda: cache().load(x(), x(), layout="zigzag"), TypeError,
     "layout is an instance of a Layout"),
    ("a length of text", lambda: cache().load(x(), x(), layout=ZigZag(), length="6"), TypeError,
     "length is an int or None"),
    ("a negative length", lambda: cache().load(x(), x(), layout=ZigZag(), length=-1), ValueError,
     "0 or more; got -1"),
    ("longer than it is", lambda: cache().truncate(4), ValueError, "holds 3 tokens"),
    ("less than nothing", lambda: cache().truncate(-1), ValueError, "got -1"),
    ("a batch of text", lambda: ShardedKVCache("1", 2, 4), TypeError, "batch is an int"),
    ("no KV heads", lambda: ShardedKVCache(1, 0, 4), ValueError, "kv_heads is at least 1"),
    ("no width", lambda: ShardedKVCache(1, 2, 0), ValueError, "head_dim is at least 1"),
    ("a layout's class", lambda: ShardedKVCache(1, 2, 4, layout=Interleaved), TypeError,
     "layout is an Interleaved(block)"),
    ("a capacity of text", lambda: ShardedKVCache(1, 2, 4, capacity="9"), TypeError,
     "capacity is an int or None"),
    ("no capacity", lambda: ShardedKVCache(1, 2, 4, capacity=0), ValueError, "1 or more; got 0"),
    ("a cache of integers", lambda: ShardedKVCache(1, 2, 4, dtype=torch.int8), TypeError,
     "float32, float64, bfloat16, float16; got torch.int8"),
    ("not a member", lambda: ShardedKVCache(1, 2, 4, group=dist.GroupMember.NON_GROUP_MEMBER),
     ValueError, "no member of the group"),
    ("a mesh", lambda: ShardedKVCache(1, 2, 4, group="cp"), TypeError, "mesh.get_group(dimension)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "kind", "words"), [bad[1:] for bad in BAD_CALLS], ids=[bad[0] for bad in BAD_CALLS]
)
def test_a_call_that_cannot_work_is_refused_before_anything_is_sent(
    call: Callable[[], object], kind: type[Exception], words: str
) -> None:
    assert_refused_silently(call, kind, words)


@every_method
def test_a_query_without_tokens_sends_nothing(method: str) -> None:
    world = World(2)
    outs = world.run(lambda: decode_attention(x(1, 2, 0, 4), cache(), method=method))
    assert [out.shape for out in outs] == [(1, 2, 0, 4)] * 2
    assert messages(world.timeline) == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [("softmax_scale", "scale"), ("k_cache", "cache"), ("group", "ShardedKVCache(group=)")],
)
def test_an_argument_of_another_library_is_answered_with_its_name_here(
    given: str, meant: str
) -> None:
    with pytest.raises(TypeError, match=re.escape(f"It is called {meant} here")):
        decode_attention(x(), None, **{given: True})


def test_an_unknown_argument_is_never_swallowed() -> None:
    with pytest.raises(TypeError, match="decode_attention has no argument 'casual'"):
        decode_attention(x(), None, casual=True)
    with pytest.raises(RankFailed, match=r"ShardedKVCache\.append has no argument 'slot'"):
        World(1).run(lambda: cache().append(x(), x(), slot=3))


def test_without_a_process_group_the_error_says_how_to_get_one() -> None:
    with pytest.raises(RuntimeError, match=r"World\(n\).run"):
        ShardedKVCache(1, 2, 4)


def test_report_f12_a_kernel_that_takes_no_mask_is_refused_on_every_rank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ringlab.numerics.kernels import KERNELS

    def no_masks(q: Any, k: Any, causal: bool, masked: bool) -> str | None:
        return "it takes no boolean mask" if masked else None

    monkeypatch.setattr(KERNELS["cpu_flash"], "refuses", no_masks, raising=False)

    def call(new: int) -> str:
        try:
            decode_attention(x(1, 2, new, 4), cache(4), kernel="cpu_flash")
        except ValueError as error:
            return str(error)
        return "computed"

    assert World(3).run(call, 1) == ["computed"] * 3
    world = World(3)
    assert all("no boolean mask" in told for told in world.run(call, 2))
    assert messages(world.timeline) == []


def test_the_table_names_each_feature_once_and_says_what_to_use_instead() -> None:
    names = [row.name for row in SUPPORT]
    arguments = [name for row in SUPPORT for name in row.arguments]
    assert len(set(names)) == len(names)
    assert len(set(arguments)) == len(arguments)
    assert all(row.note for row in SUPPORT)
    assert not any(row.arguments for row in SUPPORT if row.status == "supported")
    assert METHODS == ["split_k", "all_gather", "ring"]
