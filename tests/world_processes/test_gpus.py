from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab.world import real_ranks
from ringlab.world.processes import ProcessRunner, gpus


@pytest.fixture
def machine(monkeypatch):
    """Pretend that this machine has so many GPUs."""

    def pretend(count: int, nccl: bool = True, cuda: str | None = "12.8") -> None:
        monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
        monkeypatch.setattr(dist, "is_nccl_available", lambda: nccl)
        monkeypatch.setattr(torch.version, "cuda", cuda)

    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return pretend


def test_each_rank_gets_a_gpu_of_its_own(machine):
    machine(8)
    assert gpus.assign(4, share=False) == ("nccl", [0, 1, 2, 3])
    assert gpus.assign(8, share=True) == ("nccl", list(range(8)))


def test_more_ranks_than_gpus_are_refused_in_words(machine, monkeypatch):
    machine(2)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,3")
    with pytest.raises(ValueError, match="8 NCCL ranks need 8 GPUs") as caught:
        ProcessRunner(8, backend="nccl")
    for part in ("may use 2", "CUDA_VISIBLE_DEVICES='0,3'", "World(2", "share_gpu=True", "gloo"):
        assert part in str(caught.value)


def test_ranks_that_share_gpus_are_spread_over_them_and_staged(machine):
    machine(2)
    assert gpus.assign(5, share=True) == ("staged", [0, 1, 0, 1, 0])


@pytest.mark.parametrize(
    ("cuda", "visible", "words"),
    [
        (None, None, "has no CUDA"),
        ("12.8", "", "CUDA_VISIBLE_DEVICES=''"),
        ("12.8", None, "ringlab doctor"),
    ],
    ids=["build", "hidden", "none"],
)
def test_a_machine_without_gpus_is_told_why(machine, monkeypatch, cuda, visible, words):
    machine(0, cuda=cuda)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    with pytest.raises(ValueError, match="needs GPUs") as caught:
        ProcessRunner(2, backend="nccl", share_gpu=True)
    assert words in str(caught.value)
    assert "backend='gloo'" in str(caught.value)


def test_a_torch_without_nccl_is_refused_in_words(machine):
    machine(4, nccl=False)
    with pytest.raises(ValueError, match="built without NCCL"):
        ProcessRunner(2, backend="nccl")


def test_counting_gpus_does_not_start_cuda():
    started = torch.cuda.is_initialized()  # by a test before this one, where there is a GPU
    gpus.count()
    assert torch.cuda.is_initialized() == started


def test_lessons_take_all_gpus_where_there_are_two_and_else_processes(machine):
    machine(8)
    assert str(real_ranks(4)) == "8 GPUs over NCCL. This machine has 8 GPUs."
    assert real_ranks(4).device == "cuda"
    for count, said in ((0, "has none"), (1, "has one")):
        machine(count)
        chosen = real_ranks(4)
        assert (chosen.size, chosen.backend, chosen.device) == (4, "gloo", "cpu")
        assert said in str(chosen)
    machine(2, nccl=False)
    assert "built without NCCL" in str(real_ranks(4))
    with pytest.raises(ValueError, match="at least 1"):
        real_ranks(0)
