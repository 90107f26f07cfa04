"""C: no length is refused, padded or counted twice, and a rank may hold nothing."""

from __future__ import annotations

from hypothesis import strategies as st

from ringlab import World, cost, ring_attention
from tests.faults.drawn import PRIMES, Problem, problems, search, two_tiers
from tests.prefill.cases import assert_exact, step, whole

hard = st.one_of(st.integers(0, 17), st.sampled_from(PRIMES), st.just(64))


def expected_traffic(problem: Problem) -> cost.Traffic:
    """What the closed forms say that a forward and a backward send."""
    shape = (problem.batch, problem.kv_heads, problem.head_dim)
    call = cost.Prefill(
        problem.layout, problem.size, problem.length, *shape, problem.dtype, problem.causal
    )
    traffic = cost.Traffic(()) if problem.told else cost.handshake(problem.size)
    if problem.method is ring_attention:
        return traffic.then(cost.ring_forward(call)).then(cost.ring_backward(call))
    return traffic.then(cost.all_gather_forward(call)).then(cost.all_gather_backward(call))


def check_length(problem: Problem) -> None:
    given, world = problem.inputs(), World(problem.size, order=problem.order)
    parts = world.run(step, problem.method, given, problem.layout, **problem.options)
    assert_exact(whole(parts, problem.layout), given, causal=problem.causal)
    held = problem.layout.lengths(problem.size, problem.length)
    assert [part.out.shape[2] for part in parts] == list(held)
    sent = expected_traffic(problem)
    for rank in range(problem.size):
        assert world.timeline.hops(rank) == sent.hops(rank)
        assert world.timeline.bytes_sent(rank) == sent.bytes_sent(rank)
        assert world.timeline.bytes_received(rank) == sent.bytes_received(rank)


@two_tiers(few=15, many=150)
def test_any_length_is_computed_exactly_with_the_bytes_of_the_formula(examples: int) -> None:
    search(problems(length=hard), check_length, examples)
