from __future__ import annotations

import signal
import threading
import time

import pytest
import torch
import torch.distributed as dist

from ringlab.grade.deadline import TooLong, deadline
from ringlab.grade.observe import alone, on_ranks

ONE = torch.ones(3)


def kind_of(answer, size: int = 2, **options) -> str:
    seen = on_ranks(answer, [(ONE,)] * size, **options)
    assert seen.failure is not None
    assert not seen.results
    return seen.failure.kind


def test_each_rank_gets_its_arguments_and_gives_its_result():
    seen = on_ranks(lambda x, n: x * n + dist.get_rank(), [(ONE, 2), (ONE, 5)])
    assert [out.tolist() for out in seen.results] == [[2.0] * 3, [6.0] * 3]
    assert seen.failure is None
    assert seen.timeline.world_size == 2


def test_an_argument_that_was_changed_is_named_and_the_original_is_not():
    mine = torch.zeros(2)
    seen = on_ranks(lambda a, b: b.add_(1), [(ONE, mine), (ONE, mine)])
    assert seen.changed == ("argument 2 on rank 0", "argument 2 on rank 1")
    assert mine.tolist() == [0.0, 0.0]


def test_what_an_answer_allocates_is_measured():
    seen = alone(lambda x: (torch.empty(1000), x)[1], ONE)
    assert seen.peaks == (4000,)


def test_a_rank_of_a_group_gets_it_and_others_are_left_out():
    def answer(x, group):
        return dist.get_rank(group), dist.get_process_group_ranks(group)

    seen = on_ranks(answer, [(ONE,)] * 5, groups=[[3, 1], [2, 4]])
    assert seen.results[0] is None
    assert seen.results[1] == (1, [3, 1]) or seen.results[1] == (0, [1, 3])
    assert seen.results[4] == (1, [2, 4])


def test_an_exception_is_told_with_the_line_of_the_answer_and_none_of_ours():
    def answer(x):
        raise LookupError("no such block")

    seen = alone(answer, ONE)
    assert seen.failure.kind == "LookupError"
    assert "no such block" in seen.failure.message
    assert "test_observe.py" in seen.failure.message
    assert 'observe.py", line' not in seen.failure.message.replace("test_observe.py", "")
    assert seen.failure.rank == 0


@pytest.mark.parametrize("stop", [SystemExit, KeyError, AssertionError, MemoryError])
def test_whatever_an_answer_raises_is_an_observation(stop):
    def answer(x):
        raise stop(3)

    assert alone(answer, ONE).failure.kind == stop.__name__


def test_a_result_that_is_no_plain_data_is_a_failure_that_says_so():
    seen = alone(lambda x: object(), ONE)
    assert seen.failure.kind == "NotPlain"
    assert "object" in seen.failure.message


def test_a_deadlock_is_told_with_its_cycle():
    def answer(x):
        dist.send(x, 1 - dist.get_rank())
        dist.recv(x, 1 - dist.get_rank())

    seen = on_ranks(answer, [(ONE,), (ONE,)])
    assert seen.failure.kind == "Deadlock"
    assert seen.failure.cycle == (0, 1)
    assert [(wait[0], wait[1]) for wait in seen.failure.waits] == [(0, 1), (1, 0)]


def test_an_endless_loop_ends_at_the_deadline():
    def answer(x):
        while True:
            pass

    began = time.monotonic()
    assert kind_of(answer, seconds=0.5) in ("HungRank", "TooLong")
    assert time.monotonic() - began < 10


def test_an_endless_exchange_ends_at_the_deadline():
    def answer(x):
        while True:
            dist.barrier()

    began = time.monotonic()
    assert kind_of(answer, seconds=1.0) in ("HungRank", "TooLong")
    assert time.monotonic() - began < 10


def test_ctrl_c_stops_an_answer_and_is_no_observation():
    def answer(x):
        while True:
            pass

    main = threading.main_thread().ident
    threading.Timer(0.3, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        alone(answer, ONE, seconds=30)


def test_a_deadline_leaves_the_alarm_of_others_as_it_was():
    before = signal.getsignal(signal.SIGALRM)
    with deadline(5):
        pass
    assert signal.getsignal(signal.SIGALRM) is before
    with pytest.raises(TooLong), deadline(0.1):
        time.sleep(5)
    assert signal.getsignal(signal.SIGALRM) is before
