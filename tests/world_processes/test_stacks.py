from __future__ import annotations

import sysconfig
from pathlib import Path

import torch

import ringlab
from ringlab.world.processes import stacks

LIBRARY = Path(ringlab.__file__).parent
STDLIB = sysconfig.get_path("stdlib")
DUMP = f"""Thread 0x00007f2f23cbd6c0 (most recent call first):
  File "{LIBRARY}/world/processes/orphans.py", line 55 in _watch
  File "{STDLIB}/threading.py", line 982 in run

Thread 0x00007f2f244be6c0 [helper] (most recent call first):
  File "/srv/user/program.py", line 3 in helper
  File "{STDLIB}/threading.py", line 982 in run

Current thread 0x00007f2f25221b80 (most recent call first):
  File "{torch.__path__[0]}/distributed/distributed_c10d.py", line 2500 in recv
  File "{LIBRARY}/prefill/ring.py", line 88 in hop
  File "/srv/user/program.py", line 12 in work
  File "{LIBRARY}/world/processes/rank_main.py", line 98 in obey
  File "<string>", line 1 in <module>
"""


def test_the_main_thread_comes_first_and_the_watcher_is_left_out():
    main, helper = stacks.parse(DUMP)
    assert main[0].function == "recv"
    assert [site.function for site in helper] == ["helper", "run"]


def test_a_stack_is_told_by_the_users_line_and_the_packages_line_below_it():
    main, helper = stacks.parse(DUMP)
    assert [(site.function, site.line) for site in stacks.place(main)] == [
        ("work", 12),
        ("hop", 88),
    ]
    assert [site.function for site in stacks.place(helper)] == ["helper"]
    assert stacks.own_line(main).line == 12


def test_a_stack_without_any_line_of_the_user_is_told_by_its_innermost_line():
    lines = [line for line in DUMP.splitlines() if "distributed_c10d" in line]
    (only,) = stacks.parse("\n".join(["Stack (most recent call first):", *lines]))
    assert [site.function for site in stacks.place(only)] == ["recv"]
    assert stacks.own_line(only) is None


def test_a_dump_is_complete_when_the_bottom_of_the_main_thread_is_there():
    assert stacks.complete(DUMP.encode())
    lines = DUMP.splitlines(keepends=True)
    for end in range(len(lines)):
        assert not stacks.complete("".join(lines[:end]).encode())
    assert stacks.complete(b'  File "x.py", line 1 in f\n  ...\n')  # more than 100 lines


def test_nothing_is_made_of_nothing():
    assert stacks.parse("") == []
    assert stacks.place([]) == []
    assert not stacks.complete(b"")
