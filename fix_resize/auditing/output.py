"""The files of an audit: table, JSON, histogram and a grid of images."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.audit import LEFT_OUT_SCHEMA, Report, fix_at
from fix_resize.auditing.pictures import PictureSet, readable
from fix_resize.auditing.plots import Histogram, save_grid, save_histograms
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec
from wordnet_splits.base import files
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.parquet import write_table

AS_STORED: Final = "as stored"

GRID_SIZE: Final = 24
"""Number of images in the grid."""


def write_report(report: Report, pictures: PictureSet, originals: PictureSet | None, out: Path) -> list[Path]:
    """Write the files of an audit and return their paths.

    ``scores.parquet`` (`audit.SCHEMA`), ``left-out.parquet`` if pictures were left out, ``audit.json``,
    ``histogram.svg``, and ``suspicious.png``: the most suspicious images, each beside `fix` of its original
    if there is one.
    """
    names = ("scores.parquet", "left-out.parquet", "audit.json", "histogram.svg", "suspicious.png")
    scores, left_out, audit_json, histogram, suspicious = paths = [out / name for name in names]
    origin = {"set": report.label, "reference": report.reference, "verdict": report.audit.verdict}
    write_table(report.scores, scores, metadata=origin)
    left_out.unlink(missing_ok=True)  # of an earlier audit
    if skipped := report.left_out + report.reference_left_out:
        rows = [picture._asdict() for picture in skipped]
        write_table(pa.Table.from_pylist(rows, schema=LEFT_OUT_SCHEMA), left_out)
    files.write_json(audit_json, report.as_dict())
    save_histograms([_histogram(report)], report.reference, report.reference_variation, histogram)
    grid_rows = _suspicious(report, pictures, originals)
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
    report: Report, pictures: PictureSet, originals: PictureSet | None
) -> list[tuple[str, Sequence[Pixels]]]:
    """Return the most suspicious images with their ids, and `fix` of their originals if there are any."""
    ids = report.most_suspicious(GRID_SIZE)
    images = render(pictures, ids, {AS_STORED: None})
    if originals is None or not report.pairs:
        return [(image_id, images[image_id]) for image_id in ids]
    rows = report.scores.select(["image_id", "original"]).to_pylist()
    original_of = {row["image_id"]: row["original"] for row in rows}
    fixed = render(originals, {original_of[i] for i in ids}, {"fix": fix_at(report.size)})
    return [(i, [*images[i], *fixed[original_of[i]]]) for i in ids]


def render(
    pictures: PictureSet, ids: Collection[str], specs: Mapping[str, ResizeSpec | None]
) -> dict[str, list[Pixels]]:
    """Return images after each spec (None for images as stored), in the order of ``ids``."""
    rendered: dict[str, list[Pixels]] = {}
    for image_id, picture in pictures.read(ids):
        image = readable(picture)
        rendered[image_id] = [np.asarray(image) if s is None else apply(s, image) for s in specs.values()]
    return {image_id: rendered[image_id] for image_id in ids}
