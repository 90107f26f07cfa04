"""Whether all ranks make the same calls of ``new_group``, in the same order."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from ringlab.world.errors import MessageMismatch, UnmatchedOperation
from ringlab.world.source import Site, current_site

Fail = Callable[[BaseException], NoReturn]


class RollCall:
    """Compares the groups that each rank creates, also those it is no member of.

    Parameters
    ----------
    size : int
        Number of ranks.
    """

    def __init__(self, size: int) -> None:
        self._made: list[list[tuple[tuple[int, ...], Site]]] = [[] for _ in range(size)]

    def of(self, rank: int, fail: Fail) -> Callable[[int, tuple[int, ...]], None]:
        """What to call with the count and the ranks of each group that `rank` creates."""

        def made(_count: int, ranks: tuple[int, ...]) -> None:
            mine = self._made[rank]
            mine.append((ranks, current_site()))
            place = len(mine) - 1
            for other, theirs in enumerate(self._made):
                if len(theirs) > place and theirs[place][0] != ranks:
                    fail(self._differs(place, *sorted((rank, other))))

        return made

    def check(self) -> None:
        """Refuse that some ranks made a call that others did not.

        Raises
        ------
        UnmatchedOperation
        """
        counts = [len(made) for made in self._made]
        if len(set(counts)) <= 1:
            return
        few, many = min(counts), max(counts)
        missing = [rank for rank, count in enumerate(counts) if count == few]
        ranks, site = self._made[counts.index(many)][few]
        raise UnmatchedOperation(
            f"call number {few + 1} of new_group was not made by {_ranks(missing)}:\n"
            f"  rank {counts.index(many)}: new_group({list(ranks)}) at {site}\n{_RULE}"
        )

    def _differs(self, place: int, *ranks: int) -> MessageMismatch:
        ends = "\n".join(
            f"  rank {rank}: new_group({list(self._made[rank][place][0])}) at "
            f"{self._made[rank][place][1]}"
            for rank in ranks
        )
        return MessageMismatch(
            f"call number {place + 1} of new_group differs between ranks:\n{ends}\n{_RULE}"
        )


def _ranks(numbers: list[int]) -> str:
    return f"rank {numbers[0]}" if len(numbers) == 1 else f"ranks {numbers}"


_RULE = (
    "Every rank must make every call of new_group, with the same ranks and in the same order, also "
    "for groups that it is not in (or pass use_local_synchronization=True)."
)
