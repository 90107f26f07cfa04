from __future__ import annotations

import os
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.distributed as dist

from ringlab.world.errors import RankFailed, WorldError
from ringlab.world.processes import ProcessRunner, checks

pytestmark = pytest.mark.processes


def test_results_come_in_rank_order_with_the_default_group_initialised(world):
    def work(base, *, step):
        total = torch.tensor(float(dist.get_rank()))
        dist.all_reduce(total)
        time.sleep(0.05 * (2 - dist.get_rank()))  # the last rank answers first
        return base + step * dist.get_rank(), dist.get_world_size(), total.item()

    assert world.run(work, (100,), {"step": 10}) == [(100, 3, 3.0), (110, 3, 3.0), (120, 3, 3.0)]


def test_functions_closures_lambdas_and_classes_need_no_module_that_ranks_can_import(world):
    @dataclass
    class Point:
        x: int

    offset = 7
    (first, *_) = world.run(lambda p: Point(p.x + offset + dist.get_rank()), (Point(1),))
    assert isinstance(first, Point)
    assert first.x == 8


@pytest.mark.parametrize(
    "tensor",
    [
        torch.randn(2, 3, 5),
        torch.randn(2, 3, 5).transpose(0, 2),
        torch.randn(4, 6)[:, ::2],
        torch.randn(1, 5).expand(4, 5),
        torch.randn(3).bfloat16(),
        torch.randn(3).to(torch.float8_e4m3fn),
        torch.tensor([True, False]),
        torch.tensor(3.0),
        torch.empty(0, 3),
        torch.randn(3, requires_grad=True),
        torch.nn.Parameter(torch.randn(3)),
    ],
    ids=lambda t: f"{tuple(t.shape)}-{t.dtype}",
)
def test_a_tensor_arrives_and_returns_as_it_was(world, tensor):
    def look(t):
        return t, tuple(t.shape), t.stride(), t.requires_grad, type(t).__name__

    for back, *seen in world.run(look, (tensor,)):
        assert seen == [
            tuple(tensor.shape), tensor.stride(), tensor.requires_grad, type(tensor).__name__,
        ]  # fmt: skip
        back, sent = back.detach(), tensor.detach()
        if sent.dtype.itemsize == 1:  # torch.equal does not know every type of one byte
            back, sent = back.view(torch.uint8), sent.view(torch.uint8)
        assert torch.equal(back, sent)


def test_a_view_sends_its_own_elements_and_not_the_storage_behind_it(world):
    view = torch.zeros(10_000_000)[:4]
    assert world.run(lambda t: t.untyped_storage().nbytes(), (view,)) == [16, 16, 16]


def test_large_tensors_travel_both_ways_at_once(world):
    big = torch.randn(4_000_000)  # 16 MB, far more than a socket holds
    for back in world.run(lambda t: t + 1, (big,)):
        torch.testing.assert_close(back, big + 1)


def test_each_rank_has_its_own_copy_of_the_arguments(world):
    tensor, items = torch.zeros(3), [1]

    def change(t, xs):
        t += 1
        xs.append(2)
        return t.sum().item()

    assert world.run(change, (tensor, items)) == [3.0, 3.0, 3.0]
    assert tensor.sum() == 0
    assert items == [1]


def test_the_random_numbers_of_a_rank_are_its_own_and_come_back_in_every_run():
    def draw():
        import random

        return torch.rand(1).item(), random.random(), np.random.rand()

    world = ProcessRunner(2, seed=5)
    first = world.run(draw)
    assert first[0] != first[1]
    assert world.run(draw) == first
    world.close()
    assert world.run(draw) == first  # other processes
    world.close()
    expected = torch.rand(1, generator=torch.Generator().manual_seed(5 + 1)).item()
    assert first[1][0] == expected


def test_ranks_see_environment_directory_and_import_path_of_the_moment(
    world, monkeypatch, tmp_path: Path
):
    (tmp_path / "only_here.py").write_text("answer = 42")

    def look():
        import only_here

        return os.environ.get("RINGLAB_TEST"), os.getcwd(), only_here.answer

    monkeypatch.setenv("RINGLAB_TEST", "set")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert world.run(look) == [("set", str(tmp_path), 42)] * 3


def test_ranks_start_in_the_environment_of_the_moment(monkeypatch):
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    world = ProcessRunner(2)

    def mismatch():
        dist.all_reduce(torch.ones(2 + dist.get_rank()))

    with pytest.raises(RankFailed, match="mismatch"):  # which only that setting detects
        world.run(mismatch)
    world.close()


def test_a_run_finds_the_surroundings_of_the_caller_whatever_the_last_run_did(world, tmp_path):
    def spoil(folder):
        os.environ["RINGLAB_TEST"] = "left over"
        del os.environ["PATH"]
        os.chdir(folder)
        sys.path.clear()
        torch.set_default_dtype(torch.float64)
        torch.set_num_threads(torch.get_num_threads() + 2)
        torch.set_grad_enabled(False)

    def look():
        return (
            os.environ.get("RINGLAB_TEST"), os.environ["PATH"], os.getcwd(), list(sys.path),
            torch.get_default_dtype(), torch.get_num_threads(), torch.is_grad_enabled(),
        )  # fmt: skip

    before = world.run(look)
    world.run(spoil, (str(tmp_path),))
    assert world.run(look) == before
    assert before[0][:4] == (None, os.environ["PATH"], os.getcwd(), sys.path)


def test_modes_of_the_caller_reach_the_ranks(world):
    def look():
        return (
            torch.is_grad_enabled(), torch.is_inference_mode_enabled(),
            torch.is_autocast_enabled("cpu"), torch.get_default_dtype(),
        )  # fmt: skip

    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        assert world.run(look) == [(False, False, True, torch.float32)] * 3
    with torch.inference_mode():
        assert world.run(look) == [(False, True, False, torch.float32)] * 3
    torch.set_default_dtype(torch.float64)
    try:
        assert world.run(look) == [(True, False, False, torch.float64)] * 3
    finally:
        torch.set_default_dtype(torch.float32)


def test_ranks_share_the_cores_unless_told_how_many_threads():
    untold, told = ProcessRunner(2), ProcessRunner(2, threads=3)
    (one, other) = untold.run(torch.get_num_threads)
    assert one == other >= 1
    assert one + other <= max(2, os.cpu_count() or 1)
    assert told.run(torch.get_num_threads) == [3, 3]
    untold.close()
    told.close()


def test_a_rank_knows_its_number_as_under_torchrun(world):
    def look():
        return os.environ["RANK"], os.environ["LOCAL_RANK"], os.environ["WORLD_SIZE"]

    assert world.run(look) == [("0", "0", "3"), ("1", "1", "3"), ("2", "2", "3")]


def test_groups_of_one_run_are_gone_in_the_next(world):
    def split():
        group = dist.new_group([0, 2])
        if dist.get_rank() != 1:
            dist.barrier(group)
        return len(dist.distributed_c10d._world.pg_map)

    assert world.run(split) == [2, 1, 2]
    assert world.run(split) == [2, 1, 2]


def test_the_same_processes_serve_run_after_run(world):
    assert world.run(os.getpid) == world.run(os.getpid) == world.pids


def test_a_world_of_one_rank_works():
    world = ProcessRunner(1)
    assert world.run(dist.get_world_size) == [1]
    world.close()


def test_a_closed_world_starts_again(world):
    before = world.run(os.getpid)
    world.close()
    assert world.pids == []
    world.close()
    after = world.run(os.getpid)
    assert set(before).isdisjoint(after)


def test_what_cannot_leave_the_process_is_refused_and_the_ranks_live_on(world):
    pids = world.run(os.getpid)
    lock = threading.Lock()
    with pytest.raises(TypeError, match=r"function or its arguments cannot be sent.*lock"):
        world.run(lambda: lock)
    assert world.run(os.getpid) == pids


def test_a_result_that_cannot_leave_its_rank_is_an_error_of_that_rank(world):
    with pytest.raises(RankFailed, match="the result of rank 1 cannot be sent") as caught:
        world.run(lambda: threading.Lock() if dist.get_rank() == 1 else 0)
    assert caught.value.rank == 1


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_message_that_nobody_received_is_told_and_never_reaches_the_next_run(world):
    def leave_one():
        if dist.get_rank() == 0:
            global _kept
            _kept = dist.isend(torch.ones(4), 1)

    def send_seven():
        x = torch.full((4,), 7.0)
        if dist.get_rank() == 0:
            dist.send(x, 1)
        elif dist.get_rank() == 1:
            x = torch.zeros(4)
            dist.recv(x, 0)
        return x.sum().item()

    with pytest.warns(RuntimeWarning, match=r"rank 0: send of 16 bytes to rank 1.*leave_one") as w:
        world.run(leave_one)
    assert w[0].filename == __file__
    assert world.run(send_seven) == [28.0, 28.0, 28.0]


def test_many_operations_left_behind_are_told_in_a_few_lines(world):
    def work():
        kept = []
        for _ in range(50):
            kept.append(dist.all_reduce(torch.ones(1), async_op=True))
        dist.barrier()

    with pytest.warns(RuntimeWarning, match=r"rank 2: all_reduce .*\(50 times\)") as caught:
        world.run(work)
    assert len(str(caught[0].message)) < 1500


def test_a_program_that_destroys_the_group_does_not_harm_the_next_run(world):
    with pytest.warns(RuntimeWarning, match="process group, which it destroyed"):
        world.run(dist.destroy_process_group)
    assert world.run(dist.get_world_size) == [3, 3, 3]


def test_threads_take_turns_on_one_world(world):
    results = {}

    def use(name):
        results[name] = world.run(lambda: (time.sleep(0.05), name)[1])

    threads = [threading.Thread(target=use, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {name: [name] * 3 for name in "abc"}


def test_a_run_whose_world_is_closed_by_another_thread_ends_and_says_so(world):
    threading.Timer(0.3, world.close).start()
    start = time.monotonic()
    with pytest.raises(WorldError, match="closed while it ran"):
        world.run(time.sleep, (60,))
    assert time.monotonic() - start < 5
    assert world.run(int) == [0, 0, 0]


def test_a_run_inside_a_run_of_the_same_world_is_refused():
    class Nosy:
        def write(self, text):
            nested.run(int)

        def flush(self):
            pass

    nested = ProcessRunner(1, stream=Nosy())
    with pytest.raises(WorldError, match="cannot start another"):
        nested.run(print, ("x",))
    nested.close()


def test_a_call_is_quick_once_the_ranks_are_there():
    world = ProcessRunner(4)
    world.run(int)
    times = []
    for _ in range(50):
        start = time.perf_counter()
        world.run(int)
        times.append(time.perf_counter() - start)
    world.close()
    assert min(times) < 0.010  # usually 1 to 2 ms


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 0}, "at least 1 rank; size is 0"),
        ({"size": True}, "size is True"),
        ({"backend": "mpi"}, "'mpi' is unknown"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"threads": 0}, "threads is 0"),
        ({"show": "never"}, "'never' is unknown"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_in_words(options, message):
    with pytest.raises(ValueError, match=message):
        ProcessRunner(**{"size": 2, **options})


def test_a_wrong_deadline_of_a_run_is_refused_in_words(world):
    with pytest.raises(ValueError, match="timeout is -1"):
        world.run(int, timeout=-1)


def test_windows_is_refused_in_words(monkeypatch):
    monkeypatch.setattr(checks.sys, "platform", "win32")
    with pytest.raises(WorldError, match="use the virtual world"):
        ProcessRunner(2)
