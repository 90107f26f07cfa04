"""The parts of the isolation by themselves: what is read, what is ended, what is removed."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ringlab import ring_attention
from ringlab.grade.forbidden import withheld
from ringlab.grade.fouls import beside_messages
from ringlab.grade.isolation import folder, frames
from ringlab.grade.observation import Observation
from ringlab.grade.registry import all_exercises
from ringlab.timeline import Timeline
from ringlab.world import World
from tests.grading.notebooks import ROOT


def test_frames_are_taken_one_by_one_as_they_become_whole() -> None:
    data = bytearray(frames.pack(b"one") + frames.pack(b"") + frames.pack(b"three")[:-1])
    assert frames.take(data) == b"one"
    assert frames.take(data) == b""
    assert frames.take(data) is None
    data += b"e"
    assert frames.take(data) == b"three"
    assert frames.take(bytearray(b"\0" * 7)) is None


def test_the_length_that_a_frame_announces_is_known_before_it_arrives() -> None:
    assert frames.announced(bytearray((1 << 60).to_bytes(8, "big"))) == 1 << 60


@pytest.mark.parametrize("make", [
    lambda top: [os.makedirs(top + "/d" * 400), os.chdir(top + "/d" * 400),
                 os.makedirs("d/" * 400), os.chdir("/")],
    lambda top: [os.mkdir(f"{top}/shut"), Path(f"{top}/shut/file").touch(),
                 os.chmod(f"{top}/shut", 0)],
    lambda top: os.symlink("/", f"{top}/root"),
    lambda top: os.mkfifo(f"{top}/pipe"),
], ids=["deep", "shut", "link", "pipe"])  # fmt: skip
def test_a_folder_is_removed_whatever_is_in_it(
    tmp_path: Path, make: Callable[[str], object]
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    make(str(top))
    folder.remove(str(top))
    assert not top.exists()
    assert Path("/usr").exists()


def test_a_folder_is_overfull_by_bytes_or_by_entries(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(bytes(1 << 16))
    assert not folder.overfull(str(tmp_path), 1 << 20, 10)
    assert folder.overfull(str(tmp_path), 1 << 15, 10)
    assert folder.overfull(str(tmp_path), 1 << 20, 1)


@pytest.mark.processes
@pytest.mark.procfs
def test_a_process_of_another_session_is_found_and_ended() -> None:
    script = (
        "import os, subprocess, sys, time\n"
        "from ringlab.grade.isolation import descendants\n"
        "descendants.adopt_orphans()\n"
        "sleeper = [sys.executable, '-c', 'import time; time.sleep(600)']\n"
        "middle = 'import subprocess, sys; '\n"
        "middle += 'subprocess.Popen(sys.argv[1:], start_new_session=True)'\n"
        "first = subprocess.Popen([sys.executable, '-c', middle, *sleeper])\n"
        "first.wait()\n"
        "print(len(descendants.of(os.getpid())))\n"
        "descendants.end(first.pid)\n"
        "print(len(descendants.of(os.getpid())), descendants.reap())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "0", "True"], done.stderr


@pytest.mark.processes
@pytest.mark.landlock
def test_a_sealed_process_reaches_only_what_it_was_given(tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "outside").write_text("secret")
    script = (
        "import os, resource, sys\n"
        "from ringlab.grade.isolation import landlock, privileges\n"
        "inside, outside = sys.argv[1:]\n"
        "privileges.drop()\n"
        "print(landlock.restrict(['/usr', sys.prefix], [inside]))\n"
        "open(inside + '/file', 'w').write('x')\n"
        "def refused(action):\n"
        "    try:\n"
        "        action()\n"
        "    except OSError:\n"
        "        print('refused')\n"
        "refused(lambda: open(outside).read())\n"
        "refused(lambda: open(outside, 'w'))\n"
        "refused(lambda: os.unlink(outside))\n"
        "refused(lambda: os.listdir('/root'))\n"
        "refused(lambda: open(f'/proc/{os.getppid()}/environ').read())\n"
        "resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "try:\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))\n"
        "except ValueError:\n"
        "    print('refused')\n"
    )
    places = [str(tmp_path / "inside"), str(tmp_path / "outside")]
    done = subprocess.run(
        [sys.executable, "-c", script, *places], cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.split() == ["True", *["refused"] * 6], done.stderr


def test_the_librarys_methods_are_withheld_even_if_imported_before() -> None:
    with withheld(), pytest.raises(PermissionError, match=r"ring_attention .* Write it yourself"):
        ring_attention(None, None, None)
    with pytest.raises(Exception, match=r"^(?!.*Write it yourself)"):
        ring_attention(None, None, None)


def test_what_answers_may_use_is_not_withheld() -> None:
    with withheld():
        for one in all_exercises():
            for case in one.cases[:2]:
                seen = one.look(lambda *_: None, case)
                told = seen.failure.message if seen.failure else ""
                assert "Write it yourself" not in told, one.name


def test_equal_results_are_a_foul_only_if_something_arrived() -> None:
    import torch
    import torch.distributed as dist

    def exchange() -> torch.Tensor:
        rank, tensor = dist.get_rank(), torch.ones(2)
        if rank:
            dist.recv(tensor, group_src=0)
        else:
            dist.send(tensor, group_dst=1)
        return tensor

    world = World(2)
    sent = Observation(tuple(world.run(exchange)), world.timeline)
    other = Observation((torch.ones(2), torch.zeros(2)), world.timeline)
    quiet = Observation(sent.results, Timeline(2))
    assert beside_messages(sent, sent) is not None
    assert beside_messages(sent, other) is None
    assert beside_messages(quiet, quiet) is None
    no_queries = Observation((torch.ones(2), torch.ones(0)), world.timeline)
    assert beside_messages(no_queries, no_queries) is None  # who received had no use for it


@pytest.mark.processes
def test_the_worker_ends_when_its_input_does() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ringlab.grade.isolation.worker"],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    began = time.monotonic()
    process.communicate(timeout=100)
    assert process.returncode == 0
    assert time.monotonic() - began < 100
