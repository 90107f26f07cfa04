"""Who waits for whom, and whether anybody in that chain can still go on.

A rank that has blocked can go on once its operation is done. That operation needs, on
every side, a launch that reaches the head of its line and a partner that has been posted;
what has not been posted needs its rank to go on, and everything that this rank has put in
line before to finish. An operation from which no running rank can be reached in this way
will never be done: the rank is *stuck*, whatever the others do, and that is reported at
once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from ringlab.world.virtual.board import Board
from ringlab.world.virtual.operations import Group, Launch, Operation

DEPTH = 64
"""How many ranks or lines the quick look follows before it leaves the rest to the thorough one."""

SHORT_DEPTH = 8
"""The same in a world of more ranks than ``DEPTH``, where a doubt may last (`lookout`)."""


class WaitGraph:
    """The state of waiting at one moment.

    Parameters
    ----------
    board : Board
    waiting : mapping
        For each blocked rank, the operation that must be done before it goes on.
    returned : set of int
        Ranks that have returned.
    size : int
        Number of ranks.
    """

    def __init__(
        self, board: Board, waiting: Mapping[int, Operation], returned: Set[int], size: int
    ) -> None:
        self.board = board
        self.waiting = waiting
        self.returned = returned
        self.size = size

    def clears(self, changed: int) -> bool:
        """Whether it is plain that nobody is stuck, given that only `changed` did something.

        Parameters
        ----------
        changed : int
            A rank that has blocked or returned; nobody was stuck before.
        """
        if not self.waiting or self._obviously_goes_on(changed):
            return True
        return QuickLook(self).clears(changed)

    def stuck(self) -> set[int]:
        """The ranks that can never go on."""
        return set(self.waiting) - Prospect(self).alive

    def _obviously_goes_on(self, rank: int) -> bool:
        """Whether a rank waits for its only launch, and that for ranks that run and hold nothing.

        The usual case of the usual case: a ring in which the neighbour has its turn yet.
        """
        op, lines = self.waiting.get(rank), self.board.lines.get(rank)
        if op is None or lines is None or len(lines) != 1:
            return False
        line = lines.get(op.group)
        if not line or len(line) != 1 or line[0] is not op.launch:
            return False
        for part in op.launch.operations:
            if part.matched:
                continue
            peer = part.peer
            if peer is None or peer in self.returned or self.board.line_of(op.group, peer):
                return False
            waits = self.waiting.get(peer)
            if waits is not None and not waits.done:
                return False
        return True


class QuickLook:
    """The usual case, cheaply: follow the chain of a rank to ranks that run.

    What it clears is certain; what it does not clear is for the thorough look.
    """

    def __init__(self, graph: WaitGraph) -> None:
        self.board, self.waiting, self.returned = graph.board, graph.waiting, graph.returned
        self._depth = DEPTH if graph.size <= DEPTH else SHORT_DEPTH
        self._ranks: dict[int, bool] = {}
        self._lines: dict[tuple[Group, int], bool] = {}

    def clears(self, rank: int) -> bool:
        """Whether nobody can have become stuck by what `rank` did."""
        spared = not self._is_needed(rank) if rank in self.returned else self._goes_on(rank)
        # what the rank left in line may hold up others, even where it goes on itself
        return spared and all(self._finishes(group, rank) for group in self.board.lines[rank])

    def _is_needed(self, gone: int) -> bool:
        """Whether something that is posted lacks a part that `gone` has not posted."""
        lines = [line for lines in self.board.lines.values() for line in lines.values()]
        pending = [op for line in lines for launch in line for op in launch.operations]
        return any(
            rank == gone and part is None
            for op in (*pending, *self.waiting.values())
            for rank, part in self.board.lacks(op)
        )

    # Loops, not all(...): these three call one another, and the stack is the program's.

    def _goes_on(self, rank: int) -> bool:
        certain = self._ranks.get(rank)
        if certain is None:
            self._ranks[rank] = False  # a chain that comes back here proves nothing
            op = self.waiting.get(rank)
            if op is None:
                certain = rank not in self.returned
            elif op.done:
                certain = True
            elif len(self._ranks) > self._depth:
                certain = False
            elif op.launch.whole:
                certain = self._finishes(op.group, rank)
            else:
                certain = self._obtains(op)
            self._ranks[rank] = certain
        return certain

    def _finishes(self, group: Group, rank: int) -> bool:
        """Whether everything that a rank has in line on a group will be done."""
        line = self.board.line_of(group, rank)
        if not line:
            return True
        certain = self._lines.get((group, rank))
        if certain is None:
            self._lines[group, rank] = False
            certain = len(self._lines) <= self._depth
            for launch in line:
                for op in launch.operations:
                    certain = certain and self._obtains(op)
            self._lines[group, rank] = certain
        return certain

    def _obtains(self, op: Operation) -> bool:
        for rank, part in self.board.lacks(op):
            if not self._finishes(op.group, rank) or (part is None and not self._goes_on(rank)):
                return False
        return True


class Prospect:
    """The thorough look: every rank and every launch that can still get there.

    The least set that is closed under "all it needs can"; what is not in it never will.

    Attributes
    ----------
    alive : set of int
        Ranks that run, or will go on if others do what they can.
    """

    def __init__(self, graph: WaitGraph) -> None:
        self.graph = graph
        self.alive = set(range(graph.size)) - set(graph.waiting) - set(graph.returned)
        lines = graph.board.lines
        self._place = {
            launch: place
            for of_rank in lines.values()
            for line in of_rank.values()
            for place, launch in enumerate(line)
        }
        self._finishing = {(group, rank): 0 for rank in lines for group in lines[rank]}
        self._spread()

    def _spread(self) -> None:
        ranks = list({*self.graph.board.lines, *self.graph.waiting})
        grew = True
        while grew:
            grew = False
            ranks.reverse()  # to and fro, so that a chain takes one pass whichever way it runs
            for rank in ranks:
                for group, line in self.graph.board.lines.get(rank, {}).items():
                    grew = self._extend(group, rank, line) or grew
                op = self.graph.waiting.get(rank)
                if op is not None and rank not in self.alive and self._goes_on(op):
                    self.alive.add(rank)
                    grew = True

    def _extend(self, group: Group, rank: int, line: Sequence[Launch]) -> bool:
        """Count how many launches of a line finish; whether it is more than before."""
        before = place = self._finishing[group, rank]
        while place < len(line) and self.finishes(line[place]):
            place += 1
            self._finishing[group, rank] = place
        return place > before

    def _goes_on(self, op: Operation) -> bool:
        if op.done:
            return True
        if not op.launch.whole:
            return self.obtains(op)
        key = op.group, op.rank
        return self._place.get(op.launch, len(self._place)) < self._finishing[key]

    def starts(self, launch: Launch) -> bool:
        """Whether a launch in line will come to its head."""
        return self._place[launch] <= self._finishing[launch.group, launch.rank]

    def finishes(self, launch: Launch) -> bool:
        """Whether a launch at the head of its line will find all it lacks."""
        return all(map(self.obtains, launch.operations))

    def obtains(self, op: Operation) -> bool:
        """Whether an active operation will find the partners it lacks."""
        lacking = list(self.graph.board.lacks(op))
        if op.kind == "recv" and op.peer is None:
            return op.matched or any(rank in self.alive for rank, _ in lacking)
        return all(self.provides(op.group, rank, part) for rank, part in lacking)

    def provides(self, group: Group, rank: int, part: Operation | None) -> bool:
        """Whether a rank's part, in line or not posted yet, will become active."""
        if part is not None:
            return self.starts(part.launch)
        return rank in self.alive and self.held_up(group, rank) is None

    def held_up(self, group: Group, rank: int) -> Launch | None:
        """The first launch of a rank on a group that never finishes, if there is one."""
        line = self.graph.board.line_of(group, rank)
        place = self._finishing.get((group, rank), 0)
        return line[place] if place < len(line) else None
