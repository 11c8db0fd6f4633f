"""Formulas that several papers share, one image at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def softmax(logits: Sequence[float]) -> list[float]:
    greatest = max(logits)
    powers = [math.exp(z - greatest) for z in logits]
    return [p / sum(powers) for p in powers]


def cross_entropy(logits: Sequence[float], label: int) -> float:
    return -math.log(softmax(logits)[label])


def log_sum_exp(logits: Sequence[float]) -> float:
    greatest = max(logits)
    return greatest + math.log(sum(math.exp(z - greatest) for z in logits))


def uniform_cross_entropy(logits: Sequence[float]) -> float:
    return sum(cross_entropy(logits, k) for k in range(len(logits))) / len(logits)


def beta(seed: int, a: float, b: float) -> float:
    return float(np.random.default_rng(seed).beta(a, b))


def left_by_rectangle(share: float, centres: Sequence[float], h: int, w: int) -> float:
    """Share of the pixels outside a rectangle of sides sqrt(1 - share), counted (CutMix, eq. 2)."""
    half = math.sqrt(1 - share) / 2
    inside = 0
    for y in range(h):
        for x in range(w):
            ends = [
                (int(n * (c - half)) if c > half else 0, int(n * (c + half)))
                for n, c in zip((h, w), centres, strict=True)
            ]
            inside += ends[0][0] <= y < ends[0][1] and ends[1][0] <= x < ends[1][1]
    return 1 - inside / (h * w)


def mixed_cross_entropy(logits: Sequence[float], first: int, second: int, share: float) -> float:
    return share * cross_entropy(logits, first) + (1 - share) * cross_entropy(logits, second)
