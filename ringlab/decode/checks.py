"""What a rank can refuse on its own, before any communication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from ringlab.calls.checks import (
    DEVICES,
    DTYPES,
    check_heads,
    check_length,
    check_scale,
    short,
)
from ringlab.decode.partial import tiles
from ringlab.decode.support import DECODE
from ringlab.layout import Interleaved, Layout
from ringlab.numerics.kernels import check_name, choose

if TYPE_CHECKING:
    from ringlab.decode.cache import ShardedKVCache


def check_cache(
    batch: int,
    kv_heads: int,
    head_dim: int,
    layout: object,
    capacity: int | None,
    dtype: torch.dtype,
    device: torch.device,
) -> None:
    """Refuse the parameters of a cache that cannot be; see `ShardedKVCache`."""
    name = "ShardedKVCache"
    for label, value in (("batch", batch), ("kv_heads", kv_heads), ("head_dim", head_dim)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name}: {label} is an int; got {value!r}.")
        if value < (label != "batch"):
            raise ValueError(f"{name}: {label} is at least 1 (a batch may be 0); got {value}.")
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}: layout is an Interleaved(block); got {layout!r}.")
    if not isinstance(layout, Interleaved):
        feature = "layouts whose owners change with the length"
        raise DECODE.refused(feature, name, f"layout={layout}")
    if capacity is not None and (isinstance(capacity, bool) or not isinstance(capacity, int)):
        raise TypeError(f"{name}: capacity is an int or None; got {capacity!r}.")
    if capacity is not None and capacity < 1:
        raise ValueError(f"{name}: capacity is a number of tokens, 1 or more; got {capacity}.")
    if dtype not in DTYPES:
        raise TypeError(f"{name}: dtype is one of {', '.join(map(short, DTYPES))}; got {dtype}.")
    if device.type not in DEVICES:
        raise ValueError(f"{name}: device is of kind {', '.join(DEVICES)}; got {device}.")


def check_new(name: str, cache: ShardedKVCache, k: Tensor, v: Tensor) -> None:
    """Refuse keys and values that cannot stand in the cache.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    if k.shape[3] != v.shape[3]:
        feature = "values of another width than keys"
        raise DECODE.refused(feature, name, f"D is {k.shape[3]} and {v.shape[3]}")
    if k.shape != v.shape:
        raise ValueError(
            f"{name}: k and v must have one shape; they have {list(k.shape)} and {list(v.shape)}."
        )
    wanted = (cache.batch, cache.kv_heads, k.shape[2], cache.head_dim)
    if k.shape != wanted:
        raise ValueError(
            f"{name}: k and v must be [B, Hkv, n, D] with B = {cache.batch}, Hkv = "
            f"{cache.kv_heads} and D = {cache.head_dim}, as the cache; they are {list(k.shape)}."
        )
    _check_kind(name, cache, k=k, v=v)


def check_room(name: str, cache: ShardedKVCache, count: int) -> None:
    """Refuse tokens beyond the capacity; every rank comes to the same verdict.

    Raises
    ------
    ValueError
        Saying how many tokens there are and may be.
    """
    if cache.capacity is not None and cache.length + count > cache.capacity:
        raise ValueError(
            f"{name}: {count} tokens beside the {cache.length} in the cache are more than its "
            f"capacity of {cache.capacity}; make it with a larger capacity, or with None to let it "
            "grow."
        )


def check_load(name: str, layout: Layout, length: int | None) -> None:
    """Refuse options of `ShardedKVCache.load` of another type.

    Raises
    ------
    TypeError, ValueError
    """
    if not isinstance(layout, Layout):
        raise TypeError(f"{name}: layout is an instance of a Layout, as ZigZag(); got {layout!r}.")
    check_length(name, length)


def check_shard(
    name: str,
    layout: Layout,
    cache: ShardedKVCache,
    tokens: int,
    held: tuple[int, ...],
    length: int,
) -> None:
    """Refuse shards of a prompt that are not what the layout gives the ranks.

    Parameters
    ----------
    tokens : int
        On this rank.
    held : tuple of int
        What all ranks told, if they did: then all of them come to the same verdict.

    Raises
    ------
    ValueError
        Saying how many tokens there are and should be.
    """
    lengths = layout.lengths(cache.world_size, length)
    rule = f"{layout} of length {length} over {cache.world_size} ranks"
    if held and held != lengths:
        raise ValueError(
            f"{name}: the ranks hold {list(held)} tokens, but {rule} gives {list(lengths)}. Shard "
            "with layout.shard(x, rank, world_size)."
        )
    if tokens != lengths[cache.rank]:
        raise ValueError(
            f"{name}: rank {cache.rank} holds {tokens} tokens, but {rule} gives it "
            f"{lengths[cache.rank]}. Shard with layout.shard(x, rank, world_size), or pass the "
            "true length."
        )


def check_query(
    name: str, q: Tensor, cache: ShardedKVCache, scale: float | None, kernel: str | None
) -> None:
    """Refuse queries that cannot attend to the cache, and options of another type.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        Saying what was given, what is allowed and what to do.
    """
    if q.shape[0] != cache.batch or q.shape[3] != cache.head_dim:
        raise ValueError(
            f"{name}: q must be [B, Hq, n, D] with B = {cache.batch} and D = {cache.head_dim}, as "
            f"the cache; it is {list(q.shape)}."
        )
    check_heads(name, q.shape[1], cache.kv_heads)
    _check_kind(name, cache, q=q)
    if q.shape[2] > cache.length:
        raise ValueError(
            f"{name}: q holds {q.shape[2]} tokens, the last ones of the sequence, but the cache "
            f"only {cache.length}; append their keys and values first."
        )
    check_scale(name, scale)
    if kernel is not None:
        _check_kernel(kernel, q, cache)


def _check_kernel(kernel: str, q: Tensor, cache: ShardedKVCache) -> None:
    """Refuse a kernel that cannot compute the tiles of every rank, on all ranks alike."""
    check_name(kernel)
    if q.is_meta or q.numel() == 0:
        return
    number, group = q.new_empty(()), q.shape[1] // cache.kv_heads
    folded = number.expand(cache.batch, cache.kv_heads, group * q.shape[2], cache.head_dim)
    for rank in range(cache.world_size):
        for tile in tiles(cache.layout, rank, cache.world_size, cache.length, q.shape[2]):
            k = number.expand(cache.batch, cache.kv_heads, len(tile.rows), cache.head_dim)
            choose(kernel, folded, k, False, tile.masked)


def _check_kind(name: str, cache: ShardedKVCache, **tensors: Tensor) -> None:
    """Refuse another dtype or device than the cache's, and what needs a gradient."""
    for label, tensor in tensors.items():
        if tensor.dtype != cache.dtype:
            raise TypeError(
                f"{name}: {label} is {short(tensor.dtype)} and the cache {short(cache.dtype)}; "
                "convert it, or make the cache with dtype=."
            )
        if tensor.device != cache.device:
            raise ValueError(
                f"{name}: {label} is on {tensor.device} and the cache on {cache.device}; move it, "
                "or make the cache with device=."
            )
        if tensor.requires_grad and torch.is_grad_enabled():
            raise DECODE.refused("gradients", name, f"{label} requires one")
