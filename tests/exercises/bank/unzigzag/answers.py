"""The way back as people write it, right and wrong."""

from __future__ import annotations

import torch


def _order(shards):
    size, length = len(shards), sum(x.shape[2] for x in shards)
    pieces = torch.arange(length).tensor_split(2 * size)
    return torch.cat([part for r in range(size) for part in (pieces[r], pieces[-1 - r])])


def _halves(shards, up=1):
    return [
        x.split([(x.shape[2] + up) // 2, x.shape[2] - (x.shape[2] + up) // 2], 2) for x in shards
    ]


def right_a(shards):
    return torch.cat(shards, dim=2).index_select(2, _order(shards).argsort())


def right_b(shards):
    whole = torch.cat(shards, dim=2)
    result = torch.empty_like(whole)
    result[:, :, _order(shards)] = whole
    return result


def right_c(shards):
    result = []
    for x in shards:
        result.append(x[:, :, : -(-x.shape[2] // 2)])
    for x in reversed(shards):
        result.append(x[:, :, -(-x.shape[2] // 2) :])
    return torch.cat(result, dim=2)


def end_to_end_a(shards):
    return torch.cat(shards, dim=2)


def end_to_end_b(shards):
    whole = shards[0]
    for x in shards[1:]:
        whole = torch.cat([whole, x], dim=-2)
    return whole.clone()


def layout_again_a(shards):
    return torch.cat(shards, dim=2)[:, :, _order(shards)]


def layout_again_b(shards):
    whole = torch.cat(shards, dim=2)
    rows = [whole[:, :, token] for token in _order(shards).tolist()]
    return torch.stack(rows, dim=2)


def late_pieces_not_turned_a(shards):
    early, late = zip(*_halves(shards), strict=True)
    return torch.cat([*early, *late], dim=2)


def late_pieces_not_turned_b(shards):
    pieces = []
    for first in (True, False):
        for x in shards:
            middle = (x.shape[2] + 1) // 2
            pieces.append(x[:, :, :middle] if first else x[:, :, middle:])
    return torch.cat(pieces, dim=2)


def late_half_flipped_a(shards):
    early, late = zip(*_halves(shards), strict=True)
    return torch.cat([*early, torch.cat(late, dim=2).flip(2)], dim=2)


def late_half_flipped_b(shards):
    early, late = zip(*_halves(shards), strict=True)
    return torch.cat([*early, *(x.flip(2) for x in reversed(late))], dim=2)


def short_piece_first_a(shards):
    early, late = zip(*_halves(shards, up=0), strict=True)
    return torch.cat([*early, *late[::-1]], dim=2)


def short_piece_first_b(shards):
    front, back = [], []
    for x in shards:
        half = x.shape[2] // 2
        front.append(x[:, :, :half])
        back.insert(0, x[:, :, half:])
    return torch.cat(front + back, dim=2)


def striped_back_a(shards):
    return torch.stack(shards, dim=3).flatten(2, 3)


def striped_back_b(shards):
    length, size = sum(x.shape[2] for x in shards), len(shards)
    result = torch.empty(*shards[0].shape[:2], length, shards[0].shape[3])
    for rank, x in enumerate(shards):
        result[:, :, rank::size] = x
    return result
