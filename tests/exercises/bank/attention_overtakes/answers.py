"""The length at which attention overtakes the rest, right and wrong."""

from __future__ import annotations

from itertools import count


def _first(more):
    """The smallest length for which it holds, by doubling and halving."""
    high = next(2**power for power in count() if more(2**power))
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if more(middle) else (middle, high)
    return high


def right_a(parameters, layers, heads, kv_heads, head_dim):
    return _first(lambda n: 4 * head_dim * heads * layers * n * (n + 1) // 2 > 2 * parameters * n)


def right_b(parameters, layers, heads, kv_heads, head_dim):
    quotient, _left = divmod(parameters, heads * head_dim * layers)
    return quotient


def no_causal_mask_a(parameters, layers, heads, kv_heads, head_dim):
    return _first(lambda n: 4 * head_dim * heads * layers * n * n > 2 * parameters * n)


def no_causal_mask_b(parameters, layers, heads, kv_heads, head_dim):
    return parameters // (2 * head_dim * heads * layers) + 1


def kv_heads_counted_a(parameters, layers, heads, kv_heads, head_dim):
    return parameters // (layers * kv_heads * head_dim)


def kv_heads_counted_b(parameters, layers, heads, kv_heads, head_dim):
    return right_a(parameters, layers, kv_heads, kv_heads, head_dim)


def scores_only_a(parameters, layers, heads, kv_heads, head_dim):
    return _first(lambda n: head_dim * heads * layers * n * (n + 1) > 2 * parameters * n)


def scores_only_b(parameters, layers, heads, kv_heads, head_dim):
    return 2 * parameters // (layers * heads * head_dim)


def one_flop_a_parameter_a(parameters, layers, heads, kv_heads, head_dim):
    return _first(lambda n: 2 * head_dim * heads * layers * n * (n + 1) > parameters * n)


def one_flop_a_parameter_b(parameters, layers, heads, kv_heads, head_dim):
    return parameters // (2 * layers * heads * head_dim)


def one_layer_only_a(parameters, layers, heads, kv_heads, head_dim):
    return parameters // (heads * head_dim)


def one_layer_only_b(parameters, layers, heads, kv_heads, head_dim):
    return right_a(parameters, 1, heads, kv_heads, head_dim)


def one_token_late_a(parameters, layers, heads, kv_heads, head_dim):
    return _first(lambda n: 2 * head_dim * heads * layers * n * n > 2 * parameters * n)


def one_token_late_b(parameters, layers, heads, kv_heads, head_dim):
    return int(parameters // (layers * heads * head_dim)) + 1
