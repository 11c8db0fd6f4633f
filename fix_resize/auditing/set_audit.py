"""Audit a set of images for traces of its resizer, against a reference and `fix` of its originals.

>>> report = audit("LSUN_resize", reference="cifar100:test", roots=roots)  # doctest: +SKIP
>>> report.audit.sentence  # doctest: +SKIP
'suspicious (interval above 0.70, from 0.846); originals would settle it'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.aliasing import Original, Pair
from fix_resize.auditing.measurements import SkippedImage, format_size, measure, sample_ids, skipped_by
from fix_resize.auditing.smoothness import smoothness, total_variation
from fix_resize.auditing.verdict import Audit, PairedAudit, audit_scores
from fix_resize.spec import Resize, ResizeSpec, Size, get_spec
from fix_resize.windows import Floats
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.datasets.sources.image_set import ImageSet

SCHEMA: Final = schema_of(
    "image_id variation:float64 smoothness:float64 whiteness:float64 original fix_variation:float64 "
    "difference:float64 aliasing:float64 unexplained:float64 finding"
)
"""Scores of each image (`smoothness`), the name of its original, and their differences (`Pair`), if any."""

PURPOSE: Final = "histograms and grids of images"
"""Purpose of matplotlib, for the error without it."""

LEFT_OUT_SCHEMA: Final = schema_of("image_id reason detail")


@dataclass(frozen=True)
class Report:
    """The result of an audit, with the scores of each image.

    Attributes
    ----------
    label, reference : names of the two sets.
    size : height and width of the images.
    audit : numbers and verdict.
    scores : a row per image (`SCHEMA`), sorted by image_id.
    reference_variation : (m,) total variation of the images in the reference.
    left_out : images of the set that were not scored, and originals that could not be read.
    reference_left_out : images of the reference that were not scored.
    total : number of images in the set, before ``limit``.
    other_files : number of files in the set's folder that are not images by name.
    files : files written by the audit.
    """

    label: str
    reference: str
    size: Size
    audit: Audit
    scores: pa.Table
    reference_variation: Floats
    left_out: tuple[SkippedImage, ...]
    reference_left_out: tuple[SkippedImage, ...]
    total: int
    other_files: int
    files: tuple[Path, ...] = ()

    @property
    def pairs(self) -> int:
        """Number of images that were compared with the `fix` rendering of their originals."""
        return len(self.scores) - int(self.scores["finding"].null_count)

    def most_suspicious(self, number: int) -> list[str]:
        """Return the ids of the images farthest from `fix` of their originals, else from the reference.

        If any image has an original, images without originals are ignored; ties by id.
        """
        column = "difference" if self.pairs else "smoothness"
        rows = self.scores.select(["image_id", column]).to_pylist()
        distances = {row["image_id"]: row[column] for row in rows if row[column] is not None}
        return sorted(distances, key=lambda image_id: (-distances[image_id], image_id))[:number]

    def as_dict(self) -> dict[str, Any]:
        """Return the report for JSON, without the rows of `scores`."""
        return {
            "ok": self.audit.passed,
            "set": self.label,
            "reference": self.reference,
            "size": list(self.size),
            "images": len(self.scores),
            "of": self.total,
            "reference_images": len(self.reference_variation),
            "signed": self.audit.signed._asdict(),
            "absolute": self.audit.absolute._asdict(),
            "white": self.audit.white._asdict(),
            "paired": None if self.audit.paired is None else self.audit.paired.as_dict(),
            "verdict": self.audit.verdict,
            "sentence": self.audit.sentence,
            "most_suspicious": self.most_suspicious(20),
            "left_out": [entry._asdict() for entry in self.left_out],
            "reference_left_out": [entry._asdict() for entry in self.reference_left_out],
            "other_files": self.other_files,
        }


def audit_images(
    images: ImageSet,
    reference: ImageSet,
    originals: ImageSet | None = None,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare a set with a reference and, if originals are given, with their `fix` rendering.

    Parameters
    ----------
    reference : images of one size; images of the set with another size are skipped.
    originals : images with the same names as in the set, up to parent folders (`match_names`).
    limit : number of images to score, sampled by a hash of their ids; by default all.

    Raises
    ------
    SourceError : no image can be compared, or no original has the name of an image.
    DataError : the images of the reference differ in size.
    """
    base = measure(reference, progress=progress)
    measured = measure(images, ids=sample_ids(images.ids, limit), size=base.size, progress=progress)
    result = audit_scores(measured.scores, base.scores)
    names: dict[str, str] = {}
    pairs: dict[str, tuple[Pair, float]] = {}
    unreadable: list[SkippedImage] = []
    if originals is not None:
        names = match_names(measured.ids, originals)
        spec, image_of = fix_at(base.size), {name: image_id for image_id, name in names.items()}
        with (progress or Silent()).task(f"reading {originals.name}", len(names)) as task:
            for name in originals.in_order(image_of):
                image_id = image_of[name]
                task.advance()
                try:
                    pixels = np.asarray(images.image(image_id))
                    original = Original(originals.image(name), spec)
                    variation = float(total_variation(original.fix[None])[0])
                    pairs[image_id] = original.compare(pixels), variation
                except (SourceError, DataError) as error:
                    entry = skipped_by(error, image_id)
                    unreadable.append(entry._replace(detail=f"its original: {entry.detail}"))
        if pairs:
            result = replace(result, paired=PairedAudit([pairs[i][0] for i in sorted(pairs)]))
    columns = {
        "image_id": measured.ids,
        **measured.scores._asdict(),
        "smoothness": smoothness(measured.scores.variation, base.scores.variation),
        "original": [names[i] if i in pairs else None for i in measured.ids],
        "fix_variation": [pairs[i][1] if i in pairs else None for i in measured.ids],
        **{
            name: [getattr(pairs[i][0], name) if i in pairs else None for i in measured.ids]
            for name in Pair._fields
        },
    }
    return Report(
        label=images.name,
        reference=reference.name,
        size=base.size,
        audit=result,
        scores=pa.table(columns, schema=SCHEMA),
        reference_variation=base.scores.variation,
        left_out=measured.skipped + tuple(sorted(unreadable)),
        reference_left_out=base.skipped,
        total=len(images),
        other_files=images.other_files,
    )


def fix_at(size: Size) -> ResizeSpec:
    """Return the `fix` recipe with its last stage at the size of the images.

    Raises
    ------
    DataError : the size is not square, or larger than the first stage.
    """
    fix = get_spec("fix")
    max_side = fix.stages[0].size
    if size[0] != size[1] or size[0] > max_side:
        raise DataError(
            f"the fix recipe gives squares of up to {max_side} pixels, not {format_size(size)}",
            where="--originals",
            hint="omit the originals: the audit then only warns",
        )
    return replace(fix, name=f"fix-{size[0]}", stages=(*fix.stages[:-1], Resize(size[0])))


def match_names(ids: Iterable[str], originals: ImageSet) -> dict[str, str]:
    """Return the original of each image that has the same name as an original, up to parent folders.

    Names are compared by as many of their last path components as match the most images. Images that have
    the same last components match no original.

    Raises
    ------
    SourceError : no original has the name of an image.
    """
    names = sorted(ids)
    max_length = max(name.count("/") for name in (*names, *originals.ids)) + 1
    best: dict[str, str] = {}
    for length in range(max_length, 0, -1):
        name_of, original_of = _by_tail(names, length), _by_tail(originals.ids, length)
        shared = sorted(name_of.keys() & original_of.keys())
        if len(shared) > len(best):
            best = {name_of[tail]: original_of[tail] for tail in shared}
    if best:
        return best
    raise SourceError(
        f"no original has the name of an image: there {originals.ids[0]!r}, in the set {names[0]!r}",
        where=originals.name,
        hint="name them as the images, or omit --originals: the audit then only warns",
    )


def _by_tail(names: Iterable[str], length: int) -> dict[str, str]:
    """Return the names by their last ``length`` components, if these are unique."""
    tails = [("/".join(name.split("/")[-length:]), name) for name in names]
    counts = Counter(tail for tail, _ in tails)
    return {tail: name for tail, name in tails if counts[tail] == 1}
