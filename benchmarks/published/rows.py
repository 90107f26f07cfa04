"""Published results as data: what was measured, where it stands, and what it may be used for."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from benchmarks.published.variants import VARIANTS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DATA = Path(__file__).with_name("rows.toml")
KERNEL = "kernel alone"
"""The program of rows that one device ran: a single kernel over its whole sequence."""

Phase = Literal["forward", "backward", "both"]
UNITS = {"% of ideal": 1.0, "ms": 1e-3, "TFLOP/s": 1e12, "times": 1.0, "s": 1.0, "% slower": 1.0}


@dataclass(frozen=True)
class Source:
    """Where results stand.

    Attributes
    ----------
    title, address, place : str
        Place: a file of a repository with its commit, or a section.
    read : str
        When.
    hardware : str
        As the source says it.
    """

    title: str
    address: str
    place: str
    read: str
    hardware: str


@dataclass(frozen=True)
class Row:
    """One published number.

    Attributes
    ----------
    name : str
    source : Source
    published : float
    unit : str
        One of `UNITS`.
    phase : {"forward", "backward", "both"}
    program : str
        A name of `VARIANTS` or `KERNEL`; empty where nothing is priced.
    machine : str
        As `ringlab.machine.published` knows it; empty where nothing is priced.
    ranks, tokens, batch, heads, kv_heads, head_dim : int
        Of the whole problem; 0 where nothing is priced.
    causal : bool
    alternating : bool
        Whether forward was measured in a loop of forward and backward; otherwise in one of its own.
    scored : bool
        Whether the row counts.
    calibrates : bool
        Whether a factor was taken from it; such a row never counts.
    quantity : str
        What is measured; no two rows that count may share it.
    why : str
        Why a row does not count.
    explanation : str
        Of a miss.
    """

    name: str
    source: Source
    published: float
    unit: str
    phase: Phase = "forward"
    program: str = ""
    machine: str = ""
    ranks: int = 0
    tokens: int = 0
    batch: int = 1
    heads: int = 0
    kv_heads: int = 0
    head_dim: int = 0
    causal: bool = True
    alternating: bool = False
    scored: bool = False
    calibrates: bool = False
    quantity: str = ""
    why: str = ""
    explanation: str = ""

    def __post_init__(self) -> None:
        if self.unit not in UNITS:
            raise ValueError(f"{self.name}: unit {self.unit!r} is none of {', '.join(UNITS)}.")
        if self.program not in ("", KERNEL, *VARIANTS):
            raise ValueError(f"{self.name}: there is no program {self.program!r}.")
        if self.scored and self.calibrates:
            raise ValueError(
                f"{self.name} served to calibrate, so it cannot count; set scored = false."
            )
        if self.scored and self.program not in VARIANTS:
            raise ValueError(
                f"{self.name} counts, but no program of several ranks is priced for it."
            )
        if self.scored and not self.quantity:
            raise ValueError(f"{self.name} counts: say which quantity it is.")
        if not self.scored and not self.why:
            raise ValueError(f"{self.name} does not count: say why.")


def load(path: Path = DATA) -> list[Row]:
    """Read all rows.

    Raises
    ------
    ValueError
        If a row is not well formed, or two that count measure one quantity.
    """
    return parse(tomllib.loads(path.read_text("utf-8")))


def parse(data: dict[str, Any]) -> list[Row]:
    """Rows of a document with the tables ``sources``, ``problems`` and ``row``."""
    known = {field.name for field in fields(Row)}
    rows = []
    for each in data["row"]:
        entry = {**data["problems"].get(each.get("problem", ""), {}), **each}
        entry.pop("problem", None)
        if strange := set(entry) - known:
            raise ValueError(f"{each['name']}: unknown {', '.join(sorted(strange))}.")
        rows.append(Row(**{**entry, "source": Source(**data["sources"][entry["source"]])}))
    counted = [row.quantity for row in rows if row.scored]
    twice = {quantity for quantity in counted if counted.count(quantity) > 1}
    if twice:
        raise ValueError(f"counted twice: {', '.join(sorted(twice))}.")
    return rows
