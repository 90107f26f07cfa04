from __future__ import annotations

import multiprocessing

import pytest
import torch

from benchmarks.peers import abilities
from benchmarks.peers.libraries.ours import Ringlab
from benchmarks.peers.measure import compare, same_dtype_errors
from benchmarks.peers.peer import BOTH, FORWARD
from benchmarks.peers.problem import RESULTS, Problem, answer
from benchmarks.peers.ranks import Ranks
from tests import oracle
from tests.benchmarks.broken import Hangs, Raises, Swaps

TINY = Problem(90, 6, 2, 16, "float32", causal=True)
SECONDS = 60.0


@pytest.mark.parametrize("causal", [False, True])
def test_the_exact_answer_is_that_of_the_oracle(causal: bool) -> None:
    problem = Problem(37, 6, 2, 16, "float32", causal)
    q, k, v, dout = problem.tensors()
    exact, found = oracle.attention(q, k, v, dout, causal=causal), answer(problem)
    for name in RESULTS:
        torch.testing.assert_close(found[name], getattr(exact, name), rtol=1e-12, atol=1e-13)


@pytest.mark.processes
def test_one_library_that_fails_costs_its_own_row_only_and_leaves_no_process() -> None:
    with (
        Ranks(Raises, SECONDS) as raises,
        Ranks(Swaps, SECONDS) as swaps,
        Ranks(Ringlab, SECONDS) as ours,
    ):
        failed, wrong, right = compare([raises, swaps, ours], TINY, rounds=1)
    assert not multiprocessing.active_children()

    assert failed.failure == dict.fromkeys((FORWARD, BOTH), "ValueError: no heads today")
    assert not failed.cpu_s

    allowed = same_dtype_errors(TINY)
    assert abilities.verdict(wrong.errors, wrong.failure, allowed) == "wrong: out, dq, dk, dv"

    assert not right.failure
    assert abilities.verdict(right.errors, right.failure, allowed) == "right"
    assert min(right.wall_s[FORWARD], right.cpu_s[FORWARD]) > 0
    assert right.cpu_s[BOTH] > right.cpu_s[FORWARD]
    assert right.peak is not None
    assert right.peak > TINY.kv_shard_bytes
    sent = right.sent[FORWARD], right.sent[BOTH]
    for count, shards in zip(sent, (1, 3), strict=True):
        if count is not None:  # the system tells
            assert 0 <= count - shards * TINY.kv_shard_bytes < 2048  # of headers and barriers


@pytest.mark.processes
def test_a_library_that_hangs_is_ended() -> None:
    with Ranks(Hangs, 8.0) as hangs:
        (row,) = compare([hangs], TINY, rounds=1)
        assert not multiprocessing.active_children()
    assert row.failure[FORWARD] == "no answer within 8 s"


def test_verdicts_tell_what_runs_and_what_is_wrong() -> None:
    allowed = dict.fromkeys(RESULTS, 1e-7)
    fine = dict.fromkeys(RESULTS, 2e-7)
    assert abilities.verdict(fine, {}, allowed) == "right"
    assert abilities.verdict({**fine, "dk": 0.5}, {}, allowed) == "wrong: dk"
    assert abilities.verdict({**fine, "dv": float("inf")}, {}, allowed) == "wrong: dv"
    only = abilities.verdict({"out": 2e-7}, {BOTH: "RuntimeError"}, allowed)
    assert only == "forward right; backward fails"
    assert abilities.verdict({}, dict.fromkeys((FORWARD, BOTH), "no"), allowed) == "fails"
