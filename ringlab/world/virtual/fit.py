"""Whether the installed torch is as the virtual world expects it.

The world rests on parts of torch that are not public. They are checked when it is imported;
where a torch release moved one of them, the import says which.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringlab.world.virtual.rank_state import RankState

_OWNERS: dict[str, Any] = {
    "torch.distributed.distributed_c10d": c10d,
    "torch._C._distributed_c10d": torch._C._distributed_c10d,
    "torch.distributed.Backend": dist.Backend,
    "torch._C": torch._C,
}
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


refuse(misfits())
