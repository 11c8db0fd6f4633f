"""What is given where logits are expected: the outputs of a softmax are none, their logarithms are noted."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from wordnet_splits.base.errors import DataError

from .arrays import CHUNK, Array

PROBABILITY_ERROR = 1e-2
"""How far the sum of a row of probabilities may be from 1; float16 rounds by so much over 1,000 classes."""
LOG_PROBABILITIES = (
    "the logits are log-probabilities (the exponentials of each row sum to 1): energy is rounding error, and "
    "mls is msp; give what goes into the softmax"
)


def refuse_probabilities(logits: Array, *, where: str, hint: str) -> None:
    """Refuse the outputs of a softmax (n, K) in the place of logits.

    Raises
    ------
    DataError : every row holds probabilities: in [0, 1], of sum 1.
    """
    if _in_every_row(logits, _are_probabilities):
        raise DataError(
            "probabilities are given where logits are expected: every row sums to 1", where=where, hint=hint
        )


def are_log_probabilities(logits: Array) -> bool:
    """Say whether every row of logits (n, K) holds the logarithms of probabilities."""
    return _in_every_row(logits, _are_logarithms)


def _in_every_row(values: Array, test: Callable[[Array], bool]) -> bool:
    if len(values) == 0 or values.shape[1] < 2:
        return False
    chunks = (values[start : start + CHUNK] for start in range(0, len(values), CHUNK))
    return all(test(chunk.astype(np.float64)) for chunk in chunks)


def _are_probabilities(rows: Array) -> bool:
    return bool((rows >= 0).all() and (np.abs(rows.sum(axis=1) - 1) < PROBABILITY_ERROR).all())


def _are_logarithms(rows: Array) -> bool:
    return bool((rows < PROBABILITY_ERROR).all()) and _are_probabilities(np.exp(rows))
