"""Hendrycks eq. 1 with the cross-entropy to the uniform distribution."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, uniform_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),) = inputs.calls
    pairs = list(zip(logits, inputs.labels, strict=True))
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in pairs if y != -1],
        "uniform": [uniform_cross_entropy(z) for z, y in pairs if y == -1],
    }
