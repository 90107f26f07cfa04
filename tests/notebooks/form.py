"""Checks of the form of a stored notebook. Each returns what is wrong, in words; nothing if fine.

They look at the stored file only, run nothing, and know one rule each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise

import nbformat
from nbformat import NotebookNode

from tests.notebooks.form_text import (
    no_sentence_twice,
    prose,
    sections_are_numbered,
    sections_exist,
    tables_are_even,
    verdicts_say_where,
)
from tests.notebooks.stored_player import without_own_script

Check = Callable[[NotebookNode], list[str]]

WIDGET = "application/vnd.jupyter.widget-view+json"
SHOWN_WITHOUT_TRUST = {"text/plain", "image/png", "text/html", "text/markdown", "text/latex"}
UNSAFE_HTML = re.compile(
    r"<\s*(script|iframe|object|embed|style|svg)\b|javascript:|\son\w+\s*=", re.I
)
MACHINE = re.compile(r"0x[0-9a-f]{6,}|ipykernel_\d+|/tmp/|/home/|site-packages")
CLOCK = re.compile(
    r"perf_counter|monotonic|process_time|thread_time|\btime\.time\b|%%?timeit|%%?time\b"
)
SECONDS = re.compile(r"\d\.\d+ ?(?:ms|µs|us|s)\b")
LARGEST = 1_500_000  # bytes
RELATIVE_PATH = re.compile(r"""(?:open|Path|read_\w+|save|savefig|load)\(\s*f?["'](?!/)""")


def cells(notebook: NotebookNode, kind: str) -> list[NotebookNode]:
    """The cells of one kind."""
    return [cell for cell in notebook.cells if cell.cell_type == kind]


def outputs(notebook: NotebookNode) -> Iterator[tuple[NotebookNode, NotebookNode]]:
    """Each output with its cell."""
    for cell in cells(notebook, "code"):
        for output in cell.outputs:
            yield cell, output


def tags(cell: NotebookNode) -> list[str]:
    """The tags of a cell."""
    return list(cell.metadata.get("tags", []))


def is_valid(notebook: NotebookNode) -> list[str]:
    """It is a notebook, and its cells have ids that say where they are."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [str(error)]
    return [f"id {c.id}" for c in notebook.cells if not re.fullmatch(r"[a-z]+-\d\d", c.id)]


def one_complete_run(notebook: NotebookNode) -> list[str]:
    """Execution counts are 1, 2, 3 ... from top to bottom, and no cell is empty."""
    code = cells(notebook, "code")
    counts = [cell.execution_count for cell in code]
    wrong = [] if counts == list(range(1, len(code) + 1)) else [f"execution counts {counts}"]
    return wrong + [f"{cell.id} is empty" for cell in code if not cell.source.strip()]


def errors_are_meant(notebook: NotebookNode) -> list[str]:
    """A cell that stored an error is tagged for it, and a tagged cell did raise."""
    wrong = []
    for cell in cells(notebook, "code"):
        raised = any(output.output_type == "error" for output in cell.outputs)
        if raised != ("raises-exception" in tags(cell)):
            wrong.append(f"{cell.id}: error {raised}, tags {tags(cell)}")
    return wrong


def no_warnings(notebook: NotebookNode) -> list[str]:
    """Nothing was written to stderr."""
    return [c.id for c, o in outputs(notebook) if o.output_type == "stream" and o.name == "stderr"]


def safe_outputs(notebook: NotebookNode) -> list[str]:
    """Outputs hold only what a front end shows of a notebook that nobody has trusted.

    One script is excepted, that of `ringlab.draw.play`, if it is the project's own byte for byte
    (see `stored_player.py`). It adds no risk: it runs only in a notebook that its reader has run
    or trusted, and the first cell of that already runs the same project's code. And nothing is
    lost where it does not run: the same output then shows the picture, with its words. Without
    the exception the player could not be seen in a notebook that is opened again.
    """
    wrong = []
    for cell, output in outputs(notebook):
        data = output.get("data", {})
        strange = set(data) - SHOWN_WITHOUT_TRUST - {WIDGET}
        wrong += [f"{cell.id}: {kind}" for kind in sorted(strange)]
        found = UNSAFE_HTML.search(without_own_script(data.get("text/html", "")))
        wrong += [f"{cell.id}: {found[0]} in text/html"] if found else []
    return wrong


def widgets_have_pictures(notebook: NotebookNode) -> list[str]:
    """Beside each widget stands a picture for whoever has no kernel."""
    return [
        cell.id
        for cell, output in outputs(notebook)
        if WIDGET in output.get("data", {})
        and "image/png" not in output.data
        and "<img" not in output.data.get("text/html", "")
    ]


def pictures_have_words(notebook: NotebookNode) -> list[str]:
    """Each picture has an alternative text, which stands in its plain text too."""
    wrong = []
    for cell, output in outputs(notebook):
        data = output.get("data", {})
        if "image/png" in data:
            alt = output.metadata.get("image/png", {}).get("alt", "")
            if len(alt) <= 40 or alt not in data.get("text/plain", ""):
                wrong.append(f"{cell.id}: alt text {alt!r}")
        for image in re.findall(r"<img\b[^>]*>", without_own_script(data.get("text/html", ""))):
            if not re.search(r'\balt="[^"]{40,}"', image):
                wrong.append(f"{cell.id}: an <img> without alt text")
    return wrong


def two_pictures(notebook: NotebookNode) -> list[str]:
    """At least two pictures came out of the run."""
    found = [cell.id for cell, output in outputs(notebook) if "image/png" in output.get("data", {})]
    return [] if len(found) >= 2 else [f"pictures in {found}"]


def nothing_of_this_machine(notebook: NotebookNode) -> list[str]:
    """No path, address or process number stands in an output."""
    wrong = []
    for cell, output in outputs(notebook):
        shown = {k: v for k, v in output.get("data", {}).items() if k.startswith("text/")}
        text = "\n".join([output.get("text", ""), output.get("evalue", ""), *shown.values()])
        text = re.sub(r"base64,[^\"']*", "", text)
        wrong += [f"{cell.id}: {found}" for found in MACHINE.findall(text)]
    return wrong


def times_are_tagged(notebook: NotebookNode) -> list[str]:
    """A cell that reads a clock, or prints fractions of seconds, is not compared."""
    wrong = []
    for cell in cells(notebook, "code"):
        printed = "\n".join(o.get("text", "") for o in cell.outputs)
        timed = CLOCK.search(cell.source) or SECONDS.search(printed)
        if timed and "nbval-ignore-output" not in tags(cell):
            wrong.append(f"{cell.id}: {timed[0]}")
    return wrong


def ignored_by_tag(notebook: NotebookNode) -> list[str]:
    """What nbval shall not compare is said by a tag, not by a comment in the reader's way."""
    return [cell.id for cell in cells(notebook, "code") if "NBVAL_" in cell.source]


def predictions(notebook: NotebookNode) -> list[str]:
    """At least two predictions, each with a folded answer and followed by its experiment."""
    boxes = [cell for cell in cells(notebook, "markdown") if "**Predict.**" in cell.source]
    wrong = [] if len(boxes) >= 2 else [f"{len(boxes)} predictions"]
    for cell in boxes:
        answers = re.findall(
            r"^> <details><summary>Answer</summary>.+</details>$", cell.source, re.M
        )
        if len(answers) != cell.source.count("**Predict.**"):
            wrong.append(f"{cell.id}: no folded answer")
    for here, following in pairwise([*notebook.cells, None]):
        if here in boxes and (following is None or following.cell_type != "code"):
            wrong.append(f"{here.id}: no experiment follows")
    return wrong


def real_ranks(notebook: NotebookNode) -> list[str]:
    """At least one experiment runs on processes."""
    code = "\n".join(cell.source for cell in cells(notebook, "code"))
    return (
        []
        if re.search(r"""World\([^)]*backend=(["']gloo["']|ranks\.backend)""", code)
        else ["no world of processes"]
    )


def the_article(notebook: NotebookNode) -> list[str]:
    """A box says what the article says, and the verdict."""
    boxes = re.findall(r"(?:^>.*\n?)+", prose(notebook), re.M)
    told = [box for box in boxes if "article" in box and re.search(r"\*\*Verdicts?:", box)]
    return [] if told else ["no box with the article's claim and a verdict"]


def the_parts(notebook: NotebookNode) -> list[str]:
    """It ends with a summary and with tasks whose answers are folded."""
    text = prose(notebook)
    parts = {
        "summary": r"^## \d+\. What you saw$",
        "tasks": r"^## \d+\. To try$",
        "folded answers": r"^<details><summary>Answers</summary>$",
    }
    return [f"no {name}" for name, pattern in parts.items() if not re.search(pattern, text, re.M)]


def no_relative_path(notebook: NotebookNode) -> list[str]:
    """Nothing is read or written beside the notebook, so any working directory will do."""
    return [
        f"{cell.id}: {found[0]}"
        for cell in cells(notebook, "code")
        if (found := RELATIVE_PATH.search(cell.source))
    ]


def small_enough(notebook: NotebookNode) -> list[str]:
    """It is small enough for a code host to show it."""
    size = len(nbformat.writes(notebook))
    return [] if size < LARGEST else [f"{size:,} bytes"]


CHECKS: tuple[Check, ...] = (
    is_valid, one_complete_run, errors_are_meant, no_warnings, safe_outputs,
    widgets_have_pictures, pictures_have_words, two_pictures, nothing_of_this_machine,
    times_are_tagged, ignored_by_tag, predictions, real_ranks, the_article, the_parts,
    no_relative_path, small_enough, sections_are_numbered, sections_exist, no_sentence_twice,
    tables_are_even, verdicts_say_where,
)  # fmt: skip
