"""Neighbours swap their tensors: the smallest program that can hang."""

from __future__ import annotations

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_00 import messages, stalls
from ringlab.grade.looks import inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain
from ringlab.grade.shows import gives


def _partner(rank: int, size: int) -> int:
    """The other of the pair; a last rank without one is its own."""
    other = rank + 1 if rank % 2 == 0 else rank - 1
    return other if other < size else rank


def _right(case: Case) -> tuple[Plain, ...]:
    each, size = messages.given(case), case.world_size
    return tuple(each[_partner(rank, size)] for rank in range(size))


def _own(case: Case) -> tuple[Plain, ...]:
    return tuple(messages.given(case))


def _messages(case: Case, seen: Observation) -> Outcome:
    size, message = case.world_size, messages.message_bytes(case)
    pairs = {(rank, _partner(rank, size)): message for rank in range(size)}
    wanted = {edge: sent for edge, sent in pairs.items() if edge[0] != edge[1]}
    return messages.traffic(seen, wanted, "one message from each rank to its partner")


def _in_a_circle(case: Case, seen: Observation) -> bool | None:
    size = case.world_size
    if size < 3:
        return None
    circle = {(rank, (rank + 1) % size) for rank in range(size)}
    return set(seen.timeline.edges()) in (circle, {(to, rank) for rank, to in circle})


def _stranger(case: Case, seen: Observation) -> bool | None:
    """Somebody waits for a rank that is not its partner."""
    if seen.failure is None or case.world_size < 3:
        return None
    return any(other != _partner(rank, case.world_size) for rank, other, *_ in seen.failure.waits)


def _odd_one(case: Case, seen: Observation) -> bool | None:
    """It goes wrong where a rank is left over, and only there."""
    last = case.world_size - 1
    return last % 2 == 0 and (seen.failure is not None or bool(seen.timeline.hops(last)))


MISTAKES = (
    *stalls.BUFFERS,
    Mistake(
        "next_rank_for_partner",
        "Somebody waits for a rank that waits for a third one: the pairs do not fit. With two "
        "ranks the next rank is the partner, with more it is only for even ranks.",
        _stranger,
    ),
    Mistake(
        "moves_in_a_circle",
        "Everybody sends to the next rank and receives from the one before. That is a step of "
        "a ring. In a swap you receive from the very rank to which you send.",
        _in_a_circle,
    ),
    Mistake(
        "odd_one_forgotten",
        "With an odd number of ranks the last one has no partner. It sends nothing, and "
        "returns its own numbers.",
        _odd_one,
    ),
    *stalls.CIRCLES,
    Mistake(
        "keeps_its_own",
        "Every rank returns its own numbers, or a copy. Return the tensor that was received.",
        gives(_own, _right),
    ),
)

EXERCISE = Exercise(
    name="swap",
    lesson="00",
    title="Swap with your neighbour",
    minutes=10,
    difficulty=1,
    objective="let two ranks exchange tensors so that neither waits for the other for ever",
    signature="swap(mine)",
    hints=(
        "Who is the partner of rank 4, and who that of rank 5? Then: what does each of the two "
        "wait for, and can the other do it at that moment?",
        "An even rank's partner is the next one, an odd rank's the one before. Put the send and "
        "the receive into one dist.batch_isend_irecv, the receive into a new tensor, and wait "
        "for every handle. A last rank without partner sends nothing.",
    ),
    checks=(
        Check("numbers", 2, results(_right)),
        Check("messages", 1, _messages, after="numbers"),
        Check("arguments", 1, inputs_kept, after="numbers"),
    ),
    cases=(
        messages.case("1 rank", 1, 1, columns=3),
        messages.case("2 ranks, NCCL's rules", 2, 2, columns=4),
        messages.case("2 ranks, gloo's rules", 2, 3, columns=3, order="host"),
        messages.case("3 ranks", 3, 4, columns=5),
        messages.case("4 ranks, a tensor with gaps", 4, 5, columns=3, gaps=2),
    ),
    observe=messages.observe,
    mistakes=stalls.besides_gaps(MISTAKES),
    draw=messages.draw,
)
