"""Where on the stack a program made a call, and whether in a batch."""

from __future__ import annotations

from types import FrameType

from torch.distributed import distributed_c10d as c10d

from ringlab.world.source import Site, is_library, site_of

_BATCH_CODE = c10d.batch_isend_irecv.__code__


def caller(frame: FrameType | None) -> tuple[Site, FrameType | None]:
    """Where the program made the call that led to `frame`, and the batch that encloses it, if any.

    A group written in Python never receives the calls that open and close a batch, so the
    batch, a call of ``batch_isend_irecv``, is recognised on the stack by its frame.
    """
    batch = None
    while frame is not None:
        code = frame.f_code
        if code is _BATCH_CODE:
            batch = frame
        elif not is_library(code.co_filename):
            break
        frame = frame.f_back
    return site_of(frame), batch


def batch_size(frame: FrameType) -> int:
    """How many operations the batch that :func:`caller` found holds."""
    return len(frame.f_locals["p2p_op_list"])
