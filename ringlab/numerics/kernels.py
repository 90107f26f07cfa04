"""Which kernel computes a block, and what this machine has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from ringlab.numerics.cpu_flash import CpuFlash, CpuFlashFloat32
from ringlab.numerics.cuda import CudaCudnn, CudaFlash, prefers_cudnn
from ringlab.numerics.dtypes import SIXTEEN_BIT
from ringlab.numerics.flash_attn_package import FlashAttnPackage
from ringlab.numerics.kernel import Kernel
from ringlab.numerics.private_ops import matrix_unit_takes
from ringlab.numerics.reference import Reference
from ringlab.numerics.tile import few_queries

KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        CpuFlash(),
        CpuFlashFloat32(),
        CudaFlash(),
        CudaCudnn(),
        FlashAttnPackage(),
        Reference(),
    )
}

# Ways to compute attention that people ask for by name and that cannot be merged.
WITHOUT_LSE = {
    "math": "torch's math kernel returns the probabilities and no LSE; 'reference' is its like",
    "sdpa": "torch.nn.functional.scaled_dot_product_attention returns no LSE",
}


@dataclass(frozen=True)
class KernelReport:
    """What one kernel can do here.

    Parameters
    ----------
    name : str
        To be passed as ``kernel=``.
    usable : bool
        Whether this machine can run it.
    reason : str
        Why not, else empty.
    devices, dtypes : tuple of str
        Where it runs ("any" for every device) and what it takes.
    partials : str
        Precision of a block's output before blocks are merged.
    """

    name: str
    usable: bool
    reason: str
    devices: tuple[str, ...]
    dtypes: tuple[str, ...]
    partials: str


def available_kernels() -> list[KernelReport]:
    """Report every kernel that ringlab knows and whether this machine can run it."""
    return [_report(kernel) for kernel in KERNELS.values()]


def _report(kernel: Kernel) -> KernelReport:
    reason = kernel.missing()
    return KernelReport(
        name=kernel.name,
        usable=reason is None,
        reason=reason or "",
        devices=tuple(sorted(kernel.devices)) or ("any",),
        dtypes=tuple(sorted(str(dtype).removeprefix("torch.") for dtype in kernel.dtypes)),
        partials=kernel.partials,
    )


def check_name(name: str) -> None:
    """Raise if no kernel has this name.

    Raises
    ------
    ValueError
        Naming the kernels there are, and why a kernel without an LSE is none of them.
    """
    if name not in KERNELS:
        reason = f" ({WITHOUT_LSE[name]})" if name in WITHOUT_LSE else ""
        raise ValueError(f"There is no kernel {name!r}{reason}; the kernels are {_names(KERNELS)}.")


def choose(
    name: str | None, q: Tensor, k: Tensor, causal: bool, masked: bool, *, backward: bool = False
) -> Kernel:
    """Return the kernel called `name`, or the best one for the block, forward or backward.

    Raises
    ------
    ValueError
        If the kernel called `name` cannot compute this block; the message says why and
        which can.
    """
    if name is None:
        order = _by_preference(q, k, backward)
        return next(kernel for kernel in order if _fits(kernel, q, k, causal, masked))
    check_name(name)
    kernel = KERNELS[name]
    reason = kernel.missing() or kernel.refuses(q, k, causal, masked)
    if reason is not None:
        others = [x.name for x in KERNELS.values() if _fits(x, q, k, causal, masked)]
        raise ValueError(
            f"Kernel {name!r} cannot compute this block: {reason}. Kernels that can: "
            f"{_names(others)}; kernel=None chooses one."
        )
    return kernel


def _by_preference(q: Tensor, k: Tensor, backward: bool) -> tuple[Kernel, ...]:
    """Kernels for the device and dtype of `q`, the fastest first; the last takes anything."""
    names: tuple[str, ...] = ()
    if q.device.type == "cpu":
        names = ("cpu_flash",)
        if q.dtype in SIXTEEN_BIT and not (matrix_unit_takes(q.dtype) or _decodes(q, k, backward)):
            names = ("cpu_flash_float32",)
    if q.device.type == "cuda":
        names = ("cuda_flash", "cuda_cudnn", "flash_attn")
        if q.dtype in SIXTEEN_BIT and prefers_cudnn():
            names = ("cuda_cudnn", "cuda_flash", "flash_attn")
    return tuple(KERNELS[name] for name in (*names, "reference"))


def _decodes(q: Tensor, k: Tensor, backward: bool) -> bool:
    """Whether a block is few bfloat16 queries on many keys, forward.

    Widening the keys then takes up to twice as long as the attention. Of float16, and backward,
    the operator is slower than that.
    """
    return q.dtype == torch.bfloat16 and few_queries(q, k) and not backward


def _fits(kernel: Kernel, q: Tensor, k: Tensor, causal: bool, masked: bool) -> bool:
    return kernel.missing() is None and kernel.refuses(q, k, causal, masked) is None


def _names(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
