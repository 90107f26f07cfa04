"""A player for timelines: play, step, scrub and pick a rank, in the browser alone."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterable
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any

from ringlab.draw.lane_axis import MOST_RANKS
from ringlab.draw.lanes import bars_of, ranks_to_draw, words
from ringlab.draw.picture import Picture
from ringlab.draw.theme import ThemeName, theme_named
from ringlab.draw.timeline import draw_timeline
from ringlab.draw.units import seconds_unit
from ringlab.timeline import Timeline


class Player:
    """A timeline that can be played; made by `play`.

    Parameters
    ----------
    picture : Picture
        Of the whole timeline.
    data : dict
        What the script in the browser needs beside the picture.

    Notes
    -----
    Its output holds the picture, and a script that makes a player of it. It needs no kernel, no
    stored widget state and no network: it plays in a notebook that is opened again, and on an
    exported page. An untrusted notebook drops the script, and shows the picture.
    """

    def __init__(self, picture: Picture, data: dict[str, Any]) -> None:
        self.picture, self.data = picture, data

    @property
    def alt(self) -> str:
        """What the picture shows, in words."""
        return self.picture.alt

    def html(self) -> str:
        """The player as a piece of a page, the same text each time."""
        return player_html(self.picture.svg(), self.alt, self.data)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a page that plays the timeline in any browser, with no notebook.

        Returns
        -------
        Path
            Where it was written.
        """
        target = Path(path)
        title = html.escape(self.data["title"])
        head = f'<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>{title}</title>\n'
        target.write_text(f"{head}{self.html()}\n</html>\n", encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"Player: {self.alt}"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html(), "text/plain": repr(self)}


def player_html(svg: str, alt: str, data: dict[str, Any]) -> str:
    """The piece of a page that shows a picture, and makes a player of it where scripts may run.

    It is the project's script with a picture and data, and nothing else, so that a stored player
    can be told from any other script: build it again, and compare.
    """
    image = b64encode(svg.encode()).decode()
    script = files("ringlab.draw").joinpath("player.js").read_text(encoding="utf-8")
    listed = json.dumps(data).replace("<", "\\u003c")
    return (
        '<div class="ringlab-player" data-lm-suppress-shortcuts="true">'
        f'<img style="max-width: 100%" src="data:image/svg+xml;base64,{image}" '
        f'alt="{html.escape(alt)}"></div>\n'
        f"<script>{{\n{script}"
        f"ringlabPlayer(document.currentScript.previousElementSibling, {listed});\n}}</script>"
    )


def play(
    timeline: Timeline,
    *,
    ranks: Iterable[int] | None = None,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Player:
    """Make a player of a timeline, for a notebook or a page.

    Parameters
    ----------
    timeline, ranks, title, theme
        As for `draw_timeline`, whose picture it plays: by time if the timeline has a clock, and
        by step if not.

    Returns
    -------
    Player
        Buttons and keys: Space plays and pauses, the left and right arrows go from event to
        event, Home and End to the ends, up and down pick a rank.

    Raises
    ------
    ValueError
        If the timeline is empty, or the ranks cannot be drawn.
    """
    chosen, look = ranks_to_draw(timeline, ranks, MOST_RANKS), theme_named(theme)
    bars = bars_of(timeline)
    picture = draw_timeline(timeline, ranks=chosen, title=title, theme=theme)
    scale, unit = seconds_unit(bars.end)
    data = {
        "title": picture.figure.axes[0].get_title(),
        "alt": picture.alt,
        "clocked": bars.clocked,
        "end": bars.end,
        "scale": scale,
        "unit": unit,
        "ranks": chosen,
        "paper": look.paper,
        "ink": look.ink,
        "accent": look.alarm,
        "bars": [
            {
                "id": bar.number,
                "rank": bar.event.rank,
                "start": bar.start,
                "end": bar.end,
                "words": words(bar.event),
            }
            for bar in bars.bars
            if bar.event.rank in chosen
        ],
    }
    return Player(picture, data)
