"""Errors against the number of ranks: measured anew at two sizes, and as they are published."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib.testing.compare import calculate_rms
from PIL import Image

from ringlab.bench import accuracy
from ringlab.bench.accuracy import (
    SIZES,
    AccuracyProblem,
    ErrorRow,
    Policy,
    error_rows,
    in_float64,
    policies,
)
from ringlab.bench.accuracy_report import read_errors, violations, write_errors
from ringlab.commands.bench import main
from tests import oracle
from tools import accuracy as page

every_policy = pytest.mark.parametrize("policy", policies(), ids=lambda policy: policy.name)
SMALL = AccuracyProblem(length=131, heads=2, kv_heads=1, dim=24)


def measured(policy: Policy, problem: AccuracyProblem, sizes: tuple[int, ...]) -> list[ErrorRow]:
    both = [replace(problem, causal=causal) for causal in (False, True)]
    return [row for given in both for row in error_rows(given, [policy], sizes)]


@every_policy
def test_errors_are_within_the_limits_and_flat_at_a_small_size(policy: Policy) -> None:
    rows = measured(policy, SMALL, (1, 2, 8))
    assert len(rows) == 2 * 3 * 4
    assert violations(rows, policy) == []


def test_narrow_partial_results_are_flat_up_to_32_ranks() -> None:
    (narrow,) = (x for x in policies() if (x.dtype, x.kernel) == ("bfloat16", "cpu_flash"))
    rows = list(error_rows(replace(SMALL, causal=True), [narrow], (2, 32)))
    assert violations(rows, narrow) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@every_policy
def test_errors_are_within_the_limits_and_flat_at_the_published_size(policy: Policy) -> None:
    _, problem, published = read_errors(page.RESULTS)
    rows = measured(policy, problem, SIZES)
    assert violations(rows, policy) == []
    for now, then in zip(rows, page.of_policy(published, policy), strict=True):
        assert (now.mask, now.ranks, now.result) == (then.mask, then.ranks, then.result)
        assert now.rms == pytest.approx(then.rms, rel=0.5), "another machine, the same size"


def test_what_is_published_is_complete_within_the_limits_and_flat() -> None:
    _, problem, rows = read_errors(page.RESULTS)
    assert problem.seeds >= 8
    pairs = Counter((row.dtype, row.kernel) for row in rows)
    assert pairs == {(x.dtype, x.kernel): 2 * len(SIZES) * 4 for x in policies()}
    assert {row.ranks for row in rows} == set(SIZES)
    assert [text for policy in policies() for text in violations(rows, policy)] == []


def test_the_page_shows_what_was_measured() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(text) == text


def test_the_picture_of_the_page_is_drawn_from_what_was_measured(tmp_path: Path) -> None:
    drawn = np.asarray(Image.open(page.picture().save(tmp_path / "accuracy.png", dpi=110)))
    stored = np.asarray(Image.open(page.PICTURE))
    assert drawn.shape == stored.shape
    # fonts may be smoothed differently elsewhere
    assert calculate_rms(drawn.astype(int), stored.astype(int)) < 10


def test_a_change_of_the_numbers_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine, problem, rows = read_errors(page.RESULTS)
    worse = [replace(row, rms_ratio=row.rms_ratio * 1.1) for row in rows]
    monkeypatch.setattr(page, "read_errors", lambda path: (machine, problem, worse))
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.page(text) != text


@pytest.mark.parametrize("causal", [False, True])
def test_the_truth_is_attention_by_its_definition(causal: bool) -> None:
    given = SMALL.inputs(torch.float64)
    found, exact = in_float64(given, causal), oracle.attention(*given, causal=causal)
    for name, tensor in found._asdict().items():
        torch.testing.assert_close(tensor, getattr(exact, name), rtol=1e-11, atol=1e-12)


def test_errors_are_means_over_the_sequences_and_relative() -> None:
    exact = torch.tensor([[3.0, -4.0], [0.0, 2.0]], dtype=torch.float64)
    found = exact + torch.tensor([[0.5, 0.0], [0.3, -0.4]], dtype=torch.float64)
    rms, largest = accuracy._errors(found, exact)
    assert rms == pytest.approx(statistics.mean((0.5 / 5, 0.5 / 2)))
    assert largest == pytest.approx(statistics.mean((0.5 / 4, 0.4 / 2)))


FLOAT32 = Policy("float32", "cpu_flash", "float32", 1.3)
FLOAT64 = Policy("float64", "cpu_flash", "float64", None)


def row(policy: Policy, ranks: int, ratio: float) -> ErrorRow:
    names = policy.dtype, policy.kernel, policy.partials
    return ErrorRow(*names, "full", ranks, "dq", ratio, ratio, ratio, ratio)


@pytest.mark.parametrize(
    ("policy", "rows", "said"),
    [
        (FLOAT32, {2: 1.0, 32: 1.09}, []),
        (FLOAT32, {2: 1.31, 32: 1.0}, ["dq on 2 ranks has 1.310 times the error of one device"]),
        (FLOAT32, {2: 1.0, 8: 1.2, 32: 1.11}, ["32 ranks has 1.110 times the error of two ranks"]),
        (FLOAT64, {2: 1e-13, 32: 9e-13}, []),
        (FLOAT64, {2: 1e-13, 32: 2e-12}, ["dq on 32 ranks has an error of 2e-12"]),
    ],
)
def test_what_is_above_a_limit_is_named(
    policy: Policy, rows: dict[int, float], said: list[str]
) -> None:
    found = violations([row(policy, size, ratio) for size, ratio in rows.items()], policy)
    assert len(found) == len(said)
    assert all(words in text for words, text in zip(said, found, strict=True))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    rows = [row(FLOAT32, 2, 1.25), row(FLOAT64, 32, 1.5e-13)]
    write_errors(tmp_path / "errors.json", {"cpu": "a CPU"}, SMALL, rows)
    assert read_errors(tmp_path / "errors.json") == ({"cpu": "a CPU"}, SMALL, rows)


def two(*arguments: object) -> Iterator[ErrorRow]:
    yield from [row(FLOAT32, size, 1.4) for size in (2, 32) for _ in range(4)]


def test_the_command_fails_where_an_error_is_above_its_limit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("ringlab.commands.bench.error_rows", two)
    assert main(["--errors", "--json", str(tmp_path / "errors.json")]) == 1
    assert "dq on 32 ranks has 1.400 times the error of one device" in capsys.readouterr().out
