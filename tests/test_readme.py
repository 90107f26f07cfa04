"""What the README shows of the library is what the library says and draws."""

import re
from pathlib import Path

import numpy as np
from matplotlib.testing.compare import calculate_rms
from PIL import Image

from benchmarks import stored
from ringlab.prefill import SUPPORT
from tools import readme

ROOT = Path(__file__).parents[1]


def test_the_table_of_support_is_that_of_the_library():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.with_tables(text) == text
    assert all(feature.name in text and feature.note.rstrip(".") in text for feature in SUPPORT)


def test_the_results_of_benchmarks_are_those_that_are_stored():
    text = readme.BENCHMARKS.read_text(encoding="utf-8")
    assert readme.with_benchmarks(text) == text
    for library in stored.read(stored.path_of("peers"))["libraries"]:
        assert f"| {library['name']} |" in text


def test_the_table_of_lessons_lists_those_that_there_are():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"\(notebooks/(\w+\.ipynb)\)", text))
    assert listed == {path.name for path in (ROOT / "notebooks").glob("*.ipynb")}


def test_a_change_of_the_table_would_be_noticed(monkeypatch):
    monkeypatch.setattr(readme, "SUPPORT", SUPPORT[1:])
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert readme.with_tables(text) != text


def test_the_picture_is_the_one_the_library_draws(tmp_path):
    drawn = np.asarray(Image.open(readme.picture().save(tmp_path / "ring.png", dpi=110)))
    stored = np.asarray(Image.open(readme.PICTURE))
    assert drawn.shape == stored.shape
    # fonts may be smoothed differently elsewhere
    assert calculate_rms(drawn.astype(int), stored.astype(int)) < 10
