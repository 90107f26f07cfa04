"""A causal ring that leaves out the messages that nobody needs."""

from __future__ import annotations

from collections.abc import Callable

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_03 import ring
from ringlab.grade.exercises.lesson_04 import causal
from ringlab.grade.looks import collective_names, hops_text, inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.shows import collects

Blocks = Callable[[int, int], int]
"""How many blocks a rank sends to the next: ``blocks(rank, world_size)``."""


def _needed(rank: int, size: int) -> int:
    """Its own block and those of all earlier ranks; the last rank sends none."""
    return rank + 1 if rank < size - 1 else 0


def _edges(case: Case, blocks: Blocks) -> dict[tuple[int, int], int]:
    size, block = case.world_size, ring.block_bytes(case)
    sent = {(rank, (rank + 1) % size): block * blocks(rank, size) for rank in range(size)}
    return {edge: total for edge, total in sent.items() if total}


def _messages(case: Case, seen: Observation) -> Outcome:
    """Each rank sends what is needed further on, a block in each hop."""
    size, block, timeline = case.world_size, ring.block_bytes(case), seen.timeline
    edges, right = timeline.edges(), _edges(case, _needed)
    for rank in range(size):
        wanted, names = (block,) * _needed(rank, size), collective_names(timeline, rank)
        sent = tuple(total for total in timeline.hops(rank) if total)
        own = {edge: total for edge, total in edges.items() if edge[0] == rank}
        right_own = {edge: total for edge, total in right.items() if edge[0] == rank}
        if sent != wanted or own != right_own or names:
            to = "".join(f", to rank {edge[1]}" for edge in own)
            also = "".join(f", and called {name}" for name in names)
            right_to = ", to the next rank" if wanted else ""
            return Outcome(
                False,
                f"rank {rank} sends {hops_text(wanted)}{right_to}",
                f"rank {rank} sent {hops_text(sent)}{to}{also}",
            )
    total = sum(right.values()) // block
    text = f"{total} blocks from rank to rank, {size * (size - 1) // 2} of {size * (size - 1)}"
    return Outcome(True, text, text)


def _sends(*ways: Blocks, exact: bool = True) -> Callable[[Case, Observation], bool | None]:
    """Shows if the ranks send so many blocks to the next, and (with `exact`) rightly compute."""

    def shows(case: Case, seen: Observation) -> bool | None:
        edges = seen.timeline.edges()
        some = [_edges(case, blocks) for blocks in ways]
        if case.world_size == 1 or all(wanted == _edges(case, _needed) for wanted in some):
            return None
        ended = causal.exact(case, seen) if exact else seen.failure is None
        return ended and edges in some

    return shows


def _direct(case: Case, seen: Observation) -> bool | None:
    """Each block goes from its owner straight to everyone who needs it."""
    size = case.world_size
    wanted = {(a, b) for a in range(size) for b in range(a + 1, size)}
    return None if size < 3 else set(seen.timeline.edges()) == wanted and causal.exact(case, seen)


def _waits(seen: Observation) -> tuple[tuple[int, int, str, str], ...]:
    return seen.failure.waits if seen.failure is not None else ()


def _nobody_sends(case: Case, seen: Observation) -> bool | None:
    """Some rank waits for a message from the rank before, and the run ends with that."""
    if seen.failure is None:
        return None
    waits = _waits(seen)
    ring_wise = all(other == (rank - 1) % case.world_size for rank, other, *_ in waits)
    return bool(waits) and ring_wise and all("recv" in what for _, _, what, _ in waits)


def _nobody_receives(case: Case, seen: Observation) -> bool | None:
    """Some rank has sent more than the next one receives."""
    if seen.failure is None:
        return None
    sent = [seen.timeline.count("send", rank) for rank in range(case.world_size)]
    received = [seen.timeline.count("recv", rank) for rank in range(case.world_size)]
    kinds = ("PeerLeft", "Deadlock", "UnmatchedOperation", "UnwaitedHandle")
    return seen.failure.kind in kinds and sum(sent) > sum(received)


def _last_rank_sends(case: Case, seen: Observation) -> bool | None:
    """The last rank sends to rank 0 what rank 0 does not receive."""
    if seen.failure is None:
        return None
    last = case.world_size - 1
    return _nobody_receives(case, seen) and any(
        event.rank == last and event.peer == 0 for event in seen.timeline if event.kind == "send"
    )


def _everything(_rank: int, size: int) -> int:
    return size - 1


def _all_but_last(rank: int, size: int) -> int:
    return size - 1 if rank < size - 1 else 0


def _round_the_end(rank: int, size: int) -> int:
    return min(rank + 1, size - 1)


def _one_more(rank: int, size: int) -> int:
    return min(rank + 2, size - 1) if rank < size - 1 else 0


def _of_the_block(rank: int, size: int) -> int:
    return size - 1 - rank


MASKS = ("no_mask", "own_block_not_masked", "own_mask_on_every_block",
         "a_position_does_not_see_itself")  # fmt: skip
STALLS = ("receives_into_what_is_sent", "reads_before_wait", "handle_not_waited_for")

EXERCISE = Exercise(
    name="early_stop",
    lesson="04",
    title="A ring that stops early",
    minutes=25,
    difficulty=3,
    objective="leave out the messages of a causal ring that nobody needs, and say what is saved",
    signature="early_stop(q, k, v)",
    hints=(
        "Write down for four ranks who needs whose block, and then what must cross the link "
        "between rank 1 and rank 2. In which steps does it? And what crosses the link from the "
        "last rank to rank 0?",
        "In step t rank r has the block of rank r - t, as long as that is not negative. All later "
        "ranks need it, so it goes on: while t <= r, and not from the last rank. The next rank "
        "must receive by the same rule, seen from its side: while t < r. A batch may consist of "
        "one operation, or of none, which is not to be started.",
    ),
    checks=(
        Check("numbers", 3, results(causal.right)),
        Check("messages", 4, _messages, after="numbers"),
        Check("work", 1, causal.work, after="numbers"),
        Check("arguments", 1, inputs_kept, after="numbers"),
    ),
    cases=(
        ring.case("1 rank", 1, 71, tokens=4),
        ring.case("2 ranks, 3 tokens each", 2, 72, tokens=3),
        ring.case("3 ranks, 2 tokens each", 3, 73, tokens=2, heads=6),
        ring.case("5 ranks, 3 tokens each, one KV head", 5, 74, tokens=3, heads=3, kv_heads=1),
    ),
    observe=ring.observe,
    mistakes=(
        *(mistake for mistake in causal.STALLS if mistake.name in STALLS),
        Mistake(
            "last_rank_sends_on",
            "The last rank passes blocks on to rank 0, which does not receive them: it needs its "
            "own alone. The link from the last rank to the first carries nothing.",
            _last_rank_sends,
        ),
        Mistake(
            "sends_more_than_is_received",
            "Somebody sends a block that the next rank does not receive. Both sides must follow "
            "one rule: rank r sends in the steps in which rank r + 1 receives.",
            _nobody_receives,
        ),
        Mistake(
            "stops_too_soon",
            "A rank waits for a block that the rank before no longer sends. Rank r has r + 1 "
            "blocks that later ranks need, its own and those before: it sends in the steps 0 to r.",
            _nobody_sends,
        ),
        Mistake(
            "gathers_everything",
            "Your ranks collect all K and V in a collective. Pass on, from rank to rank, what is "
            "needed.",
            collects,
        ),
        Mistake(
            "sends_straight_to_those_who_need",
            "Blocks go from their owner straight to every later rank. There are as few bytes, but "
            "ranks far apart share a slower link, and rank 0 sends all at once. Pass on from "
            "neighbour to neighbour.",
            _direct,
        ),
        Mistake(
            "sends_in_every_step",
            "The numbers are right, and all W (W - 1) messages are sent, as without a mask. What "
            "only earlier ranks would receive need not be passed on.",
            _sends(_everything, _all_but_last),
        ),
        Mistake(
            "goes_round_the_end",
            "Blocks go on from the last rank to rank 0, and perhaps further. Whoever comes after "
            "the last rank needs none of them.",
            _sends(_round_the_end),
        ),
        Mistake(
            "one_step_too_long",
            "Every rank passes on one block more than is needed. In step r + 1 rank r has the "
            "block of the last rank, which nobody else needs.",
            _sends(_one_more),
        ),
        Mistake(
            "hops_of_the_block_for_those_of_the_rank",
            "The block of rank r makes W - 1 - r hops, and you let rank r send as often. But a "
            "rank passes on the blocks of earlier ranks as well: the later the rank, the more.",
            _sends(_of_the_block, exact=False),
        ),
        *(mistake for mistake in causal.MASKS if mistake.name in MASKS),
    ),
    draw=ring.draw,
)
