"""Ready-made checks: results, inputs left alone, hops, memory."""

from __future__ import annotations

from collections.abc import Callable

from ringlab.draw import bytes_text
from ringlab.grade.case import Case
from ringlab.grade.exercise import Look, Outcome
from ringlab.grade.numbers import by_rank
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain
from ringlab.timeline import Timeline, peak_kv_blocks

Hops = list[tuple[int, ...]]
"""For each rank the bytes of each hop, in order."""


def results(right: Callable[[Case], tuple[Plain, ...]], tolerance: float = 0.0) -> Look:
    """Each rank's result is right, in form and numbers.

    Parameters
    ----------
    right : callable
        ``right(case)``: what each rank must return. A tensor is in the dtype that is wanted.
    tolerance : float
        As in `ringlab.grade.numbers.difference`.
    """

    def look(case: Case, seen: Observation) -> Outcome:
        found = by_rank(seen.results, right(case), tolerance)
        if found is None:
            return Outcome(True, "right results", "right results")
        return Outcome(False, found.expected, str(found))

    return look


def inputs_kept(_case: Case, seen: Observation) -> Outcome:
    """No argument was changed in place."""
    return Outcome(not seen.changed, "arguments left as they were", _listed(seen.changed))


def hops(right: Callable[[Case], Hops]) -> Look:
    """Each rank sends what it must, hop by hop, in messages.

    Parameters
    ----------
    right : callable
        ``right(case)``: the bytes of each hop of each rank.
    """

    def look(case: Case, seen: Observation) -> Outcome:
        wanted, timeline = right(case), seen.timeline
        for rank, expected in enumerate(wanted):
            got = timeline.hops(rank)
            collectives = collective_names(timeline, rank)
            if got != expected or collectives:
                also = f", and called {_listed(collectives)}" if collectives else ""
                return Outcome(
                    False,
                    f"rank {rank} sends {hops_text(expected)}, in messages",
                    f"rank {rank} sent {hops_text(got)}{also}",
                )
        text = f"{hops_text(wanted[0])} from each rank" if len(set(wanted)) == 1 else "as planned"
        return Outcome(True, text, text)

    return look


def kv_blocks(most: float, block_bytes: Callable[[Case], int]) -> Look:
    """No rank needs more than `most` blocks of K and V for its communication."""

    def look(case: Case, seen: Observation) -> Outcome:
        ranks = range(seen.timeline.world_size)
        held = max(peak_kv_blocks(seen.timeline, rank, block_bytes(case)) for rank in ranks)
        return Outcome(
            held <= most,
            f"at most {most:g} blocks of K and V on a rank at one moment",
            f"{held:g} blocks on the fullest rank",
        )

    return look


def peak_memory(most: Callable[[Case], int]) -> Look:
    """No rank makes tensors of more than ``most(case)`` bytes that are alive together."""

    def look(case: Case, seen: Observation) -> Outcome:
        limit, peak = most(case), max(seen.peaks, default=0)
        return Outcome(
            peak <= limit,
            f"at most {bytes_text(limit)} of new tensors alive on a rank",
            f"{bytes_text(peak)} on the fullest rank",
        )

    return look


def collective_names(timeline: Timeline, rank: int) -> tuple[str, ...]:
    """The collectives that moved bytes, each name once."""
    events = timeline.of(rank, "collective")
    return tuple(dict.fromkeys(e.name for e in events if e.bytes_in + e.bytes_out))


def hops_text(sizes: tuple[int, ...]) -> str:
    """Bytes of hops in words: ``"3 hops of 512 B"``."""
    if not sizes:
        return "nothing"
    if len(set(sizes)) == 1:
        return f"{len(sizes)} hop{'s' * (len(sizes) > 1)} of {bytes_text(sizes[0])}"
    return f"{len(sizes)} hops of " + ", ".join(map(bytes_text, sizes))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) if names else "none"
