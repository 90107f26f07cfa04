"""Rotary position embedding by global position, so that a shard is rotated as the whole is."""

from __future__ import annotations

import torch
from torch import Tensor


def rope_angles(
    positions: Tensor,
    head_dim: int,
    base: float = 10000.0,
    *,
    dtype: torch.dtype = torch.float32,
) -> Tensor:
    """Give the angle by which each pair of channels turns at each position.

    Parameters
    ----------
    positions : Tensor
        Integers ``[L]``: global positions, as a layout's ``positions()`` gives them.
    head_dim : int
        D, even.
    base : float
        Pair i turns by ``base ** (-2 * i / D)`` radians a token.
    dtype : torch.dtype
        Of the arithmetic: float32, as models are trained, or float64. A float32 angle is
        off by up to ``6e-8`` of itself, 0.06 radians at a million.

    Returns
    -------
    Tensor
        Radians ``[L, D / 2]`` in ``dtype``.

    Raises
    ------
    ValueError
        If positions are not a vector of integers or ``head_dim`` is not even.

    References
    ----------
    Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    arXiv 2104.09864.
    """
    if positions.dim() != 1 or positions.is_floating_point() or positions.dtype == torch.bool:
        raise ValueError(
            "positions are integers of shape [L], such as layout.positions(...) gives; "
            f"got {positions.dtype} of shape {list(positions.shape)}."
        )
    if head_dim < 2 or head_dim % 2:
        raise ValueError(f"channels turn in pairs: head_dim is even, 2 or more; got {head_dim}.")
    pairs = torch.arange(0, head_dim, 2, dtype=dtype, device=positions.device)
    frequencies = 1.0 / base ** (pairs / head_dim)
    return positions.to(dtype)[:, None] * frequencies


def apply_rope(x: Tensor, positions: Tensor, *, base: float = 10000.0) -> Tensor:
    """Turn queries or keys by their global positions, before K enters the ring.

    Channel i is paired with channel ``i + D / 2`` (the two halves of a head, as in the
    Llama checkpoints of Hugging Face), not with its neighbour as in the paper.

    Parameters
    ----------
    x : Tensor
        ``[B, H, L, D]``, floating point.
    positions : Tensor
        Integers ``[L]``, the global position of each of the L tokens.
    base : float
        As in `rope_angles`.

    Returns
    -------
    Tensor
        Like ``x``. The arithmetic is float32, float64 for float64; differentiable.

    Raises
    ------
    ValueError
        If ``x`` is not floating point, its D is odd or its L is not that of positions.
    """
    if x.dim() != 4 or not x.is_floating_point():
        raise ValueError(
            f"x is floating point of shape [B, H, L, D]; got {x.dtype} of shape {list(x.shape)}."
        )
    if positions.shape != x.shape[2:3]:
        raise ValueError(
            f"x of shape {list(x.shape)} holds {x.shape[2]} tokens, but positions have shape "
            f"{list(positions.shape)}; pass the global position of each of these tokens."
        )
    dtype = torch.promote_types(x.dtype, torch.float32)
    angles = rope_angles(positions.to(x.device), x.shape[-1], base, dtype=dtype)  # [L, D/2]
    cos, sin = angles.cos(), angles.sin()
    first, second = x.to(dtype).chunk(2, dim=-1)
    turned = torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)
    return turned.to(x.dtype)
