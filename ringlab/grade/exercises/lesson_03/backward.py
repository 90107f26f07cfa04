"""What goes into a backward of the ring, what must come out, and what may travel."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from ringlab.draw import bytes_text
from ringlab.grade.case import Case
from ringlab.grade.exercise import Look, Outcome
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.looks import collective_names, peak_memory, results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.oracle import exact_attention
from ringlab.grade.plain import Plain

NAMES = ("dq", "dk", "dv")


@lru_cache(maxsize=64)
def upstream(case: Case) -> Tensor:
    """The upstream gradient of the whole sequence, [B, Hq, L, D], drawn apart from the inputs."""
    q = ring.inputs(case).q
    draw = torch.Generator().manual_seed(case.seed + 1_000_003)
    return torch.randn(q.shape, generator=draw).to(q.dtype)


@lru_cache(maxsize=64)
def saved(case: Case) -> tuple[Tensor, Tensor]:
    """The out and lse that a forward over the whole sequence saves, computed in float64.

    Written out here because the oracle is withheld while an answer runs.
    """
    q, k, v = (x.double() for x in ring.inputs(case))
    keys, values = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores = q @ keys.mT / q.shape[-1] ** 0.5
    return (scores.softmax(-1) @ values).float(), scores.logsumexp(-1).float()


@lru_cache(maxsize=64)
def shards(case: Case) -> list[tuple[Tensor, ...]]:
    """The q, k, v, out, lse and dout of each rank; out and lse in float32."""
    whole = (*ring.inputs(case), *saved(case), upstream(case))
    return list(zip(*(x.chunk(case.world_size, dim=2) for x in whole), strict=True))


def observe(answer: Any, case: Case) -> Observation:
    """Call ``answer(q, k, v, out, lse, dout)`` on every rank."""
    return on_ranks(answer, shards(case))


@lru_cache(maxsize=64)
def right(case: Case) -> tuple[Plain, ...]:
    """What each rank must return: dq, dk and dv of its own tokens, in the dtype of q."""
    whole, kind = exact_attention(*ring.inputs(case), dout=upstream(case)), upstream(case).dtype
    parts = (x.to(kind).chunk(case.world_size, dim=2) for x in (whole.dq, whole.dk, whole.dv))
    return tuple(zip(*parts, strict=True))


def chosen(each: tuple[Plain, ...], names: tuple[str, ...]) -> tuple[Plain, ...]:
    """Some of the three gradients of every rank, by name; what is no triple stays as it is."""
    return tuple(
        {name: part for name, part in zip(NAMES, one, strict=True) if name in names}
        if isinstance(one, (list, tuple)) and len(one) == len(NAMES)
        else one
        for one in each
    )


def gradients(*names: str) -> Look:
    """Each rank returns a triple, and these of its three gradients are right."""

    def look(case: Case, seen: Observation) -> Outcome:
        triples = [isinstance(x, (list, tuple)) and len(x) == len(NAMES) for x in seen.results]
        if not all(triples):
            other = seen.results[triples.index(False)]
            count = f" of {len(other)}" if isinstance(other, (list, tuple)) else ""
            got = f"a {type(other).__name__}{count}"
            return Outcome(False, "three tensors from each rank: dq, dk, dv", got)
        part = Observation(chosen(seen.results, names), seen.timeline)
        return results(lambda case: chosen(right(case), names))(case, part)

    return look


def gradient_bytes(case: Case) -> int:
    """Bytes of the dK and dV of one rank in float32."""
    _, k, v = ring.shards(case)[0]
    return 4 * (k.numel() + v.numel())


def most_sent(case: Case) -> int:
    """W - 1 blocks of K and V, and W of dK and dV in float32."""
    size = case.world_size
    return (size - 1) * ring.block_bytes(case) + size * gradient_bytes(case) if size > 1 else 0


def sent(case: Case, seen: Observation) -> int:
    """Bytes of the rank that sent most."""
    return max(seen.timeline.bytes_sent(rank) for rank in range(case.world_size))


def traffic(case: Case, seen: Observation) -> Outcome:
    """No rank sends more than it must, and nothing goes by a collective."""
    most, got = most_sent(case), sent(case, seen)
    ranks = range(case.world_size)
    names = sorted({name for rank in ranks for name in collective_names(seen.timeline, rank)})
    told = f"{bytes_text(got)} from the rank that sent most"
    return Outcome(
        got <= most and not names,
        f"at most {bytes_text(most)} from each rank, in messages",
        f"{told}, by {', '.join(names)}" if names else told,
    )


def memory(case: Case, seen: Observation) -> Outcome:
    """Where the case asks for it: room for a few blocks, not for those of all ranks."""
    if not case.integer("memory", 0):
        return Outcome(True, "a few blocks at a time", "not looked at in this case")
    return peak_memory(most_bytes)(case, seen)


def most_bytes(case: Case) -> int:
    """Eight blocks of K and V and eight of gradients, and room for scores and partial results.

    That is room for float64 in between, and not for the blocks and sums of all ranks.
    """
    q, _, _ = ring.shards(case)[0]
    scores = q.nbytes // q.shape[3] * q.shape[2]
    return 8 * (ring.block_bytes(case) + gradient_bytes(case)) + 4 * (q.nbytes + scores)


CASES = (
    ring.case("1 rank", 1, 61, tokens=5),
    ring.case("2 ranks, 3 tokens each, large scores", 2, 62, tokens=3, large=4),
    ring.case(
        "4 ranks, 5 tokens each, bfloat16", 4, 63, tokens=5, heads=6, kv_heads=2, dtype="bfloat16"
    ),
    ring.case(
        "5 ranks, 2 tokens each, large heads", 5, 64, tokens=2, kv_heads=4, head_dim=32, memory=1
    ),
)
