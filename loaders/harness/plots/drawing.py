"""Pictures drawn with matplotlib: one function for each shape."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from wordnet_splits.base import plotting
from wordnet_splits.base.untrusted import printable

from .shapes import Bars, Heat, Lines, Points, Shape

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#606060", "#a6761d")
"""Of Okabe and Ito first, which the colour-blind can tell apart."""
STYLES = ("-", "--", ":", "-.")
SALT = "unknown-eval"
WIDEST = 3
"""Panels of a row."""
PANEL = (4.6, 3.5)
"""Inches."""
SMALL, TINY = 8, 6
LONGEST = 80
"""Letters of a name."""


@dataclass(frozen=True)
class Picture:
    """One or more panels below a title. ``notes`` are printed with the picture."""

    title: str
    panels: tuple[Shape, ...]
    notes: tuple[str, ...] = ()

    def _repr_svg_(self) -> str:
        return as_svg(self, self.title)


def save(picture: Picture, path: Path) -> None:
    """Draw a picture into a file; SVG, PNG or PDF by its name.

    Raises
    ------
    OutputError : another ending, or the file cannot be written. MissingPackageError : no matplotlib.
    """
    check(path)
    with plotting.settings(SALT):
        plotting.save(figure_of(picture), path)


def check(path: Path) -> None:
    """Raise OutputError for a file of another ending, MissingPackageError where matplotlib is absent."""
    plotting.check_ending(path)
    plotting.require_plots("unknown-eval plot")


def as_svg(picture: Picture, salt: str) -> str:
    """Return a picture as SVG; ``salt`` keeps its ids apart from those of other pictures in one page."""
    plotting.require_plots("plots")
    with plotting.settings(salt):
        return plotting.encoded(figure_of(picture), ".svg").decode()


def figure_of(picture: Picture) -> Any:
    """Return a picture as a matplotlib Figure; call it inside `plotting.settings`."""
    from matplotlib.figure import Figure

    across = min(WIDEST, len(picture.panels))
    down = math.ceil(len(picture.panels) / across)
    heights = [
        PANEL[1] * max(map(_height, picture.panels[n * across : (n + 1) * across])) for n in range(down)
    ]
    figure = Figure(figsize=(PANEL[0] * across, sum(heights) + 0.5), layout="constrained")
    axes = figure.subplots(down, across, squeeze=False, height_ratios=heights).ravel()
    for axis, panel in zip(axes, picture.panels, strict=False):
        DRAW[type(panel)](figure, axis, panel)
        axis.set_title(_plain(panel.title), fontsize=SMALL + 1, parse_math=False)
        axis.tick_params(length=2, labelsize=SMALL, colors=plotting.BLACK)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(picture.panels) :]:
        axis.set_visible(False)
    figure.suptitle(_plain(picture.title), fontsize=SMALL + 2, parse_math=False)
    return figure


def _height(panel: Shape) -> float:
    """Height of a panel in panels: what lists names needs room for them."""
    names = len(panel.bars) if isinstance(panel, Bars) else len(panel.rows) if isinstance(panel, Heat) else 0
    return max(1.0, min(6.0, names / 22))


def _labels(axis: Any, panel: Lines | Points | Heat) -> None:
    axis.set_xlabel(_plain(panel.x_label), fontsize=SMALL, parse_math=False)
    axis.set_ylabel(_plain(panel.y_label), fontsize=SMALL, parse_math=False)


def _draw_lines(figure: Any, axis: Any, panel: Lines) -> None:
    for n, line in enumerate(panel.lines):
        style = {
            "color": plotting.GREY if line.dashed else COLOURS[n % len(COLOURS)],
            "linestyle": "--" if line.dashed else STYLES[n // len(COLOURS) % len(STYLES)],
            "linewidth": 1.2,
            "label": _escaped(line.name),
        }
        if panel.steps:
            axis.step(line.x, np.append(line.y, line.y[-1:]), where="post", **style)
        else:
            axis.plot(line.x, line.y, **style)
    if panel.log_x:
        axis.set_xscale("log")
    _labels(axis, panel)
    _legend(axis, len(panel.lines))


def _draw_points(figure: Any, axis: Any, panel: Points) -> None:
    kinds = list(dict.fromkeys(point.kind for point in panel.points))
    for n, kind in enumerate(kinds):
        of_kind = [point for point in panel.points if point.kind == kind]
        axis.scatter(
            [p.x for p in of_kind],
            [p.y for p in of_kind],
            s=14,
            color=COLOURS[n % len(COLOURS)],
            label=_escaped(kind) or None,
            alpha=0.8,
            linewidths=0,
        )
    for point in panel.points:
        if point.label:
            axis.annotate(
                _plain(point.name),
                (point.x, point.y),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=TINY,
                parse_math=False,
            )
    if panel.diagonal:
        ends = [min(*axis.get_xlim(), *axis.get_ylim()), max(*axis.get_xlim(), *axis.get_ylim())]
        axis.plot(ends, ends, color=plotting.GREY, linewidth=0.8, zorder=0)
    _labels(axis, panel)
    if any(kinds):
        _legend(axis, len(kinds))


def _draw_heat(figure: Any, axis: Any, panel: Heat) -> None:
    image = axis.imshow(panel.values, aspect="auto", cmap="viridis", vmin=0, interpolation="nearest")
    axis.set_xticks(range(len(panel.columns)))
    axis.set_yticks(range(len(panel.rows)))
    size = TINY if max(len(panel.columns), len(panel.rows)) <= 60 else TINY / 2
    axis.set_xticklabels(
        [_plain(name) for name in panel.columns], rotation=90, fontsize=size, parse_math=False
    )
    axis.set_yticklabels([_plain(name) for name in panel.rows], fontsize=size, parse_math=False)
    _labels(axis, panel)
    figure.colorbar(image, ax=axis, fraction=0.05, pad=0.02).ax.tick_params(labelsize=TINY)


def _draw_bars(figure: Any, axis: Any, panel: Bars) -> None:
    categories = list(dict.fromkeys(bar.category for bar in panel.bars))
    series = list(dict.fromkeys(bar.series for bar in panel.bars))
    thickness = 0.8 / len(series)
    for n, name in enumerate(series):
        of_it = [bar for bar in panel.bars if bar.series == name]
        places = [categories.index(bar.category) + (n - (len(series) - 1) / 2) * thickness for bar in of_it]
        spreads = [
            (0.0, 0.0) if bar.lo is None or bar.hi is None else (bar.value - bar.lo, bar.hi - bar.value)
            for bar in of_it
        ]
        axis.barh(
            places,
            [bar.value for bar in of_it],
            height=0.9 * thickness,
            xerr=np.maximum(np.array(spreads).T, 0),
            error_kw={"linewidth": 0.8, "ecolor": plotting.BLACK},
            color=COLOURS[n % len(COLOURS)],
            label=_escaped(name) or None,
        )
    axis.set_yticks(range(len(categories)))
    axis.set_yticklabels([_plain(name) for name in categories], fontsize=SMALL, parse_math=False)
    axis.invert_yaxis()
    axis.axvline(0, color=plotting.BLACK, linewidth=0.6)
    axis.set_xlabel(panel.label, fontsize=SMALL, parse_math=False)
    if any(series):
        _legend(axis, len(series))


def _legend(axis: Any, entries: int) -> None:
    if entries > 1:
        axis.legend(fontsize=TINY, frameon=False, ncols=1 + entries // 12)


def _escaped(name: str) -> str:
    """A legend's text without the meaning that matplotlib gives to dollars and leading underscores."""
    return _plain(name).lstrip("_").replace("$", r"\$")


def _plain(name: str) -> str:
    """A name from outside as one line that a picture can hold."""
    return printable(name, LONGEST)


DRAW: Mapping[type, Callable[[Any, Any, Any], None]] = {
    Lines: _draw_lines,
    Points: _draw_points,
    Heat: _draw_heat,
    Bars: _draw_bars,
}
