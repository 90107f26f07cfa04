"""Tell the project's own player, as `ringlab.draw.play` stores it, from every other script."""

from __future__ import annotations

import html
import json
import re
from base64 import b64decode

from ringlab.draw.player import player_html

STORED = re.compile(
    r'<div class="ringlab-player"[^>]*><img [^>]*src="data:image/svg\+xml;base64,(?P<svg>[^"]+)"'
    r' alt="(?P<alt>[^"]*)"></div>\n<script>.*previousElementSibling, (?P<data>\{.*\})\);\n\}'
    r"</script>",
    re.DOTALL,
)
ACTIVE = re.compile(
    r"<\s*(script|foreignObject|iframe|image|set|animate)|javascript:|\son\w+\s*=|href=\"(?!#)",
    re.I,
)


def is_own_player(output: str) -> bool:
    """Whether HTML is what this project's source makes of the picture and the data in it.

    The player puts the picture and the words of its data into the page, so neither may hold
    anything that runs: no markup in the data, nothing active in the picture.
    """
    found = STORED.fullmatch(output)
    if found is None:
        return False
    try:
        svg, data = b64decode(found["svg"]).decode(), json.loads(found["data"])
    except ValueError:
        return False
    again = player_html(svg, html.unescape(found["alt"]), data)
    return again == output and "\\u003c" not in found["data"] and not ACTIVE.search(svg)


def without_own_script(output: str) -> str:
    """HTML as a front end shows it that drops scripts, if its script is the player's."""
    return output.partition("\n<script>")[0] if is_own_player(output) else output
