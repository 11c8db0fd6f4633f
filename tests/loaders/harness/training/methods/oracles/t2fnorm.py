"""Regmi et al.: the classifier on features of norm 1 / tau."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head, values = inputs.calls, inputs.heads["head"], []
    assert features is not None
    for f, y in zip(features, inputs.labels, strict=True):
        norm = sum(v * v for v in f) ** 0.5
        values.append(cross_entropy(head["weight"] @ (f / norm / inputs.parameters["tau"]) + head["bias"], y))
    return {"cross_entropy": values}
