"""From which length on attention takes more FLOPs than all the rest of a model."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise, Mistake
from ringlab.grade.formulas import cases_of, computes, observe, result
from ringlab.grade.looks import results


def _right(parameters: int, layers: int, heads: int, kv_heads: int, head_dim: int) -> int:
    # 4 D H layers * L (L + 1) / 2 > 2 P L, for the first time.
    del kv_heads
    return parameters // (layers * heads * head_dim)


def _no_mask(parameters: int, layers: int, heads: int, kv_heads: int, head_dim: int) -> int:
    del kv_heads
    return parameters // (2 * layers * heads * head_dim) + 1


def _kv_heads(**asked: int) -> int:
    return _right(**{**asked, "heads": asked["kv_heads"]})


def _one_product(parameters: int, layers: int, heads: int, kv_heads: int, head_dim: int) -> int:
    del kv_heads
    return 2 * parameters // (layers * heads * head_dim)


def _one_flop(parameters: int, layers: int, heads: int, kv_heads: int, head_dim: int) -> int:
    del kv_heads
    return parameters // (2 * layers * heads * head_dim)


def _one_layer(**asked: int) -> int:
    return _right(**{**asked, "layers": 1})


def _rounded_up(**asked: int) -> int:
    return _right(**asked) + 1


_case = cases_of("parameters", "layers", "heads", "kv_heads", "head_dim")

EXERCISE = Exercise(
    name="attention_overtakes",
    lesson="01",
    title="Where attention overtakes the rest",
    minutes=20,
    difficulty=3,
    objective="say from which length on a prefill is mostly attention",
    signature="attention_overtakes(parameters, layers, heads, kv_heads, head_dim)",
    hints=(
        "Count both sides for L tokens. Every parameter is used once for each token. Every query "
        "head meets every pair of a token and one that is not later, in every layer.",
        "A multiply and an add are two FLOPs. The rest takes 2 P L. Attention has L (L + 1) / 2 "
        "pairs, and for each pair, head and layer a product of length D for the score and one for "
        "the output: 4 D. Solve for L, and try the numbers on both sides of your answer.",
    ),
    checks=(Check("tokens", 4, results(result(_right))),),
    cases=(
        _case("a model that can be done by hand", 1050, 2, 4, 2, 8),
        _case("70 billion parameters", 69_501_714_432, 80, 64, 8, 128),
        _case("8 billion parameters", 6_979_584_000, 32, 32, 8, 128),
        _case("a division that leaves nothing", 6400, 2, 4, 2, 8),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "no_causal_mask",
            "You counted all L x L pairs. Under the causal mask a token meets itself and those "
            "before it: L (L + 1) / 2 pairs.",
            computes(_no_mask, _right),
        ),
        Mistake(
            "kv_heads_counted",
            "You counted the KV heads. Keys are shared by several query heads, but every query "
            "head computes scores of its own.",
            computes(_kv_heads, _right),
        ),
        Mistake(
            "scores_only",
            "You counted one of the two products. After the scores, the values are summed with "
            "them, which takes as much again.",
            computes(_one_product, _right),
        ),
        Mistake(
            "one_flop_a_parameter",
            "On the side of the parameters a factor of two is missing: each one is multiplied and "
            "added, which is two FLOPs for each token.",
            computes(_one_flop, _right),
        ),
        Mistake(
            "one_layer_only",
            "You counted the attention of one layer against the parameters of all.",
            computes(_one_layer, _right),
        ),
        Mistake(
            "one_token_late",
            "One token too many. The diagonal counts: L (L + 1) / 2 pairs, not L x L / 2.",
            computes(_rounded_up, _right),
        ),
    ),
)
