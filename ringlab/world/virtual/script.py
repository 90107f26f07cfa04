"""A script written for ``torchrun``, run by every rank of a virtual world.

Each rank executes the script's file as its ``__main__``, with an environment of its own, in
which ``RANK``, ``WORLD_SIZE`` and the like stand as ``torchrun`` sets them. The process group
is there already, so ``init_process_group`` only looks at what it is given, and
``destroy_process_group`` leaves the default group alone.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, NoReturn

import torch.distributed as dist
import torch.multiprocessing
from torch.distributed import distributed_c10d as c10d

from ringlab.world.errors import BadCall


class Script:
    """A Python file and the arguments it is started with.

    Parameters
    ----------
    path : Path
    arguments : sequence of str
        What ``sys.argv`` holds beside the path.

    Attributes
    ----------
    backends : set of str
        What the ranks have asked ``init_process_group`` for.

    Raises
    ------
    OSError, SyntaxError
        If the file cannot be read, or is no Python.
    """

    def __init__(self, path: Path, arguments: Sequence[str] = ()) -> None:
        self.path, self.arguments = path, list(arguments)
        self.backends: set[str] = set()
        self._code = compile(path.read_bytes(), str(path), "exec")

    @contextlib.contextmanager
    def started(self) -> Iterator[Callable[[], None]]:
        """Prepare the process, and give what each rank is to call."""
        environment = RankEnvironment(os.environ)

        def main() -> None:
            environment.become(dist.get_rank(), dist.get_world_size())
            module = ModuleType("__main__")
            module.__file__ = str(self.path)
            try:
                exec(self._code, module.__dict__)
            except SystemExit as end:
                if end.code not in (None, 0):
                    raise

        groups = {
            "init_process_group": self._initialise,
            "destroy_process_group": _destroy(dist.destroy_process_group),
        }
        arguments = [str(self.path), *self.arguments]
        with (
            _replaced(dist, groups),
            _replaced(c10d, groups),
            _replaced(torch.multiprocessing, {"spawn": _no_spawn}),
            _replaced(os, {"environ": environment}),
            _replaced(sys, {"argv": arguments, "path": [str(self.path.parent), *sys.path]}),
        ):
            yield main

    def _initialise(
        self,
        backend: str | None = None,
        init_method: str | None = None,
        timeout: Any = None,
        world_size: int = -1,
        rank: int = -1,
        store: Any = None,
        group_name: str = "",
        pg_options: Any = None,
        device_id: Any = None,
    ) -> None:
        """Stand in for ``init_process_group``, whose parameters these are."""
        if backend:
            self.backends.add(str(backend).lower())
        for name, given, actual in (
            ("rank", rank, dist.get_rank()),
            ("world_size", world_size, dist.get_world_size()),
        ):
            if given not in (-1, actual):
                raise BadCall(
                    f"init_process_group was given {name}={given}, and here it is {actual}. Take "
                    "both from the environment, as torchrun sets it, or from the arguments."
                )


@contextlib.contextmanager
def _replaced(module: ModuleType, values: Mapping[str, object]) -> Iterator[None]:
    """Give names of a module other values for a while."""
    before = {name: getattr(module, name) for name in values}
    try:
        for name, value in values.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def _destroy(original: Callable[..., None]) -> Callable[..., None]:
    def destroy_process_group(group: dist.ProcessGroup | None = None) -> None:
        """Destroy a group, but not the default one: the rank ends with the script."""
        if group is not None and group is not dist.group.WORLD:
            original(group)

    return destroy_process_group


def _no_spawn(*_args: Any, **_options: Any) -> NoReturn:
    raise BadCall(
        "the script starts processes of its own (torch.multiprocessing.spawn). Give a script that "
        "torchrun starts: one that is run by every rank and reads RANK and WORLD_SIZE."
    )


class RankEnvironment(MutableMapping[str, str]):
    """An ``os.environ`` of which each rank has a copy of its own.

    Parameters
    ----------
    original : mapping
        What threads that are no ranks go on to use, and what copies start from.
    """

    def __init__(self, original: MutableMapping[str, str]) -> None:
        self._original = original
        self._own = threading.local()

    def become(self, rank: int, size: int) -> None:
        """Give the calling thread what ``torchrun`` gives a process on one machine."""
        self._own.values = {
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29500",
            **self._original,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "GROUP_RANK": "0",
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
        }

    @property
    def _values(self) -> MutableMapping[str, str]:
        return getattr(self._own, "values", self._original)

    def __getitem__(self, key: str) -> str:
        return self._values[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._values[key] = value

    def __delitem__(self, key: str) -> None:
        del self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def copy(self) -> dict[str, str]:
        """A dictionary of all values."""
        return dict(self._values)
