"""Which line of the user's program is running, for errors and recordings."""

from __future__ import annotations

import contextlib
import copy
import functools
import linecache
import os
import re
import sys
import threading
import warnings
from types import CodeType, FrameType
from typing import NamedTuple

import torch
import typing_extensions

_TORCH = os.path.dirname(torch.__file__) + os.sep
_WORLD = os.path.dirname(__file__) + os.sep
_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_AROUND = (f"{_PACKAGE}meter.py", f"{_PACKAGE}grade{os.sep}")  # what runs a program to look at it
_LIBRARY = (_TORCH, _WORLD, *_AROUND, "<frozen ", "<eval_with_key>")  # the last: made by torch
_INTERPRETER = {
    module.__file__ for module in (contextlib, copy, threading, typing_extensions, warnings)
}  # the last two wrap what is deprecated
_CELL = re.compile(r"[/\\]ipykernel_\d+[/\\]\d+\.py$|^<ipython-input")


class Site(NamedTuple):
    """A line of a program: what a person needs to find it."""

    filename: str
    line: int
    function: str

    @property
    def place(self) -> str:
        """``file:line in function``, or ``cell line n in function`` in a notebook."""
        return _place(self)

    @property
    def code(self) -> str:
        """The text of the line, or an empty string where the source is unknown."""
        return linecache.getline(self.filename, self.line).strip()

    def __str__(self) -> str:
        return f"{self.place}: `{self.code}`" if self.code else self.place


@functools.lru_cache(maxsize=4096)
def _place(site: Site) -> str:
    # The name of a cell's temporary file differs in every kernel; a stored notebook must not.
    if _CELL.search(site.filename):
        return f"cell line {site.line} in {site.function}"
    return f"{os.path.basename(site.filename)}:{site.line} in {site.function}"


UNKNOWN = Site("?", 0, "?")


@functools.lru_cache(maxsize=4096)
def is_library(filename: str) -> bool:
    """Whether a file belongs to torch (or is made by it), to the worlds or to the interpreter."""
    generated = f"{os.sep}torchinductor_" in filename
    return generated or filename.startswith(_LIBRARY) or filename in _INTERPRETER


_Position = tuple[int, int]
_sites: dict[_Position, tuple[CodeType, Site]] = {}
"""Sites found before, as a frame's line is slow to find; with their code, which keeps its id."""


def site_of(frame: FrameType | None) -> Site:
    """The innermost line, from `frame` outwards, that belongs to the user's program."""
    while frame is not None:
        code = frame.f_code
        if not is_library(code.co_filename):
            position = id(code), frame.f_lasti
            known = _sites.get(position)
            if known is None:
                site = Site(code.co_filename, frame.f_lineno, code.co_name)
                if len(_sites) >= 4096:
                    _sites.clear()
                known = _sites[position] = code, site
            return known[1]
        frame = frame.f_back
    return UNKNOWN


def current_site() -> Site:
    """The line of the user's program that led to the caller."""
    return site_of(sys._getframe(1))


def site_in_rank() -> Site:
    """The same in a process that is one rank and nothing else, in whatever thread.

    A backward on a GPU runs in a thread of autograd's, where the line that led to it is not on
    the stack: the main thread waits at it.
    """
    site = site_of(sys._getframe(1))
    main = threading.main_thread().ident
    return site_of_thread(main) if site is UNKNOWN and main is not None else site


def site_of_thread(ident: int) -> Site:
    """The line at which another thread stands."""
    return site_of(sys._current_frames().get(ident))
