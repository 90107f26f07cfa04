"""Causal rings, right and wrong."""

from __future__ import annotations

import torch
import torch.distributed as dist

from tests.exercises.bank.causal_ring.pieces import (
    by_merging,
    by_sums,
    by_weights,
    masked,
    table,
    triangle,
)
from tests.exercises.bank.ring_forward.failures import (
    handle_not_waited_for_a,  # noqa: F401
    handle_not_waited_for_b,  # noqa: F401
    reads_before_wait_a,  # noqa: F401
    reads_before_wait_b,  # noqa: F401
    receives_into_what_is_sent_a,  # noqa: F401
    receives_into_what_is_sent_b,  # noqa: F401
    send_before_receive_a,  # noqa: F401
    send_before_receive_b,  # noqa: F401
    unmatched_last_send_a,  # noqa: F401
    unmatched_last_send_b,  # noqa: F401
)
from tests.exercises.bank.ring_forward.pieces import merge, place
from tests.exercises.bank.ring_forward.traffic import gathers_everything_a  # noqa: F401


def by_owner(rank, owner, tokens):
    """The right tile, without positions."""
    return triangle(tokens) if owner == rank else owner < rank


def by_position(rank, owner, tokens):
    """The right tile, by positions."""
    tile = table(rank, owner, tokens)
    return tile if tile.any() else False


def hop(held, to, source):
    arriving = torch.empty_like(held)
    ops = [dist.P2POp(dist.isend, held, to), dist.P2POp(dist.irecv, arriving, source)]
    return dist.batch_isend_irecv(ops), arriving


def right_a(q, k, v):
    return by_merging(q, k, v, by_owner)


def right_b(q, k, v):
    return by_sums(q, k, v, by_position)


def right_c(q, k, v):
    """Without the messages that nobody needs."""
    rank, size = place()
    held = torch.stack([k, v])
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    for step in range(size - 1):
        arriving, ops = torch.empty_like(held), []
        if step <= rank < size - 1:
            ops.append(dist.P2POp(dist.isend, held, rank + 1))
        if step < rank:
            ops.append(dist.P2POp(dist.irecv, arriving, rank - 1))
        for handle in dist.batch_isend_irecv(ops) if ops else []:
            handle.wait()
        if step < rank:
            held = arriving
            out, lse = merge(out, lse, *masked(q, *held))
    return out


def right_d(q, k, v):
    return by_weights(q, k, v, by_owner)


def skips_the_hop_too_a(q, k, v):
    rank, size = place()
    held, state = torch.stack([k, v]), None
    for step in range(size):
        owner = (rank - step) % size
        if owner > rank:
            continue
        handles, following = [], held
        if step < size - 1:
            handles, following = hop(held, (rank + 1) % size, (rank - 1) % size)
        part = masked(q, *held, triangle(q.shape[2]) if step == 0 else None)
        state = part if state is None else merge(*state, *part)
        for handle in handles:
            handle.wait()
        held = following
    return state[0]


def skips_the_hop_too_b(q, k, v):
    """Done when there is nothing left to compute."""
    rank, size = place()
    held = torch.stack([k, v])
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    for step in range(1, size):
        handles, held = hop(held, (rank + 1) % size, (rank - 1) % size)
        for handle in handles:
            handle.wait()
        if step > rank:
            break
        out, lse = merge(out, lse, *masked(q, *held))
    return out


def gathers_everything_b(q, k, v):
    rank, size = place()
    tokens = q.shape[2]
    everything = [torch.empty(2, *k.shape) for _ in range(size)]
    dist.all_gather(everything, torch.stack([k, v]))
    keys, values = torch.cat(everything, dim=3)
    rows = torch.arange(rank * tokens, (rank + 1) * tokens)
    return masked(q, keys, values, torch.arange(size * tokens) <= rows[:, None])[0]


def nan_from_empty_rows_a(q, k, v):
    return by_merging(q, k, v, table)


def nan_from_empty_rows_b(q, k, v):
    return by_weights(q, k, v, table)


def no_mask_a(q, k, v):
    return by_merging(q, k, v, lambda rank, owner, tokens: True)


def no_mask_b(q, k, v):
    return by_sums(q, k, v, lambda rank, owner, tokens: torch.ones(tokens, tokens).bool())


def own_block_not_masked_a(q, k, v):
    return by_merging(q, k, v, lambda rank, owner, tokens: owner <= rank)


def own_block_not_masked_b(q, k, v):
    def allowed(rank, owner, tokens):
        return torch.full((tokens, tokens), True) if table(rank, owner, tokens).any() else False

    return by_weights(q, k, v, allowed)


def own_mask_on_every_block_a(q, k, v):
    return by_merging(q, k, v, lambda rank, owner, tokens: triangle(tokens))


def own_mask_on_every_block_b(q, k, v):
    def allowed(rank, owner, tokens):
        rows = torch.arange(tokens)
        return False if owner > rank else rows <= rows[:, None]

    return by_sums(q, k, v, allowed)


def a_position_does_not_see_itself_a(q, k, v):
    def allowed(rank, owner, tokens):
        return triangle(tokens, -1) if owner == rank else owner < rank

    return by_merging(q, k, v, allowed)


def a_position_does_not_see_itself_b(q, k, v):
    """The first row, which has no keys, is made 0."""
    rank, _ = place()
    parts = []
    for step, block in enumerate(blocks_of(k, v)):
        if step <= rank:
            out, lse = masked(q, *block, None if step else triangle(q.shape[2], -1))
            parts.append((out.nan_to_num(0.0), lse))
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0).nan_to_num(0.0)[..., None] * outs).sum(0)


def blocks_of(k, v):
    rank, size = place()
    held = torch.stack([k, v])
    for step in range(size):
        yield held
        if step < size - 1:
            handles, held = hop(held, (rank + 1) % size, (rank - 1) % size)
            for handle in handles:
                handle.wait()


def a_position_does_not_see_itself_c(q, k, v):
    def allowed(rank, owner, tokens):
        return triangle(tokens, -1) if owner == rank else owner < rank

    return by_sums(q, k, v, allowed)


def skips_the_earlier_ones_a(q, k, v):
    def allowed(rank, owner, tokens):
        return triangle(tokens) if owner == rank else owner > rank

    return by_merging(q, k, v, allowed)


def skips_the_earlier_ones_b(q, k, v):
    def allowed(rank, owner, tokens):
        if owner < rank:
            return False
        return True if owner > rank else table(rank, owner, tokens)

    return by_weights(q, k, v, allowed)


def wrong_owner_a(q, k, v):
    rank, size = place()
    state = None
    for step, block in enumerate(blocks_of(k, v)):
        owner = (rank + step) % size
        if owner > rank:
            continue
        part = masked(q, *block, triangle(q.shape[2]) if owner == rank else None)
        state = part if state is None else merge(*state, *part)
    return state[0]


def wrong_owner_b(q, k, v):
    _, size = place()

    def allowed(rank, owner, tokens):
        thought = (rank + (rank - owner) % size) % size
        return by_position(rank, thought, tokens)

    return by_sums(q, k, v, allowed)


def backwards(k, v):
    rank, size = place()
    held = torch.stack([k, v])
    for step in range(size):
        yield (rank + step) % size, held
        if step < size - 1:
            handles, held = hop(held, (rank - 1) % size, (rank + 1) % size)
            for handle in handles:
                handle.wait()


def wrong_direction_a(q, k, v):
    rank, _ = place()
    out, lse = masked(q, k, v, triangle(q.shape[2]))
    for owner, block in backwards(k, v):
        if owner < rank:
            out, lse = merge(out, lse, *masked(q, *block))
    return out


def wrong_direction_b(q, k, v):
    rank, _ = place()
    tiles = ((by_position(rank, owner, q.shape[2]), block) for owner, block in backwards(k, v))
    parts = [masked(q, *block, tile) for tile, block in tiles if tile is not False]
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0)[..., None] * outs).sum(0)


def computes_everything_a(q, k, v):
    """The running maximum makes an empty tile harmless, if the own block comes first."""
    return by_sums(q, k, v, table)


def computes_everything_b(q, k, v):
    rank, size = place()
    out = lse = None
    for step, block in enumerate(blocks_of(k, v)):
        owner = (rank - step) % size
        tile = triangle(q.shape[2]) if owner == rank else None
        part, part_lse = masked(q, *block, tile)
        if owner > rank:
            part_lse = torch.full_like(part_lse, -torch.inf)
        out, lse = (part, part_lse) if out is None else merge(out, lse, part, part_lse)
    return out
