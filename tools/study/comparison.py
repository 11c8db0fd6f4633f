"""What each resizer does to each set of photographs, as a table and a plot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np

from fix_resize.auditing.aliasing import Original, Pair
from fix_resize.auditing.audit import fix_at
from fix_resize.auditing.measurements import SkippedPicture, draw, left_out, measure, nothing_readable
from fix_resize.auditing.pictures import PictureSet, readable
from fix_resize.auditing.smoothness import total_variation, whiteness
from fix_resize.auditing.verdict import SUSPICIOUS_ABOVE, WHITE_SHARE, Audit, PairedAudit, audit
from fix_resize.resize import apply
from fix_resize.spec import ResizeSpec, get_spec, spec_names
from fix_resize.windows import Floats
from wordnet_splits.base.digests import Pixels
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.tabular import markdown_table

ONE_SIZE: Final = "give a reference and specs of one size"


@dataclass(frozen=True)
class Cell:
    """One set under one spec.

    Attributes
    ----------
    audit : against the reference, and paired with the set's own `fix` rendering.
    paired : the latter.
    ids : (n,) the pictures.
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
        """What the verdict would be without originals."""
        return "suspicious" if self.audit.suspicious else "no warning"


@dataclass(frozen=True)
class Comparison:
    """Every set under every spec.

    Attributes
    ----------
    cells : by set, then spec, in the order given.
    reference : the name of the reference.
    reference_variation : (m,) of the reference.
    left_out : by set, the pictures that were not scored.
    """

    cells: tuple[Cell, ...]
    reference: str
    reference_variation: Floats
    left_out: dict[str, tuple[SkippedPicture, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "reference": self.reference,
            "reference_images": len(self.reference_variation),
            "suspicious_above": {"absolute": SUSPICIOUS_ABOVE, "white": WHITE_SHARE},
            "rows": [
                {
                    "set": cell.label,
                    "spec": cell.spec,
                    "study_only": cell.study_only,
                    "images": len(cell.variation),
                    "signed": cell.audit.signed._asdict(),
                    "absolute": cell.audit.absolute._asdict(),
                    "white": cell.audit.white._asdict(),
                    "paired": cell.paired.as_dict(),
                    "verdict": cell.audit.verdict,
                    "without_originals": cell.warning,
                }
                for cell in self.cells
            ],
            "left_out": {label: [e._asdict() for e in entries] for label, entries in self.left_out.items()},
        }

    def rows(self) -> list[tuple[str, ...]]:
        """Return the table's rows under `COLUMNS`, as text."""
        return [
            (
                f"{cell.label} ({len(cell.variation):,})",
                cell.spec,
                _figure(cell.audit.signed),
                _figure(cell.audit.absolute),
                f"{cell.audit.white.value:.0%}",
                f"{cell.paired.differing:.0%}",
                f"{cell.paired.shares['aliased']:.0%}",
                cell.audit.verdict,
                cell.warning,
            )
            for cell in self.cells
        ]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        return markdown_table(COLUMNS, self.rows(), right=FIGURES)


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
FIGURES: Final = COLUMNS[2:7]


def _figure(estimate: tuple[float, float, float]) -> str:
    value, lo, hi = (f"{number:.3f}".removeprefix("0") for number in estimate)
    return f"{value} [{lo}, {hi}]"


def compare_specs(
    sets: Sequence[tuple[str, PictureSet]],
    specs: Iterable[str] | None,
    reference: PictureSet,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Render each set by each spec, and audit it against the reference and its own `fix` rendering.

    Parameters
    ----------
    sets : name and pictures, at the size they were taken.
    specs : names of specs of the reference's size; None for all of them.
    limit : pictures to take of each set, drawn by a hash of their ids; all by default.

    Raises
    ------
    UnknownNameError : no such spec.
    DataError : a spec's size is not the reference's, or the reference's pictures differ in size.
    SplitsError : a spec needs a library that is not installed.
    """
    chosen = {name: get_spec(name) for name in dict.fromkeys(specs or spec_names())}
    base = measure(reference, progress=progress)
    if specs is None:
        chosen = {name: spec for name, spec in chosen.items() if base.size == (spec.side, spec.side)}
    for name, spec in chosen.items():
        if base.size != (spec.side, spec.side):
            raise DataError(
                f"spec {name} makes {spec.side} x {spec.side} pixels, and the reference has "
                f"{base.size[0]} x {base.size[1]}",
                where=reference.label,
                hint=ONE_SIZE,
            )
    if not chosen:
        raise DataError(
            f"no spec makes {base.size[0]} x {base.size[1]} pixels", where=reference.label, hint=ONE_SIZE
        )
    cells: list[Cell] = []
    left: dict[str, tuple[SkippedPicture, ...]] = {reference.label: base.left_out}
    for label, pictures in sets:
        rendered, left[label] = _render(pictures, draw(pictures.ids, limit), list(chosen.values()), progress)
        ids = sorted(rendered)
        for name, spec in chosen.items():
            marks = [rendered[image_id][name] for image_id in ids]
            variation, white = (np.array([mark[n] for mark in marks]) for n in (0, 1))
            paired = PairedAudit([mark.pair for mark in marks])
            result = replace(audit(variation, white, base.variation, base.whiteness), paired=paired)
            cells.append(Cell(label, name, spec.study_only, result, paired, tuple(ids), variation))
    return Comparison(tuple(cells), reference.label, base.variation, left)


class _Marks(NamedTuple):
    """The measurements of one rendering of a picture."""

    variation: float
    whiteness: float
    pair: Pair


def _render(
    pictures: PictureSet, ids: Sequence[str], specs: Sequence[ResizeSpec], progress: Progress | None
) -> tuple[dict[str, dict[str, _Marks]], tuple[SkippedPicture, ...]]:
    """Return the measurements of each picture by spec, and what could not be read."""
    marks: dict[str, dict[str, _Marks]] = {}
    unread: list[SkippedPicture] = []
    fix = fix_at((specs[0].side, specs[0].side))
    with (progress or Silent()).task(f"reading {pictures.label}", len(ids)) as task:
        for image_id, image in pictures.read(ids):
            task.advance()
            try:
                taken = readable(image)
                original = Original(taken, fix)
                marks[image_id] = {spec.name: _mark(apply(spec, taken), original) for spec in specs}
            except (SourceError, DataError) as error:
                unread.append(left_out(image_id, error))
    if not marks:
        raise nothing_readable(unread, pictures.label)
    return marks, tuple(sorted(unread))


def _mark(pixels: Pixels, original: Original) -> _Marks:
    block = pixels[None]
    return _Marks(float(total_variation(block)[0]), float(whiteness(block)[0]), original.compare(pixels))
