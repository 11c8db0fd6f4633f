"""Formulas of losses of further heads on the features, one image at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from loaders.harness.training.audit import OracleInputs

from .formulas import cross_entropy, softmax, uniform_cross_entropy


def of_confbranch(inputs: OracleInputs) -> dict[str, Any]:
    """DeVries and Taylor eq. 2-6."""
    ((features, logits),), (draws,) = inputs.calls, inputs.draws
    assert features is not None
    weight, bias = inputs.heads["confidence"]["weight"][0], inputs.heads["confidence"]["bias"][0]
    task, doubt = [], []
    for f, z, y, draw in zip(features, logits, inputs.labels, draws[:, 0], strict=True):
        c = 1 / (1 + math.exp(-(float(f @ weight) + bias)))
        hint = c if draw < 0.5 else 1.0
        task.append(-math.log(hint * softmax(z)[y] + (1 - hint)))
        doubt.append(-math.log(c))
    return {"task": task, "confidence": doubt}


def of_godin(inputs: OracleInputs) -> dict[str, Any]:
    """Hsu et al. eq. 5-7 with cosine similarity; g is a batch-normalised linear layer under a sigmoid."""
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


def of_arpl(inputs: OracleInputs) -> dict[str, Any]:
    """Chen et al. eq. 2-9: d = |f - p|^2 / m - f p, its softmax, and max(0, |f - p_y|^2 / m - R + margin)."""
    ((features, _),), head, settings = inputs.calls, inputs.heads["head"], inputs.parameters
    assert features is not None
    classes, space = [], []
    for f, y in zip(features, inputs.labels, strict=True):
        squares = [float(((f - p) ** 2).mean()) for p in head["points"]]
        distances = [d - float(f @ p) for d, p in zip(squares, head["points"], strict=True)]
        classes.append(cross_entropy([d / settings["temperature"] for d in distances], y))
        space.append(max(0.0, squares[y] - float(head["radius"][0]) + settings["margin"]))
    return {"cross_entropy": classes, "open_space": space}


def of_mos(inputs: OracleInputs) -> dict[str, Any]:
    """Huang and Li eq. 3-4: a softmax per group, whose target is the class or, in other groups, "others"."""
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


def entropy(z: Any) -> float:
    return -sum(p * math.log(p) for p in softmax(z))


def of_mcd(inputs: OracleInputs) -> dict[str, Any]:
    """Yu and Aizawa eq. 1-3: two cross-entropies, max(0, margin - mean(H1 - H2)) on outliers."""
    ((features, logits),), head = inputs.calls, inputs.heads["second"]
    assert features is not None
    first, second, missing = [], [], []
    for f, z, y in zip(features, logits, inputs.labels, strict=True):
        other = head["weight"] @ f + head["bias"]
        if y >= 0:
            first.append(cross_entropy(z, y))
            second.append(cross_entropy(other, y))
        else:
            missing.append(inputs.parameters["margin"] - (entropy(z) - entropy(other)))
    return {"first": first, "second": second, "discrepancy": max(0.0, sum(missing) / len(missing))}


def of_rotpred(inputs: OracleInputs) -> dict[str, Any]:
    """Hendrycks et al., section 3: rotations 0, 90, 180, 270 of each image, one rotation after the other."""
    ((features, logits),) = inputs.calls
    assert features is not None
    n = len(inputs.labels)
    weight, bias = inputs.heads["rotation"]["weight"], inputs.heads["rotation"]["bias"]
    task = [cross_entropy(logits[i], inputs.labels[i]) for i in range(n)]
    turned = [cross_entropy(weight @ f + bias, i // n) for i, f in enumerate(features)]
    return {"task": task, "rotation": turned}


def of_csi(inputs: OracleInputs) -> dict[str, Any]:
    """Khosla et al. eq. 2 over two views and four rotations, each pair of embeddings once."""
    ((features, _),) = inputs.calls
    assert features is not None
    head, tau, n = inputs.heads["projection"], inputs.parameters["tau"], len(inputs.labels)
    embeddings, labels = [], []
    for row, f in enumerate(features):  # view by view, in each rotation by rotation
        hidden = np.maximum(head["0.weight"] @ f + head["0.bias"], 0)
        z = head["2.weight"] @ hidden + head["2.bias"]
        embeddings.append(z / np.linalg.norm(z))
        labels.append((inputs.labels[row % n], row // n % 4))
    losses = []
    for i, z in enumerate(embeddings):
        powers = {a: math.exp(float(z @ other) / tau) for a, other in enumerate(embeddings) if a != i}
        positives = [a for a in powers if labels[a] == labels[i]]
        losses.append(-sum(math.log(powers[p] / sum(powers.values())) for p in positives) / len(positives))
    return {"contrastive": losses}


def of_csi_linear(inputs: OracleInputs) -> dict[str, Any]:
    """CSI, appendix A: linear classifiers of K classes, and of 4 K classes with rotations."""
    ((features, _),), n = inputs.calls, len(inputs.labels)
    assert features is not None
    linear, joint = inputs.heads["head"], inputs.heads["joint"]
    plain = [
        cross_entropy(linear["weight"] @ f + linear["bias"], y)
        for f, y in zip(features, inputs.labels, strict=False)
    ]
    turned = [
        cross_entropy(joint["weight"] @ f + joint["bias"], 4 * int(inputs.labels[row % n]) + row // n)
        for row, f in enumerate(features)
    ]
    return {"linear": plain, "joint": turned}


def of_udg(inputs: OracleInputs) -> dict[str, Any]:
    """Yang et al., section 3: labels and clusters of the epoch, by the images' positions."""
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
