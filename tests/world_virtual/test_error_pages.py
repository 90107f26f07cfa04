"""The pages in docs/errors: each report, each outcome on gloo and each fix is run."""

from __future__ import annotations

import pytest

from ringlab import World
from ringlab.world import WorldError, errors
from tools import error_pages, error_programs
from tools.error_pages import FOLDER, INDEX, Page

PAGES = list(error_pages.pages())
HANGS = 0.7
"""Deadline of ranks that are known to hang; the pages are written with a longer one."""

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.path.stem)


@every_page
def test_the_report_on_a_page_is_what_the_world_says(page: Page):
    text = page.path.read_text(encoding="utf-8")
    assert error_pages.with_report(page) == text
    assert f"```text\n{page.error}: " in text


@every_page
def test_the_mended_program_runs_clean(page: Page):
    assert error_programs.run(page.fixed, World)


@pytest.mark.processes
@every_page
def test_gloo_does_what_the_page_says(page: Page):
    expected = page.gloo
    if expected is None:
        outcome = error_programs.gloo_outcome(page.wrong, HANGS)
        assert outcome.startswith(("rank 0 returns", "hangs: "))
        return
    patience = HANGS if expected.startswith("hangs") else 30.0
    assert error_programs.gloo_outcome(page.wrong, patience) == expected


@pytest.mark.processes
@every_page
def test_the_mended_program_returns_the_same_on_gloo(page: Page):
    here = error_programs.run(page.fixed, World)
    expected = "\n".join(f"rank {rank} returns {result}" for rank, result in enumerate(here))
    assert error_programs.gloo_outcome(page.fixed, 30.0) == expected


def test_the_index_lists_every_page():
    text = INDEX.read_text(encoding="utf-8")
    assert error_pages.with_index(text) == text
    assert all(f"({page.path.name})" in text for page in PAGES)


def test_every_error_of_the_world_has_a_page():
    classes = {
        c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, WorldError)
    }
    on_pages = {page.error for page in PAGES} | {"BadCall"}  # which ends a rank: RankFailed
    assert {c.__name__ for c in classes} - {"WorldError"} == on_pages


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        text = page.path.read_text(encoding="utf-8")
        linked = {part.split(")")[0] for part in text.split("](")[1:]}
        assert all((FOLDER / link).is_file() for link in linked if "://" not in link), page.path


def test_a_report_that_has_changed_would_be_noticed(monkeypatch):
    page = PAGES[0]
    monkeypatch.setattr(error_pages, "world_report", lambda source: "something else")
    assert error_pages.with_report(page) != page.path.read_text(encoding="utf-8")


def test_a_program_in_which_nothing_is_wrong_gets_no_page():
    with pytest.raises(ValueError, match="found nothing wrong"):
        error_programs.world_report(PAGES[0].fixed)
