"""NCCL: one collective on each new group, so that its members are connected.

A batch of point-to-point operations in which only some members of a group take part hangs
when it is the first thing the group does, because NCCL connects all members then. Here they
connect when the group is created, in which all of them take part.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist

from ringlab.world.processes.last_op import Journal


def install(journal: Journal, device: torch.device | None, backend: str = "nccl") -> None:
    """Warm up the default group, and every group that is created from now on.

    Parameters
    ----------
    journal : Journal
        Stays silent about it.
    device : torch.device
        Where the collective's tensor lives.
    backend : str
        Groups of other backends are left alone.
    """

    def warm_up(group: Any) -> None:
        # to a rank that is no member, torch gives an object that is no group
        if isinstance(group, dist.ProcessGroup) and backend in dist.get_backend(group):
            with journal.silence():
                dist.all_reduce(torch.ones(1, device=device), group=group)
            if device is not None and device.type == "cuda":
                torch.cuda.synchronize(device)

    warm_up(dist.group.WORLD)
    for name in ("new_group", "split_group"):
        _replace_everywhere(name, _followed_by(warm_up, getattr(dist, name)))


def _followed_by(act: Callable[[Any], None], create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(create)
    def create_and_act(*args: Any, **kwargs: Any) -> Any:
        group = create(*args, **kwargs)
        act(group)
        return group

    return create_and_act


def _replace_everywhere(name: str, replacement: Callable[..., Any]) -> None:
    """Replace a function also in torch's modules that imported it, such as DeviceMesh's."""
    original = getattr(dist, name)
    for module_name, module in list(sys.modules.items()):
        inside = module_name.startswith("torch.distributed")
        if inside and getattr(module, name, None) is original:
            setattr(module, name, replacement)
