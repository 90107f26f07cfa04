"""Choosing a kernel, refusing the ones that cannot, and checking what torch declares."""

from __future__ import annotations

import pytest
import torch

from ringlab.numerics import attend, attend_backward, available_kernels, private_ops
from ringlab.numerics import kernels as registry
from ringlab.numerics.cpu_flash import CpuFlash
from ringlab.numerics.kernel import Result
from ringlab.numerics.kernels import KERNELS, choose
from ringlab.numerics.tile import Operands
from tests.numerics.cases import case


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_on_cpu_the_fused_kernel_is_chosen(dtype: torch.dtype) -> None:
    q, k, _, _ = case(dtype=dtype)
    assert choose(None, q, k, False, False).name == "cpu_flash"


@pytest.mark.parametrize(("unit", "name"), [(True, "cpu_flash"), (False, "cpu_flash_float32")])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_16_bit_stays_16_bit_only_where_the_cpu_multiplies_it(
    unit: bool, name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "matrix_unit_takes", lambda _: unit)
    q, k, _, _ = case(dtype=dtype)
    assert choose(None, q, k, False, False).name == name


@pytest.mark.parametrize(
    ("queries", "dtype", "backward", "name"),
    [
        (8, torch.bfloat16, False, "cpu_flash"),
        (9, torch.bfloat16, False, "cpu_flash_float32"),
        (8, torch.bfloat16, True, "cpu_flash_float32"),
        (8, torch.float16, False, "cpu_flash_float32"),
    ],
)
def test_keys_are_not_widened_for_a_few_bfloat16_queries(
    queries: int, dtype: torch.dtype, backward: bool, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Up to 32 rows for each KV head: here four query heads share one."""
    monkeypatch.setattr(registry, "matrix_unit_takes", lambda _: False)
    q, k = torch.zeros(1, 8, queries, 16, dtype=dtype), torch.zeros(1, 2, 64, 16, dtype=dtype)
    assert choose(None, q, k, False, False, backward=backward).name == name


def test_where_the_fused_kernel_is_unusable_the_reference_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuFlash, "missing", lambda _: "torch has changed it")
    q, k, v, _ = case()
    assert choose(None, q, k, False, False).name == "reference"
    assert torch.isfinite(attend(q, k, v).out).all()
    with pytest.raises(ValueError, match=r"torch has changed it.*can: 'reference'"):
        attend(q, k, v, kernel="cpu_flash")


@pytest.mark.parametrize("name", ["math", "sdpa"])
def test_report_b13_kernels_without_an_lse_are_refused_by_name(name: str) -> None:
    q, k, v, dout = case()
    done = attend(q, k, v)
    for call in (
        lambda: attend(q, k, v, kernel=name),
        lambda: attend_backward(dout, q, k, v, done.out, done.lse, kernel=name),
    ):
        with pytest.raises(ValueError, match=f"no kernel '{name}'.*no LSE.*'reference'"):
            call()


def test_report_b13_a_kernel_that_returns_no_lse_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def without_lse(self: CpuFlash, block: Operands) -> Result:
        return block.q, None  # type: ignore[return-value]

    monkeypatch.setattr(CpuFlash, "forward", without_lse)
    q, k, v, _ = case()
    with pytest.raises(TypeError, match="without an LSE cannot be merged"):
        attend(q, k, v)


def test_an_unknown_kernel_is_refused_with_the_names_there_are() -> None:
    q, k, v, _ = case()
    with pytest.raises(ValueError, match="no kernel 'flash'; the kernels are 'cpu_flash', "):
        attend(q, k, v, kernel="flash")
    with pytest.raises(ValueError, match="no kernel 'flash'"):
        attend(*(x.to("meta") for x in (q, k, v)), kernel="flash")


@pytest.mark.parametrize("report", available_kernels(), ids=lambda report: report.name)
def test_a_kernel_runs_here_or_says_why_not_and_what_does(report: object) -> None:
    kernel = KERNELS[report.name]  # type: ignore[attr-defined]
    q, k, v, _ = case(dtype=min(kernel.dtypes, key=str))
    if report.usable and "cuda" not in report.devices:  # type: ignore[attr-defined]
        assert torch.isfinite(attend(q, k, v, kernel=kernel.name).out).all()
        return
    with pytest.raises(ValueError, match=r"cannot compute this block: .+can: .*'reference'"):
        attend(q, k, v, kernel=kernel.name)


def test_dtypes_that_a_kernel_does_not_take_are_refused_with_those_that_do() -> None:
    q, k, v, _ = case(dtype=torch.float32)
    with pytest.raises(ValueError, match=r"takes bfloat16, float16, not float32.*'cpu_flash'"):
        attend(q, k, v, kernel="cpu_flash_float32")


def test_every_report_has_what_a_table_needs() -> None:
    reports = {report.name: report for report in available_kernels()}
    assert reports["reference"].usable
    assert reports["reference"].devices == ("any",)
    assert reports["cpu_flash"].dtypes == ("bfloat16", "float16", "float32", "float64")
    assert all(report.usable == (report.reason == "") for report in reports.values())
    assert all(report.partials for report in reports.values())


@pytest.mark.parametrize("name", private_ops.SCHEMAS)
def test_the_installed_torch_declares_the_private_operators_as_expected(name: str) -> None:
    assert private_ops.problem(name) is None


def test_an_operator_that_torch_does_not_have_is_reported() -> None:
    assert "has no operator aten::_no_such" in (private_ops.problem("_no_such") or "")


EXPECTED = "(Tensor x, int n, *, float? scale=None) -> (Tensor out, Tensor lse)"


@pytest.mark.parametrize(
    ("installed", "fits"),
    [
        (EXPECTED, True),
        ("(Tensor x, int n, *, float? scale=None) -> (Tensor a, Tensor b)", True),
        ("(Tensor x, int n, *, bool y=False, float? scale=None) -> (Tensor a, Tensor b)", True),
        ("(Tensor x, int n, bool y=False, *, float? scale=None) -> (Tensor a, Tensor b)", True),
        ("(Tensor x, int n, bool y, *, float? scale=None) -> (Tensor a, Tensor b)", False),
        ("(Tensor x, *, float? scale=None) -> (Tensor a, Tensor b)", False),
        ("(int n, Tensor x, *, float? scale=None) -> (Tensor a, Tensor b)", False),
        ("(Tensor x, int n, *, Tensor? scale=None) -> (Tensor a, Tensor b)", False),
        ("(Tensor x, int n, *, float? factor=None) -> (Tensor a, Tensor b)", False),
        ("(Tensor x, int n, *, float? scale=None) -> Tensor", False),
    ],
)
def test_a_changed_operator_is_noticed(installed: str, fits: bool) -> None:
    schemas = (torch._C.parse_schema(f"a::b{text}") for text in (installed, EXPECTED))
    assert private_ops._compatible(*schemas) == fits
