"""``ringlab check`` on the scripts that people write: right ones pass, wrong ones are explained."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from ringlab import cli
from ringlab.commands import check

HEAD = """
import argparse, os, sys
import torch
import torch.distributed as dist

dist.init_process_group("{backend}")
rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
"""

PIPELINE = """
x = torch.ones(8)
for step in range(3):
    {receive}
    x = x * 2
    if rank < size - 1:
        dist.send(x, rank + 1)
assert rank or x[0] == 8
"""

EVEN_AND_ODD = """
x, y = torch.full((4,), float(rank)), torch.empty(4)
after, before = (rank + 1) % size, (rank - 1) % size
if {first}:
    dist.send(x, after)
    dist.recv(y, before)
else:
    dist.recv(y, before)
    dist.send(x, after)
assert y[0] == before
"""

TENSOR_PARALLEL = """
torch.manual_seed(0)
hidden = 4 * size
x, up, down = torch.randn(3, 8), torch.randn(hidden, 8), torch.randn(8, hidden)
mine = slice(4 * rank, 4 * rank + 4)
part = torch.relu(x @ up[mine].T) @ down[:, mine].T
work = dist.all_reduce(part, async_op=True)
{meanwhile}
work.wait()
torch.testing.assert_close(part, torch.relu(x @ up.T) @ down.T)
"""

EXPERTS = """
torch.manual_seed(rank)
tokens = torch.randn(10, 4)
expert = torch.randint(size, (10,))
order = expert.argsort(stable=True)
counts = torch.bincount(expert, minlength=size)
others = torch.empty_like(counts)
dist.all_to_all_single(others, counts)
arrived = torch.empty(int(others.sum()), 4)
dist.all_to_all_single(arrived, tokens[order], {receives}, counts.tolist())
back = torch.empty_like(tokens)
dist.all_to_all_single(back, arrived * 2, counts.tolist(), others.tolist())
torch.testing.assert_close(back, tokens[order] * 2)
"""


@pytest.fixture
def run(tmp_path, capsys):
    """Check a script; what the command returns and what it says."""

    def checked(body, *arguments, backend="gloo", **words):
        text = HEAD.format(backend=backend) + textwrap.dedent(body).format(**words)
        (tmp_path / "program.py").write_text(text + "\ndist.destroy_process_group()\n")
        code = check.main([str(tmp_path / "program.py"), *arguments])
        return code, capsys.readouterr().out

    return checked


@pytest.mark.parametrize("order", ["stream", "host"])
def test_a_pipeline_that_sends_and_receives_in_turn_is_right(run, order):
    code, said = run(PIPELINE, "--order", order, receive="if rank: dist.recv(x, rank - 1)")
    assert code == 0, said
    assert "nothing wrong was found" in said
    assert "rank 1: 6 operations of communication, 96 B sent" in said


def test_a_pipeline_in_which_the_first_rank_waits_for_the_last_is_told_who_waits_for_whom(run):
    code, said = run(PIPELINE, receive="dist.recv(x, (rank - 1) % size)")
    assert code == 1
    assert "Deadlock: " in said
    assert "rank 0 waits for rank 3: recv from rank 3 at program.py:" in said


def test_an_exchange_that_starts_with_even_and_odd_ranks_is_right(run):
    code, said = run(EVEN_AND_ODD, "--ranks", "4", first="rank % 2 == 0")
    assert code == 0, said


def test_an_exchange_in_which_all_ranks_send_first_is_a_deadlock(run):
    code, said = run(EVEN_AND_ODD, "--ranks", "3", first="True")
    assert code == 1
    assert "ranks wait for one another: 0 -> 1 -> 2 -> 0" in said


def test_a_tensor_parallel_layer_is_right(run):
    code, said = run(TENSOR_PARALLEL, meanwhile="x.sum()")
    assert code == 0, said


def test_a_layer_that_reads_its_sum_before_the_wait_is_told_both_lines(run):
    code, said = run(TENSOR_PARALLEL, meanwhile="loss = part.sum()")
    assert code == 1
    assert "BufferHazard: rank 0 reads a buffer that an all_reduce in flight fills" in said
    assert "`work = dist.all_reduce(part, async_op=True)`" in said
    assert "`loss = part.sum()`" in said


def test_experts_that_exchange_tokens_are_right(run):
    code, said = run(EXPERTS, receives="others.tolist()")
    assert code == 0, said


def test_experts_that_expect_what_they_send_are_told_which_ranks_disagree(run):
    code, said = run(EXPERTS, receives="[len(arrived) // size] * (size - 1) + "
                     "[len(arrived) - len(arrived) // size * (size - 1)]")  # fmt: skip
    assert code == 1
    assert "MessageMismatch: all_to_all: rank " in said


def test_a_script_gets_its_arguments_and_an_environment_of_its_own(run):
    body = """
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int)
    parser.add_argument("name")
    parser.add_argument("--ranks")
    given = parser.parse_args()
    assert (given.epochs, given.name, given.ranks) == (3, "a", "x"), given
    assert os.environ["LOCAL_RANK"] == os.getenv("LOCAL_RANK") == str(dist.get_rank())
    os.environ["MINE"] = str(rank)
    dist.barrier()
    assert os.environ["MINE"] == str(rank)
    assert __name__ == "__main__" and os.path.basename(__file__) == "program.py"
    """
    before = dict(os.environ), list(sys.argv), list(sys.path)
    code, said = run(body, "--epochs", "3", "--ranks", "2", "a", "--", "--ranks", "x")
    assert code == 0, said
    assert (dict(os.environ), sys.argv, sys.path) == before


def test_what_the_script_raises_is_shown_with_its_own_lines(run):
    code, said = run("if rank == 1: raise ValueError('no data')")
    assert code == 1
    assert "RankFailed: rank 1 failed: ValueError: no data" in said
    assert "program.py" in said
    assert "ringlab" not in said.split("Traceback")[1]


@pytest.mark.parametrize(("status", "code"), [("", 0), ("0", 0), ("3", 1)])
def test_the_status_a_script_ends_with_counts(run, status, code):
    assert run(f"sys.exit({status})")[0] == code


def test_a_script_that_asks_for_the_other_backend_is_told_so(run):
    hint = "The script asks for gloo: check it under its rules too, with --order host."
    assert hint in run("")[1]
    assert hint not in run("", backend="cpu:gloo,cuda:nccl")[1]
    assert "with --order stream" in run("", "--order", "host", backend="nccl")[1]


def test_ranks_that_do_not_fit_the_environment_are_refused(run):
    code, said = run("dist.init_process_group('gloo', rank=7, world_size=8)")
    assert code == 1
    assert "init_process_group was given rank=7, and here it is 0" in said


def test_a_script_that_starts_its_own_processes_is_refused(run):
    code, said = run("import torch.multiprocessing as mp\nmp.spawn(print, nprocs=2)")
    assert code == 1
    assert "Give a script that torchrun starts" in said


def test_groups_may_be_destroyed(run):
    code, said = run("group = dist.new_group([0, 1])\ndist.destroy_process_group(group)")
    assert code == 0, said


def test_what_cannot_be_run_is_said_at_once(tmp_path, capsys):
    assert check.main([str(tmp_path / "missing.py")]) == 2
    (tmp_path / "broken.py").write_text("def f(:\n")
    assert check.main([str(tmp_path / "broken.py")]) == 2
    assert "broken.py cannot be run" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        check.main([str(tmp_path / "broken.py"), "--ranks", "0"])


def test_the_command_is_one_of_ringlabs(tmp_path, capsys):
    (tmp_path / "empty.py").write_text("")
    assert cli.main(["check", str(tmp_path / "empty.py"), "--ranks", "2"]) == 0
    assert "empty.py on 2 virtual ranks" in capsys.readouterr().out
