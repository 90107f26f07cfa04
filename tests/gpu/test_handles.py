"""What a rank on a GPU has issued and what is over, with a stand-in for CUDA."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
import torch.distributed as dist

from ringlab.world.processes import last_op, pickling, tensors
from ringlab.world.processes.entries import Entry
from ringlab.world.processes.operations import Operation
from ringlab.world.processes.staging import BACKEND, StagedGroup, StagedWork
from ringlab.world.source import Site
from tests.gpu import pretended


@pytest.fixture
def stream(monkeypatch: pytest.MonkeyPatch) -> pretended.Stream:
    """A stream that is behind all that is recorded on it."""
    made = pretended.stream(monkeypatch)
    made.reached = -1.0
    return made


def issued(journal: last_op.Journal) -> Entry:
    """An all-reduce on a GPU that was issued by a blocking call."""
    operation = Operation("collective", "all_reduce", None, 4, 4, (1,), "float32", on_gpu=True)
    entry = Entry(operation, (0, 1), 0, 0, Site("program.py", 7, "work"))
    journal.begin()
    journal.recorder.issue(entry, journal.recorder.interrupt())
    journal._open[entry.serial] = journal._last = entry
    journal.issued(entry, None)
    return entry


def test_a_blocking_call_is_not_over_before_the_gpu_has_reached_it(
    stream: pretended.Stream,
) -> None:
    journal = last_op.Journal()
    entry = issued(journal)
    assert not entry.finished
    assert "all_reduce over ranks [0, 1]" in journal.in_words()
    assert journal.in_words().startswith("not finished")
    stream.reached = stream.now
    assert entry.finished
    assert journal.in_words().startswith("last finished")


def test_while_a_graph_is_captured_nothing_is_asked_of_the_stream(stream: pretended.Stream) -> None:
    stream.capturing = True
    journal = last_op.Journal()
    assert issued(journal).gpu_work is None
    assert journal.in_words().startswith("last finished")


def test_a_handle_is_asked_whether_the_gpu_is_done(stream: pretended.Stream) -> None:
    entry = issued(last_op.Journal())
    entry.gpu_work = SimpleNamespace(is_completed=lambda: False)
    assert not entry.finished
    entry.gpu_work = SimpleNamespace(is_completed=lambda: True)
    assert entry.finished


class Inner(dist.Work):
    """gloo's handle, which is over at once."""

    waits = 0

    def wait(self, timeout: object = None) -> bool:
        self.waits += 1
        return True

    def is_completed(self) -> bool:
        return self.waits > 0

    def is_success(self) -> bool:
        return True

    def _source_rank(self) -> int:
        return 3


@pytest.mark.parametrize("how", ["wait", "synchronize", "get_future"])
def test_every_way_to_wait_for_a_staged_exchange_brings_the_data_back(how: str) -> None:
    inner, target = Inner(), torch.zeros(2)
    work = StagedWork(inner, [(target, torch.ones(2))])
    assert not work.is_completed()
    done = getattr(work, how)()
    if how == "get_future":
        assert done.done()
    assert target.tolist() == [1, 1]
    assert work.is_completed()
    assert work.is_success()
    assert work._source_rank() == 3
    target.zero_()
    work.wait()
    assert target.tolist() == [0, 0]  # a second wait writes nothing


def test_a_staged_group_tells_its_name_and_devices() -> None:
    inner = SimpleNamespace(rank=lambda: 1, size=lambda: 3)
    group = StagedGroup(inner, "some group")
    assert (group.group_name, group.pg_name) == ("some group", "some group")
    assert (group.name(), group.getBackendName()) == (BACKEND, BACKEND)
    assert group._device_types == [torch.device("cpu"), torch.device("cuda")]


def test_what_arrives_in_a_rank_goes_to_its_device() -> None:
    body, _ = pickling.dumps(torch.ones(2, 3, requires_grad=True))
    tensors.set_home(torch.device("meta"))
    try:
        arrived = pickling.loads(bytearray(body))
    finally:
        tensors.set_home(None)
    assert (arrived.device.type, arrived.shape, arrived.requires_grad) == ("meta", (2, 3), True)
