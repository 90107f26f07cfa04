"""What a learner gets: the notebook without solutions and hidden tests, and each stub."""

from __future__ import annotations

from copy import deepcopy

from nbformat import NotebookNode

from ringlab.grade.nbgrader import without_hidden, without_solution
from tools.exercises.form import role


def student_notebook(solution: NotebookNode) -> NotebookNode:
    """The notebook to hand out, as nbgrader's ``generate_assignment`` would make it."""
    result = deepcopy(solution)
    for cell in result.cells:
        part = role(cell)[1]
        if part == "answer":
            cell.source = without_solution(cell.source)
        elif part == "check":
            cell.source = without_hidden(cell.source).rstrip("\n")
        if cell.cell_type == "code":
            cell.metadata.update({"deletable": False})
            cell.metadata.update({} if part == "answer" else {"editable": False})
    return result


def stubs(solution: NotebookNode) -> dict[str, str]:
    """The cell of each exercise as it is handed out, by the name of the exercise."""
    cells = student_notebook(solution).cells
    return {role(c)[0]: c.source for c in cells if role(c)[1] == "answer"}
