"""Bytes of K and V on a rank, for any split."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise, Mistake
from ringlab.grade.formulas import cases_of, computes, observe, result, up
from ringlab.grade.looks import results


def _bytes(layers: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int) -> int:
    return 2 * layers * kv_heads * head_dim * tokens * itemsize


def _right(layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int,
           tp: int, pp: int, cp: int) -> int:  # fmt: skip
    del heads
    return _bytes(up(layers, pp), up(kv_heads, tp), head_dim, up(tokens, cp), itemsize)


def _keys_only(**asked: int) -> int:
    return _right(**asked) // 2


def _query_heads(**asked: int) -> int:
    return _right(**{**asked, "kv_heads": asked["heads"]})


def _all_ranks(layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int,
               tp: int, pp: int, cp: int) -> int:  # fmt: skip
    del heads
    return _bytes(layers, kv_heads, head_dim, tokens, itemsize) // (tp * pp * cp)


def _down(layers: int, heads: int, kv_heads: int, head_dim: int, tokens: int, itemsize: int,
          tp: int, pp: int, cp: int) -> int:  # fmt: skip
    del heads
    shares = layers // pp, max(1, kv_heads // tp)
    return _bytes(*shares, head_dim, tokens // cp, itemsize)


def _bits(**asked: int) -> int:
    return 8 * _right(**asked)


def _one_layer(**asked: int) -> int:
    return _right(**{**asked, "layers": 1, "pp": 1})


def _stages_ignored(**asked: int) -> int:
    return _right(**{**asked, "pp": 1})


def _tensor_copies(**asked: int) -> int:
    return _right(**{**asked, "tp": 1})


_case = cases_of("layers", "heads", "kv_heads", "head_dim", "tokens", "itemsize", "tp", "pp", "cp")

EXERCISE = Exercise(
    name="kv_bytes",
    lesson="01",
    title="KV bytes of any split",
    minutes=15,
    difficulty=2,
    objective="say how many bytes of keys and values the fullest rank of any split holds",
    signature="kv_bytes(layers, heads, kv_heads, head_dim, tokens, itemsize, tp, pp, cp)",
    hints=(
        "Write the product for one card first. Which of its factors does each of tp, pp and cp "
        "divide, and which factor is not there at all?",
        "tp divides the KV heads, pp the layers, cp the tokens. Divide each factor by itself and "
        "round each up, since the fullest rank has the larger share; half a head does not exist.",
    ),
    checks=(Check("bytes", 4, results(result(_right))),),
    cases=(
        _case("one card, Llama 3.1 70B, 131,072 tokens", 80, 64, 8, 128, 131_072, 2, 1, 1, 1),
        _case("cp = 4, a length that 4 does not divide", 3, 6, 3, 16, 1001, 2, 1, 1, 4),
        _case("tp = 16 with 8 KV heads", 80, 64, 8, 128, 4096, 1, 16, 1, 1),
        _case("pp = 4 with 30 layers", 30, 32, 32, 64, 512, 4, 1, 4, 1),
        _case("tp = 2, pp = 3, cp = 5", 32, 32, 8, 128, 1000, 2, 2, 3, 5),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "values_forgotten",
            "Your number is half of what it should be: every token has a key and a value in each "
            "layer, so there is a factor of two.",
            computes(_keys_only, _right),
        ),
        Mistake(
            "query_heads_counted",
            "You counted the query heads. With grouped queries several query heads share a key and "
            "a value; only KV heads are kept.",
            computes(_query_heads, _right),
        ),
        Mistake(
            "bits_for_bytes",
            "Your number is eight times too large: itemsize is in bytes already.",
            computes(_bits, _right),
        ),
        Mistake(
            "one_layer_only",
            "That is one layer. Every layer has keys and values of its own.",
            computes(_one_layer, _right),
        ),
        Mistake(
            "stages_keep_all_layers",
            "With pipeline parallelism a rank holds the layers of its stage, and no keys of other "
            "layers: pp divides too.",
            computes(_stages_ignored, _right),
        ),
        Mistake(
            "heads_not_divided",
            "With tensor parallelism a rank computes some of the heads, and needs only their keys "
            "and values: tp divides the KV heads, as long as there are enough.",
            computes(_tensor_copies, _right),
        ),
        Mistake(
            "total_over_all_ranks",
            "You divided the total by the number of ranks. That is the mean, and it splits heads, "
            "layers and tokens into fractions. With 16 ranks and 8 KV heads each rank still holds "
            "a whole head; with 30 layers in 4 stages the fullest holds 8.",
            computes(_all_ranks, _right),
        ),
        Mistake(
            "rounds_down",
            "You rounded down: 1,001 tokens on 4 ranks would lose one. The fullest rank has the "
            "larger share.",
            computes(_down, _right),
        ),
    ),
)
