"""Audit a set of pictures: what it reveals of its resizer, next to a reference and to `fix` of its originals.

>>> report = run_audit(open_pictures("LSUN_resize"), open_pictures("cifar100:test", roots))  # doctest: +SKIP
>>> report.audit.sentence  # doctest: +SKIP
'suspicious (interval above 0.70, from 0.846); originals would settle it'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fix_resize.auditing.aliasing import Original, Pair
from fix_resize.auditing.measuring import LeftOut, draw, left_out, measure, size_text
from fix_resize.auditing.sets import Pictures, readable
from fix_resize.auditing.smoothness import BLOCK, smoothness, total_variation
from fix_resize.auditing.verdict import Audit, PairedAudit, audit
from fix_resize.spec import Resize, ResizeSpec, Size, get_spec
from fix_resize.windows import Floats
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress, Silent

SCHEMA: Final = schema_of(
    "image_id variation:float64 smoothness:float64 whiteness:float64 original fix_variation:float64 "
    "difference:float64 aliasing:float64 unexplained:float64 finding"
)
"""For each picture its scores (`smoothness`), and for each pair the original and how it differs (`Pair`)."""

LEFT_OUT_SCHEMA: Final = schema_of("image_id reason detail")


@dataclass(frozen=True)
class Report:
    """What an audit found.

    Attributes
    ----------
    label, reference : the names that the two sets were given by.
    size : height and width of the pictures compared.
    audit : figures and verdict.
    scores : a row for each picture (`SCHEMA`), sorted by image_id.
    reference_variation : (m,) total variation of the reference's pictures.
    left_out : pictures of the set that were not scored, and originals that could not be read.
    reference_left_out : the reference's.
    drawn_from : pictures in the set, of which ``limit`` may have scored fewer.
    others : files below the set's folder without the name of a picture.
    files : the files written for it.
    """

    label: str
    reference: str
    size: Size
    audit: Audit
    scores: pa.Table
    reference_variation: Floats
    left_out: tuple[LeftOut, ...]
    reference_left_out: tuple[LeftOut, ...]
    drawn_from: int
    others: int
    files: tuple[Path, ...] = ()

    @property
    def pairs(self) -> int:
        """How many pictures were compared with the `fix` rendering of their own originals."""
        return len(self.scores) - int(self.scores["finding"].null_count)

    def most_suspicious(self, number: int) -> list[str]:
        """Return the ids of the pictures farthest from their own `fix` rendering, else from the reference.

        Where any picture has an original, only such pictures are listed; ties by id.
        """
        column = "difference" if self.pairs else "smoothness"
        rows = self.scores.select(["image_id", column]).to_pylist()
        far = {row["image_id"]: row[column] for row in rows if row[column] is not None}
        return sorted(far, key=lambda image_id: (-far[image_id], image_id))[:number]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints; the rows of `scores` are in the file of that name."""
        return {
            "ok": self.audit.passed,
            "set": self.label,
            "reference": self.reference,
            "size": list(self.size),
            "images": len(self.scores),
            "of": self.drawn_from,
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
            "other_files": self.others,
        }


def run_audit(
    pictures: Pictures,
    reference: Pictures,
    originals: Pictures | None = None,
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Report:
    """Compare a set with a reference, and with the `fix` rendering of its originals where they are given.

    Parameters
    ----------
    reference : pictures of one size; only the set's pictures of that size are compared.
    originals : named as the set's pictures are, up to the folders above (`match_names`).
    limit : pictures of the set to score, drawn by a hash of their ids; all by default.

    Raises
    ------
    SourceError : nothing to compare; no original has the name of a picture.
    DataError : the reference's pictures differ in size.
    """
    base = measure(reference, progress=progress)
    found = measure(pictures, ids=draw(pictures.ids, limit), size=base.size, progress=progress)
    verdict = audit(found.variation, found.whiteness, base.variation, base.whiteness)
    names: dict[str, str] = {}
    pairs: dict[str, tuple[Pair, float]] = {}
    unread: list[LeftOut] = []
    if originals is not None:
        names = match_names(found.ids, originals)
        with (progress or Silent()).task(f"reading {originals.label}", len(names)) as task:
            for image_id, outcome in compare_pairs(pictures, originals, names, fix_at(base.size)):
                task.advance()
                if isinstance(outcome, LeftOut):
                    unread.append(outcome)
                else:
                    pairs[image_id] = outcome
        if pairs:
            verdict = replace(verdict, paired=PairedAudit([pair for pair, _ in pairs.values()]))
    columns = {
        "image_id": found.ids,
        "variation": found.variation,
        "smoothness": smoothness(found.variation, base.variation),
        "whiteness": found.whiteness,
        "original": [names[i] if i in pairs else None for i in found.ids],
        "fix_variation": [pairs[i][1] if i in pairs else None for i in found.ids],
        **{
            name: [getattr(pairs[i][0], name) if i in pairs else None for i in found.ids]
            for name in Pair._fields
        },
    }
    return Report(
        label=pictures.label,
        reference=reference.label,
        size=base.size,
        audit=verdict,
        scores=pa.table(columns, schema=SCHEMA),
        reference_variation=base.variation,
        left_out=found.left_out + tuple(sorted(unread)),
        reference_left_out=base.left_out,
        drawn_from=len(pictures.ids),
        others=pictures.others,
    )


def compare_pairs(
    pictures: Pictures, originals: Pictures, names: dict[str, str], spec: ResizeSpec
) -> Iterator[tuple[str, tuple[Pair, float] | LeftOut]]:
    """Yield how each picture differs from ``spec`` of its original, and total variation of the latter.

    Parameters
    ----------
    names : the original of each picture. Sets are read in blocks, so that memory use stays constant.
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
                entry = left_out(image_id, error)
                yield image_id, entry._replace(detail=f"its original: {entry.detail}")
            else:
                yield image_id, (pair, float(total_variation([compared.fix])[0]))


def fix_at(size: Size) -> ResizeSpec:
    """Return the `fix` recipe with its last stage at the size of the pictures.

    Raises
    ------
    DataError : they are not square, or larger than its first stage.
    """
    fix = get_spec("fix")
    first = fix.stages[0].size
    if size[0] != size[1] or size[0] > first:
        raise DataError(
            f"the fix recipe makes squares of up to {first} pixels, not {size_text(size)}",
            where="--originals",
            hint="leave the originals out: without them there is only a warning",
        )
    return replace(fix, name=f"fix-{size[0]}", stages=(*fix.stages[:-1], Resize(size[0])))


def match_names(ids: Iterable[str], originals: Pictures) -> dict[str, str]:
    """Return the original of each picture that has one: equal names up to the folders above.

    Names are compared by their last path components, as many as match the most pictures. A shortened name
    that two pictures share matches neither.

    Raises
    ------
    SourceError : no original has the name of a picture.
    """
    names = sorted(ids)
    deepest = max(name.count("/") for name in (*names, *originals.ids)) + 1
    best: dict[str, str] = {}
    for length in range(deepest, 0, -1):
        ours, theirs = _tails(names, length), _tails(originals.ids, length)
        shared = sorted(ours.keys() & theirs.keys())
        if len(shared) > len(best):
            best = {ours[tail]: theirs[tail] for tail in shared}
    if best:
        return best
    raise SourceError(
        f"no original has the name of a picture: there {originals.ids[0]!r}, in the set {names[0]!r}",
        where=originals.label,
        hint="give them the names of the pictures, or leave --originals out: without them there is a warning",
    )


def _tails(names: Iterable[str], length: int) -> dict[str, str]:
    """Return the name by its last components, without those that two names have."""
    tails = [("/".join(name.split("/")[-length:]), name) for name in names]
    times = Counter(tail for tail, _ in tails)
    return {tail: name for tail, name in tails if times[tail] == 1}
