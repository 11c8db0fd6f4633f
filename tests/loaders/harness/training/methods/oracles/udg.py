"""Yang et al., section 3: labels and clusters of the epoch, by the images' positions."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, uniform_cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, logits),), head, state = inputs.calls, inputs.heads["cluster"], inputs.state
    assert features is not None
    classes, uniform, clusters = [], [], []
    for f, z, i in zip(features, logits, inputs.index, strict=True):
        if state["labels"][i] >= 0:
            classes.append(cross_entropy(z, state["labels"][i]))
        else:
            uniform.append(uniform_cross_entropy(z))
        clusters.append(cross_entropy(head["weight"] @ f + head["bias"], state["clusters"][i]))
    return {"cross_entropy": classes, "uniform": uniform, "cluster": clusters}
