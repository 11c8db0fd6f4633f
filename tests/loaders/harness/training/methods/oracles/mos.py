"""Huang and Li eq. 3-4: a softmax per group, whose target is the class or, in other groups, "others"."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((features, _),), head = inputs.calls, inputs.heads["head"]
    assert features is not None
    weight, bias, group = head["outputs.weight"], head["outputs.bias"], head["group"].astype(int)
    count = int(group.max()) + 1
    classes = len(group) - count
    losses = []
    for f, y in zip(features, inputs.labels, strict=True):
        z = weight @ f + bias
        loss = 0.0
        for g in range(count):
            members = [k for k in range(classes) if group[k] == g]
            target = members.index(y) if y in members else len(members)
            loss += cross_entropy([float(z[k]) for k in [*members, classes + g]], target)
        losses.append(loss)
    return {"cross_entropy": losses}
