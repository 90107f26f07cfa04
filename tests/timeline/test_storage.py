"""Timelines in files: what is loaded is what was saved, to the last bit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringlab.timeline import Event, Timeline, Work
from tests.timeline.made import hidden, late_sender, without_clock

times = st.none() | st.floats(0, 1e6)
small = st.integers(0, 2)
works = st.none() | st.builds(
    Work, st.sampled_from(["attention", "memory"]), *[st.integers(0, 2**70)] * 3, st.text()
)
events = st.builds(
    Event, small, st.sampled_from(["compute", "send", "recv", "collective", "wait"]), st.text(),
    st.integers(-1, 99), st.lists(small).map(tuple), st.none() | small, st.integers(0, 2**50),
    st.integers(0, 2**50), st.lists(st.integers(0, 2**31)).map(tuple), st.text(), st.text(),
    small, st.text(), times, times, works,
)  # fmt: skip


@given(st.lists(events, max_size=4).map(tuple), times)
def test_what_is_loaded_is_what_was_saved(tmp_path_factory, recorded, began):
    path = tmp_path_factory.mktemp("t") / "run.json"
    run = Timeline(3, recorded, began)
    again = Timeline.load(run.save(path))
    assert again == run
    assert again.began == began
    assert [list(map(type, e)) for e in again] == [list(map(type, e)) for e in run]
    assert hash(again) == hash(run)


def test_a_timeline_of_an_older_version_without_newer_fields_gets_their_defaults(tmp_path):
    path = without_clock(hidden()).save(tmp_path / "run.json")
    document = json.loads(path.read_text())
    place = document["fields"].index("step")
    document["fields"] = document["fields"][:place]
    document["events"] = [row[:place] for row in document["events"]]
    path.write_text(json.dumps(document))
    assert all(e.step == 0 and e.work is None for e in Timeline.load(path))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "something"}', "\x00"])
def test_a_file_that_holds_no_timeline_is_refused(tmp_path, text):
    path = tmp_path / "other.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"other\.json holds no timeline; Timeline\.save"):
        Timeline.load(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 2}, "version 2 of the format; this ringlab reads version 1"),
        ({"fields": ["rank", "colour"]}, "unknown fields: colour"),
    ],
)
def test_a_file_of_a_later_version_is_refused(tmp_path, change, words):
    path = late_sender().save(tmp_path / "run.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=words):
        Timeline.load(path)
