"""Audit a set of pictures: how smooth they are beside a reference, and beside `fix` of their originals.

>>> report = run_audit(open_pictures("LSUN_resize"), open_pictures("cifar100:test", roots))  # doctest: +SKIP
>>> report.audit.sentence  # doctest: +SKIP
'suspicious (interval above 0.70, from 0.846); originals would settle it'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from fix_resize.auditing.sets import Pictures
from fix_resize.auditing.smoothness import Audit, Scores, audit, smoothness
from fix_resize.auditing.variation import LeftOut, draw, measure, size_text
from fix_resize.spec import Resize, ResizeSpec, Size, get_spec
from wordnet_splits.errors import DataError, SourceError
from wordnet_splits.progress import Progress

AS_STORED: Final = "as stored"

SCHEMA: Final = pa.schema(
    [
        ("image_id", pa.string()),
        ("variation", pa.float64()),
        ("smoothness", pa.float64()),
        ("original", pa.string()),
        ("fix_variation", pa.float64()),
    ]
)
"""Of every picture: total variation, smoothness score, its original's id and variation of that in `fix`."""

LEFT_OUT_SCHEMA: Final = pa.schema(
    [("image_id", pa.string()), ("reason", pa.string()), ("detail", pa.string())]
)


@dataclass(frozen=True)
class Report:
    """What an audit found.

    Attributes
    ----------
    label, reference : the two sets, as they were asked for.
    size : height and width of the pictures compared.
    audit : AUROCs and verdict.
    scores : a row for each picture (`SCHEMA`), sorted by image_id.
    reference_variation : (m,) total variation of the reference's pictures.
    left_out : the set's pictures that were not scored, and the originals that could not be read.
    reference_left_out : the reference's.
    drawn_from : how many pictures the set has; more than those scored where ``limit`` was given.
    others : files below the set's folder that are no pictures by their names.
    """

    label: str
    reference: str
    size: Size
    audit: Audit
    scores: pa.Table
    reference_variation: Scores
    left_out: tuple[LeftOut, ...]
    reference_left_out: tuple[LeftOut, ...]
    drawn_from: int
    others: int

    @property
    def pairs(self) -> int:
        """How many pictures were compared with the `fix` rendering of their own originals."""
        return len(self.scores) - int(self.scores["fix_variation"].null_count)

    def most_suspicious(self, number: int) -> list[str]:
        """Return the ids of the pictures farthest from their own `fix` rendering, else from the reference.

        Where any picture has an original, only such pictures are listed; ties by id.
        """
        rows = self.scores.to_pylist()
        if self.pairs:
            far = {r["image_id"]: abs(r["variation"] - r["fix_variation"]) for r in rows if r["original"]}
        else:
            far = {r["image_id"]: r["smoothness"] for r in rows}
        return sorted(far, key=lambda image_id: (-far[image_id], image_id))[:number]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``--json`` prints; the rows of `scores` are in the file of that name."""
        return {
            "ok": self.audit.clean,
            "set": self.label,
            "reference": self.reference,
            "size": list(self.size),
            "images": len(self.scores),
            "of": self.drawn_from,
            "reference_images": len(self.reference_variation),
            "signed": self.audit.signed._asdict(),
            "absolute": self.audit.unsigned._asdict(),
            "paired": None if self.audit.paired is None else self.audit.paired._asdict(),
            "points": self.audit.points,
            "pairs": self.pairs,
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
    limit : score so many of the set's pictures, drawn by a hash of their ids.

    Raises
    ------
    SourceError : nothing to compare; no original has the name of a picture.
    DataError : the reference's pictures differ in size.
    """
    base = measure(reference, {AS_STORED: None}, progress=progress)
    chosen = draw(pictures.ids, limit)
    found = measure(pictures, {AS_STORED: None}, ids=chosen, size=base.size, progress=progress)
    variation, against = found.variation[AS_STORED], base.variation[AS_STORED]
    own = _Originals({}, {}, ())
    if originals is not None:
        own = _render_originals(found.ids, originals, fix_at(base.size), progress)
    fixed = [own.variation.get(image_id) for image_id in found.ids]
    paired = np.array([value is not None for value in fixed])
    rendered = np.array([value for value in fixed if value is not None])
    columns = {
        "image_id": found.ids,
        "variation": variation,
        "smoothness": smoothness(variation, against),
        "original": [own.name.get(image_id) for image_id in found.ids],
        "fix_variation": fixed,
    }
    return Report(
        label=pictures.label,
        reference=reference.label,
        size=base.size,
        audit=audit(variation, against, rendered if len(rendered) else None, with_original=variation[paired]),
        scores=pa.table(columns, schema=SCHEMA),
        reference_variation=against,
        left_out=found.left_out + own.left_out,
        reference_left_out=base.left_out,
        drawn_from=len(pictures.ids),
        others=pictures.others,
    )


class _Originals(NamedTuple):
    """By the picture's id: its original's id, and the total variation of that one in `fix`."""

    name: dict[str, str]
    variation: dict[str, float]
    left_out: tuple[LeftOut, ...]


def _render_originals(
    ids: Iterable[str], originals: Pictures, spec: ResizeSpec, progress: Progress | None
) -> _Originals:
    names = match_names(ids, originals)
    found = measure(originals, {spec.name: spec}, ids=set(names.values()), progress=progress)
    known = dict(zip(found.ids, found.variation[spec.name].tolist(), strict=True))
    left_out = (entry._replace(detail=f"its original: {entry.detail}") for entry in found.left_out)
    read = {image_id: name for image_id, name in names.items() if name in known}
    return _Originals(read, {image_id: known[name] for image_id, name in read.items()}, tuple(left_out))


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

    Names are compared by their last path components, as many as match the most pictures; what two pictures
    are called in this way is nobody's.

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
