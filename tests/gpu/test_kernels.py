"""Every kernel of a device against float64: forward, backward, and blocks put together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from ringlab.numerics import AttentionState, attend, attend_backward
from ringlab.numerics.kernel import Kernel
from ringlab.numerics.kernels import KERNELS, choose
from tests import oracle
from tests.gpu.places import every_device
from tests.numerics.cases import TOLERANCE, Case, assert_near, case

LSE = {torch.float64: 1e-12, torch.float32: 1e-5, torch.bfloat16: 1e-3, torch.float16: 1e-3}
every_dtype = pytest.mark.parametrize("dtype", LSE, ids=lambda x: str(x).removeprefix("torch."))
masked_or_not = pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])


def on(device: str, **sizes: object) -> Case:
    return Case(*(x.to(device) for x in case(**sizes)))  # type: ignore[arg-type]


def usable(device: str) -> list[Kernel]:
    """What this machine can run on a device; asked in a test, for it starts CUDA."""
    return [x for x in KERNELS.values() if device in (x.devices or {device}) and not x.missing()]


def takers(given: Case, causal: bool) -> Iterator[str]:
    """Names of the kernels that take a block."""
    for kernel in usable(given.q.device.type):
        if kernel.refuses(given.q, given.k, causal, False) is None:
            yield kernel.name


def check(given: Case, causal: bool) -> None:
    q, k, v, dout = given
    exact = oracle.attention(q, k, v, dout, causal=causal)
    for kernel in takers(given, causal):
        done = attend(q, k, v, causal=causal, kernel=kernel)
        assert done.out.device == done.lse.device == q.device
        assert_near(done.out, exact.out, TOLERANCE[q.dtype])
        assert_near(done.lse, exact.lse, LSE[q.dtype])
        found = attend_backward(dout, q, k, v, done.out, done.lse, causal=causal, kernel=kernel)
        for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
            assert_near(gradient, expected, 3 * TOLERANCE[q.dtype])


@every_device
@masked_or_not
@every_dtype
@pytest.mark.parametrize(
    ("queries", "keys"), [(70, 70), (70, 33), (33, 70), (7, 300), (1, 257), (257, 1)]
)
def test_kernels_agree_with_float64_at_odd_lengths(
    device: str, causal: bool, dtype: torch.dtype, queries: int, keys: int
) -> None:
    check(on(device, queries=queries, keys=keys, heads=6, head_dim=64, dtype=dtype), causal)


@every_device
@masked_or_not
@pytest.mark.parametrize(("kv_heads", "head_dim"), [(1, 128), (2, 20), (8, 40), (2, 256), (1, 64)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=["bf16", "fp16"])
def test_kernels_agree_with_float64_for_groups_and_widths_of_heads(
    device: str, causal: bool, kv_heads: int, head_dim: int, dtype: torch.dtype
) -> None:
    sizes = {"heads": 8, "kv_heads": kv_heads, "head_dim": head_dim}
    check(on(device, queries=45, keys=45, dtype=dtype, **sizes), causal)


@every_device
@every_dtype
def test_blocks_weigh_their_keys_by_the_final_lse(device: str, dtype: torch.dtype) -> None:
    given = on(device, queries=70, keys=128, head_dim=40, dtype=dtype)
    q, k, v, dout = given
    halves = (slice(0, 64), slice(64, 128))
    exact, near = oracle.attention(q, k, v, dout), 3 * TOLERANCE[dtype]
    for kernel in takers(given, causal=False):
        first, second = (attend(q, k[:, :, x], v[:, :, x], kernel=kernel) for x in halves)
        final = first.merge(second)
        assert_near(final.lse, exact.lse, LSE[dtype])
        parts = [
            attend_backward(dout, q, k[:, :, x], v[:, :, x], final.out, final.lse, kernel=kernel)
            for x in halves
        ]
        assert_near(parts[0][0] + parts[1][0], exact.dq, near)
        for index, expected in ((1, exact.dk), (2, exact.dv)):
            assert_near(torch.cat([part[index] for part in parts], dim=2), expected, near)


@every_device
@pytest.mark.parametrize("queries", [0, 5])
def test_a_block_without_keys_or_queries_is_empty(device: str, queries: int) -> None:
    q, k, v, dout = on(device, queries=queries, keys=0, dtype=torch.bfloat16)
    done = attend(q, k, v)
    assert (done.out == 0).all()
    assert (done.lse == -torch.inf).all()
    found = attend_backward(dout, q, k, v, done.out, done.lse)
    assert [x.shape for x in found] == [q.shape, k.shape, v.shape]
    assert all((x == 0).all() and x.device == q.device for x in found)


@every_device
def test_a_mask_with_an_empty_row_gives_zeros_and_minus_infinity(device: str) -> None:
    q, k, v, dout = on(device, queries=9, keys=9, dtype=torch.bfloat16)
    mask = torch.ones(9, 9, dtype=torch.bool, device=device).tril(-1)
    done = attend(q, k, v, mask=mask)
    exact = oracle.attention(q, k, v, dout, mask=mask)
    assert_near(done.out, exact.out, TOLERANCE[q.dtype])
    assert_near(done.lse, exact.lse, LSE[q.dtype])
    assert (done.lse[:, :, 0] == -torch.inf).all()
    found = attend_backward(dout, q, k, v, done.out, done.lse, mask=mask)
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 3 * TOLERANCE[q.dtype])


@every_device
def test_merging_with_empty_states_is_the_identity(device: str) -> None:
    q, k, v, _ = on(device)
    done = attend(q, k, v)
    empty = AttentionState.empty(*done.out.shape, device=device)
    for merged in (done.merge(empty), empty.merge(done)):
        assert torch.equal(merged.out, done.out)
        assert torch.equal(merged.lse, done.lse)
    assert (empty.merge(empty).out == 0).all()


@every_device
def test_states_from_outside_are_merged_row_by_row(device: str) -> None:
    """Such a state may hold anything in an empty row; it is not read."""
    q, k, v, _ = on(device)
    done = attend(q, k, v)
    rows = torch.zeros_like(done.lse, dtype=torch.bool)
    rows[:, :, 2:5] = True
    holes = AttentionState(
        done.out.masked_fill(rows.unsqueeze(-1), torch.nan), done.lse.masked_fill(rows, -torch.inf)
    )
    for merged in (holes.merge(done), done.merge(holes)):
        assert torch.isfinite(merged.out).all()
        assert torch.equal(merged.out[:, :, 2:5], done.out[:, :, 2:5])
        assert torch.equal(merged.lse[:, :, 2:5], done.lse[:, :, 2:5])


@pytest.mark.cuda
def test_on_a_gpu_16_bit_is_computed_by_a_fused_kernel_and_float32_by_the_reference() -> None:
    wide, narrow = on("cuda"), on("cuda", dtype=torch.bfloat16)
    assert choose(None, wide.q, wide.k, False, False).name == "reference"
    fused = torch.cuda.get_device_capability() >= (8, 0)
    assert (choose(None, narrow.q, narrow.k, False, False).name != "reference") == fused
