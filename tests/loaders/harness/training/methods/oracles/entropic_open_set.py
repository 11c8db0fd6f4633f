"""Palechor eq. 1, 3 and 5."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, uniform_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),) = inputs.calls
    pairs = zip(logits, inputs.labels, strict=True)
    return {"cross_entropy": [uniform_cross_entropy(z) if y == -1 else cross_entropy(z, y) for z, y in pairs]}
