"""Tables that people write for the ring, right and wrong."""

from __future__ import annotations

from collections import deque


def right_a(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(size)]


def right_b(size):
    held, table = deque(range(size)), []
    for _ in range(size):
        table.append(list(held))
        held.rotate(1)
    return table


def right_c(size):
    return tuple(tuple((size + rank - step) % size for rank in range(size)) for step in range(size))


def wrong_direction_a(size):
    return [[(rank + step) % size for rank in range(size)] for step in range(size)]


def wrong_direction_b(size):
    row, table = list(range(size)), []
    while len(table) < size:
        table.append(row)
        row = row[1:] + row[:1]
    return table


def rows_and_columns_swapped_a(size):
    return [[(rank - step) % size for step in range(size)] for rank in range(size)]


def rows_and_columns_swapped_b(size):
    return [list(column) for column in zip(*right_b(size), strict=True)]


def starts_one_hop_late_a(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(1, size + 1)]


def starts_one_hop_late_b(size):
    held, table = deque(range(size)), []
    for _ in range(size):
        held.rotate(1)
        table.append(list(held))
    return table


def nothing_moves_a(size):
    return [list(range(size)) for _ in range(size)]


def nothing_moves_b(size):
    table = []
    for _step in range(size):
        row = []
        for rank in range(size):
            row.append(rank)
        table.append(row)
    return table


def runs_off_the_end_a(size):
    return [[rank - step for rank in range(size)] for step in range(size)]


def runs_off_the_end_b(size):
    table = [list(range(size))]
    for _ in range(size - 1):
        table.append([block - 1 for block in table[-1]])
    return table


def one_step_too_many_a(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(size + 1)]


def one_step_too_many_b(size):
    return [*right_b(size), list(range(size))]


def last_step_missing_a(size):
    return [[(rank - step) % size for rank in range(size)] for step in range(size - 1)]


def last_step_missing_b(size):
    return right_b(size)[:-1]


def first_step_missing_a(size):
    return [[(rank - hop) % size for rank in range(size)] for hop in range(1, size)]


def first_step_missing_b(size):
    held, table = deque(range(size)), []
    for _ in range(size - 1):
        held.rotate(1)
        table.append(list(held))
    return table
