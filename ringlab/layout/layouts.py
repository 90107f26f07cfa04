"""The layouts that there are: which token lives on which rank."""

from __future__ import annotations

from dataclasses import dataclass

from ringlab.layout.layout import Layout
from ringlab.layout.runs import Run, check_place, check_position, chunk, nonempty


@dataclass(frozen=True)
class Contiguous(Layout):
    """Rank r owns the r-th stretch; the first ``length % world_size`` are longer by one token.

    Under a causal mask rank r computes ``r * c**2 + c * (c + 1) / 2`` pairs with
    ``c = length / world_size``: the last rank nearly twice the mean.

    References
    ----------
    Liu, Zaharia, Abbeel, "Ring Attention with Blockwise Transformers for Near-Infinite
    Context", arXiv 2310.01889.
    """

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        """Give one run."""
        check_place(rank, world_size, length)
        return nonempty([chunk(rank, world_size, length)])


@dataclass(frozen=True)
class ZigZag(Layout):
    """Of ``2 * world_size`` chunks, rank r owns chunk r and its mirror ``2 * world_size - 1 - r``.

    The first ``length % (2 * world_size)`` chunks are longer by one token. With equal chunks
    of c tokens every rank computes ``2 * world_size * c**2 + c`` causal pairs, and exactly
    ``2 * c**2`` of them against every rank but itself.

    References
    ----------
    "The Llama 3 Herd of Models", arXiv 2407.21783, section 3.3.2.
    """

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        """Give two runs."""
        check_place(rank, world_size, length)
        mirror = 2 * world_size - 1 - rank
        return nonempty(chunk(index, 2 * world_size, length) for index in (rank, mirror))


@dataclass(frozen=True)
class Striped(Layout):
    """Token i lives on rank ``i % world_size``.

    Balanced to within one diagonal: with ``c = length / world_size``, rank r computes
    ``c * (world_size * c + 2 * r + 2 - world_size) / 2`` causal pairs.

    References
    ----------
    Brandon et al., "Striped Attention: Faster Ring Attention for Causal Transformers",
    arXiv 2311.09431.
    """

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        """Give one run of step ``world_size``."""
        check_place(rank, world_size, length)
        return nonempty([Run(rank, world_size, len(range(rank, length, world_size)))])

    def owner(self, position: int, world_size: int, length: int) -> int:
        """Find the rank that owns a global position; the length does not matter."""
        check_position(position, world_size, length)
        return position % world_size


@dataclass(frozen=True)
class Interleaved(Layout):
    """Token i lives on rank ``(i // block) % world_size``.

    A token's owner does not depend on the length, so a sequence that grows, as a cache
    does during decode, never moves a token.

    Parameters
    ----------
    block : int
        Tokens that stay together, at least 1; with 1 the tokens lie as in `Striped`.
    """

    block: int

    def __post_init__(self) -> None:
        if not isinstance(self.block, int) or self.block < 1:
            raise ValueError(f"block is a number of tokens, 1 or more; got {self.block!r}.")

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        """Give one run a block, or a single run of step ``world_size`` for blocks of 1."""
        if self.block == 1:
            return Striped().runs(rank, world_size, length)
        check_place(rank, world_size, length)
        starts = range(rank * self.block, length, world_size * self.block)
        return tuple(Run(start, 1, min(self.block, length - start)) for start in starts)

    def local_length(self, rank: int, world_size: int, length: int) -> int:
        """Count the rank's tokens in closed form: a growing cache asks at every token."""
        check_place(rank, world_size, length)
        rounds, rest = divmod(length, self.block * world_size)
        return rounds * self.block + min(max(rest - rank * self.block, 0), self.block)

    def owner(self, position: int, world_size: int, length: int) -> int:
        """Find the rank that owns a global position; the length does not matter."""
        check_position(position, world_size, length)
        return position // self.block % world_size
