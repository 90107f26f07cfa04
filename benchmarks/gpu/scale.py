"""How large the problems are, on a GPU and where only the program is tried."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Sizes of all parts, B = 1.

    Attributes
    ----------
    tokens : int
        Of each rank.
    heads, kv_heads, dim : int
    dtype : str
        A name of torch.
    examined : int
        Tokens of the problem whose errors are taken against float64.
    blocks : tuple of int
        Into how many blocks of keys one sequence is cut.
    contexts : tuple of int
        Tokens in the caches of decode.
    steps : int
        How often a reading repeats what it reads.
    rounds : int
        Readings of which the median counts.
    """

    tokens: int
    heads: int
    kv_heads: int
    dim: int
    dtype: str
    examined: int
    blocks: tuple[int, ...]
    contexts: tuple[int, ...]
    steps: int
    rounds: int


WHOLE = Scale(
    8192, 32, 8, 128, "bfloat16", 1024, (2, 4, 8), (8192, 32768, 131072, 524288), steps=5, rounds=7
)
TINY = Scale(192, 4, 2, 32, "float32", 96, (2, 4), (256, 1024), steps=2, rounds=3)
