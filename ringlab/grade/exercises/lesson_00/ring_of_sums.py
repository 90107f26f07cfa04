"""A ring that adds up: the broken listing of the lesson, to be written right."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from ringlab.draw import Picture, draw_ring_strip
from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome
from ringlab.grade.exercises.lesson_00 import messages, stalls
from ringlab.grade.exercises.lesson_03.ring_mistakes import FAILED
from ringlab.grade.looks import Hops, hops, inputs_kept, results
from ringlab.grade.observation import Observation
from ringlab.grade.plain import Plain
from ringlab.grade.shows import changes_arguments, collects, gives, turns_back

OF_RINGS = ("unmatched_last_send", "forgets_one_rank")


def _total(rank: int, each: list[Tensor]) -> Tensor:
    total = each[rank].clone()
    for tensor in each[:rank] + each[rank + 1 :]:
        total += tensor
    return total


def _results(method: Callable[[int, list[Tensor]], Tensor]) -> Callable[[Case], tuple[Plain, ...]]:
    def each(case: Case) -> tuple[Plain, ...]:
        given = messages.given(case)
        return tuple(method(rank, given) for rank in range(case.world_size))

    return each


_right = _results(_total)


def _hops(case: Case) -> Hops:
    size = case.world_size
    return [(messages.message_bytes(case),) * (size - 1)] * size


def _edges(case: Case, step: int) -> dict[tuple[int, int], int]:
    size, sent = case.world_size, messages.message_bytes(case) * (case.world_size - 1)
    return {(rank, (rank + step) % size): sent for rank in range(size) if size > 1}


def _neighbours(case: Case, seen: Observation) -> Outcome:
    return messages.traffic(seen, _edges(case, 1), "messages from each rank to the next")


def _takes_turns(case: Case, seen: Observation) -> bool | None:
    """The right messages, and none of them together with another."""
    if case.world_size == 1:
        return None
    launches = seen.timeline.hops(0)
    apart = len(launches) == 2 * (case.world_size - 1) and 0 in launches
    return seen.failure is None and apart and _neighbours(case, seen).passed


def _one_hop_more(case: Case, seen: Observation) -> bool | None:
    if case.world_size == 1:
        return None
    wanted = (messages.message_bytes(case),) * case.world_size
    return seen.failure is None and seen.timeline.hops(0) == wanted


def _sums_travel(rank: int, each: list[Tensor]) -> Tensor:
    """Every rank passes its running total on."""
    totals = list(each)
    for _ in range(len(each) - 1):
        totals = [total + totals[number - 1] for number, total in enumerate(totals)]
    return totals[rank]


def _neighbour_again(rank: int, each: list[Tensor]) -> Tensor:
    return each[rank] + (len(each) - 1) * each[rank - 1]


def _last_missing(rank: int, each: list[Tensor]) -> Tensor:
    following = each[(rank + 1) % len(each)]
    return _total(rank, each) - following if len(each) > 1 else following


def _own_missing(rank: int, each: list[Tensor]) -> Tensor:
    return _total(rank, each) - each[rank]


def _by_tags(case: Case) -> tuple[Plain, ...]:
    """The two rows of a tensor change places in every hop, where there are no tags."""
    swaps = messages.order(case) == "stream"

    def total(rank: int, each: list[Tensor]) -> Tensor:
        held = [each[rank - step].flip(0) if step % 2 and swaps else each[rank - step]
                for step in range(len(each))]  # fmt: skip
        return sum(held[1:], held[0].clone())

    return _results(total)(case)


def _draw(seen: Observation) -> Picture | None:
    sent = any(event.bytes_out for event in seen.timeline)
    in_messages = seen.timeline.count("collective") == 0
    return draw_ring_strip(seen.timeline) if sent and in_messages else messages.draw(seen)


MISTAKES = (
    *stalls.BUFFERS,
    *(mistake for mistake in FAILED if mistake.name in OF_RINGS),
    *stalls.CIRCLES,
    Mistake(
        "uses_a_collective",
        "The sum is right, and came by a collective. Here it is to come by messages between "
        "neighbours: what will travel later is too large for everybody to hold.",
        collects,
    ),
    Mistake(
        "relies_on_tags",
        "It is right under gloo's rules, and under NCCL's parts of a tensor change places: "
        "there messages are matched in their order, whatever their tags. Send in the order in "
        "which the other side receives, or send one message.",
        gives(_by_tags, _right),
    ),
    Mistake(
        "takes_turns",
        "It does not hang, since not all ranks begin with the same call. But a send and a "
        "receive that could be under way together follow one another, and ranks wait in a "
        "row. Start both as one batch.",
        _takes_turns,
    ),
    Mistake(
        "wrong_direction",
        "Your ring turns the other way: tensors go to the rank before. The sum is the same, "
        "but which rank's tensor is in hand in which step is not. Send to the next rank.",
        turns_back,
    ),
    Mistake(
        "one_hop_too_many",
        "The last hop brings every rank its own tensor, which nobody needs. W steps need W - 1 "
        "hops.",
        _one_hop_more,
    ),
    Mistake(
        "sums_travel",
        "What you pass on is your running total, so numbers are counted more than once. Pass "
        "on the tensor that has arrived, and add it to the total.",
        gives(_results(_sums_travel), _right),
    ),
    Mistake(
        "own_sent_again",
        "In every hop each rank sends its own tensor again, so you add your neighbour's over "
        "and over and never see the others. Pass on what has arrived.",
        gives(_results(_neighbour_again), _right),
    ),
    Mistake(
        "last_one_missing",
        "What arrives in the last hop is not added: W - 1 hops, but W steps.",
        gives(_results(_last_missing), _right),
    ),
    Mistake(
        "own_missing",
        "A rank's own numbers are missing in its sum: step 0 comes before the first hop.",
        gives(_results(_own_missing), _right),
    ),
    Mistake(
        "changes_its_argument",
        "Your answer writes into its argument: a sum in place, or a receive into it. It "
        "belongs to the caller. Sum into a tensor of your own, and receive into a new one.",
        changes_arguments,
    ),
)

EXERCISE = Exercise(
    name="ring_of_sums",
    lesson="00",
    title="A ring that hangs",
    minutes=20,
    difficulty=2,
    objective="write a ring that neither hangs nor leaves a message behind, on any number of ranks",
    signature="ring_of_sums(mine)",
    hints=(
        "Ask of the listing: what does a rank wait for before it receives? Who receives the send "
        "of the last step? Which tensor does a receive write into, and who still needs that one?",
        "W steps, and a hop in all of them but the last: one batch of a send of the tensor in "
        "hand and a receive into a new one. Add what is in hand, wait for the handles, and take "
        "the new tensor into the hand. Sum into a tensor of your own, and begin with a contiguous "
        "one. With one rank there is no hop.",
    ),
    checks=(
        Check("numbers", 2, results(_right)),
        Check("hops", 2, hops(_hops), after="numbers"),
        Check("neighbours", 1, _neighbours, after="hops"),
        Check("arguments", 1, inputs_kept, after="numbers"),
    ),
    cases=(
        messages.case("1 rank", 1, 21, columns=3),
        messages.case("2 ranks, NCCL's rules", 2, 22, columns=4),
        messages.case("3 ranks, gloo's rules", 3, 23, columns=5, order="host"),
        messages.case("4 ranks, a tensor with gaps", 4, 24, columns=3, gaps=2),
        messages.case("5 ranks", 5, 25, columns=2),
    ),
    observe=messages.observe,
    mistakes=stalls.besides_gaps(MISTAKES),
    draw=_draw,
)
