"""Detectors on several passes with dropout."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..arrays import Array, Arrays
from .logits import positive
from .paper import PAPERS
from .registry import register

PASSES = "dropout[passes={passes}]"


@dataclass(frozen=True)
class _Sampled:
    """The number of passes."""

    passes: int = 50

    def __post_init__(self) -> None:
        positive("passes", self.passes)

    def mean(self, data: Arrays) -> Array:
        """Return the log of the mean softmax over the classes (n, K)."""
        return np.asarray(data[f"{PASSES.format(passes=self.passes)}/logits"], dtype=np.float64)

    def predict(self, state: None, data: Arrays) -> Arrays:
        """Return the log of the mean softmax: its classes, and as background what they leave."""
        logits = self.mean(data)
        if "background" not in data:
            return Arrays.of(logits=logits)
        left = np.maximum(1 - np.exp(logits).sum(axis=1), np.finfo(np.float64).tiny)
        return Arrays.of(logits=logits, background=np.log(left))


@register(
    "mc_dropout", paper=PAPERS["gal2016"], needs=(f"{PASSES}/logits",), aliases=("mc-dropout", "mcdropout")
)
@dataclass(frozen=True)
class MCDropout(_Sampled):
    """Maximum of the mean softmax over passes with dropout."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the log of the greatest mean softmax over the classes."""
        return np.asarray(self.mean(data).max(axis=1))


@register(
    "mutual_information",
    paper=PAPERS["houlsby2011"],
    needs=(f"{PASSES}/logits", f"{PASSES}/information"),
    aliases=("mi",),
)
@dataclass(frozen=True)
class MutualInformation(_Sampled):
    """Minus the mutual information of class and dropout: H(mean p) - mean H(p) over passes, in nats."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return minus the information."""
        return -np.asarray(data[f"{PASSES.format(passes=self.passes)}/information"], dtype=np.float64)
