"""Drawing with matplotlib: a function for each shape of panel, a shared legend, and thinned curves."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.names import printable
from wordnet_splits.base.shapes import Bars, Boxes, HeatMap, Line, Lines, Panel, Points, Ranks, Values

GREY, BLUE, ORANGE, BLACK = "#c8c8c8", "#0072b2", "#d55e00", "#202020"
"""Reference; clean or far; altered or near; text. Colour-blind readers can distinguish blue and orange."""
PALETTE: Final = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#606060", "#a6761d")
"""Colours of Okabe and Ito first, which colour-blind readers can distinguish."""
LINE_STYLES: Final = ("-", "--", ":", "-.")
MARKERS: Final = "osD^vPX<>*"
MAX_STYLED: Final = len(PALETTE) * len(LINE_STYLES)
"""Largest number of styled lines in a plot; the rest are grey, and only counted in the legend."""
PANEL_SIZE: Final = (4.6, 3.5)
"""Width and height of a panel in inches."""
FONT, SMALL_FONT = 8, 6
TEXT: Final = {"fontsize": FONT, "parse_math": False}
SMALL_TEXT: Final = {"fontsize": SMALL_FONT, "parse_math": False}
"""Style of axis labels, and of names in a plot; ``$`` has no meaning in either."""
MAX_NAME_LENGTH: Final = 80


def figure_of(title: str, panels: Sequence[Panel], columns: int) -> Any:
    """Return panels below a title as a matplotlib Figure."""
    from matplotlib.figure import Figure

    columns = min(columns, len(panels))
    rows = math.ceil(len(panels) / columns)
    heights = [
        PANEL_SIZE[1] * max(map(_relative_height, panels[n * columns : (n + 1) * columns]))
        for n in range(rows)
    ]
    figure = Figure(figsize=(PANEL_SIZE[0] * columns, sum(heights) + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    order = _names_of(panels)
    for axis, panel in zip(axes, panels, strict=False):
        DRAW[type(panel)](figure, axis, panel, order)
        axis.set_title(_one_line(panel.title), fontsize=FONT + 1, parse_math=False)
        axis.tick_params(length=2, labelsize=FONT, colors=BLACK)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(panels) :]:
        axis.set_visible(False)
    figure.suptitle(_one_line(title), fontsize=FONT + 2, parse_math=False)
    _legend(figure, panels, order)
    return figure


def _names_of(panels: Sequence[Panel]) -> list[str]:
    """Return the names in the legend of a plot, which give the colours of all its panels."""
    names: dict[str, None] = {}
    for panel in panels:
        match panel:
            case Lines():
                names |= dict.fromkeys(line.name for line in panel.lines if not line.dashed)
            case Points():
                names |= dict.fromkeys(point.kind for point in panel.points)
            case Bars():
                names |= dict.fromkeys(bar.series for bar in panel.bars)
    return list(names)


def _relative_height(panel: Panel) -> float:
    """Return the height of a panel in usual panels: a list of names needs room."""
    names = next((getattr(panel, name) for name in ("bars", "boxes", "rows") if hasattr(panel, name)), ())
    return max(1.0, min(6.0, len(names) / 22))


def _axis_labels(axis: Any, panel: Lines | Points | HeatMap) -> None:
    axis.set_xlabel(_one_line(panel.x_label), **TEXT)
    axis.set_ylabel(_one_line(panel.y_label), **TEXT)


def _draw_lines(figure: Any, axis: Any, panel: Lines, order: Sequence[str]) -> None:
    widths = _widths(panel)
    for line in panel.lines:
        n = len(order) if line.dashed else order.index(line.name)
        style: dict[str, Any] = {
            "color": line.colour or (GREY if line.dashed or n >= MAX_STYLED else PALETTE[n % len(PALETTE)]),
            "linestyle": "--" if line.dashed else LINE_STYLES[n // len(PALETTE) % len(LINE_STYLES)],
            "linewidth": 1.2 if line.dashed or n < MAX_STYLED else 0.6,
            "zorder": 1 if n >= MAX_STYLED else 2,
        }
        if line.filled:
            axis.stairs(line.y, line.x, fill=True, color=style["color"])
        elif panel.steps:
            axis.step(line.x, _heights(line, line.y), where=panel.steps, **style)
        else:
            axis.plot(*_thinned(line.x, line.y, panel, widths), **style)
        if line.lo is not None and line.hi is not None:
            lo, hi = _heights(line, line.lo), _heights(line, line.hi)
            band = {"color": style["color"], "alpha": 0.18, "linewidth": 0}
            if panel.steps:
                axis.fill_between(line.x, lo, hi, step=panel.steps, **band)
            else:
                (low_x, low), (high_x, high) = (_thinned(line.x, edge, panel, widths) for edge in (lo, hi))
                axis.fill(np.append(low_x, high_x[::-1]), np.append(low, high[::-1]), **band)
    if panel.log_x:
        axis.set_xscale("log")
    _axis_labels(axis, panel)


def _heights(line: Line, values: Values) -> Values:
    """Return values with the last one again where the line is a histogram with n + 1 edges."""
    return values if len(values) == len(line.x) else np.append(values, values[-1:])


def _widths(panel: Lines) -> tuple[float, float]:
    """Return the widths of a panel of lines in its data's units (decades on a log axis)."""
    x = [np.log10(line.x) if panel.log_x else line.x for line in panel.lines if len(line.x)]
    y = [line.y for line in panel.lines if len(line.y)]
    spans = [max(map(np.nanmax, values)) - min(map(np.nanmin, values)) if values else 0 for values in (x, y)]
    return float(spans[0]) or 1.0, float(spans[1]) or 1.0


def _thinned(x: Values, y: Values, panel: Lines, widths: tuple[float, float]) -> tuple[Values, Values]:
    if not np.isfinite(y).all():
        return x, y
    scaled = (np.log10(x) if panel.log_x else np.asarray(x, dtype=np.float64)) / widths[0]
    indices = thin(scaled, np.asarray(y, dtype=np.float64) / widths[1])
    return x[indices], y[indices]


def _draw_points(figure: Any, axis: Any, panel: Points, order: Sequence[str]) -> None:
    markers = list(dict.fromkeys(point.marker for point in panel.points))
    for kind, marker in dict.fromkeys((point.kind, point.marker) for point in panel.points):
        same = [point for point in panel.points if (point.kind, point.marker) == (kind, marker)]
        n = order.index(kind)
        axis.scatter(
            [p.x for p in same],
            [p.y for p in same],
            s=16,
            marker=MARKERS[markers.index(marker) % len(MARKERS)],
            color=GREY if n >= MAX_STYLED else PALETTE[n % len(PALETTE)],
            alpha=0.8,
            linewidths=0,
        )
    for point in panel.points:
        if point.label:
            place: dict[str, Any] = {"xytext": (3, 3), "textcoords": "offset points"}
            axis.annotate(_one_line(point.name), (point.x, point.y), **place, **SMALL_TEXT)
    if panel.diagonal:
        ends = [min(*axis.get_xlim(), *axis.get_ylim()), max(*axis.get_xlim(), *axis.get_ylim())]
        axis.plot(ends, ends, color=GREY, linewidth=0.8, zorder=0)
    _axis_labels(axis, panel)


def _draw_heat_map(figure: Any, axis: Any, panel: HeatMap, order: Sequence[str]) -> None:
    image = axis.imshow(panel.values, aspect="auto", cmap="viridis", vmin=0, interpolation="nearest")
    axis.set_xticks(range(len(panel.columns)))
    axis.set_yticks(range(len(panel.rows)))
    size = SMALL_FONT if max(len(panel.columns), len(panel.rows)) <= 60 else SMALL_FONT / 2
    columns, rows = ([_one_line(name) for name in names] for names in (panel.columns, panel.rows))
    axis.set_xticklabels(columns, rotation=90, fontsize=size, parse_math=False)
    axis.set_yticklabels(rows, fontsize=size, parse_math=False)
    _axis_labels(axis, panel)
    figure.colorbar(image, ax=axis, fraction=0.05, pad=0.02).ax.tick_params(labelsize=SMALL_FONT)


def _draw_bars(figure: Any, axis: Any, panel: Bars, order: Sequence[str]) -> None:
    categories = list(dict.fromkeys(bar.category for bar in panel.bars))
    series = list(dict.fromkeys(bar.series for bar in panel.bars))
    thickness = 0.8 / len(series)
    for n, name in enumerate(series):
        bars = [bar for bar in panel.bars if bar.series == name]
        offset = (n - (len(series) - 1) / 2) * thickness
        errors = [
            (0.0, 0.0) if bar.lo is None or bar.hi is None else (bar.value - bar.lo, bar.hi - bar.value)
            for bar in bars
        ]
        axis.barh(
            [categories.index(bar.category) + offset for bar in bars],
            [bar.value for bar in bars],
            height=0.9 * thickness,
            xerr=np.maximum(np.array(errors).T, 0),
            error_kw={"linewidth": 0.8, "ecolor": BLACK},
            color=PALETTE[order.index(name) % len(PALETTE)],
        )
    _categories(axis, categories, panel.label)
    axis.axvline(0, color=BLACK, linewidth=0.6)


def _draw_boxes(figure: Any, axis: Any, panel: Boxes, order: Sequence[str]) -> None:
    for row, box in enumerate(panel.boxes):
        if not box.quantiles:
            place: dict[str, Any] = {"transform": axis.get_yaxis_transform(), "va": "center"}
            axis.text(0.01, row, _one_line(box.note), **place, **SMALL_TEXT)
            continue
        axis.bxp(
            [dict(zip(("whislo", "q1", "med", "q3", "whishi"), box.quantiles, strict=True))],
            positions=[row],
            vert=False,
            widths=0.55,
            showfliers=False,
            patch_artist=True,
            manage_ticks=False,
            boxprops={"facecolor": box.colour or GREY, "edgecolor": BLACK},
            medianprops={"color": BLACK},
        )
    axis.set_ylim(-0.6, len(panel.boxes) - 0.4)
    _categories(axis, [box.category for box in panel.boxes], panel.label)


def _draw_ranks(figure: Any, axis: Any, panel: Ranks, order: Sequence[str]) -> None:
    """Draw each clique as a corner: along its best row, and down to its worst mean rank."""
    rows, (best, worst) = range(len(panel.rows)), (panel.means[0], panel.means[-1])
    left, right = best - 1, max(worst, best + panel.difference) + 1
    axis.hlines(rows, left, panel.means, color=GREY, linewidth=0.6, zorder=0)
    for n, (first, last) in enumerate(panel.cliques):
        corner = [panel.means[first], panel.means[last], panel.means[last]], [first, first, last]
        axis.plot(*corner, color=PALETTE[1 + n % 3], linewidth=1, solid_joinstyle="miter", zorder=1)
    axis.scatter(panel.means, rows, s=14, color=BLUE, linewidths=0, zorder=2)
    axis.plot([best, best + panel.difference], [-1, -1], color=BLACK, linewidth=1.6)
    place: dict[str, Any] = {"xytext": (0, 3), "textcoords": "offset points"}
    axis.annotate(f"critical difference {panel.difference:.2f}", (best, -1), **place, **SMALL_TEXT)
    axis.set_xlim(left, right)
    axis.set_ylim(-2.4, len(panel.rows) - 0.4)
    _categories(axis, list(panel.rows), panel.label)


def _categories(axis: Any, names: list[str], label: str) -> None:
    """Name the rows of an axis from top to bottom, and its values."""
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels([_one_line(name) for name in names], **TEXT)
    axis.invert_yaxis()
    axis.set_xlabel(_one_line(label), **TEXT)


def _legend(figure: Any, panels: Sequence[Panel], order: Sequence[str]) -> None:
    """Write a plot's legend on its right; values of several panels are in the panels' order."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    lines = [line for panel in panels if isinstance(panel, Lines) for line in panel.lines]
    points = [point for panel in panels if isinstance(panel, Points) for point in panel.points]
    handles: list[Any] = []
    for n, name in enumerate(order[:MAX_STYLED]):
        colour = next((line.colour for line in lines if line.name == name and line.colour), "")
        colour = colour or PALETTE[n % len(PALETTE)]
        label = _escaped(name) + _values_of(name, panels)
        if any(line.name == name and not line.filled for line in lines):
            style = LINE_STYLES[n // len(PALETTE) % len(LINE_STYLES)]
            handles.append(Line2D([], [], color=colour, linestyle=style, linewidth=1.2, label=label))
        elif name:
            handles.append(Patch(color=colour, label=label))
    if len(order) > MAX_STYLED:
        more = f"and {len(order) - MAX_STYLED:,} more"
        handles.append(Line2D([], [], color=GREY, linewidth=0.6, label=more))
    for dashed in dict.fromkeys(line.name for line in lines if line.dashed):
        handles.append(Line2D([], [], color=GREY, linestyle="--", linewidth=1.2, label=_escaped(dashed)))
    for n, marker in enumerate(dict.fromkeys(point.marker for point in points)):
        if marker:
            shape = MARKERS[n % len(MARKERS)]
            label = _escaped(marker)
            handles.append(
                Line2D([], [], color="none", marker=shape, markersize=4, markerfacecolor=BLACK, label=label)
            )
    if len(handles) < 2:
        return
    titles = [_escaped(panel.title) for panel in panels]
    has_values = any(line.value for line in lines) and len(panels) > 1
    rows = max(12, int(72 * figure.get_size_inches()[1] / (SMALL_FONT * 1.7)))
    figure.legend(
        handles=handles,
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        fontsize=SMALL_FONT,
        frameon=False,
        ncols=math.ceil(len(handles) / rows),
        title=" | ".join(titles) if has_values else None,
        title_fontsize=SMALL_FONT,
    )


def _values_of(name: str, panels: Sequence[Panel]) -> str:
    """Return the values of a line in each panel, in brackets; "" without any."""
    values = [
        next((line.value for line in panel.lines if line.name == name), "-")
        for panel in panels
        if isinstance(panel, Lines)
    ]
    return f" ({' | '.join(values)})" if any(value not in ("", "-") for value in values) else ""


def _escaped(name: str) -> str:
    """Return a legend's text without the meaning that matplotlib gives to $ and leading underscores."""
    return _one_line(name).lstrip("_").replace("$", r"\$")


def _one_line(name: str) -> str:
    """Return an untrusted name as a short printable line."""
    return printable(name, MAX_NAME_LENGTH)


DRAW: Final[Mapping[type, Callable[[Any, Any, Any, Sequence[str]], None]]] = {
    Lines: _draw_lines,
    Points: _draw_points,
    HeatMap: _draw_heat_map,
    Bars: _draw_bars,
    Boxes: _draw_boxes,
    Ranks: _draw_ranks,
}


MAX_POINTS: Final = 1000
TOLERANCE: Final = 0.001
"""Greatest distance of a curve from its thinned form, in widths of the panel: a quarter of a line's width."""


def thin(x: Values, y: Values, tolerance: float = TOLERANCE, most: int = MAX_POINTS) -> npt.NDArray[np.intp]:
    """Return the indices of points (x, y) with a polyline within ``tolerance`` of the full polyline.

    Douglas and Peucker's method, all segments at a time. A curve that needs more than ``most`` points gets
    twice the tolerance until it does not: a monotone curve in the unit square never needs more than 0.002.

    Parameters
    ----------
    x, y : (n,), finite, in units of the plot's width and height.
    """
    if len(x) <= 2:
        return np.arange(len(x))
    while len(kept := _within(x, y, tolerance)) > most:
        tolerance *= 2
    return kept


def _within(x: Values, y: Values, tolerance: float) -> npt.NDArray[np.intp]:
    ends = np.array([0, len(x) - 1])
    while True:
        lengths = np.diff(ends)
        distances = _distances(x, y, np.repeat(ends[:-1], lengths), np.repeat(ends[1:], lengths))
        greatest = np.maximum.reduceat(distances, ends[:-1])
        if greatest.max() <= tolerance:
            return ends
        split = np.repeat((greatest > tolerance) * greatest, lengths)
        candidates = np.flatnonzero((split > 0) & (distances == split))
        segments = np.searchsorted(ends, candidates, side="right")
        _, first = np.unique(segments, return_index=True)
        ends = np.sort(np.concatenate([ends, candidates[first]]))


def _distances(x: Values, y: Values, start: npt.NDArray[np.intp], end: npt.NDArray[np.intp]) -> Values:
    """Return the distance of every point but the last to the segment from ``start`` to ``end``."""
    dx, dy = x[end] - x[start], y[end] - y[start]
    px, py = x[:-1] - x[start], y[:-1] - y[start]
    length = dx * dx + dy * dy
    with np.errstate(divide="ignore", invalid="ignore"):
        along = np.where(length > 0, (px * dx + py * dy) / length, 0.0)
    along = np.clip(along, 0.0, 1.0)
    return np.asarray(np.hypot(px - along * dx, py - along * dy))
