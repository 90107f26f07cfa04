"""What is needed of torch's internals is checked when the world is imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

from ringlab.world.virtual import compiled, fit


def test_the_installed_torch_fits():
    assert fit.misfits() == []
    assert compiled.misfits() == []


@pytest.mark.parametrize(
    ("owner", "name", "said"),
    [
        (c10d, "_world", "torch.distributed.distributed_c10d._world is missing"),
        (c10d, "_register_process_group", "_register_process_group is missing"),
        (torch._C._distributed_c10d, "_set_thread_isolation_mode", "isolation_mode is missing"),
        (dist.Backend, "register_backend", "torch.distributed.Backend.register_backend is missing"),
        (type(c10d._world), "pg_to_tag", "_world.pg_to_tag is missing"),
        (c10d, "_process_group_name", "_process_group_name has no variable ranks"),
        (c10d, "batch_isend_irecv", "batch_isend_irecv has no variable p2p_op_list"),
    ],
)
def test_a_part_that_is_gone_is_named(owner, name, said, monkeypatch):
    monkeypatch.delattr(owner, name)
    (found,) = fit.misfits()
    assert said in found


def test_a_part_that_dynamo_has_no_more_is_named(monkeypatch):
    for name in ("set_code_exec_strategy", "skip_code"):
        monkeypatch.delattr(torch._C._dynamo.eval_frame, name, raising=False)
    (found,) = compiled.misfits()
    assert found == "torch._C._dynamo.eval_frame.set_code_exec_strategy is missing"


def test_an_argument_that_has_another_name_is_named(monkeypatch):
    def batch_isend_irecv(operations):
        return operations

    monkeypatch.setattr(c10d, "batch_isend_irecv", batch_isend_irecv)
    assert "batch_isend_irecv has no variable p2p_op_list" in fit.misfits()[0]


def test_a_table_that_torch_has_beside_those_known_is_named(monkeypatch):
    monkeypatch.setattr(type(c10d._world), "pg_weights", property(lambda self: {}), raising=False)
    assert fit.misfits() == [f"{c10d.__name__}._world.pg_weights is unknown here"]


IMPORT = """
import torch.distributed.distributed_c10d as c10d
del c10d._register_process_group
from ringlab import World
from ringlab.world.processes import ProcessRunner
print("process worlds can be had")
try:
    World(2)
except ImportError as error:
    print(error)
"""


def test_a_torch_that_does_not_fit_is_refused_in_words_and_only_by_the_virtual_world():
    command = [sys.executable, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.stdout.startswith("process worlds can be had\n"), done.stderr
    assert "ringlab's virtual world does not fit torch" in done.stdout
    assert "_register_process_group is missing" in done.stdout
    assert "README" in done.stdout
