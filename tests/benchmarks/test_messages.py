from __future__ import annotations

from pathlib import Path

import pytest
import torch

from benchmarks import messages, stored
from ringlab import World


@pytest.mark.usefixtures("one_thread")
def test_a_hop_is_measured_beside_torchs_own_calls_and_told_row_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "messages.json"
    monkeypatch.setattr(messages, "HOPS", 64)
    arguments = ["messages", "--rounds", "1", "--sizes", "1", "2", "3", f"--json={path}"]
    monkeypatch.setattr("sys.argv", arguments)
    assert messages.main() == 0
    rows = stored.read(path)["rows"]
    assert [(row["ranks"], row["program"]) for row in rows] == [
        (1, "batched"), (2, "batched"), (2, "one by one"), (3, "batched"),
    ]  # fmt: skip
    assert all(row["cpu_s"] > row["torch_cpu_s"] > 0 and row["wall_s"] > 0 for row in rows)
    printed = capsys.readouterr().out
    assert all(f"| {row['ranks']} | {row['program']} |" in printed for row in rows)


@pytest.mark.parametrize("program", [messages.batched, messages.one_by_one])
def test_a_hop_is_one_message_of_every_rank(program: messages.Program) -> None:
    world, block = World(4), torch.empty(2, 3, device="meta")
    world.run(program, block, 5)
    timeline = world.timeline
    assert [timeline.bytes_sent(rank) for rank in range(4)] == [5 * 24] * 4
    assert timeline.edges() == {(rank, (rank + 1) % 4): 5 * 24 for rank in range(4)}
