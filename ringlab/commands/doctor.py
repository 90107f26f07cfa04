"""``ringlab doctor``: what this machine can run, in words, and what to do about the rest."""

from __future__ import annotations

import platform
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Sequence
from importlib import metadata
from importlib.util import find_spec
from itertools import groupby
from textwrap import indent
from typing import TYPE_CHECKING

from ringlab import __version__, host
from ringlab.commands.findings import Finding, Status, absent, broken, ok

if TYPE_CHECKING:
    from ringlab.world.api import Backend

OLDEST_PYTHON = (3, 10)
NEWEST_PYTHON = (3, 13)
LAB_PACKAGES = ("jupyterlab", "ipykernel", "ipywidgets", "matplotlib")
# The process worlds hand tensors to ranks through it; the lessons stay far below.
ENOUGH_SHARED_MEMORY = 64 * 2**20
BORROW_TORCH = "make lab TORCH=system PYTHON=/path/to/that/python"


def check_python() -> Iterable[Finding]:
    """Judge the interpreter."""
    version = platform.python_version()
    where = f"{version} on {platform.system()} {platform.machine()}"
    if OLDEST_PYTHON <= sys.version_info[:2] <= NEWEST_PYTHON:
        yield ok("Python", where)
    else:
        advice = "make the environment with Python 3.10 to 3.13: make clean lab PYTHON=python3.12"
        yield broken("Python", f"{where} is outside 3.10 to 3.13", advice)


def check_torch() -> Iterable[Finding]:
    """Judge torch, and what of it ringlab stands on."""
    import torch

    build = f"CUDA {torch.version.cuda}" if torch.version.cuda else "CPU"
    yield ok("torch", f"{torch.__version__}, {build} build, {torch.get_num_threads()} threads")
    lowest = lowest_torch()
    if lowest and _numbers(torch.__version__) < _numbers(lowest):
        yield broken("torch", f"older than {lowest}", f"install torch {lowest} or newer")
    if not torch.distributed.is_available():
        advice = "install a torch that was built with distributed support; PyPI's are"
        yield broken("distributed", "this torch has no torch.distributed", advice)
        return
    if torch.distributed.is_gloo_available():
        yield ok("gloo", "ranks on CPU can talk to one another")
    else:
        advice = "the virtual world does without; for real ranks install a torch that has gloo"
        yield absent("gloo", "this torch was built without it", advice)
    if torch.distributed.is_nccl_available():
        nccl_version: Callable[[], tuple[int, ...]] = torch.cuda.nccl.version
        yield ok("NCCL", ".".join(map(str, nccl_version())))
    else:
        advice = f"needed for ranks on GPUs only; with a CUDA build of torch: {BORROW_TORCH}"
        yield absent("NCCL", "this torch was built without it", advice)


def check_gpus() -> Iterable[Finding]:
    """Judge the GPUs and the links between them."""
    cards, listed = host.gpus(), host.driver_gpus()
    for card in cards:
        size = f"{card.memory / 2**30:.0f} GiB, compute capability {card.capability}"
        yield ok(f"GPU {card.index}", f"{card.name}, {size}")
    if not cards:
        yield _no_gpus(listed)
    pairs = sorted(host.links().items(), key=lambda pair: (pair[1], pair[0])) if cards else []
    for link, group in groupby(pairs, key=lambda pair: pair[1]):
        between = ", ".join(f"{a}-{b}" for (a, b), _ in group)
        yield ok("GPU links", f"{link} between {between}")


def _no_gpus(listed: list[str]) -> Finding:
    import torch

    if not listed:
        return absent("GPUs", "none", "none is needed: every lesson runs on CPU")
    if host.hidden_gpus():
        advice = "unset CUDA_VISIBLE_DEVICES to use them"
        return absent("GPUs", f"{len(listed)} hidden by CUDA_VISIBLE_DEVICES", advice)
    if torch.version.cuda is None:
        advice = f"to use them, take a CUDA build of torch: {BORROW_TORCH}"
        return absent("GPUs", f"{len(listed)}, but this torch is a CPU build", advice)
    advice = (
        f"torch was built for CUDA {torch.version.cuda}: update the driver, or install a torch "
        "built for an older CUDA (nvidia-smi prints the newest CUDA that the driver knows)"
    )
    return broken("GPUs", f"the driver lists {len(listed)}, torch can use none", advice)


def check_machine() -> Iterable[Finding]:
    """Judge cores, memory and shared memory."""
    cores, memory, shared = host.cores(), host.memory(), host.shared_memory()
    size = f", {memory / 2**30:.0f} GiB of memory" if memory else ""
    yield ok("CPU", f"{cores} {'core' if cores == 1 else 'cores'} for this process{size}")
    if shared is not None and shared < ENOUGH_SHARED_MEMORY:
        advice = "in a container, start it with more: --shm-size=1g"
        yield absent("/dev/shm", f"only {shared / 2**20:.0f} MiB free", advice)
    elif shared is not None:
        yield ok("/dev/shm", f"{shared / 2**30:.1f} GiB free")


def check_kernels() -> Iterable[Finding]:
    """Say which attention kernels can compute a block here."""
    from ringlab.numerics import available_kernels

    for kernel in available_kernels():
        if kernel.usable:
            where = " and ".join(kernel.devices).replace("any", "any device")
            yield ok("kernel", f"{kernel.name}: {', '.join(kernel.dtypes)} on {where}")
        else:
            yield absent("kernel", f"{kernel.name}: {kernel.reason}")


def check_lab() -> Iterable[Finding]:
    """Say whether the notebooks can be opened."""
    missing = [name for name in LAB_PACKAGES if find_spec(name) is None]
    if missing:
        advice = "make lab installs them; without make: pip install -e '.[lab]' in this checkout"
        yield absent("notebooks", f"not installed: {', '.join(missing)}", advice)
    else:
        versions = [f"{name} {metadata.version(name)}" for name in LAB_PACKAGES]
        yield ok("notebooks", ", ".join(versions))


def pass_on() -> float:
    """Send this rank's number to the next rank; return the one that came.

    The smallest program that shows whether ranks can talk: one hop of a ring.
    """
    import torch
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    device = "cuda" if dist.get_backend() == "nccl" else "cpu"
    sent = torch.full((1,), float(rank), device=device)
    if size == 1:
        return sent.item()
    got = torch.empty_like(sent)
    hop = [
        dist.P2POp(dist.isend, sent, (rank + 1) % size),
        dist.P2POp(dist.irecv, got, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(hop):
        work.wait()
    return got.item()


def try_world(backend: Backend, size: int, advice: str) -> Finding:
    """Pass numbers around a ring of ranks and judge what arrives."""
    from ringlab.world import World

    subject = f"world: {backend}"
    try:
        with World(size, backend=backend) as world:
            got = world.run(pass_on)
    except Exception as error:
        return broken(subject, f"{size} ranks did not run:\n{indent(str(error), ' ' * 22)}", advice)
    want = [float((rank - 1) % size) for rank in range(size)]
    if got != want:
        return broken(subject, f"{size} ranks got {got}, not {want}", advice)
    return ok(subject, f"{size} {'rank' if size == 1 else 'ranks'} passed a message around")


def check_worlds() -> Iterable[Finding]:
    """Start each world that this machine should be able to run."""
    import torch.distributed as dist

    advice = f"install a torch that ringlab {__version__} was tested with"
    yield try_world("virtual", 4, advice)
    if dist.is_gloo_available():
        advice = "ranks meet on the loopback address: a container or a firewall may forbid that"
        yield try_world("gloo", 2, advice)
    else:
        yield absent("world: gloo", "this torch has no gloo", "use the virtual world")
    cards = len(host.gpus())
    if cards and dist.is_nccl_available():
        advice = "NCCL_DEBUG=WARN in the environment makes NCCL tell more"
        yield try_world("nccl", cards, advice)
    else:
        advice = "lessons use the virtual and the gloo world here"
        yield absent("world: nccl", "needs a GPU for each rank, and NCCL", advice)


CHECKS: tuple[tuple[str, Callable[[], Iterable[Finding]]], ...] = (
    ("Python", check_python),
    ("torch", check_torch),
    ("GPUs", check_gpus),
    ("machine", check_machine),
    ("kernels", check_kernels),
    ("notebooks", check_lab),
    ("worlds", check_worlds),
)


def examine(start_worlds: bool = True) -> list[Finding]:
    """Run every check.

    Parameters
    ----------
    start_worlds : bool
        Whether to start ranks in each world that should run here, which takes seconds.

    Returns
    -------
    list of Finding
        In the order of the report. A check that raises is a finding, too.
    """
    findings: list[Finding] = []
    for subject, check in CHECKS:
        if check is check_worlds and not start_worlds:
            continue
        try:
            findings.extend(check())
        except Exception as error:
            said = f"could not be looked at: {type(error).__name__}: {error}"
            findings.append(broken(subject, said, _after(error)))
    return findings


def _after(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"{error.name} is not installed: make lab installs all that is needed"
    return "make clean, then make lab, gives a fresh environment"


def lowest_torch() -> str | None:
    """Read the oldest torch that this ringlab declares; None if it was not installed."""
    try:
        wanted = metadata.requires("ringlab") or []
    except metadata.PackageNotFoundError:
        return None
    bounds = [need.partition(">=")[2] for need in wanted if need.startswith("torch>=")]
    return bounds[0] if bounds else None


def _numbers(version: str) -> tuple[int, ...]:
    release = version.split("+")[0].split(".")
    return tuple(int(part) for part in release[:2] if part.isdigit())


def main(argv: Sequence[str] = ()) -> int:
    """Print the report.

    Parameters
    ----------
    argv : sequence of str
        ``--quick`` leaves out starting ranks.

    Returns
    -------
    int
        1 if something is broken; 0 otherwise, also where something is absent.
    """
    parser = ArgumentParser(prog="ringlab doctor", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="start no ranks")
    findings = examine(start_worlds=not parser.parse_args(list(argv)).quick)
    print(f"ringlab {__version__}: what this machine can run\n")
    print(*findings, sep="\n")
    faults = [finding for finding in findings if finding.status is Status.BROKEN]
    print(f"\n{len(faults)} broken" if faults else "\nnothing is broken")
    return 1 if faults else 0
