"""Khosla et al. eq. 2 over two views and four rotations, each pair of embeddings once."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),) = inputs.calls
    assert features is not None
    head, tau, n = inputs.heads["projection"], inputs.parameters["tau"], len(inputs.labels)
    embeddings, labels = [], []
    for row, f in enumerate(features):  # view by view, in each rotation by rotation
        hidden = np.maximum(head["0.weight"] @ f + head["0.bias"], 0)
        z = head["2.weight"] @ hidden + head["2.bias"]
        embeddings.append(z / np.linalg.norm(z))
        labels.append((inputs.labels[row % n], row // n % 4))
    losses = []
    for i, z in enumerate(embeddings):
        powers = {a: math.exp(float(z @ other) / tau) for a, other in enumerate(embeddings) if a != i}
        positives = [a for a in powers if labels[a] == labels[i]]
        losses.append(-sum(math.log(powers[p] / sum(powers.values())) for p in positives) / len(positives))
    return {"contrastive": losses}
