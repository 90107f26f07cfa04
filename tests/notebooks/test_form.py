"""Every stored lesson has the form of a lesson, and every check of the form can fail."""

import copy
import re

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tests.notebooks import form
from tools.course.manifest import written

LESSONS = written()
IDS = [lesson.file for lesson in LESSONS]
ALT = "A picture with a text that is long enough to say what it shows."


@pytest.mark.parametrize("lesson", LESSONS, ids=IDS)
@pytest.mark.parametrize("check", form.CHECKS, ids=lambda check: check.__name__)
def test_a_lesson_has_the_form(lesson, check):
    assert check(lesson.read()) == []


def picture():
    return new_output(
        "execute_result",
        data={"image/png": "iVBOR", "text/plain": f"Picture: {ALT}"},
        metadata={"image/png": {"alt": ALT}},
        execution_count=1,
    )


def made(text=None, **changes):
    """A small notebook that passes every check, with its text or its last code cell changed."""
    predict = "> **Predict.** What?\n>\n> <details><summary>Answer</summary>That.</details>"
    ranks = 'World(4, backend="gloo").run(program)'
    row = "| C1 | it is so | **false** | section 1 |"
    answers = "<details><summary>Answers</summary>\n\n</details>"
    end = f"## 1. What you saw\n\n{row}\n\n## 2. To try\n\n{answers}"
    listed = [
        new_markdown_cell(predict),
        new_code_cell(ranks, execution_count=1, outputs=[picture()]),
        new_markdown_cell(f"> The article says so. **Verdict: false.**\n\n{predict}"),
        new_code_cell("draw()", execution_count=2, outputs=[picture()]),
        new_markdown_cell(end),
    ]
    for place, cell in enumerate(listed):
        cell.id = f"made-{place:02d}"
    listed[2].source = listed[2].source if text is None else text
    listed[3].update(changes)
    return new_notebook(cells=listed)


def with_output(**data):
    kinds = {kind.replace("__", "/").replace("_", "-"): value for kind, value in data.items()}
    return made(outputs=[picture(), new_output("display_data", data=kinds)])


def without_alt():
    notebook = made()
    notebook.cells[3].outputs[0].metadata = nbformat.from_dict({})
    return notebook


def widget_alone():
    notebook = made()
    notebook.cells[3].outputs.append(new_output("display_data", data={form.WIDGET: {}}))
    return notebook


def said(text, name="stdout"):
    return made(outputs=[picture(), new_output("stream", text=text, name=name)])


def without(pattern):
    notebook = made()
    for cell in notebook.cells:
        cell.source = re.sub(pattern, "", cell.source)
    return notebook


def bad_id():
    notebook = made()
    notebook.cells[0].id = "8f2c11ab"
    return notebook


RAISED = new_output("error", ename="ValueError", evalue="no", traceback=[])
LONE_PREDICTION = "> **Predict.** What?\n"

BROKEN = {
    "is_valid": [bad_id()],
    "one_complete_run": [made(execution_count=3), made(execution_count=None), made(source=" ")],
    "errors_are_meant": [
        made(outputs=[RAISED]),
        made(metadata=nbformat.from_dict({"tags": ["raises-exception"]})),
    ],
    "no_warnings": [said("FutureWarning: old", "stderr")],
    "safe_outputs": [
        with_output(application__javascript="alert(1)"),
        with_output(text__html="<b onclick='x()'>press</b>"),
        with_output(text__html="<script src='x'></script>"),
        with_output(**{"image__svg+xml": "<svg/>"}),
    ],
    "widgets_have_pictures": [widget_alone()],
    "pictures_have_words": [without_alt(), with_output(text__html='<img src="data:x" alt="ring">')],
    "two_pictures": [made(outputs=[])],
    "nothing_of_this_machine": [said("<function at 0x7f3a5c2b1d00>"), said("/tmp/" + "a.png")],
    "times_are_tagged": [said("took 0.31 s"), made(source="began = time.process_time()")],
    "ignored_by_tag": [made(source="# NBVAL_IGNORE_OUTPUT")],
    "predictions": [
        made(text=LONE_PREDICTION),
        made(text="Text."),
        without("<details><summary>Answer</summary>.*</details>"),
    ],
    "real_ranks": [without(', backend="gloo"')],
    "the_article": [without(r"\*\*Verdict: false\.\*\*"), without("article")],
    "the_parts": [without("To try"), without("What you saw"), without("<details><summary>Answers")],
    "small_enough": [said("x" * 2_000_000)],
    "sections_are_numbered": [without("## 1. ")],
    "sections_exist": [made(text="> The article. **Verdict: false.** As sections 1 and 5 say.")],
    "no_sentence_twice": [made(text="It says the very same thing two times over. " * 2)],
    "tables_are_even": [made(text="| a | b |\n|---|---|\n| 1 | 2 | 3 |")],
    "verdicts_say_where": [without("section 1"), without(r"\*\*false\*\*"), without(r"\| C1.*")],
    "no_relative_path": [made(source='open("data.csv")'), made(source="Path('out').mkdir()")],
}


def test_the_small_notebook_passes_every_check():
    assert {check.__name__: check(made()) for check in form.CHECKS if check(made())} == {}


@pytest.mark.parametrize("check", form.CHECKS, ids=lambda check: check.__name__)
def test_a_check_finds_what_it_is_for(check):
    for broken in BROKEN[check.__name__]:
        assert check(copy.deepcopy(broken)), broken


def test_an_experiment_must_follow_its_prediction():
    notebook = made()
    del notebook.cells[3]
    assert "made-02: no experiment follows" in form.predictions(notebook)


def test_a_timed_cell_may_print_times_if_it_is_not_compared():
    tagged = nbformat.from_dict({"tags": ["nbval-ignore-output"]})
    assert form.times_are_tagged(made(source="time.perf_counter()", metadata=tagged)) == []
