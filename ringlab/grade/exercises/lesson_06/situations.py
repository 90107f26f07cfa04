"""One layer's attention on ranks: what each method moves and needs, and which one is chosen."""

from __future__ import annotations

from typing import NamedTuple

Choice = tuple[str, int]
"""A method, and the bytes that each rank sends by it."""


class Situation(NamedTuple):
    """What `choose_method` is asked about, in the order of its arguments.

    Attributes
    ----------
    phase : str
        ``"decode"``: every rank has the same queries; ``"prefill"``: each has some of its own.
    ranks, tokens, queries : int
        Ranks, and on each of them tokens of the cache and queries.
    heads, kv_heads, head_dim, itemsize : int
    room : int
        Bytes for a gathered copy of all keys and values.
    """

    phase: str
    ranks: int
    tokens: int
    queries: int
    heads: int
    kv_heads: int
    head_dim: int
    itemsize: int
    room: int

    @property
    def cache(self) -> int:
        """Bytes of the keys and values of one rank."""
        return 2 * self.tokens * self.kv_heads * self.head_dim * self.itemsize

    @property
    def found(self) -> int:
        """Bytes of the results of one rank for its queries: out and LSE in float32."""
        return self.queries * self.heads * (self.head_dim + 1) * 4

    @property
    def asked(self) -> int:
        """Bytes of a rank's queries."""
        return self.queries * self.heads * self.head_dim * self.itemsize

    @property
    def moved(self) -> int:
        """Bytes from one rank to another by split-K: results, and in prefill queries first."""
        return self.found + (self.asked if self.phase == "prefill" else 0)


def chosen(
    it: Situation, *, cache: int | None = None, moved: int | None = None, needed: int | None = None
) -> Choice:
    """The right choice, or that of somebody who counts other bytes.

    Parameters
    ----------
    it : Situation
    cache, moved : int, optional
        Bytes from one rank to another if keys and values travel, and by split-K.
    needed : int, optional
        Bytes of room that gathering needs.
    """
    if it.ranks == 1:
        return "none", 0
    return several(it, cache=cache, moved=moved, needed=needed)


def several(
    it: Situation, *, cache: int | None = None, moved: int | None = None, needed: int | None = None
) -> Choice:
    """The choice between the three methods, as if there were several ranks."""
    held = it.cache if cache is None else cache
    sent = it.moved if moved is None else moved
    others = it.ranks - 1
    if sent <= held:
        return "split_k", others * sent
    fits = (it.ranks * held if needed is None else needed) <= it.room
    return "all_gather" if fits else "ring", others * held
