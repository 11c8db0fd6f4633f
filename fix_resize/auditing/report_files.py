"""The files of an audit: table, JSON, histogram and a grid of images, the same bytes every time.

Histograms contain only counts; the grid shows the user's own images. Both require matplotlib (extra
``plots``), imported when used.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.set_audit import LEFT_OUT_SCHEMA, Report, fix_at
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec
from fix_resize.windows import Floats
from wordnet_splits.base import files, plotting
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.drawing import BLACK, BLUE, GREY, ORANGE
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.datasets.sources.image_set import ImageSet

AS_STORED: Final = "as stored"

GRID_SIZE: Final = 24
"""Number of images in the grid."""

BINS: Final = 36
MAX_TITLE_LINE: Final = 15
MAX_NAME_PER_IMAGE: Final = 26
"""Letters that fit over an image, in a line of its title and in its name."""

TAIL: Final = 0.98
"""Share of each set within the axis, so that a few outliers do not squeeze the histogram."""

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
    fix_variation : (k,) total variation of the originals after `fix`, drawn as a dashed line.
    """

    title: str
    label: str
    variation: Floats
    alarmed: bool
    fix_variation: Floats | None = None


def write_report(report: Report, images: ImageSet, originals: ImageSet | None, out: Path) -> list[Path]:
    """Write the files of an audit and return their paths.

    ``scores.parquet`` (`set_audit.SCHEMA`), ``left-out.parquet`` if images were left out, ``audit.json``,
    ``histogram.svg``, and ``suspicious.png``: the most suspicious images, each next to `fix` of its original
    if originals are given.
    """
    names = ("scores.parquet", "left-out.parquet", "audit.json", "histogram.svg", "suspicious.png")
    scores, left_out, audit_json, histogram, suspicious = paths = [out / name for name in names]
    origin = {"set": report.label, "reference": report.reference, "verdict": report.audit.verdict}
    write_table(report.scores, scores, metadata=origin)
    left_out.unlink(missing_ok=True)  # of an earlier audit
    if skipped := report.left_out + report.reference_left_out:
        rows = [entry._asdict() for entry in skipped]
        write_table(pa.Table.from_pylist(rows, schema=LEFT_OUT_SCHEMA), left_out)
    files.write_json(audit_json, report.as_dict())
    save_histograms([_histogram(report)], report.reference, report.reference_variation, histogram)
    grid_rows = _suspicious(report, images, originals)
    save_grid(grid_rows, (AS_STORED, "fix of its original")[: len(grid_rows[0][1])], suspicious)
    return [path for path in paths if path.exists()]


def _histogram(report: Report) -> Histogram:
    audit = report.audit
    fix_variation = report.scores["fix_variation"].drop_null().to_numpy()
    return Histogram(
        title=f"{report.label} ({len(report.scores):,})",
        label=f"{audit.verdict}: signed {audit.signed.value:.3f}, absolute {audit.absolute.value:.3f}",
        variation=report.scores["variation"].to_numpy(),
        alarmed=not audit.passed,
        fix_variation=fix_variation if len(fix_variation) else None,
    )


def _suspicious(
    report: Report, image_set: ImageSet, originals: ImageSet | None
) -> list[tuple[str, Sequence[Pixels]]]:
    """Return the most suspicious images with their ids, each with `fix` of its original if it is known."""
    ids = report.most_suspicious(GRID_SIZE)
    images = render(image_set, ids, {AS_STORED: None})
    if originals is None or not report.pairs:
        return [(image_id, images[image_id]) for image_id in ids]
    rows = report.scores.select(["image_id", "original"]).to_pylist()
    original_of = {row["image_id"]: row["original"] for row in rows}
    fixed = render(originals, {original_of[i] for i in ids}, {"fix": fix_at(report.size)})
    return [(i, [*images[i], *fixed[original_of[i]]]) for i in ids]


def render(
    images: ImageSet, ids: Collection[str], specs: Mapping[str, ResizeSpec | None]
) -> dict[str, list[Pixels]]:
    """Return images after each spec (None for images as stored), in the order of ``ids``."""
    rendered: dict[str, list[Pixels]] = {}
    for image_id in images.in_order(ids):
        image = images.image(image_id)
        rendered[image_id] = [np.asarray(image) if s is None else apply(s, image) for s in specs.values()]
    return {image_id: rendered[image_id] for image_id in ids}


def save_histograms(
    histograms: Sequence[Histogram], reference_label: str, reference: Floats, path: Path, *, columns: int = 3
) -> None:
    """Draw histograms in ``columns`` columns, each over the reference; SVG, PNG or PDF by the file name.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    sets = [reference, *(histogram.variation for histogram in histograms)]
    top = max(float(np.quantile(scores, TAIL)) for scores in sets)
    edges = np.linspace(0, top or 1.0, BINS + 1)

    def line(name: str, scores: Floats, colour: str, *, filled: bool = False, dashed: bool = False) -> Line:
        shares = np.histogram(np.minimum(scores, edges[-1]), edges)[0] / len(scores)  # the rest in the last
        return Line(name, edges, shares, colour=colour, filled=filled, dashed=dashed)

    panels = []
    for histogram in histograms:
        lines = [
            line(reference_label, reference, GREY, filled=True),
            line(histogram.label, histogram.variation, ORANGE if histogram.alarmed else BLUE),
        ]
        if histogram.fix_variation is not None:
            lines.append(line("fix of its originals", histogram.fix_variation, BLACK, dashed=True))
        labels = ("total variation (grey levels per pixel)", "share of images")
        panels.append(Lines(histogram.title, *labels, tuple(lines), steps="post"))
    plot = plotting.Plot("Total variation of images", tuple(panels), columns=columns)
    plotting.save_plot(plot, path, salt=SALT)


def save_grid(
    rows: Sequence[tuple[str, Sequence[Pixels]]], columns: Sequence[str], path: Path, wrap: int = 4
) -> None:
    """Draw rows of images, each with a column for each of ``columns``, in ``wrap`` blocks; PNG.

    Parameters
    ----------
    rows : name and images of each row, (h, w, 3) uint8 of equal size.

    Raises
    ------
    MissingPackageError : matplotlib is not installed.
    OutputError : the file cannot be written.
    """
    plotting.require_plots("histograms and grids of images")
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
