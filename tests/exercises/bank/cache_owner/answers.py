"""Places in a cache that is dealt out in runs, right and wrong."""

from __future__ import annotations


def right_a(token, block, size):
    rounds, place = divmod(token, block * size)
    return place // block, rounds * block + place % block


def right_b(token, block, size):
    rows = [0] * size
    for earlier in range(token):
        rows[earlier // block % size] += 1
    owner = token // block % size
    return owner, rows[owner]


def right_c(token, block, size):
    run, inside = divmod(token, block)
    rounds, rank = divmod(run, size)
    return [rank, block * rounds + inside]


def rank_and_row_swapped_a(token, block, size):
    rank, row = right_a(token, block, size)
    return row, rank


def rank_and_row_swapped_b(token, block, size):
    run, inside = divmod(token, block)
    return run // size * block + inside, run % size


def row_is_the_token_a(token, block, size):
    return token // block % size, token


def row_is_the_token_b(token, block, size):
    run, inside = divmod(token, block)
    return run % size, run * block + inside


def place_in_the_run_a(token, block, size):
    return token // block % size, token % block


def place_in_the_run_b(token, block, size):
    run = token // block
    return run % size, token - run * block


def number_of_the_run_a(token, block, size):
    return token // block % size, token // (block * size)


def number_of_the_run_b(token, block, size):
    rounds, rank = divmod(token // block, size)
    return rank, rounds


def first_row_of_the_run_a(token, block, size):
    return token // block % size, token // (block * size) * block


def first_row_of_the_run_b(token, block, size):
    rank, row = right_a(token, block, size)
    return rank, row - row % block


def dealt_token_by_token_a(token, block, size):
    return token // block % size, token // size


def dealt_token_by_token_b(token, block, size):
    rank = right_a(token, block, size)[0]
    return rank, (token - token % size) // size


def runs_ignored_a(token, block, size):
    return token % size, token // size


def runs_ignored_b(token, block, size):
    row, rank = divmod(token, size)
    return [rank, row]


def block_and_size_swapped_a(token, block, size):
    return token // size % block, token // (block * size) * block + token % block


def block_and_size_swapped_b(token, block, size):
    return right_a(token, size, block)


def never_comes_round_a(token, block, size):
    return token // block, token % block


def never_comes_round_b(token, block, size):
    run, inside = divmod(token, block)
    return run, run // size * block + inside


def one_token_early_a(token, block, size):
    return (token + 1) // block % size, (token + 1) // (block * size) * block + token % block


def one_token_early_b(token, block, size):
    return right_a(token + 1, block, size)
