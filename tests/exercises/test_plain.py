from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ringlab.grade.observation import Failure, Observation
from ringlab.grade.observe import on_ranks
from ringlab.grade.plain import DTYPES, MAGIC, NotPlain, dump, load, plain
from ringlab.timeline import Timeline


class Agreeable:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class OneMore(int):
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None


class Agreeing(torch.Tensor):
    pass


def same(one: object, other: object) -> bool:
    if isinstance(one, torch.Tensor):
        return (
            type(other) is torch.Tensor
            and (one.dtype, one.shape, one.device) == (other.dtype, other.shape, other.device)
            and (one.is_meta or bool(torch.equal(one.nan_to_num(), other.nan_to_num())))
        )
    if type(one) is not type(other):
        return False
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    return one == other or (one != one and other != other)


TENSORS = st.builds(
    lambda dtype, shape: (torch.arange(math.prod(shape)) % 2).reshape(shape).to(dtype),
    st.sampled_from(list(DTYPES.values())),
    st.lists(st.integers(0, 3), max_size=4),
)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=5),
    TENSORS,
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.text(max_size=3), st.integers(0, 9)), inner, max_size=3),
    ),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None)
@given(VALUES)
def test_plain_data_comes_back_from_bytes_as_it_was(value):
    assert same(load(dump(value)), value)


@settings(max_examples=150, deadline=None)
@given(VALUES, st.data())
def test_damaged_bytes_give_an_error_or_plain_data_and_nothing_else(value, data):
    whole = bytearray(dump(value))
    place = data.draw(st.integers(len(MAGIC), len(whole) - 1))
    whole[place] ^= data.draw(st.integers(1, 255))
    try:
        found = load(bytes(whole))
    except ValueError:
        return
    assert same(plain(found), found)


@pytest.mark.parametrize(
    "value",
    [
        Agreeable(), OneMore(1), Agreeing([1.0]), torch.nn.Parameter(torch.ones(1)),
        np.float64(1.0), np.ones(2), object(), {(1, 2): 3}, {1.5: 3}, torch.Size([1]),
        [Agreeable()], b"bytes",
        torch.ones(2).to_sparse(), lambda: 1,
    ],
    ids=lambda value: type(value).__name__,
)  # fmt: skip
def test_anything_but_plain_data_is_refused(value):
    with pytest.raises(NotPlain):
        plain(value)


def test_a_result_that_contains_itself_is_refused():
    value: list = []
    value.append(value)
    with pytest.raises(NotPlain, match="levels deep"):
        plain(value)


@pytest.mark.parametrize(
    "header",
    [{"a": 1}, ["set", [1]], ["tensor", "float32", [-1], "cpu"], ["tensor", "float32", [4], "cpu"],
     ["tensor", "object", [0], "cpu"], ["tensor", "float32", [1.5], "cpu"], ["dict", [[None, 1]]],
     ["float", "1.0"], ["list"], [], ["tensor", "float32", [0], "cuda"]],
)  # fmt: skip
def test_a_forged_header_is_refused(header):
    text = json.dumps(header).encode()
    with pytest.raises(ValueError, match="plain data"):
        load(MAGIC + len(text).to_bytes(8, "big") + text)


def test_a_header_that_is_nested_without_end_is_refused():
    text = b'["list",[' * 50_000
    with pytest.raises(ValueError, match=r"plain data|Expecting"):
        load(MAGIC + len(text).to_bytes(8, "big") + text)


def observation() -> Observation:
    def swap(x):
        from torch import distributed as dist

        other = 1 - dist.get_rank()
        y = torch.empty_like(x)
        ops = [dist.P2POp(dist.isend, x, other), dist.P2POp(dist.irecv, y, other)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()
        return y @ y

    return on_ranks(swap, [(torch.eye(3),), (2 * torch.eye(3),)])


def test_an_observation_comes_back_from_bytes_with_its_timeline():
    seen = observation()
    back = Observation.from_bytes(seen.to_bytes())
    assert back.timeline == seen.timeline
    assert len(back.timeline) > 6
    assert same(back.results, seen.results)
    assert (back.changed, back.peaks, back.failure) == (seen.changed, seen.peaks, None)


def test_a_failure_comes_back_from_bytes():
    failure = Failure("Deadlock", "words", None, (0, 1), ((0, 1, "send to rank 1", "cell line 3"),))
    back = Observation.from_bytes(Observation((), Timeline(2), failure).to_bytes())
    assert back.failure == failure


@pytest.mark.parametrize(
    "change",
    [
        {"results": [1]}, {"peaks": (1.5,)}, {"changed": (1,)}, {"timeline": "[1]"},
        {"timeline": '[2,[["rank"]]]'}, {"timeline": "[0,[]]"}, {"failure": ("Deadlock",)},
        {"failure": {"kind": 1, "message": "", "rank": None, "cycle": (), "waits": ()}},
        {"failure": {"kind": "", "message": "", "rank": None, "cycle": (), "waits": ((1,),)}},
        {"more": 1}, {"timeline": None},
    ],
    ids=str,
)  # fmt: skip
def test_a_forged_observation_is_refused(change):
    honest = load(observation().to_bytes())
    assert isinstance(honest, dict)
    with pytest.raises(ValueError, match=r"\w"):
        Observation.from_bytes(dump({**honest, **change}))


@pytest.mark.parametrize(("field", "value"), [(0, 7), (0, True), (1, "dream"), (5, 9), (6, 1.0)])
def test_a_forged_event_is_refused(field, value):
    honest = load(observation().to_bytes())
    size, rows = json.loads(honest["timeline"])
    rows[0][field] = value
    with pytest.raises(ValueError, match="timeline"):
        Observation.from_bytes(dump({**honest, "timeline": json.dumps([size, rows])}))
