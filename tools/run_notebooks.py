"""Execute notebooks in place and bring them to the form in which they are stored.

A stored notebook comes from one complete run, top to bottom, and differs from the next
run's only where its outputs do: consecutive pieces of one stream are joined, and what a
front end or a clock put into the metadata is dropped.

    python tools/run_notebooks.py notebooks/*.ipynb
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

WIDGET = "application/vnd.jupyter.widget-view+json"
KEPT_CELL_METADATA = ("tags", "nbgrader", "claims")
NOTEBOOK_METADATA: dict[str, Any] = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
}


def normalise(notebook: nbformat.NotebookNode) -> None:
    """Drop what changes from run to run without meaning anything."""
    notebook.metadata = nbformat.from_dict(NOTEBOOK_METADATA)
    number = 0
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict(
            {key: cell.metadata[key] for key in KEPT_CELL_METADATA if key in cell.metadata}
        )
        if cell.cell_type != "code":
            continue
        if cell.source.strip():
            number += 1
            cell.execution_count = number
        cell.outputs = joined_streams(cell.outputs)
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):  # what a kernel's widget leaves behind
                output.data.pop(WIDGET, None)
            if "execution_count" in output:
                output.execution_count = cell.execution_count


def joined_streams(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """Join consecutive pieces of one stream, which arrive as the timing has it."""
    joined: list[nbformat.NotebookNode] = []
    for output in outputs:
        last = joined[-1] if joined else None
        both_streams = last is not None and last.output_type == output.output_type == "stream"
        if last is not None and both_streams and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def main(paths: list[str]) -> int:
    """Execute and rewrite each notebook; stop at the first that fails."""
    if not paths:
        print(__doc__)
        return 2
    for path in map(Path, paths):
        began = time.perf_counter()
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(
            notebook, timeout=300, kernel_name="python3",
            resources={"metadata": {"path": str(path.parent)}}, record_timing=False,
        )  # fmt: skip
        client.execute()
        normalise(notebook)
        nbformat.validate(notebook)
        nbformat.write(notebook, path)
        print(f"{path}: {time.perf_counter() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
