"""Mistakes in what a ring sends, keeps and waits for, and how they show."""

from __future__ import annotations

from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake
from ringlab.grade.exercises.lesson_00 import stalls
from ringlab.grade.exercises.lesson_03.ring import (
    MOST_BLOCKS,
    block_bytes,
    lengths,
    memory,
    right,
    right_hops,
)
from ringlab.grade.exercises.lesson_03.wrong_rings import each_rank, merged
from ringlab.grade.observation import Observation
from ringlab.grade.shows import (
    all_of,
    changes_arguments,
    collects,
    fails,
    gives,
    right_but,
    turns_back,
)


def breaks_without_tokens(case: Case, seen: Observation) -> bool | None:
    """An error or no number, and only where a rank has no token."""
    if 0 not in lengths(case):
        return False
    raised = fails("IndexError", "RuntimeError", "ValueError", "ZeroDivisionError")(case, seen)
    nan = any(isinstance(out, Tensor) and bool(out.isnan().any()) for out in seen.results)
    return bool(raised) or nan


def _silent(case: Case, seen: Observation) -> bool | None:
    return None if case.world_size == 1 else not any(e.bytes_out for e in seen.timeline)


def _hops(case: Case, seen: Observation) -> tuple[int, ...]:
    return seen.timeline.hops(0)


def _one_hop_more(case: Case, seen: Observation) -> bool | None:
    return _hops(case, seen) == (block_bytes(case),) * case.world_size


def _split_hops(case: Case, seen: Observation) -> bool | None:
    if case.world_size == 1:
        return None
    return _hops(case, seen) == (block_bytes(case) // 2,) * (2 * (case.world_size - 1))


def _direct(case: Case, seen: Observation) -> bool | None:
    """Blocks go from their owner to everyone, not on from rank to rank."""
    size = case.world_size
    return None if size < 3 else len(seen.timeline.edges()) == size * (size - 1)


def _full(case: Case, seen: Observation) -> bool | None:
    """Right in everything but memory."""
    hops = [seen.timeline.hops(rank) for rank in range(case.world_size)]
    if case.world_size <= MOST_BLOCKS or hops != right_hops(case):
        return None if case.world_size <= MOST_BLOCKS else False
    return not memory(case, seen).passed


def _only_one_rank(case: Case, seen: Observation) -> bool | None:
    """It goes wrong with one rank, and with more it does not."""
    sent = any(event.bytes_out for event in seen.timeline)
    return case.world_size == 1 and (seen.failure is not None or sent)


def _unmatched_sends(case: Case, seen: Observation) -> bool | None:
    """The run ends badly after W - 1 whole hops, in sends that nobody receives."""
    if seen.failure is None or case.world_size == 1:
        return None
    sent = [seen.timeline.count("send", rank) for rank in range(case.world_size)]
    received = [seen.timeline.count("recv", rank) for rank in range(case.world_size)]
    late = max(sent) > max(received) and max(received) >= case.world_size - 1
    return late and seen.failure.kind in ("Deadlock", "PeerLeft", "UnmatchedOperation")


FAILED = (
    Mistake(
        "unmatched_last_send",
        "After the last step something is still sent, and nobody receives it. W steps need W - 1 "
        "hops: in the last step there is nothing to pass on.",
        _unmatched_sends,
    ),
    Mistake(
        "send_before_receive",
        "Every rank waits in its send for the next rank to receive, and none gets to its receive: "
        "a deadlock. Start the send and the receive together, as one batch "
        "(dist.batch_isend_irecv), and wait for both afterwards.",
        stalls.all_wait_in("send"),
    ),
    stalls.INTO_WHAT_IS_SENT,
    Mistake(
        "reads_before_wait",
        "A block is used before its receive has been waited for, so there may be anything in it. "
        "Call wait() on every handle of the hop before you touch what it brings.",
        fails("BufferHazard"),
    ),
    Mistake(
        "handle_not_waited_for",
        "A send or receive is started and never waited for. Keep the handles of every hop and "
        "call wait() on each of them: until then nothing is sure to have arrived or left.",
        fails("UnwaitedHandle"),
    ),
    Mistake(
        "forgets_one_rank",
        "With one rank it goes wrong, or sends to itself: there is nobody to send to. One step, no "
        "hop.",
        _only_one_rank,
    ),
)
"""Mistakes that end a run."""

TRAFFIC = (
    Mistake(
        "gathers_everything",
        "The numbers are right, but your ranks collect the K and V of all ranks in a collective "
        "and compute afterwards. Every rank then holds the whole sequence, which is what the ring "
        "is there to avoid. Pass one block at a time to the next rank.",
        collects,
    ),
    Mistake(
        "sends_to_everyone",
        "Blocks go from their owner straight to every other rank. In a ring a rank talks to its "
        "two neighbours alone: what came from the rank before goes on to the next.",
        right_but(right, _direct),
    ),
    Mistake(
        "wrong_direction",
        "Your ring turns the other way: blocks go to the rank before. The result is the same "
        "here, but block, step and rank no longer fit the rule (rank - step) % W, by which masks "
        "and lengths are chosen. Send to the next rank, receive from the one before.",
        right_but(right, turns_back),
    ),
    Mistake(
        "one_hop_too_many",
        "The numbers are right, and one hop too many is made: the last one brings every rank its "
        "own block, which nobody needs. W steps need W - 1 hops.",
        right_but(right, _one_hop_more),
    ),
    Mistake(
        "two_hops_for_one",
        "K and V travel in two launches, one after the other. Every launch has its own start-up "
        "time: pack K and V into one tensor, or put all four operations into one batch.",
        right_but(right, _split_hops),
    ),
    Mistake(
        "keeps_every_block",
        "Numbers and bytes are right, but the blocks that arrive are kept, or the partial results "
        "of all of them. Then a rank holds as much as the whole sequence at the end. Compute with "
        "a block, merge, and let it go.",
        right_but(right, _full),
    ),
    Mistake(
        "changes_its_arguments",
        "Your answer writes into its arguments q, k or v. They belong to the caller, and the "
        "backward pass needs them: work on tensors of your own.",
        changes_arguments,
    ),
    Mistake(
        "sends_nothing",
        "Nothing is sent: every rank computes with its own keys alone. A query needs the keys of "
        "all ranks.",
        all_of(_silent, gives(each_rank(merged, lambda rank, _size: [rank]), right)),
    ),
)
"""Mistakes in what is sent and kept."""
