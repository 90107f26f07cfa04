"""Buffers in flight: what nobody may touch between the start of an operation and its wait.

A send reads its buffer, and a receive writes its own, at any time until ``wait`` returns. So
until then a rank must not write what it sends, and neither read nor write what it receives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from torch import Tensor

from ringlab.operators.sizes import tensors
from ringlab.timeline import Work
from ringlab.world.errors import BufferHazard
from ringlab.world.source import Site, current_site
from ringlab.world.virtual.calls import Facts
from ringlab.world.virtual.extents import (
    Extent,
    extent_of,
    extent_of_buffer,
    follows,
    joined,
    overlap,
)
from ringlab.world.virtual.operations import Operation, describe
from ringlab.world.virtual.seals import Seal


class _Buffer(NamedTuple):
    """Memory in flight; `filled` if the operation writes it, else it reads it."""

    op: Operation
    sample: Tensor
    extent: Extent
    filled: bool


class _Sealed(NamedTuple):
    """A tensor in flight whose bytes nothing may change."""

    buffer: _Buffer
    seal: Seal


class Hazards:
    """The buffers of one rank that are in flight.

    Parameters
    ----------
    rank : int
    """

    def __init__(self, rank: int) -> None:
        self._rank = rank
        self._buffers: list[_Buffer] = []
        # what the addresses of the buffers refer to, and of those that are filled
        self._spaces: set[int] = set()
        self._filled_spaces: set[int] = set()
        self._sealed: dict[Operation, list[_Sealed]] = {}

    def __bool__(self) -> bool:
        return bool(self._buffers)

    def clear(self) -> None:
        """Forget everything, so that nothing keeps the program's tensors alive."""
        self._buffers.clear()
        self._spaces.clear()
        self._filled_spaces.clear()
        self._sealed.clear()

    def posted(self, op: Operation, sent: Sequence[Tensor], filled: Sequence[Tensor]) -> None:
        """Take the buffers of an operation that begins.

        Raises
        ------
        BufferHazard
            If an operation that is still going on forbids it, or if two of `filled` share memory.
        """
        fills, reads = _buffers(op, filled, True), _buffers(op, sent, False)
        into, out_of = _merged(fills, self._shared), _merged(reads)
        own = into + out_of
        for one in own:
            self._refuse_overlap(one)
        in_place = any(overlap(one.extent, other.extent) for one in into for other in out_of)
        for one in own:
            self._add(one)
        if own and not own[0].sample.is_meta:
            # what is sent from where it is filled must keep its contents until then
            sealed = [(b, Seal.of(b.sample, poison=True)) for b in fills if not in_place]
            sealed += [(b, Seal.of(b.sample, poison=False)) for b in reads]
            self._sealed[op] = [_Sealed(b, seal) for b, seal in sealed if seal is not None]

    def posted_message(self, op: Operation, tensor: Tensor, filled: bool) -> None:
        """Take the contiguous buffer of a message that begins.

        As `posted`, quicker where it has no data.
        """
        if not tensor.is_meta:
            one = (tensor,)
            self.posted(op, () if filled else one, one if filled else ())
            return
        extent = extent_of_buffer(tensor)
        if extent is not None:
            buffer = _Buffer(op, tensor, extent, filled)
            self._refuse_overlap(buffer)
            self._add(buffer)

    def _refuse_overlap(self, one: _Buffer) -> None:
        if one.extent.space not in self._spaces:
            return
        for other in self._buffers:
            if (one.filled or other.filled) and overlap(one.extent, other.extent):
                raise self._posted_twice(one, other)

    def _add(self, one: _Buffer) -> None:
        self._buffers.append(one)
        self._spaces.add(one.extent.space)
        if one.filled:
            self._filled_spaces.add(one.extent.space)

    def over(self, op: Operation, site: Site) -> None:
        """Give the buffers of an operation back: it has been waited for.

        Raises
        ------
        BufferHazard
            If a buffer is not as it was when the operation began.
        """
        self._buffers = [buffer for buffer in self._buffers if buffer.op is not op]
        if not self._buffers:  # until then what is in the sets is only looked at in vain
            self._spaces.clear()
            self._filled_spaces.clear()
        for buffer, seal in self._sealed.pop(op, ()) if self._sealed else ():
            if seal.is_broken:
                raise self._changed_unseen(buffer, site)

    def touched(
        self, facts: Facts, args: Sequence[Any], kwargs: Mapping[str, Any], work: Work | None
    ) -> None:
        """Compare what an operator has read and written with what is in flight.

        Raises
        ------
        BufferHazard
        """
        reads_nothing = work is not None and not work.bytes_read
        if facts.accesses is None:
            for tensor in tensors((args, list(kwargs.values()))):
                self._compare(facts.func, tensor, writes=False)
            return
        given = len(args)
        for place, name, writes in facts.accesses:
            if reads_nothing and not writes:
                continue
            value = args[place] if place < given else kwargs.get(name)
            if type(value) is Tensor:
                self._compare(facts.func, value, writes)
            elif value is not None:
                for tensor in tensors(value):
                    self._compare(facts.func, tensor, writes)

    def _compare(self, func: Any, tensor: Tensor, writes: bool) -> None:
        if tensor.is_meta:
            spaces = self._spaces if writes else self._filled_spaces
            if tensor.untyped_storage()._cdata not in spaces:
                return
        extent = extent_of(tensor)
        if extent is None:
            return
        for buffer in self._buffers:
            if (writes or buffer.filled) and overlap(extent, buffer.extent):
                raise self._touched(func, writes, buffer)

    # ---- what to tell a person -----------------------------------------------------------

    def _touched(self, func: Any, writes: bool, buffer: _Buffer) -> BufferHazard:
        site, schema = current_site(), getattr(func, "_schema", None)
        name = func.name() if schema is None else schema.name
        return self._hazard(
            "writes" if writes else "reads",
            buffer,
            f"touched by  {name} at {site}",
            site,
            f"Call wait() on the {buffer.op.name} first, or use another buffer meanwhile.",
        )

    def _posted_twice(self, second: _Buffer, first: _Buffer) -> BufferHazard:
        return self._hazard(
            f"begins {_a(second.op.name)} that {'fills' if second.filled else 'reads'}",
            first,
            f"touched by  {second.op}",
            second.op.site,
            "Call wait() on the first before the second begins, or give the second a buffer of its "
            "own.",
        )

    def _shared(self, one: _Buffer, other: _Buffer) -> BufferHazard:
        op = one.op
        error = BufferHazard(
            f"rank {self._rank} gives {_a(op.name)} outputs that share memory: "
            f"{describe(one.sample)} and {describe(other.sample)}.\n  at {op.site}\n"
            "Each output must be a tensor of its own: [torch.empty(n) for _ in range(size)], not "
            "[torch.empty(n)] * size, which is one tensor many times."
        )
        return self._placed(error, op, op.site)

    def _changed_unseen(self, buffer: _Buffer, site: Site) -> BufferHazard:
        return self._hazard(
            "has written",
            buffer,
            f"waited for  {site}\n  touched by  something that torch does not see (numpy, a "
            "pointer, compiled code), or another rank that shares the tensor",
            site,
            f"Leave the buffer alone until wait() on the {buffer.op.name} returns, or use another "
            "one meanwhile.",
        )

    def _hazard(
        self, does: str, buffer: _Buffer, touched: str, site: Site, advice: str
    ) -> BufferHazard:
        op, may = buffer.op, "write" if buffer.filled else "read"
        forbidden = "read or write" if buffer.filled else "write"
        error = BufferHazard(
            f"rank {self._rank} {does} a buffer that {_a(op.name)} in flight "
            f"{'fills' if buffer.filled else 'reads'}: {describe(buffer.sample)}.\n"
            f"  in flight   {op}\n  {touched}\n"
            f"Until wait() returns, {_a(op.name)} may {may} its buffer at any moment, so nothing "
            f"may {forbidden} it. {advice}"
        )
        return self._placed(error, op, site)

    def _placed(self, error: BufferHazard, op: Operation, site: Site) -> BufferHazard:
        error.rank, error.operation = self._rank, op.what
        error.issued, error.touched = op.site.place, site.place
        return error


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _buffers(op: Operation, given: Sequence[Tensor], filled: bool) -> list[_Buffer]:
    found = []
    for tensor in given:
        extent = extent_of(tensor)
        if extent is not None:
            found.append(_Buffer(op, tensor, extent, filled))
    return found


def _merged(
    buffers: list[_Buffer], refuse: Callable[[_Buffer, _Buffer], BufferHazard] | None = None
) -> list[_Buffer]:
    """Make one of buffers that follow each other in memory, as the chunks of an output do.

    With `refuse`, raise what it makes of two that share memory.
    """
    if len(buffers) < 2:
        return buffers
    merged: list[_Buffer] = []
    for buffer in sorted(buffers, key=lambda b: b.extent[:3]):
        last = merged[-1] if merged else buffer
        if refuse is not None and last is not buffer and overlap(last.extent, buffer.extent):
            raise refuse(last, buffer)
        if last is not buffer and follows(last.extent, buffer.extent):
            merged[-1] = last._replace(extent=joined(last.extent, buffer.extent))
        else:
            merged.append(buffer)
    return merged
