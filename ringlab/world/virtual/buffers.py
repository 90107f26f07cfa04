"""What a program may hand to an operation as a buffer, and how it is cut for the members."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from ringlab.world.errors import BadCall
from ringlab.world.virtual import modes
from ringlab.world.virtual.operations import describe, same_place


def is_plain(tensor: Tensor) -> bool:
    """Whether `check_buffers` has nothing against a tensor alone, at a glance."""
    on_host = tensor.is_meta or tensor.is_cpu
    return on_host and tensor.layout is torch.strided and tensor.is_contiguous()


def check_buffers(name: str, tensors: Sequence[Tensor], contiguous: Sequence[Tensor]) -> None:
    """Refuse buffers that no backend, or not each of them, handles rightly.

    Parameters
    ----------
    name : str
        The operation.
    tensors : sequence of Tensor
        Everything it was given.
    contiguous : sequence of Tensor
        Those of `tensors` that must be contiguous.

    Raises
    ------
    BadCall
    """
    for tensor in tensors:
        if tensor.device.type not in ("cpu", "meta"):
            raise BadCall(
                f"the virtual world takes CPU and meta tensors, and {name} was given one on "
                f"{tensor.device}: the backward of all its ranks would share one thread there. "
                "Use World(size, backend='nccl') for GPUs."
            )
        if tensor.layout is not torch.strided:
            raise BadCall(f"{name} of a tensor with layout {tensor.layout}; send dense tensors.")
        if tensor.dtype != tensors[0].dtype or not same_place(tensor, tensors[0]):
            raise BadCall(
                f"{name} was given {describe(tensors[0])} and {describe(tensor)}: all buffers of "
                "a call must have one dtype and be on one device."
            )
    for tensor in contiguous:
        if not tensor.is_contiguous():
            raise BadCall(
                f"{name} of a tensor that is not contiguous (shape {list(tensor.shape)}, strides "
                f"{list(tensor.stride())}): gloo and NCCL refuse it or move the wrong elements, "
                "depending on the operation. Send tensor.contiguous(), and receive into a "
                "contiguous buffer."
            )


def chunks(whole: Tensor, size: int, members: int, name: str, which: str) -> list[Tensor]:
    """One flat chunk of `size` elements a member."""
    if whole.numel() != size * members or not whole.is_contiguous():
        raise BadCall(
            f"{name} over {members} ranks with {size} elements a rank needs a contiguous {which} "
            f"of {size * members} elements; given is {describe(whole)}."
        )
    with modes.unobserved():
        flat = whole.detach().view(-1)
        return [flat[i * size : (i + 1) * size] for i in range(members)]


def split(whole: Tensor, sizes: Sequence[int] | None, members: int, which: str) -> list[Tensor]:
    """A slice along dimension 0 for each member, of the given or of equal lengths."""
    length = whole.shape[0] if whole.dim() else 0
    if sizes and (len(sizes) != members or sum(sizes) != length or min(sizes) < 0):
        raise BadCall(
            f"all_to_all_single: {which} split sizes {list(sizes)} must be {members} numbers that "
            f"add up to the length {length} of the {which}'s first dimension."
        )
    if not sizes and length % members:
        raise BadCall(
            f"all_to_all_single: the {which}'s first dimension, {length}, does not divide by "
            f"{members} ranks; pass {which}_split_sizes."
        )
    with modes.unobserved():
        return list(whole.detach().split(list(sizes) if sizes else [length // members] * members))


def one_a_member(tensors: Sequence[Tensor], like: Tensor, members: int, name: str) -> None:
    """Refuse a list that does not hold one tensor a member, each shaped as `like`."""
    if len(tensors) != members or any(t.shape != like.shape for t in tensors):
        raise BadCall(
            f"{name} of {describe(like)} over {members} ranks needs {members} tensors of that "
            f"shape; given are {[list(t.shape) for t in tensors]}. For parts that differ, pad "
            "them or use all_to_all_single with split sizes."
        )
