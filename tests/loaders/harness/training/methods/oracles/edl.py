"""Sensoy et al. eq. 3 and 6, alpha = exp(z) + 1."""

from __future__ import annotations

import math
from typing import Any

from scipy.special import digamma

from loaders.harness.training.audit import OracleInputs


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),) = inputs.calls
    likelihood, divergence = [], []
    for z, y in zip(logits, inputs.labels, strict=True):
        alpha = [math.exp(min(max(v, -10.0), 10.0)) + 1 for v in z]
        likelihood.append(math.log(sum(alpha)) - math.log(alpha[y]))
        rest = [1.0 if k == y else a for k, a in enumerate(alpha)]
        total = sum(rest)
        value = math.lgamma(total) - math.lgamma(len(rest)) - sum(math.lgamma(a) for a in rest)
        value += sum((a - 1) * (float(digamma(a)) - float(digamma(total))) for a in rest)
        divergence.append(value)
    return {"likelihood": likelihood, "divergence": divergence}
