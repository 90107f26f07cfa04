"""The program for GPUs, as far as a CPU can prove it: every part runs, on tiny problems."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.gpu import __main__ as program
from benchmarks.gpu import blockwise, intervals, overlap
from benchmarks.gpu.place import Place, place
from benchmarks.gpu.scale import TINY
from benchmarks.gpu.table import conditions, tables
from tests import oracle
from tests.numerics.cases import assert_near, case

SAME_DTYPE = 2e-6  # relative error of float32 on tiny problems


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the whole program finds on this CPU."""
    path = tmp_path_factory.mktemp("gpu") / "results" / "gpu.json"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sys.argv", ["gpu", "--device", "cpu", "--tiny", f"--json={path}"])
        assert program.main() == 0
    found: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return found


@pytest.mark.processes
def test_every_part_runs_on_a_cpu(measured: dict[str, Any]) -> None:
    parts = measured["parts"]
    assert tuple(parts) == program.PARTS
    kernels = [row for row in parts["kernels"] if "failure" not in row]
    assert {row["kernel"] for row in kernels} == {"cpu_flash", "reference"}
    assert all(error < SAME_DTYPE for row in kernels for error in row["errors"].values())
    assert [row["blocks"] for row in parts["blockwise"]] == [2, 4, 2, 4]
    ring = {(row["layout"], row["phase"]) for row in parts["ring"]}
    assert {layout for layout, _ in ring} == {"Contiguous", "ZigZag", "Striped"}
    assert len(ring) == len(parts["ring"]) == 6
    assert [row["rank"] for row in parts["overlap"]] == [0, 1]
    assert all(row["messages_s"] > 0 and 0 <= row["hidden"] <= 1 for row in parts["overlap"])
    decode = {(row["context"], row["method"]) for row in parts["decode"]}
    assert decode == {(n, m) for n in TINY.contexts for m in ("split_k", "all_gather", "ring")}
    for row in (*parts["blockwise"], *parts["ring"], *parts["decode"]):
        assert row["s"] > 0
    for row in parts["ring"]:
        assert row["share"] == pytest.approx(row["ideal_s"] / row["s"])


@pytest.mark.processes
def test_the_tables_tell_every_row_and_where_it_was_measured(measured: dict[str, Any]) -> None:
    text = tables(measured)
    rows = sum(map(len, measured["parts"].values()))
    lines = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(lines) == rows + 2 * len(measured["parts"])
    assert text.endswith(conditions(measured))
    assert "2 ranks on" in text
    assert measured["machine"]["date"][:10] in text
    on_gpus = measured["machine"] | {
        "device": "cuda", "devices": 8, "gpu": "A GPU", "gpu_memory_gib": 80, "driver": "580",
        "cuda": "13", "nccl": "2.27", "peer_access": True,
    }  # fmt: skip
    told = conditions({**measured, "machine": on_gpus})
    assert "8 of A GPU (80 GiB, with peer access), driver 580, CUDA 13, NCCL 2.27" in told


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [(1, Place("cuda", 2, 1)), (2, Place("cuda", 2, 2)), (8, Place("cuda", 8, 8))],
)
def test_it_takes_the_gpus_that_there_are(
    gpus: int, expected: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    assert place(None) == expected
    assert expected.shared == (gpus == 1)
    assert place("cpu") == Place("cpu", 2, 2)


def test_what_it_needs_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr("sys.argv", ["gpu"])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "python -m benchmarks.gpu --device cpu --tiny" in capsys.readouterr().err
    monkeypatch.setattr("sys.argv", ["gpu", "--print", f"--json={tmp_path / 'gpu.json'}"])
    with pytest.raises(SystemExit, match="2"):
        program.main()
    assert "nothing has been measured yet" in capsys.readouterr().err
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: False)
    with pytest.raises(ValueError, match="no NCCL"):
        place(None)


@pytest.mark.parametrize("blocks", [1, 2, 3])
def test_blocks_one_after_the_other_are_attention(blocks: int) -> None:
    q, k, v, dout = case(heads=4, kv_heads=2, queries=18, keys=18, dtype=torch.float64)
    exact = oracle.attention(q, k, v, dout)
    assert_near(blockwise.forward(q, k, v, dout, blocks).out, exact.out, 1e-12)
    found = blockwise.both(q, k, v, dout, blocks)
    for gradient, expected in zip(found, (exact.dq, exact.dk, exact.dv), strict=True):
        assert_near(gradient, expected, 1e-12)


def test_kernels_are_told_apart_by_their_names() -> None:
    events = [
        ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", 0.0, 10.0),
        ("void flash_fwd_kernel<Flash_fwd_kernel_traits>", 4.0, 7.0),
        ("Memcpy DtoD (Device -> Device)", 0.0, 9.0),
        ("triton_merge", 9.0, 12.0),
    ]
    messages, attention = overlap.sorted_out(events, "cuda")
    assert (messages, attention) == ([(0.0, 10.0)], [(4.0, 7.0), (9.0, 12.0)])
    assert overlap.hidden(messages, attention) == {
        "messages_s": 10e-6, "attention_s": 6e-6, "hidden": 0.4,
    }  # fmt: skip
    assert overlap.hidden([], attention)["hidden"] is None


MOMENTS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)).map(sorted).map(tuple))


@given(MOMENTS, MOMENTS)
def test_intervals_are_sets_of_moments(one: list[Any], other: list[Any]) -> None:
    moments = [{m for a, b in group for m in range(a, b)} for group in (one, other)]
    assert intervals.length(one) == len(moments[0])
    assert intervals.common(one, other) == len(moments[0] & moments[1])
    joined = intervals.union(one)
    assert all(first[1] < second[0] for first, second in pairwise(joined))
