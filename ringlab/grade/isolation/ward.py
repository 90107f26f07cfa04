"""A ward inside the process that runs an answer: it refuses what only a cheat asks for.

Python tells an audit hook what is about to happen (PEP 578), and a hook cannot be taken away
again. This one refuses to trace, to search the memory for objects, to look at the frames of
those who called, to reach below Python with ctypes and to import the judging side of this
package. It acts on what code of the answer asks for, not on what torch or Python do for
themselves. It is no wall: who leaves Python, with a compiled extension, is past it. What keeps
such code from files, network and other processes is Landlock.
"""

from __future__ import annotations

import os
import sys
import sysconfig
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch

import ringlab

_SPYING = {
    "gc.get_objects", "gc.get_referrers", "gc.get_referents", "sys.settrace", "sys.setprofile",
    "sys._current_frames", "sys._current_exceptions", "sys.addaudithook", "sys._getframe",
    "code.__new__", "ctypes.dlopen", "ctypes.dlsym", "ctypes.cdata", "ctypes.string_at",
    "ctypes.memset", "ctypes.call_function", "sys.monitoring.register_callback",
}  # fmt: skip
_ATTRIBUTES = {"tb_frame", "gi_frame", "cr_frame", "ag_frame"}
_OTHERS = {"os.kill", "os.killpg"}
_JUDGES = "ringlab.grade."

_PASSED_ON = ("inspect.py", f"ctypes{os.sep}__init__.py", f"futures{os.sep}thread.py",
              "threading.py")  # fmt: skip
"""Files of Python that ask on behalf of their callers."""
_WALKERS = ("walk_tb", "walk_stack")


def stand() -> Callable[[], str]:
    """Begin to refuse, for as long as the process lives.

    All code but that of Python, torch and this package is taken for the answer's.

    Returns
    -------
    callable
        Gives what was refused first, or an empty string.
    """
    paths = sysconfig.get_paths()
    installed = {paths["stdlib"], paths["platstdlib"], paths["purelib"], paths["platlib"]}
    packages = {os.path.dirname(module.__file__ or "") for module in (ringlab, torch)}
    trusted = ("<frozen ", *(f"{path}{os.sep}" for path in sorted(installed | packages)))
    own = tuple(f"{path}{os.sep}" for path in sorted(packages))
    here = threading.local()
    refused: list[str] = []
    me = {os.getpid(), os.getpgid(0)}

    def of_the_answer(frame: FrameType | None, event: str) -> bool:
        while frame is not None:
            name, function = frame.f_code.co_filename, frame.f_code.co_name
            walks = name.endswith("traceback.py") and function in _WALKERS
            if not (name.startswith(trusted) and (name.endswith(_PASSED_ON) or walks)):
                return not name.startswith(own if event.startswith("gc.") else trusted)
            frame = frame.f_back
            if walks:  # asked for by traceback itself, or by the answer
                return frame is not None and not frame.f_code.co_filename.startswith(trusted)
        return event != "sys._getframe"

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "import":
            asked = arguments[0].startswith(_JUDGES)
        elif event == "object.__getattr__":
            asked = arguments[1] in _ATTRIBUTES
        elif event == "compile":
            asked = isinstance(arguments[1], (str, bytes)) and _poses(arguments[1], trusted)
        elif event in _OTHERS:
            asked = arguments[0] not in me
        else:
            asked = event in _SPYING
        if not asked or getattr(here, "busy", False):
            return
        here.busy = True
        try:
            what = "the judging side of ringlab" if event == "import" else event
            if of_the_answer(sys._getframe(1), event) or event == "import":
                refused.append(what)
                raise PermissionError(f"an answer may not use {what} while it is graded.")
        finally:
            here.busy = False

    sys.addaudithook(watch)
    return lambda: refused[0] if refused else ""


def _poses(filename: str | bytes, trusted: tuple[str, ...]) -> bool:
    """Whether code that is compiled claims to be Python's, torch's or this package's."""
    return os.fsdecode(filename).startswith(trusted)
