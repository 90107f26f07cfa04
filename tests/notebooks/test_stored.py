"""The notebooks as they are stored: from one complete run, readable with no kernel."""

import json
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
LESSONS = sorted((ROOT / "notebooks").glob("*.ipynb"))
NAMES = [path.stem for path in LESSONS]
BOLD = re.compile(r"\*\*([^*]+)\*\*")


def cells(path, kind):
    return [c for c in nbformat.read(path, as_version=4).cells if c.cell_type == kind]


def test_there_is_a_lesson():
    assert "03_the_ring" in NAMES


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_it_comes_from_one_complete_run_from_top_to_bottom(path):
    code = [c for c in cells(path, "code") if c.source.strip()]
    assert [c.execution_count for c in code] == list(range(1, len(code) + 1))
    assert not [o for c in code for o in c.outputs if o.output_type == "error"]


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_it_is_valid_and_has_stable_cell_ids(path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert all(re.fullmatch(r"[a-z]+-\d\d", c.id) for c in notebook.cells)


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_every_picture_has_words_beside_it(path):
    pictures = [
        o
        for c in cells(path, "code")
        for o in c.outputs
        if "data" in o and any(kind.startswith("image/") for kind in o.data)
    ]
    assert pictures
    for output in pictures:
        assert set(output.data) == {"image/png", "text/plain"}
        alt = output.metadata["image/png"]["alt"]
        assert len(alt) > 40
        assert alt in output.data["text/plain"]


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_outputs_hold_no_path_address_or_wall_clock(path):
    outputs = json.dumps([c.outputs for c in cells(path, "code")])
    outputs = re.sub(r'"image/png": "[^"]*"', "", outputs)
    for pattern in (r"0x[0-9a-f]{6,}", r"ipykernel_\d+", r"/tmp/", r"/home/", r"site-packages"):
        assert not re.search(pattern, outputs), pattern


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_it_has_the_parts_of_a_lesson(path):
    text = "\n".join(c.source for c in cells(path, "markdown"))
    for part in ("You will be able to", "Minutes", "You need first", "The article", "Verdict"):
        assert part in text, part
    assert text.count("**Predict.**") >= 5


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_every_prediction_is_followed_by_an_experiment(path):
    listed = nbformat.read(path, as_version=4).cells
    for here, following in pairwise(listed):
        if here.cell_type == "markdown" and "**Predict.**" in here.source:
            assert following.cell_type == "code", here.source[:80]


@pytest.mark.parametrize("path", LESSONS, ids=NAMES)
def test_every_term_the_lesson_introduces_is_in_the_glossary(path):
    glossary = (ROOT / "notebooks" / "GLOSSARY.md").read_text(encoding="utf-8").lower()
    text = "\n".join(c.source for c in cells(path, "markdown") if "Predict" not in c.source)
    introduced = {
        term.strip().lower()
        for paragraph in re.split(r"\n\s*\n", text)
        if not paragraph.lstrip().startswith(("|", ">", "1.", "*"))
        for term in BOLD.findall(paragraph)
        if re.fullmatch(r"[A-Za-z][\w\- ]+", term) and not term.endswith(".")
    }
    plain = {"all", "the same bits", "everything", "together"}
    missing = {t for t in introduced - plain if t.rstrip("s") not in glossary}
    assert not missing


def test_the_glossary_defines_every_term_once():
    rows = re.findall(r"^\| \*\*(.+?)\*\*", (ROOT / "notebooks/GLOSSARY.md").read_text(), re.M)
    assert len(rows) > 30
    assert len(set(rows)) == len(rows)
