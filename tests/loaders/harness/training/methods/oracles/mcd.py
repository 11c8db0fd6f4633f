"""Yu and Aizawa eq. 1-3: two cross-entropies, max(0, margin - (H1 - H2)) on outliers."""

from __future__ import annotations

import math
from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, softmax


def entropy(z: Any) -> float:
    return -sum(p * math.log(p) for p in softmax(z))


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, logits),), head = inputs.calls, inputs.heads["second"]
    assert features is not None
    first, second, missing = [], [], []
    for f, z, y in zip(features, logits, inputs.labels, strict=True):
        other = head["weight"] @ f + head["bias"]
        if y >= 0:
            first.append(cross_entropy(z, y))
            second.append(cross_entropy(other, y))
        else:
            missing.append(max(0.0, inputs.parameters["margin"] - (entropy(z) - entropy(other))))
    return {"first": first, "second": second, "discrepancy": missing}
