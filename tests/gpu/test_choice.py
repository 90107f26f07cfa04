"""Which kernel a GPU gets, and what is told of it, with a stand-in for CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from ringlab import host
from ringlab.commands import doctor
from ringlab.commands.findings import Status
from ringlab.numerics import cuda, kernels
from ringlab.numerics.fused import cuda_problem
from tests.gpu import pretended


@pytest.fixture(autouse=True)
def asked_anew() -> Iterator[None]:
    """Let no test see what another one's card was like."""
    cuda.prefers_cudnn.cache_clear()
    yield
    cuda.prefers_cudnn.cache_clear()


def test_an_old_gpu_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended.card(monkeypatch)
    assert cuda_problem((8, 0)) is None
    pretended.card(monkeypatch, capability=(7, 5))
    assert cuda_problem((8, 0)) == "it needs compute capability 8.0; this GPU has 7.5"


def test_an_old_cudnn_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended.card(monkeypatch)
    assert cuda.CudaCudnn().missing() is None
    pretended.card(monkeypatch, cudnn=8907)
    assert cuda.CudaCudnn().missing() == "it needs cuDNN 9; this torch has 8907"


@pytest.mark.parametrize(
    ("capability", "version", "preferred"),
    [((9, 0), 91900, True), ((10, 0), 91900, True), ((8, 0), 91900, False), ((12, 0), 91900, False),
     ((9, 0), 91500, False), ((9, 0), None, False)],
)  # fmt: skip
def test_cudnn_comes_first_where_it_is_faster_and_right(
    monkeypatch: pytest.MonkeyPatch,
    capability: tuple[int, int],
    version: int | None,
    preferred: bool,
) -> None:
    pretended.card(monkeypatch, capability, version)
    assert cuda.prefers_cudnn() == preferred
    like = SimpleNamespace(device=torch.device("cuda"), dtype=torch.bfloat16)
    names = [kernel.name for kernel in kernels._by_preference(like, like, False)]
    assert names[0] == ("cuda_cudnn" if preferred else "cuda_flash")
    assert sorted(names) == ["cuda_cudnn", "cuda_flash", "flash_attn", "reference"]
    assert names[-1] == "reference"


def test_cudnn_refuses_a_single_key_and_deterministic_mode() -> None:
    q, k = torch.empty(1, 1, 4, 64, dtype=torch.bfloat16), torch.empty(1, 1, 1, 64)
    assert cuda.CudaCudnn().refuses(q, k, False, False) == "it takes no tile of a single key"
    torch.use_deterministic_algorithms(True)
    try:
        assert "not deterministic" in str(cuda.CudaCudnn().refuses(q, q, False, False))
    finally:
        torch.use_deterministic_algorithms(False)


def test_every_gpu_is_told_with_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    pretended.card(monkeypatch)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    one = SimpleNamespace(major=9, minor=0, name="A GPU", total_memory=80 << 30)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: one)
    assert host.gpus() == [host.Gpu(i, "A GPU", 80 << 30, "9.0") for i in (0, 1)]


def test_the_nccl_world_is_tried_with_all_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, int]] = []

    def try_world(backend: str, size: int, advice: str) -> object:
        tried.append((backend, size))
        return SimpleNamespace(status=Status.OK)

    monkeypatch.setattr(doctor, "try_world", try_world)
    monkeypatch.setattr(doctor.host, "gpus", lambda: [object()] * 8)
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    assert len(list(doctor.check_worlds())) == 3
    assert tried == [("virtual", 4), ("gloo", 2), ("nccl", 8)]
