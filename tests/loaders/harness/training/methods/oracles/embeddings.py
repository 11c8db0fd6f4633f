"""Formulas of losses with prototypes, queues and virtual outliers, one image at a time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.stats import chi2

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, log_sum_exp


def embed(head: Mapping[str, Any], f: Any) -> Any:
    hidden = np.maximum(head["projection.0.weight"] @ f + head["projection.0.bias"], 0)
    z = head["projection.2.weight"] @ hidden + head["projection.2.bias"]
    return z / np.sqrt((z * z).sum())


def of_cider(inputs: OracleInputs) -> dict[str, Any]:
    """Ming et al. eq. 5-7 with the moving average of eq. 8, image by image."""
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


def sinkhorn(embeddings: list[Any], prototypes: Any, epsilon: float, iterations: int) -> Any:
    """Weights (n, K, M): equal totals for all prototypes, then a total of 1 for each image, in turn."""
    q = np.array([[math.exp(p @ z / epsilon) for p in prototypes.reshape(-1, len(z))] for z in embeddings])
    for _ in range(iterations):
        q = q / q.sum(0) / q.shape[1]
        q = q / q.sum(1)[:, None] / len(q)
    return (q * len(q)).reshape(len(q), *prototypes.shape[:2])


def of_palm(inputs: OracleInputs) -> dict[str, Any]:
    """Lu et al. as in the authors' code: Sinkhorn's weights, moving averages and both losses."""
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


def phi(head: Mapping[str, Any], x: Any, prefix: str = "") -> float:
    hidden = np.maximum(head[f"{prefix}0.weight"] @ x + head[f"{prefix}0.bias"], 0)
    return float(head[f"{prefix}2.weight"][0] @ hidden + head[f"{prefix}2.bias"][0])


def of_vos(inputs: OracleInputs) -> dict[str, Any]:
    """Du et al.: phi of the weighted energy; a virtual outlier per class at the draws' greatest radius."""
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


def kth(point: Any, points: Any, k: int) -> float:
    return float(np.sort([np.linalg.norm(point - other) for other in points])[k - 1])


def of_npos(inputs: OracleInputs) -> dict[str, Any]:
    """Tao et al.: CIDER's losses, and phi on embeddings and on draws around those far from neighbours."""
    ((features, _),), settings, queue = inputs.calls, inputs.parameters, inputs.state["queue"]
    assert features is not None
    head, (picked, noise), outliers = inputs.heads["phi"], inputs.draws, []
    for members, picks, steps in zip(queue, picked, noise, strict=True):
        k = min(settings["neighbours"], len(members) - 1)
        sparse = sorted(range(len(members)), key=lambda i: -kth(members[i], members, k + 1))
        sparse = sorted(sparse[: settings["boundary"]])
        candidates = [
            members[sparse[p]] + math.sqrt(settings["variance"]) * e
            for p, e in zip(picks, steps, strict=True)
        ]
        far = sorted(range(len(candidates)), key=lambda i: -kth(candidates[i], members, k))
        outliers += [candidates[i] for i in sorted(far[: settings["keep"]])]
    return {
        **of_cider(inputs),
        "open_in": [math.log(1 + math.exp(-phi(head, embed(inputs.heads["head"], f)))) for f in features],
        "open_out": [math.log(1 + math.exp(phi(head, v))) for v in outliers],
    }
