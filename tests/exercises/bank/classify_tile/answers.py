"""Names of tiles, right and wrong."""

from __future__ import annotations

import torch


def named(empty, full):
    return "empty" if empty else "full" if full else "diagonal"


def by_table(allowed):
    return named(not allowed.any().item(), allowed.all().item())


def positions(first_query, queries, first_key, keys):
    """Queries as a column, keys as a row."""
    rows = torch.arange(first_query, first_query + queries)[:, None]
    return rows, torch.arange(first_key, first_key + keys)[None]


def right_a(first_query, queries, first_key, keys):
    if first_key + keys <= first_query + 1:
        return "full"
    return "empty" if first_key >= first_query + queries else "diagonal"


def right_b(*tile):
    rows, columns = positions(*tile)
    return by_table(columns <= rows)


def a_position_does_not_see_itself_a(first_query, queries, first_key, keys):
    return named(first_key >= first_query + queries - 1, first_key + keys - 1 < first_query)


def a_position_does_not_see_itself_b(*tile):
    rows, columns = positions(*tile)
    return by_table(columns < rows)


def one_past_the_end_a(first_query, queries, first_key, keys):
    last_query, last_key = first_query + queries, first_key + keys
    return named(first_key > last_query, last_key <= first_query)


def one_past_the_end_b(first_query, queries, first_key, keys):
    rows, columns = positions(first_query, queries + 1, first_key, keys + 1)
    return by_table(columns <= rows)


def chunk_numbers_compared_a(first_query, queries, first_key, keys):
    mine, theirs = first_query // queries, first_key // keys
    return named(theirs > mine, theirs < mine)


def chunk_numbers_compared_b(first_query, queries, first_key, keys):
    ahead = int(first_key / keys) - int(first_query / queries)
    if ahead == 0:
        return "diagonal"
    return "empty" if ahead > 0 else "full"


def starts_compared_a(first_query, queries, first_key, keys):
    return named(first_key > first_query, first_key < first_query)


def starts_compared_b(*tile):
    rows, columns = positions(*tile)
    ahead = (columns[0, 0] - rows[0, 0]).sign().item()
    return {1: "empty", 0: "diagonal", -1: "full"}[ahead]


def diagonal_for_the_own_block_only_a(first_query, queries, first_key, keys):
    if first_key >= first_query + queries:
        return "empty"
    return "diagonal" if first_key == first_query else "full"


def diagonal_for_the_own_block_only_b(*tile):
    rows, columns = positions(*tile)
    if rows[0] == columns[:, 0]:
        return "diagonal"
    return "full" if bool((columns <= rows).any()) else "empty"


def first_key_decides_a(first_query, queries, first_key, keys):
    return named(first_key >= first_query + queries, first_key <= first_query)


def first_key_decides_b(*tile):
    rows, columns = positions(*tile)
    column = columns[:, :1] <= rows
    return by_table(column)


def queries_and_keys_swapped_a(first_query, queries, first_key, keys):
    last_query, last_key = first_query + queries - 1, first_key + keys - 1
    return named(first_query > last_key, last_query <= first_key)


def queries_and_keys_swapped_b(*tile):
    rows, columns = positions(*tile)
    return by_table(rows <= columns)
