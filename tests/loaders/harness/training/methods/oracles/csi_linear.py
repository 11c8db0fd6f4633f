"""CSI, appendix A: linear classifiers of K classes, and of 4 K classes with rotations."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), n = inputs.calls, len(inputs.labels)
    assert features is not None
    linear, joint = inputs.heads["head"], inputs.heads["joint"]
    plain = [
        cross_entropy(linear["weight"] @ f + linear["bias"], y)
        for f, y in zip(features, inputs.labels, strict=False)
    ]
    turned = [
        cross_entropy(joint["weight"] @ f + joint["bias"], 4 * int(inputs.labels[row % n]) + row // n)
        for row, f in enumerate(features)
    ]
    return {"linear": plain, "joint": turned}
