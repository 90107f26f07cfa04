"""How many tokens a rank needs for a hop to hide behind the compute of a step."""

from __future__ import annotations

from ringlab.grade.exercise import Check, Exercise, Mistake
from ringlab.grade.formulas import cases_of, computes, observe, result, up
from ringlab.grade.looks import results
from ringlab.grade.shows import any_of


def _ratio(flops: int, bandwidth: int, heads: int, kv_heads: int, head_dim: int, itemsize: int,
           causal: int) -> tuple[int, int]:  # fmt: skip
    """The number of tokens from which on a hop hides, as numerator and denominator."""
    # pairs * 4 D Hq / F >= 2 n D Hkv b / S, with n^2 pairs, or half of them
    del head_dim
    return kv_heads * itemsize * flops * (2 if causal else 1), 2 * heads * bandwidth


def _right(**asked: int) -> int:
    return up(*_ratio(**asked))


def _times(numerator: int, denominator: int, **asked: int) -> int:
    """The right threshold times a fraction, rounded up at the end."""
    above, below = _ratio(**asked)
    return up(above * numerator, below * denominator)


def _keys_only(**asked: int) -> int:
    return _times(1, 2, **asked)


def _half_the_flops(**asked: int) -> int:
    return _times(2, 1, **asked)


def _mask_ignored(**asked: int) -> int:
    return _right(**{**asked, "causal": False})


def _mask_turned(**asked: int) -> int:
    return _times(1, 4 if asked["causal"] else 1, **asked)


def _one_kind_of_head(**asked: int) -> int:
    return _right(**{**asked, "kv_heads": asked["heads"]})


def _heads_exchanged(**asked: int) -> int:
    return _right(**{**asked, "kv_heads": asked["heads"], "heads": asked["kv_heads"]})


def _bits(**asked: int) -> int:
    return _times(8, 1, **asked)


def _two_bytes(**asked: int) -> int:
    return _right(**{**asked, "itemsize": 2})


def _width_below(**asked: int) -> int:
    return _times(asked["head_dim"], 1, **asked)


def _width_above(**asked: int) -> int:
    return _times(1, asked["head_dim"], **asked)


def _machine_turned(**asked: int) -> int:
    return _right(**{**asked, "flops": asked["bandwidth"], "bandwidth": asked["flops"]})


def _rounded_down(**asked: int) -> int:
    above, below = _ratio(**asked)
    return above // below


def _later(**asked: int) -> int:
    return _rounded_down(**asked) + 1


def _as_float(**asked: int) -> float:
    return float(_right(**asked))


def _not_rounded(**asked: int) -> float:
    above, below = _ratio(**asked)
    return above / below


# Dense FLOP/s of a chip, in bfloat16 and float32, and bytes/s of a link in one direction.
H100_NVLINK = 9894 * 10**11, 450 * 10**9
A100_INFINIBAND = 312 * 10**12, 25 * 10**9
H100_PCIE = 669 * 10**11, 63 * 10**9

_case = cases_of("flops", "bandwidth", "heads", "kv_heads", "head_dim", "itemsize", "causal")

EXERCISE = Exercise(
    name="overlap_threshold",
    lesson="05",
    title="From how many tokens a hop hides",
    minutes=15,
    difficulty=3,
    objective="say for any machine and model how many tokens a rank needs for its hops to hide",
    signature="overlap_threshold(flops, bandwidth, heads, kv_heads, head_dim, itemsize, causal)",
    hints=(
        "Write down the time of the compute of one step, and that of one hop, both for n tokens on "
        "a rank. Which of them grows with n, and which with its square?",
        "Compute: 4 D Hq FLOPs for each pair of a query and a key, n * n pairs, or half of them. "
        "Hop: a key and a value of Hkv heads for each of n tokens. One n and the D cancel. "
        "Multiply whole numbers, divide once and round up: -(-a // b).",
    ),
    checks=(Check("tokens", 4, results(result(_right))),),
    cases=(
        _case("a machine that can be done by hand", 2400, 10, 4, 2, 8, 2, False),
        _case("the same, causal zig-zag", 2400, 10, 4, 2, 8, 2, True),
        _case("an H100 on NVLink, 8 KV heads of 64", *H100_NVLINK, 64, 8, 128, 2, False),
        _case("an A100 on InfiniBand, causal, no GQA", *A100_INFINIBAND, 32, 32, 64, 2, True),
        _case("an H100 in float32 on PCIe, 3 KV heads of 24", *H100_PCIE, 24, 3, 96, 4, False),
    ),
    observe=observe,
    mistakes=(
        Mistake(
            "not_a_whole_number",
            "The number is right, but it is a float. Nobody has a part of a token: return the "
            "smallest integer that is not below it.",
            any_of(computes(_as_float, _right), computes(_not_rounded, _right)),
        ),
        Mistake(
            "one_token_late",
            "Where the division leaves nothing, compute and hop take equally long, and the hop is "
            "hidden. One token fewer is enough.",
            computes(_later, _right),
        ),
        Mistake(
            "rounded_down",
            "One token too few: with your number the hop takes a little longer than the compute. "
            "Round up.",
            computes(_rounded_down, _right),
        ),
        Mistake(
            "mask_ignored",
            "Right without a mask. Under a causal mask with zig-zag a step computes half of the "
            "pairs, and moves the same bytes: there is less to hide behind.",
            computes(_mask_ignored, _right),
        ),
        Mistake(
            "mask_turned",
            "Under a causal mask your threshold falls. Half of the compute is left and all of the "
            "bytes are, so a rank needs more tokens, not fewer.",
            computes(_mask_turned, _right),
        ),
        Mistake(
            "two_bytes_assumed",
            "Right for 16 bits only. A number has itemsize bytes.",
            computes(_two_bytes, _right),
        ),
        Mistake(
            "values_forgotten",
            "Your number is half of what it should be: a hop brings a key and a value for each "
            "token.",
            computes(_keys_only, _right),
        ),
        Mistake(
            "half_the_flops",
            "Your number is twice what it should be: you count half of the FLOPs. There are two "
            "products, scores and values, and a multiply and an add are two FLOPs: 4 D for each "
            "pair and query head.",
            computes(_half_the_flops, _right),
        ),
        Mistake(
            "heads_exchanged",
            "The heads have changed places. Query heads compute, KV heads travel: the more queries "
            "share a key, the easier it is to hide its transfer.",
            computes(_heads_exchanged, _right),
        ),
        Mistake(
            "grouping_ignored",
            "You count as many heads on both sides. All query heads compute, and only KV heads "
            "travel.",
            computes(_one_kind_of_head, _right),
        ),
        Mistake(
            "bits_for_bytes",
            "Your number is eight times too large: itemsize is in bytes, and so is the bandwidth.",
            computes(_bits, _right),
        ),
        Mistake(
            "head_dim_left_over",
            "The head dimension is in your result. It is in the FLOPs of a pair and in the bytes "
            "of a token, and cancels.",
            any_of(computes(_width_below, _right), computes(_width_above, _right)),
        ),
        Mistake(
            "machine_turned_over",
            "FLOPs and bandwidth have changed places. A faster chip has less time to hide behind, "
            "so it needs more tokens; a faster link needs fewer.",
            computes(_machine_turned, _right),
        ),
    ),
)
