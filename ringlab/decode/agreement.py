"""The ranks compare their caches: how many tokens each brings, and that the caches are alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringlab.calls.checks import DTYPES, short
from ringlab.calls.notes import fingerprint, tell
from ringlab.layout import Layout

if TYPE_CHECKING:
    from ringlab.decode.cache import ShardedKVCache

_SHOWN = (
    "tokens in the cache",
    "the layout of the prompt",
    "the layout of the cache",
    "the batch size B",
    "the number of KV heads",
    "the head dimension D",
    "the dtype",
)


def agree(name: str, cache: ShardedKVCache, tokens: int, layout: Layout) -> tuple[int, ...]:
    """Compare notes; every rank reaches the same verdict.

    Returns
    -------
    tuple of int
        The `tokens` of each rank.

    Raises
    ------
    ValueError
        On every rank, if the caches are not parts of one; it shows what each rank has.
    """
    words = (tokens, cache.length, fingerprint(layout), fingerprint(cache.layout), cache.batch,
             cache.kv_heads, cache.head_dim, DTYPES.index(cache.dtype))  # fmt: skip
    held, *columns = zip(*tell(words, cache.group, cache.device), strict=True)
    for what, values in zip(_SHOWN, columns, strict=True):
        if len(set(values)) > 1:
            shown = _readable(what, values)
            raise ValueError(
                f"{name}: the ranks do not agree on {what}{shown}. All ranks of the group must "
                "make the same calls on parts of one cache."
            )
    return held


def _readable(what: str, values: tuple[int, ...]) -> str:
    """The values, rank by rank, where they mean something to a person."""
    if "layout" in what:
        return ""
    names = [short(DTYPES[value]) for value in values] if "dtype" in what else list(values)
    return f": rank by rank it is {names}"
