"""Files that an audit or a study leaves in a folder: tables, JSON, histograms, a grid of images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.audit import LEFT_OUT_SCHEMA, Report, fix_at
from fix_resize.auditing.measuring import LeftOut
from fix_resize.auditing.plots import Panel, grid, histograms
from fix_resize.auditing.sets import Pictures, readable
from fix_resize.auditing.study import Comparison
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec, get_spec
from wordnet_splits.base import files
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.parquet import write_table

AS_STORED: Final = "as stored"

SHOWN: Final = 24
"""Images in an audit's grid."""

COMPARED: Final = 6
"""Images of each set in a study's grid."""


def write_report(report: Report, pictures: Pictures, originals: Pictures | None, out: Path) -> list[Path]:
    """Write an audit's files and return them.

    ``scores.parquet`` (`audit.SCHEMA`), ``left-out.parquet`` where something was left out, ``audit.json``,
    ``histogram.svg``, and ``suspicious.png``: the images farthest from what they should be, each beside the
    `fix` rendering of its original where there is one.
    """
    names = ["scores.parquet", "left-out.parquet", "audit.json", "histogram.svg", "suspicious.png"]
    scores, left_out, found, histogram, suspicious = (out / name for name in names)
    origin = {"set": report.label, "reference": report.reference, "verdict": report.audit.verdict}
    write_table(report.scores, scores, metadata=origin)
    left_out.unlink(missing_ok=True)  # of an earlier audit into the same folder
    if entries := report.left_out + report.reference_left_out:
        write_table(_left_out_table(entries), left_out)
    files.write_json(found, report.as_dict())
    panel = _panel_of(report)
    legend = (report.reference, report.audit.verdict, report.audit.verdict)
    histograms([panel], report.reference_variation, legend, histogram)
    rows = _suspicious(report, pictures, originals)
    grid(rows, (AS_STORED, "fix of its original")[: len(rows[0][1])], suspicious)
    return [path for path in (scores, left_out, found, histogram, suspicious) if path.exists()]


def write_comparison(comparison: Comparison, out: Path) -> list[Path]:
    """Write a study's files and return them: ``table.md``, ``study.json``, ``smoothness.svg``; no image."""
    table, found, histogram = (out / name for name in ("table.md", "study.json", "smoothness.svg"))
    files.write_text(table, comparison.markdown())
    files.write_json(found, comparison.as_dict())
    panels = [
        Panel(
            row=cell.spec,
            column=f"{cell.label} ({len(cell.variation):,})",
            variation=cell.variation,
            note=f"AUROC {cell.audit.signed.value:.3f}\n{cell.audit.verdict}",
            alarmed=not cell.audit.passed,
        )
        for cell in comparison.cells
    ]
    legend = (comparison.reference, "clean beside its own fix", "not so")
    histograms(panels, comparison.reference_variation, legend, histogram)
    return [table, found, histogram]


def write_side_by_side(comparison: Comparison, sets: Sequence[tuple[str, Pictures]], path: Path) -> Path:
    """Write the images that a broken spec changed most, under every spec of a study."""
    specs: dict[str, ResizeSpec | None] = {cell.spec: get_spec(cell.spec) for cell in comparison.cells}
    rows: list[tuple[str, Sequence[Pixels]]] = []
    for label, pictures in sets:
        cells = [cell for cell in comparison.cells if cell.label == label]
        worst = max(cells, key=lambda cell: (cell.study_only, cell.paired.shares["aliased"]))
        differences = np.array([pair.difference for pair in worst.paired.pairs])
        order = np.lexsort((np.arange(len(worst.ids)), -differences))[:COMPARED]
        rendered = _rendered(pictures, [worst.ids[i] for i in order], specs)
        rows += [(f"{label}: {image_id}", images) for image_id, images in rendered.items()]
    grid(rows, list(specs), path, wrap=1)
    return path


def _panel_of(report: Report) -> Panel:
    audit = report.audit
    note = f"signed {audit.signed.value:.3f}\nabsolute {audit.absolute.value:.3f}\n{audit.verdict}"
    fixed = report.scores["fix_variation"].drop_null().to_numpy()
    return Panel(
        row="",
        column=f"{report.label} ({len(report.scores):,})",
        variation=report.scores["variation"].to_numpy(),
        note=note,
        alarmed=not audit.passed,
        rendered=fixed if len(fixed) else None,
    )


def _suspicious(
    report: Report, pictures: Pictures, originals: Pictures | None
) -> list[tuple[str, Sequence[Pixels]]]:
    """Return the most suspicious images with their ids, and their originals in `fix` where there are any."""
    ids = report.most_suspicious(SHOWN)
    images = _rendered(pictures, ids, {AS_STORED: None})
    if originals is None or not report.pairs:
        return [(image_id, images[image_id]) for image_id in ids]
    rows = report.scores.select(["image_id", "original"]).to_pylist()
    original_of = {row["image_id"]: row["original"] for row in rows}
    fixed = _rendered(originals, {original_of[i] for i in ids}, {"fix": fix_at(report.size)})
    return [(i, [*images[i], *fixed[original_of[i]]]) for i in ids]


def _rendered(
    pictures: Pictures, ids: Sequence[str] | set[str], specs: dict[str, ResizeSpec | None]
) -> dict[str, list[Pixels]]:
    """Return images that were read before, in each rendering, in the order of ``ids``."""
    found: dict[str, list[Pixels]] = {}
    for image_id, read in pictures.read(ids):
        image = readable(read)  # it could be read a moment ago
        found[image_id] = [np.asarray(image) if s is None else apply(s, image) for s in specs.values()]
    return {image_id: found[image_id] for image_id in ids}


def _left_out_table(entries: Sequence[LeftOut]) -> pa.Table:
    return pa.Table.from_pylist([entry._asdict() for entry in entries], schema=LEFT_OUT_SCHEMA)
