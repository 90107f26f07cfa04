"""B: gradients of q, k and v are those of one device, in the dtype of the inputs."""

from __future__ import annotations

from hypothesis import strategies as st

from ringlab import World
from tests import oracle
from tests.faults.drawn import (
    Problem,
    assert_near_float64,
    double,
    dtypes,
    problems,
    search,
    two_tiers,
)
from tests.prefill.cases import Step, step, whole


def check_gradients(problem: Problem) -> None:
    given = problem.inputs()
    world = World(problem.size, order=problem.order)
    parts = world.run(step, problem.method, given, problem.layout, **problem.options)
    exact = oracle.attention(*given, causal=problem.causal)
    found = whole(parts, problem.layout)
    want = Step(exact.out, exact.dq, exact.dk, exact.dv)
    assert_near_float64(found, want, problem.dtype)
    for part in parts:
        assert {x.dtype for x in part} == {problem.dtype}


@two_tiers(few=15, many=150)
def test_gradients_of_any_problem_are_those_of_one_device(examples: int) -> None:
    search(problems(of=st.one_of(double, dtypes)), check_gradients, examples)
