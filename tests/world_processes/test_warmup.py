from __future__ import annotations

import pytest
import torch
import torch.distributed as dist

pytestmark = pytest.mark.processes


def test_report_f7_every_group_however_it_is_created_is_warmed_up_by_its_members(world):
    def work():
        from torch.distributed.device_mesh import init_device_mesh

        from ringlab.world.processes import hooks, last_op, warmup

        warmed = []

        class Note(last_op.Journal):
            def issue(self, group, method, args):
                warmed.append((method, tuple(dist.get_process_group_ranks(group)), self.muted))
                return super().issue(group, method, args)

        loud = Note()
        hooks.note_group(loud, dist.ProcessGroup)
        quiet = last_op.Journal()
        warmup.install(quiet, torch.device("cpu"), "gloo")
        dist.new_group([0, 2])
        dist.distributed_c10d.new_group([1, 2])
        init_device_mesh("cpu", (3, 1))
        return [ranks for _, ranks, _ in warmed]

    zero, one, two = world.run(work)
    world.close()
    assert zero[:2] == [(0, 1, 2), (0, 2)]
    assert one[:2] == [(0, 1, 2), (1, 2)]
    assert two[:3] == [(0, 1, 2), (0, 2), (1, 2)]
    for rank, warmed in enumerate((zero, one, two)):
        assert (rank,) in warmed  # the mesh's second dimension


def test_a_warm_up_leaves_no_trace_in_the_timeline(world):
    def work():
        import gc

        from ringlab.world.processes import last_op, warmup

        (journal,) = [o for o in gc.get_objects() if type(o) is last_op.Journal]
        warmup.install(journal, torch.device("cpu"), "gloo")
        dist.barrier(dist.new_group([0, 1, 2]))

    world.run(work)
    world.close()
    assert [e.name for e in world.timeline.communication().of(0)] == ["barrier", "barrier"]


def test_groups_of_other_backends_are_left_alone(world):
    def work():
        from ringlab.world.processes import last_op, warmup

        warmup.install(last_op.Journal(), torch.device("meta"), "nccl")  # would fail at once
        dist.new_group([0, 1])
        return True

    assert world.run(work) == [True] * 3
    world.close()
