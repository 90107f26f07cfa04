from __future__ import annotations

import contextlib
import gc
import itertools
import os
import resource
import stat
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import RankFailed, WorldError
from ringlab.world.processes import ProcessRunner, rendezvous
from tests.world_processes.observe import descendants, listening

pytestmark = pytest.mark.processes


def number_of_world(number: int) -> float:
    """Exchange the world's number in every way that a mix-up of two worlds would spoil."""
    rank, size = dist.get_rank(), dist.get_world_size()
    total = torch.tensor(float(number))
    dist.all_reduce(total)
    got = torch.zeros(1)
    hop = [
        dist.P2POp(dist.isend, torch.tensor([float(number)]), (rank + 1) % size),
        dist.P2POp(dist.irecv, got, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(hop):
        work.wait()
    assert got.item() == number
    return total.item() / size


def test_two_worlds_at_once_never_meet():
    one, two = ProcessRunner(2), ProcessRunner(3)
    for _ in range(3):
        assert one.run(number_of_world, (1,)) == [1.0] * 2
        assert two.run(number_of_world, (2,)) == [2.0] * 3
    one.close()
    two.close()


def test_worlds_in_threads_never_meet():
    wrong: list[object] = []

    def use(number: int) -> None:
        try:
            for _ in range(2):
                world = ProcessRunner(2)
                for _ in range(5):
                    if world.run(number_of_world, (number,)) != [number] * 2:
                        wrong.append(number)
                world.close()
        except Exception as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_failure_of_one_world_leaves_another_alone():
    one, two = ProcessRunner(2), ProcessRunner(2)
    before = two.run(os.getpid)
    with pytest.raises(RankFailed):
        one.run(lambda: 1 / 0)
    assert two.run(os.getpid) == before
    one.close()
    two.close()


def traces(me: psutil.Process) -> dict[str, object]:
    """What worlds could leave behind: processes, descriptors, threads, ports, files."""
    return {
        "processes": sorted(descendants(me.pid)),
        "descriptors": me.num_fds(),
        "threads": me.num_threads(),
        "ports": len(ports(me)),
        "files": os.listdir(tempfile.gettempdir()),
        "Python threads": sorted(thread.name for thread in threading.enumerate()),
    }


def ports(me: psutil.Process) -> list[object]:
    """Connections on which a process listens."""
    return [c for c in me.net_connections("inet") if c.status == psutil.CONN_LISTEN]


def test_fifty_worlds_leave_nothing_behind(world, tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    me = psutil.Process()
    first = ProcessRunner(2)
    first.run(int)
    first.close()
    gc.collect()
    before = traces(me)
    for number in range(50):
        one = ProcessRunner(2)
        if number % 5 == 0:  # most are closed before their ranks have even started
            one.run(int)
        if number % 25 == 0:
            with pytest.raises(RankFailed):
                one.run(lambda: 1 / 0)
        one.close()
    gc.collect()
    for what, value in before.items():
        assert traces(me)[what] == value, what


def test_everything_listens_on_the_loopback_address_only():
    me = psutil.Process()
    before = ports(me)
    world = ProcessRunner(2)

    def look():
        group = dist.new_group([0, 1])
        dist.barrier(group)
        mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (2,))
        dist.barrier(mesh.get_group())
        return listening([os.getpid(), os.getppid()])

    for addresses in world.run(look):
        assert addresses == {"127.0.0.1"}
    assert len(ports(me)) == len(before) + 1
    assert listening([me.pid]) == {"127.0.0.1"}
    world.close()
    assert ports(me) == before


def test_settings_for_a_network_do_not_keep_ranks_from_the_loopback_address(monkeypatch):
    monkeypatch.setenv("GLOO_SOCKET_IFNAME", "no-such-interface")
    monkeypatch.setenv("MASTER_ADDR", "192.0.2.1")
    monkeypatch.setenv("MASTER_PORT", "1")
    world = ProcessRunner(2)
    assert world.run(number_of_world, (5,)) == [5.0] * 2
    world.close()


def test_many_runs_leave_no_more_descriptors_than_one(world):
    def count():
        return psutil.Process().num_fds()

    world.run(count)
    mine, theirs = psutil.Process().num_fds(), world.run(count)
    for _ in range(300):
        world.run(int)
    for _ in range(10):
        world.run(lambda: dist.barrier(dist.new_group([0, 1, 2])))
    assert world.run(count) == theirs
    assert psutil.Process().num_fds() == mine


def test_ranks_hold_no_connections_of_other_worlds(world):
    other = ProcessRunner(2)
    other.run(int)
    world.run(int)
    late = ProcessRunner(2)  # forked while the server knows the ranks of two worlds
    pids = late.run(os.getpid)
    start = time.monotonic()
    other.close()
    world.close()
    assert time.monotonic() - start < 5
    assert late.run(os.getpid) == pids
    late.close()


def test_ranks_hold_no_pipes_but_their_own(world):
    def pipes():
        held = set()
        for fd in range(256):
            with contextlib.suppress(OSError):
                if stat.S_ISFIFO(os.fstat(fd).st_mode):
                    held.add(os.fstat(fd).st_ino)
        return len(held)

    late = ProcessRunner(2)  # forked by a server that holds the pipes of earlier ranks
    assert max(late.run(pipes)) <= 3  # for output, for stacks, and one that gloo makes
    late.close()


def is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


@contextlib.contextmanager
def room_for(files: int) -> Iterator[None]:
    """Let this process open only so many files more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = (fd for fd in itertools.count() if not is_open(fd))
    limit = next(itertools.islice(free, files, None))
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("room", [3, 12, 40, 70])
def test_too_many_open_files_is_told_in_words_and_nothing_is_left(world, room):
    world.run(int)
    before = psutil.Process().num_fds()
    with room_for(room), pytest.raises(WorldError, match=r"start 8 ranks.*Too many open files"):
        ProcessRunner(8)
    assert psutil.Process().num_fds() == before
    assert world.run(int) == [0, 0, 0]


def test_a_world_starts_with_exactly_the_files_it_asks_for(world):
    world.run(int)
    asked = rendezvous.FILES + rendezvous.FILES_PER_RANK * 8
    with room_for(asked - 1), pytest.raises(WorldError, match="Too many open files"):
        ProcessRunner(8)
    with room_for(asked):
        late = ProcessRunner(8)
        assert late.run(number_of_world, (7,)) == [7.0] * 8
        late.close()
