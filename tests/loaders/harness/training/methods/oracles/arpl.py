"""Chen et al. eq. 2-9: d = |f - p|^2 / m - f p, its softmax, and max(0, |f - p_y|^2 / m - R + margin)."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head, settings = inputs.calls, inputs.heads["head"], inputs.parameters
    assert features is not None
    classes, space = [], []
    for f, y in zip(features, inputs.labels, strict=True):
        squares = [float(((f - p) ** 2).mean()) for p in head["points"]]
        distances = [d - float(f @ p) for d, p in zip(squares, head["points"], strict=True)]
        classes.append(cross_entropy([d / settings["temperature"] for d in distances], y))
        space.append(max(0.0, squares[y] - float(head["radius"][0]) + settings["margin"]))
    return {"cross_entropy": classes, "open_space": space}
