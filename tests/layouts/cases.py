"""Layouts by their definition, one token at a time, and what is drawn to test them."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from ringlab.layout import Contiguous, Interleaved, Layout, Run, Striped, ZigZag


@dataclass(frozen=True)
class Word(Layout):
    """A layout of a user's own: token i lives on the rank that a repeated word names."""

    word: tuple[int, ...]

    def runs(self, rank: int, world_size: int, length: int) -> tuple[Run, ...]:
        named = [self.word[i % len(self.word)] % world_size for i in range(length)]
        starts = [i for i in range(length) if named[i] == rank and (i == 0 or named[i - 1] != rank)]
        stops = [
            i for i in range(1, length + 1) if named[i - 1] == rank and rank not in named[i : i + 1]
        ]
        return tuple(Run(i, 1, j - i) for i, j in zip(starts, stops, strict=True))


def owners(layout: Layout, world_size: int, length: int) -> list[int]:
    """The rank of every token, from the sentence that defines the layout."""
    if isinstance(layout, Contiguous):
        return _dealt(list(range(world_size)), length)
    if isinstance(layout, ZigZag):
        return _dealt([*range(world_size), *reversed(range(world_size))], length)
    if isinstance(layout, Striped):
        return [i % world_size for i in range(length)]
    if isinstance(layout, Interleaved):
        return [(i // layout.block) % world_size for i in range(length)]
    assert isinstance(layout, Word)
    return [layout.word[i % len(layout.word)] % world_size for i in range(length)]


def _dealt(ranks: list[int], length: int) -> list[int]:
    """One chunk for each entry; tokens that do not divide go one each to the first chunks."""
    sizes = [0] * len(ranks)
    for token in range(length):
        sizes[token % len(ranks)] += 1
    return [rank for rank, size in zip(ranks, sizes, strict=True) for _ in range(size)]


def own_positions(layout: Layout, rank: int, world_size: int, length: int) -> list[int]:
    """The positions of a rank, by search."""
    return [i for i, owner in enumerate(owners(layout, world_size, length)) if owner == rank]


# A dense rank beside sparse ones, strides that divide one another, strides that do not.
WORDS = [Word((0, 1, 0, 2)), Word((0, 0, 0, 1, 2, 1)), Word((3, 1, 0)), Word((2,))]
SHIPPED = [Contiguous(), ZigZag(), Striped(), Interleaved(1), Interleaved(4), Interleaved(16)]
EVERY_LAYOUT = SHIPPED + WORDS

layouts = st.one_of(
    st.sampled_from([Contiguous(), ZigZag(), Striped()]),
    st.integers(1, 40).map(Interleaved),
    st.lists(st.integers(0, 8), min_size=1, max_size=12).map(lambda word: Word(tuple(word))),
)
world_sizes = st.integers(1, 9)
lengths = st.one_of(st.integers(0, 200), st.sampled_from([0, 1, 2, 7, 13, 31, 97, 127, 199]))
