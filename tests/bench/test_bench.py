"""`ringlab bench` end to end: tiny problems, on real ranks."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from ringlab.bench import decode, prefill
from ringlab.bench.decode import DecodeProblem
from ringlab.bench.losses import LOSSES
from ringlab.bench.parts import PARTS, Parts
from ringlab.bench.prefill import PrefillProblem
from ringlab.bench.readings import WAITING, Stopwatch
from ringlab.bench.report import introduction
from ringlab.commands.bench import main
from ringlab.world import World

TINY = ["--lengths", "96", "--dims", "16", "--repeats", "2", "--decode-heads", "4/2"]


@pytest.mark.processes
def test_it_measures_every_problem_on_ranks_and_in_one_process(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table, document = tmp_path / "rows.csv", tmp_path / "rows.json"
    assert main([*TINY, "--csv", str(table), "--json", str(document)]) == 0
    printed = capsys.readouterr().out
    found = json.loads(document.read_text())
    rows = found["rows"]
    kinds = [(row["case"], row["dtype"], row["mask"], row["phase"]) for row in rows]
    assert kinds == [
        ("prefill", dtype, mask, phase)
        for dtype in ("float32", "bfloat16")
        for mask in ("full", "causal")
        for phase in ("forward", "backward")
    ] + [("decode", dtype, "full", "a token") for dtype in ("float32", "bfloat16")]
    for row in rows:
        assert row["cpu_s"] > 0
        assert row["baseline_cpu_s"] > 0
        assert row["cpu_ratio"] == pytest.approx(row["baseline_cpu_s"] / row["cpu_s"])
        assert row["wall_ratio"] == pytest.approx(row["baseline_wall_s"] / row["wall_s"])
        assert f"{row['cpu_ratio']:.3f}" in printed
        if row["case"] == "prefill":
            lost = [row[f"{name}_percent"] for name in LOSSES.values()]
            assert row["least_ratio"] == pytest.approx(100 / (100 + sum(lost)))
            assert row["bound"] == pytest.approx(100 / (100 + sum(lost) - lost[-1]))
    with table.open(newline="") as file:
        lines = list(csv.DictReader(file))
    assert [float(line["cpu_s"]) for line in lines] == [row["cpu_s"] for row in rows]
    assert {line["torch"] for line in lines} == {torch.__version__} == {found["machine"]["torch"]}


@pytest.mark.processes
def test_the_parts_of_a_rank_add_up_and_each_is_found() -> None:
    problem = PrefillProblem(512, 2, 32, torch.float32, causal=True)
    with World(2, backend="gloo", threads=1) as ranks:
        ranks.run(prefill.ring, problem)
        first, _ = ranks.run(prefill.ring, problem)
    for phase, reading in first.items():
        parts = dict(reading.parts)
        assert set(parts) == {*PARTS, WAITING}
        assert parts["kernel"] > 0
        assert parts["copies"] > 0
        assert parts["transport"] > 0
        assert min(parts.values()) > -1e-3
        assert (parts["merge"] > 0) == (phase == "forward")
        assert sum(parts[part] for part in PARTS) == pytest.approx(reading.cpu)


def test_the_meter_leaves_its_own_time_out() -> None:
    x, count = torch.zeros(1), 3000
    with Parts() as metered:
        for _ in range(count):
            x.view(1)
    with Stopwatch() as plain:
        for _ in range(count):
            x.view(1)
    with Parts() as watched, Stopwatch() as whole:
        for _ in range(count):
            x.view(1)
    assert watched.reading.cpu < 0.8 * whole.reading.cpu  # half of it is the meter's
    assert metered.reading.cpu > plain.reading.cpu / 5
    assert metered.reading.parts["kernel"] == 0.0


@pytest.mark.processes
def test_both_sides_compute_on_the_same_numbers() -> None:
    problem = PrefillProblem(40, 2, 8, torch.float32, causal=True)
    token = DecodeProblem(50, 4, 2, 8, torch.float32)
    with World(2, backend="gloo", threads=1) as ranks, World(1, backend="gloo") as alone:
        shards = ranks.run(shards_of, problem)
        ((whole,), parts) = alone.run(shards_of, problem), ranks.run(cached, token)
        ((keys,),) = (alone.run(keys_of, token),)
    for index, tensor in enumerate(whole):
        assert torch.equal(problem.layout.unshard([shard[index] for shard in shards]), tensor)
    assert torch.equal(torch.stack(parts, 3).flatten(2, 3), keys)


def shards_of(problem: PrefillProblem) -> list[torch.Tensor]:
    return [x.detach() for x in prefill._fresh(problem)]


def cached(problem: DecodeProblem) -> torch.Tensor:
    return decode._cache(problem).keys


def keys_of(problem: DecodeProblem) -> torch.Tensor:
    return decode._whole(problem)[0]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--lengths", "8x"], "'8x' is no list of positive numbers"),
        (["--lengths", "0"], "no list of positive numbers"),
        (["--repeats", "1,2"], "more than one number"),
        (["--dtype", "int8"], "'int8' is none of float32, bfloat16"),
        (["--decode-heads", "6/4"], "6 query heads cannot share 4 KV heads"),
        (["--case", "training"], "invalid choice"),
    ],
)
def test_bad_arguments_are_refused_before_any_rank_starts(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_more_threads_than_cores_are_named() -> None:
    facts = {
        "ringlab": "1", "date": "today", "cpu": "a CPU", "vectors": "AVX2", "cores": 4,
        "memory_gib": 8, "load": 0.0, "torch": "2", "python": "3", "system": "Linux",
    }  # fmt: skip
    assert "NOTE" not in introduction(facts, ranks=2, threads=2, rounds=5)
    assert "NOTE: 4 x 2 threads do not fit 4 cores" in introduction(facts, 4, 2, 5)
