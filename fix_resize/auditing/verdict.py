"""The verdict on a set: by its pairs where there are originals, else a warning from the set alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

import numpy as np

from fix_resize.auditing.aliasing import FINDINGS, SAME_WITHIN, Pair, PairFinding
from fix_resize.auditing.smoothness import smoothness
from fix_resize.windows import Floats
from wordnet_splits.metrics import Interval, ScoreSet, bootstrap

SetVerdict = Literal["clean", "filtered", "aliased", "altered", "suspicious", "no warning"]

DIFFERING: Final = 0.05
"""Largest share of pictures that are not clean in a set that is."""

ALIASED: Final = 0.10
"""Share of aliased pictures from which on a set is aliased, whatever the others are."""

SUSPICIOUS_ABOVE: Final = 0.70
"""A set is suspicious when the interval of its absolute AUROC lies above this."""

WHITE_ABOVE: Final = 0.99
"""A picture is white when it is whiter than this share of the reference."""

WHITE_SHARE: Final = 0.09
"""A set is suspicious when the interval of its share of white pictures lies above this."""

_PLAIN: Final[dict[PairFinding, str]] = {
    "clean": f"within {SAME_WITHIN} grey levels of fix",
    "filtered": "another low-pass filter",
    "aliased": "decimated without one",
    "altered": "neither fix nor a filter of it",
}


@dataclass(frozen=True)
class PairedAudit:
    """The pairs of a set: each picture beside the `fix` rendering of its own original.

    Attributes
    ----------
    pairs : at least one.
    """

    pairs: Sequence[Pair]

    @property
    def shares(self) -> dict[PairFinding, float]:
        """Share of the pairs with each finding."""
        times = Counter(pair.finding for pair in self.pairs)
        return {finding: times[finding] / len(self.pairs) for finding in FINDINGS}

    @property
    def verdict(self) -> PairFinding:
        """``clean`` but for 5% of the pairs; ``aliased`` from 10% on; else the finding that is commonest."""
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
        """Return what ``--json`` prints: counts, shares and quantiles."""
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
        shown = [
            f"{share:.0%} {finding} ({_PLAIN[finding]})" for finding, share in self.shares.items() if share
        ]
        return f"{self.verdict}: of {len(self.pairs):,} pairs {', '.join(shown)}"


def _quantiles(values: Sequence[float]) -> dict[str, float]:
    low, median, high = np.quantile(values, [0.05, 0.5, 0.95]).tolist()
    return {"q05": low, "median": median, "q95": high}


@dataclass(frozen=True)
class Audit:
    """What is known of how a set was resized.

    Attributes
    ----------
    signed : AUROC of total variation, the set against the reference; above one half the set is rougher.
    absolute : AUROC of the smoothness score, the set against the reference.
    white : share of the set that is whiter than 99% of the reference, with its 95% interval.
    paired : the result of the pairs; None where there are no originals.
    """

    signed: Interval
    absolute: Interval
    white: Interval
    paired: PairedAudit | None = None

    @property
    def suspicious(self) -> bool:
        """Whether the set alone raises a warning: too unlike the reference, or too many white pictures."""
        return self.absolute.lo > SUSPICIOUS_ABOVE or self.white.lo > WHITE_SHARE

    @property
    def verdict(self) -> SetVerdict:
        """That of the pairs; without originals ``suspicious`` or ``no warning``."""
        if self.paired is not None:
            return self.paired.verdict
        return "suspicious" if self.suspicious else "no warning"

    @property
    def passed(self) -> bool:
        """Whether the set passed: clean, or no warning where there are no originals."""
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
            reasons.append(f"{self.white.value:.0%} of the pictures as white as 1% of the reference")
        return f"suspicious ({'; '.join(reasons)}); originals would settle it"


def audit(variation: Floats, white: Floats, reference: Floats, white_reference: Floats) -> Audit:
    """Compare a set with a reference.

    Parameters
    ----------
    variation, white : (n,) total variation and whiteness of the set's pictures.
    reference, white_reference : (m,) those of the reference's.
    """
    return Audit(
        signed=_auroc(variation, reference),
        absolute=_auroc(smoothness(variation, reference), smoothness(reference, reference)),
        white=white_share(white, white_reference),
    )


def white_share(white: Floats, reference: Floats) -> Interval:
    """Return the share of a set that is whiter than 99% of the reference, with its 95% interval.

    The interval is Wilson's, which also holds for small numbers.
    """
    z = 1.959963984540054
    of = len(white)
    share = float((white > np.quantile(reference, WHITE_ABOVE)).mean())
    middle, spread = share + z * z / (2 * of), z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    scale = 1 + z * z / of
    return Interval(share, max(0.0, (middle - spread) / scale), min(1.0, (middle + spread) / scale))


def _auroc(higher: Floats, lower: Floats) -> Interval:
    """Return the chance that the set's score exceeds the reference's, which is the OOD side of the metric."""
    # Reference scores between two of the set may be merged: the replicates are the same, and come sooner.
    places = np.unique(higher)
    ours, theirs = (
        np.searchsorted(places, scores, "left") + np.searchsorted(places, scores, "right")
        for scores in (higher, lower)
    )
    sets = [ScoreSet("set", "id", ours), ScoreSet("reference", "external", theirs)]
    return bootstrap(sets, ["auroc"])["auroc"]
