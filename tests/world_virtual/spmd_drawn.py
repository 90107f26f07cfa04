"""Hypothesis strategies for the programs of `tests.world_virtual.spmd`."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.world_virtual.spmd import ACTS, DTYPES, MEMBERS, Program, Step


@st.composite
def steps(draw: st.DrawFn) -> Step:
    """Any step; every member does its part."""
    kind = draw(st.sampled_from(["message", "exchange", *ACTS]))
    group = draw(st.sampled_from(sorted(MEMBERS)))
    size, pairs = len(MEMBERS[group]), ()
    if kind == "message":
        pairs = (tuple(draw(st.permutations(range(size)))[:2]),)
    elif kind == "exchange":
        every = [(a, b) for a in range(size) for b in range(size) if a != b]
        ring = [(a, (a + 1) % size) for a in range(size)]
        some = st.lists(st.sampled_from(every), min_size=1, max_size=4)
        pairs = tuple(draw(st.one_of(st.just(ring), some)))
    held = st.integers(0, 3) if kind != "exchange" else st.integers(1, 3)
    hold = draw(st.tuples(*[held] * size))
    elements = draw(st.sampled_from([0, 1, 3, 5, 1000]))
    return Step(kind, group, elements, draw(st.sampled_from(DTYPES)), hold,
                draw(st.integers(0, 5)), pairs)  # fmt: skip


@st.composite
def programs(draw: st.DrawFn, swaps: int) -> Program:
    """Up to six steps; some ranks, `swaps` at most, make two of them in another order."""
    chosen = draw(st.lists(steps(), min_size=2 if swaps else 1, max_size=6))
    if not swaps:
        return Program(tuple(chosen))
    swap = st.tuples(st.integers(0, 3), st.integers(0, len(chosen) - 2))
    return Program(tuple(chosen), tuple(draw(st.lists(swap, min_size=1, max_size=swaps))))
