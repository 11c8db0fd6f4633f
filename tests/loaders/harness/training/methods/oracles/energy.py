"""Liu eq. 8-9."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, log_sum_exp


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),) = inputs.calls
    pairs = list(zip(logits, inputs.labels, strict=True))
    m_in, m_out = inputs.parameters["m_in"], inputs.parameters["m_out"]
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in pairs if y != -1],
        "energy_in": [max(0.0, -log_sum_exp(z) - m_in) ** 2 for z, y in pairs if y != -1],
        "energy_out": [max(0.0, m_out + log_sum_exp(z)) ** 2 for z, y in pairs if y == -1],
    }
