"""The KV cache of one layer, sharded over the ranks of a group."""

from __future__ import annotations

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.calls.autocast import autocast
from ringlab.calls.checks import check_plain
from ringlab.calls.entry import entry
from ringlab.calls.group import resolve_group
from ringlab.decode.agreement import agree
from ringlab.decode.checks import check_cache, check_load, check_new, check_room, check_shard
from ringlab.decode.loading import move
from ringlab.decode.ownership import position_of
from ringlab.decode.routes import find_routes
from ringlab.decode.storage import Storage
from ringlab.decode.support import DECODE
from ringlab.layout import Interleaved, Layout
from ringlab.timeline import region

FIRST_ROWS = 64
"""Rows that a cache without a capacity starts with, on each rank."""


class ShardedKVCache:
    """Keys and values of one layer, each token on one rank of a group.

    Token i lives on rank ``(i // block) % W``. That depends on nothing but i, so every rank
    knows the owner of every token from the number of tokens alone: nothing is ever agreed on,
    and no token moves when the sequence grows. All ranks make the same calls; `append` and
    `reset` send nothing.

    Parameters
    ----------
    batch, kv_heads, head_dim : int
        B, Hkv and D of the keys and values, [B, Hkv, L, D].
    layout : Interleaved
        How many consecutive tokens stay together. With ``Interleaved(1)`` no rank ever holds
        more than one token more than another.
    capacity : int, optional
        Most tokens of the whole sequence; memory for them is taken at once. Without it the
        memory doubles whenever it is full.
    dtype : torch.dtype, optional
        float32, float64, bfloat16 or float16; torch's default dtype if None.
    device : torch.device or str, optional
        Of kind cpu, cuda or meta; torch's default device if None.
    group : ProcessGroup, optional
        The ranks that share the cache; the default group if None.

    Attributes
    ----------
    batch, kv_heads, head_dim : int
    layout : Interleaved
    capacity : int or None
    dtype : torch.dtype
    device : torch.device
    group : ProcessGroup
    rank, world_size : int
        In the group.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as above; a layout whose owners change with the length is
        refused by name.
    RuntimeError
        If there is no process group.

    Notes
    -----
    With n = B·Hkv·D·itemsize a rank holds ``2·n·ceil(L / W)`` bytes to within a block, and
    twice that without a capacity. Growing copies each row at most once for each time it is
    written, on average.

    References
    ----------
    Decode context parallelism of vLLM (github.com/vllm-project/vllm), where token i also
    lives on rank ``(i // block) % W``; Bhatia et al., Helix Parallelism, arXiv:2507.07120.

    Examples
    --------
    >>> import torch
    >>> from ringlab import ShardedKVCache, World, ZigZag, decode_attention
    >>> def program(q, k, v, new):  # a prompt of 10 tokens, then one token
    ...     rank, layout = torch.distributed.get_rank(), ZigZag()
    ...     cache = ShardedKVCache(1, 2, 8)
    ...     cache.load(layout.shard(k, rank, 3), layout.shard(v, rank, 3), layout=layout)
    ...     cache.append(new, new)
    ...     return decode_attention(q, cache), cache.local_length
    >>> q, k, v = torch.randn(1, 4, 1, 8), torch.randn(1, 2, 10, 8), torch.randn(1, 2, 10, 8)
    >>> with World(3) as world:
    ...     results = world.run(program, q, k, v, torch.randn(1, 2, 1, 8))
    >>> [rows for _, rows in results]
    [4, 4, 3]
    """

    def __init__(
        self,
        batch: int,
        kv_heads: int,
        head_dim: int,
        *,
        layout: Interleaved = Interleaved(1),  # noqa: B008  frozen, no state
        capacity: int | None = None,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
        group: dist.ProcessGroup | None = None,
    ) -> None:
        self.dtype = torch.get_default_dtype() if dtype is None else dtype
        self.device = torch.get_default_device() if device is None else torch.device(device)
        check_cache(batch, kv_heads, head_dim, layout, capacity, self.dtype, self.device)
        self.batch, self.kv_heads, self.head_dim = batch, kv_heads, head_dim
        self.layout, self.capacity = layout, capacity
        self.group = resolve_group("ShardedKVCache", group)
        self.rank, self.world_size = self.group.rank(), self.group.size()
        self._length = self._rows = 0
        first = FIRST_ROWS if capacity is None else self._owned(capacity)
        self._storage = Storage(batch, kv_heads, first, head_dim, self.dtype, self.device)
        self.device = self._storage.tensor.device  # with an index

    @property
    def length(self) -> int:
        """Tokens of the whole sequence, on all ranks together."""
        return self._length

    @property
    def local_length(self) -> int:
        """Tokens that this rank holds."""
        return self._rows

    @property
    def lengths(self) -> tuple[int, ...]:
        """Tokens on each rank."""
        return self.layout.lengths(self.world_size, self._length)

    @property
    def keys(self) -> Tensor:
        """The keys of this rank, [B, Hkv, local_length, D]; a view."""
        return self._storage.tensor[0, :, :, : self._rows]

    @property
    def values(self) -> Tensor:
        """The values of this rank, [B, Hkv, local_length, D]; a view."""
        return self._storage.tensor[1, :, :, : self._rows]

    def positions(self) -> Tensor:
        """Global position of each row of this rank, int64 [local_length], on the device."""
        rows = torch.arange(self._rows, device=self.device)
        return position_of(rows, self.layout, self.rank, self.world_size)

    @entry(DECODE)
    def append(self, k: Tensor, v: Tensor) -> None:
        """Add tokens at the end; each rank keeps the ones that it owns. Sends nothing.

        Parameters
        ----------
        k, v : Tensor
            [B, Hkv, n, D], the keys and values of n new tokens, the same on every rank; with
            rotary embeddings, rotated by their positions ``length`` to ``length + n - 1``.

        Raises
        ------
        TypeError, ValueError, RuntimeError, NotImplementedError
            If they do not fit the cache, or the cache would hold more than its capacity:
            that one is raised on every rank, not on the owner alone.
        """
        name = "ShardedKVCache.append"
        check_plain(name, DECODE, k=k, v=v)
        k, v = autocast(k, v)
        check_new(name, self, k, v)
        count = k.shape[2]
        check_room(name, self, count)
        rows = range(self._rows, self._owned(self._length + count))
        self._storage.reserve(rows.stop, self._rows)
        if rows:
            chosen = self._chosen(rows)
            with region("copy"):
                for store, new in zip(self._storage.tensor, (k, v), strict=True):
                    store[:, :, rows.start : rows.stop].copy_(new[:, :, chosen])
        self._count_in(count)

    @entry(DECODE)
    def load(self, k: Tensor, v: Tensor, *, layout: Layout, length: int | None = None) -> None:
        """Add a prompt that the ranks have prefilled, each its shard; rows move to their owners.

        It may follow other tokens, as a second turn or the next chunk of a prompt does.

        Parameters
        ----------
        k, v : Tensor
            [B, Hkv, L_rank, D]: keys and values of the tokens that `layout` gives this rank.
        layout : Layout
            The layout of the prefill, for the prompt alone.
        length : int, optional
            Tokens of the prompt. Without it the ranks compare notes first, in one small
            all-gather (64 bytes to each other rank) that also finds ranks that do not agree;
            with it all ranks must make the same call.

        Raises
        ------
        TypeError, ValueError, RuntimeError, NotImplementedError
            As `append`, and if the shards do not fit the layout.

        Notes
        -----
        One all_to_all carries the rows whose owner is another rank, K and V together,
        2·B·Hkv·D·itemsize bytes a token, and nothing else; if no token has to move there is
        no message. From `ZigZag` into ``Interleaved(1)`` (W-1)/W of all tokens move.
        ``ringlab.cost.cache_load`` counts them exactly.
        """
        name = "ShardedKVCache.load"
        check_plain(name, DECODE, k=k, v=v)
        k, v = autocast(k, v)
        check_new(name, self, k, v)
        check_load(name, layout, length)
        held = agree(name, self, k.shape[2], layout) if length is None else ()
        length = sum(held) if length is None else length
        check_shard(name, layout, self, k.shape[2], held, length)
        check_room(name, self, length)
        routes = find_routes(layout, self.layout, self.world_size, length, self._length)
        self._storage.reserve(self._owned(self._length + length), self._rows)
        move(k, v, self._storage.tensor, routes, self.group)
        self._count_in(length)

    def truncate(self, length: int) -> None:
        """Forget the tokens from `length` on, as when drafted tokens are rejected. Sends nothing.

        Raises
        ------
        ValueError
            If there are fewer tokens than that.
        """
        if not 0 <= length <= self._length:
            raise ValueError(
                f"ShardedKVCache.truncate: the cache holds {self._length} tokens; length is "
                f"between 0 and that, got {length}."
            )
        self._length, self._rows = length, self._owned(length)

    def verify(self) -> None:
        """Let the ranks compare their caches, in one all-gather of 64 bytes to each other rank.

        What keeps the caches parts of one is that all ranks make the same calls; nothing else
        looks at it. Call this where a program might have broken that, not at every token.

        Raises
        ------
        ValueError
            On every rank, if they differ in length, layout, shape or dtype.
        """
        agree("ShardedKVCache.verify", self, 0, self.layout)

    def reset(self) -> None:
        """Forget every token and keep the memory."""
        self.truncate(0)

    def __repr__(self) -> str:
        return (
            f"ShardedKVCache({self.batch}, {self.kv_heads}, {self.head_dim}, layout={self.layout}, "
            f"capacity={self.capacity}, dtype={self.dtype}, device={str(self.device)!r}): "
            f"{self._rows} of {self._length} tokens on rank {self.rank} of {self.world_size}"
        )

    def _owned(self, length: int) -> int:
        """Rows that this rank needs for a sequence of that length."""
        return self.layout.local_length(self.rank, self.world_size, length)

    def _count_in(self, count: int) -> None:
        self._length += count
        self._rows = self._owned(self._length)

    def _chosen(self, rows: range) -> slice | Tensor:
        """Which of the new tokens belong into the rows."""
        place = (self.layout, self.rank, self.world_size)
        first, last = (position_of(row, *place) - self._length for row in (rows[0], rows[-1]))
        if last - first == len(rows) - 1:
            return slice(first, last + 1)
        index = torch.arange(rows.start, rows.stop, device=self.device)
        return position_of(index, *place) - self._length
