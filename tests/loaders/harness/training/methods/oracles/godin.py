"""Hsu et al. eq. 5-7 with cosine similarity; g is a batch-normalised linear layer under a sigmoid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head = inputs.calls, inputs.heads["head"]
    assert features is not None
    pairs = zip(features, inputs.labels, strict=True)
    return {"cross_entropy": [cross_entropy(logits_of(head, f), y) for f, y in pairs]}


def logits_of(head: dict[str, Any], f: Any) -> list[float]:
    u = float(head["divisor.0.weight"][0] @ f) + float(head["divisor.0.bias"][0])
    mean, variance = float(head["divisor.1.running_mean"][0]), float(head["divisor.1.running_var"][0])
    u = (u - mean) / math.sqrt(variance + 1e-5)
    u = u * float(head["divisor.1.weight"][0]) + float(head["divisor.1.bias"][0])
    g = 1 / (1 + math.exp(-u))
    return [float(w @ f) / (np.linalg.norm(w) * np.linalg.norm(f)) / g for w in head["weight"]]
