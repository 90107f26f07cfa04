"""Reported faults that need more than one floor of the library to show themselves."""

from __future__ import annotations

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh

from ringlab import Contiguous, Deadlock, Interleaved, Striped, World, ZigZag, ring_attention
from ringlab.numerics import attend, attend_backward, available_kernels
from tests import oracle
from tests.prefill.cases import METHODS, assert_exact, every_method, inputs, run, step, whole


def test_report_b7_all_kernels_of_this_machine_agree_on_the_backward():
    q, k, v, dout = inputs(37, dtype=torch.bfloat16)
    state = attend(q, k, v, causal=True, kernel="reference")
    final = (state.out, state.lse)
    want = attend_backward(dout, q, k, v, *final, causal=True, kernel="reference")
    kernels = [x.name for x in available_kernels() if x.usable and "cpu" in x.name]
    assert len(kernels) >= 2
    for name in kernels:
        got = attend_backward(dout, q, k, v, *final, causal=True, kernel=name)
        for mine, reference in zip(got, want, strict=True):
            assert (mine - reference).norm() < 0.01 * reference.norm(), name


@pytest.mark.parametrize("buckets", [1, 2, 3, 4])
@pytest.mark.parametrize("layout", [Striped(), Interleaved(1), Interleaved(2), Interleaved(3)])
def test_report_b11_stripes_are_right_with_any_number_of_blocks_a_rank(layout, buckets):
    block = getattr(layout, "block", 1)
    given = inputs(3 * block * buckets)
    assert_exact(run(ring_attention, given, 3, layout, causal=True), given, causal=True)


@every_method
@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("length", [1, 7, 15])
def test_report_c3_short_odd_documents_are_right_and_packing_them_is_refused(method, size, length):
    given = inputs(length)
    assert_exact(run(method, given, size, ZigZag(), causal=True), given, causal=True)
    with pytest.raises(NotImplementedError, match="packed documents"):
        method(*given[:3], cu_seqlens=torch.tensor([0, length]))


@every_method
def test_report_c9_documents_of_any_length_need_no_divisor(method):
    for length in (137, 89):
        given = inputs(length, batch=1)
        assert_exact(run(method, given, 8, ZigZag(), causal=True), given, causal=True)


@every_method
def test_report_c6_a_rank_without_tokens_takes_part(method):
    given, world = inputs(2), World(4)
    results = world.run(step, method, given, Contiguous(), causal=True)
    assert_exact(whole(results, Contiguous()), given, causal=True)
    assert [result.out.shape[2] for result in results] == [1, 1, 0, 0]
    collectives = [world.timeline.count("collective", rank) for rank in range(4)]
    assert len(set(collectives)) == 1


@every_method
def test_report_c13_what_stands_after_the_end_changes_nothing(method):
    real, padded = 11, 16
    given = inputs(padded)
    given.dout[:, :, real:] = 0
    short = type(given)(*(x[:, :, :real] for x in given))
    for filling in (0.0, 1e6):
        for x in given[:3]:
            x[:, :, real:] = filling
        found = run(method, given, 4, ZigZag(), causal=True)
        assert_exact(type(found)(*(x[:, :, :real] for x in found)), short, causal=True)


def blocking_exchange():
    """Both ranks send four megabytes first and receive then."""
    peer = 1 - dist.get_rank()
    dist.send(torch.zeros(2**20), peer)
    dist.recv(torch.zeros(2**20), peer)


@pytest.mark.parametrize("order", ["stream", "host"])
def test_report_f2_sending_first_on_both_sides_is_a_deadlock(order):
    with pytest.raises(Deadlock) as caught:
        World(2, order=order).run(blocking_exchange)
    assert caught.value.cycle == (0, 1)


@every_method
def test_report_f4_no_two_kinds_of_communication_are_in_flight_on_a_group(method):
    world = World(4)
    world.run(step, method, inputs(24), ZigZag(), causal=True)
    for rank in range(4):
        in_flight = {}
        for event in world.timeline.communication().of(rank):
            if event.kind == "wait":
                in_flight.pop(event.launch, None)
                continue
            in_flight[event.launch] = event.kind == "collective"
            assert len(set(in_flight.values())) == 1


def test_report_f8_both_ends_of_a_message_stand_in_the_same_hop():
    world = World(5)
    world.run(step, ring_attention, inputs(20), ZigZag(), causal=True, length=20)
    hops = [
        [
            (e.kind, e.peer, e.launch)
            for e in world.timeline.communication().of(rank)
            if e.kind != "wait"
        ]
        for rank in range(5)
    ]
    for rank in range(5):
        for kind, peer, launch in hops[rank]:
            assert ("recv" if kind == "send" else "send", rank, launch) in hops[peer]


@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("order", ["stream", "host"])
def test_report_f14_a_ring_needs_no_slot_to_buffer_in(size, order):
    given = inputs(3 * size)
    for method in METHODS:
        results = World(size, order=order).run(step, method, given, ZigZag(), causal=True)
        assert_exact(whole(results, ZigZag()), given, causal=True)


def rings_of_a_mesh(shape, given):
    """Attend in the rings along one axis of a mesh of ranks, then along the other."""
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=("outer", "inner"))
    found = {}
    for name in ("outer", "inner"):
        group = mesh.get_group(name)
        own = [ZigZag().shard(x, group.rank(), group.size()) for x in given[:3]]
        out = ring_attention(*own, layout=ZigZag(), causal=True, group=group)
        found[name] = (tuple(dist.get_process_group_ranks(group)), group.rank(), out)
    return found


@pytest.mark.parametrize("shape", [(2, 2), (2, 3), (3, 2), (1, 4), (4, 1)])
def test_report_g2_rings_along_both_axes_of_a_mesh_partition_the_world(shape):
    given = inputs(13)
    want = oracle.attention(*given[:3], causal=True).out
    size = shape[0] * shape[1]
    found = World(size).run(rings_of_a_mesh, shape, given)
    for name, members in (("outer", shape[0]), ("inner", shape[1])):
        rings = {found[rank][name][0] for rank in range(size)}
        assert sorted(r for ring in rings for r in ring) == list(range(size))
        assert {len(ring) for ring in rings} == {members}
        for ring in rings:
            joined = ZigZag().unshard([found[rank][name][2] for rank in ring])
            torch.testing.assert_close(joined, want, rtol=0, atol=1e-12)


def test_report_h3_a_message_that_is_not_contiguous_is_refused_by_the_world():
    def send_a_column():
        dist.isend(torch.zeros(4, 4)[:, 0], 1 - dist.get_rank())

    with pytest.raises(RuntimeError, match="not contiguous"):
        World(2).run(send_a_column)
