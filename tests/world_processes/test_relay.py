from __future__ import annotations

import io

import pytest

from ringlab.world.processes import output
from ringlab.world.processes.output import HEAD, TAIL, Relay


@pytest.fixture
def shown() -> io.StringIO:
    return io.StringIO()


def test_lines_of_rank_0_appear_at_once_and_others_wait_for_their_turn(shown):
    relay = Relay(3, "ordered", shown)
    relay.feed(2, b"two\n")
    relay.feed(1, b"one\n")
    assert shown.getvalue() == ""
    relay.feed(0, b"zero\n")
    assert shown.getvalue() == "[rank 0] zero\n"
    relay.finish(0)
    assert shown.getvalue() == "[rank 0] zero\n[rank 1] one\n"
    relay.finish(2)
    assert shown.getvalue() == "[rank 0] zero\n[rank 1] one\n"
    relay.feed(1, b"more\n")
    relay.finish(1)
    assert shown.getvalue() == "[rank 0] zero\n[rank 1] one\n[rank 1] more\n[rank 2] two\n"


def test_live_shows_every_line_as_it_comes(shown):
    relay = Relay(2, "live", shown)
    relay.feed(1, b"a\n")
    relay.feed(0, b"b\n")
    relay.feed(1, b"c\n")
    assert shown.getvalue() == "[rank 1] a\n[rank 0] b\n[rank 1] c\n"


def test_a_line_that_has_waited_too_long_is_shown_out_of_turn(shown, monkeypatch):
    clock = 100.0
    monkeypatch.setattr(output.time, "monotonic", lambda: clock)
    relay = Relay(2, "ordered", shown)
    relay.feed(1, b"stuck behind rank 0\n")
    clock += output.PATIENCE - 1
    relay.pass_on()
    assert shown.getvalue() == ""
    clock += 2
    relay.pass_on()
    assert shown.getvalue() == "[rank 1] stuck behind rank 0\n"


def test_pieces_of_a_line_are_put_together_and_the_last_line_is_ended(shown):
    relay = Relay(1, "live", shown)
    for piece in (b"one li", b"ne\ntw", b"o"):
        relay.feed(0, piece)
    assert shown.getvalue() == "[rank 0] one line\n"
    relay.finish(0)
    assert shown.getvalue() == "[rank 0] one line\n[rank 0] two\n"


def test_a_character_cut_in_two_arrives_whole_and_garbage_is_marked(shown):
    relay = Relay(1, "live", shown)
    euro = "€\n".encode()
    relay.feed(0, euro[:1])
    relay.feed(0, euro[1:] + b"\xff\n")
    assert shown.getvalue() == "[rank 0] €\n[rank 0] \ufffd\n"


def test_of_a_progress_bar_the_last_state_is_shown(shown):
    relay = Relay(1, "live", shown)
    relay.feed(0, b"10 %\r50 %\r100 %\nwindows\r\n")
    assert shown.getvalue() == "[rank 0] 100 %\n[rank 0] windows\n"


def test_a_flood_keeps_its_beginning_and_its_end(shown):
    relay = Relay(1, "live", shown)
    line = b"x" * 99 + b"\n"
    for _ in range(10 * HEAD // len(line)):
        relay.feed(0, line)
    assert len(shown.getvalue()) < 1.2 * HEAD
    relay.feed(0, b"the end\n")
    relay.finish(0)
    text = shown.getvalue()
    assert len(text) < 1.2 * (HEAD + 2 * TAIL)
    assert "bytes left out" in text
    assert text.endswith("[rank 0] the end\n")


def test_the_texts_of_the_ranks_carry_no_labels(shown):
    relay = Relay(2, "ordered", shown)
    relay.feed(1, b"one\n")
    relay.feed(0, b"zero\nnull")
    relay.close()
    assert relay.texts == ["zero\nnull\n", "one\n"]


def test_output_goes_to_whatever_sys_stdout_is_at_that_moment(capsys):
    relay = Relay(1, "live", None)
    relay.feed(0, b"hello\n")
    assert capsys.readouterr().out == "[rank 0] hello\n"
