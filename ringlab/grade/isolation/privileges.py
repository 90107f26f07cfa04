"""Giving up the administrator's privileges, which in a container one often has."""

from __future__ import annotations

import ctypes
import struct
import sys

_PR_CAPBSET_DROP = 24
_VERSION_3 = 0x20080522
_NONE = struct.pack("=6I", 0, 0, 0, 0, 0, 0)  # effective, permitted, inheritable; twice 32 bits


def drop() -> None:
    """Give up all capabilities for good, so that no limit can be lifted again; on Linux.

    The programs that the process starts get none either: Landlock's ``no_new_privs`` holds for
    them, or they find an empty bounding set.
    """
    if not sys.platform.startswith("linux"):
        return
    libc = ctypes.CDLL(None, use_errno=True)
    for capability in range(64):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    libc.capset(struct.pack("=Ii", _VERSION_3, 0), _NONE)
