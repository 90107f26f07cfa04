"""From which length on results are smaller than keys and values."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise, Mistake
from ringlab.grade.formulas import cases_of, computes, observe, result, up
from ringlab.grade.looks import results


def _result(heads: int, head_dim: int, new_tokens: int) -> int:
    """Bytes of out and LSE of one rank, in float32."""
    return new_tokens * heads * (head_dim + 1) * 4


def _token(kv_heads: int, head_dim: int, itemsize: int) -> int:
    """Bytes of the key and value of one token."""
    return 2 * kv_heads * head_dim * itemsize


def _right(heads: int, kv_heads: int, head_dim: int, itemsize: int, new_tokens: int) -> int:
    found = _result(heads, head_dim, new_tokens)
    return found // _token(kv_heads, head_dim, itemsize) + 1


def _at_a_tie(heads: int, kv_heads: int, head_dim: int, itemsize: int, new_tokens: int) -> int:
    return up(_result(heads, head_dim, new_tokens), _token(kv_heads, head_dim, itemsize))


def _rounded_down(**asked: int) -> int:
    return _right(**asked) - 1


def _keys_only(heads: int, kv_heads: int, head_dim: int, itemsize: int, new_tokens: int) -> int:
    token = _token(kv_heads, head_dim, itemsize) // 2
    return _result(heads, head_dim, new_tokens) // token + 1


def _one_kind_of_head(**asked: int) -> int:
    return _right(**{**asked, "kv_heads": asked["heads"]})


def _one_new_token(**asked: int) -> int:
    return _right(**{**asked, "new_tokens": 1})


def _no_lse(heads: int, kv_heads: int, head_dim: int, itemsize: int, new_tokens: int) -> int:
    found = new_tokens * heads * head_dim * 4
    return found // _token(kv_heads, head_dim, itemsize) + 1


def _narrow(heads: int, kv_heads: int, head_dim: int, itemsize: int, new_tokens: int) -> int:
    found = _result(heads, head_dim, new_tokens) // 4 * itemsize
    return found // _token(kv_heads, head_dim, itemsize) + 1


_case = cases_of("heads", "kv_heads", "head_dim", "itemsize", "new_tokens")

EXERCISE = Exercise(
    name="split_k_from",
    lesson="06",
    title="From which length on",
    minutes=10,
    difficulty=2,
    objective="say for any model from how many tokens on results are smaller than the cache",
    signature="split_k_from(heads, kv_heads, head_dim, itemsize, new_tokens)",
    hints=(
        "What does one rank give to the others by each method? Both are sent equally often, so "
        "ranks do not matter; which sizes are in one of the two and not in the other?",
        "A result has D + 1 numbers of four bytes for each query head and new token; a token of "
        "the cache has a key and a value for each KV head. Fewer means fewer: at a tie one token "
        "more is needed.",
    ),
    checks=(Check("tokens", 4, results(result(_right))),),
    cases=(
        _case("Llama 3.1 70B, one new token", 64, 8, 128, 2, 1),
        _case("the same, four new tokens", 64, 8, 128, 2, 4),
        _case("no grouped queries, a cache of 4 bytes a number", 16, 16, 64, 4, 3),
        _case("one KV head, a cache of 1 byte a number", 48, 1, 96, 1, 2),
        _case("a tie", 8, 2, 4, 2, 1),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "at_a_tie",
            "Where the quotient is whole, both methods send as much. Asked is from where on "
            "split-K sends fewer.",
            computes(_at_a_tie, _right),
        ),
        Mistake(
            "rounded_down",
            "One token too few: with your number split-K sends as much or more. Try it on both "
            "sides of your answer.",
            computes(_rounded_down, _right),
        ),
        Mistake(
            "values_forgotten",
            "Your number is about twice too large. A token has a key and a value, and both would "
            "be sent.",
            computes(_keys_only, _right),
        ),
        Mistake(
            "grouping_ignored",
            "You counted as many heads on both sides. Keys and values are kept for every KV head; "
            "results exist for every query head, also where several share a key.",
            computes(_one_kind_of_head, _right),
        ),
        Mistake(
            "one_new_token",
            "You counted one new token. Each new token has a result, while the cache would be "
            "sent once for all of them.",
            computes(_one_new_token, _right),
        ),
        Mistake(
            "lse_forgotten",
            "You counted D numbers a result. The LSE travels too; without it nobody knows what a "
            "rank counts for.",
            computes(_no_lse, _right),
        ),
        Mistake(
            "results_as_narrow_as_the_cache",
            "Results are in float32, four bytes a number, however narrow the cache is.",
            computes(_narrow, _right),
        ),
    ),
)
