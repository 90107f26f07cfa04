"""One block of attention, forward: every kernel of this machine against float64."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from ringlab.numerics import AttentionState, attend
from tests import oracle
from tests.numerics.cases import ON_CPU, TOLERANCE, assert_near, case

every_kernel = pytest.mark.parametrize(("kernel", "dtype"), ON_CPU)
every_name = pytest.mark.parametrize("kernel", ["cpu_flash", "cpu_flash_float32", "reference"])


def dtype_of(kernel: str) -> torch.dtype:
    return torch.bfloat16 if kernel == "cpu_flash_float32" else torch.float64


def assert_exact(
    found: AttentionState,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    causal: bool = False,
    mask: Tensor | None = None,
    scale: float | None = None,
) -> None:
    exact = oracle.attention(q, k, v, causal=causal, mask=mask, scale=scale)
    assert_near(found.out, exact.out, TOLERANCE[q.dtype])
    assert_near(found.lse, exact.lse, min(TOLERANCE[q.dtype], 1e-3))


@every_kernel
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_full_and_diagonal_tiles(kernel: str, dtype: torch.dtype, causal: bool) -> None:
    q, k, v, _ = case(dtype=dtype)
    assert_exact(attend(q, k, v, causal=causal, kernel=kernel), q, k, v, causal=causal)


@every_kernel
def test_a_general_mask_with_a_row_that_sees_nothing(kernel: str, dtype: torch.dtype) -> None:
    q, k, v, _ = case(dtype=dtype)
    mask = torch.rand(7, 9) < 0.5
    mask[2] = False
    mask[3] = True
    found = attend(q, k, v, mask=mask, kernel=kernel)
    assert_exact(found, q, k, v, mask=mask)
    assert (found.out[:, :, 2] == 0).all()


@every_name
def test_report_i7_causal_attention_with_an_lse_on_cpu(kernel: str) -> None:
    q, k, v, _ = case(queries=130, keys=130, dtype=dtype_of(kernel))
    assert_exact(attend(q, k, v, causal=True, kernel=kernel), q, k, v, causal=True)


@every_kernel
@pytest.mark.parametrize("heads", [(8, 1), (8, 2), (8, 8), (6, 3)], ids=lambda x: f"{x[0]}:{x[1]}")
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_report_b8_query_heads_share_kv_heads(
    kernel: str, dtype: torch.dtype, heads: tuple[int, int], causal: bool
) -> None:
    q, k, v, _ = case(heads=heads[0], kv_heads=heads[1], dtype=dtype)
    assert_exact(attend(q, k, v, causal=causal, kernel=kernel), q, k, v, causal=causal)


@every_name
@pytest.mark.parametrize(
    ("queries", "keys"), [(1, 9), (5, 9), (9, 5), (9, 1), (40, 300), (300, 40)]
)
def test_report_d14_a_causal_tile_is_aligned_at_the_top_left(
    kernel: str, queries: int, keys: int
) -> None:
    q, k, v, _ = case(queries=queries, keys=keys, dtype=dtype_of(kernel))
    found = attend(q, k, v, causal=True, kernel=kernel)
    assert_exact(found, q, k, v, causal=True)
    first = attend(q[:, :, :1], k[:, :, :1], v[:, :, :1], kernel=kernel)
    torch.testing.assert_close(found.out[:, :, :1], first.out, rtol=0, atol=1e-6)


@every_name
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
@pytest.mark.parametrize(
    "sizes",
    [{"keys": 0}, {"queries": 0}, {"queries": 0, "keys": 0}, {"batch": 0}],
    ids=["no keys", "no queries", "neither", "no batch"],
)
def test_blocks_without_tokens(kernel: str, causal: bool, sizes: dict[str, int]) -> None:
    q, k, v, _ = case(dtype=dtype_of(kernel), **sizes)
    found = attend(q, k, v, causal=causal, kernel=kernel)
    assert found.out.shape == q.shape
    assert (found.out == 0).all()
    assert (found.lse == -math.inf).all()


@every_name
def test_a_mask_over_no_keys(kernel: str) -> None:
    q, k, v, _ = case(keys=0, dtype=dtype_of(kernel))
    found = attend(q, k, v, mask=torch.ones(7, 0, dtype=torch.bool), kernel=kernel)
    assert (found.lse == -math.inf).all()


def projected(x: Tensor) -> Tensor:
    """[B, H, L, D] over the memory that a linear projection leaves, [B, L, H, D]."""
    return x.transpose(1, 2).contiguous().transpose(1, 2)


STRIDED = {
    "sequence-major": projected,
    "strided head dimension": lambda x: x.transpose(2, 3).contiguous().transpose(2, 3),
    "every other row": lambda x: x.repeat_interleave(2, dim=2)[:, :, ::2],
    "expanded batch": lambda x: x[:1].expand_as(x),
    "a slice of a packed tensor": lambda x: torch.cat([x, x, x], dim=3)[..., : x.shape[3]],
}


@every_name
@pytest.mark.parametrize("strided", STRIDED.values(), ids=STRIDED.keys())
@pytest.mark.parametrize("causal", [False, True], ids=["full", "diagonal"])
def test_report_h1_strided_inputs_are_read_right(
    kernel: str, strided: object, causal: bool
) -> None:
    q, k, v = (strided(x) for x in case(dtype=dtype_of(kernel))[:3])  # type: ignore[operator]
    assert_exact(attend(q, k, v, causal=causal, kernel=kernel), q, k, v, causal=causal)


@every_name
@pytest.mark.parametrize("scale", [0.0, 0.3, 2.0])
def test_the_scale_is_on_the_scores(kernel: str, scale: float) -> None:
    q, k, v, _ = case(dtype=dtype_of(kernel))
    assert_exact(attend(q, k, v, scale=scale, kernel=kernel), q, k, v, scale=scale)


@pytest.mark.parametrize("head_dim", [1, 3, 65, 256])
@every_name
def test_odd_and_wide_heads(kernel: str, head_dim: int) -> None:
    q, k, v, _ = case(head_dim=head_dim, dtype=dtype_of(kernel))
    assert_exact(attend(q, k, v, causal=True, kernel=kernel), q, k, v, causal=True)


@every_name
def test_a_nan_in_the_data_is_not_taken_for_an_empty_row(kernel: str) -> None:
    q, k, v, _ = case(dtype=dtype_of(kernel))
    q[0, 0, 3] = math.nan
    found = attend(q, k, v, kernel=kernel)
    assert found.out[0, 0, 3].isnan().all()
    assert found.lse[0, 0, 3].isnan()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda q, k, v: (q[0], k, v), r"q must be \[B, Hq, Lq, D\]"),
        (lambda q, k, v: (q, k, v[..., :8]), "both"),
        (lambda q, k, v: (q[:1], k, v), "batch"),
        (lambda q, k, v: (q[..., :8], k, v), "head dimension"),
        (lambda q, k, v: (q[..., :0], k[..., :0], v[..., :0]), "at least 1"),
        (lambda q, k, v: (q, k[:, :0], v[:, :0]), "divides 4: 1, 2, 4"),
        (
            lambda q, k, v: (q, k.repeat(1, 3, 1, 1)[:, :3], v.repeat(1, 3, 1, 1)[:, :3]),
            "4 % 3 = 1",
        ),
        (lambda q, k, v: (q, k.to("meta"), v), "one device"),
    ],
)
def test_operands_that_do_not_fit_are_refused_in_words(change: object, message: str) -> None:
    q, k, v, _ = case()
    with pytest.raises(ValueError, match=message):
        attend(*change(q, k, v))  # type: ignore[operator]


@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
def test_dtypes_that_are_not_supported_are_refused(dtype: torch.dtype) -> None:
    q, k, v = (x.to(dtype) for x in case()[:3])
    with pytest.raises(TypeError, match="share one dtype of float16"):
        attend(q, k, v)


def test_mixed_dtypes_are_refused() -> None:
    q, k, v, _ = case()
    with pytest.raises(TypeError, match="share one dtype"):
        attend(q, k.half(), v.half())


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (torch.zeros(7, 9), "boolean"),
        (torch.ones(9, 7, dtype=torch.bool), r"\[7, 9\]"),
        (torch.ones(2, 4, 7, 9, dtype=torch.bool), r"\[7, 9\]"),
        (torch.ones(7, 9, dtype=torch.bool, device="meta"), "must be on cpu"),
    ],
)
def test_masks_that_do_not_fit_are_refused(mask: Tensor, message: str) -> None:
    q, k, v, _ = case()
    with pytest.raises(ValueError, match=message):
        attend(q, k, v, mask=mask)


def test_a_block_is_causal_or_masked_not_both() -> None:
    q, k, v, _ = case()
    with pytest.raises(ValueError, match="not both"):
        attend(q, k, v, causal=True, mask=torch.ones(7, 9, dtype=torch.bool))


def test_the_same_inputs_give_the_same_bits() -> None:
    q, k, v, _ = case(queries=300, keys=300)
    first, second = (attend(q, k, v, causal=True) for _ in range(2))
    assert torch.equal(first.out, second.out)
    assert torch.equal(first.lse, second.lse)
