"""Zig-zag positions as people compute them, right and wrong."""

from __future__ import annotations

from itertools import accumulate, pairwise

import torch


def _pieces(size, length):
    return [piece.tolist() for piece in torch.arange(length).tensor_split(2 * size)]


def _slices(size, length, chunk):
    return [list(range(length))[i * chunk : (i + 1) * chunk] for i in range(2 * size)]


def right_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[rank] + pieces[-1 - rank] for rank in range(size)]


def right_b(size, length):
    short, longer = divmod(length, 2 * size)
    sizes = [short + (piece < longer) for piece in range(2 * size)]
    ends = [0, *accumulate(sizes)]
    runs = [range(a, b) for a, b in pairwise(ends)]
    return tuple((*runs[r], *runs[2 * size - 1 - r]) for r in range(size))


def right_c(size, length):
    held = [[] for _ in range(size)]
    short, longer = divmod(length, 2 * size)
    token = 0
    for piece in range(2 * size):
        rank = min(piece, 2 * size - 1 - piece)
        for _ in range(short + (1 if piece < longer else 0)):
            held[rank].append(token)
            token += 1
    return held


def late_piece_reversed_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[r] + pieces[2 * size - 1 - r][::-1] for r in range(size)]


def late_piece_reversed_b(size, length):
    pieces = torch.arange(length).tensor_split(2 * size)
    return [torch.cat([pieces[r], pieces[-1 - r].flip(0)]).tolist() for r in range(size)]


def late_piece_first_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[2 * size - 1 - r] + pieces[r] for r in range(size)]


def late_piece_first_b(size, length):
    pieces = torch.arange(length).tensor_split(2 * size)
    return [torch.cat([pieces[-1 - r], pieces[r]]).tolist() for r in range(size)]


def remainder_dropped_a(size, length):
    pieces = _slices(size, length, length // (2 * size))
    return [pieces[r] + pieces[2 * size - 1 - r] for r in range(size)]


def remainder_dropped_b(size, length):
    chunk = length // (2 * size)
    table = torch.arange(chunk * 2 * size).reshape(2 * size, chunk)
    return [[*table[r].tolist(), *table[2 * size - 1 - r].tolist()] for r in range(size)]


def remainder_to_the_last_piece_a(size, length):
    chunk = length // (2 * size)
    pieces = _slices(size, length, chunk)
    pieces[-1] = list(range((2 * size - 1) * chunk, length))
    return [pieces[r] + pieces[-1 - r] for r in range(size)]


def remainder_to_the_last_piece_b(size, length):
    chunk, held = length // (2 * size), []
    for rank in range(size):
        early = list(range(rank * chunk, (rank + 1) * chunk))
        first = (2 * size - 1 - rank) * chunk
        late = list(range(first, first + chunk if rank else length))
        held.append(early + late)
    return held


def rounded_up_a(size, length):
    pieces = _slices(size, length, -(-length // (2 * size)))
    return [pieces[r] + pieces[2 * size - 1 - r] for r in range(size)]


def rounded_up_b(size, length):
    pieces = torch.arange(length).chunk(2 * size)
    return [torch.cat([pieces[r], pieces[2 * size - 1 - r]]).tolist() for r in range(size)]


def longer_pieces_elsewhere_a(size, length):
    ends = [piece * length // (2 * size) for piece in range(2 * size + 1)]
    pieces = [list(range(a, b)) for a, b in pairwise(ends)]
    return [pieces[r] + pieces[-1 - r] for r in range(size)]


def longer_pieces_elsewhere_b(size, length):
    held = [[] for _ in range(size)]
    for piece in range(2 * size):
        rank = piece if piece < size else 2 * size - 1 - piece
        first, end = (int(i * length / (2 * size)) for i in (piece, piece + 1))
        held[rank].extend(range(first, end))
    return held


def mirror_of_w_pieces_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[r] + pieces[size - 1 - r] for r in range(size)]


def mirror_of_w_pieces_b(size, length):
    pieces = _pieces(size, length)[:size]
    return [first + last for first, last in zip(pieces, reversed(pieces), strict=True)]


def off_by_one_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[r] + pieces[(2 * size - r) % (2 * size)] for r in range(size)]


def off_by_one_b(size, length):
    pieces = _pieces(size, length)
    return [pieces[r] + pieces[-r] for r in range(size)]


def not_mirrored_a(size, length):
    pieces = _pieces(size, length)
    return [pieces[r] + pieces[size + r] for r in range(size)]


def not_mirrored_b(size, length):
    pieces = _pieces(size, length)
    return [a + b for a, b in zip(pieces[:size], pieces[size:], strict=True)]


def token_by_token_a(size, length):
    held = [[] for _ in range(size)]
    for token in range(length):
        place = token % (2 * size)
        held[min(place, 2 * size - 1 - place)].append(token)
    return held


def token_by_token_b(size, length):
    early = [list(range(r, length, 2 * size)) for r in range(size)]
    late = [list(range(2 * size - 1 - r, length, 2 * size)) for r in range(size)]
    return [sorted(a + b) for a, b in zip(early, late, strict=True)]


def striped_a(size, length):
    return [list(range(rank, length, size)) for rank in range(size)]


def striped_b(size, length):
    held = [[] for _ in range(size)]
    for token in range(length):
        held[token % size].append(token)
    return held


def contiguous_a(size, length):
    return [piece.tolist() for piece in torch.arange(length).tensor_split(size)]


def contiguous_b(size, length):
    short, longer = divmod(length, size)
    ends = [r * short + min(r, longer) for r in range(size + 1)]
    return [list(range(ends[r], ends[r + 1])) for r in range(size)]
