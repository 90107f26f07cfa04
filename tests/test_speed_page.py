"""The page on speed, and the README's table of it, show the stored measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import readme, speed

ROOT = Path(__file__).parents[1]


def test_the_page_shows_what_was_measured() -> None:
    text = speed.PAGE.read_text(encoding="utf-8")
    assert speed.page(text) == text


def test_every_prefill_row_is_on_the_page_and_in_the_readme() -> None:
    found = speed.rows()
    assert speed.losses_table(found).count("\n") == 1 + len(found)
    assert speed.ratios_table(found) in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_losses_of_a_row_add_up_to_its_ratio() -> None:
    for row in speed.rows():
        lost = sum(row[f"{name}_percent"] for name in speed.LOSSES.values())
        assert row["least_ratio"] == pytest.approx(100 / (100 + lost))


def test_another_measurement_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    faster = [row | {"cpu_ratio": row["cpu_ratio"] + 0.1} for row in speed.rows()]
    monkeypatch.setattr(speed, "rows", lambda: faster)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.with_tables(text) != text
    page = speed.PAGE.read_text(encoding="utf-8")
    assert speed.page(page) != page
