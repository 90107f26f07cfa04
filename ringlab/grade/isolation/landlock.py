"""Landlock: a process gives up, for good, what it does not need of the system.

Linux 5.13 and newer let any process, without privileges, restrict itself and what it starts:
here to read what Python and this package need, to write into one folder, to reach no network and
to signal nobody outside. The administrator's rights do not lift it.

References
----------
Linux kernel documentation, userspace-api/landlock.rst; the ABI's versions are listed there.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls, the same numbers on every architecture
_PATH_BENEATH = 1
_VERSION = 1
_PR_SET_NO_NEW_PRIVS = 38

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}  # how many rights each ABI knows
_NETWORK = 0b11  # bind and connect of TCP, from ABI 4
_SCOPES = 0b11  # abstract sockets and signals, from ABI 6
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15  # what a file can be allowed


def version() -> int:
    """The ABI of this system; 0 if it has none."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _call(_CREATE, None, 0, _VERSION))


def restrict(readable: Iterable[str], writable: Iterable[str]) -> bool:
    """Give up everything but these paths, what lies beneath them, and oneself.

    Parameters
    ----------
    readable : iterable of str
        Files and folders that may be read and executed. Those that do not exist are left out.
    writable : iterable of str
        Likewise, to be read and written.

    Returns
    -------
    bool
        Whether the system could; if not, nothing has changed.
    """
    abi = version()
    if not abi:
        return False
    everything = (1 << _FILE_RIGHTS.get(abi, _FILE_RIGHTS[max(_FILE_RIGHTS)])) - 1
    rules = [everything]
    if abi >= 4:
        rules.append(_NETWORK)
    if abi >= 6:
        rules.append(_SCOPES)
    attributes = struct.pack(f"={len(rules)}Q", *rules)
    ruleset = _call(_CREATE, attributes, len(attributes), 0)
    if ruleset < 0:
        return False
    try:
        for paths, rights in ((readable, _READ & everything), (writable, everything)):
            for path in paths:
                _allow(ruleset, path, rights)
        ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        return _call(_RESTRICT, ruleset, 0) == 0
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):
            rights &= _FILE_ONLY
        _call(_ADD, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)


def _call(number: int, *arguments: int | bytes | None) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    wrapped = [ctypes.c_long(a) if isinstance(a, int) else ctypes.c_char_p(a) for a in arguments]
    return int(libc.syscall(ctypes.c_long(number), *wrapped))
