"""What one question may use: time, memory, processes, files, output."""

from __future__ import annotations

import os
import resource
from dataclasses import dataclass

MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """What the processes of one question may use together.

    Parameters
    ----------
    seconds : float
        Wall time.
    cpu_seconds : int
        CPU time of one process.
    memory : int
        Bytes, beside what the warm parent had.
    processes : int
    files : int
        Open at a time, in one process.
    file_bytes : int
        Of one file that is written.
    folder_bytes : int
        Of all files that are left in the folder.
    folder_entries : int
        Files and folders in it.
    output_bytes : int
        Printed.
    result_bytes : int
        Sent back as results.
    """

    seconds: float = 30.0
    cpu_seconds: int = 30
    memory: int = 2048 * MIB
    processes: int = 16
    files: int = 256
    file_bytes: int = 16 * MIB
    folder_bytes: int = 64 * MIB
    folder_entries: int = 1000
    output_bytes: int = MIB
    result_bytes: int = 64 * MIB


def apply(limits: Limits) -> None:
    """Let the system enforce what it can, on this process and those that it starts."""
    # A process is told at the first value (SIGXCPU), and killed at the second.
    _least(resource.RLIMIT_CPU, limits.cpu_seconds, limits.cpu_seconds + 1)
    _least(resource.RLIMIT_AS, _address_space() + limits.memory)
    _least(resource.RLIMIT_NOFILE, limits.files)
    _least(resource.RLIMIT_FSIZE, limits.file_bytes)
    _least(resource.RLIMIT_CORE, 0)


def _least(what: int, value: int, hard: int | None = None) -> None:
    """Set a limit for good, at no more than it was."""
    most = value if hard is None else hard
    _, before = resource.getrlimit(what)
    if before != resource.RLIM_INFINITY:
        value, most = min(value, before), min(most, before)
    resource.setrlimit(what, (value, most))


def _address_space() -> int:
    """Bytes of address space that this process has now; 0 where the system does not say."""
    try:
        with open("/proc/self/statm", encoding="ascii") as statm:
            return int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
