"""Fit the thresholds of the audit on one half of each set, and show its verdicts on both.

The half of a picture is the first bit of BLAKE2b of its name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import NamedTuple

import numpy as np
from PIL import Image

from fix_resize.auditing.aliasing import ALIASED_FROM, Original, Pair
from fix_resize.auditing.measurements import Measurements, measure
from fix_resize.auditing.smoothness import Scores, score_images
from fix_resize.auditing.verdict import ALIASED, WHITE_SHARE, Audit, PairedAudit, audit_scores, white_share
from fix_resize.decode import decode
from fix_resize.spec import get_spec
from tools.study.treatments import MIXTURES, PART_NEAREST, TREATMENTS, Photo
from wordnet_splits.image_sets import open_images

SETS = {"photographs": "imagenet/train", "textures": "dtd/images", "food": "food-101/images"}
FIRST, SECOND = HALVES = ("first half", "second half")
COLUMNS = (
    "set",
    "made by",
    "expected",
    *(f"{half}: {f}" for half in HALVES for f in ("verdict", "aliased", "white")),
)
PAGE = """# What the audit tells apart

By `python -m tools.study thresholds DATA`, from {sizes},
with CIFAR-100 test as reference.

Two thresholds were fitted on the first half of each set: each is the middle of the range that the first
half allows. `ALIASED_FROM` (of `fix_resize.auditing.aliasing`) is bounded below by sound filters, with which
at most {ALIASED:.0%} of any set's pictures may be aliased, and above by sets of which {PART:.0%} were
decimated, none of which may be missed. `WHITE_SHARE` (of `verdict`) is bounded below by sets made by `fix`,
which must not cause a warning, and above by sets of which {PART:.0%} are nearest neighbour, which must.

| threshold | least | most | in use |
| :-- | --: | --: | --: |
| `ALIASED_FROM` | {aliasing.least:.3f} | {aliasing.most:.3f} | {ALIASED_FROM} |
| `WHITE_SHARE` | {white.least:.3f} | {white.most:.3f} | {WHITE_SHARE} |

The other thresholds were not fitted: they define equal pictures (1.5 grey levels), clean sets (95% of the
pairs) and aliased sets ({ALIASED:.0%}). The method itself was developed on all of these sets, so the second
half shows that the two thresholds carry over to other pictures, not to other kinds of picture.

For each half: the verdict with originals, the share of aliased pairs, and the share of white pictures with
the warning, if any, that there would be without originals. A warning proves nothing: textures cause it under
some sound filters, and a blur hides decimation from it.

{table}"""


class Result(NamedTuple):
    """The scores of one treated picture, and its comparison with `fix`."""

    scores: Scores
    pair: Pair


class Rendering(NamedTuple):
    """One half of a set under one treatment or mixture."""

    set_name: str
    half: str
    label: str
    expected: str
    results: list[Result]


class Range(NamedTuple):
    """The range of a threshold that a half allows."""

    least: float
    most: float

    @property
    def middle(self) -> float:
        """The threshold with the widest margin, to two digits."""
        return round((self.least + self.most) / 2, 2)


def half_of(name: str) -> str:
    """Return the half of its set that a picture belongs to."""
    return HALVES[hashlib.blake2b(name.encode()).digest()[0] & 1]


def render(set_name: str, folder: Path) -> Iterator[Rendering]:
    """Yield both halves of a set under every treatment and mixture."""
    by_name: dict[str, dict[str, Result]] = {}
    for name, image in images_below(folder):
        photo, original = Photo(image), Original(image, get_spec("fix"))
        by_name[name] = {}
        for label, treatment in TREATMENTS.items():
            pixels = treatment.reduce(photo)
            by_name[name][label] = Result(score_images(pixels[None]), original.compare(pixels))
    for half in HALVES:
        pictures = [by_name[name] for name in sorted(by_name) if half_of(name) == half]
        for label, treatment in TREATMENTS.items():
            results = [picture[label] for picture in pictures]
            yield Rendering(set_name, half, label, treatment.verdict, results)
        for label, mix in MIXTURES.items():
            treatments = (mix.treatment if n % mix.every < mix.number else mix.rest for n in count())
            results = [picture[name] for picture, name in zip(pictures, treatments, strict=False)]
            yield Rendering(set_name, half, label, TREATMENTS[mix.treatment].verdict, results)


def images_below(folder: Path) -> list[tuple[str, Image.Image]]:
    """Return (file name without extension, RGB image) of every image below a folder, sorted by name."""
    files = {path.stem: path for path in folder.rglob("*") if path.is_file()}
    return [(name, decode(files[name].read_bytes()).image) for name in sorted(files)]


def audit_results(results: Sequence[Result], reference: Measurements) -> Audit:
    """Return the audit of a set with these results."""
    columns = zip(*(result.scores for result in results), strict=True)
    audit = audit_scores(Scores(*map(np.concatenate, columns)), reference.scores)
    return replace(audit, paired=PairedAudit([result.pair for result in results]))


def fit(renderings: Sequence[Rendering], reference: Measurements) -> tuple[Range, Range]:
    """Return the ranges of ALIASED_FROM and of WHITE_SHARE that some renderings allow."""
    mix = MIXTURES[PART_NEAREST]

    def exceeded_by(share: float) -> Callable[[Rendering], float]:
        """Return the amplitude of aliasing that more than a share of the pictures reach."""

        def amplitude(rendering: Rendering) -> float:
            amplitudes = sorted((result.pair.aliasing for result in rendering.results), reverse=True)
            return amplitudes[int(share * len(amplitudes))]

        return amplitude

    def white(rendering: Rendering) -> float:
        whiteness = np.concatenate([result.scores.whiteness for result in rendering.results])
        return white_share(whiteness, reference.scores.whiteness).lo

    filtered = [r for r in renderings if r.expected == "filtered"]
    aliased = [r for r in renderings if r.expected == "aliased" and r.label in TREATMENTS]
    detected = exceeded_by(ALIASED * mix.every / mix.number)
    return (
        Range(max(map(exceeded_by(ALIASED), filtered)), min(map(detected, aliased))),
        Range(
            max(white(r) for r in renderings if r.label == "fix"),
            min(white(r) for r in renderings if r.label == PART_NEAREST),
        ),
    )


def measure_reference(data: Path) -> Measurements:
    """Return the scores of the reference."""
    return measure(open_images("cifar100:test", {"cifar100": data}))


def markdown(data: Path) -> str:
    """Return the whole page."""
    reference = measure_reference(data)
    renderings = [r for name, folder in SETS.items() for r in render(name, data / folder)]
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for r in renderings:
        key = (r.set_name, r.label, r.expected)
        rows[key] = rows.get(key, key) + _cells(audit_results(r.results, reference))
    lines = [COLUMNS, [":--" if n < 3 else "--:" for n in range(len(COLUMNS))], *rows.values()]
    aliasing, white = fit([r for r in renderings if r.half == FIRST], reference)
    sizes = {
        name: sum(len(r.results) for r in renderings if (r.set_name, r.label) == (name, "fix"))
        for name in SETS
    }
    mix = MIXTURES[PART_NEAREST]
    return PAGE.format(
        sizes=", ".join(f"{size} {name}" for name, size in sizes.items()),
        aliasing=aliasing,
        white=white,
        ALIASED=ALIASED,
        ALIASED_FROM=ALIASED_FROM,
        WHITE_SHARE=WHITE_SHARE,
        PART=mix.number / mix.every,
        table="".join(f"| {' | '.join(line)} |\n" for line in lines),
    )


def _cells(audit: Audit) -> tuple[str, str, str]:
    assert audit.paired is not None
    warning = " warned" if audit.suspicious else ""
    return audit.verdict, f"{audit.paired.shares['aliased']:.0%}", f"{audit.white.value:.0%}{warning}"
