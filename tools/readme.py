"""Write what README.md and benchmarks/README.md show: their tables, and the picture of the ring.

    python -m tools.readme

Each table stands between two comments; the picture comes from the record of a real run in a
virtual world, and the results of benchmarks from where they are stored. Tests run this and find
nothing to change.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from benchmarks import decode as decoded
from benchmarks import messages, stored
from benchmarks.peers import table as peers
from ringlab import World, decode, ring_attention
from ringlab.calls.support import Feature
from ringlab.draw import Picture, draw_ring
from ringlab.prefill import SUPPORT
from tools import speed
from tools.blocks import with_block
from tools.course.tables import lessons_table

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
BENCHMARKS = ROOT / "benchmarks" / "README.md"
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
    return _filled(
        readme,
        {
            "support": support_table(SUPPORT),
            "decode support": support_table(decode.SUPPORT),
            "speed": speed.ratios_table(speed.rows()),
            "peers": peers.summary(_stored("peers")),
            "decode": decoded.tables(_stored("decode")),
            "lessons": lessons_table(),
        },
    )


def with_benchmarks(page: str) -> str:
    """The README of the benchmarks with all that is stored of them."""
    return _filled(
        page,
        {
            "peers": peers.tables(_stored("peers")),
            "decode": decoded.tables(_stored("decode")),
            "messages": messages.tables(_stored("messages")),
        },
    )


def _stored(name: str) -> stored.Data:
    return stored.read(stored.path_of(name))


def _filled(text: str, blocks: Mapping[str, str]) -> str:
    for name, body in blocks.items():
        text = with_block(text, name, body, "tools/readme.py")
    return text


def picture() -> Picture:
    """The ring of four ranks, drawn from the record of `ring_attention`."""
    q, k, v = torch.zeros(3, 1, 8, 1024, 64).unbind()  # of one rank
    world = World(4)
    world.run(ring_attention, q, k, v, length=4096)
    return draw_ring(world.timeline)


def main() -> int:
    """Rewrite both files and the picture."""
    for path, filled in ((README, with_tables), (BENCHMARKS, with_benchmarks)):
        path.write_text(filled(path.read_text(encoding="utf-8")), encoding="utf-8")
    PICTURE.parent.mkdir(exist_ok=True)
    drawn = picture()
    drawn.save(PICTURE, dpi=110)
    print(drawn.alt)
    return 0


if __name__ == "__main__":
    sys.exit(main())
