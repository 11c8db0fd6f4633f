"""Ming et al. eq. 5-7 with the moving average of eq. 8, image by image."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def embed(head: Mapping[str, Any], f: Any) -> Any:
    hidden = np.maximum(head["projection.0.weight"] @ f + head["projection.0.bias"], 0)
    z = head["projection.2.weight"] @ hidden + head["projection.2.bias"]
    return z / np.sqrt((z * z).sum())


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head, settings = inputs.calls, inputs.heads["head"], inputs.parameters
    assert features is not None
    tau, momentum = settings["tau"], settings["momentum"]
    prototypes, labels = head["prototypes"].copy(), [*inputs.labels, *inputs.labels]
    embeddings = [embed(head, f) for f in features]
    for z, y in zip(embeddings, labels, strict=True):
        moved = momentum * prototypes[y] + (1 - momentum) * z
        prototypes[y] = moved / np.sqrt((moved * moved).sum())
    compact = [cross_entropy(prototypes @ z / tau, y) for z, y in zip(embeddings, labels, strict=True)]
    disperse = []
    for i, a in enumerate(prototypes):
        powers = [math.exp(float(a @ b) / tau) for j, b in enumerate(prototypes) if j != i]
        disperse.append(math.log(sum(powers) / len(powers)))
    return {"compactness": compact, "dispersion": disperse}
