"""What the audit's thresholds tell apart: taken from one half of each set, shown on both.

    python -m tests.fix_resize.auditing.thresholds DATA --out docs/study/thresholds.md

A picture's half is the first bit of BLAKE2b of its name, so neither half was chosen.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from fix_resize.auditing.aliasing import ALIASED_FROM, Original, Pair
from fix_resize.auditing.measuring import Measured, draw, measure
from fix_resize.auditing.sets import open_pictures
from fix_resize.auditing.smoothness import total_variation, whiteness
from fix_resize.auditing.verdict import WHITE_SHARE, Audit, PairedAudit, audit
from fix_resize.spec import get_spec
from tests.fix_resize.cases import images_below
from tests.fix_resize.treatments import MIXTURES, TREATMENTS
from wordnet_splits import files

SETS = {"photographs": "imagenet/train", "textures": "dtd/images", "food": "food-101/images"}
HALVES = ("first half", "second half")
REFERENCES = 1000
HEAD = """# What the audit tells apart

By `python -m tests.fix_resize.auditing.thresholds DATA --out docs/study/thresholds.md`: verdict, share of the
pairs found aliased, and, for want of originals, share of white pictures, with the warning that 1,000 pictures
of CIFAR-100 test as reference lead to. The method was worked out with these sets at hand; the two thresholds
below are taken from the first half of each, and the second half shows what they do elsewhere.

"""
FIGURES = ("verdict", "aliased", "white")
COLUMNS = ("set", "made by", "expected", *(f"{half}: {figure}" for half in HALVES for figure in FIGURES))
BLURRED = "nearest, blurred by .58"


class Made(NamedTuple):
    """One rendering of a picture, measured."""

    variation: float
    whiteness: float
    pair: Pair


def half_of(name: str) -> str:
    """Return the half of its set that a picture belongs to."""
    return HALVES[hashlib.blake2b(name.encode()).digest()[0] & 1]


def render(folder: Path) -> dict[str, dict[str, Made]]:
    """Return every picture below a folder under every treatment, measured."""
    found: dict[str, dict[str, Made]] = {}
    for name, image in images_below(folder):
        original = Original(image, get_spec("fix"))
        found[name] = {}
        for label, treatment in TREATMENTS.items():
            pixels = treatment.make(image)
            block = pixels[None]
            found[name][label] = Made(
                float(total_variation(block)[0]), float(whiteness(block)[0]), original.compare(pixels)
            )
    return found


def judge(made: Sequence[Made], reference: Measured) -> Audit:
    """Return the audit of a set that was made so."""
    variation, white = (np.array([m[n] for m in made]) for n in (0, 1))
    paired = PairedAudit([m.pair for m in made])
    return replace(audit(variation, white, reference.variation, reference.whiteness), paired=paired)


def rows(folder: Path, reference: Measured) -> Iterator[tuple[str, str, dict[str, Audit]]]:
    """Yield treatment, expected verdict and the audits of both halves of a set."""
    found = render(folder)
    halves = {half: [name for name in sorted(found) if half_of(name) == half] for half in HALVES}
    for label, treatment in TREATMENTS.items():
        made = {half: [found[name][label] for name in names] for half, names in halves.items()}
        yield label, treatment.verdict, {half: judge(made[half], reference) for half in HALVES}
    for label, (some, of, first, other) in MIXTURES.items():
        made = {
            half: [found[name][first if n % of < some else other] for n, name in enumerate(names)]
            for half, names in halves.items()
        }
        yield label, TREATMENTS[first].verdict, {half: judge(made[half], reference) for half in HALVES}


def reference_of(data: Path) -> Measured:
    """Return the reference, measured: pictures of CIFAR-100 test, drawn by a hash of their ids."""
    pictures = open_pictures("cifar100:test", {"cifar100": data})
    return measure(pictures, ids=draw(pictures.ids, REFERENCES))


def markdown(data: Path) -> str:
    """Return the whole page."""
    reference = reference_of(data)
    lines = [COLUMNS, tuple(":--" if n < 3 else "--:" for n in range(len(COLUMNS)))]
    first: dict[tuple[str, str], Audit] = {}
    for name, place in SETS.items():
        for label, expected, audits in rows(data / place, reference):
            cells = [text for half in HALVES for text in _cells(audits[half])]
            lines.append((name, label, expected, *cells))
            first[name, label] = audits[HALVES[0]]
    return HEAD + "".join(f"| {' | '.join(line)} |\n" for line in lines) + _thresholds(first)


def _cells(found: Audit) -> tuple[str, str, str]:
    assert found.paired is not None
    warning = " warned" if found.suspicious else ""
    return found.verdict, f"{found.paired.shares['aliased']:.0%}", f"{found.white.value:.0%}{warning}"


def _thresholds(first: dict[tuple[str, str], Audit]) -> str:
    """Return where the thresholds lie between what must and what must not exceed them, on the first half."""

    def aliasing(label: str, quantile: str) -> list[float]:
        found = [a.paired.as_dict() for (_, made), a in first.items() if made == label and a.paired]
        return [float(figures["aliasing"][quantile]) for figures in found]

    filters = [label for label, treatment in TREATMENTS.items() if treatment.verdict == "filtered"]
    low = max(value for label in filters for value in aliasing(label, "q95"))
    high = min(aliasing(BLURRED, "q05"))
    fixed = max(a.white.lo for (_, label), a in first.items() if label == "fix")
    decimated = min(a.white.lo for (_, label), a in first.items() if label.startswith("30%"))
    return f"""
On the first half, 95% of the pictures made by any honest filter have an aliasing of at most {low:.2f}, and
95% of those "{BLURRED}" at least {high:.2f}, in every set: a picture is aliased from {ALIASED_FROM:.2f}.
The lower end of the interval of the share of white pictures is at most {fixed:.3f} under `fix`, and at least
{decimated:.3f} where 30% are nearest: a set is suspicious above {WHITE_SHARE:.2f}.
"""


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    files.write_text(given.out, markdown(given.data))
