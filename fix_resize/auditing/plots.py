"""The plots of an audit: histograms of total variation and a grid of images, the same bytes every time.

They need matplotlib (extra ``plots``), imported when used. The grid shows the user's own images and is
written only where the user says; the histograms hold nothing but counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from fix_resize.windows import Floats
from wordnet_splits.base import plotting
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.plotting import BLACK, BLUE, GREY, ORANGE

BINS: Final = 36
WIDEST: Final = 15
NAME_LETTERS: Final = 26
"""Letters of a title, and of a small name, that fit over an image."""

TAIL: Final = 0.98
"""Share of each set that the axis shows; a few outliers would squeeze the rest."""

DASHES: Final = (0, (2, 1))
SALT: Final = "fix-resize"
"""Of the ids in a plot: what is drawn is the same from one run to the next."""


@dataclass(frozen=True)
class Panel:
    """One histogram of a set over that of the reference.

    Attributes
    ----------
    row, column : the titles it stands under.
    variation : (n,) total variation of the set.
    note : text written into it.
    alarmed : whether to draw it as altered or suspicious.
    rendered : (k,) total variation of the `fix` rendering of the set's originals, as a second line.
    """

    row: str
    column: str
    variation: Floats
    note: str
    alarmed: bool
    rendered: Floats | None = None


def require_plots() -> None:
    """Raise MissingPackageError unless matplotlib can be imported."""
    plotting.require_plots("histograms and grids of images")


def histograms(panels: Sequence[Panel], reference: Floats, legend: tuple[str, str, str], path: Path) -> None:
    """Write histograms as a table of panels, each over the reference's in grey; SVG or PNG by the name.

    Parameters
    ----------
    legend : labels of the reference, of a set that passed, and of one that did not.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    require_plots()
    from matplotlib.figure import Figure

    rows = list(dict.fromkeys(panel.row for panel in panels))
    columns = list(dict.fromkeys(panel.column for panel in panels))
    edges = _edges([reference, *(panel.variation for panel in panels)])
    with plotting.settings(SALT):
        figure = Figure(figsize=(max(6.4, 2.6 * len(columns)), max(3.2, 1.05 * len(rows) + 0.9)))
        axes = figure.subplots(len(rows), len(columns), sharex=True, sharey="col", squeeze=False)
        for panel in panels:
            row, column = rows.index(panel.row), columns.index(panel.column)
            _draw(axes[row][column], panel, reference, edges)
        for axis, title in zip(axes[0], columns, strict=True):
            axis.set_title(_short(title, 40), fontsize=9, color=BLACK, parse_math=False)
        for line, title in zip(axes, rows, strict=True):
            line[0].set_ylabel(
                title, rotation=0, ha="right", va="center", fontsize=8, color=BLACK, parse_math=False
            )
        figure.supxlabel("total variation of a picture (grey levels per pixel)", fontsize=8, color=BLACK)
        _legend(figure, legend, panels)
        figure.tight_layout(rect=(0, 0, 1, 1 - 0.28 / figure.get_figheight()))
        plotting.save(figure, path)


def _edges(sets: Sequence[Floats]) -> npt.NDArray[np.float64]:
    """Return the edges of the bins, from zero to where nearly all of every set lies below."""
    top = max(float(np.quantile(scores, TAIL)) for scores in sets)
    return np.linspace(0, top or 1.0, BINS + 1)


def _shares(scores: Floats, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of the pictures in each bin; what lies above the last edge is in the last bin."""
    return np.histogram(np.minimum(scores, edges[-1]), edges)[0] / len(scores)


def _draw(axis: Any, panel: Panel, reference: Floats, edges: npt.NDArray[np.float64]) -> None:
    colour = ORANGE if panel.alarmed else BLUE
    axis.stairs(_shares(reference, edges), edges, fill=True, color=GREY)
    if panel.rendered is not None:
        axis.stairs(_shares(panel.rendered, edges), edges, color=BLACK, linewidth=0.9, linestyle=DASHES)
    axis.stairs(_shares(panel.variation, edges), edges, color=colour, linewidth=1.3)
    _write(axis, 0.97, 0.92, panel.note, colour, ha="right", va="top", fontsize=7)
    axis.set_yticks([])
    axis.set_xlim(edges[0], edges[-1])
    axis.tick_params(length=2, labelsize=7, colors=BLACK)
    axis.spines[["top", "right", "left"]].set_visible(False)


def _write(axis: Any, x: float, y: float, text: str, colour: str = BLACK, **style: Any) -> None:
    """Write into an axis, at fractions of its width and height; a dollar sign is not math."""
    axis.text(x, y, text, transform=axis.transAxes, color=colour, parse_math=False, **style)


def _legend(figure: Any, labels: tuple[str, str, str], panels: Sequence[Panel]) -> None:
    """Add a legend of what is drawn, above the figure."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    drawn = {panel.alarmed for panel in panels}
    handles: list[Any] = [Patch(color=GREY, label=_short(labels[0], 40))]
    for alarmed, colour, text in ((False, BLUE, labels[1]), (True, ORANGE, labels[2])):
        if alarmed in drawn:
            handles.append(Line2D([], [], color=colour, label=text))
    if any(panel.rendered is not None for panel in panels):
        handles.append(Line2D([], [], color=BLACK, linestyle=DASHES, label="fix of its originals"))
    figure.legend(handles=handles, loc="upper center", ncols=len(handles), frameon=False, fontsize=7)


def grid(
    rows: Sequence[tuple[str, Sequence[Pixels]]], columns: Sequence[str], path: Path, wrap: int = 4
) -> None:
    """Write images side by side, one row of ``columns`` for each of ``rows``, in ``wrap`` blocks; PNG.

    Parameters
    ----------
    rows : what to write over each row, and its images, (h, w, 3) uint8, all of one size.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    require_plots()
    from matplotlib.figure import Figure

    wrap = min(wrap, len(rows))
    deep = -(-len(rows) // wrap)
    size = max(rows[0][1][0].shape[:2])
    cell, wide = 1.0, len(columns) * 1.04 + 0.3  # inches of an image; of a block, in images
    dpi = size * max(1, round(100 / size))  # a pixel of an image is a square of whole pixels
    with plotting.settings(SALT):
        figure = Figure(figsize=(wrap * wide * cell + 0.2, deep * 1.22 * cell + 0.55), dpi=dpi)
        for place, (name, images) in enumerate(rows):
            block, line = place % wrap, place // wrap
            for column, (title, pixels) in enumerate(zip(columns, images, strict=True)):
                left = (0.15 + block * wide + column * 1.04) * cell
                bottom = 0.1 + (deep - 1 - line) * 1.22 * cell
                axis = _image(figure, pixels, left, bottom, cell)
                if line == 0:
                    _write(axis, 0.5, 1.2, _two_lines(title), ha="center", va="bottom", fontsize=6.5)
                if column == 0:
                    _write(axis, 0, 1.04, _short(name, NAME_LETTERS * len(columns)), fontsize=5)
        plotting.save(figure, path)


def _image(figure: Any, pixels: Pixels, left: float, bottom: float, cell: float) -> Any:
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, bottom / height, cell / width, cell / height))
    axis.imshow(pixels, interpolation="nearest")
    axis.set_axis_off()
    return axis


def _short(name: str, most: int) -> str:
    """Return a name, or the end of it where it is longer than ``most`` letters."""
    return name if len(name) <= most else f"...{name[-most + 3 :]}"


def _two_lines(title: str) -> str:
    """Return a long title broken at the blank or hyphen nearest to its middle."""
    breaks = [place + 1 for place, letter in enumerate(title) if letter in " -"]
    if len(title) <= WIDEST or not breaks:
        return title
    middle = min(breaks, key=lambda place: abs(2 * place - len(title)))
    return f"{title[:middle].rstrip()}\n{title[middle:]}"
