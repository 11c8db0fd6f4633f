"""Pinto et al. section 3: the first half of the forward pass as it is, the second mixed."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import beta, cross_entropy, mixed_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), (partners, seed), labels = inputs.calls, inputs.draws, inputs.labels
    share, n = beta(int(seed[0]), inputs.parameters["alpha"], inputs.parameters["alpha"]), len(labels)
    return {
        "cross_entropy": [cross_entropy(logits[i], labels[i]) for i in range(n)],
        "mixed": [
            mixed_cross_entropy(logits[n + i], labels[i], labels[partners[i]], share) for i in range(n)
        ],
    }
