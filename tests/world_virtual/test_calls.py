"""A call on tensors without data that was made before is not made again, and nobody can tell."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

from ringlab import World
from ringlab.numerics import AttentionState, attend, attend_backward
from ringlab.world.errors import BufferHazard


def forms(*tensors: torch.Tensor) -> list[object]:
    return [(t.shape, t.stride(), t.dtype, t.device) for t in tensors]


def everything(sequence_major: bool) -> list[object]:
    """The forms of all that the library's operators return."""
    shape = (2, 5, 4, 8) if sequence_major else (2, 4, 5, 8)
    q = torch.empty(shape, dtype=torch.bfloat16, device="meta")
    q = q.transpose(1, 2) if sequence_major else q
    k = torch.empty(2, 2, 7, 8, dtype=torch.bfloat16, device="meta")
    state = attend(q, k, k)
    merged = state.merge(attend(q, k, k))
    state.merge_(attend(q, k, k))
    grads = attend_backward(q, q, k, k, merged.out, merged.lse)
    return forms(state.out, state.lse, merged.out, merged.lse, *grads)


@pytest.mark.parametrize("sequence_major", [False, True])
def test_results_have_the_shapes_strides_and_dtypes_of_those_that_are_computed(sequence_major):
    seen = World(1).run(lambda: [everything(sequence_major) for _ in range(3)])
    assert seen[0] == 3 * [everything(sequence_major)]


def test_layouts_in_memory_do_not_get_mixed_up():
    def program():
        return [everything(each) for each in (True, False, True)]

    assert World(2).run(program) == 2 * [program()]


def test_results_are_tensors_of_their_own():
    def program():
        q = torch.empty(1, 2, 3, 8, device="meta")
        first, second = attend(q, q, q), attend(q, q, q)
        return first.out.untyped_storage()._cdata != second.out.untyped_storage()._cdata

    assert World(1).run(program) == [True]


def test_each_call_is_recorded_and_watched():
    def program():
        rank = dist.get_rank()
        q, k = torch.empty(2, 1, 2, 3, 8, device="meta").unbind()
        states = [attend(q, k, k) for _ in range(2)]
        states[0].merge_(states[1])
        states[0].merge_(states[1])
        work = dist.irecv(states[0].out, 0) if rank else dist.isend(states[0].out, 1)
        AttentionState.merge_(*states)
        work.wait()

    world = World(2)
    with pytest.raises(BufferHazard, match="merge_"):
        world.run(program)
    names = [event.name for event in world.timeline.of(0, "compute")]
    assert names == 2 * ["ringlab::attend"] + 3 * ["ringlab::merge_"]
