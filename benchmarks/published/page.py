"""docs/published.md, from the rows and their stored predictions."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks.published.results import ROOT
from benchmarks.published.rows import Row, Source
from benchmarks.published.score import Result, error, met, score
from benchmarks.published.variants import VARIANTS

PAGE = ROOT / "docs" / "published.md"
TEMPLATE = ROOT / "benchmarks" / "published" / "page.md"


def page(results: list[Result]) -> str:
    """The whole page."""
    counted = [(row, prediction) for row, prediction in results if row.scored]
    others = [(row, prediction) for row, prediction in results if not row.scored]
    parts = {
        "{score}": _score(results),
        "{counted}": _counted(counted),
        "{misses}": _misses(counted),
        "{kernels}": _others((r, p) for r, p in others if p.variant is not None),
        "{unpriced}": _others((r, p) for r, p in others if p.variant is None),
        "{programs}": _programs(),
        "{sources}": _sources(row.source for row, _ in results),
    }
    text = TEMPLATE.read_text("utf-8")
    for name, body in parts.items():
        text = text.replace(name, body)
    return text


def _score(results: list[Result]) -> str:
    found = score(results)
    calibrating = sum(row.calibrates for row, _ in results)
    return (
        f"**{found.variant} of {found.rows} rows that count are predicted within 15 %** by a "
        f"recording of the published program; the bound of the layout alone is within 15 % of "
        f"{found.bound}. ringlab's own ring, which is another program and owes nobody these "
        f"numbers, is within 15 % of {found.ringlab}. {calibrating} rows served to calibrate and "
        "do not count."
    )


def _counted(results: Iterable[Result]) -> str:
    lines = [
        "| result | unit | published | program as published | error | ringlab | bound alone | "
        "within 15 % |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, found in results:
        verdict = "yes" if met(found.variant, row.published) else "no"
        cells = [f"{row.source.title}: {row.name}", row.unit, number(row.published),
                 number(found.variant), percent(found.variant, row), number(found.ringlab),
                 number(found.bound), verdict]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _misses(results: Iterable[Result]) -> str:
    missed = [row for row, found in results if not met(found.variant, row.published)]
    grouped: dict[str, list[str]] = {}
    for row in missed:
        name = f"{row.source.title}: {row.name}"
        grouped.setdefault(row.explanation, []).append(name)
    return "\n".join(f"* **{'; '.join(names)}.** {why}" for why, names in grouped.items())


def _others(results: Iterable[Result]) -> str:
    lines = [
        "| result | unit | published | priced | error | calibrates | why it does not count |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row, found in results:
        cells = [f"{row.source.title}: {row.name}", row.unit, number(row.published),
                 number(found.variant), percent(found.variant, row),
                 "yes" if row.calibrates else "no", row.why]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _programs() -> str:
    return "\n".join(
        f"* **{variant.name}**: {variant.source}. {variant.differs}"
        for variant in VARIANTS.values()
    )


def _sources(sources: Iterable[Source]) -> str:
    return "\n".join(
        f"* **{each.title}**: <{each.address}>, {each.place}; hardware: {each.hardware}; read "
        f"{each.read}."
        for each in dict.fromkeys(sources)
    )


def number(value: float | None) -> str:
    """Three significant digits, or whole numbers above."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def percent(predicted: float | None, row: Row) -> str:
    """The error of a prediction."""
    found = error(predicted, row.published)
    return "-" if found is None else f"{found:+.1%}"
