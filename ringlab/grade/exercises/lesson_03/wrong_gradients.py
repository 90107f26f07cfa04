"""What mistaken backwards compute, so that their results can be told by the numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercises.lesson_03.backward import shards
from ringlab.grade.exercises.lesson_03.ring import inputs
from ringlab.grade.plain import Plain
from ringlab.grade.shows import Results

Heads = Callable[[Tensor, int], Tensor]
"""Makes [B, Hkv, L, D] of what each query head gives, [B, Hq, L, D]; from tensor and Hkv."""
Pairs = Callable[[int, int], list[tuple[int, int]]]
"""From rank and world size: whose queries meet whose block, for all that a rank adds up."""


class Rule(NamedTuple):
    """How a mistaken backward computes the share of one block.

    Attributes
    ----------
    scores : float
        The power of D by which scores are divided; 0.5 is right.
    slope : float
        The power of D by which dS is divided on its way to dQ and dK; 0.5 is right.
    delta : bool
        Whether the row sums of dout * out are subtracted.
    block_lse : bool
        Whether weights come from the LSE of the block instead of that of all keys.
    """

    scores: float = 0.5
    slope: float = 0.5
    delta: bool = True
    block_lse: bool = False


class Share(NamedTuple):
    """What the queries of one rank give for one block, in float64, each [B, Hq, L, D]."""

    dq: Tensor
    dk: Tensor
    dv: Tensor


def own_queries(rank: int, size: int) -> list[tuple[int, int]]:
    """The rank's queries and every block, as a ring brings them."""
    return [(rank, (rank - step) % size) for step in range(size)]


def own_keys(rank: int, size: int) -> list[tuple[int, int]]:
    """The rank's block and the queries of all ranks."""
    return [((rank + step) % size, rank) for step in range(size)]


def summed(each: Tensor, kv_heads: int) -> Tensor:
    """The right sum over the query heads that share a KV head."""
    total: Tensor = each.unflatten(1, (kv_heads, -1)).sum(2)
    return total


def gradients(
    rule: Rule | None = None,
    *,
    queries: Pairs = own_queries,
    keys: Pairs = own_keys,
    heads: Heads = summed,
) -> Results:
    """What every rank returns if shares are computed and added up like this.

    Parameters
    ----------
    rule : Rule, optional
        By default the right one.
    queries, keys : callable
        Which shares make up dq, and which dk and dv.
    heads : callable
        What becomes of query heads that share a KV head.
    """

    def results(case: Case) -> tuple[Plain, ...]:
        size, how = case.world_size, rule or Rule()
        q, k, _ = inputs(case)

        def added(pairs: Pairs, rank: int, name: str) -> Tensor:
            found = [getattr(_share(case, *pair, how), name) for pair in pairs(rank, size)]
            total: Tensor = sum(found[1:], found[0])
            return total

        return tuple(
            (
                added(queries, rank, "dq").to(q.dtype),
                heads(added(keys, rank, "dk"), k.shape[1]).to(k.dtype),
                heads(added(keys, rank, "dv"), k.shape[1]).to(k.dtype),
            )
            for rank in range(size)
        )

    return results


@lru_cache(maxsize=4096)
def _share(case: Case, rank: int, owner: int, rule: Rule) -> Share:
    q, _, _, out, lse, dout = (x.double() for x in shards(case)[rank])
    k, v = (x.double() for x in shards(case)[owner][1:3])
    keys, values = (x.repeat_interleave(q.shape[1] // k.shape[1], dim=1) for x in (k, v))
    dim = q.shape[-1]
    scores: Tensor = q @ keys.mT / dim**rule.scores
    whole = scores.logsumexp(-1) if rule.block_lse else lse
    weights = (scores - whole[..., None]).exp()
    slopes = dout @ values.mT
    if rule.delta:
        slopes = slopes - (dout * out).sum(-1, keepdim=True)
    slopes = weights * slopes / dim**rule.slope
    return Share(slopes @ keys, slopes.mT @ q, weights.mT @ dout)
