"""What mistaken rings compute, so that their results can be told by the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import torch
from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercises.lesson_03.parts import Part, part_of
from ringlab.grade.exercises.lesson_03.ring import inputs, lengths, shards
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results

Parts = Sequence[Part]
"""Partial results, block after block as a rank meets them."""
Combine = Callable[[Parts], Tensor]
"""Makes the result of them, [B, Hq, Lq, D]."""


def each_rank(combine: Combine, blocks: Callable[[int, int], list[int]] | None = None) -> Results:
    """What every rank returns if it combines its partial results like this.

    Parameters
    ----------
    combine : callable
        Makes the result of the partial results.
    blocks : callable, optional
        ``blocks(rank, world_size)``: owners of the blocks that a rank computes with, in order;
        by default those of a ring.
    """

    def results(case: Case) -> tuple[Plain, ...]:
        size, kind = case.world_size, inputs(case).q.dtype
        held = blocks or (lambda rank, size: [(rank - step) % size for step in range(size)])
        return tuple(
            combine([_part(case, rank, owner) for owner in held(rank, size)]).to(kind)
            for rank in range(size)
        )

    return results


def merged(parts: Parts) -> Tensor:
    """The right merge: weights from all of the LSEs."""
    outs, lses = _stacked(parts)
    return (lses.softmax(0)[..., None] * outs).sum(0)


def added(parts: Parts) -> Tensor:
    """Partial results added up as they are."""
    return _stacked(parts)[0].sum(0)


def averaged(parts: Parts) -> Tensor:
    """Every block given the same weight."""
    return _stacked(parts)[0].mean(0)


def by_keys(parts: Parts) -> Tensor:
    """Every block weighted by the number of its keys."""
    outs, _ = _stacked(parts)
    keys = torch.tensor([part.keys for part in parts], dtype=outs.dtype)
    total: Tensor = torch.einsum("p,p...->...", keys / keys.sum(), outs)
    return total


def last_alone(parts: Parts) -> Tensor:
    """The result of the last block."""
    return parts[-1].out


def swapped(parts: Parts) -> Tensor:
    """The two weights of each merge exchanged."""
    out, lse, *_ = parts[0]
    for new, new_lse, *_ in parts[1:]:
        both = torch.logaddexp(lse, new_lse)
        weights = (new_lse - both).exp()[..., None], (lse - both).exp()[..., None]
        out, lse = weights[0] * out + weights[1] * new, both
    return out


def stale_lse(parts: Parts) -> Tensor:
    """Outputs merged, the LSE of the first block kept."""
    out, lse, *_ = parts[0]
    for new, new_lse, *_ in parts[1:]:
        both = torch.logaddexp(lse, new_lse)
        out = (lse - both).exp()[..., None] * out + (new_lse - both).exp()[..., None] * new
    return out


def forgotten_lse(parts: Parts) -> Tensor:
    """Outputs merged, the LSE of the newest block taken for that of all."""
    out, lse, *_ = parts[0]
    for new, new_lse, *_ in parts[1:]:
        both = torch.logaddexp(lse, new_lse)
        out = (lse - both).exp()[..., None] * out + (new_lse - both).exp()[..., None] * new
        lse = new_lse
    return out


def not_rescaled(parts: Parts) -> Tensor:
    """Exponentials shifted by the maximum of their own block, and added as if it were one."""
    weights = [(part.lse - part.largest).exp()[..., None] for part in parts]
    outs, _ = _stacked(parts)
    shares = torch.stack(weights)  # [blocks, B, Hq, L, 1]
    return (shares * outs).sum(0) / shares.sum(0)


def scaled(power: float) -> Results:
    """Exact attention with scores divided by D to this power, where 0.5 is right."""

    def results(case: Case) -> tuple[Plain, ...]:
        q, k, v = (x.double() for x in inputs(case))
        return _whole(case, q * q.shape[-1] ** (0.5 - power), k, v)

    return results


def tiled_heads(case: Case) -> tuple[Plain, ...]:
    """Query head h given KV head h % Hkv."""
    q, k, v = (x.double() for x in inputs(case))
    times = q.shape[1] // k.shape[1]
    return _whole(case, q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1))


def _whole(case: Case, q: Tensor, k: Tensor, v: Tensor) -> tuple[Plain, ...]:
    times, kind = q.shape[1] // k.shape[1], inputs(case).q.dtype
    keys, values = (x.repeat_interleave(times, dim=1) for x in (k, v))
    out = (q @ keys.mT / q.shape[-1] ** 0.5).softmax(-1) @ values
    return tuple(out.to(kind).split(lengths(case), dim=2))


@lru_cache(maxsize=512)
def _part(case: Case, rank: int, owner: int) -> Part:
    each = shards(case)
    return part_of(each[rank][0], *each[owner][1:])


def _stacked(parts: Parts) -> tuple[Tensor, Tensor]:
    outs, lses, *_ = zip(*parts, strict=True)
    return torch.stack(outs), torch.stack(lses)
