"""Lu et al. as in the authors' code: Sinkhorn's weights, moving averages and both losses, image by image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs

from .cider import embed


def sinkhorn(embeddings: list[Any], prototypes: Any, epsilon: float, iterations: int) -> Any:
    """Weights (n, K, M): equal totals for all prototypes, then a total of 1 for each image, in turn."""
    q = np.array([[math.exp(p @ z / epsilon) for p in prototypes.reshape(-1, len(z))] for z in embeddings])
    for _ in range(iterations):
        q = q / q.sum(0) / q.shape[1]
        q = q / q.sum(1)[:, None] / len(q)
    return (q * len(q)).reshape(len(q), *prototypes.shape[:2])


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head, settings = inputs.calls, inputs.heads["head"], inputs.parameters
    assert features is not None
    labels, embeddings = [*inputs.labels, *inputs.labels], [embed(head, f) for f in features]
    prototypes, sinkhorn_settings = head["prototypes"], (settings["epsilon"], settings["iterations"])
    classes, number, _ = prototypes.shape
    weights, selections = sinkhorn(embeddings, prototypes, *sinkhorn_settings), []
    sums, totals = np.zeros_like(prototypes), np.zeros((classes, number))
    for z, y, w in zip(embeddings, labels, weights, strict=True):
        selections.append(np.argsort(-w[y])[: settings["assigned"]])
        for m in selections[-1]:
            share = w[y][m] / w[y][selections[-1]].sum()
            sums[y, m] += share * z
            totals[y, m] += share
    moved = np.empty_like(prototypes)
    for k in range(classes):
        for m in range(number):
            mean = sums[k, m] / totals[k, m] if totals[k, m] else sums[k, m]
            p = settings["momentum"] * prototypes[k, m] + (1 - settings["momentum"]) * mean
            moved[k, m] = p / math.sqrt(p @ p)
    weights, likelihood = sinkhorn(embeddings, moved, *sinkhorn_settings), []
    for z, y, w, selected in zip(embeddings, labels, weights, selections, strict=True):
        powers = {(k, m): math.exp(moved[k, m] @ z / settings["tau"]) for k, m in np.ndindex(classes, number)}
        value = 0.0
        for m in selected:
            share = w[y][m] / w[y][selected].sum()
            value -= share * math.log(powers[y, m] / sum(powers.values()))
        likelihood.append(value)
    contrast = []
    for k, m in np.ndindex(classes, number):
        powers = {
            (i, j): math.exp(moved[k, m] @ moved[i, j] / settings["contrast_tau"])
            for i, j in np.ndindex(classes, number)
            if (i, j) != (k, m)
        }
        siblings = [p for (i, _), p in powers.items() if i == k]
        contrast.append(-sum(math.log(p / sum(powers.values())) for p in siblings) / len(siblings))
    return {"likelihood": likelihood, "contrast": contrast}
