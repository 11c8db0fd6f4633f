"""What each resizer does to each set of photographs, as a table, histograms and a grid of images."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from fix_resize.auditing.aliasing import Original, Pair
from fix_resize.auditing.measurements import (
    SkippedImage,
    measure,
    nothing_readable,
    sample_ids,
    skipped_by,
)
from fix_resize.auditing.report_files import Histogram, render, save_grid, save_histograms
from fix_resize.auditing.set_audit import fix_at
from fix_resize.auditing.smoothness import Scores, score_images
from fix_resize.auditing.verdict import SUSPICIOUS_ABOVE, WHITE_SHARE, Audit, PairedAudit, audit_scores
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec, get_spec, spec_names
from fix_resize.windows import Floats
from wordnet_splits.base import files
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import markdown_table
from wordnet_splits.sources.image_set import ImageSet

SIZE_HINT: Final = "give a reference and specs of one size"
COLUMNS: Final = (
    "set (images)",
    "spec",
    "signed AUROC [95%]",
    "absolute AUROC [95%]",
    "white",
    "differ from fix",
    "aliased",
    "verdict",
    "without originals",
)
NUMBERS: Final = COLUMNS[2:7]
IMAGES_PER_SET: Final = 6
"""Images of each set in the grid."""


@dataclass(frozen=True)
class Cell:
    """One set under one spec.

    Attributes
    ----------
    audit : result against the reference, and against the set's own `fix` rendering.
    paired : the latter part of it.
    ids : ids of the n images.
    variation : (n,) total variation.
    """

    label: str
    spec: str
    study_only: bool
    audit: Audit
    paired: PairedAudit
    ids: tuple[str, ...]
    variation: Floats

    @property
    def warning(self) -> str:
        """The verdict if there were no originals."""
        return "suspicious" if self.audit.suspicious else "no warning"

    def as_dict(self) -> dict[str, Any]:
        """Return the cell for JSON."""
        return {
            "set": self.label,
            "spec": self.spec,
            "study_only": self.study_only,
            "images": len(self.variation),
            "signed": self.audit.signed._asdict(),
            "absolute": self.audit.absolute._asdict(),
            "white": self.audit.white._asdict(),
            "paired": self.paired.as_dict(),
            "verdict": self.audit.verdict,
            "without_originals": self.warning,
        }

    def texts(self) -> tuple[str, ...]:
        """Return the row of the table, under `COLUMNS`."""
        return (
            f"{self.label} ({len(self.variation):,})",
            self.spec,
            _interval_text(self.audit.signed),
            _interval_text(self.audit.absolute),
            f"{self.audit.white.value:.0%}",
            f"{self.paired.differing:.0%}",
            f"{self.paired.shares['aliased']:.0%}",
            self.audit.verdict,
            self.warning,
        )


@dataclass(frozen=True)
class Comparison:
    """Every set under every spec.

    Attributes
    ----------
    cells : by set, then spec, in the order of the arguments.
    reference : name of the reference.
    reference_variation : (m,) total variation of the reference.
    left_out : by set, the pictures that were not scored.
    """

    cells: tuple[Cell, ...]
    reference: str
    reference_variation: Floats
    left_out: dict[str, tuple[SkippedImage, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return the content of ``study.json``."""
        return {
            "reference": self.reference,
            "reference_images": len(self.reference_variation),
            "suspicious_above": {"absolute": SUSPICIOUS_ABOVE, "white": WHITE_SHARE},
            "rows": [cell.as_dict() for cell in self.cells],
            "left_out": {label: [s._asdict() for s in skipped] for label, skipped in self.left_out.items()},
        }

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return markdown_table(COLUMNS, [cell.texts() for cell in self.cells], right=NUMBERS)


def _interval_text(interval: tuple[float, float, float]) -> str:
    value, lo, hi = (f"{number:.3f}".removeprefix("0") for number in interval)
    return f"{value} [{lo}, {hi}]"


def compare_specs(
    sets: Sequence[tuple[str, ImageSet]],
    specs: Iterable[str] | None,
    reference: ImageSet,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Render each set by each spec, and audit it against the reference and its own `fix` rendering.

    Parameters
    ----------
    sets : name and pictures, at their original size.
    specs : names of specs of the reference's size; None for all of them.
    limit : number of pictures of each set, sampled by a hash of their ids; by default all.

    Raises
    ------
    UnknownNameError : no such spec.
    DataError : a spec's size is not the reference's, or the reference's pictures differ in size.
    SplitsError : a spec requires a library that is not installed.
    """
    by_name = {name: get_spec(name) for name in dict.fromkeys(specs or spec_names())}
    base = measure(reference, progress=progress)
    if specs is None:
        by_name = {name: spec for name, spec in by_name.items() if base.size == (spec.side, spec.side)}
    for name, spec in by_name.items():
        if base.size != (spec.side, spec.side):
            raise DataError(
                f"spec {name} makes {spec.side} x {spec.side} pixels, and the reference has "
                f"{base.size[0]} x {base.size[1]}",
                where=reference.name,
                hint=SIZE_HINT,
            )
    if not by_name:
        raise DataError(
            f"no spec makes {base.size[0]} x {base.size[1]} pixels", where=reference.name, hint=SIZE_HINT
        )
    cells: list[Cell] = []
    skipped: dict[str, tuple[SkippedImage, ...]] = {reference.name: base.skipped}
    for label, image_set in sets:
        ids = sample_ids(image_set.ids, limit)
        renderings, skipped[label] = _render(image_set, ids, list(by_name.values()), progress)
        ids = sorted(renderings)
        for name, spec in by_name.items():
            of_spec = [renderings[image_id][name] for image_id in ids]
            columns = zip(*(rendering.scores for rendering in of_spec), strict=True)
            scores = Scores(*map(np.concatenate, columns))
            paired = PairedAudit([rendering.pair for rendering in of_spec])
            result = replace(audit_scores(scores, base.scores), paired=paired)
            cells.append(Cell(label, name, spec.study_only, result, paired, tuple(ids), scores.variation))
    return Comparison(tuple(cells), reference.name, base.scores.variation, skipped)


class _Rendering(NamedTuple):
    """The scores of one rendering of a picture, and its comparison with `fix`."""

    scores: Scores
    pair: Pair


def _render(
    images: ImageSet, ids: Sequence[str], specs: Sequence[ResizeSpec], progress: Progress | None
) -> tuple[dict[str, dict[str, _Rendering]], tuple[SkippedImage, ...]]:
    """Return the renderings of each picture by spec, and the unreadable images."""
    renderings: dict[str, dict[str, _Rendering]] = {}
    unreadable: list[SkippedImage] = []
    fix = fix_at((specs[0].side, specs[0].side))
    with (progress or Silent()).task(f"reading {images.name}", len(ids)) as task:
        for image_id in images.in_order(ids):
            task.advance()
            try:
                image = images.image(image_id)
                original = Original(image, fix)
                renderings[image_id] = {spec.name: _score(apply(spec, image), original) for spec in specs}
            except (SourceError, DataError) as error:
                unreadable.append(skipped_by(error, image_id))
    if not renderings:
        raise nothing_readable(unreadable, images.name)
    return renderings, tuple(sorted(unreadable))


def _score(pixels: Pixels, original: Original) -> _Rendering:
    return _Rendering(score_images(pixels[None]), original.compare(pixels))


def write_comparison(comparison: Comparison, out: Path) -> list[Path]:
    """Write ``table.md``, ``study.json`` and ``smoothness.svg``, without any image; return their paths."""
    table, study_json, histogram = (out / name for name in ("table.md", "study.json", "smoothness.svg"))
    files.write_text(table, comparison.markdown())
    files.write_json(study_json, comparison.as_dict())
    histograms = [
        Histogram(
            title=f"{cell.label} ({len(cell.variation):,}): {cell.spec}",
            label=f"{cell.audit.verdict}: AUROC {cell.audit.signed.value:.3f}",
            variation=cell.variation,
            alarmed=not cell.audit.passed,
        )
        for spec in dict.fromkeys(cell.spec for cell in comparison.cells)
        for cell in comparison.cells
        if cell.spec == spec
    ]
    sets = {cell.label for cell in comparison.cells}
    save_histograms(
        histograms, comparison.reference, comparison.reference_variation, histogram, columns=len(sets)
    )
    return [table, study_json, histogram]


def write_grid(comparison: Comparison, sets: Sequence[tuple[str, ImageSet]], path: Path) -> Path:
    """Write the images that a broken spec changed most, under every spec."""
    specs: dict[str, ResizeSpec | None] = {cell.spec: get_spec(cell.spec) for cell in comparison.cells}
    rows: list[tuple[str, Sequence[Pixels]]] = []
    for label, image_set in sets:
        cells = [cell for cell in comparison.cells if cell.label == label]
        worst = max(cells, key=lambda cell: (cell.study_only, cell.paired.shares["aliased"]))
        differences = np.array([pair.difference for pair in worst.paired.pairs])
        order = np.lexsort((np.arange(len(worst.ids)), -differences))[:IMAGES_PER_SET]
        images = render(image_set, [worst.ids[i] for i in order], specs)
        rows += [(f"{label}: {image_id}", renderings) for image_id, renderings in images.items()]
    save_grid(rows, list(specs), path, wrap=1)
    return path
