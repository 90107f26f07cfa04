"""One call of a function on every rank: its operations, its turns and its recording."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from typing import Literal

from torch import Tensor

from ringlab.world.collective import Call, collective_bytes
from ringlab.world.errors import BadCall, HungRank, WorldError
from ringlab.world.source import Site, current_site, site_of
from ringlab.world.virtual import batches, collectives, modes, reports, tables
from ringlab.world.virtual.board import Board
from ringlab.world.virtual.calls import Calls
from ringlab.world.virtual.deadlock import report
from ringlab.world.virtual.elsewhere import Elsewhere, Undividable
from ringlab.world.virtual.group import VirtualGroup
from ringlab.world.virtual.hazards import Hazards
from ringlab.world.virtual.launches import Launches
from ringlab.world.virtual.lookout import Lookout
from ringlab.world.virtual.observer import Observer
from ringlab.world.virtual.operations import Group, Operation, Order
from ringlab.world.virtual.recording import Recording
from ringlab.world.virtual.roll_call import RollCall
from ringlab.world.virtual.scheduler import Scheduler
from ringlab.world.virtual.waiting import WaitGraph
from ringlab.world.virtual.works import VirtualWork

_thread_identity = threading.get_ident
_now = time.monotonic


class Run:
    """What the ranks of one run share.

    Parameters
    ----------
    size : int
    order : {"stream", "host"}
    seed : int
        Rank r starts with its random generators seeded with ``seed + r``.
    timeout : float
        Seconds a rank may keep its turn without calling into the world.
    elsewhere : Elsewhere, optional
        The way to the ranks that live in other processes, if some do.
    """

    def __init__(
        self,
        size: int,
        order: Order,
        seed: int,
        timeout: float,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self.size = size
        self.order = order
        self.recording = Recording(size)
        self.calls = Calls()
        self.hazards = [Hazards(rank) for rank in range(size)]
        self._elsewhere = elsewhere
        here, tell, listen = (
            (range(size), None, None)
            if elsewhere is None
            else (elsewhere.here, elsewhere.tell, self._listen)
        )
        self.board = Board(
            order, collectives.compare, collectives.complete, self.recording.matched, tell
        )
        self.timeout = timeout
        self.scheduler = Scheduler(size, seed, self._examine, here, listen)
        self._lookout = Lookout(size)
        self.roll_call = RollCall(size)
        self.launches = Launches(size, order)
        self.waiting: dict[int, Operation] = {}
        # what has been posted and not waited for; with its handle, since in torch 2.6 C++ that
        # holds a handle does not keep its Python half
        self.open: dict[Operation, VirtualWork] = {}
        self._joint: list[VirtualWork] = []
        self._polling: dict[int, Operation] = {}
        self._wait_sites: dict[int, Site] = {}
        self.threads: dict[int, int] = {}
        self._groups: dict[tuple[str, tuple[int, ...]], Group] = {}
        self.over = False

    # ---- called by groups and handles ----------------------------------------------------

    def group(self, name: str, ranks: tuple[int, ...]) -> Group:
        """The one object that stands for a group of this run."""
        return self._groups.setdefault((name, ranks), Group(name, ranks))

    def check_caller(self, rank: int) -> None:
        """Refuse a call from a thread that is not the rank whose group it uses."""
        if self.threads.get(_thread_identity()) == rank:
            if self.scheduler.error is None:
                self.scheduler.turn_began = _now()
            else:
                self.scheduler.check_alive(rank)
        elif self.over:
            raise BadCall(
                "this group or handle belongs to a run that is over. Groups live as long as one "
                "World.run; create them inside the function that runs on the ranks."
            )
        else:
            raise BadCall(
                f"a thread that is not rank {rank} used rank {rank}'s group. " + tables.ONLY_RANKS
            )

    def post_message(
        self,
        group: Group,
        rank: int,
        kind: Literal["send", "recv"],
        tensor: Tensor,
        peer: int | None,
        tag: int,
    ) -> VirtualWork:
        """Post a send or a receive of the calling rank."""
        if peer == rank and self.order == "host":
            raise BadCall(
                f"rank {rank} cannot {kind} to itself: gloo has no connection from a rank to "
                "itself. Copy the tensor, or skip the exchange when the group has one rank."
            )
        if peer is None:
            self._refuse_elsewhere("a receive from any rank")
        if peer is None and self.order == "stream":
            raise BadCall(
                "a receive from any rank: NCCL has none. Name the sender, or run the program "
                "under gloo's rules, World(..., order='host')."
            )
        site, batch = batches.caller(sys._getframe(2))  # beyond the group that calls
        launch = self.launches.of_message(group, rank, batch)
        op = Operation(kind, kind, rank, group, launch, site, peer, tag, tensor)
        size, filled = tensor.nbytes, kind == "recv"
        self.recording.posted(op, tensor, 0 if filled else size, size if filled else 0)
        work = self._begin(op, (tensor,))
        try:
            self.hazards[rank].posted_message(op, tensor, filled)
            self.board.post(op)
        except WorldError as error:
            self.scheduler.fail(error)
        return work

    def post_collective(
        self, group: Group, rank: int, call: Call, buffers: Sequence[Tensor]
    ) -> VirtualWork:
        """Post the calling rank's part in a collective."""
        self._refuse_elsewhere(f"a collective, {call.name}")
        launch = self.launches.single(group, rank)
        op = Operation("collective", call.name, rank, group, launch, current_site(), call=call)
        if call.name != "new_group":
            sent, received = collective_bytes(call, group.ranks.index(rank), len(group.ranks))
            self.recording.posted(op, call.sample, sent, received)
        work = self._begin(op, buffers)
        try:
            self.hazards[rank].posted(op, call.inputs, call.outputs)
            self.board.post(op)
        except WorldError as error:
            self.scheduler.fail(error)
        return work

    def wait(self, op: Operation) -> None:
        """Block the calling rank until `op` is done, then fill its buffers."""
        rank = op.rank
        self.check_caller(rank)
        site = site_of(sys._getframe(2))  # beyond the handle that calls
        self.recording.waits(op, site)
        if not op.done:
            self.waiting[rank], self._wait_sites[rank] = op, site
            self.scheduler.block(rank, op)
            del self.waiting[rank]
        if not op.waited:
            self._first_wait(op, site)

    def _first_wait(self, op: Operation, site: Site) -> None:
        op.waited = True
        self.recording.waited(op)
        work = self.open.pop(op, None)
        if work is not None and op.call is not None and op.call.is_joint:
            self._joint.append(work)  # C++ may wait once for each of its tensors
        try:
            self.hazards[op.rank].over(op, site)
        except WorldError as error:
            self.scheduler.fail(error)
        if op.finish is not None:
            with modes.unobserved():
                op.finish()
        op.release()

    def poll(self, op: Operation) -> bool:
        """Whether `op` is done, after every other rank has had a turn."""
        self.check_caller(op.rank)
        self._refuse_elsewhere("asking whether an operation is done")
        if op.done:
            return True
        self._polling[op.rank], self._wait_sites[op.rank] = op, current_site()
        hopeful = self.scheduler.poll(op.rank)
        if not op.done and not hopeful:
            self.scheduler.fail(self._hopeless(op.rank))
        del self._polling[op.rank]
        return op.done

    # ---- ranks elsewhere -----------------------------------------------------------------

    def _refuse_elsewhere(self, what: str) -> None:
        """End a run that is spread over processes and does what depends on all of them."""
        if self._elsewhere is not None:
            self.scheduler.fail(Undividable(f"the program uses {what}"))

    def _listen(self) -> None:
        """Post what ranks elsewhere have told, so that a rank here may go on."""
        assert self._elsewhere is not None
        world = self.group(tables.WORLD_NAME, tuple(range(self.size)))
        for letter in self._elsewhere.hear():
            self.board.arrive(letter.operation(world))

    # ---- bookkeeping ---------------------------------------------------------------------

    def _begin(self, op: Operation, buffers: Sequence[Tensor]) -> VirtualWork:
        """The handle of an operation that is about to be posted."""
        work = self.open[op] = VirtualWork(self, op, buffers)
        self.scheduler.something_happened()
        return work

    def _examine(self, rank: int) -> Exception | None:
        """Look for ranks that can never go on, now that `rank` has blocked or returned."""
        graph = WaitGraph(self.board, self.waiting, self.scheduler.returned, self.size)
        stuck = self._lookout.stuck(graph, rank, lambda: self.scheduler.next(rank) is not None)
        if not stuck:
            return None
        return report(graph, rank if rank in stuck else min(stuck), self._wait_sites)

    def _hopeless(self, rank: int) -> Exception:
        """What to report where ranks do nothing but ask whether their operations are done."""
        waiting = {**self.waiting, **self._polling}
        graph = WaitGraph(self.board, waiting, self.scheduler.returned, self.size)
        if rank in graph.stuck():
            return report(graph, rank, self._wait_sites)
        return HungRank(f"rank {rank} asks again and again whether this is done: {waiting[rank]}")

    # ---- beginning and end -----------------------------------------------------------------

    def begins(self, rank: int) -> None:
        """Make the calling thread a rank, whose operators are recorded from here on."""
        self.threads[threading.get_ident()] = rank
        group = VirtualGroup(self, tables.WORLD_NAME, tuple(range(self.size)), rank)
        tables.become_rank(group, self.roll_call.of(rank, self.scheduler.fail))

    def observes(self, rank: int) -> None:
        """Record what the calling thread, a rank, computes from here on."""
        self.recording.begins(rank)
        Observer(rank, self.recording, self.calls, self.hazards[rank], self.scheduler.fail).start()

    def leaves(self) -> None:
        """Make the calling thread a rank no more."""
        modes.drop_modes()
        tables.stop_being_rank()
        self.threads.pop(threading.get_ident(), None)

    def check(self) -> None:
        """Refuse what a program that has returned has left behind.

        Raises
        ------
        UnmatchedOperation, UnwaitedHandle
        """
        reports.check_leftovers(self.open)
        self.roll_call.check()

    def let_go(self) -> None:
        """Drop every tensor, though a handle or an exception may keep the run itself."""
        self.board.clear()
        for op in self.open:
            op.release()
        self.open.clear()
        self._joint.clear()
        self.waiting.clear()
        for hazards in self.hazards:
            hazards.clear()
        self.launches.clear()
        for rank in self.scheduler.ranks:
            rank.result = rank.waiting = None
