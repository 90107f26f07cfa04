"""Neighbours in a group, right and wrong."""

from __future__ import annotations

import torch.distributed as dist


def in_group(group):
    return dist.get_rank(group), dist.get_world_size(group)


def in_world(group, *numbers):
    return [dist.get_global_rank(group, number) for number in numbers]


def right_a(group):
    rank, size = in_group(group)
    return in_world(group, (rank + 1) % size, (rank - 1) % size)


def right_b(group):
    ranks = dist.get_process_group_ranks(group)
    at = ranks.index(dist.get_rank())
    return [(ranks + ranks)[at + 1], ranks[at - 1]]


def before_and_next_swapped_a(group):
    rank, size = in_group(group)
    return in_world(group, (rank - 1) % size, (rank + 1) % size)


def before_and_next_swapped_b(group):
    after, before = right_b(group)
    return before, after


def counts_in_the_world_a(group):
    rank, size = dist.get_rank(), dist.get_world_size()
    return [(rank + 1) % size, (rank - 1) % size]


def counts_in_the_world_b(group):
    rank, last = dist.get_rank(), dist.get_world_size() - 1
    return [0 if rank == last else rank + 1, rank - 1 if rank else last]


def group_numbers_returned_a(group):
    rank, size = in_group(group)
    return [(rank + 1) % size, (rank - 1) % size]


def group_numbers_returned_b(group):
    return [dist.get_group_rank(group, peer) for peer in right_a(group)]


def world_number_as_place_a(group):
    rank, size = dist.get_rank(), dist.get_world_size(group)
    return in_world(group, (rank + 1) % size, (rank - 1) % size)


def world_number_as_place_b(group):
    ranks = dist.get_process_group_ranks(group)
    rank = dist.get_rank()
    return [ranks[(rank + step) % len(ranks)] for step in (1, -1)]


def world_size_for_group_size_a(group):
    rank, size = dist.get_rank(group), dist.get_world_size()
    return in_world(group, (rank + 1) % size, (rank - 1) % size)


def world_size_for_group_size_b(group):
    ranks = dist.get_process_group_ranks(group)
    at, size = dist.get_rank(group), dist.get_world_size()
    return [ranks[(at + 1) % size], ranks[(at + size - 1) % size]]


def does_not_come_round_a(group):
    rank = dist.get_rank(group)
    return in_world(group, rank + 1, rank - 1)


def does_not_come_round_b(group):
    """A negative index comes round, one past the end does not."""
    ranks = dist.get_process_group_ranks(group)
    at = ranks.index(dist.get_rank())
    return [ranks[at + 1], ranks[at - 1]]
