"""Data on which ID and OOD are told apart by construction: clusters on axes against points between them."""

from __future__ import annotations

import numpy as np

from loaders.harness.arrays import Array, Arrays

CLASSES, WIDTH = 4, 6
PROBES = tuple((T, eps) for T in (1, 10, 100, 1000) for eps in (0.0014, 0.0028))


def images(n: int, *, seed: int, unknown: bool = False) -> Arrays:
    """Features (n, 6), logits (n, 4), labels and ODIN's logits of ID images, or of OOD ones between them."""
    rng = np.random.default_rng(seed)
    labels = np.full(n, -1) if unknown else np.arange(n) % CLASSES
    centres = np.zeros((CLASSES + 1, WIDTH))
    centres[:CLASSES, :CLASSES] = 6 * np.eye(CLASSES)
    centres[-1, :CLASSES] = 1.5  # as far from every class
    features = centres[labels] + rng.normal(0, 1, (n, WIDTH))
    return arrays_of(features, labels, rng)


def arrays_of(features: Array, labels: Array, rng: np.random.Generator) -> Arrays:
    weights = np.concatenate([np.eye(CLASSES), 0.1 * np.ones((WIDTH - CLASSES, CLASSES))])
    logits = features @ weights
    probes = {
        f"odin[T={T:g},eps={eps:g}]/logits": (
            logits * (1 + 100 * eps) + eps * rng.normal(size=logits.shape)
        ).astype(np.float32)
        for T, eps in PROBES
    }
    return Arrays(
        {
            "features": features.astype(np.float32),
            "logits": logits.astype(np.float32),
            "labels": labels.astype(np.int64),
            **probes,
        }
    )


def reordered(data: Arrays, order: Array) -> Arrays:
    return Arrays({name: view[order] for name, view in data.items()})
