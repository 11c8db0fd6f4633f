"""Moon et al. eq. 3: pairs of neighbours, the last with the first."""

from __future__ import annotations

from typing import Any

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, softmax


def oracle(inputs: OracleInputs) -> dict[str, Any]:
    ((_, logits),), state = inputs.calls, inputs.state
    sure = [max(softmax(z)) for z in logits]
    past = [state["correct"][i] / max(state["passes"][i], 1) for i in inputs.index]
    ranking = []
    for i in range(len(logits)):
        j = (i + 1) % len(logits)
        sign = int(past[i] > past[j]) - int(past[i] < past[j])
        ranking.append(max(0.0, -sign * (sure[i] - sure[j]) + abs(past[i] - past[j])))
    classes = [cross_entropy(z, y) for z, y in zip(logits, inputs.labels, strict=True)]
    return {"cross_entropy": classes, "ranking": ranking}
