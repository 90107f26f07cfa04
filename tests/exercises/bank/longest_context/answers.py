"""The longest context as people compute it, right and wrong."""

from __future__ import annotations


def _token(layers, kv_heads, head_dim):
    return 4 * layers * kv_heads * head_dim


def right_a(card, weights, layers, kv_heads, head_dim, ranks):
    if weights > card:
        return 0
    return (card - weights) // (2 * 2 * layers * kv_heads * head_dim) * ranks


def right_b(card, weights, layers, kv_heads, head_dim, ranks):
    tokens = 0
    for _ in range(ranks):
        tokens += divmod(max(card - weights, 0), _token(layers, kv_heads, head_dim))[0]
    return tokens


def weights_ignored_a(card, weights, layers, kv_heads, head_dim, ranks):
    return ranks * (card // (4 * layers * kv_heads * head_dim))


def weights_ignored_b(card, weights, layers, kv_heads, head_dim, ranks):
    return right_a(card, 0, layers, kv_heads, head_dim, ranks)


def weights_divided_a(card, weights, layers, kv_heads, head_dim, ranks):
    free = card - -(-weights // ranks)
    return ranks * (max(0, free) // _token(layers, kv_heads, head_dim))


def weights_divided_b(card, weights, layers, kv_heads, head_dim, ranks):
    share = (weights + ranks - 1) // ranks
    return right_b(card, share, layers, kv_heads, head_dim, ranks)


def weights_once_a(card, weights, layers, kv_heads, head_dim, ranks):
    return max(0, ranks * card - weights) // (4 * layers * kv_heads * head_dim)


def weights_once_b(card, weights, layers, kv_heads, head_dim, ranks):
    memory = sum(card for _ in range(ranks)) - weights
    return int(max(memory, 0) // _token(layers, kv_heads, head_dim))


def less_than_nothing_a(card, weights, layers, kv_heads, head_dim, ranks):
    return ranks * ((card - weights) // (4 * layers * kv_heads * head_dim))


def less_than_nothing_b(card, weights, layers, kv_heads, head_dim, ranks):
    tokens, _left = divmod(card - weights, _token(layers, kv_heads, head_dim))
    return sum([tokens] * ranks)


def token_over_two_cards_a(card, weights, layers, kv_heads, head_dim, ranks):
    return ranks * max(0, card - weights) // _token(layers, kv_heads, head_dim)


def token_over_two_cards_b(card, weights, layers, kv_heads, head_dim, ranks):
    free = sum(max(0, card - weights) for _ in range(ranks))
    return free // (4 * layers * kv_heads * head_dim)


def values_forgotten_a(card, weights, layers, kv_heads, head_dim, ranks):
    return ranks * (max(0, card - weights) // (layers * kv_heads * head_dim * 2))


def values_forgotten_b(card, weights, layers, kv_heads, head_dim, ranks):
    key = 2 * head_dim * kv_heads
    return 0 if weights > card else (card - weights) // (key * layers) * ranks


def one_card_only_a(card, weights, layers, kv_heads, head_dim, ranks):
    return max(0, card - weights) // _token(layers, kv_heads, head_dim)


def one_card_only_b(card, weights, layers, kv_heads, head_dim, ranks):
    return right_b(card, weights, layers, kv_heads, head_dim, 1)
