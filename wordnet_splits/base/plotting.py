"""Plots drawn with matplotlib: a function for each shape, and the one way of writing a plot.

The same bytes every time, whatever the user's own settings. matplotlib (extra ``plots``) is imported when
used.
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from wordnet_splits.base import files
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.names import printable
from wordnet_splits.base.shapes import Bars, Boxes, HeatMap, Lines, Panel, Points

GREY, BLUE, ORANGE, BLACK = "#c8c8c8", "#0072b2", "#d55e00", "#202020"
"""Reference; clean or far; altered or near; text. The colour-blind can tell blue from orange."""
PALETTE: Final = (BLUE, ORANGE, "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7a5195", "#606060", "#a6761d")
"""Colours of Okabe and Ito first, which the colour-blind can tell apart."""
LINE_STYLES: Final = ("-", "--", ":", "-.")
PANEL_SIZE: Final = (4.6, 3.5)
"""Width and height of a panel in inches."""
FONT, SMALL_FONT = 8, 6
MAX_NAME_LENGTH: Final = 80

SETTINGS: Final = {"svg.fonttype": "path", "font.family": "DejaVu Sans"}
METADATA: Final = {
    ".svg": {"Date": None, "Creator": None},
    ".png": {"Software": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


@dataclass(frozen=True)
class Plot:
    """One or more panels below a title.

    Attributes
    ----------
    notes : sentences printed with the plot. columns : most panels side by side.
    """

    title: str
    panels: tuple[Panel, ...]
    notes: tuple[str, ...] = ()
    columns: int = 3

    def _repr_svg_(self) -> str:
        return plot_svg(self, self.title)


def save_plot(plot: Plot, path: Path, *, salt: str) -> None:
    """Draw a plot into a file; SVG, PNG or PDF by its name.

    Parameters
    ----------
    salt : seeds the ids in an SVG, so that they are the same every time.

    Raises
    ------
    OutputError : another ending, or the file cannot be written. MissingPackageError : no matplotlib.
    """
    check_output(path, "plots")
    with settings(salt):
        save(figure_of(plot), path)


def plot_svg(plot: Plot, salt: str) -> str:
    """Return a plot as SVG; ``salt`` keeps its ids apart from those of other plots in one page."""
    require_plots("plots")
    with settings(salt):
        return encoded(figure_of(plot), ".svg").decode()


def check_output(path: Path, purpose: str) -> None:
    """Raise OutputError for a file of another ending, MissingPackageError where matplotlib is absent."""
    check_ending(path)
    require_plots(purpose)


def check_ending(path: Path) -> None:
    """Raise OutputError unless a plot's file name ends in .svg, .png or .pdf."""
    if path.suffix not in METADATA:
        *suffixes, last = METADATA
        raise OutputError(f"a plot is {', '.join(suffixes)} or {last}", where=str(path))


def require_plots(purpose: str) -> None:
    """Raise MissingPackageError unless matplotlib can be imported."""
    need("matplotlib", "plots", where=purpose)


@contextmanager
def settings(salt: str) -> Iterator[None]:
    """Draw the same whatever the user's matplotlibrc says; letters that the font lacks become boxes.

    ``salt`` is that of the ids in an SVG.
    """
    from matplotlib import rc_context, rcParamsDefault

    defaults = {key: value for key, value in rcParamsDefault.items() if not key.startswith("backend")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # missing letters, deprecated settings
        with rc_context({**defaults, **SETTINGS, "svg.hashsalt": salt}):
            yield


def save(figure: Any, path: Path) -> None:
    """Write a matplotlib figure; SVG, PNG or PDF by the name.

    Raises
    ------
    OutputError : another ending, or the file cannot be written.
    """
    check_ending(path)
    files.write_bytes(path, encoded(figure, path.suffix))


def encoded(figure: Any, suffix: str) -> bytes:
    """Return a figure as the bytes of a file that ends in ``suffix``, one of `METADATA`."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=suffix[1:], metadata=METADATA[suffix])
    return buffer.getvalue()


def figure_of(plot: Plot) -> Any:
    """Return a plot as a matplotlib Figure; call it inside `settings`."""
    from matplotlib.figure import Figure

    columns = min(plot.columns, len(plot.panels))
    rows = math.ceil(len(plot.panels) / columns)
    heights = [
        PANEL_SIZE[1] * max(map(_relative_height, plot.panels[n * columns : (n + 1) * columns]))
        for n in range(rows)
    ]
    figure = Figure(figsize=(PANEL_SIZE[0] * columns, sum(heights) + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, height_ratios=heights).ravel()
    for axis, panel in zip(axes, plot.panels, strict=False):
        DRAW[type(panel)](figure, axis, panel)
        axis.set_title(_one_line(panel.title), fontsize=FONT + 1, parse_math=False)
        axis.tick_params(length=2, labelsize=FONT, colors=BLACK)
        axis.spines[["top", "right"]].set_visible(False)
    for axis in axes[len(plot.panels) :]:
        axis.set_visible(False)
    figure.suptitle(_one_line(plot.title), fontsize=FONT + 2, parse_math=False)
    return figure


def _relative_height(panel: Panel) -> float:
    """Return the height of a panel in usual panels: a list of names needs room."""
    match panel:
        case Bars():
            names = len(panel.bars)
        case Boxes():
            names = len(panel.boxes)
        case HeatMap():
            names = len(panel.rows)
        case _:
            names = 0
    return max(1.0, min(6.0, names / 22))


def _axis_labels(axis: Any, panel: Lines | Points | HeatMap) -> None:
    axis.set_xlabel(_one_line(panel.x_label), fontsize=FONT, parse_math=False)
    axis.set_ylabel(_one_line(panel.y_label), fontsize=FONT, parse_math=False)


def _draw_lines(figure: Any, axis: Any, panel: Lines) -> None:
    for n, line in enumerate(panel.lines):
        style = {
            "color": line.colour or (GREY if line.dashed else PALETTE[n % len(PALETTE)]),
            "linestyle": "--" if line.dashed else LINE_STYLES[n // len(PALETTE) % len(LINE_STYLES)],
            "linewidth": 1.2,
            "label": _escaped(line.name),
        }
        if line.filled:
            axis.stairs(line.y, line.x, fill=True, color=style["color"], label=style["label"])
        elif panel.steps:
            heights = line.y if len(line.y) == len(line.x) else np.append(line.y, line.y[-1:])
            axis.step(line.x, heights, where=panel.steps, **style)
        else:
            axis.plot(line.x, line.y, **style)
    if panel.log_x:
        axis.set_xscale("log")
    _axis_labels(axis, panel)
    _legend(axis, len(panel.lines))


def _draw_points(figure: Any, axis: Any, panel: Points) -> None:
    kinds = list(dict.fromkeys(point.kind for point in panel.points))
    for n, kind in enumerate(kinds):
        of_kind = [point for point in panel.points if point.kind == kind]
        axis.scatter(
            [p.x for p in of_kind],
            [p.y for p in of_kind],
            s=14,
            color=PALETTE[n % len(PALETTE)],
            label=_escaped(kind) or None,
            alpha=0.8,
            linewidths=0,
        )
    for point in panel.points:
        if point.label:
            axis.annotate(
                _one_line(point.name),
                (point.x, point.y),
                xytext=(3, 3),
                textcoords="offset points",
                fontsize=SMALL_FONT,
                parse_math=False,
            )
    if panel.diagonal:
        ends = [min(*axis.get_xlim(), *axis.get_ylim()), max(*axis.get_xlim(), *axis.get_ylim())]
        axis.plot(ends, ends, color=GREY, linewidth=0.8, zorder=0)
    _axis_labels(axis, panel)
    if any(kinds):
        _legend(axis, len(kinds))


def _draw_heat_map(figure: Any, axis: Any, panel: HeatMap) -> None:
    image = axis.imshow(panel.values, aspect="auto", cmap="viridis", vmin=0, interpolation="nearest")
    axis.set_xticks(range(len(panel.columns)))
    axis.set_yticks(range(len(panel.rows)))
    size = SMALL_FONT if max(len(panel.columns), len(panel.rows)) <= 60 else SMALL_FONT / 2
    columns, rows = ([_one_line(name) for name in names] for names in (panel.columns, panel.rows))
    axis.set_xticklabels(columns, rotation=90, fontsize=size, parse_math=False)
    axis.set_yticklabels(rows, fontsize=size, parse_math=False)
    _axis_labels(axis, panel)
    figure.colorbar(image, ax=axis, fraction=0.05, pad=0.02).ax.tick_params(labelsize=SMALL_FONT)


def _draw_bars(figure: Any, axis: Any, panel: Bars) -> None:
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
            color=PALETTE[n % len(PALETTE)],
            label=_escaped(name) or None,
        )
    _categories(axis, categories, panel.label)
    axis.axvline(0, color=BLACK, linewidth=0.6)
    if any(series):
        _legend(axis, len(series))


def _draw_boxes(figure: Any, axis: Any, panel: Boxes) -> None:
    for row, box in enumerate(panel.boxes):
        if not box.quantiles:
            axis.text(
                0.01,
                row,
                _one_line(box.note),
                transform=axis.get_yaxis_transform(),
                va="center",
                fontsize=SMALL_FONT,
                parse_math=False,
            )
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


def _categories(axis: Any, names: list[str], label: str) -> None:
    """Name the rows of an axis from top to bottom, and its values."""
    axis.set_yticks(range(len(names)))
    axis.set_yticklabels([_one_line(name) for name in names], fontsize=FONT, parse_math=False)
    axis.invert_yaxis()
    axis.set_xlabel(_one_line(label), fontsize=FONT, parse_math=False)


def _legend(axis: Any, entries: int) -> None:
    if entries > 1:
        axis.legend(fontsize=SMALL_FONT, frameon=False, ncols=1 + entries // 12)


def _escaped(name: str) -> str:
    """Return a legend's text without the meaning that matplotlib gives to $ and leading underscores."""
    return _one_line(name).lstrip("_").replace("$", r"\$")


def _one_line(name: str) -> str:
    """Return a name, which may be anyone's, as one short printable line."""
    return printable(name, MAX_NAME_LENGTH)


DRAW: Final[Mapping[type, Callable[[Any, Any, Any], None]]] = {
    Lines: _draw_lines,
    Points: _draw_points,
    HeatMap: _draw_heat_map,
    Bars: _draw_bars,
    Boxes: _draw_boxes,
}
