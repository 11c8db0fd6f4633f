"""Formulas of losses of the logits alone, and of mixed or augmented images, one image at a time."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import digamma
from scipy.stats import dirichlet

from loaders.harness.training.audit import OracleInputs

from .formulas import (
    beta,
    cross_entropy,
    left_by_rectangle,
    log_sum_exp,
    mixed_cross_entropy,
    softmax,
    uniform_cross_entropy,
)


def of_softmax(inputs: OracleInputs) -> dict[str, Any]:
    """Cross-entropy."""
    ((_, logits),) = inputs.calls
    return {"cross_entropy": [cross_entropy(z, y) for z, y in zip(logits, inputs.labels, strict=True)]}


def of_background(inputs: OracleInputs) -> dict[str, Any]:
    """Palechor eq. 1, 3 and 4."""
    ((_, logits),) = inputs.calls
    weights, last = inputs.state["weights"], logits.shape[1] - 1
    targets = [last if y == -1 else y for y in inputs.labels]
    return {"cross_entropy": [weights[t] * cross_entropy(z, t) for z, t in zip(logits, targets, strict=True)]}


def of_entropic_open_set(inputs: OracleInputs) -> dict[str, Any]:
    """Palechor eq. 1, 3 and 5."""
    ((_, logits),) = inputs.calls
    pairs = zip(logits, inputs.labels, strict=True)
    return {"cross_entropy": [uniform_cross_entropy(z) if y == -1 else cross_entropy(z, y) for z, y in pairs]}


def of_outlier_exposure(inputs: OracleInputs) -> dict[str, Any]:
    """Hendrycks eq. 1 with the cross-entropy to the uniform distribution."""
    ((_, logits),) = inputs.calls
    pairs = list(zip(logits, inputs.labels, strict=True))
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in pairs if y != -1],
        "uniform": [uniform_cross_entropy(z) for z, y in pairs if y == -1],
    }


def of_energy(inputs: OracleInputs) -> dict[str, Any]:
    """Liu eq. 8-9."""
    ((_, logits),) = inputs.calls
    pairs = list(zip(logits, inputs.labels, strict=True))
    m_in, m_out = inputs.parameters["m_in"], inputs.parameters["m_out"]
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in pairs if y != -1],
        "energy_in": [max(0.0, -log_sum_exp(z) - m_in) ** 2 for z, y in pairs if y != -1],
        "energy_out": [max(0.0, m_out + log_sum_exp(z)) ** 2 for z, y in pairs if y == -1],
    }


def of_logitnorm(inputs: OracleInputs) -> dict[str, Any]:
    """Wei eq. 7."""
    ((_, logits),) = inputs.calls
    tau, values = inputs.parameters["tau"], []
    for z, y in zip(logits, inputs.labels, strict=True):
        norm = sum(v * v for v in z) ** 0.5
        values.append(cross_entropy([v / (norm * tau) for v in z], y))
    return {"cross_entropy": values}


def of_t2fnorm(inputs: OracleInputs) -> dict[str, Any]:
    """Regmi et al.: the classifier on features of norm 1 / tau."""
    ((features, _),), head, values = inputs.calls, inputs.heads["head"], []
    assert features is not None
    for f, y in zip(features, inputs.labels, strict=True):
        norm = sum(v * v for v in f) ** 0.5
        values.append(cross_entropy(head["weight"] @ (f / norm / inputs.parameters["tau"]) + head["bias"], y))
    return {"cross_entropy": values}


def of_label_smoothing(inputs: OracleInputs) -> dict[str, Any]:
    """Szegedy et al., section 7."""
    ((_, logits),), e = inputs.calls, inputs.parameters["smoothing"]
    pairs = zip(logits, inputs.labels, strict=True)
    return {"cross_entropy": [(1 - e) * cross_entropy(z, y) + e * uniform_cross_entropy(z) for z, y in pairs]}


def of_mixup(inputs: OracleInputs) -> dict[str, Any]:
    """Zhang et al. section 2: share x CE(y) + (1 - share) x CE(the partner's y)."""
    ((_, logits),), (partners, seed), labels = inputs.calls, inputs.draws, inputs.labels
    share = beta(int(seed[0]), inputs.parameters["alpha"], inputs.parameters["alpha"])
    values = [mixed_cross_entropy(z, labels[i], labels[partners[i]], share) for i, z in enumerate(logits)]
    return {"cross_entropy": values}


def of_cutmix(inputs: OracleInputs) -> dict[str, Any]:
    """Yun et al. eq. 1-2: as mixup, by the share of the pixels outside the rectangle."""
    ((_, logits),), labels, settings = inputs.calls, inputs.labels, inputs.parameters
    if inputs.draws[0][0] >= settings["probability"]:
        return {"cross_entropy": [cross_entropy(z, y) for z, y in zip(logits, labels, strict=True)]}
    _, partners, seed, centres = inputs.draws
    drawn = beta(int(seed[0]), settings["alpha"], settings["alpha"])
    share = left_by_rectangle(drawn, centres.tolist(), *inputs.images[0].shape[2:])
    values = [mixed_cross_entropy(z, labels[i], labels[partners[i]], share) for i, z in enumerate(logits)]
    return {"cross_entropy": values}


def of_regmixup(inputs: OracleInputs) -> dict[str, Any]:
    """Pinto et al. section 3: the first half of the forward pass as it is, the second mixed."""
    ((_, logits),), (partners, seed), labels = inputs.calls, inputs.draws, inputs.labels
    share, n = beta(int(seed[0]), inputs.parameters["alpha"], inputs.parameters["alpha"]), len(labels)
    return {
        "cross_entropy": [cross_entropy(logits[i], labels[i]) for i in range(n)],
        "mixed": [
            mixed_cross_entropy(logits[n + i], labels[i], labels[partners[i]], share) for i in range(n)
        ],
    }


def of_mixoe(inputs: OracleInputs) -> dict[str, Any]:
    """Zhang et al. (MixOE) section 3: targets share x one-hot + (1 - share) / K."""
    ((_, logits),), settings = inputs.calls, inputs.parameters
    share = beta(int(inputs.draws[0][0]), settings["a"], settings["b"])
    if settings["cut"]:
        share = left_by_rectangle(share, inputs.draws[1].tolist(), *inputs.images[0].shape[2:])
    labels = [y for y in inputs.labels if y != -1]
    plain, mixed = logits[: len(labels)], logits[len(labels) :]
    return {
        "cross_entropy": [cross_entropy(z, y) for z, y in zip(plain, labels, strict=True)],
        "mixed": [
            share * cross_entropy(z, y) + (1 - share) * uniform_cross_entropy(z)
            for z, y in zip(mixed, labels, strict=True)
        ],
    }


def of_augmix_jsd(inputs: OracleInputs) -> dict[str, Any]:
    """Hendrycks et al. (AugMix), algorithm 1: the first of three views, and their divergence."""
    ((_, logits),), n = inputs.calls, len(inputs.labels)
    divergences = []
    for i in range(n):
        views = [softmax(logits[view * n + i]) for view in range(3)]
        mean = [sum(p) / 3 for p in zip(*views, strict=True)]
        divergences.append(sum(p * math.log(p / m) for v in views for p, m in zip(v, mean, strict=True)) / 3)
    classes = [cross_entropy(logits[i], inputs.labels[i]) for i in range(n)]
    return {"cross_entropy": classes, "consistency": divergences}


def of_edl(inputs: OracleInputs) -> dict[str, Any]:
    """Sensoy et al. eq. 3 to 5, and their divergence, in the moments of SciPy's Dirichlet distribution."""
    ((_, logits),), chosen = inputs.calls, inputs.parameters
    evidence = {
        "exp": lambda v: math.exp(min(max(v, -10.0), 10.0)),
        "softplus": lambda v: math.log1p(math.exp(v)),
        "relu": lambda v: max(v, 0.0),
    }[chosen["activation"]]
    likelihood, divergence = [], []
    for z, y in zip(logits, inputs.labels, strict=True):
        alpha = [evidence(v) + 1 for v in z]
        moments, label = dirichlet(alpha), np.eye(len(alpha))[y]
        risks = {
            "log": -math.log(moments.mean()[y]),
            "digamma": float(digamma(sum(alpha)) - digamma(alpha[y])),
            "mse": float(((label - moments.mean()) ** 2 + moments.var()).sum()),
        }
        likelihood.append(risks[chosen["objective"]])
        rest = [1.0 if k == y else a for k, a in enumerate(alpha)]
        total = sum(rest)
        value = math.lgamma(total) - math.lgamma(len(rest)) - sum(math.lgamma(a) for a in rest)
        value += sum((a - 1) * (float(digamma(a)) - float(digamma(total))) for a in rest)
        divergence.append(value)
    return {"likelihood": likelihood, "divergence": divergence}


def of_crl(inputs: OracleInputs) -> dict[str, Any]:
    """Moon et al. eq. 3: pairs of neighbours, the last with the first."""
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


of_randaugment = of_augmix = of_pixmix = of_augmented_copies = of_softmax
of_ish = of_softmax  # `test_features` checks its gradient
