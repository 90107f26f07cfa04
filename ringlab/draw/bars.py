"""Measured bytes beside what a formula says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringlab.draw.picture import Picture, legend, plain, sheet
from ringlab.draw.theme import HATCHES, ThemeName, theme_named


def draw_measured(
    groups: Sequence[str],
    measured: Mapping[str, Sequence[float]],
    formula: Mapping[str, Sequence[float]],
    *,
    unit: str,
    title: str | None = None,
    divide: float = 1.0,
    reference: tuple[str, float] | None = None,
    how: str = "measured",
    theme: ThemeName = "light",
) -> Picture:
    """Draw bars of what was measured, each with a mark where the formula puts it.

    Parameters
    ----------
    groups : sequence of str
        Labels along the axis, for example world sizes.
    measured : mapping of str to sequence of float
        For each series one number a group.
    formula : mapping of str to sequence of float
        The same series and groups.
    unit : str
        Label of the value axis, with its unit.
    title : str, optional
        Instead of the finding that the picture states by itself: whether all bars agree.
    divide : float
        Values are divided by this before they are drawn.
    reference : (str, float), optional
        A horizontal line to compare the bars with, and its name.
    how : str
        What the key says of the bars, if they were not measured but, for example, priced.
    theme : {"light", "dark"}

    Returns
    -------
    Picture

    Raises
    ------
    ValueError
        If the series of the two do not match, or have other lengths than `groups`.
    """
    if set(measured) != set(formula):
        raise ValueError(f"series differ: measured {list(measured)}, formula {list(formula)}.")
    for name, values in [*measured.items(), *formula.items()]:
        if len(values) != len(groups):
            raise ValueError(f"{name} has {len(values)} values for {len(groups)} groups.")
    agree = all(
        abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1.0)
        for name in measured
        for a, b in zip(measured[name], formula[name], strict=True)
    )
    verdict = (
        "Every bar ends where its formula puts it"
        if agree
        else "Not all bars agree with the formula"
    )
    look = theme_named(theme)
    figure = sheet(1.6 + 1.5 * len(groups), 3.6, look)
    axis = figure.subplots()
    plain(axis, look, grid="y")
    width = 0.8 / len(measured)
    for place, (name, values) in enumerate(measured.items()):
        at = [g + (place - (len(measured) - 1) / 2) * width for g in range(len(groups))]
        axis.bar(at, [v / divide for v in values], width * 0.92, label=f"{name}, {how}",
                 color=look.tint(place, 0.6), edgecolor=look.ink, hatch=HATCHES[place % 4],
                 linewidth=0.8)  # fmt: skip
        axis.plot(at, [v / divide for v in formula[name]], "D", color=look.ink, markersize=6,
                  markerfacecolor=look.panel, label="formula" if place == 0 else None)  # fmt: skip
    if reference is not None:
        axis.axhline(reference[1] / divide, color=look.ink, linestyle="--", linewidth=1.2,
                     label=reference[0])  # fmt: skip
    axis.set_xticks(range(len(groups)), groups)
    axis.set_ylabel(unit)
    axis.set_ylim(bottom=0)
    legend(figure, look, columns=len(axis.get_legend_handles_labels()[0]))
    axis.set_title(title or verdict, fontsize=12, color=look.ink)
    line = "" if reference is None else f"; line: {reference[0]}, {reference[1] / divide:.4g}"
    named = [" ".join(group.split()) for group in groups]
    told = "; ".join(
        name + ": " + ", ".join(f"{g} {v / divide:.4g}" for g, v in zip(named, bars, strict=True))
        for name, bars in measured.items()
    )
    return Picture(figure, f"Bars, {unit}{line}. {told}. {verdict}.")
