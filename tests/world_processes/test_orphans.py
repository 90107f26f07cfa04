from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest
import torch.distributed as dist

from ringlab.world.processes import ProcessRunner, launcher
from tests.world_processes.observe import Script, alive, descendants, eventually

pytestmark = pytest.mark.processes

BUSY = """
    import itertools, os, signal, threading, time
    import torch, torch.distributed as dist
    from ringlab.world.processes import ProcessRunner

    def wait_in_gloo():
        print("ready")
        dist.recv(torch.zeros(1), src=1 - dist.get_rank())

    def keep_the_interpreter_lock():
        print("ready")
        sum(itertools.repeat(0))

    def ignore_signals():
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        print("ready")
        time.sleep(60)

    idle = ProcessRunner(1)
    idle.run(int)
    worlds = []
    for work in (wait_in_gloo, keep_the_interpreter_lock, ignore_signals):
        worlds.append(ProcessRunner(2, show="live"))
        threading.Thread(target=worlds[-1].run, args=(work,), daemon=True).start()
    time.sleep(0.5)
    starting = ProcessRunner(2)
    print("go", flush=True)
    time.sleep(60)
"""


def test_no_rank_survives_the_kill_of_its_parent_whatever_it_does(tmp_path: Path):
    script = Script(tmp_path, BUSY)
    said = [script.line() for _ in range(7)]
    assert sorted(line.split()[-1] for line in said) == ["go"] + ["ready"] * 6
    assert eventually(lambda: len(descendants(script.process.pid)) == 1 + 1 + 6 + 2, 5.0)
    below = descendants(script.process.pid)
    script.kill(signal.SIGKILL)
    assert eventually(lambda: not alive(below), 3.0)


WITHOUT_DEATH_SIGNAL = """
    import ctypes, os, signal, threading, time
    from ringlab.world.processes import ProcessRunner, launcher

    def work():
        getattr(ctypes.CDLL(None), "prctl", print)(1, 0)  # no signal, as on other systems
        print(os.getpid())
        while True:
            time.sleep(0.1)

    first = ProcessRunner(1, show="live")
    launcher._current = None
    second = ProcessRunner(1, show="live")  # with a fork server of its own
    for world in (first, second):
        threading.Thread(target=world.run, args=(work,), daemon=True).start()
    servers = [world._generation.launcher.pid for world in (first, second)]
    print("servers", *servers, flush=True)
    time.sleep(60)
"""


def test_ranks_watch_their_parents_where_the_system_sends_no_signal(tmp_path: Path):
    script = Script(tmp_path, WITHOUT_DEATH_SIGNAL)
    said = [script.line() for _ in range(3)]
    servers = [int(pid) for line in said if "servers" in line for pid in line.split()[1:]]
    ranks = [int(line.split()[-1]) for line in said if "servers" not in line]
    assert len(alive(ranks)) == 2
    os.kill(servers[0], signal.SIGKILL)
    assert eventually(lambda: len(alive(ranks)) == 1, 3.0)
    script.kill(signal.SIGKILL)
    assert eventually(lambda: not alive([*ranks, *servers]), 3.0)


UNCLOSED = """
    import threading, time
    from ringlab.world.processes import ProcessRunner

    idle, busy = ProcessRunner(2), ProcessRunner(1)
    idle.run(int)
    busy.run(int)
    print(*idle.pids, *busy.pids, idle._generation.launcher.pid, flush=True)
    threading.Thread(target=busy.run, args=(time.sleep, (60,)), daemon=True).start()
    time.sleep(0.2)
"""


def test_no_rank_survives_a_program_that_ends_without_close(tmp_path: Path):
    script = Script(tmp_path, UNCLOSED)
    pids = [int(pid) for pid in script.line().split()]
    assert len(pids) == 4
    said = script.finish(20)  # the thread may get to say why its run ended
    assert said == "" or said.endswith("WorldError: this world was closed while it ran.\n")
    assert eventually(lambda: not alive(pids), 3.0)


def test_ranks_live_on_when_the_thread_that_started_them_has_ended(monkeypatch):
    monkeypatch.setattr(launcher, "_current", None)
    worlds: list[ProcessRunner] = []
    thread = threading.Thread(target=lambda: worlds.append(ProcessRunner(2)))
    thread.start()
    thread.join()
    before = worlds[0].run(os.getpid)
    time.sleep(0.5)
    assert worlds[0].run(os.getpid) == before
    worlds[0].close()


def test_a_collected_world_leaves_no_rank():
    world = ProcessRunner(2)
    world.run(int)
    pids = world.pids
    del world
    assert eventually(lambda: not alive(pids), 3.0)


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")
def test_a_fork_of_the_parent_neither_ends_the_ranks_nor_uses_them(world):
    before = world.run(os.getpid)
    child = os.fork()
    if child == 0:
        try:
            world.close()
        finally:
            os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert world.run(os.getpid) == before


def test_a_world_inside_a_rank_ends_with_the_rank(world):
    def work():
        if dist.get_rank() == 0:
            inner = ProcessRunner(2)
            inner.run(int)
            return inner.pids
        return []

    pids = world.run(work)[0]
    world.close()
    assert len(pids) == 2
    assert eventually(lambda: not alive(pids), 3.0)
