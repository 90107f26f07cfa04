"""D: what is asked for is computed or refused by name; nothing is dropped in silence."""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import strategies as st
from torch import Tensor

from ringlab import Contiguous, RankFailed, ShardedKVCache, Striped, World, ZigZag
from ringlab.calls.support import Support
from ringlab.decode import decode_attention
from ringlab.decode.support import DECODE
from ringlab.prefill.support import PREFILL
from tests import oracle
from tests.faults.drawn import search, two_tiers
from tests.numerics.cases import TOLERANCE
from tests.prefill.cases import (
    METHODS,
    Attend,
    Inputs,
    Step,
    assert_exact,
    every_layout,
    every_method,
    inputs,
    run,
    step,
    whole,
)

Call = Callable[..., object]


def tokens() -> Tensor:
    return torch.zeros(1, 2, 3, 4)


def prefill(method: Attend) -> Call:
    return lambda **extra: method(tokens(), tokens(), tokens(), causal=True, **extra)


def decode(**extra: Any) -> Tensor:
    cache = ShardedKVCache(1, 2, 4)
    cache.append(tokens(), tokens())
    return decode_attention(tokens(), cache, **extra)


def append(**extra: Any) -> None:
    ShardedKVCache(1, 2, 4).append(tokens(), tokens(), **extra)


def load(**extra: Any) -> None:
    ShardedKVCache(1, 2, 4).load(tokens(), tokens(), layout=ZigZag(), **extra)


CALLS: list[tuple[Call, Support]] = [
    *((prefill(method), PREFILL) for method in METHODS),
    (decode, DECODE),
    (append, DECODE),
    (load, DECODE),
]
KNOWN = {"q", "k", "v", "layout", "causal", "scale", "length", "group", "kernel", "cache", "method"}

values = st.sampled_from([None, False, True, 0, 0.0, 0.1, (-1, -1), "none", torch.ones(3)])
words = st.from_regex(r"[a-z][a-z_]{2,14}", fullmatch=True).filter(
    lambda word: not keyword.iskeyword(word) and word not in KNOWN | {"self"}
)


@st.composite
def foreign(draw: st.DrawFn) -> tuple[Call, Support, str, object]:
    """Draw a call, and an argument that it does not have."""
    call, support = draw(st.sampled_from(CALLS))
    listed = sorted({name for row in support.features for name in row.arguments})
    name = draw(st.one_of(st.sampled_from([*listed, *support.renamed]), words))
    return call, support, name, draw(values)


def check_refused(drawn: tuple[Call, Support, str, object]) -> None:
    call, support, name, value = drawn
    if name in KNOWN:
        return
    world = World(2)
    with pytest.raises(RankFailed) as caught:
        world.run(lambda: call(**{name: value}))
    assert len(world.timeline.communication()) == 0
    cause = caught.value.__cause__
    assert name in str(cause)
    rows = [row for row in support.features if name in row.arguments]
    if rows:
        assert type(cause) is NotImplementedError
        assert rows[0].name in str(cause)
        assert rows[0].note in str(cause)
    else:
        assert type(cause) is TypeError
        assert support.renamed.get(name, "") in str(cause)


@two_tiers(few=50, many=600)
def test_no_argument_of_any_call_is_swallowed_whatever_its_value(examples: int) -> None:
    search(foreign(), check_refused, examples)


@pytest.mark.parametrize(("call", "support"), CALLS)
def test_report_d3_d5_windows_and_sinks_are_refused_and_not_warned_of(
    call: Call, support: Support
) -> None:
    asked = [("sliding_window", 2), ("window_size", (1, 0)), ("sinks", torch.zeros(2))]
    for name, value in [*asked, ("s_aux", torch.zeros(2))]:
        check_refused((call, support, name, value))
        assert any(name in row.arguments for row in support.features)


@every_method
@every_layout
def test_report_d10_packing_is_refused_with_every_method_and_layout(
    method: Attend, layout: Any
) -> None:
    for name in ("cu_seqlens", "cu_seqlens_q", "cu_seqlens_k", "document_ids"):
        with pytest.raises(NotImplementedError, match="each document as a sequence of its own"):
            method(tokens(), tokens(), tokens(), layout=layout, **{name: torch.tensor([0, 3])})


def documents(method: Attend, given: list[Inputs], layout: Any) -> list[Step]:
    """Each document as a sequence of its own, as the refusal of packing says."""
    return [step(method, document, layout, causal=True) for document in given]


@every_method
@pytest.mark.parametrize("layout", [Contiguous(), ZigZag(), Striped()], ids=str)
def test_report_d6_a_document_does_not_move_the_bits_of_another(
    method: Attend, layout: Any
) -> None:
    first, second = inputs(9, seed=1), inputs(14, seed=2)
    other = Inputs(*(x + 1.0 for x in first))
    before = World(4).run(documents, method, [first, second], layout)
    after = World(4).run(documents, method, [other, second], layout)
    for (changed, kept), (new, same) in zip(before, after, strict=True):
        assert all(torch.equal(x, y) for x, y in zip(kept, same, strict=True))
        assert not changed.out.numel() or not torch.equal(changed.out, new.out)
    assert_exact(whole([parts[1] for parts in before], layout), second, causal=True)


@every_method
@every_layout
def test_report_d11_padding_at_the_end_has_no_gradient_at_all(method: Attend, layout: Any) -> None:
    real = 11
    given = inputs(16)
    given.dout[:, :, real:] = 0
    found = run(method, given, 4, layout, causal=True)
    for gradient in (found.dq, found.dk, found.dv):
        # The first query sees one key only, and its weight is 1 whatever the score.
        assert (gradient[:, :, 1:real] != 0).all()
        assert (gradient[:, :, real:] == 0).all()


@every_method
def test_report_d12_the_error_does_not_depend_on_the_lengths_of_the_documents(
    method: Attend,
) -> None:
    dtype, worst = torch.bfloat16, []
    for length in (5, 31, 89, 177):
        given = inputs(length, batch=8, head_dim=16, dtype=dtype, seed=length)
        exact = oracle.attention(*given, causal=True)
        single = oracle.one_device(*given, causal=True)
        found = run(method, given, 4, ZigZag(), causal=True, kernel="reference")
        for name, tensor in found._asdict().items():
            truth = getattr(exact, name)
            ratio = oracle.error(tensor, truth) / oracle.error(getattr(single, name), truth)
            worst.append(ratio)
            assert oracle.error(tensor, truth) < TOLERANCE[dtype]
    assert max(worst) <= 1.05


def with_prefix(method: Attend, given: Inputs, prefix: int, length: int | None) -> Tensor:
    """Every rank brings all tokens of a prefix beside its own of the rest: a mistake."""
    place = dist.get_rank(), dist.get_world_size()
    own = (torch.cat((x[:, :, :prefix], Contiguous().shard(x[:, :, prefix:], *place)), 2)
           for x in given[:3])  # fmt: skip
    return method(*own, length=length)


@every_method
def test_report_d8_tokens_that_every_rank_holds_are_refused_and_sharded_ones_count_once(
    method: Attend,
) -> None:
    given, prefix = inputs(16), 4
    world = World(4)
    with pytest.raises(RankFailed, match="holds 7 tokens, but Contiguous\\(\\) of length 16"):
        world.run(with_prefix, method, given, prefix, 16)
    assert len(world.timeline.communication()) == 0
    for name in ("joint_tensor_key", "joint_tensor_value", "joint_strategy"):
        with pytest.raises(TypeError, match=f"has no argument '{name}'"):
            method(*given[:3], **{name: given.k})
    assert_exact(run(method, given, 4, Contiguous()), given, causal=False)
