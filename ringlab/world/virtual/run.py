"""One call of a function on every rank: its operations, its turns and its recording."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any, Literal

from torch import Tensor

from ringlab.world.collective import Call, collective_bytes
from ringlab.world.errors import BadCall, HungRank, WorldError
from ringlab.world.source import Site, current_site
from ringlab.world.virtual import collectives, internals, reports
from ringlab.world.virtual.arguments import private_copy
from ringlab.world.virtual.board import Board
from ringlab.world.virtual.crew import Crew, Life, TurnExpired
from ringlab.world.virtual.deadlock import report
from ringlab.world.virtual.group import VirtualGroup
from ringlab.world.virtual.hazards import Hazards
from ringlab.world.virtual.observer import Observer
from ringlab.world.virtual.operations import Group, Launch, Operation, Order
from ringlab.world.virtual.recording import Recording
from ringlab.world.virtual.roll_call import RollCall
from ringlab.world.virtual.scheduler import Scheduler
from ringlab.world.virtual.waiting import WaitGraph
from ringlab.world.virtual.works import VirtualWork

_current: dict[int, Run] = {}  # thread identity -> the run it is a rank of


def current_run() -> Run | None:
    """The run that the calling thread is a rank of."""
    return _current.get(threading.get_ident())


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
    """

    def __init__(self, size: int, order: Order, seed: int, timeout: float) -> None:
        self.size = size
        self.order = order
        self.recording = Recording(size)
        self.hazards = [Hazards(rank) for rank in range(size)]
        self.board = Board(order, collectives.compare, collectives.complete, self.recording.matched)
        self.timeout = timeout
        self.scheduler = Scheduler(size, seed, self._examine)
        self.roll_call = RollCall(size)
        self.waiting: dict[int, Operation] = {}
        # what has been posted and not waited for; with its handle, since in torch 2.6 C++ that
        # holds a handle does not keep its Python half
        self.open: dict[Operation, VirtualWork] = {}
        self._joint: list[VirtualWork] = []
        self._polling: dict[int, Operation] = {}
        self._wait_sites: dict[int, Site] = {}
        self._threads: dict[int, int] = {}
        self._launches = [0] * size
        # the batch a rank is in the middle of; the frame itself, as its number may be used again
        self._batches: dict[int, tuple[FrameType, Launch]] = {}
        self._groups: dict[tuple[str, tuple[int, ...]], Group] = {}
        self._over = False

    # ---- called by groups and handles ----------------------------------------------------

    def group(self, name: str, ranks: tuple[int, ...]) -> Group:
        """The one object that stands for a group of this run."""
        return self._groups.setdefault((name, ranks), Group(name, ranks))

    def check_caller(self, rank: int) -> None:
        """Refuse a call from a thread that is not the rank whose group it uses."""
        if self._threads.get(threading.get_ident()) == rank:
            self.scheduler.check_alive(rank)
        elif self._over:
            raise BadCall(
                "this group or handle belongs to a run that is over. Groups live as long as one "
                "World.run; create them inside the function that runs on the ranks."
            )
        else:
            raise BadCall(
                f"a thread that is not rank {rank} used rank {rank}'s group. "
                + internals.ONLY_RANKS
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
        if peer is None and self.order == "stream":
            raise BadCall(
                "a receive from any rank: NCCL has none. Name the sender, or run the program "
                "under gloo's rules, World(..., order='host')."
            )
        launch = self._message_launch(group, rank)
        op = Operation(kind, kind, rank, group, launch, current_site(), peer, tag, tensor)
        size = tensor.numel() * tensor.element_size()
        out, into = (size, 0) if kind == "send" else (0, size)
        self.recording.posted(op, tensor, out, into)
        buffers = [tensor]
        return self._post(op, buffers, buffers[: kind == "send"], buffers[: kind == "recv"])

    def post_collective(
        self, group: Group, rank: int, call: Call, buffers: Sequence[Tensor]
    ) -> VirtualWork:
        """Post the calling rank's part in a collective."""
        launch = self._launch(group, rank, 1)
        op = Operation("collective", call.name, rank, group, launch, current_site(), call=call)
        if call.name != "new_group":
            sent, received = collective_bytes(call, group.ranks.index(rank), len(group.ranks))
            self.recording.posted(op, call.sample, sent, received)
        return self._post(op, buffers, call.inputs, call.outputs)

    def wait(self, op: Operation) -> None:
        """Block the calling rank until `op` is done, then fill its buffers."""
        self.check_caller(op.rank)
        site = current_site()
        self.recording.waits(op, site)
        if not op.done:
            self.waiting[op.rank], self._wait_sites[op.rank] = op, site
            self.scheduler.block(op.rank, op)
            del self.waiting[op.rank]
        if not op.waited:
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
                with internals.unobserved():
                    op.finish()
            op.release()

    def poll(self, op: Operation) -> bool:
        """Whether `op` is done, after every other rank has had a turn."""
        self.check_caller(op.rank)
        if op.done:
            return True
        self._polling[op.rank], self._wait_sites[op.rank] = op, current_site()
        hopeful = self.scheduler.poll(op.rank)
        if not op.done and not hopeful:
            self.scheduler.fail(self._hopeless(op.rank))
        del self._polling[op.rank]
        return op.done

    # ---- bookkeeping ---------------------------------------------------------------------

    def _launch(self, group: Group, rank: int, size: int) -> Launch:
        launch = Launch(rank, group, self._launches[rank], size, self.order == "stream")
        self._launches[rank] += 1
        return launch

    def _message_launch(self, group: Group, rank: int) -> Launch:
        batch = internals.enclosing_batch(sys._getframe(1))
        if batch is None:
            return self._launch(group, rank, 1)
        frame, launch = self._batches.get(rank, (None, None))
        if launch is None or frame is not batch:
            launch = self._launch(group, rank, internals.batch_size(batch))
            self._batches[rank] = batch, launch
        if len(launch.operations) + 1 == launch.size:
            del self._batches[rank]
        return launch

    def _post(
        self,
        op: Operation,
        buffers: Sequence[Tensor],
        sent: Sequence[Tensor],
        filled: Sequence[Tensor],
    ) -> VirtualWork:
        work = VirtualWork(self, op, buffers)
        self.open[op] = work
        self.scheduler.something_happened()
        try:
            self.hazards[op.rank].posted(op, sent, filled)
            with internals.unobserved():
                self.board.post(op)
        except WorldError as error:
            self.scheduler.fail(error)
        return work

    def _examine(self, rank: int) -> Exception | None:
        """Look for ranks that can never go on, now that `rank` has blocked or returned."""
        graph = WaitGraph(self.board, self.waiting, self.scheduler.returned, self.size)
        stuck = graph.stuck(rank)
        if not stuck:
            return None
        return report(graph, rank if rank in stuck else min(stuck), self._wait_sites)

    def _hopeless(self, rank: int) -> Exception:
        """What to report where ranks do nothing but ask whether their operations are done."""
        waiting = {**self.waiting, **self._polling}
        graph = WaitGraph(self.board, waiting, self.scheduler.returned, self.size)
        if rank in graph.stuck(rank):
            return report(graph, rank, self._wait_sites)
        return HungRank(f"rank {rank} asks again and again whether this is done: {waiting[rank]}")

    # ---- a rank's life -------------------------------------------------------------------

    def execute(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
                ) -> list[Any]:  # fmt: skip
        """Run ``fn`` on every rank; results in rank order."""

        def body(rank: int) -> Any:
            ident = threading.get_ident()
            self._threads[ident], _current[ident] = rank, self
            group = VirtualGroup(self, internals.WORLD_NAME, tuple(range(self.size)), rank)
            internals.become_rank(group, self.roll_call.of(rank, self.scheduler.fail))
            own_args, own_kwargs = private_copy((args, kwargs))
            Observer(rank, self.recording, self.hazards[rank], self.scheduler.fail).start()
            return reports.not_lazy(fn(*own_args, **own_kwargs))

        def leave(rank: int) -> None:
            internals.drop_modes()
            internals.stop_being_rank()
            ident = threading.get_ident()
            self._threads.pop(ident, None)
            _current.pop(ident, None)

        def failed(rank: int, error: BaseException) -> Exception:
            return reports.rank_failed(rank, error, self.scheduler.ranks)

        internals.enter()
        try:
            results = Crew(self.scheduler, Life(body, leave, failed), self.timeout).run()
            reports.check_leftovers(self.open)
            self.roll_call.check()
            return results
        except TurnExpired as expired:
            raise reports.turn_expired(expired, self.timeout) from None
        finally:
            self._over = True
            internals.leave()
            self._let_go()

    def _let_go(self) -> None:
        """Drop every tensor, though a handle or an exception may keep the run itself."""
        self.board.clear()
        for op in self.open:
            op.release()
        self.open.clear()
        self._joint.clear()
        self.waiting.clear()
        for hazards in self.hazards:
            hazards.clear()
        self._batches.clear()
        for rank in self.scheduler.ranks:
            rank.result = rank.waiting = None
