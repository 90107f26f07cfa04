"""The library on pretended CUDA: tensors stay on the GPU, and nobody asks for their numbers.

A number asked for would make the host wait for the GPU, in the middle of what shall overlap.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from ringlab import Interleaved, Layout, ShardedKVCache, ZigZag, decode_attention
from ringlab.numerics import cuda, merge, ops
from ringlab.numerics.kernels import KERNELS, choose
from ringlab.numerics.tile import Final, Operands
from ringlab.prefill.all_gather import AllGather
from ringlab.prefill.blocks import Own
from ringlab.prefill.plan import make_plan
from ringlab.prefill.ring import Ring
from tests.decode.cases import every_method as every_decode_method
from tests.gpu import pretended
from tests.prefill.cases import LAYOUTS
from tests.prefill.cases import every_method as every_prefill_method

SIZE, LENGTH = 4, 41
every_rank = pytest.mark.parametrize("rank", [0, SIZE - 1])
every_layout = pytest.mark.parametrize("layout", LAYOUTS, ids=lambda x: type(x).__name__)
masked_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
# A program may leave torch's default device as it is and put its own tensors on the GPU.
every_default = pytest.mark.parametrize("default", ["cuda:0", "cpu"])
CUDA = torch.device("cuda:0")


@pytest.fixture(autouse=True)
def one_card(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    pretended.card(monkeypatch)
    yield
    cuda.prefers_cudnn.cache_clear()
    cuda._cudnn_lse_dim.cache_clear()


@pytest.fixture
def ranks(rank: int) -> Iterator[None]:
    with pretended.ranks(rank, SIZE):
        yield


def shards(rank: int, layout: Layout) -> list[Tensor]:
    length = len(layout.positions(rank, SIZE, LENGTH))
    made = (torch.randn(2, h, length, 8, dtype=torch.bfloat16, device=CUDA) for h in (6, 3, 3))
    return list(made)


@every_rank
@every_prefill_method
@pytest.mark.usefixtures("ranks")
def test_a_prefill_call_with_its_length_never_waits_for_the_gpu(rank: int, method: Any) -> None:
    with pretended.tensors("cpu"):
        q, k, v = shards(rank, ZigZag())
        out = method(q, k, v, layout=ZigZag(), causal=True, length=LENGTH)
        assert (out.device, out.dtype, out.shape) == (CUDA, q.dtype, q.shape)
        with pytest.raises(NotImplementedError, match="CUDA"):  # notes are compared on the host
            method(q, k, v, layout=ZigZag(), causal=True)


@every_rank
@every_layout
@pytest.mark.parametrize(("causal", "default"), [(True, "cpu"), (False, "cuda:0")])
@pytest.mark.parametrize("method", [Ring, AllGather], ids=lambda x: x.name)
@pytest.mark.usefixtures("ranks")
def test_forward_and_backward_stay_on_the_gpu_and_never_wait_for_it(
    rank: int, layout: Layout, causal: bool, default: str, method: Any
) -> None:
    with pretended.tensors(default):
        q, k, v = shards(rank, layout)
        plan = make_plan(method.name, q, k, layout=layout, causal=causal, scale=None, kernel=None,
                         length=LENGTH, group=None, gradients=True)  # fmt: skip
        out, lse = method.forward(q, k, v, plan)
        assert (out.device, lse.device, out.dtype) == (CUDA, CUDA, q.dtype)
        own = Own(dout=torch.randn_like(q), q=q, k=k, v=v, out=out, lse=lse)
        gradients = method.backward(own, plan)
        assert [x.shape for x in gradients] == [q.shape, k.shape, v.shape]
        assert {x.device for x in gradients} == {CUDA}


@every_rank
@every_decode_method
@every_default
@pytest.mark.parametrize("new", [1, 3])
@pytest.mark.usefixtures("ranks")
def test_decode_stays_on_the_gpu_and_never_waits_for_it(
    rank: int, method: str, default: str, new: int
) -> None:
    with pretended.tensors(default):
        _, k, v = shards(rank, ZigZag())
        cache = ShardedKVCache(
            2, 3, 8, layout=Interleaved(2), capacity=64, dtype=k.dtype, device=CUDA
        )
        cache.load(k, v, layout=ZigZag(), length=LENGTH)
        cache.append(*(torch.randn(2, 3, new, 8, dtype=k.dtype, device=CUDA) for _ in "kv"))
        q = torch.randn(2, 6, new, 8, dtype=k.dtype, device=CUDA)
        out = decode_attention(q, cache, method=method)
        assert (out.device, out.shape, out.dtype) == (CUDA, q.shape, q.dtype)


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
@masked_or_not
def test_a_block_is_computed_on_the_gpu_with_the_memory_that_is_announced(
    capability: tuple[int, int], dtype: torch.dtype, causal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Announced: by the meta implementation, for which compiled graphs plan."""
    pretended.card(monkeypatch, capability)
    with pretended.tensors("cpu"):
        q, k, v = (torch.randn(2, h, 9, 20, dtype=dtype, device=CUDA) for h in (6, 3, 3))
        options = (None, causal, 0.3, None)
        done = ops._attend(q, k, v, *options)
        planned = ops._attend_meta(q, k, v, *options)
        found = ops._attend_backward(torch.randn_like(q), q, k, v, *done, *options)
        announced = ops._attend_backward_meta(torch.randn_like(q), q, k, v, *done, *options)
        for one, other in zip((*done, *found), (*planned, *announced), strict=True):
            assert (one.shape, one.stride(), one.dtype) == (
                other.shape,
                other.stride(),
                other.dtype,
            )
            assert one.device == other.device == CUDA


@pytest.mark.parametrize("canonical", [False, True])
def test_a_merge_on_the_gpu_looks_at_no_number(canonical: bool) -> None:
    """On a CPU it looks whether rows are empty, which is free there."""
    with pretended.tensors("cpu"):
        out, other_out = (torch.randn(2, 3, 9, 8, device=CUDA) for _ in range(2))
        lse, other_lse = (torch.randn(2, 3, 9, dtype=torch.float64, device=CUDA) for _ in range(2))
        done = merge._merge(out, lse, other_out, other_lse, canonical)
        assert [(x.shape, x.device) for x in done] == [(out.shape, CUDA), (lse.shape, CUDA)]
        merge._merge_(out, lse, other_out, other_lse, canonical)


@masked_or_not
@pytest.mark.parametrize("name", ["cuda_flash", "cuda_cudnn"])
def test_the_adapters_get_what_they_expect_of_torchs_operators(name: str, causal: bool) -> None:
    """Shapes and dtypes are torch's own, and so is the shape of the LSE that cuDNN is asked for."""
    kernel = KERNELS[name]
    with pretended.tensors():
        shapes = ((6, 40), (3, 33), (3, 33), (6, 40))
        q, k, v, dout = (torch.randn(2, *x, 20, dtype=torch.bfloat16) for x in shapes)
        block = Operands(q, k, v, causal, None, 0.3)
        assert choose(name, q, k, causal, False) is kernel
        out, lse = kernel.forward(block)
        assert (out.shape, lse.shape, lse.dtype) == (q.shape, q.shape[:-1], torch.float64)
        found = kernel.backward(block, Final(dout, out, lse))
        assert [x.shape for x in found] == [q.shape, k.shape, v.shape]
        assert {x.device for x in (out, lse, *found)} == {CUDA}
        assert cuda._cudnn_lse_dim.__wrapped__(CUDA) in (3, 4)


def test_a_kernel_for_gpus_refuses_tensors_of_the_host() -> None:
    q = torch.zeros(1, 2, 9, 64, dtype=torch.bfloat16)
    with pytest.raises(ValueError, match="it runs on cuda, not on cpu"):
        choose("cuda_flash", q, q, False, False)
