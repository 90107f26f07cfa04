"""Meters that are independent of every recorder: memory held, bytes on the loopback device."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode


class PeakBytes(TorchDispatchMode):
    """Counts the bytes of the tensors made inside the block that are alive together.

    Tensors that existed before do not count, views count once, and nothing depends on an
    allocator or on garbage that is still to be collected. On ``meta`` tensors, which hold
    nothing, it counts what they would hold.

    Attributes
    ----------
    live : int
        Bytes alive now.
    peak : int
        The most there have been.

    Examples
    --------
    >>> import torch
    >>> with PeakBytes() as meter:
    ...     x = torch.zeros(256)         # 1024 bytes
    ...     x = x + 1                    # for a moment both are alive
    >>> meter.peak
    2048

    Notes
    -----
    It sees one thread, so inside a virtual world each rank opens its own.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch
        self.live = 0
        self.peak = 0
        self._known: dict[int, weakref.ref[torch.UntypedStorage]] = {}

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch asks: with True it loads the compiler, two seconds, at the first operator."""
        return False

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run an operator and note the storages it returns that are new."""
        given = {_key(t) for t in _tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            if _key(tensor) not in given:
                self._note(tensor)
        return result

    def _note(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key, size = _key(tensor), storage.nbytes()
        if key in self._known:
            return
        self._known[key] = weakref.ref(storage)
        weakref.finalize(storage, self._forget, key, size)
        self.live += size
        self.peak = max(self.peak, self.live)

    def _forget(self, key: int, size: int) -> None:
        if self._known.pop(key, None) is not None:
            self.live -= size


def _key(tensor: torch.Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def loopback_bytes() -> int | None:
    """Bytes that this machine's loopback device has sent since it started.

    Returns
    -------
    int or None
        Counted by the kernel, headers and every program's traffic included; None where the
        system does not tell (it does on Linux).
    """
    try:
        lines = Path("/proc/net/dev").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    fields = next((line.split() for line in lines if line.strip().startswith("lo:")), None)
    return None if fields is None else int(fields[9])
