"""``ringlab doctor`` tells what is there, what is absent and what is broken, and exits by it."""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from importlib import metadata

import pytest
import torch

from ringlab import __version__, cli, host
from ringlab.commands import doctor
from ringlab.commands.findings import Finding, Status

H100 = host.Gpu(0, "NVIDIA H100 80GB HBM3", 80 * 2**30, "9.0")
TOPOLOGY = """\
\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m
GPU0\t X \tNV18\tSYS\tPIX\t0-47\t0\t\tN/A
GPU1\tNV18\t X \tPHB\tNODE\t0-47\t0\t\tN/A
GPU2\tSYS\tPHB\t X \tSYS\t48-95\t1\t\tN/A
NIC0\tPIX\tNODE\tSYS\t X \t\t\t\t

Legend:

  X    = Self
"""


def found(check: Callable[[], Iterable[Finding]]) -> dict[str, Finding]:
    return {finding.subject: finding for finding in check()}


@pytest.fixture
def no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "gpus", list)
    monkeypatch.setattr(host, "driver_gpus", list)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_a_supported_python_is_fine() -> None:
    assert found(doctor.check_python)["Python"].status is Status.OK


@pytest.mark.parametrize("version", [(3, 9, 18), (3, 14, 0), (4, 0, 0)])
def test_another_python_is_broken(
    monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(sys, "version_info", version)
    finding = found(doctor.check_python)["Python"]
    assert finding.status is Status.BROKEN
    assert "PYTHON=" in finding.advice


def test_the_range_of_pythons_is_the_declared_one() -> None:
    oldest, newest = doctor.OLDEST_PYTHON, doctor.NEWEST_PYTHON
    declared = f">={oldest[0]}.{oldest[1]},<{newest[0]}.{newest[1] + 1}"
    assert set(metadata.metadata("ringlab")["Requires-Python"].split(",")) == set(
        declared.split(",")
    )


def test_torch_is_named_with_its_build() -> None:
    finding = found(doctor.check_torch)["torch"]
    assert torch.__version__ in finding.saying
    assert ("CUDA" if torch.version.cuda else "CPU build") in finding.saying


@pytest.mark.parametrize(
    ("version", "is_broken"), [("2.5.1+cpu", True), ("2.6.0", False), ("2.10.0+cu129", False)]
)
def test_a_torch_below_the_declared_one_is_broken(
    monkeypatch: pytest.MonkeyPatch, version: str, is_broken: bool
) -> None:
    monkeypatch.setattr(torch, "__version__", version)
    monkeypatch.setattr(doctor, "lowest_torch", lambda: "2.6")
    statuses = [finding.status for finding in doctor.check_torch()]
    assert (Status.BROKEN in statuses) is is_broken


def test_the_lowest_torch_is_the_one_that_the_package_declares() -> None:
    needs = metadata.requires("ringlab") or []
    assert f"torch>={doctor.lowest_torch()}" in needs


def test_without_distributed_torch_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_available", lambda: False)
    findings = found(doctor.check_torch)
    assert findings["distributed"].status is Status.BROKEN
    assert "gloo" not in findings


def test_without_gloo_real_ranks_on_cpu_are_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_gloo_available", lambda: False)
    assert found(doctor.check_torch)["gloo"].status is Status.ABSENT


def test_without_nccl_the_advice_is_to_borrow_a_cuda_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: False)
    finding = found(doctor.check_torch)["NCCL"]
    assert finding.status is Status.ABSENT
    assert "TORCH=system" in finding.advice


def test_the_version_of_nccl_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "is_nccl_available", lambda: True)
    monkeypatch.setattr(torch.cuda.nccl, "version", lambda: (2, 29, 3))
    assert found(doctor.check_torch)["NCCL"].saying == "2.29.3"


@pytest.mark.usefixtures("no_driver")
def test_a_machine_without_gpus_lacks_nothing() -> None:
    finding = found(doctor.check_gpus)["GPUs"]
    assert finding.status is Status.ABSENT
    assert "none is needed" in finding.advice


@pytest.mark.usefixtures("no_driver")
@pytest.mark.parametrize(
    ("cuda", "visible", "status", "hint"),
    [
        (None, None, Status.ABSENT, "CUDA build"),
        ("13.0", "", Status.ABSENT, "unset CUDA_VISIBLE_DEVICES"),
        ("13.0", "-1", Status.ABSENT, "unset CUDA_VISIBLE_DEVICES"),
        ("13.0", None, Status.BROKEN, "update the driver"),
    ],
)
def test_gpus_that_torch_cannot_use_are_explained(
    monkeypatch: pytest.MonkeyPatch,
    cuda: str | None,
    visible: str | None,
    status: Status,
    hint: str,
) -> None:
    monkeypatch.setattr(host, "driver_gpus", lambda: ["GPU 0: NVIDIA H100", "GPU 1: NVIDIA H100"])
    monkeypatch.setattr(torch.version, "cuda", cuda)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    finding = found(doctor.check_gpus)["GPUs"]
    assert finding.status is status
    assert "2" in finding.saying
    assert hint in finding.advice


def test_gpus_are_told_with_memory_and_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "gpus", lambda: [H100])
    monkeypatch.setattr(host, "driver_gpus", lambda: ["GPU 0"])
    monkeypatch.setattr(host, "links", lambda: {(0, 1): "NVLink (x18)", (1, 2): "NVLink (x18)"})
    findings = found(doctor.check_gpus)
    assert findings["GPU 0"].saying == "NVIDIA H100 80GB HBM3, 80 GiB, compute capability 9.0"
    assert findings["GPU links"].saying == "NVLink (x18) between 0-1, 1-2"


def test_the_topology_is_read_without_network_cards() -> None:
    assert host.read_topology(TOPOLOGY) == {
        (0, 1): "NVLink (x18)",
        (0, 2): "the link between CPU sockets",
        (1, 2): "the CPU's PCIe root",
    }


def test_no_topology_is_no_link() -> None:
    assert host.read_topology("") == {}


def test_a_missing_nvidia_smi_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    assert host.driver_gpus() == []


@pytest.mark.parametrize(
    ("quota", "cores"), [("150000 100000\n", 1), ("50000 100000\n", 1), ("max 100000\n", 16)]
)
def test_a_containers_quota_bounds_the_cores(
    monkeypatch: pytest.MonkeyPatch, quota: str, cores: int
) -> None:
    monkeypatch.setattr(host.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(host, "_read", lambda _: quota)
    assert host.cores() == cores


def test_a_containers_limit_bounds_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "_read", lambda _: "1048576\n")
    assert host.memory() == 2**20


def test_little_shared_memory_comes_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host, "shared_memory", lambda: 16 * 2**20)
    finding = found(doctor.check_machine)["/dev/shm"]
    assert "16 MiB" in finding.saying
    assert "--shm-size" in finding.advice


def test_every_kernel_is_told() -> None:
    from ringlab.numerics import available_kernels

    told = [finding.saying.split(":")[0] for finding in doctor.check_kernels()]
    assert told == [kernel.name for kernel in available_kernels()]
    assert any(finding.status is Status.OK for finding in doctor.check_kernels())


def test_missing_lab_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "find_spec", lambda name: None if name == "jupyterlab" else name)
    finding = found(doctor.check_lab)["notebooks"]
    assert finding.status is Status.ABSENT
    assert finding.saying == "not installed: jupyterlab"


def test_the_virtual_world_is_tried() -> None:
    assert doctor.try_world("virtual", 4, "").status is Status.OK


@pytest.mark.processes
def test_the_gloo_world_is_tried() -> None:
    assert doctor.try_world("gloo", 2, "").status is Status.OK


@pytest.mark.cuda
def test_the_nccl_world_is_tried() -> None:
    assert doctor.try_world("nccl", torch.cuda.device_count(), "").status is Status.OK


def _wrong() -> float:
    return -1.0


def _raises() -> float:
    raise OSError("the loopback address is not to be had")


@pytest.mark.parametrize(
    ("program", "told"), [(_wrong, "got [-1.0, -1.0]"), (_raises, "loopback address")]
)
def test_a_world_that_does_not_do_its_work_is_broken(
    monkeypatch: pytest.MonkeyPatch, program: Callable[[], float], told: str
) -> None:
    monkeypatch.setattr(doctor, "pass_on", program)
    finding = doctor.try_world("virtual", 2, "do something")
    assert finding.status is Status.BROKEN
    assert told in finding.saying
    assert finding.advice == "do something"


def test_a_check_that_raises_is_broken_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_torch() -> Iterable[Finding]:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    checks = (("torch", no_torch), ("Python", doctor.check_python))
    monkeypatch.setattr(doctor, "CHECKS", checks)
    findings = doctor.examine()
    assert [finding.status for finding in findings] == [Status.BROKEN, Status.OK]
    assert "torch is not installed" in findings[0].advice


@pytest.mark.parametrize(("status", "code"), [(Status.ABSENT, 0), (Status.BROKEN, 1)])
def test_the_exit_code_tells_broken_from_absent(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], status: Status, code: int
) -> None:
    finding = Finding("a thing", status, "is not there", "get one")
    monkeypatch.setattr(doctor, "CHECKS", (("a thing", lambda: [finding]),))
    assert cli.main(["doctor"]) == code
    report = capsys.readouterr().out
    assert "is not there" in report
    assert "-> get one" in report


def test_quick_starts_no_ranks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "try_world", pytest.fail)
    subjects = {finding.subject for finding in doctor.examine(start_worlds=False)}
    assert not any(subject.startswith("world") for subject in subjects)


def test_the_command_runs_without_torch_being_imported_for_help() -> None:
    code = "import sys; from ringlab import cli; cli.main([]); assert 'torch' not in sys.modules"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "doctor" in result.stdout


def test_an_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        cli.main(["docktor"])
    assert stop.value.code == 2
    assert "docktor" in capsys.readouterr().err


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["--version"])
    assert capsys.readouterr().out.strip() == f"ringlab {__version__}"
    assert metadata.version("ringlab") == __version__


def test_the_report_names_this_python(capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["doctor", "--quick"])
    assert platform.python_version() in capsys.readouterr().out
