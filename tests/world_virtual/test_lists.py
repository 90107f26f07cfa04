"""Deadlock or not: the world against a judge that plays every interleaving of small programs."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.world_virtual.explorer import ANY, GROUPS, members
from tests.world_virtual.lists import STUCK, check, expected
from tests.world_virtual.verdicts import ORDERS

# ---- every small program -----------------------------------------------------------------


def alphabet(other):
    """What one of two ranks can do next."""
    exchange = ("isend", other, 0), ("irecv", other, 0)
    return (("send", other, 0), ("recv", other, 0), *exchange, ("batch", exchange), ("wait", 0),
            ("meet", "w"))  # fmt: skip


def lists_of(other, length):
    """Every list up to a length that does not wait for nothing."""
    for size in range(length + 1):
        for one in itertools.product(alphabet(other), repeat=size):
            left = 0
            for what, *_ in one:
                left += {"isend": 1, "irecv": 1, "batch": 2, "wait": -1}.get(what, 0)
                if left < 0:
                    break
            else:
                yield one


def programs(length, total):
    """Every program of two ranks up to some lengths, one of each two that mirror each other."""
    for first in lists_of(1, length):
        for second in lists_of(0, length):
            if len(first) + len(second) <= total and len(first) <= len(second):
                yield first, second


@pytest.mark.parametrize("order", ORDERS)
def test_every_program_of_two_ranks_and_three_operations_ends_as_the_judge_says(order):
    seen = Counter(check(lists, order) for lists in programs(2, 3))
    assert {"ok", "Deadlock", "PeerLeft", "UnmatchedOperation", "UnwaitedHandle"} <= set(seen)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("first", range(8))
def test_every_program_of_two_ranks_and_five_operations_ends_as_the_judge_says(order, first):
    begins = (*((each,) for each in alphabet(1)), ())[first]
    for one, other in programs(3, 5):
        if one[:1] == begins:
            check((one, other), order)


BEHIND_THE_SECOND = (
    (("isend", 1, 0), ("isend", 1, 0), ("isend", 2, 0), ("wait", 0), ("wait", 0), ("wait", 0)),
    (("recv", 0, 0), ("recv", 2, 0), ("recv", 0, 0)),
    (("recv", 0, 0), ("send", 1, 0)),
)


def test_when_the_first_in_line_is_done_only_the_next_may_match():
    """Rank 0's third message waits for its second, which rank 1 takes after one of rank 2."""
    assert check(BEHIND_THE_SECOND, "stream") == "Deadlock"
    assert check(BEHIND_THE_SECOND, "host") == "ok"


# ---- drawn programs ----------------------------------------------------------------------


@st.composite
def drawn(draw, sizes, length, wild):
    """A program of matched operations in some order, of which a few are spoilt.

    `wild`: with receives from any rank.
    """
    size = draw(st.sampled_from(sizes))
    todo = [[] for _ in range(size)]
    for _ in range(draw(st.integers(1, length))):
        one, two = draw(st.permutations(range(size)))[:2]
        tag = draw(st.integers(0, 1))
        ends = draw(st.sampled_from(["both", "both", "both", "both", "send", "recv"]))
        groups = [name for name in GROUPS if len(members(name, size)) > 1]
        collective = draw(st.sampled_from([None, None, None, *groups]))
        if collective:
            inside = list(members(collective, size))
            for rank in inside if ends == "both" else inside[1:]:
                todo[rank].append((draw(st.sampled_from(["meet", "start"])), collective))
            continue
        if ends != "recv":
            todo[one].append((draw(st.sampled_from(["send", "isend", "isend"])), two, tag))
        if ends != "send":
            peer = draw(st.sampled_from([one, ANY])) if wild else one
            todo[two].append((draw(st.sampled_from(["recv", "irecv", "irecv"])), peer, tag))
    return tuple(tuple(draw(finished(ops, length))) for ops in todo)


@st.composite
def finished(draw, ops, length):
    """One rank's operations, perhaps in another order, some in batches, with waits between."""
    if draw(st.booleans()):
        ops = list(draw(st.permutations(ops)))
    done = []
    for op in ops:
        begun = op[0] in ("isend", "irecv") and op[1] != ANY
        last = done[-1] if done else ("none",)
        if begun and last[0] in ("isend", "irecv", "batch") and draw(st.booleans()):
            before = last[1] if last[0] == "batch" else (last,)
            if all(each[1] != ANY for each in before):
                done[-1] = ("batch", (*before, op))
                continue
        done.append(op)
        if draw(st.integers(0, 2)) == 0:
            done.append(("wait", draw(st.integers(0, 3))))
    care = draw(st.integers(0, 4))
    return done + [("wait", 0)] * (2 * len(ops) if care else 0)


@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=60)
@given(lists=drawn((2, 3, 4), 4, wild=False))
def test_drawn_programs_end_as_the_judge_says(lists, order):
    check(lists, order)


@settings(max_examples=40)
@given(lists=drawn((3, 4), 4, wild=True))
def test_receives_from_any_rank_end_in_one_of_the_ways_that_the_judge_finds(lists):
    check(lists, "host")


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=1500)
@given(lists=drawn((2, 3, 4), 6, wild=False))
def test_many_drawn_programs_end_as_the_judge_says(lists, order):
    check(lists, order)


@pytest.mark.slow
@pytest.mark.timeout(900)
@settings(max_examples=1000)
@given(lists=drawn((3, 4), 6, wild=True))
def test_many_receives_from_any_rank_end_in_one_of_the_ways_that_the_judge_finds(lists):
    check(lists, "host")


# ---- the judge itself --------------------------------------------------------------------

SENDS = ("send", 1, 0), ("recv", 1, 0)
RECEIVES = ("recv", 0, 0), ("send", 0, 0)


@pytest.mark.parametrize("order", ORDERS)
def test_the_judge_knows_what_a_person_knows(order):
    assert expected((SENDS, RECEIVES), order)[0] == {"ok"}
    assert expected((SENDS, (("send", 0, 0), ("recv", 0, 0))), order)[0] == STUCK
    assert expected(((("isend", 1, 0),), ()), order)[0] == {"UnmatchedOperation"}


def test_the_judge_finds_both_ends_of_a_race():
    """Rank 0 takes one message from any rank and one from rank 1: it depends on who is first."""
    takes = ("recv", ANY, 0), ("recv", 1, 0)
    verdicts, _ = expected((takes, (("send", 0, 0),), (("send", 0, 0),)), "host")
    assert verdicts == {"ok", *STUCK}
