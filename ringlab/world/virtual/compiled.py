"""``torch.compile`` in the virtual world: ranks are threads, and must not share compiled code.

Dynamo takes ``dist.get_rank()`` and ``dist.get_world_size()``, also of a group, for constants
of the process and writes them into the code it compiles, which it keeps with the function.
Here each rank of each run gets a compartment of its own, so that a run compiles anew, as
new processes would; with a torch that knows no compartments the ranks run uncompiled. And
dynamo must not look into the functions of the world: it calls them, at a graph break.
"""

from __future__ import annotations

import itertools
import sys
import threading
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch

from ringlab.world.virtual import fit, tables

_frames: Any = torch._C._dynamo.eval_frame
_COMPARTMENT = "set_eval_frame_isolate_recompiles_id"
_CALLBACK = "set_eval_frame"
_SKIP = ("set_code_exec_strategy", "skip_code")  # the newer and the older way
_numbers = itertools.count(1 << 20)  # dynamo counts its own compartments up from 0

HAS_COMPARTMENTS = hasattr(_frames, _COMPARTMENT)


class _Current(threading.local):
    compartment = -1


_current = _Current()


def misfits() -> list[str]:
    """What of the installed torch is not as it is expected here, in words."""
    needed = ((_COMPARTMENT, _CALLBACK), _SKIP)
    return [
        f"{_frames.__name__}.{names[0]} is missing"
        for names in needed
        if not any(hasattr(_frames, name) for name in names)
    ]


fit.refuse(misfits())


def separate_ranks() -> None:
    """Let no rank run what another compiled. For good: threads that are no ranks see nothing."""
    name = _COMPARTMENT if HAS_COMPARTMENTS else _CALLBACK
    original = getattr(_frames, name)

    def enter_compartment(number: int) -> int:
        """Enter a compartment and return the number of the one that was left."""
        left, _current.compartment = _current.compartment, number
        rank = tables.current_rank()
        if rank is not None:
            if number not in rank.compartments:
                rank.compartments[number] = next(_numbers)
            number = rank.compartments[number]
        original(number)
        return left

    def set_callback(callback: Any) -> Any:
        """Set what compiles the frames that come, on a rank nothing."""
        compiles = callable(callback) and tables.current_rank() is not None
        return original(None if compiles else callback)

    own = enter_compartment if HAS_COMPARTMENTS else set_callback
    setattr(_frames, name, own)  # where dynamo takes it from if it is not imported yet
    python_side = sys.modules.get("torch._dynamo.eval_frame")
    if hasattr(python_side, name):
        setattr(python_side, name, own)


def keep_out_of_graphs(*modules: ModuleType) -> None:
    """Let ``torch.compile`` call the functions of some modules, and not look into them."""
    for module in modules:
        for value in vars(module).values():
            parts = vars(value).values() if isinstance(value, type) else [value]
            for part in parts if getattr(value, "__module__", "") == module.__name__ else ():
                for function in _functions(part):
                    function._torchdynamo_disable = True
                    _skip_code(function.__code__)


def _functions(value: Any) -> list[Any]:
    candidates = [value, *(getattr(value, name, None) for name in ("fget", "fset", "__func__"))]
    return [function for function in candidates if isinstance(function, FunctionType)]


def _skip_code(code: CodeType) -> None:
    if hasattr(_frames, _SKIP[0]):
        skip = _frames._FrameAction.SKIP
        _frames.set_code_exec_strategy(code, _frames._FrameExecStrategy(skip, skip))
    else:
        _frames.skip_code(code)
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            _skip_code(inner)
