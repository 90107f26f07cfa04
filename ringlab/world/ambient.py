"""What a rank inherits from its caller, and what it has for itself alone.

Grad mode, inference mode, autocast and the default device belong to a thread in torch, so
the threads of a virtual world would lose them; :class:`Ambient` carries them over. Random
generators belong to the process, so the ranks would share them; :class:`RandomState`
gives each rank its own.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

import torch

from ringlab.world import mersenne


class Ambient:
    """The thread-bound modes of the thread that created it."""

    def __init__(self) -> None:
        self.grad = torch.is_grad_enabled()
        self.inference = torch.is_inference_mode_enabled()
        self.autocast = torch.is_autocast_enabled("cpu")
        self.autocast_dtype = torch.get_autocast_dtype("cpu")
        self.autocast_cache = torch.is_autocast_cache_enabled()
        self.device = torch.empty(0).device  # get_default_device misses contexts in old torch

    @contextlib.contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the modes to the calling thread."""
        with contextlib.ExitStack() as stack:
            if self.device != torch.device("cpu"):
                stack.enter_context(self.device)
            stack.enter_context(torch.inference_mode(self.inference))
            stack.enter_context(torch.set_grad_enabled(self.grad and not self.inference))
            if self.autocast:
                stack.enter_context(
                    torch.autocast(
                        "cpu", dtype=self.autocast_dtype, cache_enabled=self.autocast_cache
                    )
                )
            yield


class RandomState:
    """The state of the process's random generators: torch (CPU), `random` and numpy.

    Parameters
    ----------
    seed : int or None
        Seed of a fresh state, or None for the state of the process as it is.
    """

    def __init__(self, seed: int | None) -> None:
        self._numpy: Any = None
        if seed is None:
            self.save()
            if _has_numpy():
                self._numpy = _numpy_random().get_bit_generator()
        else:
            self._torch = torch.Generator().manual_seed(seed).get_state()
            self._python = mersenne.seeded(seed)
            if _has_numpy():
                # numpy.random.seed's way of seeding, which differs from the generator's own
                self._numpy = _numpy_random().RandomState(seed % 2**32)._bit_generator

    def save(self) -> None:
        """Remember the process's state; numpy's generator is an object, swapped whole."""
        self._torch = torch.default_generator.get_state()
        self._python = mersenne.save()

    def restore(self) -> None:
        """Make this the process's state."""
        torch.default_generator.set_state(self._torch)
        mersenne.restore(self._python)
        if self._numpy is not None:
            _numpy_random().set_bit_generator(self._numpy)


def _numpy_random() -> Any:
    return sys.modules["numpy"].random


def _has_numpy() -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and hasattr(getattr(numpy, "random", None), "set_bit_generator")
