"""Write what the README shows of the library: the table of support and the picture of the ring.

    python tools/readme.py

The table stands between two comments; the picture comes from the record of a real run in a
virtual world. A test runs this and finds nothing to change.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import torch

from ringlab import World, ring_attention
from ringlab.draw import Picture, draw_ring
from ringlab.prefill import SUPPORT

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "ring.png"
START, END = "<!-- support: written by tools/readme.py -->", "<!-- end of support -->"


def support_table() -> str:
    """The table of what the prefill methods support and refuse, in Markdown."""
    rows = ["| | | how, or what to use instead |", "| --- | --- | --- |"]
    for status, mark in (("supported", "yes"), ("refused", "refused")):
        rows += [
            f"| {feature.name} | {mark} | {feature.note.rstrip('.')} |"
            for feature in SUPPORT
            if feature.status == status
        ]
    return "\n".join(rows)


def with_table(readme: str) -> str:
    """The README with the table between its two comments replaced."""
    pattern = re.compile(re.escape(START) + ".*?" + re.escape(END), re.DOTALL)
    if not pattern.search(readme):
        raise ValueError(f"README.md has no {START} ... {END}")
    return pattern.sub(lambda _: f"{START}\n{support_table()}\n{END}", readme)


def picture() -> Picture:
    """The ring of four ranks, drawn from the record of `ring_attention`."""
    q, k, v = torch.zeros(3, 1, 8, 1024, 64).unbind()  # of one rank
    world = World(4)
    world.run(ring_attention, q, k, v, length=4096)
    return draw_ring(world.timeline)


def main() -> int:
    """Rewrite README.md and the picture."""
    readme = ROOT / "README.md"
    readme.write_text(with_table(readme.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = picture()
    drawn.save(PICTURE, dpi=110)
    print(drawn.alt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
