"""A detector of deadlocks, on programs that are written down as lists."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Outcome, Shows
from ringlab.grade.exercises.lesson_00 import detectors
from ringlab.grade.exercises.lesson_00.programs import Programs, programs
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import alone
from ringlab.grade.plain import Plain
from ringlab.grade.shows import any_of, gives

Method = Callable[[Programs], list[int]]


def _result(method: Method) -> Callable[[Case], tuple[Plain, ...]]:
    return lambda case: (list[Plain](method(programs(case))),)


_right = _result(detectors.right)


def _finds(*methods: Method) -> Shows:
    """Shows if the answer finds what one of these methods finds."""
    return any_of(*(gives(_result(method), _right) for method in methods))


def _ranks_found(case: Case, seen: Observation) -> Outcome:
    """The right ranks; shows the programs where they are others."""
    outcome, (wanted,) = results(_right)(case, seen), _right(case)
    if outcome.passed or type(seen.results[0]) is not list:
        return outcome
    written = case.options["programs"]
    assert isinstance(written, list)
    listed = "; ".join(f"rank {rank}: {_words(own)}" for rank, own in enumerate(written))
    return Outcome(False, f"{wanted} of {listed}", f"{seen.results[0]}")


def _words(own: Plain) -> str:
    return ", ".join(map(str, own)) if isinstance(own, list) and own else "nothing"


def _order_differs(case: Case, seen: Observation) -> bool | None:
    """The right ranks, in another order or more than once."""
    (wanted,), came = _right(case), seen.results[0] if seen.results else None
    if not isinstance(came, (list, tuple)) or not isinstance(wanted, list):
        return False
    return came != wanted and {str(rank) for rank in came} == {str(rank) for rank in wanted}


def _observe(answer: Any, case: Case) -> Observation:
    return alone(answer, case.options["programs"])


def _case(title: str, *programs: str) -> Case:
    """A case of a program for each rank, its operations between commas."""
    written: list[Plain] = [
        list[Plain](op.strip() for op in own.split(",") if op.strip()) for own in programs
    ]
    return Case(title, options={"programs": written})


EXERCISE = Exercise(
    name="deadlock_in",
    lesson="00",
    title="A detector of deadlocks",
    minutes=30,
    difficulty=3,
    objective="find the circle of ranks that wait for one another, and tell it from other waits",
    signature="deadlock_in(programs)",
    hints=(
        "First let everybody go as far as they can: when do two ranks get past their operation, "
        "and when is the run over? Only then ask who waits for whom.",
        "Keep for each rank how far it is. As long as some rank stands at a send whose receiver "
        "stands at the receive for it, let both go on. In the end every rank that is left waits "
        "for exactly one other. Follow those arrows from each of them: it is in a circle if the "
        "way comes back to it. A rank that is done waits for nobody.",
    ),
    checks=(Check("ranks", 5, _ranks_found),),
    cases=(
        _case("a swap that works", "send 1, recv 1", "recv 0, send 0"),
        _case("a swap that hangs", "send 1, recv 1", "send 0, recv 0"),
        _case(
            "four ranks that get stuck after a while",
            "send 1, recv 1",
            "recv 0, send 2",
            "recv 3, send 1, recv 1",
            "send 2, recv 0",
        ),
        _case(
            "a ring of three, each sends first",
            "send 2, recv 1",
            "send 0, recv 2",
            "send 1, recv 0",
        ),
        _case("a relay in which one is done too early", "send 1", "recv 0", "recv 1", ""),
        _case(
            "two that receive first, and one with nothing to do",
            "recv 1, send 1",
            "recv 0, send 0",
            "",
        ),
        _case(
            "two circles, and two ranks that wait from outside",
            "send 2, recv 2",
            "recv 3",
            "send 0, recv 0",
            "recv 4",
            "recv 1",
            "recv 6",
            "",
            "recv 0",
        ),
        _case("somebody sends to itself", "send 0", "send 2", "recv 1"),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "not_sorted",
            "The ranks are right, but not in ascending order, or not each once. Return sorted "
            "ranks: then the same circle always gives the same list, wherever you entered it.",
            _order_differs,
        ),
        Mistake(
            "itself_overlooked",
            "A rank that sends to itself waits for itself: a circle of one.",
            _finds(detectors.no_self),
        ),
        Mistake(
            "one_circle_only",
            "There is more than one circle, and you return the ranks of one. Start from every rank "
            "that is stuck.",
            _finds(detectors.first_circle, detectors.last_circle),
        ),
        Mistake(
            "looks_at_the_start_only",
            "You judge by the first operation of every rank. Let the ranks go on first: ranks that "
            "meet get past their operations, and the circle may come later.",
            _finds(detectors.at_the_start, detectors.unmatched_at_the_start),
        ),
        Mistake(
            "two_sends_meet",
            "Two ranks that name each other go on in your run even where both send, or both "
            "receive. A send needs a receive on the other side.",
            _finds(detectors.two_sends_meet),
        ),
        Mistake(
            "sends_are_over_at_once",
            "Your sends are over at once, as if there were a buffer. By the strict rule a send is "
            "over only when the other side has a receive for it.",
            _finds(detectors.with_buffers),
        ),
        Mistake(
            "those_who_wait_for_the_circle",
            "You also count ranks that wait for the circle from outside. They are stuck, but they "
            "are not why: nobody in the circle waits for them.",
            _finds(detectors.leads_there),
        ),
        Mistake(
            "whole_world_only",
            "You find a deadlock only if all ranks have part in it. Two can hang while the others "
            "are done, or wait for something else.",
            _finds(detectors.whole_world, detectors.one_circle_of_all),
        ),
        Mistake(
            "all_who_are_stuck",
            "You count everybody who cannot go on. A rank that waits for one that is done waits "
            "for ever too, but in no circle: nobody waits for it.",
            _finds(detectors.all_stuck, detectors.all_if_circle),
        ),
        Mistake(
            "circles_of_two_only",
            "You find circles of two ranks and no others. Follow the arrows further: 0 may wait "
            "for 1, 1 for 2, and 2 for 0.",
            _finds(detectors.pairs),
        ),
    ),
)
