"""How a prefilled prompt gets into the cache: one exchange of the rows that must move."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.exchange import all_to_all
from ringlab.decode.routes import Route, Rows


def move(
    k: Tensor, v: Tensor, store: Tensor, routes: tuple[Route, ...], group: dist.ProcessGroup
) -> None:
    """Bring every token of the shards into the cache of its owner.

    Parameters
    ----------
    k, v : Tensor
        [B, Hkv, L_rank, D], this rank's shard.
    store : Tensor
        [2, B, Hkv, rows, D], this rank's cache; written to.
    routes : tuple of Route
        One a rank.
    group : ProcessGroup
    """
    rank, own = group.rank(), routes[group.rank()]
    if len(own.rows[rank]):
        _put(store, own.targets[rank], _rows_of(k, v, own.rows[rank]))
    if not any(_moving(route, source) for source, route in enumerate(routes)):
        return
    leaving = [() if target == rank else rows for target, rows in enumerate(own.rows)]
    arriving = [() if source == rank else x.targets[rank] for source, x in enumerate(routes)]
    sent = _rows_of(k, v, _joined(leaving))
    received = torch.empty(
        (sum(map(len, arriving)), *sent.shape[1:]), dtype=k.dtype, device=k.device
    )
    all_to_all(received, sent, [*map(len, arriving)], [*map(len, leaving)], group)
    _put(store, _joined(arriving), received)


def _moving(route: Route, source: int) -> bool:
    return any(len(rows) for target, rows in enumerate(route.rows) if target != source)


def _joined(parts: Sequence[Rows | tuple[()]]) -> Rows:
    return np.concatenate([np.asarray(part, np.int64) for part in parts])


def _rows_of(k: Tensor, v: Tensor, rows: Rows) -> Tensor:
    """Copy rows, [rows, 2, B, Hkv, D]: what one rank gets is then one piece."""
    index = torch.from_numpy(rows).to(k.device)
    batch, heads, _, head_dim = k.shape
    found = torch.empty((len(rows), 2, batch, heads, head_dim), dtype=k.dtype, device=k.device)
    for part, x in zip(found.unbind(1), (k, v), strict=True):
        part.copy_(x.index_select(2, index).permute(2, 0, 1, 3))
    return found


def _put(store: Tensor, targets: Rows, rows: Tensor) -> None:
    """Write rows [rows, 2, B, Hkv, D] where they belong."""
    index = torch.from_numpy(targets).to(store.device)
    for target, part in zip(store, rows.unbind(1), strict=True):
        target.index_copy_(2, index, part.permute(1, 2, 0, 3))
