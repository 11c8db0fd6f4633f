"""Du et al.: phi of the weighted energy; a virtual outlier per class at the greatest radius of the draws."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, log_sum_exp


def phi(head: Mapping[str, Any], x: Any, prefix: str = "") -> float:
    hidden = np.maximum(head[f"{prefix}0.weight"] @ x + head[f"{prefix}0.bias"], 0)
    return float(head[f"{prefix}2.weight"][0] @ hidden + head[f"{prefix}2.bias"][0])


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), (normals, uniforms) = inputs.calls, inputs.draws
    classifier, head, queue = inputs.heads["head"], inputs.heads["uncertainty"], inputs.state["queue"]
    classes, capacity, d = queue.shape

    def uncertainty(z: Any) -> float:
        return phi(head, np.array([-log_sum_exp(z + head["log_weights"])]), "phi.")

    means, covariance = queue.mean(1), np.zeros((d, d))
    for k in range(classes):
        for f in queue[k]:
            covariance += np.outer(f - means[k], f - means[k]) / (classes * capacity)
    factor = np.linalg.cholesky(covariance + 1e-4 * np.eye(d))
    outside = []
    for k in range(classes):
        radius = math.sqrt(chi2.ppf(uniforms[k] ** (1 / inputs.parameters["draws"]), d))
        virtual = means[k] + factor @ (radius * normals[k] / np.linalg.norm(normals[k]))
        outside.append(classifier["weight"] @ virtual + classifier["bias"])
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in zip(logits, inputs.labels, strict=True)],
        "uncertainty_in": [math.log(1 + math.exp(uncertainty(z))) for z in logits],
        "uncertainty_out": [math.log(1 + math.exp(-uncertainty(z))) for z in outside],
    }
