"""Write what the README shows: the tables of support and of lessons, the picture of the ring.

    python -m tools.readme

Each table stands between two comments; the picture comes from the record of a real run in a
virtual world. A test runs this and finds nothing to change.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from ringlab import World, decode, ring_attention
from ringlab.calls.support import Feature
from ringlab.draw import Picture, draw_ring
from ringlab.prefill import SUPPORT
from tools import speed
from tools.blocks import with_block
from tools.course.tables import lessons_table

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "ring.png"


def support_table(features: Sequence[Feature]) -> str:
    """A table of what calls support and refuse, in Markdown."""
    rows = ["| | | how, or what to use instead |", "| --- | --- | --- |"]
    for status, mark in (("supported", "yes"), ("refused", "refused")):
        rows += [
            f"| {feature.name} | {mark} | {feature.note.rstrip('.')} |"
            for feature in features
            if feature.status == status
        ]
    return "\n".join(rows)


def with_tables(readme: str) -> str:
    """The README with each table between its two comments replaced."""
    tables = {
        "support": support_table(SUPPORT),
        "decode support": support_table(decode.SUPPORT),
        "speed": speed.ratios_table(speed.rows()),
        "lessons": lessons_table(),
    }
    for name, table in tables.items():
        readme = with_block(readme, name, table, "tools/readme.py")
    return readme


def picture() -> Picture:
    """The ring of four ranks, drawn from the record of `ring_attention`."""
    q, k, v = torch.zeros(3, 1, 8, 1024, 64).unbind()  # of one rank
    world = World(4)
    world.run(ring_attention, q, k, v, length=4096)
    return draw_ring(world.timeline)


def main() -> int:
    """Rewrite README.md and the picture."""
    readme = ROOT / "README.md"
    readme.write_text(with_tables(readme.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = picture()
    drawn.save(PICTURE, dpi=110)
    print(drawn.alt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
