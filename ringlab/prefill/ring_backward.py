"""The backward of the ring: K and V go round again, and gather dK and dV on the way.

One round has W steps and W+1 hops at most. At step t rank r works on the block of rank
s = r-t and gets that block's share of dK and dV. The hop of step t carries, in one message,
K and V for the next rank's next step, and the dK and dV of the *previous* step: those of
this step are not yet known when the hop starts, and the hop is to run while the rank
computes. So dK and dV follow their K and V one step behind, and go home to their owner
from the last rank that needed the block::

    step             0        1        2      ...    W-1       W (no compute)
    K and V of      r        r-1      r-2             -         -
    dK and dV of     -        -       r-1            r-W+2     r-W+1 (home)

The rank's own dK and dV (step 0) never travel. Each rank sends W-1 blocks of K and V and
W-1 of dK and dV; the first hops carry K and V only, the last dK and dV only.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ringlab.calls.exchange import Message, exchange
from ringlab.prefill.blocks import GradientSum, Own, block_gradients
from ringlab.prefill.buffers import Parcel, pack
from ringlab.prefill.plan import Plan
from ringlab.timeline import region


def gradients(own: Own, plan: Plan) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of ring attention on one rank.

    Returns
    -------
    dq, dk, dv : Tensor
        In the accumulation dtype, in which dK and dV also travel: their error then does not
        grow with the number of ranks.
    """
    k, kind, hops = own.k, own.kind, plan.last_hops[plan.rank]
    dq, dk, dv = GradientSum(own.q, kind), GradientSum(k, kind), GradientSum(k, kind)
    held, spare = Parcel(k, kind, plan), Parcel(k, kind, plan)
    if hops:
        pack(held.load(None, plan.rank).kv, k, own.v)
    for step in range(plan.world_size + 1):
        home = _room_for_home(step, own, spare, plan)
        sends, receives = _sends(step, held, plan), _receives(step, spare, home, plan)
        handles = exchange(sends, receives, plan.group)
        source, share = plan.source(step), None
        if step == 0:
            dk, dv = block_gradients(dq, own, (k, own.v), source, plan)
        elif step <= plan.last_hops[source]:
            share = block_gradients(dq, own, held.kv, source, plan)
        for handle in handles:
            handle.wait()
        with region("merge"):
            if share is not None:
                _add_to(spare.dkv, share, first=step == 1)
            if home is not None:
                dk.add(home[0], range(k.shape[2]))
                dv.add(home[1], range(k.shape[2]))
        held, spare = spare, held
    return dq.tensor(), dk.tensor(), dv.tensor()


def _room_for_home(step: int, own: Own, spare: Parcel, plan: Plan) -> Tensor | None:
    """Room for the rank's own dK and dV, [2, B, Hkv, L, D], in the step in which they come."""
    hops = plan.last_hops[plan.rank]
    if not hops or step != hops + 1:
        return None
    if not any(_comes(step, plan)):
        return spare.load(plan.rank, None).dkv
    return torch.empty((2, *own.k.shape), dtype=own.kind, device=own.k.device)


def _sends(step: int, held: Parcel, plan: Plan) -> list[Message]:
    """What is held goes on to the next rank, or its dK and dV home to their owner."""
    before = plan.source(step - 1)
    last = plan.last_hops[before]
    sends = held.message(1 < step <= last, plan.moves(plan.source(step), step), plan.neighbour(1))
    if step > 1 and step == last + 1:
        sends.append((held.dkv, before))
    return sends


def _comes(step: int, plan: Plan) -> tuple[bool, bool]:
    """Whether the spare parcel gets dK and dV, and whether K and V, for the next step."""
    source = plan.source(step)
    return 0 < step <= plan.last_hops[source], plan.moves(plan.source(step + 1), step)


def _receives(step: int, spare: Parcel, home: Tensor | None, plan: Plan) -> list[Message]:
    """What the rank before holds comes into the spare parcel, and one's own dK and dV home."""
    receives: list[Message] = []
    works, moves = _comes(step, plan)
    if works or moves:
        spare.load(plan.source(step), plan.source(step + 1))
        receives = spare.message(works and step > 1, moves, plan.neighbour(-1))
    if home is not None:
        receives.append((home, plan.neighbour(plan.last_hops[plan.rank])))
    return receives


def _add_to(dkv: Tensor, share: tuple[GradientSum, GradientSum], *, first: bool) -> None:
    """Add a share to the dK and dV that came, or begin them; dkv is [2, B, Hkv, Ls, D]."""
    for target, part in zip(dkv, share, strict=True):
        if first:
            target.copy_(part.tensor())
        elif part.total is not None:
            target.add_(part.total)
