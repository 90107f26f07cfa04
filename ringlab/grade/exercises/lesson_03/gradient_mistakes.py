"""Mistakes in the gradients that the backward of a ring computes and brings home."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from ringlab.grade.case import Case
from ringlab.grade.exercise import Mistake, Shows
from ringlab.grade.exercises.lesson_03 import ring, wrong_gradients
from ringlab.grade.exercises.lesson_03.backward import NAMES, chosen, right
from ringlab.grade.exercises.lesson_03.number_mistakes import rounded
from ringlab.grade.exercises.lesson_03.wrong_gradients import Rule, own_queries
from ringlab.grade.observation import Observation
from ringlab.grade.shows import Results, any_of, fails, gives


def _gives(wrong: Results, *names: str) -> Shows:
    """Shows in these of the three gradients, whatever the others are."""
    compare = gives(
        lambda case: chosen(wrong(case), names), lambda case: chosen(right(case), names)
    )
    return lambda case, seen: compare(case, replace(seen, results=chosen(seen.results, names)))


def _too_many_heads(case: Case, seen: Observation) -> bool | None:
    """The dk that came has as many heads as q."""
    q, k, _ = ring.inputs(case)
    if q.shape[1] == k.shape[1]:
        return None
    dk = [one[1] for one in seen.results if isinstance(one, (list, tuple)) and len(one) == 3]
    return bool(dk) and all(isinstance(x, Tensor) and x.shape[1:2] == q.shape[1:2] for x in dk)


def _other_dtype(case: Case, seen: Observation) -> bool | None:
    wanted = ring.inputs(case).q.dtype
    found = [x for one in seen.results if isinstance(one, (list, tuple)) for x in one]
    return any(isinstance(x, Tensor) and x.dtype != wanted for x in found)


_of = wrong_gradients.gradients
_next_block = _of(keys=lambda rank, size: wrong_gradients.own_keys((rank + 1) % size, size))
_own_alone = _of(keys=lambda rank, size: [(rank, rank)])
_no_own = _of(keys=lambda rank, size: wrong_gradients.own_keys(rank, size)[min(1, size - 1) :])
_own_again = _of(queries=lambda rank, size: [(rank, rank)] * size)
_neighbour_again = _of(
    queries=lambda rank, size: [(rank, rank)] + [(rank, (rank - 1) % size)] * (size - 1)
)
_last = _of(queries=lambda rank, size: own_queries(rank, size)[-1:])

NUMBERS = (
    Mistake(
        "last_hop_missing",
        "Your dK and dV are right, and on the wrong rank: each rank returns those of the next "
        "rank's tokens. After W - 1 hops a block's sum is complete one rank before its owner: one "
        "more hop brings it home.",
        _gives(_next_block, "dk", "dv"),
    ),
    Mistake(
        "kept_where_computed",
        "Each rank adds up what it computed for all blocks, and calls that its own dK and dV. "
        "What belongs to a foreign block must get back to the block's owner.",
        _gives(_of(keys=own_queries), "dk", "dv"),
    ),
    Mistake(
        "own_share_alone",
        "Your dK and dV hold what the rank's own queries gave. Every other rank's queries have "
        "seen these keys too, and their shares must come home.",
        _gives(_own_alone, "dk", "dv"),
    ),
    Mistake(
        "own_share_missing",
        "What came home is right, and the rank's own share, of step 0, is missing in dK and dV.",
        _gives(_no_own, "dk", "dv"),
    ),
    Mistake(
        "stale_kv",
        "Your dQ is that of one block, over and over: the hops bring other blocks, and the "
        "backward goes on with old K and V. Use the block that has arrived, and pass it on.",
        any_of(_gives(_own_again, "dq"), _gives(_neighbour_again, "dq")),
    ),
    Mistake(
        "dq_of_the_last_block",
        "Your dQ is that of the last block alone. Every block gives a share: add them up.",
        _gives(_last, "dq"),
    ),
    Mistake(
        "lse_of_the_block",
        "Your weights add up to 1 over each block. They are those of the softmax over *all* keys: "
        "exp(score - lse) with the lse that the forward saved.",
        _gives(_of(Rule(block_lse=True)), *NAMES),
    ),
    Mistake(
        "delta_forgotten",
        "dV is right, and in dQ and dK something is missing: the softmax's own derivative. From "
        "dout @ V.T the sum of dout * out over the head dimension is subtracted, one number for "
        "each query.",
        _gives(_of(Rule(delta=False)), "dq", "dk"),
    ),
    Mistake(
        "scale_missing",
        "A factor 1 / sqrt(D) is missing. It stands in the scores, and once more between the "
        "gradient of the scores and dQ, and dK.",
        any_of(
            _gives(_of(Rule(slope=0.0)), "dq"),
            _gives(_of(Rule(slope=0.0)), "dk"),
            _gives(_of(Rule(scores=0.0)), *NAMES),
            _gives(_of(Rule(scores=0.0, slope=0.0)), *NAMES),
        ),
    ),
    Mistake(
        "scale_twice",
        "A factor 1 / sqrt(D) is there twice: in the scores, or in dQ or dK. If q is scaled "
        "beforehand, the product with it is scaled already.",
        any_of(
            _gives(_of(Rule(slope=1.0)), "dq"),
            _gives(_of(Rule(slope=1.0)), "dk"),
            _gives(_of(Rule(scores=1.0)), *NAMES),
        ),
    ),
    Mistake(
        "query_heads_not_summed",
        "Several query heads share a KV head, so its gradient is the *sum* of what each of them "
        "gives: dK and dV have as many heads as K and V.",
        any_of(
            _too_many_heads,
            fails("RuntimeError", words="must match the size"),
            fails("RuntimeError", words="match the broadcast shape"),
            _gives(_of(heads=lambda x, n: x.unflatten(1, (n, -1))[:, :, 0]), "dk", "dv"),
            _gives(_of(heads=lambda x, n: x.unflatten(1, (n, -1)).mean(2)), "dk", "dv"),
        ),
    ),
    Mistake(
        "kv_heads_in_wrong_order",
        "The wrong query heads are summed. With G query heads to a KV head, query heads h G to "
        "h G + G - 1 share KV head h: neighbours, not every Hkv-th one.",
        _gives(_of(heads=lambda x, n: x.unflatten(1, (-1, n)).sum(1)), "dk", "dv"),
    ),
    Mistake(
        "other_dtype",
        "A gradient has another dtype than its tensor. Add up in float32, and return dq, dk and dv "
        "in the dtype of q, k and v.",
        _other_dtype,
    ),
    Mistake(
        "sixteen_bit_sums",
        "Right in float32, and too coarse in bfloat16: sums are rounded to 16 bits in every step, "
        "or on every hop. Add up and send dK and dV in float32, and round once, at home.",
        rounded(right),
    ),
)
"""Mistakes that show in the gradients."""
