"""Error against the number of ranks, by precision policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ringlab.draw.curves import draw_curves
from ringlab.draw.picture import Picture, legend, plain, sheet
from ringlab.draw.theme import ThemeName, theme_named


def draw_errors(
    policies: Mapping[str, Sequence[tuple[int, float]]],
    *,
    title: str | None = None,
    theme: ThemeName = "light",
) -> Picture:
    """Draw how far each precision policy is from the truth, as the ranks grow.

    Parameters
    ----------
    policies : mapping of str to sequence of (int, float)
        For each policy pairs ``(W, ratio)``: the error on W ranks over that of one device in
        the same dtype, both against float64. Ascending in W.
    title : str, optional
        Instead of the finding that the picture states by itself: which of them stay flat.
    theme : {"light", "dark"}

    Returns
    -------
    Picture
        A line at ratio 1 is one device.

    Raises
    ------
    ValueError
        If a policy has no points, or a ratio is not above 0.
    """
    for name, points in policies.items():
        if not points or min(ratio for _, ratio in points) <= 0:
            raise ValueError(f"{name} needs pairs (W, ratio) with ratios above 0; got {points}.")
    if not policies:
        raise ValueError("give at least one policy to draw, as in {'fp32 partials': [(2, 1.0)]}.")
    look = theme_named(theme)
    figure = sheet(7.6, 4.2, look)
    axis = figure.subplots()
    plain(axis, look, grid="y")
    sizes = sorted({size for points in policies.values() for size, _ in points})
    draw_curves(axis, policies, look)
    axis.axhline(1.0, color=look.ink, linestyle="--", linewidth=1.1, gid="one-device",
                 label="one device, same dtype")  # fmt: skip
    axis.set_xscale("log", base=2)
    axis.minorticks_off()
    axis.set_xticks(sizes, [f"{size}" for size in sizes])
    ratios = [ratio for points in policies.values() for _, ratio in points]
    if max(ratios) > 20 * min(ratios):
        axis.set_yscale("log")
    else:
        axis.set_ylim(0, 1.12 * max(1.0, *ratios))
    axis.set_xlabel("ranks")
    axis.set_ylabel("error over that of one device")
    axis.set_title(title or _finding(policies), fontsize=12, color=look.ink)
    legend(figure, look, columns=3)
    return Picture(figure, _words(policies))


def _finding(policies: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    """Flat is what the last number of ranks has at most a tenth more than the first."""
    flat = [name for name, points in policies.items() if points[-1][1] <= 1.1 * points[0][1]]
    most = max(size for points in policies.values() for size, _ in points)
    if len(flat) == len(policies):
        return f"No policy loses accuracy up to {most} ranks"
    if not flat:
        return f"Every policy loses accuracy up to {most} ranks"
    return f"Up to {most} ranks the error stays flat only with {', '.join(flat)}"


def _words(policies: Mapping[str, Sequence[tuple[int, float]]]) -> str:
    told = "; ".join(
        name + ": " + ", ".join(f"W = {size} {ratio:.3g}" for size, ratio in points)
        for name, points in policies.items()
    )
    return (
        f"Error over that of one device against the number of ranks. {told}. {_finding(policies)}."
    )
