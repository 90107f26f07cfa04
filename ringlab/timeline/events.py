"""The events of a timeline: what one rank computed, sent, received or waited for."""

from __future__ import annotations

from typing import Literal, NamedTuple

EventKind = Literal["compute", "send", "recv", "collective", "wait"]


class Work(NamedTuple):
    """What an operator computes and touches, as far as a price needs to know it.

    Attributes
    ----------
    kind : {"attention", "attention backward", "matmul", "merge", "memory", "free"}
        ``"memory"``: nothing but reading and writing, and so is ``"merge"``, of two partial
        results; ``"free"``: nothing at all, a view.
    flops : int
        Floating-point operations, a multiply-add counting as two. For attention
        4·D·Hq·B times the pairs that the tile allows, forward; 2.5 times that, backward.
    bytes_read, bytes_written : int
        Bytes of device memory.
    dtype : str
        Of the inputs, as in ``"bfloat16"``.
    queries, keys, head_dim : int
        Sizes of an attention tile; 0 for other kinds.
    causal : bool
        Whether the tile is a diagonal one.
    launches : int
        Kernels that an accelerator starts for it, each with its overhead.
    """

    kind: str
    flops: int
    bytes_read: int
    bytes_written: int
    dtype: str
    queries: int = 0
    keys: int = 0
    head_dim: int = 0
    causal: bool = False
    launches: int = 1


class Event(NamedTuple):
    """One thing that one rank did.

    Attributes
    ----------
    rank : int
        The rank that did it, numbered in the world.
    kind : {"compute", "send", "recv", "collective", "wait"}
    name : str
        The operation: ``"send"``, ``"all_gather"``, ``"ringlab::attend"``, ... On real ranks,
        whose operators are not looked at, computing is named ``"compute"``: it is what lies
        between two calls of ``torch.distributed`` (50 microseconds and more), divided by regions.
    launch : int
        Number of the launch on that rank. The operations of one batch share a number;
        every other operation has its own. A wait carries the launch it waited for; a compute
        event has -1.
    group : tuple of int
        World ranks of the group, in group order.
    peer : int or None
        World rank at the other end of a point-to-point operation; None for collectives,
        and for a receive from any source until it is matched.
    bytes_out, bytes_in : int
        Bytes this rank sends and receives in the operation. A collective counts what its
        documented algorithm moves (see `collective_bytes` in ``ringlab.world.collective``).
    shape : tuple of int
        Shape of the tensor that was passed.
    dtype : str
    site : str
        The line of the program that issued it, as ``file:line in function``. For computing on
        real ranks the line of the call or region after which it began; empty at the start.
    step : int
        How many launches this rank had waited for when the event began (see `with_steps`). In
        a ring the compute of step t and the message sent meanwhile both have step t.
    label : str
        Name of the innermost `region` of the program around the event; may be empty.
    start, end : float or None
        Seconds since the run began; None in a recording of the virtual world, which has no
        clock, and `end` also where it never came. A message starts when it is issued and ends
        when it has arrived. On real ranks it ends when its rank *knows* of that: on gloo when
        a wait for it returns or ``is_completed`` says so, as gloo tells nothing earlier; on GPUs
        when the stream of the program gets past the wait.
    work : Work or None
        What a compute event computes; None where no formula knows it.
    """

    rank: int
    kind: EventKind
    name: str
    launch: int
    group: tuple[int, ...]
    peer: int | None
    bytes_out: int
    bytes_in: int
    shape: tuple[int, ...]
    dtype: str
    site: str
    step: int = 0
    label: str = ""
    start: float | None = None
    end: float | None = None
    work: Work | None = None
