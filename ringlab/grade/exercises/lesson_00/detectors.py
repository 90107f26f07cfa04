"""Detectors of deadlocks: the right one, and mistaken ones, to be told by what they find."""

from __future__ import annotations

from ringlab.grade.exercises.lesson_00 import programs as lists
from ringlab.grade.exercises.lesson_00.programs import Programs, circles


def right(program: Programs) -> list[int]:
    """The ranks in a circle, once nobody can go on."""
    return _ranks(circles(lists.stuck(program)))


def with_buffers(program: Programs) -> list[int]:
    """The same where sends are over at once."""
    return _ranks(circles(lists.stuck_with_buffers(program)))


def two_sends_meet(program: Programs) -> list[int]:
    """The same where two operations meet that name each other, whatever they are."""
    return _ranks(circles(lists.stuck(program, any_words=True)))


def all_stuck(program: Programs) -> list[int]:
    """Everybody who cannot go on."""
    return sorted(lists.stuck(program))


def all_if_circle(program: Programs) -> list[int]:
    """Everybody who cannot go on, if there is a circle."""
    return all_stuck(program) if right(program) else []


def leads_there(program: Programs) -> list[int]:
    """Ranks in a circle, and those who wait for it."""
    return lists.upstream(lists.stuck(program))


def whole_world(program: Programs) -> list[int]:
    """Everybody, if nobody can go on."""
    found = all_stuck(program)
    return found if len(found) == len(program) else []


def one_circle_of_all(program: Programs) -> list[int]:
    """Everybody, if all are in one circle."""
    found = circles(lists.stuck(program))
    return _ranks([circle for circle in found if len(circle) == len(program)])


def pairs(program: Programs) -> list[int]:
    """Ranks in circles of two."""
    return _ranks([circle for circle in circles(lists.stuck(program)) if len(circle) == 2])


def first_circle(program: Programs) -> list[int]:
    """Ranks of one circle, the first."""
    return _ranks(circles(lists.stuck(program))[:1])


def last_circle(program: Programs) -> list[int]:
    """Ranks of one circle, the last."""
    return _ranks(circles(lists.stuck(program))[-1:])


def no_self(program: Programs) -> list[int]:
    """Ranks in a circle, but for those that wait for themselves."""
    return _ranks([circle for circle in circles(lists.stuck(program)) if len(circle) > 1])


def at_the_start(program: Programs) -> list[int]:
    """Ranks in a circle by their first operations, all of which are thought to wait."""
    waits = {rank: own[0].peer for rank, own in enumerate(program) if own}
    return _ranks(circles(waits))


def unmatched_at_the_start(program: Programs) -> list[int]:
    """Ranks in a circle by those of their first operations that do not meet."""
    front = {rank: own[0] for rank, own in enumerate(program) if own}
    met = {
        rank
        for rank, (word, peer) in front.items()
        if peer in front and front[peer].peer == rank and front[peer].word != word
    }
    return _ranks(circles({rank: step.peer for rank, step in front.items() if rank not in met}))


def _ranks(found: list[list[int]]) -> list[int]:
    return sorted(rank for circle in found for rank in circle)
