"""A picture: a matplotlib figure with a description in words."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ringlab.draw.theme import Theme

# One picture gives one SVG: no date in it, no random names.
_STABLE_SVG: dict[str, Any] = {"metadata": {"Date": None}}


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
        self._lay_out()
        target = Path(path)
        stamp = _STABLE_SVG if target.suffix == ".svg" else {}
        with matplotlib.rc_context({"svg.hashsalt": "ringlab", "svg.fonttype": "path"}):
            self.figure.savefig(target, dpi=dpi, bbox_inches="tight", **stamp)
        return target

    def svg(self) -> str:
        """The picture as SVG, the same text each time; text is drawn as outlines."""
        self._lay_out()
        buffer = io.StringIO()
        with matplotlib.rc_context({"svg.hashsalt": "ringlab", "svg.fonttype": "path"}):
            self.figure.savefig(buffer, format="svg", bbox_inches="tight", **_STABLE_SVG)
        return buffer.getvalue()

    def _lay_out(self) -> None:
        """Place everything once: a second pass would move it by a hair."""
        if self.figure.get_layout_engine() is not None:
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")

    def __repr__(self) -> str:
        return f"Picture: {self.alt}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> tuple[Any, Any]:
        self._lay_out()
        buffer = io.BytesIO()
        self.figure.savefig(buffer, format="png", dpi=110, bbox_inches="tight")
        data = {"image/png": b64encode(buffer.getvalue()).decode(), "text/plain": repr(self)}
        return data, {"image/png": {"alt": self.alt}}


def sheet(width: float, height: float, theme: Theme) -> Figure:
    """An empty figure, in inches, on the paper of a theme."""
    return Figure(figsize=(width, height), facecolor=theme.paper, layout="constrained")


def plain(axis: Axes, theme: Theme, *, grid: str = "") -> None:
    """Give an axis the look that all share: ink on the panel, two spines, a quiet grid.

    Parameters
    ----------
    axis : matplotlib.axes.Axes
    theme : Theme
    grid : {"", "x", "y", "both"}
        Across which axis grid lines help to read a value.
    """
    axis.set_facecolor(theme.panel)
    axis.spines[["top", "right"]].set_visible(False)
    axis.spines[["left", "bottom"]].set_color(theme.faint)
    axis.tick_params(colors=theme.ink, which="both", labelsize=9)
    axis.xaxis.label.set_color(theme.ink)
    axis.yaxis.label.set_color(theme.ink)
    axis.set_axisbelow(True)
    if grid:
        axis.grid(axis=grid, color=theme.faint, alpha=0.25)  # type: ignore[arg-type]


def settle(axis: Axes) -> None:
    """Declare that all drawn on the axis so far lies inside it: the layout need not measure it."""
    for artist in (*axis.patches, *axis.texts):
        artist.set_in_layout(False)


def legend(figure: Figure, theme: Theme, handles: Sequence[Any] = (), *, columns: int = 4) -> None:
    """Put the key below the figure, in ink and without a frame, where it covers nothing.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    theme : Theme
    handles : sequence of artists
        What to explain; by default all that carries a label.
    columns : int
        Entries in a row.
    """
    labelled = handles or [
        handle for axis in figure.axes for handle in axis.get_legend_handles_labels()[0]
    ]
    figure.legend(handles=list(labelled), loc="outside lower center", ncols=columns,
                  frameon=False, fontsize=8.5, labelcolor=theme.ink)  # fmt: skip
