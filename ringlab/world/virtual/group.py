"""The process group that a rank of the virtual world holds: torch's calls become operations."""
# mypy: disable-error-code="override,assignment"
# torch declares several overloads for these methods; it calls the ones implemented here.

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor

from ringlab.world.collective import Call
from ringlab.world.errors import BadCall
from ringlab.world.peers import require_member
from ringlab.world.virtual import tables
from ringlab.world.virtual.buffers import check_buffers, chunks, is_plain, one_a_member, split
from ringlab.world.virtual.operations import describe
from ringlab.world.virtual.reductions import reduction_name
from ringlab.world.virtual.works import VirtualWork

if TYPE_CHECKING:
    from ringlab.world.virtual.run import Run


class VirtualGroup(dist.ProcessGroup):
    """A group of ranks of the virtual world, as one of its members holds it.

    The methods are those that ``torch.distributed`` calls on a group, under the spellings of
    every torch release that is supported.
    """

    def __init__(self, run: Run, name: str, ranks: tuple[int, ...], rank: int) -> None:
        super().__init__(ranks.index(rank), len(ranks))  # type: ignore[call-arg]  # no store
        self._run, self._ranks, self._world_rank = run, ranks, rank
        self._shared = run.group(name, ranks)

    # ---- what torch asks of a group ----------------------------------------------------

    @property
    def group_name(self) -> str:
        """The name that torch's own table gives this group, or gave before it was destroyed."""
        return tables.name_of(self) or self._shared.name

    @property
    def pg_name(self) -> str:
        """Same as `group_name`; functional collectives ask for it."""
        return self.group_name

    def getBackendName(self) -> str:  # noqa: N802  torch's name
        """Name of the backend."""
        return tables.BACKEND

    def name(self) -> str:
        """Name of the backend."""
        return tables.BACKEND

    def shutdown(self) -> None:
        """Nothing to release."""

    def abort(self) -> None:
        """Nothing to release."""

    @property
    def _device_types(self) -> list[torch.device]:
        return [torch.device("cpu")]

    def __repr__(self) -> str:
        return f"VirtualGroup(ranks={list(self._ranks)}, rank={self._world_rank})"

    # ---- point to point ----------------------------------------------------------------

    def send(self, tensors: list[Tensor], dst: int, tag: int = 0) -> VirtualWork:
        """Post a send to group rank `dst`."""
        require_member("send", dst, len(self._ranks))
        return self._message("send", tensors, self._ranks[dst], tag)

    def recv(self, tensors: list[Tensor], src: int, tag: int = 0) -> VirtualWork:
        """Post a receive from group rank `src`."""
        require_member("recv", src, len(self._ranks))
        return self._message("recv", tensors, self._ranks[src], tag)

    def recv_anysource(self, tensors: list[Tensor], tag: int = 0) -> VirtualWork:
        """Post a receive from whichever member sends first."""
        return self._message("recv", tensors, None, tag)

    def _message(
        self, kind: Literal["send", "recv"], tensors: list[Tensor], peer: int | None, tag: int
    ) -> VirtualWork:
        (tensor,) = tensors
        self._run.check_caller(self._world_rank)
        if not is_plain(tensor):
            check_buffers(kind, tensors, tensors)
        return self._run.post_message(self._shared, self._world_rank, kind, tensor, peer, tag)

    # ---- collectives -------------------------------------------------------------------

    def allreduce(self, tensors: list[Tensor], opts: Any = None) -> VirtualWork:
        """Reduce in place over the group; several tensors in one call travel together."""
        op = _reduction(opts)
        agree = (reduction_name(op, tensors), *map(describe, tensors))
        return self._collective(Call("all_reduce", tensors, tensors, agree, op), tensors)

    def reduce(self, tensors: list[Tensor], opts: Any) -> VirtualWork:
        """Reduce to the root."""
        op = _reduction(opts)
        agree = (reduction_name(op, tensors), f"root {opts.rootRank}", *map(describe, tensors))
        call = Call("reduce", tensors, tensors, agree, op, opts.rootRank)
        return self._collective(call, tensors)

    def broadcast(self, tensors: list[Tensor], opts: Any) -> VirtualWork:
        """Copy the root's tensor to all."""
        agree = (f"root {opts.rootRank}", *map(describe, tensors))
        call = Call("broadcast", tensors, tensors, agree, root=opts.rootRank)
        return self._collective(call, tensors)

    def allgather(
        self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any = None
    ) -> VirtualWork:
        """Gather one tensor a member into a list."""
        (targets,), (tensor,) = outputs, inputs
        one_a_member(targets, tensor, self.size(), "all_gather")
        call = Call("all_gather", inputs, targets, (describe(tensor),))
        return self._collective(call, [tensor, *targets], strided=targets)

    def all_gather_single(self, output: Tensor, tensor: Tensor, opts: Any = None) -> VirtualWork:
        """Gather one tensor a member into one output."""
        return self.all_gather_single_coalesced([output], [tensor], opts)

    def all_gather_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> VirtualWork:
        """Gather several tensors in one call, each into an output of its own."""
        members = self.size()
        targets = [
            chunk
            for output, tensor in zip(outputs, inputs, strict=True)
            for chunk in chunks(output, tensor.numel(), members, "all_gather", "output")
        ]
        call = Call("all_gather", inputs, targets, tuple(map(describe, inputs)))
        return self._collective(call, [*outputs, *inputs])

    def reduce_scatter(
        self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any = None
    ) -> VirtualWork:
        """Reduce one tensor a member and keep one's own."""
        (output,), (parts,) = outputs, inputs
        one_a_member(parts, output, self.size(), "reduce_scatter")
        op = _reduction(opts)
        agree = (reduction_name(op, outputs), describe(output))
        call = Call("reduce_scatter", parts, outputs, agree, op)
        return self._collective(call, [output, *parts], strided=parts)

    def reduce_scatter_single(
        self, output: Tensor, tensor: Tensor, opts: Any = None
    ) -> VirtualWork:
        """Reduce the chunks of one input and keep one's own."""
        return self.reduce_scatter_single_coalesced([output], [tensor], opts)

    def reduce_scatter_single_coalesced(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> VirtualWork:
        """Reduce the chunks of several inputs in one call and keep one's own of each."""
        members = self.size()
        parts = [
            chunk
            for output, tensor in zip(outputs, inputs, strict=True)
            for chunk in chunks(tensor, output.numel(), members, "reduce_scatter", "input")
        ]
        op = _reduction(opts)
        agree = (reduction_name(op, outputs), *map(describe, outputs))
        call = Call("reduce_scatter", parts, outputs, agree, op)
        return self._collective(call, [*outputs, *inputs])

    def alltoall(
        self, outputs: list[Tensor], inputs: list[Tensor], opts: Any = None
    ) -> VirtualWork:
        """Send a tensor to each member and receive one from each."""
        if (len(outputs), len(inputs)) != (self.size(), self.size()):
            raise BadCall(
                f"all_to_all over {self.size()} ranks needs one input and one output a rank; given "
                f"are {len(inputs)} inputs and {len(outputs)} outputs."
            )
        return self._collective(Call("all_to_all", inputs, outputs), [*outputs, *inputs])

    def all_to_all_single(
        self,
        output: Tensor,
        tensor: Tensor,
        output_split_sizes: list[int] | None,
        input_split_sizes: list[int] | None,
        opts: Any = None,
    ) -> VirtualWork:
        """Send a slice (along dimension 0) to each member and receive one from each."""
        inputs = split(tensor, input_split_sizes, self.size(), "input")
        outputs = split(output, output_split_sizes, self.size(), "output")
        return self._collective(Call("all_to_all", inputs, outputs), [output, tensor])

    def gather(self, outputs: list[list[Tensor]], inputs: list[Tensor], opts: Any) -> VirtualWork:
        """Collect one tensor a member at the root."""
        targets, (tensor,) = outputs[0] if outputs else [], inputs
        if self.rank() == opts.rootRank:
            one_a_member(targets, tensor, self.size(), "gather")
        agree = (f"root {opts.rootRank}", describe(tensor))
        call = Call("gather", inputs, targets, agree, root=opts.rootRank)
        return self._collective(call, [tensor, *targets])

    def scatter(self, outputs: list[Tensor], inputs: list[list[Tensor]], opts: Any) -> VirtualWork:
        """Hand out the root's tensors, one a member."""
        parts, (output,) = inputs[0] if inputs else [], outputs
        if self.rank() == opts.rootRank:
            one_a_member(parts, output, self.size(), "scatter")
        agree = (f"root {opts.rootRank}", describe(output))
        call = Call("scatter", parts, outputs, agree, root=opts.rootRank)
        return self._collective(call, [output, *parts])

    def barrier(self, opts: Any = None) -> VirtualWork:
        """Wait for all members."""
        return self._collective(Call("barrier"), [])

    allreduce_coalesced = allreduce
    _allgather_base = all_gather_single
    _reduce_scatter_base = reduce_scatter_single
    alltoall_base = all_to_all_single
    allgather_into_tensor_coalesced = all_gather_single_coalesced
    reduce_scatter_tensor_coalesced = reduce_scatter_single_coalesced

    # ---- posting -----------------------------------------------------------------------

    def _collective(
        self, call: Call, given: Sequence[Tensor], strided: Sequence[Tensor] = ()
    ) -> VirtualWork:
        """Post a call on the program's tensors, of which `strided` may have any strides."""
        apart = {id(tensor) for tensor in strided}
        self._check(call.name, given, [t for t in given if id(t) not in apart])
        return self._run.post_collective(self._shared, self._world_rank, call, given)

    def _check(self, name: str, tensors: Sequence[Tensor], contiguous: Sequence[Tensor]) -> None:
        self._run.check_caller(self._world_rank)
        check_buffers(name, tensors, contiguous)


def _reduction(opts: Any) -> Any:
    return dist.ReduceOp.SUM if opts is None else opts.reduceOp
