"""Yun et al. eq. 1-2: as mixup, by the share of the pixels outside the rectangle."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import beta, cross_entropy, left_by_rectangle, mixed_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), labels, settings = inputs.calls, inputs.labels, inputs.parameters
    if inputs.draws[0][0] >= settings["probability"]:
        return {"cross_entropy": [cross_entropy(z, y) for z, y in zip(logits, labels, strict=True)]}
    _, partners, seed, centres = inputs.draws
    drawn = beta(int(seed[0]), settings["alpha"], settings["alpha"])
    share = left_by_rectangle(drawn, centres.tolist(), *inputs.images[0].shape[2:])
    values = [mixed_cross_entropy(z, labels[i], labels[partners[i]], share) for i, z in enumerate(logits)]
    return {"cross_entropy": values}
