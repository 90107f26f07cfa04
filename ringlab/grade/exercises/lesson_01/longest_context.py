"""The longest context that fits on cards which share a sequence."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise, Mistake
from ringlab.grade.formulas import cases_of, computes, observe, result
from ringlab.grade.looks import results


def _per_token(layers: int, kv_heads: int, head_dim: int) -> int:
    return 2 * layers * kv_heads * head_dim * 2


def _right(card: int, weights: int, layers: int, kv_heads: int, head_dim: int, ranks: int) -> int:
    free = max(0, card - weights)
    return ranks * (free // _per_token(layers, kv_heads, head_dim))


def _weights_ignored(**asked: int) -> int:
    return _right(**{**asked, "weights": 0})


def _weights_divided(**asked: int) -> int:
    share = -(-asked["weights"] // asked["ranks"])
    return _right(**{**asked, "weights": share})


def _weights_once(card: int, weights: int, layers: int, kv_heads: int, head_dim: int,
                  ranks: int) -> int:  # fmt: skip
    return max(0, ranks * card - weights) // _per_token(layers, kv_heads, head_dim)


def _pooled(card: int, weights: int, layers: int, kv_heads: int, head_dim: int,
            ranks: int) -> int:  # fmt: skip
    return ranks * max(0, card - weights) // _per_token(layers, kv_heads, head_dim)


def _negative(card: int, weights: int, layers: int, kv_heads: int, head_dim: int,
              ranks: int) -> int:  # fmt: skip
    return ranks * ((card - weights) // _per_token(layers, kv_heads, head_dim))


def _one_card(**asked: int) -> int:
    return _right(**{**asked, "ranks": 1})


def _keys_only(card: int, weights: int, layers: int, kv_heads: int, head_dim: int,
               ranks: int) -> int:  # fmt: skip
    return ranks * (max(0, card - weights) // (_per_token(layers, kv_heads, head_dim) // 2))


_case = cases_of("card", "weights", "layers", "kv_heads", "head_dim", "ranks")

EXERCISE = Exercise(
    name="longest_context",
    lesson="01",
    title="The longest context that fits",
    minutes=15,
    difficulty=2,
    objective="say how long a context fits on cards that share a sequence, and what limits it",
    signature="longest_context(card, weights, layers, kv_heads, head_dim, ranks)",
    hints=(
        "What must stand on every card, however many there are? Fill one card first, and only "
        "then think of the others.",
        "Each card keeps all weights; what is left of it holds whole tokens, each with keys and "
        "values in every layer. If the weights alone do not fit, nothing does.",
    ),
    checks=(Check("tokens", 4, results(result(_right))),),
    cases=(
        _case("one card of 1,000,000 bytes", 1_000_000, 300_000, 4, 2, 16, 1),
        _case("the same card, four times", 1_000_000, 300_000, 4, 2, 16, 4),
        _case("an 8B model on 8 cards of 80 GB", 80 * 10**9, 16 * 10**9, 32, 8, 128, 8),
        _case("weights larger than a card, on 3 cards", 80 * 10**9, 141 * 10**9, 80, 8, 128, 3),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "weights_ignored",
            "You filled whole cards with keys and values. The weights stand there first.",
            computes(_weights_ignored, _right),
        ),
        Mistake(
            "weights_divided",
            "You divided the weights by the cards. Cards that share a sequence run the same model "
            "on different tokens: each needs all the weights.",
            computes(_weights_divided, _right),
        ),
        Mistake(
            "weights_once",
            "You took the weights off the memory of all cards together, once. Every card has a "
            "copy of them.",
            computes(_weights_once, _right),
        ),
        Mistake(
            "less_than_nothing",
            "Your answer is negative where the weights do not fit on a card. Then no token does: "
            "the answer is 0.",
            computes(_negative, _right),
        ),
        Mistake(
            "token_over_two_cards",
            "You divided the free memory of all cards together, and so put a token on two cards. "
            "Each card holds whole tokens.",
            computes(_pooled, _right),
        ),
        Mistake(
            "values_forgotten",
            "Your context is twice too long: a token has a key and a value in each layer.",
            computes(_keys_only, _right),
        ),
        Mistake(
            "one_card_only",
            "That is what one card holds. The others hold other tokens of the same sequence.",
            computes(_one_card, _right),
        ),
    ),
)
