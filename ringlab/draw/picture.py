"""A picture: a matplotlib figure with a description in words."""

from __future__ import annotations

import io
from base64 import b64encode
from os import PathLike
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

# Colours that can be told apart with any colour vision (Okabe and Ito); every use of one is
# doubled by a label, a hatch or a place.
INK = "#1b1f24"
FAINT = "#8c949e"
PAPER = "#fbfbf8"
PALETTE = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#7f7f7f")
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")


class Picture:
    """A figure and its alternative text; shows itself in a notebook, saves itself to a file.

    A stored notebook holds it as a PNG, which code hosts and untrusted notebooks show, with
    the text beside it for who cannot see it.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    alt : str
        What the picture shows, in a sentence or two.
    """

    def __init__(self, figure: Figure, alt: str) -> None:
        self.figure, self.alt = figure, alt

    def save(self, path: str | PathLike[str], dpi: int = 150) -> Path:
        """Write the picture to a file; the ending chooses the format (png, svg, pdf).

        Parameters
        ----------
        path : path-like
        dpi : int
            Dots per inch, for png.

        Returns
        -------
        Path
            Where it was written.
        """
        target = Path(path)
        stamp: dict[str, Any] = {"metadata": {"Date": None}} if target.suffix == ".svg" else {}
        self.figure.savefig(target, dpi=dpi, bbox_inches="tight", **stamp)
        return target

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        data = {"image/png": b64encode(buffer.getvalue()).decode(), "text/plain": repr(self)}
        return data, {"image/png": {"alt": self.alt}}


def sheet(width: float, height: float) -> Figure:
    """An empty figure, in inches, that reads well on a light and on a dark page."""
    return Figure(figsize=(width, height), facecolor=PAPER, layout="constrained")


def bytes_text(count: float) -> str:
    """A number of bytes for a person, in binary units: ``1536`` is ``1.5 KiB``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            return f"{count:.4g} {unit}"
        count /= 1024
    raise AssertionError("unreachable")
