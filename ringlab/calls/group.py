"""The process group that a call works in."""

from __future__ import annotations

import torch.distributed as dist


def resolve_group(name: str, group: object) -> dist.ProcessGroup:
    """Give the group, the default one for None.

    Raises
    ------
    RuntimeError
        If there is no process group.
    ValueError
        If this rank is no member of it.
    TypeError
        If it is something else than a group.
    """
    if group is None:
        group = dist.group.WORLD
        if group is None:
            raise RuntimeError(
                f"{name} needs a process group: call it inside World(n).run(...), or after "
                "torch.distributed.init_process_group."
            )
    if isinstance(group, dist.ProcessGroup):
        return group
    if group == dist.GroupMember.NON_GROUP_MEMBER:
        raise ValueError(f"{name}: this rank is no member of the group; only members may call.")
    raise TypeError(
        f"{name}: group is a ProcessGroup or None; got a {type(group).__name__}. Of a DeviceMesh "
        "pass mesh.get_group(dimension)."
    )
