"""``ringlab demo`` runs real ranks and says what it found."""

import pytest

from ringlab.commands import demo
from ringlab.layout import ZigZag


@pytest.mark.processes
def test_the_demo_checks_counts_and_draws(tmp_path, capsys):
    picture = tmp_path / "ring.png"
    assert demo.main(["--ranks", "3", "--tokens", "200", "--out", str(picture)]) == 0
    said = capsys.readouterr().out
    assert "hop 2:" in said
    assert "hop 3:" not in said
    assert "on 3 processes over gloo" in said
    assert picture.read_bytes().startswith(b"\x89PNG")


@pytest.mark.processes
def test_the_demo_fails_when_the_result_is_wrong(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(demo, "reference", lambda q, k, v: q.double())
    assert demo.main(["--ranks", "2", "--tokens", "64", "--out", str(tmp_path / "a.png")]) == 1
    assert "This is not as it should be." in capsys.readouterr().out


def test_a_ring_of_one_is_refused_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        demo.main(["--ranks", "1"])
    assert "at least 2" in capsys.readouterr().err


def test_the_formula_of_the_demo_follows_the_blocks_that_pass_rank_0():
    lengths = ZigZag().lengths(4, 2049)
    assert sum(lengths) == 2049
    assert len(set(lengths)) > 1
