"""Everything the virtual world needs of torch's internals, in one place.

``torch.distributed`` keeps its state in one module variable, ``_world``. While a virtual
world runs, that variable is a :class:`_WorldSwitch`: a thread that is a rank sees its own
state, every other thread sees the state that was there before, untouched. The C++ side
keeps a second table, from names to groups; torch's own thread isolation switches that one.

The parts relied on are checked when this module is imported; where a torch release moved
one of them, the import says which.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import FrameType
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d
from torch.utils._python_dispatch import TorchDispatchMode

from ringlab.world.errors import BadCall

BACKEND = "ringlab_virtual"
ONLY_RANKS = (
    "Only the thread in which the virtual world runs a rank may communicate for it; return the "
    "value from your own thread and let the rank send it."
)
WORLD_NAME = "0"  # what torch would call the first group

NewGroup = Callable[[int, tuple[int, ...]], None]
"""Called with the count of the world's groups so far and the ranks of the next."""

_NEEDED: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "torch.distributed.distributed_c10d",
        ("_world", "_register_process_group", "_unregister_all_process_groups", "P2POp"),
    ),
    (
        "torch._C._distributed_c10d",
        ("_set_thread_isolation_mode", "ProcessGroup", "Work", "HashStore"),
    ),
    ("torch.distributed.Backend", ("register_backend",)),
    (
        "torch._C",
        (
            "_push_on_torch_dispatch_stack",
            "_pop_torch_dispatch_stack",
            "_len_torch_dispatch_stack",
            "_get_dispatch_mode",
            "_TorchDispatchModeKey",
            "_DisableTorchDispatch",
        ),
    ),
)
_FIELDS = ("default_pg", "pg_map", "pg_names", "pg_group_ranks", "pg_backend_config",
           "group_count", "tags_to_pg", "pg_to_tag", "pg_coalesce_state")  # fmt: skip
_NEEDED_LOCALS = {
    "batch_isend_irecv": "p2p_op_list",  # by which a batch is recognised
    "_process_group_name": "ranks",  # by which the calls of new_group are compared
}


class RankState:
    """What ``torch.distributed`` remembers, for one rank (the fields of its ``_world``).

    Parameters
    ----------
    new_group : callable
        Told of each call of ``new_group``, also of one for a group without this rank.
    """

    def __init__(self, new_group: NewGroup) -> None:
        self.default_pg: dist.ProcessGroup | None = None
        self.pg_map: dict[Any, Any] = {}
        self.pg_names: dict[Any, str] = {}
        self.pg_group_ranks: dict[Any, dict[int, int]] = {}
        self.pg_backend_config: dict[Any, str] = {}
        self.tags_to_pg: dict[str, list[Any]] = {}
        self.pg_to_tag: dict[Any, str] = {}
        self.pg_coalesce_state: dict[Any, list[Any]] = {}
        self.pg_default_device: dict[Any, torch.device] = {}
        self.comms: list[Any] = []
        self.compartments: dict[int, int] = {}  # of compiled code: compiled.py
        self._group_count = 0
        self._new_group = new_group

    @property
    def group_count(self) -> int:
        """How many groups the rank has named so far, which is the name of the next."""
        return self._group_count

    @group_count.setter
    def group_count(self, value: int) -> None:
        caller = sys._getframe(2)  # beyond the switch, through which every rank gets here
        if caller.f_code is _NAMING_CODE:
            self._new_group(self._group_count, tuple(caller.f_locals["ranks"]))
        self._group_count = value

    @property
    def pg_config_info(self) -> list[dict[str, Any]]:
        """What ``_world`` tells about the groups, for torch's own reports."""
        return [
            {"pg_name": name, "backend_config": self.pg_backend_config[group], "ranks": ranks,
             "group_size": len(ranks), "group_count": self.group_count}
            for group, name in self.pg_names.items()
            for ranks in [list(self.pg_group_ranks[group])]
        ]  # fmt: skip


def misfits() -> list[str]:
    """What of the installed torch is not as it is expected here, in words."""
    found = []
    for where, names in _NEEDED:
        owner = _OWNERS[where]
        found += [f"{where}.{name} is missing" for name in names if not hasattr(owner, name)]
    for function, local in _NEEDED_LOCALS.items():
        code = getattr(getattr(c10d, function, None), "__code__", None)
        if code is None or local not in code.co_varnames:
            found.append(f"{c10d.__name__}.{function} has no variable {local}")
    if hasattr(c10d, "_world"):
        known = set(dir(RankState(lambda *_: None)))
        fields = {n for n in dir(type(c10d._world)) if not n.startswith("_")}
        found += [f"{c10d.__name__}._world.{n} is unknown here" for n in sorted(fields - known)]
        found += [f"{c10d.__name__}._world.{n} is missing" for n in _FIELDS if n not in fields]
    return found


def refuse(found: list[str]) -> None:
    """Refuse a torch whose internals are not as they are expected here.

    Raises
    ------
    ImportError
        It says what differs, if anything does.
    """
    if found:
        raise ImportError(
            f"ringlab's virtual world does not fit torch {torch.__version__}: {'; '.join(found)}. "
            "Install a torch release that the README lists as tested; the process worlds "
            "(backend='gloo' or 'nccl') do not depend on this."
        )


class _Local(threading.local):
    """Each thread's own state; None where it is no rank."""

    state: RankState | None = None


class _WorldSwitch:
    """Stands in for ``_world``: a rank's own state in its thread, the original elsewhere."""

    def __init__(self, original: Any) -> None:
        object.__setattr__(self, "_original", original)

    def __getattr__(self, name: str) -> Any:
        state = _local.state
        if state is not None:
            return getattr(state, name)
        value = getattr(object.__getattribute__(self, "_original"), name)
        if name == "default_pg" and value is None:
            _refuse_stranger(sys._getframe(1))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        state = _local.state
        setattr(object.__getattribute__(self, "_original") if state is None else state, name, value)


def _refuse_stranger(frame: FrameType | None) -> None:
    """Say more than torch would where a thread that is no rank asks for the default group."""
    for _ in range(3):
        if frame is not None and frame.f_code is _DEFAULT_GROUP_CODE:
            raise BadCall(
                "a thread that is no rank used torch.distributed while a virtual world runs. "
                + ONLY_RANKS
            )
        frame = frame.f_back if frame is not None else None


_c10d_py: Any = c10d  # what is used of both is checked below, and unknown to type checkers
_c10d_cpp: Any = torch._C._distributed_c10d
_local = _Local()
_lock = threading.Lock()
_running = 0
_ranks = 0
_original_world: Any = None


def enter() -> None:
    """Let threads be ranks. Called once for each run; calls nest."""
    global _running
    with _lock:
        _running += 1
        _update()


def leave() -> None:
    """Undo one :func:`enter`."""
    global _running
    with _lock:
        _running -= 1
        _update()


def _update() -> None:
    """Switch torch's tables as long as they are needed.

    The C++ one only while a run lasts, since other threads cannot use their own meanwhile;
    the Python one as long as there is a rank, so that one which was given up, and goes on
    later, does not find the process's own groups.
    """
    global _original_world
    _c10d_cpp._set_thread_isolation_mode(_running > 0)
    wanted = _running + _ranks > 0
    if wanted and _original_world is None:
        _original_world = c10d._world
        c10d._world = cast(Any, _WorldSwitch(_original_world))
    elif not wanted and _original_world is not None:
        c10d._world = _original_world
        _original_world = None


def become_rank(group: dist.ProcessGroup, new_group: NewGroup) -> None:
    """Make the calling thread a rank whose default group is `group`."""
    global _ranks
    state = RankState(new_group)
    name = WORLD_NAME
    state.group_count = 1
    state.default_pg = group
    state.pg_map[group] = (BACKEND, torch._C._distributed_c10d.HashStore())
    state.pg_names[group] = name
    state.pg_backend_config[group] = f"cpu:{BACKEND},meta:{BACKEND}"
    state.pg_group_ranks[group] = {r: r for r in range(group.size())}
    state.tags_to_pg = {"": [group], f"ptd:{name}": [group]}
    state.pg_to_tag[group] = f"ptd:{name}"
    with _lock:
        _ranks += 1
        _local.state = state
    _c10d_py._register_process_group(name, group)


def stop_being_rank() -> None:
    """Forget the calling thread's groups."""
    global _ranks
    with _lock:
        if _local.state is None:
            return
        _local.state = None
        _ranks -= 1
        if _running:  # else the table is the process's own again
            _c10d_py._unregister_all_process_groups()
        _update()


def current_rank() -> RankState | None:
    """The state of the calling thread, if it is a rank."""
    return _local.state


def name_of(group: dist.ProcessGroup) -> str | None:
    """The name torch gave a group, read from torch's own table; None if it is not there."""
    return c10d._world.pg_names.get(group)


def push_mode(mode: TorchDispatchMode) -> None:
    """Let a dispatch mode see what the calling thread computes, until :func:`drop_modes`.

    Entering it instead would set flags of the process, which the threads of a run would
    leave in the wrong order, and for which dynamo compiles nothing.
    """
    torch._C._push_on_torch_dispatch_stack(mode)


def drop_modes() -> None:
    """Take every dispatch mode from the calling thread, which is about to end.

    Else C++ would let go of them when the thread is gone, perhaps after Python itself.
    """
    while torch._C._len_torch_dispatch_stack():
        torch._C._pop_torch_dispatch_stack(None)


@contextlib.contextmanager
def mode_pushed(mode: TorchDispatchMode) -> Iterator[None]:
    """A context in which a dispatch mode sees what the calling thread computes."""
    torch._C._push_on_torch_dispatch_stack(mode)
    try:
        yield
    finally:
        torch._C._pop_torch_dispatch_stack(None)


def is_tracing() -> bool:
    """Whether the calling thread only traces: its tensors are fake, or operators make a graph."""
    if not torch._C._len_torch_dispatch_stack():
        return False
    return any(torch._C._get_dispatch_mode(key) is not None for key in _TRACING)


def unobserved() -> AbstractContextManager[None]:
    """A context in which no dispatch mode sees what the calling thread computes."""
    return torch._C._DisableTorchDispatch()


def enclosing_batch(frame: FrameType | None) -> FrameType | None:
    """The frame of the ``batch_isend_irecv`` call that encloses `frame`, if any.

    A group written in Python never receives the calls that open and close a batch, so the
    batch is recognised on the stack.
    """
    for _ in range(6):
        if frame is None:
            return None
        if frame.f_code is _BATCH_CODE:
            return frame
        frame = frame.f_back
    return None


def batch_size(frame: FrameType) -> int:
    """How many operations the batch of :func:`enclosing_batch` holds."""
    return len(frame.f_locals["p2p_op_list"])


_OWNERS: dict[str, Any] = {
    "torch.distributed.distributed_c10d": _c10d_py,
    "torch._C._distributed_c10d": _c10d_cpp,
    "torch.distributed.Backend": dist.Backend,
    "torch._C": torch._C,
}
refuse(misfits())
_TRACING = tuple(torch._C._TorchDispatchModeKey.__members__.values())
_BATCH_CODE = c10d.batch_isend_irecv.__code__
_NAMING_CODE = c10d._process_group_name.__code__
_DEFAULT_GROUP_CODE = c10d._get_default_group.__code__
