"""What ``torch.distributed`` remembers, for one rank."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

NewGroup = Callable[[int, tuple[int, ...]], None]
"""Called with the count of the world's groups so far and the ranks of the next."""


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
        if caller.f_code is c10d._process_group_name.__code__:
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
