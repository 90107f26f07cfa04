"""Light and dark: the colours of a picture, and the hatches that double them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ThemeName = Literal["light", "dark"]

# Every use of a colour is doubled by a label, a hatch or a place.
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")


@dataclass(frozen=True)
class Theme:
    """Colours of a picture, as matplotlib takes them.

    Parameters
    ----------
    paper, panel : str
        Behind everything, and behind the data.
    ink, faint : str
        Text and outlines, and what stands back: grids and notes.
    alarm : str
        What the reader should look at first.
    palette : tuple of str
        Eight colours that can be told apart with any colour vision (after Okabe and Ito,
        2008, the yellow darkened on light paper).
    """

    paper: str
    panel: str
    ink: str
    faint: str
    alarm: str
    palette: tuple[str, ...]

    def colour(self, number: int) -> str:
        """The colour of the thing with this number; they repeat after eight."""
        return self.palette[number % len(self.palette)]

    def tint(self, number: int, strength: float = 0.2) -> str:
        """The same colour thinned with that of the panel, so that ink can be read on it.

        It is opaque: a transparent fill would thin its hatch as well.
        """
        return mixed(self.colour(number), self.panel, strength)

    def hatch(self, number: int) -> str:
        """The hatch of the thing with this number: another one for each eight."""
        return HATCHES[number // len(self.palette) % len(HATCHES)]


_LIGHT = Theme(
    paper="#fbfbf8",
    panel="#ffffff",
    ink="#1b1f24",
    faint="#8c949e",
    alarm="#b3261e",
    palette=("#0072b2", "#e69f00", "#009e73", "#cc79a7",
             "#56b4e9", "#d55e00", "#b5a300", "#7f7f7f"),
)  # fmt: skip
_DARK = Theme(
    paper="#14171c",
    panel="#1c2027",
    ink="#eceef1",
    faint="#8c949e",
    alarm="#ff8a80",
    palette=("#4ba3e3", "#f0b43c", "#2fc496", "#e59ac6",
             "#9bd6f7", "#ff8a4c", "#f5ec7a", "#b0b0b0"),
)  # fmt: skip


def mixed(colour: str, other: str, strength: float) -> str:
    """So much of one colour, and the rest of another: ``#rrggbb``."""
    parts = [
        round(int(colour[i : i + 2], 16) * strength + int(other[i : i + 2], 16) * (1 - strength))
        for i in (1, 3, 5)
    ]
    return "#" + "".join(f"{part:02x}" for part in parts)


def theme_named(name: ThemeName) -> Theme:
    """Look a theme up.

    Raises
    ------
    ValueError
        If there is no theme of that name.
    """
    if name == "light":
        return _LIGHT
    if name == "dark":
        return _DARK
    raise ValueError(f'there is no theme {name!r}; choose "light" or "dark".')
