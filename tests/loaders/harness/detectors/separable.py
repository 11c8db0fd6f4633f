"""Data on which ID and OOD are told apart by construction: features lit by class against others, faintly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from scipy.special import log_softmax, logsumexp

from loaders.harness.data.arrays import COSINE_SCALE, Array, Arrays, Head
from loaders.harness.detectors import ConfiguredDetector, get_detector
from loaders.harness.evaluation.scoring import Fitted, fit
from loaders.harness.probes.stages import gram_rows

CLASSES, WIDTH = 4, 40
OWN = 6
"""Features that a class lights; those of no class are the last."""
PROBES = tuple((T, eps) for T in (1, 10, 100, 1000) for eps in (0.0014, 0.0028))


def images(n: int, *, seed: int, unknown: bool = False, classes: int = CLASSES, width: int = WIDTH) -> Arrays:
    """Features (n, width), logits (n, classes), labels and ODIN's logits of ID images, or of OOD ones.

    An ID image has features of about 6 in the block of its class, an OOD one about 0.5 in every block and 5
    in some features that no class uses.
    """
    rng = np.random.default_rng(seed)
    labels = np.full(n, -1) if unknown else np.arange(n) % classes
    centres = np.zeros((n, width))
    if unknown:
        centres[:, : OWN * classes] = 0.5
        lit = rng.permuted(
            np.arange(n * (width - OWN * classes)).reshape(n, -1) % (width - OWN * classes), axis=1
        )
        np.put_along_axis(centres, OWN * classes + lit[:, :5], 5.0, axis=1)
    else:
        np.put_along_axis(centres, OWN * labels[:, None] + np.arange(OWN), 6.0, axis=1)
    spread = np.where(centres > 1, 1.0, 0.3)
    spread *= rng.normal(size=(n, width))
    centres += spread
    return arrays_of(np.abs(centres, out=centres), labels, rng, head_of(classes, width))


def head_of(classes: int = CLASSES, width: int = WIDTH) -> Head:
    """The head of `images`: the mean of a class's own features, and a little of all."""
    rng = np.random.default_rng(7)
    weight = 0.01 * rng.normal(size=(classes, width))
    weight[np.arange(classes)[:, None], OWN * np.arange(classes)[:, None] + np.arange(OWN)] += 1 / OWN
    return Head(weight.astype(np.float32), (0.1 * rng.normal(size=classes)).astype(np.float32))


def arrays_of(features: Array, labels: Array, rng: np.random.Generator, head: Head) -> Arrays:
    features = features.astype(np.float32)
    logits = features @ head.weight.T + head.bias
    probes = {
        f"odin[T={T:g},eps={eps:g}]/logits": (
            logits * (1 + 100 * eps) + eps * rng.normal(size=logits.shape)
        ).astype(np.float32)
        for T, eps in PROBES
    }
    passes = log_softmax(logits + 0.3 * rng.normal(size=(9, *logits.shape)), axis=2)
    mean = logsumexp(passes, axis=0) - np.log(len(passes))
    probes["dropout[passes=50]/logits"] = mean.astype(np.float32)
    information = (np.exp(passes) * (passes - mean)).sum(axis=2).mean(axis=0)
    probes["dropout[passes=50]/information"] = information.astype(np.float32)
    probes |= layers_of(features, rng)
    probes |= told(logits)
    probes["rankfeat[of=stages]/logits"] = logits + 0.1 * rng.normal(size=logits.shape)
    return Arrays({"features": features, "logits": logits, "labels": labels.astype(np.int64), **probes})


def told(logits: Array) -> dict[str, Array]:
    """What probes give of zero-shot models and of training methods; words are as near to every image."""
    rng = np.random.default_rng(11)
    words = 4 + 0.3 * rng.normal(size=(len(logits), 100))
    return {
        "cosine/scale": np.full(len(logits), COSINE_SCALE, np.float32),
        "negatives[groups=100,T=1]/log_sums": words.astype(np.float32),
        "method[output=]/value": logits.max(axis=1),
    }


def layers_of(features: Array, rng: np.random.Generator) -> dict[str, Array]:
    """What probes give of two layers: ``late`` is all features, ``early`` some of all and no classes."""
    some = np.r_[0 : features.shape[1] : 7, -4:0]
    found = {}
    for layer, channels in (("early", features[:, some]), ("late", features)):
        rows: dict[str, list[Array]] = {}
        for start in range(0, len(channels), 256):  # the maps of all images would fill the memory
            few = channels[start : start + 256, :, None]
            fading = few * np.array([1, 0.5, 0.25]) + 0.05 * rng.normal(size=(*few.shape[:2], 3))
            maps = torch.from_numpy(fading).float()
            rows.setdefault(f"stages[of=stages,statistic=mean]/{layer}", []).append(maps.mean(2).numpy())
            rows.setdefault(f"stages[of=stages,statistic=sum]/{layer}", []).append(maps.sum(2).numpy())
            if layer == "early":
                rows.setdefault(f"gram[of=stages,powers=5]/{layer}", []).append(gram_rows(maps, 5).numpy())
        found |= {name: np.concatenate(blocks) for name, blocks in rows.items()}
    return found


def reordered(data: Arrays, order: Array) -> Arrays:
    return Arrays({name: view[order] for name, view in data.items()})


def without_step(name: str) -> ConfiguredDetector:
    """Return a detector at values that need no pass through a network; see test_layers for the others."""
    return get_detector(name, **({"eps": 0.0} if name == "mdsens" else {}))


def learned(
    chosen: ConfiguredDetector, splits: Mapping[str, Arrays], head: Head, *, models: int = 2
) -> Fitted:
    """Fit a detector on its splits and calibrate it; one of several models gets no images."""
    if chosen.spec.models == "many":
        return fit(chosen, None, [None] * models)
    data: Any = {split: splits[split] for split in chosen.spec.splits}
    if isinstance(chosen.spec.fit_on, str):
        data = splits[chosen.spec.fit_on]
    fitted = fit(chosen, data or None, head)
    return fitted.calibrated(splits["val"]) if hasattr(fitted.detector, "calibrate") else fitted
