"""What a run finds around it: the same on every run, whatever the last one did."""

from __future__ import annotations

import contextlib
import os
import random
import sys
import types
from collections.abc import Iterator

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringlab.world.processes.messages import Surroundings


def of_this_process() -> Surroundings:
    """The environment, working directory and import path that ranks shall have."""
    try:
        cwd: str | None = os.getcwd()
    except FileNotFoundError:  # it was deleted
        cwd = None
    return Surroundings(dict(os.environ), cwd, [os.fspath(entry) for entry in sys.path])


def apply(given: Surroundings, own: dict[str, str]) -> None:
    """Take over the parent's surroundings.

    Parameters
    ----------
    given : Surroundings
    own : dict
        Environment variables of this rank alone.
    """
    environ = {**given.environ, **own}
    if environ != dict(os.environ):
        for name in os.environ.keys() - environ.keys():
            del os.environ[name]
        os.environ.update(environ)
    if given.cwd is not None:
        os.chdir(given.cwd)
    sys.path[:] = given.path


def seed(number: int) -> None:
    """Seed torch on the devices in use, `random`, and numpy if it is loaded."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed costs 0.3 ms without a GPU
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(number)
    random.seed(number)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number % 2**32)


def forget_groups() -> None:
    """Destroy the process groups that earlier runs created, all but the default one.

    Called at the start of a run, when every rank has left the last one: closing them at its
    end could cut off a rank that was still reading.
    """
    for group in list(c10d._world.pg_map):
        if group is not dist.group.WORLD:
            dist.destroy_process_group(group)


@contextlib.contextmanager
def main_module_of(function: object) -> Iterator[None]:
    """Make the names that a notebook defined findable in ``__main__`` while a run lasts.

    What the program pickles by itself, for example in ``all_gather_object``, looks its
    classes up there.
    """
    before = sys.modules["__main__"]
    names = getattr(function, "__globals__", {})
    if names.get("__name__") == "__main__":
        main = types.ModuleType("__main__")
        vars(main).update(names)
        sys.modules["__main__"] = main
    try:
        yield
    finally:
        sys.modules["__main__"] = before
