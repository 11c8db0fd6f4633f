"""Zhang et al. section 2: share x CE(y) + (1 - share) x CE(the partner's y)."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import beta, mixed_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), (partners, seed), labels = inputs.calls, inputs.draws, inputs.labels
    share = beta(int(seed[0]), inputs.parameters["alpha"], inputs.parameters["alpha"])
    values = [mixed_cross_entropy(z, labels[i], labels[partners[i]], share) for i, z in enumerate(logits)]
    return {"cross_entropy": values}
