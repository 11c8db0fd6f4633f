"""Hendrycks et al., section 3: rotations 0, 90, 180, 270 of each image, one rotation after the other."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, logits),) = inputs.calls
    assert features is not None
    n = len(inputs.labels)
    weight, bias = inputs.heads["rotation"]["weight"], inputs.heads["rotation"]["bias"]
    task = [cross_entropy(logits[i], inputs.labels[i]) for i in range(n)]
    turned = [cross_entropy(weight @ f + bias, i // n) for i, f in enumerate(features)]
    return {"task": task, "rotation": turned}
