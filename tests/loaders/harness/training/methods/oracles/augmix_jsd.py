"""Hendrycks et al. (AugMix), algorithm 1: the first of three views, and their Jensen-Shannon divergence."""

from __future__ import annotations

import math
from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, softmax


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), n = inputs.calls, len(inputs.labels)
    divergences = []
    for i in range(n):
        views = [softmax(logits[view * n + i]) for view in range(3)]
        mean = [sum(p) / 3 for p in zip(*views, strict=True)]
        divergences.append(sum(p * math.log(p / m) for v in views for p, m in zip(v, mean, strict=True)) / 3)
    classes = [cross_entropy(logits[i], inputs.labels[i]) for i in range(n)]
    return {"cross_entropy": classes, "consistency": divergences}
