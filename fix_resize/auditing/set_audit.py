"""Audit a set of images for traces of its resizer, against a reference and `fix` of its originals.

The verdict follows from the pairs of images and originals; without originals the set
alone can cause a warning.

>>> report = audit("LSUN_resize", reference="cifar100:test", roots=roots)  # doctest: +SKIP
>>> report.audit.sentence  # doctest: +SKIP
'suspicious (interval above 0.70, from 0.846); originals would settle it'
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from fix_resize.auditing.aliasing import FINDINGS, SAME_WITHIN, Original, Pair, PairFinding
from fix_resize.auditing.measurements import (
    Scores,
    SkippedImage,
    format_size,
    measure,
    sample_ids,
    skipped_by,
    smoothness,
    total_variation,
)
from fix_resize.spec import Resize, ResizeSpec, Size, get_spec
from fix_resize.windows import Floats
from wordnet_splits.base.errors import DataError, SourceError
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.datasets.sources.image_set import ImageSet
from wordnet_splits.metrics import Interval, ScoreSet, bootstrap

SetVerdict = Literal["clean", "filtered", "aliased", "altered", "suspicious", "no warning"]

DIFFERING: Final = 0.05
"""Largest share of images in a clean set that are not clean."""

ALIASED: Final = 0.10
"""Largest share of aliased images in a set that is not aliased."""

SUSPICIOUS_ABOVE: Final = 0.70
"""Lower bound of the absolute AUROC's interval above which a set is suspicious."""

WHITE_ABOVE: Final = 0.99
"""Share of the reference that is less white than a white image."""

WHITE_SHARE: Final = 0.09
"""Lower bound of the white share's interval above which a set is suspicious."""

_DESCRIPTIONS: Final[dict[PairFinding, str]] = {
    "clean": f"within {SAME_WITHIN} grey levels of fix",
    "filtered": "another low-pass filter",
    "aliased": "decimated without a filter",
    "altered": "not fix, and not a filter applied to it",
}

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
    """Compare a set with a reference and, if originals are given, with their `fix` rendering."""
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
    """Return the `fix` recipe with its last stage at the size of the images."""
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


@dataclass(frozen=True)
class PairedAudit:
    """At least one image of a set, each compared with the `fix` rendering of its original."""

    pairs: Sequence[Pair]

    @property
    def shares(self) -> dict[PairFinding, float]:
        """Share of the pairs with each finding."""
        counts = Counter(pair.finding for pair in self.pairs)
        return {finding: counts[finding] / len(self.pairs) for finding in FINDINGS}

    @property
    def verdict(self) -> PairFinding:
        """``clean`` if at most 5% of pairs differ, ``aliased`` above 10%, else the most common finding."""
        shares = self.shares
        if self.differing <= DIFFERING:
            return "clean"
        if shares["aliased"] > ALIASED:
            return "aliased"
        return max(FINDINGS[1:], key=shares.__getitem__)

    @property
    def differing(self) -> float:
        """Share of the pairs that are not clean."""
        return sum(pair.finding != "clean" for pair in self.pairs) / len(self.pairs)

    def as_dict(self) -> dict[str, Any]:
        """Return counts, shares and quantiles, for JSON."""
        return {
            "pairs": len(self.pairs),
            "differing": self.differing,
            "shares": self.shares,
            "difference": _quantiles([pair.difference for pair in self.pairs]),
            "aliasing": _quantiles([pair.aliasing for pair in self.pairs]),
        }

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        shares = [
            f"{share:.0%} {finding} ({_DESCRIPTIONS[finding]})"
            for finding, share in self.shares.items()
            if share
        ]
        return f"{self.verdict}: of {len(self.pairs):,} pairs {', '.join(shares)}"


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"q05": low, "median": median, "q95": high}


@dataclass(frozen=True)
class Audit:
    """The result of an audit: how a set was resized.

    Attributes
    ----------
    signed : AUROC of total variation, the set against the reference; above one half the set is rougher.
    absolute : AUROC of the smoothness score, the set against the reference.
    white : share of the set that is whiter than 99% of the reference, with its 95% interval.
    paired : result of the comparison with originals; None without originals.
    """

    signed: Interval
    absolute: Interval
    white: Interval
    paired: PairedAudit | None = None

    @property
    def suspicious(self) -> bool:
        """Whether the set itself causes a warning: too far from the reference, or too many white images."""
        return self.absolute.lo > SUSPICIOUS_ABOVE or self.white.lo > WHITE_SHARE

    @property
    def verdict(self) -> SetVerdict:
        """The verdict of the pairs; without originals ``suspicious`` or ``no warning``."""
        if self.paired is not None:
            return self.paired.verdict
        return "suspicious" if self.suspicious else "no warning"

    @property
    def passed(self) -> bool:
        """Whether the verdict is ``clean`` or ``no warning``."""
        return self.verdict in ("clean", "no warning")

    @property
    def sentence(self) -> str:
        """The verdict in words."""
        if self.paired is not None:
            return self.paired.sentence
        if not self.suspicious:
            return "no warning; without originals this proves nothing"
        reasons = []
        if self.absolute.lo > SUSPICIOUS_ABOVE:
            reasons.append(f"interval above {SUSPICIOUS_ABOVE:.2f}, from {self.absolute.lo:.3f}")
        if self.white.lo > WHITE_SHARE:
            reasons.append(f"{self.white.value:.0%} of the images as white as 1% of the reference")
        return f"suspicious ({'; '.join(reasons)}); originals would settle it"


def audit_scores(scores: Scores, reference: Scores) -> Audit:
    """Compare the scores of a set with the scores of a reference."""
    smooth, smooth_reference = (smoothness(s.variation, reference.variation) for s in (scores, reference))
    return Audit(
        signed=_auroc(scores.variation, reference.variation),
        absolute=_auroc(smooth, smooth_reference),
        white=white_share(scores.whiteness, reference.whiteness),
    )


def white_share(whiteness: Floats, reference: Floats) -> Interval:
    """Return the share of a set that is whiter than 99% of the reference, with Wilson's 95% interval."""
    z = 1.959963984540054
    n = len(whiteness)
    share = float((whiteness > np.quantile(reference, WHITE_ABOVE)).mean())
    middle, spread = share + z * z / (2 * n), z * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    return Interval(share, max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))


def _auroc(scores: Floats, reference: Floats) -> Interval:
    """Return the probability that a score of the set exceeds a score of the reference."""
    # ranks among the set's scores merge scores of the reference: the same AUROC in every replicate, faster
    distinct = np.unique(scores)
    ranks, reference_ranks = (
        np.searchsorted(distinct, values, "left") + np.searchsorted(distinct, values, "right")
        for values in (scores, reference)
    )
    sets = [ScoreSet("set", "id", ranks), ScoreSet("reference", "external", reference_ranks)]
    return bootstrap(sets, ["auroc"])["auroc"]
