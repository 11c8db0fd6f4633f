"""Detectors of several models of one benchmark.

They get a sequence of arrays, one per model; ``predict`` gives the joint logits, which predictions are read
from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wordnet_splits.base.errors import DataError

from ..arrays import Array, Arrays
from .paper import PAPERS
from .registry import register
from .softmax import log_max_softmax, log_sum_exp, logits_of


@register(paper=PAPERS["lakshminarayanan2017"], needs=("logits",), models="many", aliases=("deep_ensemble",))
@dataclass(frozen=True)
class Ensemble:
    """Maximum of the mean softmax of several models (Deep Ensemble)."""

    def predict(self, state: None, data: Sequence[Arrays]) -> Arrays:
        """Return the log of the mean softmax as ``logits`` (and ``background``): its softmax is that mean.

        Raises
        ------
        DataError : the models differ in classes, or only some have a background class.
        """
        each = [_log_softmax(model) for model in data]
        if len({(classes.shape[1], background is None) for classes, background in each}) > 1:
            raise DataError("the models of an ensemble differ in classes", hint="give models of one head")
        joint = Arrays.of(logits=_log_mean([classes for classes, _ in each]))
        backgrounds = [background for _, background in each if background is not None]
        return joint.replace(background=_log_mean(backgrounds)) if backgrounds else joint

    def score(self, state: None, data: Sequence[Arrays]) -> Array:
        """Return the log of the greatest mean softmax."""
        return log_max_softmax(*logits_of(self.predict(state, data)))


def _log_softmax(data: Arrays) -> tuple[Array, Array | None]:
    logits, background = logits_of(data)
    total = log_sum_exp(logits if background is None else np.column_stack([logits, background]))
    return logits - total[:, None], None if background is None else background - total


def _log_mean(values: Sequence[Array]) -> Array:
    """Log of the mean of exp over models, which are sorted first, so that their order does not matter."""
    return np.asarray(log_sum_exp(np.sort(np.stack(values, axis=-1), axis=-1)) - np.log(len(values)))
