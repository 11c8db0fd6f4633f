"""DeVries and Taylor eq. 2-6."""

from __future__ import annotations

import math
from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import softmax


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, logits),), (draws,) = inputs.calls, inputs.draws
    assert features is not None
    weight, bias = inputs.heads["confidence"]["weight"][0], inputs.heads["confidence"]["bias"][0]
    task, doubt = [], []
    for f, z, y, draw in zip(features, logits, inputs.labels, draws[:, 0], strict=True):
        c = 1 / (1 + math.exp(-(float(f @ weight) + bias)))
        hint = c if draw < 0.5 else 1.0
        task.append(-math.log(hint * softmax(z)[y] + (1 - hint)))
        doubt.append(-math.log(c))
    return {"task": task, "confidence": doubt}
