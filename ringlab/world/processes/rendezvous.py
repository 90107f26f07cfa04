"""How ranks find each other: a store in the parent, and loopback addresses only.

The parent hosts the store on 127.0.0.1, on a port that the system picks, so two worlds
cannot meet and nothing is left behind. What listens on it is torch's key-value store, which
unpickles nothing; functions and results never travel that way.
"""

from __future__ import annotations

import os
import socket
import sys
from datetime import timedelta

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import TCPStore, set_debug_level_from_env

from ringlab.world.processes import staging, tensors, warmup
from ringlab.world.processes.last_op import Journal
from ringlab.world.processes.messages import Setup

LOOPBACK = "127.0.0.1"
NEVER = timedelta(days=7)
"""Timeout of the groups: longer than any deadline of a world, which knows who stood where."""

HOST_PATIENCE = timedelta(seconds=10)
"""How long the parent, which an interrupt cannot reach then, tries to set up the store."""

FILES = 40
FILES_PER_RANK = 8
"""File descriptors that the parent needs: for the store and the start, and for each rank.

They are asked for before anything starts: the store's thread ends the whole process when it
cannot accept a rank that has already been started.
"""

_LOOPBACK_INTERFACE = "lo0" if sys.platform == "darwin" else "lo"


def host_store(size: int) -> tuple[TCPStore, int]:
    """A store for `size` ranks, and its port. It lives as long as the object.

    Raises
    ------
    OSError
        If too many files are open.
    """
    _check_room(FILES + FILES_PER_RANK * size)
    listener = socket.create_server((LOOPBACK, 0), backlog=1024)
    port = listener.getsockname()[1]
    # Left to itself the store would listen on every address of the machine. Older releases of
    # torch take a socket that already listens only without libuv.
    store = TCPStore(
        LOOPBACK,
        port,
        is_master=True,
        wait_for_workers=False,
        timeout=HOST_PATIENCE,
        master_listen_fd=listener.detach(),
        use_libuv=False,
    )
    return store, port


def _check_room(count: int) -> None:
    """Raise at once what would make the store try again and again."""
    opened: list[int] = []
    try:
        for _ in range(count):
            opened.append(os.open(os.devnull, os.O_RDONLY))
    finally:
        for fd in opened:
            os.close(fd)


def rank_environment(setup: Setup) -> dict[str, str]:
    """Environment variables that a rank adds to those of its parent.

    Sockets of gloo and NCCL stay on the loopback interface, and ``RANK`` and its kin are
    what ``torchrun`` would have set, for functions that also run there.
    """
    return {
        "GLOO_SOCKET_IFNAME": _LOOPBACK_INTERFACE,
        "NCCL_SOCKET_IFNAME": _LOOPBACK_INTERFACE,
        "RANK": str(setup.rank),
        "LOCAL_RANK": str(setup.rank),
        "WORLD_SIZE": str(setup.size),
        "LOCAL_WORLD_SIZE": str(setup.size),
    }


def home(setup: Setup) -> torch.device | None:
    """The GPU of a rank; None for one that computes on the CPU."""
    return None if setup.device is None else torch.device("cuda", setup.device)


def join(setup: Setup, journal: Journal) -> None:
    """Initialise ``torch.distributed`` in a rank, its GPU first."""
    device = home(setup)
    if device is not None:
        torch.cuda.set_device(device)
        torch.set_default_device(device)
        tensors.set_home(device)
    if setup.backend == "staged":
        staging.register(journal)
    set_debug_level_from_env()
    dist.init_process_group(
        staging.BACKEND if setup.backend == "staged" else setup.backend,
        store=TCPStore(LOOPBACK, setup.port, is_master=False, timeout=NEVER),
        rank=setup.rank,
        world_size=setup.size,
        timeout=NEVER,
        # NCCL: connect at once and not in the middle of the first operation
        device_id=device if setup.backend == "nccl" else None,
    )
    if setup.backend == "nccl":
        warmup.install(journal, device)
