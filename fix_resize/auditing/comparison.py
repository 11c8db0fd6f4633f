"""What each resizer does to each set: sets of photographs x specs, as a table and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from fix_resize.auditing.audit import AS_STORED, fix_at
from fix_resize.auditing.sets import Pictures
from fix_resize.auditing.smoothness import SUSPICIOUS_ABOVE, Audit, Scores, audit
from fix_resize.auditing.variation import LeftOut, draw, measure
from fix_resize.spec import ResizeSpec, get_spec, spec_names
from wordnet_splits.errors import DataError
from wordnet_splits.progress import Progress

ONE_SIZE: Final = "give a reference and specs of one size"


@dataclass(frozen=True)
class Cell:
    """One set under one spec.

    Attributes
    ----------
    audit : against the reference, and paired with the set's own `fix` rendering.
    ids : (n,) the pictures.
    variation : (n,) total variation.
    own : (n,) that of `fix` of the same pictures.
    """

    label: str
    spec: str
    study_only: bool
    audit: Audit
    ids: tuple[str, ...]
    variation: Scores
    own: Scores

    @property
    def warning(self) -> str:
        """The verdict as it would be without originals."""
        return "suspicious" if self.audit.suspicious else "no warning"


@dataclass(frozen=True)
class Comparison:
    """Every set under every spec.

    Attributes
    ----------
    cells : by set, then spec, in the order asked for.
    reference : how the reference was asked for.
    reference_variation : (m,) of the reference.
    left_out : by set, the pictures that were not scored.
    """

    cells: tuple[Cell, ...]
    reference: str
    reference_variation: Scores
    left_out: dict[str, tuple[LeftOut, ...]]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints."""
        return {
            "reference": self.reference,
            "reference_images": len(self.reference_variation),
            "suspicious_above": SUSPICIOUS_ABOVE,
            "rows": [
                {
                    "set": cell.label,
                    "spec": cell.spec,
                    "study_only": cell.study_only,
                    "images": len(cell.variation),
                    "signed": cell.audit.signed._asdict(),
                    "absolute": cell.audit.unsigned._asdict(),
                    "paired": None if cell.audit.paired is None else cell.audit.paired._asdict(),
                    "points": cell.audit.points,
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
                _figure(cell.audit.unsigned),
                f"{cell.audit.points:+.1f}",
                cell.audit.verdict,
                cell.warning,
            )
            for cell in self.cells
        ]

    def markdown(self) -> str:
        """Return the table in Markdown."""
        lines = [COLUMNS, [":--" if name not in FIGURES else "--:" for name in COLUMNS], *self.rows()]
        return "".join(f"| {' | '.join(line)} |\n" for line in lines)


COLUMNS: Final = (
    "set (images)",
    "spec",
    "signed AUROC [95%]",
    "absolute AUROC [95%]",
    "points from own fix",
    "verdict",
    "without originals",
)
FIGURES: Final = COLUMNS[2:5]


def _figure(estimate: tuple[float, float, float]) -> str:
    value, lo, hi = (f"{number:.3f}".removeprefix("0") for number in estimate)
    return f"{value} [{lo}, {hi}]"


def compare_specs(
    sets: Sequence[tuple[str, Pictures]],
    specs: Iterable[str] | None,
    reference: Pictures,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Render each set by each spec, and audit it against the reference and its own `fix` rendering.

    Parameters
    ----------
    sets : name and pictures, at the size they were taken.
    specs : names of specs of the reference's size; None for all of them.
    limit : so many pictures of each set, drawn by a hash of their ids.

    Raises
    ------
    UnknownNameError : no such spec.
    DataError : a spec's size is not the reference's, or the reference's pictures differ in size.
    SplitsError : a spec needs a library that is not installed.
    """
    chosen = {name: get_spec(name) for name in dict.fromkeys(specs or spec_names())}
    base = measure(reference, {AS_STORED: None}, progress=progress)
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
    against = base.variation[AS_STORED]
    cells: list[Cell] = []
    left_out: dict[str, tuple[LeftOut, ...]] = {reference.label: base.left_out}
    fix = fix_at(base.size)
    renderings: dict[str, ResizeSpec | None] = {spec.id: spec for spec in (fix, *chosen.values())}
    for label, pictures in sets:
        found = measure(pictures, renderings, ids=draw(pictures.ids, limit), progress=progress)
        own = found.variation[fix.id]
        left_out[label] = found.left_out
        for name, spec in chosen.items():
            variation = found.variation[spec.id]
            result = audit(variation, against, own)
            cells.append(Cell(label, name, spec.study_only, result, found.ids, variation, own))
    return Comparison(tuple(cells), reference.label, against, left_out)
