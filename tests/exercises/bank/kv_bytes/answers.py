"""Bytes of keys and values as people compute them, right and wrong."""

from __future__ import annotations

import math
from fractions import Fraction


def right_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    up = math.ceil
    return (
        2 * up(Fraction(layers, pp)) * up(Fraction(kv_heads, tp)) * up(Fraction(tokens, cp))
        * head_dim * itemsize
    )  # fmt: skip


def right_b(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    total = 0
    for _layer in range(0, layers, pp):
        for _head in range(0, kv_heads, tp):
            total += 2 * len(range(0, tokens, cp)) * head_dim * itemsize
    return total


def right_c(*sizes):
    layers, _, kv_heads, head_dim, tokens, itemsize, tp, pp, cp = sizes
    shares = [(number + parts - 1) // parts
              for number, parts in ((layers, pp), (kv_heads, tp), (tokens, cp))]  # fmt: skip
    return math.prod([2, head_dim, itemsize, *shares])


def values_forgotten_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return -(-layers // pp) * -(-kv_heads // tp) * head_dim * -(-tokens // cp) * itemsize


def values_forgotten_b(*sizes):
    return right_c(*sizes) // 2


def query_heads_counted_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    per_token = 2 * -(-layers // pp) * -(-heads // tp) * head_dim * itemsize
    return per_token * -(-tokens // cp)


def query_heads_counted_b(layers, heads, kv_heads, *others):
    return right_b(layers, heads, heads, *others)


def bits_for_bytes_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    bits = itemsize * 8
    return 2 * -(-layers // pp) * -(-kv_heads // tp) * head_dim * -(-tokens // cp) * bits


def bits_for_bytes_b(*sizes):
    return right_c(*sizes) << 3


def one_layer_only_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return 2 * -(-kv_heads // tp) * head_dim * -(-tokens // cp) * itemsize


def one_layer_only_b(layers, *others):
    *front, _stages, cp = others
    return right_c(1, *front, 1, cp)


def stages_keep_all_layers_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return 2 * layers * -(-kv_heads // tp) * head_dim * -(-tokens // cp) * itemsize


def stages_keep_all_layers_b(*sizes):
    *front, _stages, cp = sizes
    return right_c(*front, 1, cp)


def heads_not_divided_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return 2 * -(-layers // pp) * kv_heads * head_dim * -(-tokens // cp) * itemsize


def heads_not_divided_b(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return right_a(layers, heads, kv_heads, head_dim, tokens, itemsize, 1, pp, cp)


def total_over_all_ranks_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return 2 * layers * kv_heads * head_dim * tokens * itemsize // (tp * pp * cp)


def total_over_all_ranks_b(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    total = right_a(layers, heads, kv_heads, head_dim, tokens, itemsize, 1, 1, 1)
    return int(Fraction(total, math.prod((tp, pp, cp))))


def rounds_down_a(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp):
    return 2 * (layers // pp) * max(1, kv_heads // tp) * head_dim * (tokens // cp) * itemsize


def rounds_down_b(*sizes):
    layers, _, kv_heads, head_dim, tokens, itemsize, tp, pp, cp = sizes
    local_heads = kv_heads // tp or 1
    local = [int(tokens / cp), local_heads, int(layers / pp)]
    return math.prod(local) * 2 * itemsize * head_dim
