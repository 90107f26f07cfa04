"""What has been posted and not yet matched, and which of it may meet: the rules of a world.

Two orders are known. Under ``"stream"``, the launches of a rank on one group wait in line
as they do on an NCCL communicator: only the first unfinished one is *active*, a batch is
one launch and finishes as one, and tags are ignored. Under ``"host"`` every operation is
active at once, as in gloo, and tags must match. Either way a send is complete only when
its receive has been posted: nothing is buffered.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from ringlab.world.virtual.operations import Group, Launch, Operation, Order, transfer


class Meeting:
    """One collective call of a group, until every member has come.

    Attributes
    ----------
    posted : dict
        By rank, the parts that have been posted.
    arrived : int
        How many of them are active.
    """

    def __init__(self) -> None:
        self.posted: dict[int, Operation] = {}
        self.arrived: list[Operation] = []


class Edge(NamedTuple):
    """What is posted and unmatched between two ranks of a group, in one direction."""

    sends: list[Operation]
    recvs: list[Operation]


class Board:
    """Pairs up what is posted as the rules allow.

    Parameters
    ----------
    order : {"stream", "host"}
    compare : callable
        Called with two members' parts in one collective; raises if they do not agree.
    complete : callable
        Called with all members' parts, in group order, when all are active.
    matched : callable
        Called with each operation that has found its partners.
    active : callable, optional
        Called with each message of a rank that lives here, when it may be matched.
    """

    def __init__(
        self,
        order: Order,
        compare: Callable[[Operation, Operation], None],
        complete: Callable[[Sequence[Operation]], None],
        matched: Callable[[Operation], None],
        active: Callable[[Operation], None] | None = None,
    ) -> None:
        self.order = order
        self._compare, self._complete, self._matched = compare, complete, matched
        self._active = active
        # launches that are not done, by rank and group, first in line first; stream only
        self.lines: dict[int, dict[Group, deque[Launch]]] = defaultdict(dict)
        # posted and unmatched operations of an edge, in order of posting
        self._edges: dict[tuple[Group, int | None, int], Edge] = {}
        self._meetings: dict[Group, dict[int, Meeting]] = defaultdict(dict)
        self._calls: dict[tuple[Group, int], int] = defaultdict(int)
        self._meeting_of: dict[Operation, tuple[int, Meeting]] = {}
        self._posted = 0

    def clear(self) -> None:
        """Forget everything, so that nothing keeps the program's tensors alive."""
        self.lines.clear()
        self._edges.clear()
        self._meetings.clear()
        self._meeting_of.clear()

    # ---- posting -----------------------------------------------------------------------

    def post(self, op: Operation) -> None:
        """Add an operation to its launch; a full launch takes its place in line."""
        launch = op.launch
        op.serial = self._posted
        self._posted += 1
        launch.operations.append(op)
        if self.order == "host":
            launch.active = True
            self._shelve(op)
            self._match(op)
            return
        if len(launch.operations) < launch.size:
            return
        for each in launch.operations:
            self._shelve(each)
        line = self.lines[op.rank].setdefault(op.group, deque())
        line.append(launch)
        if len(line) == 1:
            self._advance([line])

    def arrive(self, op: Operation) -> None:
        """Add an active message of a rank that lives in another process."""
        op.serial = self._posted
        self._posted += 1
        self._shelve(op)
        partners = self._match_message(op)
        if self.order == "stream":
            self._advance(self._lines_freed(partners))

    def _shelve(self, op: Operation) -> None:
        if op.kind != "collective":
            edge = self._edge(op)
            mine, theirs = (
                (edge.sends, edge.recvs) if op.kind == "send" else (edge.recvs, edge.sends)
            )
            op.shelf, op.opposite = mine, theirs
            mine.append(op)
            return
        number = self._calls[op.group, op.rank]
        self._calls[op.group, op.rank] = number + 1
        meeting = self._meetings[op.group].setdefault(number, Meeting())
        meeting.posted[op.rank] = op
        self._meeting_of[op] = number, meeting

    def _edge(self, op: Operation) -> Edge:
        """Where a message goes along; a receive from any source has an edge from nowhere."""
        source, target = (op.rank, op.peer) if op.kind == "send" else (op.peer, op.rank)
        key = op.group, source, known(target)
        edge = self._edges.get(key)
        if edge is None:
            edge = self._edges[key] = Edge([], [])
        return edge

    # ---- what an operation lacks -------------------------------------------------------

    def line_of(self, group: Group, rank: int) -> Sequence[Launch]:
        """The launches of a rank on a group that are not done, first in line first."""
        lines = self.lines.get(rank)
        return () if lines is None else lines.get(group, ())

    def lacks(self, op: Operation) -> Iterator[tuple[int, Operation | None]]:
        """For each rank whose part `op` lacks: that rank, and its part if it waits in line.

        A receive from any source lacks one of them, every other operation all of them.
        """
        if op.matched:
            return
        if op.kind == "collective":
            _, meeting = self._meeting_of[op]
            for rank in op.group.ranks:
                part = meeting.posted.get(rank)
                if part is None or (part is not op and not part.launch.active):
                    yield rank, part
        elif op.peer is None:
            yield from ((rank, None) for rank in op.group.ranks if rank != op.rank)
        elif self.order == "host":
            yield op.peer, None
        else:
            place, theirs = op.shelf.index(op), op.opposite
            yield op.peer, theirs[place] if place < len(theirs) else None

    # ---- matching ----------------------------------------------------------------------

    def _advance(self, lines: list[deque[Launch]]) -> None:
        """Activate what has come to the head of its line, until nothing more moves."""
        while lines:
            line = lines.pop()
            while line and not line[0].unmatched:
                line.popleft()
            if not line or line[0].active:
                continue
            launch = line[0]
            launch.active = True
            for op in launch.operations:
                if not op.matched and (partners := self._match(op)):
                    lines += self._lines_freed(partners)
            if not launch.unmatched:
                lines.append(line)

    def _lines_freed(self, matched: Sequence[Operation]) -> list[deque[Launch]]:
        """The lines whose first launch is done, now that these have been matched."""
        freed = []
        for op in matched:
            if not op.launch.unmatched:
                # what has come from another process stands in no line here
                line = self.lines.get(op.rank, {}).get(op.group)
                if line:
                    freed.append(line)
        return freed

    def _match(self, op: Operation) -> Sequence[Operation]:
        """Match an active operation if its partners are there; return those partners."""
        if op.kind == "collective":
            return self._match_collective(op)
        if self._active is not None:
            self._active(op)
        return self._match_message(op)

    def _match_message(self, op: Operation) -> Sequence[Operation]:
        partner = self._partner(op)
        if partner is None:
            return ()
        op.shelf.remove(op)
        partner.shelf.remove(partner)
        send, recv = (op, partner) if op.kind == "send" else (partner, op)
        recv.peer = send.rank
        transfer(send, recv)
        self._settle(send)
        self._settle(recv)
        return (partner,)

    def _partner(self, op: Operation) -> Operation | None:
        if self.order == "stream":
            # first in, first out: a partner that is not active yet holds up those behind it
            first = op.opposite[0] if op.opposite else None
            return first if first is not None and first.launch.active else None
        candidates = op.opposite
        if op.peer is None:
            edges = (self._edges.get((op.group, r, op.rank)) for r in op.group.ranks)
            candidates = [o for edge in edges if edge is not None for o in edge.sends]
        elif op.kind == "send":
            anybody = self._edges.get((op.group, None, op.peer))
            candidates = candidates + (anybody.recvs if anybody is not None else [])
        fitting = [other for other in candidates if other.tag == op.tag]
        return min(fitting, key=lambda other: other.serial, default=None)

    def _match_collective(self, op: Operation) -> Sequence[Operation]:
        number, meeting = self._meeting_of[op]
        if meeting.arrived:
            self._compare(meeting.arrived[0], op)
        meeting.arrived.append(op)
        if len(meeting.arrived) < len(op.group.ranks):
            return ()
        parts = [meeting.posted[rank] for rank in op.group.ranks]
        del self._meetings[op.group][number]
        self._complete(parts)
        for part in parts:
            del self._meeting_of[part]
            self._settle(part)
        return [part for part in parts if part is not op]

    def _settle(self, op: Operation) -> None:
        op.matched = True
        op.launch.unmatched -= 1
        self._matched(op)


def known(peer: int | None) -> int:
    """The peer of an operation that names one."""
    if peer is None:
        raise AssertionError("only a receive may leave its peer open")
    return peer
