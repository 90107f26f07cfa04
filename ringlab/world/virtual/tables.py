"""The tables in which torch keeps its process groups, one set for each rank.

``torch.distributed`` keeps its state in one module variable, ``_world``. While a virtual
world runs, that variable is a :class:`_WorldSwitch`: a thread that is a rank sees its own
state, every other thread sees the state that was there before, untouched. The C++ side
keeps a second table, from names to groups; torch's own thread isolation switches that one.
"""

from __future__ import annotations

import sys
import threading
from types import FrameType
from typing import Any, cast

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringlab.world.errors import BadCall
from ringlab.world.virtual.rank_state import NewGroup, RankState

BACKEND = "ringlab_virtual"
ONLY_RANKS = (
    "Only the thread in which the virtual world runs a rank may communicate for it; return the "
    "value from your own thread and let the rank send it."
)
WORLD_NAME = "0"  # what torch would call the first group


class _Local(threading.local):
    """Each thread's own state; None where it is no rank."""

    state: RankState | None = None


class _WorldSwitch(threading.local):
    """Stands in for ``_world``: a rank's own state in its thread, the original elsewhere.

    The default group, for which torch asks all the time, is also an attribute in the threads of
    ranks, found without a call.
    """

    def __init__(self, original: Any) -> None:
        self.__dict__["_original"] = original

    def __getattr__(self, name: str) -> Any:
        state = _local.state
        if state is not None:
            return getattr(state, name)
        value = getattr(self._original, name)
        if name == "default_pg" and value is None:
            _refuse_stranger(sys._getframe(1))
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        state = _local.state
        setattr(self._original if state is None else state, name, value)
        if state is not None and name == "default_pg":
            self.__dict__[name] = value


def _refuse_stranger(frame: FrameType | None) -> None:
    """Say more than torch would where a thread that is no rank asks for the default group."""
    for _ in range(3):
        if frame is not None and frame.f_code is _DEFAULT_GROUP_CODE:
            raise BadCall(
                "a thread that is no rank used torch.distributed while a virtual world runs. "
                + ONLY_RANKS
            )
        frame = frame.f_back if frame is not None else None


_c10d_py: Any = c10d  # what is used of both `fit` has checked, and type checkers do not know it
_c10d_cpp: Any = torch._C._distributed_c10d
_DEFAULT_GROUP_CODE = c10d._get_default_group.__code__
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
        c10d._world.default_pg = group
    _c10d_py._register_process_group(name, group)


def stop_being_rank() -> None:
    """Forget the calling thread's groups."""
    global _ranks
    with _lock:
        if _local.state is None:
            return
        _local.state = None
        c10d._world.__dict__.pop("default_pg", None)
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
