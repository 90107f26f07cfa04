"""A rank that raises, hangs or does not give in: what the caller gets, and what stays behind."""

from __future__ import annotations

import sys
import time

import pytest
import torch
import torch.distributed as dist

from ringlab.world import World
from ringlab.world.errors import RankFailed
from tests.world_virtual.verdicts import check_threads, error_of, line_of


@pytest.fixture(autouse=True)
def nothing_stays_behind():
    yield
    check_threads()


class Broken(Exception):
    """An error of the program's own."""


def helper(value):
    raise Broken(f"value {value}")


def fails_on_rank_1():
    if dist.get_rank() == 1:
        helper(7)
    dist.recv(torch.ones(1), 1)


def test_the_error_names_the_rank_and_shows_its_traceback():
    error = error_of(RankFailed, fails_on_rank_1, 3)
    assert error.rank == 1
    assert error.summary == "Broken: value 7"
    assert str(error).startswith("rank 1 failed: Broken: value 7\n\nTraceback of rank 1 (most")
    assert '", line ' in error.traceback
    assert "in fails_on_rank_1\n    helper(7)" in error.traceback
    assert 'in helper\n    raise Broken(f"value {value}")' in error.traceback
    assert isinstance(error.__cause__, Broken)


def test_the_traceback_has_no_frames_of_the_library():
    text = str(error_of(RankFailed, fails_on_rank_1, 3))
    assert "ringlab/world" not in text
    assert "threading.py" not in text


def test_the_error_says_what_the_other_ranks_were_doing():
    text = str(error_of(RankFailed, fails_on_rank_1, 3))
    line = line_of(fails_on_rank_1, "dist.recv")
    assert f"Meanwhile:\n  rank 0: waits in recv from rank 1 at {line}" in text


def fails_in_torch():
    torch.ones(2) @ torch.ones(3)


def test_an_error_of_torch_is_shown_at_the_programs_line():
    error = error_of(RankFailed, fails_in_torch, 2)
    assert error.summary.startswith("RuntimeError: ")
    assert "torch.ones(2) @ torch.ones(3)" in error.traceback


def test_a_call_that_does_not_fit_the_function_shows_no_frames_of_the_library():
    error = error_of(RankFailed, fails_in_torch, 2, "one argument too many")
    assert error.summary.startswith("TypeError: fails_in_torch() takes 0 positional arguments")
    assert "File" not in error.traceback


def fails_while_failing():
    try:
        helper(1)
    except Broken as first:
        raise ValueError("second") from first


def test_causes_are_shown_too():
    error = error_of(RankFailed, fails_while_failing, 1)
    assert error.summary == "ValueError: second"
    assert "Broken: value 1" in error.traceback
    assert "direct cause" in error.traceback


class Unprintable(Exception):
    def __str__(self):
        raise RuntimeError("no")


def fails_unprintably():
    raise Unprintable


class Silent(Exception):
    """Has no text."""


def fails_silently():
    raise Silent


@pytest.mark.parametrize(
    ("program", "said"), [(fails_unprintably, "Unprintable"), (fails_silently, "Silent")]
)
def test_exceptions_without_a_text(program, said):
    assert error_of(RankFailed, program, 2).summary.startswith(said)


def exits():
    if dist.get_rank() == 0:
        sys.exit(3)
    dist.barrier()


def raises_keyboard_interrupt():
    raise KeyboardInterrupt


def raises_generator_exit():
    raise GeneratorExit


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (exits, SystemExit),
        (raises_keyboard_interrupt, KeyboardInterrupt),
        (raises_generator_exit, GeneratorExit),
    ],
)
def test_exceptions_that_are_no_errors_end_the_run_too(program, kind):
    error = error_of(RankFailed, program, 2)
    assert error.rank == 0
    assert isinstance(error.__cause__, kind)
    assert error.summary.startswith(kind.__name__)


def yields():
    dist.barrier()
    yield dist.get_rank()


async def awaits():
    return dist.get_rank()


def returns_a_generator():
    return (r for r in range(3))


@pytest.mark.parametrize("program", [yields, returns_a_generator, awaits])
def test_a_function_whose_code_would_run_later_is_refused(program):
    with pytest.raises((TypeError, RankFailed), match="Return its values, for example list"):
        World(2).run(program)


def collect():
    def parts():
        for _ in range(3):
            x = torch.ones(1)
            dist.all_reduce(x)
            yield x.item()

    return list(parts())


def test_generators_inside_the_program_communicate():
    assert World(2).run(collect) == [[2.0] * 3] * 2


cleaned = []


def fails_and_others_clean_up():
    try:
        if dist.get_rank() == 1:
            raise Broken
        dist.barrier()
    finally:
        cleaned.append(dist.get_rank())


def test_the_other_ranks_run_their_finally_blocks():
    cleaned.clear()
    error_of(RankFailed, fails_and_others_clean_up, 3)
    assert sorted(cleaned) == [0, 1]  # rank 2 had not begun


def many_fail():
    if dist.get_rank() == 77:
        raise Broken
    dist.barrier()


def test_a_failure_among_many_ranks_ends_quickly_and_its_report_stays_short():
    start = time.monotonic()
    error = error_of(RankFailed, many_fail, 128)
    assert time.monotonic() - start < 3
    assert error.rank == 77
    assert str(error).count("waits in barrier") == 16
    assert "... and 61 more" in str(error)
