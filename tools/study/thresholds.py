"""What the audit's thresholds tell apart: fitted on one half of each set, shown on the other.

    python -m tools.study.thresholds DATA --out docs/study/thresholds.md

A picture's half is the first bit of BLAKE2b of its name, so neither half was chosen. Takes about a minute.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fix_resize.auditing.aliasing import ALIASED_FROM, Original, Pair
from fix_resize.auditing.measurements import Measurements, measure
from fix_resize.auditing.pictures import open_pictures
from fix_resize.auditing.smoothness import total_variation, whiteness
from fix_resize.auditing.verdict import ALIASED, WHITE_SHARE, Audit, PairedAudit, audit, white_share
from fix_resize.spec import get_spec
from tests.fix_resize.cases import images_below
from tools.study.treatments import MIXTURES, PART_NEAREST, TREATMENTS, Photo
from wordnet_splits.base import files

SETS = {"photographs": "imagenet/train", "textures": "dtd/images", "food": "food-101/images"}
FIRST, SECOND = HALVES = ("first half", "second half")
COLUMNS = (
    "set",
    "made by",
    "expected",
    *(f"{half}: {f}" for half in HALVES for f in ("verdict", "aliased", "white")),
)
PAGE = """# What the audit tells apart

By `python -m tools.study.thresholds DATA --out docs/study/thresholds.md`, from {sizes},
with CIFAR-100 test as reference.

Two thresholds were fitted on the first half of each set: each is the middle of the range that the first
half allows. `ALIASED_FROM` (of `fix_resize.auditing.aliasing`) is bounded below by honest filters, none
of which may have more than {ALIASED:.0%} of any set's pictures found aliased, and above by sets of which
{PART:.0%} were decimated, none of which may be missed. `WHITE_SHARE` (of `verdict`) is bounded below by
sets made by `fix`, which must not be warned of, and above by sets of which {PART:.0%} are nearest
neighbour, which must.

| threshold | least | most | in use |
| :-- | --: | --: | --: |
| `ALIASED_FROM` | {aliasing.least:.3f} | {aliasing.most:.3f} | {ALIASED_FROM} |
| `WHITE_SHARE` | {white.least:.3f} | {white.most:.3f} | {WHITE_SHARE} |

The others were not fitted: they say what counts as the same picture (1.5 grey levels), as a clean set
(95% of the pairs) and as an aliased one ({ALIASED:.0%}). The method itself was worked out with all of
these sets at hand, so the second half shows that the two thresholds carry over to other pictures, not to
other kinds of picture.

What the audit says of each half: its verdict with originals, the share of the pairs found aliased, and
the share of white pictures, with whether it warns for want of originals. A warning proves nothing:
textures cause it under some honest filters, and a blur hides decimation from it.

{table}"""


class Made(NamedTuple):
    """One rendering of a picture, measured."""

    variation: float
    whiteness: float
    pair: Pair


class Rendering(NamedTuple):
    """One half of a set, made in one way."""

    set_name: str
    half: str
    label: str
    expected: str
    made: list[Made]


class Range(NamedTuple):
    """Where a threshold may lie."""

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
    """Yield both halves of a set under every treatment, and every mixture of them."""
    found: dict[str, dict[str, Made]] = {}
    for name, image in images_below(folder):
        photo, original = Photo(image), Original(image, get_spec("fix"))
        found[name] = {}
        for label, treatment in TREATMENTS.items():
            pixels = treatment.make(photo)
            scores = (float(score(pixels[None])[0]) for score in (total_variation, whiteness))
            found[name][label] = Made(*scores, original.compare(pixels))
    for half in HALVES:
        pictures = [found[name] for name in sorted(found) if half_of(name) == half]
        for label, treatment in TREATMENTS.items():
            yield Rendering(set_name, half, label, treatment.verdict, [made[label] for made in pictures])
        for label, (some, of, first, other) in MIXTURES.items():
            mixed = [made[first if n % of < some else other] for n, made in enumerate(pictures)]
            yield Rendering(set_name, half, label, TREATMENTS[first].verdict, mixed)


def judge(made: Sequence[Made], reference: Measurements) -> Audit:
    """Return the audit of a set that was made so."""
    variation, white = (np.array([m[n] for m in made]) for n in (0, 1))
    paired = PairedAudit([m.pair for m in made])
    return replace(audit(variation, white, reference.variation, reference.whiteness), paired=paired)


def fit(renderings: Iterable[Rendering], reference: Measurements) -> tuple[Range, Range]:
    """Return the ranges of ALIASED_FROM and of WHITE_SHARE that some renderings allow."""
    some, of, *_ = MIXTURES[PART_NEAREST]
    known = list(renderings)

    def exceeded_by(share: float) -> Callable[[Rendering], float]:
        """Amplitude of aliasing that more than a share of the pictures reach."""
        return lambda r: sorted((m.pair.aliasing for m in r.made), reverse=True)[int(share * len(r.made))]

    def white(r: Rendering) -> float:
        return white_share(np.array([m.whiteness for m in r.made]), reference.whiteness).lo

    filtered = [r for r in known if r.expected == "filtered"]
    aliased = [r for r in known if r.expected == "aliased" and r.label in TREATMENTS]
    return (
        Range(max(map(exceeded_by(ALIASED), filtered)), min(map(exceeded_by(ALIASED * of / some), aliased))),
        Range(
            max(white(r) for r in known if r.label == "fix"),
            min(white(r) for r in known if r.label == PART_NEAREST),
        ),
    )


def reference_of(data: Path) -> Measurements:
    """Return the reference of the audits, measured."""
    return measure(open_pictures("cifar100:test", {"cifar100": data}))


def markdown(data: Path) -> str:
    """Return the whole page."""
    reference = reference_of(data)
    renderings = [r for name, place in SETS.items() for r in render(name, data / place)]
    rows: dict[tuple[str, ...], tuple[str, ...]] = {}
    for r in renderings:
        key = (r.set_name, r.label, r.expected)
        rows[key] = rows.get(key, key) + _cells(judge(r.made, reference))
    lines = [COLUMNS, [":--" if n < 3 else "--:" for n in range(len(COLUMNS))], *rows.values()]
    aliasing, white = fit((r for r in renderings if r.half == FIRST), reference)
    whole = {
        name: sum(len(r.made) for r in renderings if (r.set_name, r.label) == (name, "fix")) for name in SETS
    }
    some, of, *_ = MIXTURES[PART_NEAREST]
    return PAGE.format(
        sizes=", ".join(f"{count} {name}" for name, count in whole.items()),
        aliasing=aliasing,
        white=white,
        ALIASED=ALIASED,
        ALIASED_FROM=ALIASED_FROM,
        WHITE_SHARE=WHITE_SHARE,
        PART=some / of,
        table="".join(f"| {' | '.join(line)} |\n" for line in lines),
    )


def _cells(found: Audit) -> tuple[str, str, str]:
    assert found.paired is not None
    warning = " warned" if found.suspicious else ""
    return found.verdict, f"{found.paired.shares['aliased']:.0%}", f"{found.white.value:.0%}{warning}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    files.write_text(given.out, markdown(given.data))
