"""Answers to ``rotation_table`` that hang, crash or take too much, and what is said of each."""

from __future__ import annotations

from typing import NamedTuple

RIGHT = "[[(rank - step) % size for rank in range(size)] for step in range(size)]"


class Hostile(NamedTuple):
    """An answer.

    Attributes
    ----------
    before : str
        What its cell does first.
    body : str
        What its function does before it returns the right table.
    states : tuple of str
        Any of which may be said of it.
    points : int
    """

    before: str
    body: str
    states: tuple[str, ...]
    points: int = 0

    @property
    def text(self) -> str:
        """The cell."""
        return self.written("rotation_table(size)", RIGHT)

    def written(self, signature: str, returned: str) -> str:
        """A cell that defines a function, does what it does, and returns an expression."""
        lines = "\n    ".join(self.body.splitlines() or ["pass"])
        return f"{self.before}\ndef {signature}:\n    {lines}\n    return {returned}\n"


STOPPED = ("TooLong", "HungRank", "time")

HOSTILE = {
    "python loop": Hostile("", "while True: pass", STOPPED),
    "C loop": Hostile("", "sum(iter(int, 1))", ("time", "cpu")),
    "loop that catches all": Hostile(
        "",
        "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
        STOPPED,
    ),
    "long sleep": Hostile("import time", "time.sleep(600)", STOPPED),
    "os._exit(0)": Hostile("import os", "os._exit(0)", ("exit",)),
    "os._exit(1) in the cell": Hostile("import os\nos._exit(1)", "", ("exit",)),
    "segmentation fault": Hostile("import faulthandler", "faulthandler._sigsegv()", ("crash",)),
    "abort": Hostile("import os", "os.abort()", ("crash",)),
    "fork bomb": Hostile("import os", "while True: os.fork()", ("processes", "memory", *STOPPED)),
    "64 GiB": Hostile("", "bytearray(64 << 30)", ("MemoryError",)),
    "memory in pieces": Hostile(
        "import torch\nkept = []", "while True: kept.append(torch.ones(1 << 25))",
        ("memory", "RuntimeError", "MemoryError", *STOPPED),
    ),
    "50 MB on one line": Hostile("", "print('x' * 50_000_000)", ("output",)),
    "prints for ever": Hostile("", "while True: print('again')", ("output",)),
    "disk": Hostile(
        "import time",
        "for n in range(100):\n    with open(str(n), 'wb') as file: file.write(bytes(1 << 20))\n"
        "time.sleep(4)",
        ("files",),
    ),
    "one large file": Hostile(
        "import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)",
        "with open('file', 'wb') as file: file.write(bytes(64 << 20))", ("file",),
    ),
    "exception beside Exception": Hostile(
        "class Odd(BaseException): pass", "raise Odd('odd')", ("Odd",)
    ),
    "sys.exit": Hostile("import sys", "sys.exit(0)", ("SystemExit",)),
    "input": Hostile("", "input('size? ')", ("EOFError",)),
    "thousands of threads": Hostile(
        "import threading, time",
        "for _ in range(20_000): threading.Thread(target=time.sleep, args=(60,)).start()",
        ("RuntimeError", "MemoryError", *STOPPED),
    ),
    "thread left running": Hostile(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(600,)).start()", "",
        ("right",), 2,
    ),
    "program left running": Hostile(
        "import subprocess\nsubprocess.Popen(['sleep', '602'])", "", ("right",), 2
    ),
    "warnings": Hostile(
        "import sys, warnings\nwarnings.warn('old')\nprint('ERROR', file=sys.stderr)",
        "warnings.warn('old')", ("right",), 2,
    ),
    "exit in the cell": Hostile("import sys\nsys.exit(3)", "", ("right",), 2),
    "import that is missing": Hostile("import not_there", "", ("right",), 2),
    "uses a missing import": Hostile(
        "import not_there", "not_there.help()", ("NameError",)
    ),
}  # fmt: skip
"""By name."""


def hostile_cell(kind: str, name: str) -> str:
    """The cell of one kind, in place of the answer to any exercise that wants a function."""
    return HOSTILE[kind].written(f"{name}(*_)", "None")
