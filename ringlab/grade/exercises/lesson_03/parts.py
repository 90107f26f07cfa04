"""What one rank finds among some of the keys, before anything is merged."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class Part(NamedTuple):
    """Attention to some of the keys, in float64.

    Attributes
    ----------
    out : Tensor
        [B, Hq, Lq, D]; 0 without a key.
    lse, largest : Tensor
        [B, Hq, Lq]: log-sum-exp and maximum of the scores; -inf without a key.
    keys : int
    """

    out: Tensor
    lse: Tensor
    largest: Tensor
    keys: int


def part_of(q: Tensor, k: Tensor, v: Tensor) -> Part:
    """Attend from q [B, Hq, Lq, D] to k and v [B, Hkv, Lk, D], also if there is no key."""
    q, k, v = q.double(), k.double(), v.double()
    keys, values = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    scores: Tensor = q @ keys.mT / q.shape[-1] ** 0.5
    lse = scores.logsumexp(-1)
    largest = scores.amax(-1) if k.shape[2] else lse
    return Part(scores.softmax(-1) @ values, lse, largest, k.shape[2])
