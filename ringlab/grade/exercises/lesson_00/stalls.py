"""Mistakes that end a run: buffers that are in use, and ranks that wait for one another."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake, Shows
from ringlab.grade.exercises.lesson_00.messages import order
from ringlab.grade.observation import Observation
from ringlab.grade.shows import fails, where


def hangs_in_a_queue(case: Case, seen: Observation) -> bool | None:
    """A deadlock under NCCL's rules, and none under gloo's."""
    if seen.failure is None:
        return None
    return seen.failure.kind == "Deadlock" and order(case) == "stream"


def all_wait_in(operation: Literal["send", "recv"]) -> Shows:
    """Shows if the run ends in a deadlock whose every arrow is such an operation."""

    def shows(case: Case, seen: Observation) -> bool | None:
        if seen.failure is None or case.world_size == 1:
            return None
        waits = seen.failure.waits
        return seen.failure.kind == "Deadlock" and all(operation in what for _, _, what, _ in waits)

    return shows


INTO_WHAT_IS_SENT = Mistake(
    "receives_into_what_is_sent",
    "What arrives is received into the tensor that is being sent. Until the send has been "
    "waited for its tensor must stay as it is: receive into another one.",
    fails("BufferHazard", words=" begins a "),
)

BUFFERS = (
    INTO_WHAT_IS_SENT,
    Mistake(
        "reads_before_wait",
        "The buffer of a receive is read before its wait, so there may be anything in it. Call "
        "wait() on every handle first.",
        fails("BufferHazard"),
    ),
    Mistake(
        "handle_not_waited_for",
        "A message is started and never waited for. Keep every handle and call wait() on it: "
        "until then nothing is sure to have arrived or left.",
        fails("UnwaitedHandle"),
    ),
)
"""Buffers that a message still uses."""

CIRCLES = (
    Mistake(
        "works_under_gloo_only",
        "It runs under gloo's rules and hangs under NCCL's: there the operations of a rank "
        "stand in a queue, and the receive waits behind the rank's own send, or the other way "
        "round. Start both as one batch.",
        hangs_in_a_queue,
    ),
    Mistake(
        "send_before_receive",
        "Every rank waits in its send for another to receive, and none gets there. Start "
        "the send and the receive as one batch, and wait for both afterwards.",
        all_wait_in("send"),
    ),
    Mistake(
        "receive_before_send",
        "Every rank waits in its receive for a message that nobody has sent yet. Start "
        "the send and the receive as one batch, and wait for both afterwards.",
        all_wait_in("recv"),
    ),
)
"""Ranks in a circle."""


def _not_contiguous(case: Case, seen: Observation) -> bool | None:
    """A tensor with gaps is refused; other cases cannot tell."""
    return fails("BadCall", words="not contiguous")(case, seen) or None


def besides_gaps(mistakes: Iterable[Mistake]) -> tuple[Mistake, ...]:
    """The mistakes, told also where a tensor with gaps is sent besides; that one comes last."""

    def tells(case: Case, seen: Observation) -> bool:
        return not _not_contiguous(case, seen)

    others = (replace(mistake, shows=where(tells, mistake.shows)) for mistake in mistakes)
    return (*others, SENDS_GAPS)


SENDS_GAPS = Mistake(
    "sends_gaps",
    "The tensor to be sent has gaps: it is a slice of a larger one. A message takes "
    "numbers that lie together, so send mine.contiguous().",
    _not_contiguous,
)
