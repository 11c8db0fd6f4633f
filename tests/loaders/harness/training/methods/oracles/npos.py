"""Tao et al.: CIDER's losses, and phi on embeddings and on draws around those far from their neighbours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs

from .cider import embed
from .cider import oracle as cider
from .vos import phi


def kth(point: Any, points: Any, k: int) -> float:
    return float(np.sort([np.linalg.norm(point - other) for other in points])[k - 1])


def oracle(inputs: OracleInputs) -> dict[str, Any]:
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
        **cider(inputs),
        "open_in": [math.log(1 + math.exp(-phi(head, embed(inputs.heads["head"], f)))) for f in features],
        "open_out": [math.log(1 + math.exp(phi(head, v))) for v in outliers],
    }
