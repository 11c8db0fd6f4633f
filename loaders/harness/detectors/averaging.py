"""Detectors that average the softmax of several models, or of several passes with dropout.

A detector of several models gets a sequence of arrays, one per model; ``predict`` returns the joint logits.

Three confidences are offered (Kim et al., footnote 5, who report ``mcp``): ``mcp``, the log of the maximum of
the mean softmax; ``entropy``, minus its entropy in nats; and ``variance``, minus the variance of the softmax
over models or passes (divided by their number), averaged over the columns (Smith and Gal, Understanding
Measures of Uncertainty for Adversarial Example Detection, UAI 2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from pydantic import PositiveInt

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays
from ..data.parameters import parameters
from .logits import Entropy
from .registry import PAPERS, register
from .softmax import log_max_softmax, log_sum_exp, logits_of

PASSES = "dropout[passes={passes}]"
Confidence = Literal["mcp", "entropy", "variance"]


@register(paper=PAPERS["lakshminarayanan2017"], needs=("logits",), models="many", aliases=("deep_ensemble",))
@parameters
class Ensemble:
    """Maximum of the mean softmax of several models (Deep Ensemble), or another ``confidence``."""

    confidence: Confidence = "mcp"

    def predict(self, state: None, data: Sequence[Arrays]) -> Arrays:
        """Return the log of the mean softmax as ``logits`` (and ``background``): its softmax is that mean."""
        logs = self._log_softmax(data)
        joint = Arrays.of(logits=_log_mean([classes for classes, _ in logs]))
        backgrounds = [background for _, background in logs if background is not None]
        return joint.replace(background=_log_mean(backgrounds)) if backgrounds else joint

    def score(self, state: None, data: Sequence[Arrays]) -> Array:
        """Return the confidence."""
        if self.confidence == "variance":
            pairs = self._log_softmax(data)
            models = np.exp([np.column_stack([part for part in pair if part is not None]) for pair in pairs])
            return np.asarray(-np.sort(models, axis=0).var(axis=0).mean(axis=1))
        joint = self.predict(state, data)
        return (
            Entropy().score(None, joint)
            if self.confidence == "entropy"
            else log_max_softmax(*logits_of(joint))
        )

    def _log_softmax(self, data: Sequence[Arrays]) -> list[tuple[Array, Array | None]]:
        logs = [_log_softmax(model) for model in data]
        if len({(classes.shape[1], background is None) for classes, background in logs}) > 1:
            raise DataError("the models of an ensemble differ in classes", hint="give models of one head")
        return logs


def _log_softmax(data: Arrays) -> tuple[Array, Array | None]:
    logits, background = logits_of(data)
    total = log_sum_exp(logits if background is None else np.column_stack([logits, background]))
    return logits - total[:, None], None if background is None else background - total


def _log_mean(logs: Sequence[Array]) -> Array:
    """Return the log of the mean of exp over models, sorted first so that their order does not matter."""
    return np.asarray(log_sum_exp(np.sort(np.stack(logs, axis=-1), axis=-1)) - np.log(len(logs)))


@parameters
class _DropoutPasses:
    """Mean softmax over passes with dropout."""

    passes: PositiveInt = 50

    def mean(self, data: Arrays) -> Array:
        """Return the log of the mean softmax over the classes (n, K)."""
        return np.asarray(data[f"{PASSES.format(passes=self.passes)}/logits"], dtype=np.float64)

    def predict(self, state: None, data: Arrays) -> Arrays:
        """Return the log of the mean softmax of the classes and, if given, of the background."""
        logits = self.mean(data)
        if "background" not in data:
            return Arrays.of(logits=logits)
        rest = np.maximum(1 - np.exp(logits).sum(axis=1), np.finfo(np.float64).tiny)
        return Arrays.of(logits=logits, background=np.log(rest))


@register(
    "mc_dropout", paper=PAPERS["gal2016"], needs=(f"{PASSES}/logits",), aliases=("mc-dropout", "mcdropout")
)
@parameters
class MCDropout(_DropoutPasses):
    """Maximum of the mean softmax over passes with dropout, or another ``confidence``."""

    confidence: Confidence = "mcp"

    @property
    def further_needs(self) -> tuple[str, ...]:
        """The variance, where it is the confidence."""
        return (f"{PASSES.format(passes=self.passes)}/variance",) if self.confidence == "variance" else ()

    def score(self, state: None, data: Arrays) -> Array:
        """Return the confidence."""
        if self.confidence == "variance":
            return -np.asarray(data[self.further_needs[0]], dtype=np.float64)
        if self.confidence == "entropy":
            return Entropy().score(None, self.predict(state, data))
        return np.asarray(self.mean(data).max(axis=1))


@register(
    "mutual_information",
    paper=PAPERS["houlsby2011"],
    needs=(f"{PASSES}/logits", f"{PASSES}/information"),
    aliases=("mi",),
)
@parameters
class MutualInformation(_DropoutPasses):
    """Minus the mutual information of class and dropout: H(mean p) - mean H(p) over passes, in nats."""

    def score(self, state: None, data: Arrays) -> Array:
        """Return minus the information."""
        return -np.asarray(data[f"{PASSES.format(passes=self.passes)}/information"], dtype=np.float64)
