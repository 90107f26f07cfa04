"""A program: be one rank whose tensors are on a pretended GPU, and tell what was recorded.

Run as ``python -m tests.gpu.pretended_rank``. It replaces methods of torch's classes, as a rank
does, so it is a process of its own. What it prints is JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch._C._distributed_c10d import FakeWork

from ringlab import Interleaved, ShardedKVCache, ZigZag, decode_attention
from ringlab.calls import exchange
from ringlab.timeline import Event
from ringlab.world.processes import hooks
from ringlab.world.processes.clocks import GpuClock
from ringlab.world.processes.last_op import Journal
from tests.decode.cases import METHODS as DECODE
from tests.gpu import pretended
from tests.prefill.cases import METHODS as PREFILL
from tests.prefill.cases import Attend

SIZE, RANK, LENGTH = 4, 1, 41
Program = Callable[[str], object]


def prefill(method: Attend) -> Program:
    """A forward of each method."""

    def program(device: str) -> object:
        tokens = len(ZigZag().positions(dist.get_rank(), SIZE, LENGTH))
        made = [torch.randn(2, heads, tokens, 8, device=device) for heads in (6, 3, 3)]
        return method(*made, layout=ZigZag(), causal=True, length=LENGTH)

    return program


def decode(method: str) -> Program:
    """A prompt and two tokens."""

    def program(device: str) -> object:
        cache = ShardedKVCache(2, 3, 8, layout=Interleaved(2), capacity=64, device=device)
        cache.append(*(torch.randn(2, 3, LENGTH, 8, device=device) for _ in "kv"))
        outs = []
        for _ in range(2):
            cache.append(*(torch.randn(2, 3, 1, 8, device=device) for _ in "kv"))
            q = torch.randn(2, 6, 1, 8, device=device)
            outs.append(decode_attention(q, cache, method=method))
        return outs

    return program


def calls(device: str) -> None:
    """Calls that block, handles, and a batch."""
    x, size, rank = torch.ones(4, device=device), dist.get_world_size(), dist.get_rank()
    dist.all_reduce(x)
    handle = dist.broadcast(x, 2, async_op=True)
    assert handle is not None
    handle.wait()
    every = torch.empty(4 * size, device=device)
    exchange.all_gather(every, x, dist.group.WORLD)
    operations = [
        dist.P2POp(dist.isend, x, (rank + 1) % size),
        dist.P2POp(dist.irecv, x.clone(), (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(operations):
        work.wait()


PROGRAMS: dict[str, Program] = {
    **{method.__name__: prefill(method) for method in PREFILL},
    **{method: decode(method) for method in DECODE},
    "calls": calls,
}


def told(events: list[Event]) -> list[list[Any]]:
    """The operations of one rank without times, lines and steps, as JSON gives them back."""
    launches: dict[int, int] = {}
    found = [
        e._replace(
            launch=launches.setdefault(e.launch, len(launches)),
            site="",
            step=0,
            start=None,
            end=None,
        )
        for e in events
        if e.kind != "compute"
    ]
    told: list[list[Any]] = json.loads(json.dumps(found))
    return told


def main() -> None:
    """Run every program."""
    patch = pytest.MonkeyPatch()
    pretended.card(patch)
    pretended.stream(patch)
    journal = Journal(RANK, GpuClock())
    found: dict[str, Any] = {}
    with pretended.ranks(RANK, SIZE):
        hooks.install(journal)
        hooks.note_work(journal, FakeWork)
        for name, program in PROGRAMS.items():
            with pretended.tensors("cpu"):
                journal.begin()
                journal.recorder.start()
                program("cuda:0")
                journal.recorder.stop()
            found[name] = told(journal.recorder.recording().events)
            entries = [note.entry for note in journal.recorder._notes if note.entry]
            assert all(entry.operation.on_gpu for entry in entries), name
    print(json.dumps(found))


if __name__ == "__main__":
    main()
