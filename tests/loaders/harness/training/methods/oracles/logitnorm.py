"""Wei eq. 7."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),) = inputs.calls
    tau, values = inputs.parameters["tau"], []
    for z, y in zip(logits, inputs.labels, strict=True):
        norm = sum(v * v for v in z) ** 0.5
        values.append(cross_entropy([v / (norm * tau) for v in z], y))
    return {"cross_entropy": values}
