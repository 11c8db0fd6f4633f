"""An audit of a set of images and its files: table, JSON, histogram and grid, the same bytes every time.

Histograms contain only counts; the grid shows the user's own images. Both require matplotlib (extra
``plots``), imported when used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.set_audit import LEFT_OUT_SCHEMA, PURPOSE, Report, audit_images, fix_at
from fix_resize.resize import apply
from fix_resize.windows import Floats
from wordnet_splits.base import files, plotting
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.drawing import BLACK, BLUE, GREY, ORANGE
from wordnet_splits.base.errors import OutputError
from wordnet_splits.base.parquet import write_table
from wordnet_splits.base.plotting import require_plots
from wordnet_splits.base.progress import Progress
from wordnet_splits.base.shapes import Line, Lines
from wordnet_splits.benchmark.image_sets import open_images
from wordnet_splits.datasets.sources.image_set import ImageSet
from wordnet_splits.datasets.sources.roots import Roots

COLUMNS: Final = ("as stored", "fix of\nits original")
"""Titles of the columns of the grid."""

GRID_SIZE: Final = 24
"""Number of images in the grid."""

BLOCKS: Final = 4
"""Number of images next to each other in the grid, each with `fix` of its original."""

MAX_NAME_PER_COLUMN: Final = 26
"""Letters of a name that fit over an image, per column."""

BINS: Final = 36
TAIL: Final = 0.98
"""Share of each set within the axis, so that a few outliers do not squeeze the histogram."""

SALT: Final = "fix-resize"
"""Salt of the ids in a plot, fixed so that they are the same every time."""


def audit(
    images: Path | str,
    *,
    reference: Path | str = "cifar100:test",
    originals: Path | str | None = None,
    roots: Roots = MappingProxyType({}),
    limit: int | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a set of images for traces of its resizer.

    Parameters
    ----------
    images, reference : the sets, as `wordnet_splits.benchmark.image_sets.open_images` names them.
    originals : the images before resizing, under the same names.
    roots : folder of each source.
    limit : number of images to score, sampled by a hash of their ids; by default all.
    out : folder for scores, histogram and images; requires matplotlib.

    Raises
    ------
    OutputError : ``out`` is inside an audited set, or cannot be written.
    SplitsError : a set does not exist, cannot be read, or has no image to compare.
    """
    folders = {name: Path(folder) for name, folder in roots.items()}
    if out is not None:
        check_out(Path(out), [str(name) for name in (images, reference, originals) if name is not None])
    image_set = open_images(str(images), folders)
    reference_set = open_images(str(reference), folders)
    original_set = None if originals is None else open_images(str(originals), folders, as_stored=True)
    report = audit_images(image_set, reference_set, original_set, limit=limit, progress=progress)
    if out is None:
        return report
    return replace(report, files=tuple(write_report(report, image_set, original_set, Path(out))))


def check_out(out: Path, sets: Iterable[str]) -> None:
    """Raise OutputError if ``out`` is inside a set; MissingPackageError without matplotlib."""
    require_plots(PURPOSE)
    for folder in map(Path, sets):
        if folder.is_dir() and out.resolve().is_relative_to(folder.resolve()):
            raise OutputError("is inside an audited set", where=str(out), hint="give a folder outside it")


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
    save_histogram(report, histogram)
    save_grid(_suspicious(report, images, originals), suspicious)
    return [path for path in paths if path.exists()]


def save_histogram(report: Report, path: Path) -> None:
    """Draw total variation of the set, of the reference, and of `fix` of the originals if they are known."""
    result, reference = report.audit, report.reference_variation
    variation = report.scores["variation"].to_numpy()
    fix_variation = report.scores["fix_variation"].drop_null().to_numpy()
    top = max(float(np.quantile(scores, TAIL)) for scores in (variation, reference))
    edges = np.linspace(0, top or 1.0, BINS + 1)

    def line(name: str, scores: Floats, colour: str, *, filled: bool = False, dashed: bool = False) -> Line:
        shares = np.histogram(np.minimum(scores, edges[-1]), edges)[0] / len(scores)  # the rest in the last
        return Line(name, edges, shares, colour=colour, filled=filled, dashed=dashed)

    name = f"{result.verdict}: signed {result.signed.value:.3f}, absolute {result.absolute.value:.3f}"
    lines = [
        line(report.reference, reference, GREY, filled=True),
        line(name, variation, BLUE if result.passed else ORANGE),
    ]
    if len(fix_variation):
        lines.append(line("fix of its originals", fix_variation, BLACK, dashed=True))
    title = f"{report.label} ({len(report.scores):,})"
    labels = ("total variation (grey levels per pixel)", "share of images")
    panel = Lines(title, *labels, tuple(lines), steps="post")
    plotting.save_plot(plotting.Plot("Total variation of images", (panel,)), path, salt=SALT)


def _suspicious(
    report: Report, images: ImageSet, originals: ImageSet | None
) -> list[tuple[str, list[Pixels]]]:
    """Return the most suspicious images with their ids, each with `fix` of its original if it is known."""
    ids = report.most_suspicious(GRID_SIZE)
    rows = [(image_id, [np.asarray(images.image(image_id))]) for image_id in ids]
    if originals is not None and report.pairs:
        columns = (report.scores[name].to_pylist() for name in ("image_id", "original"))
        original_of, fix = dict(zip(*columns, strict=True)), fix_at(report.size)
        for image_id, row in rows:
            row.append(apply(fix, originals.image(original_of[image_id])))
    return rows


def save_grid(rows: Sequence[tuple[str, Sequence[Pixels]]], path: Path) -> None:
    """Draw images in `BLOCKS` blocks of `COLUMNS`, as many as each row has; PNG."""
    require_plots(PURPOSE)
    from matplotlib.figure import Figure

    columns = COLUMNS[: len(rows[0][1])]
    blocks = min(BLOCKS, len(rows))
    lines = -(-len(rows) // blocks)
    side = max(rows[0][1][0].shape[:2])
    block_width = len(columns) * 1.04 + 0.3  # in inches, as all lengths here; an image is one inch wide
    width, height = blocks * block_width + 0.2, lines * 1.22 + 0.55
    dpi = side * max(1, round(100 / side))  # a pixel of an image becomes a square of whole pixels
    with plotting.settings(SALT):
        figure = Figure(figsize=(width, height), dpi=dpi)
        for n, (name, images) in enumerate(rows):
            line, block = divmod(n, blocks)
            for column, (title, pixels) in enumerate(zip(columns, images, strict=True)):
                left, bottom = 0.15 + block * block_width + column * 1.04, 0.1 + (lines - 1 - line) * 1.22
                axis = figure.add_axes((left / width, bottom / height, 1 / width, 1 / height))
                axis.imshow(pixels, interpolation="nearest")
                axis.set_axis_off()
                if line == 0:
                    _write(axis, 0.5, 1.2, title, ha="center", va="bottom", fontsize=6.5)
                if column == 0:
                    max_length = MAX_NAME_PER_COLUMN * len(columns)
                    text = name if len(name) <= max_length else f"...{name[3 - max_length :]}"
                    _write(axis, 0, 1.04, text, fontsize=5)
        plotting.save(figure, path)


def _write(axis: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Write text into an axis, at fractions of its width and height; a dollar sign is not math."""
    axis.text(x, y, text, transform=axis.transAxes, color=BLACK, parse_math=False, **style)
