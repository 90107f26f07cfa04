"""The causal ring: right numbers, and no work for tiles that are empty."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_04 import causal
from ringlab.grade.looks import collective_names, hops_text, inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.shows import collects
from ringlab.grade.windows import work_of


def _hops(case: Case, seen: Observation) -> Outcome:
    """W - 1 hops of one block to the next rank; fewer if nobody needs the rest."""
    size, block, timeline = case.world_size, ring.block_bytes(case), seen.timeline
    wanted = f"at most {hops_text((block,) * (size - 1))} from each rank, to the next"
    for rank in range(size):
        names, sent = collective_names(timeline, rank), timeline.hops(rank)
        if names or len(sent) > size - 1 or not set(sent) <= {0, block}:
            got = f"rank {rank} sent {hops_text(sent)}{', and called '.join(['', *names])}"
            return Outcome(False, wanted, got)
    strays = [f"{a} to {b}" for a, b in timeline.edges() if b != (a + 1) % size]
    return Outcome(not strays, wanted, ", ".join(strays) or wanted)


def _skips_the_hop(case: Case, seen: Observation) -> bool | None:
    """Ranks wait for one that has stopped passing on; two ranks have but one hop, and are fine."""
    if seen.failure is None:
        return None
    stopped = ("PeerLeft", "Deadlock", "UnmatchedOperation")
    return case.world_size > 2 and seen.failure.kind in stopped


def _backwards(case: Case, seen: Observation) -> bool | None:
    size = case.world_size
    if size < 3:
        return None
    edges = set(seen.timeline.edges())
    return (
        causal.exact(case, seen)
        and bool(edges)
        and edges <= {(rank, (rank - 1) % size) for rank in range(size)}
    )


def _computes_everything(case: Case, seen: Observation) -> bool | None:
    if case.world_size == 1:
        return None
    everything = case.world_size * causal.tile_flops(case)
    return causal.exact(case, seen) and work_of(seen.timeline, 0) >= everything


EXERCISE = Exercise(
    name="causal_ring",
    lesson="04",
    title="The causal ring",
    minutes=25,
    difficulty=3,
    objective="put a causal mask on a ring, by position, and skip the tiles of which nothing is "
    "needed",
    signature="causal_ring(q, k, v)",
    hints=(
        "In each step ask first whose block is in hand, and only then what may be seen of it. "
        "There are three answers. Which one holds in step 0, and which ranks get which later on?",
        "The owner is (rank - step) % W. Is it the rank itself, mask what lies above the diagonal; "
        "is it an earlier rank, mask nothing; is it a later one, compute nothing and merge "
        "nothing, but pass the block on all the same: the next rank may need it.",
    ),
    checks=(
        Check("numbers", 4, results(causal.right)),
        Check("work", 3, causal.work, after="numbers"),
        Check("hops", 2, _hops, after="numbers"),
        Check("arguments", 1, inputs_kept, after="numbers"),
    ),
    cases=(
        ring.case("1 rank", 1, 61, tokens=5),
        ring.case("2 ranks, 3 tokens each", 2, 62, tokens=3),
        ring.case("3 ranks, 4 tokens each", 3, 63, tokens=4, heads=6),
        ring.case("4 ranks, 3 tokens each, one KV head", 4, 64, tokens=3, heads=3, kv_heads=1),
    ),
    observe=ring.observe,
    mistakes=(
        Mistake(
            "skips_the_hop_too",
            "A rank that has nothing to compute no longer passes on, or no longer takes part, and "
            "the others wait for it. Skip the compute, and let the hop go on in every step.",
            _skips_the_hop,
        ),
        *causal.STALLS,
        Mistake(
            "gathers_everything",
            "Your ranks collect all K and V in a collective. Pass one block at a time to the next "
            "rank.",
            collects,
        ),
        *causal.MASKS,
        Mistake(
            "wrong_direction",
            "Your ring turns the other way. The numbers are right here, but in that direction a "
            "block reaches those who need it last. Send to the next rank.",
            _backwards,
        ),
        Mistake(
            "computes_everything",
            "The numbers are right, but empty tiles are computed and masked away: rank 0 works as "
            "long as the last rank. If the block's owner is a later rank, compute nothing.",
            _computes_everything,
        ),
    ),
    draw=ring.draw,
)
