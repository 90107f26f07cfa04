from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import decode


@pytest.mark.processes
def test_decode_is_measured_beside_one_process_and_told_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "decode.json"
    arguments = ["decode", "--rounds", "1", "--lengths", "512", "768", f"--json={stored}"]
    monkeypatch.setattr("sys.argv", arguments)
    assert decode.main() == 0
    rows = json.loads(stored.read_text("utf-8"))["rows"]
    assert [(row["ranks"], row["length"]) for row in rows] == [
        (ranks, length) for ranks in decode.WORLD_SIZES for length in (512, 768)
    ]
    for row in rows:
        assert row["cpu_ratio"] == pytest.approx(row["baseline_cpu_s"] / row["cpu_s"], rel=0.5)
        assert min(row["cpu_s"], row["wall_s"], row["baseline_cpu_s"], row["baseline_wall_s"]) > 0
    printed = capsys.readouterr().out
    assert all(f"| {row['length']} | {row['ranks']} |" in printed for row in rows)
