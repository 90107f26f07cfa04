"""Masks of a striped ring, right and wrong."""

from __future__ import annotations

import torch


def _lengths(rank, source, size, length):
    return len(range(rank, length, size)), len(range(source, length, size))


def _ones(rank, source, size, length):
    return torch.ones(*_lengths(rank, source, size, length), dtype=torch.bool)


def _compared(rank, source, size, length, rule):
    queries, keys = _lengths(rank, source, size, length)
    mask = torch.zeros(queries, keys, dtype=torch.bool)
    for i in range(queries):
        for j in range(keys):
            mask[i, j] = rule(i, j)
    return mask


def right_a(rank, source, size, length):
    return _ones(rank, source, size, length).tril(-1 if source > rank else 0)


def right_b(rank, source, size, length):
    queries, keys = (torch.arange(r, length, size) for r in (rank, source))
    return queries.unsqueeze(1) >= keys


def right_c(rank, source, size, length):
    later = int(source > rank)
    return _compared(rank, source, size, length, lambda i, j: j + later <= i)


def diagonal_everywhere_a(rank, source, size, length):
    return _ones(rank, source, size, length).tril()


def diagonal_everywhere_b(rank, source, size, length):
    return _compared(rank, source, size, length, lambda i, j: j <= i)


def diagonal_nowhere_a(rank, source, size, length):
    return _ones(rank, source, size, length).tril(-1)


def diagonal_nowhere_b(rank, source, size, length):
    return _compared(rank, source, size, length, lambda i, j: j < i)


def rule_turned_a(rank, source, size, length):
    return _ones(rank, source, size, length).tril(-1 if source < rank else 0)


def rule_turned_b(rank, source, size, length):
    earlier = int(source < rank)
    return _compared(rank, source, size, length, lambda i, j: j <= i - earlier)


def not_itself_a(rank, source, size, length):
    return _ones(rank, source, size, length).tril(-1 if source >= rank else 0)


def not_itself_b(rank, source, size, length):
    queries, keys = (torch.arange(r, length, size) for r in (rank, source))
    return keys < queries[:, None]


def no_mask_a(rank, source, size, length):
    return _ones(rank, source, size, length)


def no_mask_b(rank, source, size, length):
    return torch.full(_lengths(rank, source, size, length), True)


def future_instead_a(rank, source, size, length):
    queries, keys = (torch.arange(r, length, size) for r in (rank, source))
    return queries[:, None] <= keys[None, :]


def future_instead_b(rank, source, size, length):
    return right_a(source, rank, size, length).T


def true_where_forbidden_a(rank, source, size, length):
    return _ones(rank, source, size, length).triu(0 if source > rank else 1)


def true_where_forbidden_b(rank, source, size, length):
    queries, keys = (torch.arange(r, length, size) for r in (rank, source))
    return keys > queries[:, None]


def by_rank_alone_a(rank, source, size, length):
    if source == rank:
        return _ones(rank, source, size, length).tril()
    ones = _ones(rank, source, size, length)
    return ones if source < rank else ~ones


def by_rank_alone_b(rank, source, size, length):
    return _compared(
        rank, source, size, length, lambda i, j: source < rank or (source == rank and j <= i)
    )


def ranks_of_one_length_a(rank, source, size, length):
    n = length // size
    return torch.ones(n, n, dtype=torch.bool).tril(-1 if source > rank else 0)


def ranks_of_one_length_b(rank, source, size, length):
    rows = torch.arange(length // size) * size
    return rows + source <= (rows + rank)[:, None]


def padded_a(rank, source, size, length):
    n = (length + size - 1) // size
    return torch.ones(n, n, dtype=torch.bool).tril(-1 if source > rank else 0)


def padded_b(rank, source, size, length):
    rows = size * torch.arange(-(-length // size))
    return (rows + rank)[:, None] >= rows + source
