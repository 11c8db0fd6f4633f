"""Zhang et al. (MixOE) section 3: targets share x one-hot + (1 - share) / K."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import beta, cross_entropy, left_by_rectangle, uniform_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), settings = inputs.calls, inputs.parameters
    share = beta(int(inputs.draws[0][0]), settings["a"], settings["b"])
    if settings["cut"]:
        share = left_by_rectangle(share, inputs.draws[1].tolist(), *inputs.images[0].shape[2:])
    labels = [y for y in inputs.labels if y != -1]
    plain, mixed = logits[: len(labels)], logits[len(labels) :]
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in zip(plain, labels, strict=True)],
        "mixed": [
            share * cross_entropy(z, y) + (1 - share) * uniform_cross_entropy(z)
            for z, y in zip(mixed, labels, strict=True)
        ],
    }
