"""The ways in which a question's processes end, in words."""

from __future__ import annotations

import os
import signal

from ringlab.grade.isolation.limits import MIB, Limits


def by_limit(which: str, limits: Limits) -> str:
    """Why a question was ended from outside.

    Parameters
    ----------
    which : {"time", "memory", "processes", "output", "results", "files", "forged"}
    limits : Limits
    """
    return {
        "time": f"it took longer than {limits.seconds:g} s",
        "memory": f"it used more than {limits.memory // MIB} MiB of memory",
        "processes": f"it started more than {limits.processes} processes",
        "output": f"it printed more than {limits.output_bytes // 1024} KiB",
        "results": f"its results took more than {limits.result_bytes // MIB} MiB",
        "files": f"it left more than {limits.folder_bytes // MIB} MiB or {limits.folder_entries} "
        "files in its folder",
        "forged": "it wrote into the channel on which the grader receives results",
    }[which]


def by_status(status: int, limits: Limits) -> tuple[str, str]:
    """A word and a sentence for a wait status of a process that did not finish its cases."""
    if os.WIFEXITED(status):
        code = os.WEXITSTATUS(status)
        return "exit", f"it left the process with exit status {code} before it was done"
    number = os.WTERMSIG(status)
    if number == signal.SIGXCPU:
        return "cpu", f"it used more than {limits.cpu_seconds} s of CPU time"
    if number == signal.SIGSEGV:
        return "crash", "it crashed the process with a segmentation fault"
    if number == signal.SIGXFSZ:
        return "file", f"it wrote a file of more than {limits.file_bytes // MIB} MiB"
    return "crash", f"a signal ended the process: {signal.Signals(number).name}"
