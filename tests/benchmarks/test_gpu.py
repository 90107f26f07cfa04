"""The program for GPUs, as far as a CPU can prove it: every part runs, on tiny problems."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import torch.distributed as dist
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import stored
from benchmarks.gpu import __main__ as program
from benchmarks.gpu import blockwise, clock, intervals, kernels, overlap
from benchmarks.gpu.place import Place, link, place
from benchmarks.gpu.scale import TINY, WHOLE
from benchmarks.gpu.table import conditions, tables
from ringlab import World
from ringlab.bench.readings import Reading
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
        assert row["share"] == pytest.approx(row["ideal_s"] / row["s"], rel=1e-2)


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
        "cuda": "13", "nccl": "2.27", "link": "NV18",
    }  # fmt: skip
    told = conditions({**measured, "machine": on_gpus})
    assert "8 of A GPU (80 GiB, linked by NV18), driver 580, CUDA 13, NCCL 2.27" in told


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


@pytest.mark.parametrize(
    ("options", "said", "printed"),
    [
        (["--device", "cpu"], "hours; to try the program without a GPU", ""),
        (["--device", "cpu", "--tiny", "--parts", "blockwise"], "", "Not stored"),
    ],
)
def test_what_is_not_whole_is_not_stored(
    options: list[str],
    said: str,
    printed: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(stored, "path_of", lambda name: tmp_path / name)
    monkeypatch.setattr("sys.argv", ["gpu", *options])
    if said:
        with pytest.raises(SystemExit, match="2"):
            program.main()
    else:
        assert program.main() == 0
    output = capsys.readouterr()
    assert said in output.err
    assert printed in output.out
    assert not list(tmp_path.iterdir())


def test_a_whole_run_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "path_of", lambda name: tmp_path / "results" / name)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(dist, "is_nccl_available", lambda: True)
    chosen: list[tuple[Any, ...]] = []
    data = {"parts": {}, "left_out": [], "machine": {"device": "cuda"}}
    monkeypatch.setattr(program, "measured", lambda *given: chosen.append(given) or data)
    monkeypatch.setattr(program, "tables", str)
    monkeypatch.setattr("sys.argv", ["gpu"])
    assert program.main() == 0
    assert chosen == [(Place("cuda", 2, 2), WHOLE, program.PARTS)]
    assert stored.read(tmp_path / "results" / "gpu") == data


def test_two_ranks_on_one_gpu_say_what_that_cannot_tell_but_only_of_parts_among_ranks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared = Place("cpu", 2, 1)
    monkeypatch.setattr(Place, "facts", lambda place: {})
    alone = program.measured(shared, TINY, ["blockwise"])
    assert list(alone["parts"]) == ["blockwise"]
    assert not alone["left_out"]
    among = program.measured(shared, TINY, ["overlap"])
    assert not among["parts"]
    assert among["left_out"] == [program.SHARED]


TOPOLOGY = """\
\tGPU0\tGPU1\tNIC0\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV18\tPXB\t0-47\t0
GPU1\tNV18\t X \tPIX\t0-47\t0
NIC0\tPXB\tPIX\t X
"""


@pytest.mark.parametrize(
    ("matrix", "expected"),
    [
        (TOPOLOGY, "NV18"),
        (TOPOLOGY.replace("NV18", "SYS"), "SYS"),
        ("", "unknown"),
        ("GPU0\t X", "unknown"),
    ],
)
def test_the_link_is_read_from_what_nvidia_smi_prints(matrix: str, expected: str) -> None:
    assert link(matrix) == expected


@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_latency_waits_for_every_step(one_by_one: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    did: list[str] = []
    monkeypatch.setattr(clock, "finish", lambda device: did.append("waits"))
    clock.reading(lambda: did.append("asks"), "cuda", 2, one_by_one=one_by_one)
    asked = ["asks", "waits"] * 2 if one_by_one else ["asks", "asks"]
    assert did == ["asks", "waits", *asked, "waits"]


def test_every_time_is_a_median_of_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "reading", lambda *_: Reading(float(next(count)), 0.0))
    monkeypatch.setattr(kernels, "_errors", lambda *_: {})
    count = itertools.count(1)
    scale = replace(TINY, rounds=3)
    rows = kernels.run(Place("cpu", 2, 2), scale)
    full = next(row for row in rows if "forward_s" in row)
    assert (full["forward_s"], full["backward_s"]) == (3.0, 4.0)  # of 1, 3, 5 and of 2, 4, 6

    class Profiled:
        def run(self, _function: object, *_given: object) -> list[Any]:
            travels = next(count)
            return [([(0.0, travels)], [(0.0, 1.0)]), ([], [(0.0, travels)])]

    count = itertools.count(2)
    one, other = overlap.run(cast("World", Profiled()), "cpu", scale)
    assert one == {"rank": 0, "messages_s": 3e-6, "attention_s": 1e-6, "hidden": 1 / 3}
    assert other == {"rank": 1, "messages_s": 0.0, "attention_s": 3e-6, "hidden": None}


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
