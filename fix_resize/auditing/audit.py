"""Audit a set of pictures for traces of its resizer, against a reference and `fix` of its originals.

>>> report = audit("LSUN_resize", reference="cifar100:test", roots=roots)  # doctest: +SKIP
>>> report.audit.sentence  # doctest: +SKIP
'suspicious (interval above 0.70, from 0.846); originals would settle it'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.aliasing import Original, Pair
from fix_resize.auditing.measurements import SkippedPicture, format_size, measure, sample_ids, skipped_by
from fix_resize.auditing.pictures import PictureSet, open_pictures, readable
from fix_resize.auditing.plots import require_plots
from fix_resize.auditing.smoothness import BLOCK, smoothness, total_variation
from fix_resize.auditing.verdict import Audit, PairedAudit, audit_scores
from fix_resize.spec import Resize, ResizeSpec, Size, get_spec
from fix_resize.windows import Floats
from wordnet_splits.base.errors import DataError, OutputError, SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.sources.roots import Roots

SCHEMA: Final = schema_of(
    "image_id variation:float64 smoothness:float64 whiteness:float64 original fix_variation:float64 "
    "difference:float64 aliasing:float64 unexplained:float64 finding"
)
"""The scores of each picture (`smoothness`), and its original and their differences (`Pair`), if any."""

LEFT_OUT_SCHEMA: Final = schema_of("image_id reason detail")


@dataclass(frozen=True)
class Report:
    """The result of an audit, with the scores of each picture.

    Attributes
    ----------
    label, reference : names of the two sets.
    size : height and width of the pictures.
    audit : numbers and verdict.
    scores : a row per picture (`SCHEMA`), sorted by image_id.
    reference_variation : (m,) total variation of the reference's pictures.
    left_out : pictures of the set that were not scored, and originals that could not be read.
    reference_left_out : pictures of the reference that were not scored.
    total : number of pictures in the set, before ``limit``.
    other_files : number of files in the set's folder that are not images by name.
    files : files written by the audit.
    """

    label: str
    reference: str
    size: Size
    audit: Audit
    scores: pa.Table
    reference_variation: Floats
    left_out: tuple[SkippedPicture, ...]
    reference_left_out: tuple[SkippedPicture, ...]
    total: int
    other_files: int
    files: tuple[Path, ...] = ()

    @property
    def pairs(self) -> int:
        """Number of pictures that were compared with the `fix` rendering of their originals."""
        return len(self.scores) - int(self.scores["finding"].null_count)

    def most_suspicious(self, number: int) -> list[str]:
        """Return the ids of the pictures farthest from `fix` of their originals, else from the reference.

        If any picture has an original, pictures without originals are ignored; ties by id.
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


def audit(
    pictures: Path | str,
    *,
    reference: Path | str = "cifar100:test",
    originals: Path | str | None = None,
    roots: Roots = MappingProxyType({}),
    limit: int | None = None,
    out: Path | str | None = None,
    progress: Progress | None = None,
) -> Report:
    """Audit a set of pictures for traces of its resizer.

    Parameters
    ----------
    pictures, reference : a folder, ``BENCHMARK:GROUP[:SPLIT]``, ``DIR:GROUP[:SPLIT]`` or ``SOURCE:SPLIT``.
    originals : the pictures before resizing, under the same names.
    roots : folder of each source.
    limit : number of pictures to score, sampled by a hash of their ids; by default all.
    out : folder for scores, histogram and images; requires matplotlib.

    Raises
    ------
    OutputError : ``out`` lies inside an audited set, or cannot be written.
    SplitsError : a set does not exist, cannot be read, or has no picture to compare.
    """
    folders = {name: Path(folder) for name, folder in roots.items()}
    if out is not None:
        check_out(Path(out), [str(name) for name in (pictures, reference, originals) if name is not None])
    picture_set = open_pictures(str(pictures), folders)
    reference_set = open_pictures(str(reference), folders)
    original_set = None if originals is None else open_pictures(str(originals), folders, original=True)
    report = audit_pictures(picture_set, reference_set, original_set, limit=limit, progress=progress)
    if out is None:
        return report
    from fix_resize.auditing.output import write_report

    return replace(report, files=tuple(write_report(report, picture_set, original_set, Path(out))))


def check_out(out: Path, sets: Iterable[str]) -> None:
    """Raise OutputError if ``out`` lies inside a set; MissingPackageError without matplotlib."""
    require_plots()
    for folder in map(Path, sets):
        if folder.is_dir() and out.resolve().is_relative_to(folder.resolve()):
            raise OutputError("lies inside an audited set", where=str(out), hint="give a folder outside it")


def audit_pictures(
    pictures: PictureSet,
    reference: PictureSet,
    originals: PictureSet | None = None,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare a set with a reference, and with the `fix` rendering of its originals, if any.

    Parameters
    ----------
    reference : pictures of one size; pictures of the set with another size are skipped.
    originals : pictures with the names of the set's pictures, up to parent folders (`match_names`).
    limit : number of pictures to score, sampled by a hash of their ids; by default all.

    Raises
    ------
    SourceError : no picture can be compared, or no original has the name of a picture.
    DataError : the reference's pictures differ in size.
    """
    base = measure(reference, progress=progress)
    measured = measure(pictures, ids=sample_ids(pictures.ids, limit), size=base.size, progress=progress)
    result = audit_scores(measured.scores, base.scores)
    names: dict[str, str] = {}
    pairs: dict[str, tuple[Pair, float]] = {}
    unreadable: list[SkippedPicture] = []
    if originals is not None:
        names = match_names(measured.ids, originals)
        with (progress or Silent()).task(f"reading {originals.label}", len(names)) as task:
            for image_id, comparison in compare_pairs(pictures, originals, names, fix_at(base.size)):
                task.advance()
                if isinstance(comparison, SkippedPicture):
                    unreadable.append(comparison)
                else:
                    pairs[image_id] = comparison
        if pairs:
            result = replace(result, paired=PairedAudit([pair for pair, _ in pairs.values()]))
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
        label=pictures.label,
        reference=reference.label,
        size=base.size,
        audit=result,
        scores=pa.table(columns, schema=SCHEMA),
        reference_variation=base.scores.variation,
        left_out=measured.skipped + tuple(sorted(unreadable)),
        reference_left_out=base.skipped,
        total=len(pictures.ids),
        other_files=pictures.other_files,
    )


def compare_pairs(
    pictures: PictureSet, originals: PictureSet, names: dict[str, str], spec: ResizeSpec
) -> Iterator[tuple[str, tuple[Pair, float] | SkippedPicture]]:
    """Yield the comparison of each picture with ``spec`` of its original, and total variation of the latter.

    Sets are read in blocks, which bounds memory.

    Parameters
    ----------
    names : the original of each picture.
    """
    ids = sorted(names)
    for start in range(0, len(ids), BLOCK):
        block = dict(pictures.read(ids[start : start + BLOCK]))
        picture_of = {names[image_id]: image_id for image_id in block}
        for name, original in originals.read(picture_of):
            image_id = picture_of[name]
            try:
                picture = readable(block[image_id])
                compared = Original(readable(original), spec)
                pair = compared.compare(np.asarray(picture))
            except (SourceError, DataError) as error:
                entry = skipped_by(error, image_id)
                yield image_id, entry._replace(detail=f"its original: {entry.detail}")
            else:
                yield image_id, (pair, float(total_variation([compared.fix])[0]))


def fix_at(size: Size) -> ResizeSpec:
    """Return the `fix` recipe with its last stage at the size of the pictures.

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


def match_names(ids: Iterable[str], originals: PictureSet) -> dict[str, str]:
    """Return the original of each picture that has one: equal names up to parent folders.

    Names are compared by their last path components; their number is the one that matches the most pictures.
    If two pictures have the same last components, neither matches.

    Raises
    ------
    SourceError : no original has the name of a picture.
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
        f"no original has the name of a picture: there {originals.ids[0]!r}, in the set {names[0]!r}",
        where=originals.label,
        hint="name them as the pictures, or omit --originals: the audit then only warns",
    )


def _by_tail(names: Iterable[str], length: int) -> dict[str, str]:
    """Return the names by their last ``length`` components, without those that two names share."""
    tails = [("/".join(name.split("/")[-length:]), name) for name in names]
    counts = Counter(tail for tail, _ in tails)
    return {tail: name for tail, name in tails if counts[tail] == 1}
