"""From how many tokens on a hop hides."""

from __future__ import annotations

import math
from fractions import Fraction


def up(a, b):
    return -(-a // b)


def seconds(n, flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    """Of the compute of a step, and of a hop."""
    pairs = Fraction(n * n, 2 if causal else 1)
    return pairs * 4 * head_dim * heads / flops, Fraction(
        2 * n * head_dim * kv_heads * itemsize, bandwidth
    )


def first(hides):
    """The smallest number of tokens for which something holds, once it holds for good."""
    high = 1
    while not hides(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if hides(middle) else (middle, high)
    return high


def right_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    need = Fraction(itemsize, 2) * Fraction(kv_heads, heads) * Fraction(flops, bandwidth)
    return math.ceil(2 * need if causal else need)


def right_b(*given):
    """By trying."""

    def hides(n):
        compute, hop = seconds(n, *given)
        return compute >= hop

    return first(hides)


def right_c(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    """In floats, as on paper."""
    intensity = flops / bandwidth
    return math.ceil(itemsize / 2 * kv_heads / heads * intensity * (1 + causal))


def not_a_whole_number_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return itemsize / 2 * kv_heads / heads * flops / bandwidth * (2 if causal else 1)


def not_a_whole_number_b(*given):
    return float(right_a(*given))


def one_token_late_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    factor = 2 if causal else 1
    return kv_heads * itemsize * flops * factor // (2 * heads * bandwidth) + 1


def one_token_late_b(*given):
    def hides(n):
        compute, hop = seconds(n, *given)
        return compute > hop

    return first(hides)


def rounded_down_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return int(itemsize / 2 * kv_heads / heads * flops / bandwidth * (1 + causal))


def rounded_down_b(*given):
    def still_exposed(n):
        compute, hop = seconds(n + 1, *given)
        return compute > hop

    return first(still_exposed)


def mask_ignored_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return up(kv_heads * itemsize * flops, 2 * heads * bandwidth)


def mask_ignored_b(*given):
    return right_b(*given[:-1], False)


def mask_turned_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    whole = Fraction(kv_heads * itemsize * flops, 2 * heads * bandwidth)
    return math.ceil(whole / 2 if causal else whole)


def mask_turned_b(*given):
    """Half of the bytes, instead of half of the pairs."""

    def hides(n):
        compute, hop = seconds(n, *given[:-1], False)
        return compute >= (hop / 2 if given[-1] else hop)

    return first(hides)


def values_forgotten_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    need = Fraction(kv_heads * itemsize * flops, 4 * heads * bandwidth)
    return math.ceil(need * (1 + causal))


def values_forgotten_b(*given):
    def hides(n):
        compute, hop = seconds(n, *given)
        return 2 * compute >= hop

    return first(hides)


def half_the_flops_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    """One product, of a multiply and an add."""
    per_query = Fraction(2 * head_dim * heads, flops) / (2 if causal else 1)
    return math.ceil(Fraction(2 * head_dim * kv_heads * itemsize, bandwidth) / per_query)


def half_the_flops_b(*given):
    """Two products, and a FLOP for each multiply-add."""

    def hides(n):
        compute, hop = seconds(n, *given)
        return compute / 2 >= hop

    return first(hides)


def heads_exchanged_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return up(heads * itemsize * flops * (1 + causal), 2 * kv_heads * bandwidth)


def heads_exchanged_b(flops, bandwidth, *rest):
    heads, kv_heads, *more = rest
    return right_b(flops, bandwidth, kv_heads, heads, *more)


def grouping_ignored_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return up(itemsize * flops * (1 + causal), 2 * bandwidth)


def grouping_ignored_b(flops, bandwidth, heads, kv_heads, *rest):
    return right_b(flops, bandwidth, heads, heads, *rest)


def bits_for_bytes_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return up(kv_heads * 8 * itemsize * flops * (1 + causal), 2 * heads * bandwidth)


def bits_for_bytes_b(*given):
    def hides(n):
        compute, hop = seconds(n, *given)
        return compute >= 8 * hop

    return first(hides)


def two_bytes_assumed_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    return up(kv_heads * flops * (1 + causal), heads * bandwidth)


def two_bytes_assumed_b(*given):
    *most, _, causal = given
    return right_b(*most, 2, causal)


def head_dim_left_over_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    """Missing in the FLOPs."""
    above = 2 * kv_heads * head_dim * itemsize * flops * (1 + causal)
    return up(above, 4 * heads * bandwidth)


def head_dim_left_over_b(*given):
    """Missing in the bytes."""
    head_dim = given[4]

    def hides(n):
        compute, hop = seconds(n, *given)
        return compute >= hop / head_dim

    return first(hides)


def machine_turned_over_a(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal):
    need = Fraction(itemsize * kv_heads * bandwidth, 2 * heads * flops)
    return math.ceil(need * (1 + causal))


def machine_turned_over_b(flops, bandwidth, *rest):
    return right_b(bandwidth, flops, *rest)
