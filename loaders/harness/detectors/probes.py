"""Detectors on what a probe computed alongside the forward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import SplitsError

from ..arrays import Array, Arrays
from .logits import positive
from .paper import PAPERS
from .registry import register
from .rowwise import maxima
from .softmax import logits_of, scaled_odds

ODIN_LOGITS = "odin[T={T:g},eps={eps:g}]/logits"
SWEEP = {"T": (1.0, 10.0, 100.0, 1000.0), "eps": (0.0014, 0.0028)}


@dataclass(frozen=True)
class _Perturbed:
    """Parameters of the perturbation x' = x - eps sign(-gradient) / sd per channel."""

    T: float = 1000.0
    eps: float = 0.0014

    def __post_init__(self) -> None:
        positive("T", self.T)
        if not (self.eps >= 0 and np.isfinite(self.eps)):
            raise SplitsError(f"eps={self.eps:g} is negative")

    @property
    def array(self) -> str:
        """Name of the logits of the perturbed images."""
        return ODIN_LOGITS.format(T=self.T, eps=self.eps)


@register(paper=PAPERS["liang2018"], needs=(ODIN_LOGITS,), sweep=SWEEP)
@dataclass(frozen=True)
class ODIN(_Perturbed):
    """Maximum softmax at temperature T after a step that raises it."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the maximum softmax at T of the perturbed image, as its odds on a log scale."""
        return scaled_odds(*logits_of(data, self.array, classes=2), [self.T])[0]


@register("ip_ts_mlv", paper=PAPERS["recalcati"], needs=(ODIN_LOGITS,), sweep=SWEEP)
@dataclass(frozen=True)
class PerturbedMaxLogit(_Perturbed):
    """Maximum logit after ODIN's perturbation (Recalcati's IP TS MLV)."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return the greatest logit of the perturbed image."""
        return maxima(logits_of(data, self.array)[0])
