"""The verdict on a set: from its pairs if there are originals, else a warning from the set alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Final, Literal

import numpy as np

from fix_resize.auditing.aliasing import FINDINGS, SAME_WITHIN, Pair, PairFinding
from fix_resize.auditing.smoothness import Scores, smoothness
from fix_resize.windows import Floats
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
