"""Ranks that are processes: gloo on CPUs, NCCL on GPUs."""

from ringlab.world.processes.pool import ProcessRunner
from ringlab.world.processes.report import RunInterrupted

__all__ = ["ProcessRunner", "RunInterrupted"]
