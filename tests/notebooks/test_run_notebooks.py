"""The form in which a notebook is stored after it was executed."""

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from tools.run_notebooks import WIDGET, normalise


def printed(text, name="stdout"):
    return new_output("stream", text=text, name=name)


def normalised(*cells):
    notebook = new_notebook(cells=list(cells), metadata={"widgets": {}, "vscode": 1})
    normalise(notebook)
    return notebook


def test_pieces_of_one_stream_are_joined_and_others_are_not():
    pieces = [printed("a"), printed("b\n"), printed("!", "stderr"), printed("c")]
    cell = normalised(new_code_cell("x", outputs=pieces)).cells[0]
    assert [(o.name, o.text) for o in cell.outputs] == [
        ("stdout", "ab\n"),
        ("stderr", "!"),
        ("stdout", "c"),
    ]


def test_counts_run_from_one_and_skip_what_is_empty():
    result = new_output("execute_result", data={"text/plain": "1"}, execution_count=7)
    cells = [new_code_cell("1", outputs=[result]), new_code_cell(" "), new_code_cell("2")]
    notebook = normalised(new_markdown_cell("text"), *cells)
    assert [c.get("execution_count") for c in notebook.cells] == [None, 1, None, 2]
    assert notebook.cells[1].outputs[0].execution_count == 1


def test_tags_and_claims_stay_and_the_rest_of_the_metadata_goes():
    kept = {"tags": ["nbval-ignore-output"], "claims": {"C1": "KiB"}}
    cell = new_code_cell("1", metadata={**kept, "collapsed": True, "execution": {"iopub": "12:00"}})
    notebook = normalised(cell)
    assert notebook.cells[0].metadata == kept
    assert set(notebook.metadata) == {"kernelspec", "language_info"}


def test_a_widget_leaves_its_picture_and_one_without_a_picture_stays_to_be_noticed():
    view, png = {WIDGET: {"model_id": "1"}, "text/plain": "box"}, {"image/png": "iVBORw0K"}
    outputs = [new_output("display_data", data=data) for data in ({**view, **png}, view)]
    cell = normalised(new_code_cell("1", outputs=outputs)).cells[0]
    assert [set(o.data) for o in cell.outputs] == [
        {"image/png", "text/plain"},
        {WIDGET, "text/plain"},
    ]
