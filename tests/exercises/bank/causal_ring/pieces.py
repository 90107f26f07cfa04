"""Masked attention to one block, and two ways to put blocks together."""

from __future__ import annotations

import torch

from tests.exercises.bank.ring_forward.pieces import (
    merge,
    packed_ring,
    place,
    repeated,
    ring_of_pairs,
    scores_of,
)


def positions(owner, tokens):
    return torch.arange(owner * tokens, (owner + 1) * tokens)


def table(rank, owner, tokens):
    """The causal mask of a tile, by positions."""
    return positions(owner, tokens) <= positions(rank, tokens)[:, None]


def triangle(tokens, diagonal=0):
    return torch.ones(tokens, tokens).tril(diagonal).bool()


def masked(q, k, v, allowed=None):
    """Output and LSE of one block; no mask if there is none given."""
    scores = scores_of(q, k)
    if allowed is not None:
        scores = scores.masked_fill(~allowed, -torch.inf)
    return scores.softmax(-1) @ repeated(q, v), scores.logsumexp(-1)


def by_merging(q, k, v, allowed, blocks=packed_ring):
    """``allowed(rank, owner, tokens)``: a table, True for no mask, False to skip the block."""
    rank, size = place()
    state = None
    for step, block in enumerate(blocks(k, v)):
        tile = allowed(rank, (rank - step) % size, q.shape[2])
        if tile is False:
            continue
        part = masked(q, *block, None if tile is True else tile)
        state = part if state is None else merge(*state, *part)
    return state[0]


def by_weights(q, k, v, allowed, blocks=ring_of_pairs):
    """The same with all partial results kept, and weighted at the end."""
    rank, size = place()
    parts = []
    for step, block in enumerate(blocks(k, v)):
        tile = allowed(rank, (size + rank - step) % size, q.shape[2])
        if tile is not False:
            parts.append(masked(q, *block, None if tile is True else tile))
    outs, lses = map(torch.stack, zip(*parts, strict=True))
    return (lses.softmax(0).unsqueeze(-1) * outs).sum(0)


def by_sums(q, k, v, allowed, blocks=packed_ring):
    """The same with a running maximum."""
    rank, size = place()
    shape = *q.shape[:3], 1
    largest, norm, total = torch.full(shape, -torch.inf), torch.zeros(shape), torch.zeros(q.shape)
    for step, block in enumerate(blocks(k, v)):
        tile = allowed(rank, (rank - step) % size, q.shape[2])
        if tile is False:
            continue
        scores = scores_of(q, block[0])
        scores = scores if tile is True else scores.masked_fill(~tile, -torch.inf)
        new = torch.maximum(largest, scores.amax(-1, keepdim=True))
        weights, factor = (scores - new).exp(), (largest - new).exp()
        norm = factor * norm + weights.sum(-1, keepdim=True)
        total = factor * total + weights @ repeated(q, block[1])
        largest = new
    return total / norm
