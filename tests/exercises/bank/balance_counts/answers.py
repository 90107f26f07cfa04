"""Counts of pairs as people make them, right and wrong."""

from __future__ import annotations

from bisect import bisect_right

import torch


def _count(table_of_masks):
    return [[int(mask.sum()) for mask in row] for row in table_of_masks]


def _tiles(positions, rule, source=lambda r, t, w: (r - t) % w):
    p, w = [torch.tensor(mine, dtype=torch.int64) for mine in positions], len(positions)
    return [[rule(p[r][:, None], p[source(r, t, w)]) for t in range(w)] for r in range(w)]


def right_a(positions):
    return _count(_tiles(positions, lambda q, k: k <= q))


def right_b(positions):
    size = len(positions)
    table = []
    for rank, mine in enumerate(positions):
        row = []
        for step in range(size):
            keys = sorted(positions[rank - step])
            row.append(sum(bisect_right(keys, query) for query in mine))
        table.append(row)
    return table


def no_causal_mask_a(positions):
    size = len(positions)
    return [[len(positions[r]) * len(positions[r - t]) for t in range(size)] for r in range(size)]


def no_causal_mask_b(positions):
    return _count(_tiles(positions, lambda q, k: (q >= 0) & (k >= 0)))


def diagonal_left_out_a(positions):
    return _count(_tiles(positions, lambda q, k: k < q))


def diagonal_left_out_b(positions):
    table = right_b(positions)
    for row, mine in zip(table, positions, strict=True):
        row[0] -= len(mine)
    return table


def sees_the_future_a(positions):
    return _count(_tiles(positions, lambda q, k: q <= k))


def sees_the_future_b(positions):
    size, table = len(positions), []
    for rank in range(size):
        row = []
        for step in range(size):
            keys = positions[(rank - step) % size]
            row.append(sum(1 for query in positions[rank] for key in keys if not key < query))
        table.append(row)
    return table


def wrong_direction_a(positions):
    return _count(_tiles(positions, lambda q, k: k <= q, lambda r, t, w: (r + t) % w))


def wrong_direction_b(positions):
    return [[row[0], *reversed(row[1:])] for row in right_b(positions)]


def columns_by_owner_a(positions):
    return _count(_tiles(positions, lambda q, k: k <= q, lambda r, t, w: t))


def columns_by_owner_b(positions):
    return [
        [sum(key <= query for query in mine for key in keys) for keys in positions]
        for mine in positions
    ]


def rows_and_columns_swapped_a(positions):
    return [list(column) for column in zip(*right_a(positions), strict=True)]


def rows_and_columns_swapped_b(positions):
    size, table = len(positions), []
    for step in range(size):
        row = []
        for rank, mine in enumerate(positions):
            keys = positions[(rank - step) % size]
            row.append(sum(key <= query for query in mine for key in keys))
        table.append(row)
    return table


def rows_for_positions_a(positions):
    size = len(positions)
    n = [len(mine) for mine in positions]
    return [
        [int(torch.ones(n[r], n[r - t], dtype=torch.bool).tril().sum()) for t in range(size)]
        for r in range(size)
    ]


def rows_for_positions_b(positions):
    return right_b([list(range(len(mine))) for mine in positions])


def by_rank_alone_a(positions):
    size, table = len(positions), []
    for rank, mine in enumerate(positions):
        row = [len(mine) * (len(mine) + 1) // 2]
        for step in range(1, size):
            visible = rank - step >= 0
            row.append(len(mine) * len(positions[rank - step]) if visible else 0)
        table.append(row)
    return table


def by_rank_alone_b(positions):
    def pairs(rank, owner):
        if owner > rank:
            return 0
        if owner == rank:
            return sum(range(1, len(positions[rank]) + 1))
        return len(positions[rank]) * len(positions[owner])

    size = len(positions)
    return [[pairs(r, (r - t) % size) for t in range(size)] for r in range(size)]
