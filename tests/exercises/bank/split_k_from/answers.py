"""Lengths from which split-K sends less, as people compute them, right and wrong."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import count


def _first(result, token):
    return next(tokens for tokens in count() if tokens * token > result)


def right_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return _first(4 * new_tokens * heads * (head_dim + 1), 2 * kv_heads * head_dim * itemsize)


def right_b(*sizes):
    heads, kv_heads, head_dim, itemsize, new = sizes
    return (
        math.floor(Fraction(4 * new * heads * (head_dim + 1), 2 * kv_heads * head_dim * itemsize))
        + 1
    )


def at_a_tie_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    result, token = 4 * new_tokens * heads * (head_dim + 1), 2 * kv_heads * head_dim * itemsize
    return -(-result // token)


def at_a_tie_b(*sizes):
    heads, kv_heads, head_dim, itemsize, new = sizes
    result, tokens = 4 * new * heads * (head_dim + 1), 0
    while tokens * 2 * kv_heads * head_dim * itemsize < result:
        tokens += 1
    return tokens


def rounded_down_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return 4 * new_tokens * heads * (head_dim + 1) // (2 * kv_heads * head_dim * itemsize)


def rounded_down_b(*sizes):
    return right_a(*sizes) - 1


def values_forgotten_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return 4 * new_tokens * heads * (head_dim + 1) // (kv_heads * head_dim * itemsize) + 1


def values_forgotten_b(heads, kv_heads, head_dim, itemsize, new_tokens):
    return _first(4 * new_tokens * heads * (head_dim + 1), kv_heads * head_dim * itemsize)


def grouping_ignored_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return 4 * new_tokens * (head_dim + 1) // (2 * head_dim * itemsize) + 1


def grouping_ignored_b(heads, kv_heads, *others):
    return right_a(heads, heads, *others)


def grouping_ignored_c(_heads, kv_heads, *others):
    return right_b(kv_heads, kv_heads, *others)


def one_new_token_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return 4 * heads * (head_dim + 1) // (2 * kv_heads * head_dim * itemsize) + 1


def one_new_token_b(*sizes):
    *model, _new = sizes
    return right_a(*model, 1)


def lse_forgotten_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return 4 * new_tokens * heads * head_dim // (2 * kv_heads * head_dim * itemsize) + 1


def lse_forgotten_b(heads, kv_heads, head_dim, itemsize, new_tokens):
    return _first(2 * new_tokens * heads, kv_heads * itemsize)


def results_as_narrow_as_the_cache_a(heads, kv_heads, head_dim, itemsize, new_tokens):
    return new_tokens * heads * (head_dim + 1) // (2 * kv_heads * head_dim) + 1


def results_as_narrow_as_the_cache_b(heads, kv_heads, head_dim, itemsize, new_tokens):
    result = new_tokens * heads * (head_dim + 1) * itemsize
    return _first(result, 2 * kv_heads * head_dim * itemsize)
