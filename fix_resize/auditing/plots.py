"""The plots of an audit: histograms of total variation and a grid of images, the same bytes every time.

Histograms contain only counts; the grid shows the user's own images. Both require matplotlib (extra
``plots``), imported when used.
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
from wordnet_splits.base.drawing import BLACK, BLUE, GREY, ORANGE
from wordnet_splits.base.shapes import Line, Lines

BINS: Final = 36
MAX_TITLE_LINE: Final = 15
MAX_NAME_PER_IMAGE: Final = 26
"""Letters that fit over an image: of a line of its title, and of its name."""

TAIL: Final = 0.98
"""Share of each set that the axis shows, so that a few outliers do not squeeze the others."""

SALT: Final = "fix-resize"
"""Salt of the ids in a plot, fixed so that they are the same every time."""


@dataclass(frozen=True)
class Histogram:
    """A histogram of total variation.

    Attributes
    ----------
    title : title above the histogram.
    label : text for the set in the legend.
    variation : (n,) total variation of the set.
    alarmed : whether the set did not pass.
    fix_variation : (k,) total variation of `fix` of the set's originals, drawn as a dashed line.
    """

    title: str
    label: str
    variation: Floats
    alarmed: bool
    fix_variation: Floats | None = None


def require_plots() -> None:
    """Raise MissingPackageError unless matplotlib can be imported."""
    plotting.require_plots("histograms and grids of images")


def save_histograms(
    histograms: Sequence[Histogram], reference_label: str, reference: Floats, path: Path, *, columns: int = 3
) -> None:
    """Draw histograms over that of the reference, in ``columns`` columns; SVG, PNG or PDF by the file name.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    edges = _edges([reference, *(histogram.variation for histogram in histograms)])

    def line(name: str, scores: Floats, colour: str, *, filled: bool = False, dashed: bool = False) -> Line:
        shares = _shares(scores, edges)
        return Line(name, edges, shares, colour=colour, filled=filled, dashed=dashed)

    panels = []
    for histogram in histograms:
        lines = [
            line(reference_label, reference, GREY, filled=True),
            line(histogram.label, histogram.variation, ORANGE if histogram.alarmed else BLUE),
        ]
        if histogram.fix_variation is not None:
            lines.append(line("fix of its originals", histogram.fix_variation, BLACK, dashed=True))
        labels = ("total variation (grey levels per pixel)", "share of pictures")
        panels.append(Lines(histogram.title, *labels, tuple(lines), steps="post"))
    plot = plotting.Plot("Total variation of pictures", tuple(panels), columns=columns)
    plotting.save_plot(plot, path, salt=SALT)


def _edges(sets: Sequence[Floats]) -> npt.NDArray[np.float64]:
    """Return the edges of the bins, from zero to a bound of nearly all pictures of every set."""
    top = max(float(np.quantile(scores, TAIL)) for scores in sets)
    return np.linspace(0, top or 1.0, BINS + 1)


def _shares(scores: Floats, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the share of the pictures in each bin; the last bin includes pictures beyond its edge."""
    return np.histogram(np.minimum(scores, edges[-1]), edges)[0] / len(scores)


def save_grid(
    rows: Sequence[tuple[str, Sequence[Pixels]]], columns: Sequence[str], path: Path, wrap: int = 4
) -> None:
    """Draw images side by side, one row of ``columns`` for each of ``rows``, in ``wrap`` blocks; PNG.

    Parameters
    ----------
    rows : name and images of each row, (h, w, 3) uint8, all of one size.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    require_plots()
    from matplotlib.figure import Figure

    wrap = min(wrap, len(rows))
    lines = -(-len(rows) // wrap)
    side = max(rows[0][1][0].shape[:2])
    block_width = len(columns) * 1.04 + 0.3  # in inches, as all lengths here; an image is one inch wide
    dpi = side * max(1, round(100 / side))  # a pixel of an image becomes a square of whole pixels
    with plotting.settings(SALT):
        figure = Figure(figsize=(wrap * block_width + 0.2, lines * 1.22 + 0.55), dpi=dpi)
        for n, (name, images) in enumerate(rows):
            line, block = divmod(n, wrap)
            for column, (title, pixels) in enumerate(zip(columns, images, strict=True)):
                left, bottom = 0.15 + block * block_width + column * 1.04, 0.1 + (lines - 1 - line) * 1.22
                axis = _image_axis(figure, pixels, left, bottom)
                if line == 0:
                    _write(axis, 0.5, 1.2, _two_lines(title), ha="center", va="bottom", fontsize=6.5)
                if column == 0:
                    max_length = MAX_NAME_PER_IMAGE * len(columns)
                    text = name if len(name) <= max_length else f"...{name[3 - max_length :]}"
                    _write(axis, 0, 1.04, text, fontsize=5)
        plotting.save(figure, path)


def _image_axis(figure: Any, pixels: Pixels, left: float, bottom: float) -> Any:
    width, height = figure.get_size_inches()
    axis = figure.add_axes((left / width, bottom / height, 1 / width, 1 / height))
    axis.imshow(pixels, interpolation="nearest")
    axis.set_axis_off()
    return axis


def _write(axis: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Write text into an axis, at fractions of its width and height; a dollar sign is not math."""
    axis.text(x, y, text, transform=axis.transAxes, color=BLACK, parse_math=False, **style)


def _two_lines(title: str) -> str:
    """Return a long title, broken at the blank or hyphen nearest to its middle."""
    breaks = [n + 1 for n, letter in enumerate(title) if letter in " -"]
    if len(title) <= MAX_TITLE_LINE or not breaks:
        return title
    middle = min(breaks, key=lambda n: abs(2 * n - len(title)))
    return f"{title[:middle].rstrip()}\n{title[middle:]}"
