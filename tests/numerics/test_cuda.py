"""The CUDA kernels against the float64 oracle; needs a GPU."""

from __future__ import annotations

import pytest
import torch

from ringlab.numerics import AttentionState, attend, attend_backward, available_kernels
from ringlab.numerics.kernels import choose
from tests import oracle
from tests.numerics.cases import TOLERANCE, Case, assert_near, case

pytestmark = pytest.mark.cuda

USABLE = [x.name for x in available_kernels() if x.usable and x.devices in (("cuda",), ("any",))]


def on_gpu(given: Case) -> Case:
    return Case(*(x.cuda() for x in given))


@pytest.mark.parametrize("kernel", USABLE)
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize(("queries", "keys"), [(70, 70), (70, 33), (33, 70), (7, 300)])
@pytest.mark.parametrize("kv_heads", [1, 8])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_a_kernel_agrees_with_float64(
    kernel: str, causal: bool, queries: int, keys: int, kv_heads: int, dtype: torch.dtype
) -> None:
    sizes = {"heads": 8, "kv_heads": kv_heads, "queries": queries, "keys": keys}
    given = on_gpu(case(head_dim=64, dtype=dtype, **sizes))
    q, k, v, dout = given
    done = attend(q, k, v, causal=causal, kernel=kernel)
    found = attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)
    exact = oracle.attention(q, k, v, dout, causal=causal)
    assert_near(done.out, exact.out, TOLERANCE[dtype])
    assert_near(done.lse, exact.lse, 1e-3)
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 3 * TOLERANCE[dtype])


@pytest.mark.parametrize("kernel", USABLE)
def test_blocks_weigh_their_keys_by_the_final_lse(kernel: str) -> None:
    q, k, v, dout = on_gpu(case(queries=70, keys=128, head_dim=40, dtype=torch.bfloat16))
    halves = (slice(0, 64), slice(64, 128))
    first, second = (attend(q, k[:, :, x], v[:, :, x], kernel=kernel) for x in halves)
    final = first.merge(second)
    parts = [
        attend_backward(dout, q, k[:, :, x], v[:, :, x], final.out, final.lse, kernel=kernel)
        for x in halves
    ]
    exact = oracle.attention(q, k, v, dout)
    assert_near(parts[0][0] + parts[1][0], exact.dq, 3 * TOLERANCE[torch.bfloat16])
    for index, expected in ((1, exact.dk), (2, exact.dv)):
        joined = torch.cat([part[index] for part in parts], dim=2)
        assert_near(joined, expected, 3 * TOLERANCE[torch.bfloat16])


def test_merging_with_empty_states_is_the_identity_on_a_gpu() -> None:
    q, k, v, _ = on_gpu(case())
    done = attend(q, k, v)
    empty = AttentionState.empty(*done.out.shape, device="cuda")
    for merged in (done.merge(empty), empty.merge(done)):
        assert torch.equal(merged.out, done.out)
        assert torch.equal(merged.lse, done.lse)
    assert (empty.merge(empty).out == 0).all()


def test_float32_is_computed_by_the_reference_and_16_bit_by_a_fused_kernel() -> None:
    wide, narrow = on_gpu(case()), on_gpu(case(dtype=torch.bfloat16))
    assert choose(None, wide.q, wide.k, False, False).name == "reference"
    if len(USABLE) > 1:
        assert choose(None, narrow.q, narrow.k, False, False).name != "reference"
