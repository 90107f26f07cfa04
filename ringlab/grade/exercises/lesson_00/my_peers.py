"""The neighbours of a rank in its group, by their numbers in the world."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringlab.grade.case import Case
from ringlab.grade.exercise import Check, Exercise, Mistake, Shows
from ringlab.grade.exercises.lesson_03.ring import groups
from ringlab.grade.looks import results
from ringlab.grade.observation import Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.plain import Plain
from ringlab.grade.shows import any_of, fails, gives

Entry = Callable[[int, list[int], int], list[int]]
"""What a rank returns: ``entry(rank, group, world_size)``, rank in the world."""


def _observe(answer: Any, case: Case) -> Observation:
    return on_ranks(answer, [()] * case.world_size, groups=groups(case))


def _each(entry: Entry) -> Callable[[Case], tuple[Plain, ...]]:
    def results_of(case: Case) -> tuple[Plain, ...]:
        own = {rank: group for group in groups(case) for rank in group}
        ranks = range(case.world_size)
        return tuple(
            list[Plain](entry(rank, own[rank], case.world_size)) if rank in own else None
            for rank in ranks
        )

    return results_of


def _neighbours(rank: int, group: list[int], _world: int) -> list[int]:
    place = group.index(rank)
    return [group[(place + 1) % len(group)], group[place - 1]]


_right = _each(_neighbours)


def _returns(entry: Entry) -> Shows:
    return gives(_each(entry), _right)


def _swapped(rank: int, group: list[int], world: int) -> list[int]:
    return _neighbours(rank, group, world)[::-1]


def _in_the_world(rank: int, _group: list[int], world: int) -> list[int]:
    return [(rank + 1) % world, (rank - 1) % world]


def _group_numbers(rank: int, group: list[int], _world: int) -> list[int]:
    place, size = group.index(rank), len(group)
    return [(place + 1) % size, (place - 1) % size]


def _world_number_as_place(rank: int, group: list[int], _world: int) -> list[int]:
    size = len(group)
    return [group[(rank + 1) % size], group[(rank - 1) % size]]


_off_the_end = any_of(fails("ValueError", words="Group rank"), fails("IndexError"))


def _world_size(case: Case, seen: Observation) -> bool | None:
    """Off the end, where the group is smaller than the world, and nowhere else."""
    smaller = any(len(group) < case.world_size for group in groups(case))
    shows = _off_the_end(case, seen)
    return shows if shows is None or smaller else False


EXERCISE = Exercise(
    name="my_peers",
    lesson="00",
    title="Two numbers for one rank",
    minutes=10,
    difficulty=2,
    objective="find the neighbours of a rank in its group, and name them in the world",
    signature="my_peers(group)",
    hints=(
        "Which of its two numbers does a rank need to find out who is next in the group? And in "
        "which of them is the answer to be?",
        "dist.get_rank(group) and dist.get_world_size(group) count in the group; count round with "
        "a remainder. dist.get_global_rank(group, number) makes a world number of it.",
    ),
    checks=(Check("ranks", 3, results(_right)),),
    cases=(
        Case("4 ranks, one group of all", 4, options={"groups": "0 1 2 3"}),
        Case("4 ranks, groups 0 1 and 2 3", 4, options={"groups": "0 1|2 3"}),
        Case("6 ranks, groups 1 3 4 and 0 2", 6, options={"groups": "1 3 4|0 2"}),
        Case("5 ranks, groups 0 2 3 4 and 1", 5, options={"groups": "0 2 3 4|1"}),
    ),
    observe=_observe,
    mistakes=(
        Mistake(
            "before_and_next_swapped",
            "The two are right, and have changed places: first the next rank, then the one before.",
            _returns(_swapped),
        ),
        Mistake(
            "counts_in_the_world",
            "You count in the world. The rank with the next number there need not belong to the "
            "group at all.",
            _returns(_in_the_world),
        ),
        Mistake(
            "group_numbers_returned",
            "You return numbers that count in the group. In a group that begins at rank 0, without "
            "gaps, they are those of the world too; in others they name somebody else.",
            _returns(_group_numbers),
        ),
        Mistake(
            "world_number_as_place",
            "You take the rank's number in the world for its place in the group, so some ranks "
            "find themselves, or a rank further on. dist.get_rank() without the group counts in "
            "the world.",
            _returns(_world_number_as_place),
        ),
        Mistake(
            "world_size_for_group_size",
            "You count round at the size of the world, and a smaller group ends before. Use "
            "dist.get_world_size(group).",
            _world_size,
        ),
        Mistake(
            "does_not_come_round",
            "The last rank of a group has no next one in your program, or the first none before "
            "it. Count round: after the last comes the first.",
            _off_the_end,
        ),
    ),
)
