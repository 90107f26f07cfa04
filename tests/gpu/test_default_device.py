"""A rank on a GPU has it as torch's default device; tensors that lie elsewhere stay there.

The default is the meta device here: what were made on it would have no numbers.
"""

from __future__ import annotations

import pytest
import torch

from ringlab import Interleaved, Layout, World, apply_rope
from ringlab.numerics import attend, attend_backward
from tests import oracle
from tests.decode import cases as decode
from tests.gpu.test_kernels import LSE
from tests.numerics.cases import ON_CPU, TOLERANCE, assert_near, case
from tests.prefill import cases as prefill

SIZE = 3
elsewhere = torch.device("meta")


@pytest.mark.parametrize(("kernel", "dtype"), ON_CPU)
@pytest.mark.parametrize("kind", ["full", "diagonal", "mask"])
def test_a_block_is_computed_where_it_lies(kernel: str, dtype: torch.dtype, kind: str) -> None:
    q, k, v, dout = case(dtype=dtype)
    mask = torch.ones(7, 9, dtype=torch.bool).tril(-1) if kind == "mask" else None
    options = {"causal": kind == "diagonal", "mask": mask}
    with elsewhere:
        done = attend(q, k, v, kernel=kernel, **options)
        found = attend_backward(dout, q, k, v, done.out, done.lse, kernel=kernel, **options)
        done = done.merge(done.empty(*q.shape, dtype=q.dtype))
    exact = oracle.attention(q, k, v, dout, **options)
    assert_near(done.lse, exact.lse, LSE[dtype])
    for one, expected in zip(
        (done.out, *found), (exact.out, exact.dq, exact.dk, exact.dv), strict=True
    ):
        assert_near(one, expected, 3 * TOLERANCE[dtype])


@prefill.every_method
@prefill.every_layout
def test_prefill_computes_where_its_tensors_lie(method: prefill.Attend, layout: Layout) -> None:
    given = prefill.inputs(37)

    def step() -> prefill.Step:
        with elsewhere:
            return prefill.step(method, given, layout, causal=True)

    found = World(SIZE).run(step)
    with elsewhere:
        whole = prefill.whole(found, layout)
    prefill.assert_exact(whole, given, causal=True)


@decode.every_method
def test_decode_computes_where_its_tensors_lie(method: str) -> None:
    given = decode.sequence(29, 2)

    def attend_there() -> torch.Tensor:
        with elsewhere:
            cache = decode.filled(given, layout=Interleaved(2))
            return decode.decode_attention(given.q, cache, method=method)

    for out in World(SIZE).run(attend_there):
        decode.assert_exact(out, given)


def test_rotary_embeddings_turn_what_they_get() -> None:
    x, positions = torch.randn(1, 2, 9, 8), torch.arange(9)
    expected = apply_rope(x, positions)
    with elsewhere:
        assert torch.equal(apply_rope(x, positions), expected)
