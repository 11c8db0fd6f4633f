"""Detectors on stored features and logits, each with its sweep, against the same in pytorch-ood."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch
from pytorch_ood import detector as pytorch_ood

from loaders.harness.data.arrays import Array, Arrays, Head
from loaders.harness.detectors import ConfiguredDetector, get_detector
from loaders.harness.evaluation.fitting import group_by_fit, sweep_grid
from loaders.harness.evaluation.scoring import Fitted, confidences, fit
from tools.benchmarks.rows import Pair, Row, compare

IMAGES, LEARN, WIDTH, CLASSES = 25_000, 10_000, 512, 100
PEER_VALUES = 1
"""Number of values of a sweep that pytorch-ood computes; its time for the rest is extrapolated."""
SINGLE_VALUE = {"openmax"}
"""Detectors measured at a single value: pytorch-ood's OpenMax takes minutes, image by image."""
MINIMUM, GEOMETRIC_MEAN = 1.0, 5.0
ROUNDS, MAX_SECONDS = 15, 5.0
"""Most rounds of a close comparison; no round begins after this many seconds."""


class Data(NamedTuple):
    """Arrays to fit and to score, the head, and the same as tensors."""

    learn: Arrays
    test: Arrays
    head: Head
    linear: Any
    tensors: dict[str, Any]


def _data() -> Data:
    rng = np.random.default_rng(0)
    centres = rng.exponential(1.0, (CLASSES, WIDTH)).astype(np.float32)
    head = Head(
        rng.normal(0, 0.05, (CLASSES, WIDTH)).astype(np.float32) + centres / 40, np.zeros(CLASSES, np.float32)
    )

    def arrays(n: int) -> Arrays:
        labels = np.arange(n) % CLASSES
        features = np.maximum(centres[labels] + rng.normal(0, 0.5, (n, WIDTH)).astype(np.float32), 0)
        return Arrays.of(features=features, logits=features @ head.weight.T + head.bias, labels=labels)

    learn, test = arrays(LEARN), arrays(IMAGES)
    linear = torch.nn.Linear(WIDTH, CLASSES)
    linear.weight.data, linear.bias.data = torch.from_numpy(head.weight), torch.from_numpy(head.bias)
    tensors = {
        f"{name}/{key}": torch.from_numpy(np.asarray(data[key]))
        for name, data in (("learn", learn), ("test", test))
        for key in ("features", "logits", "labels")
    }
    return Data(learn, test, head, linear.eval(), tensors)


def _logits(kind: Any) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        detector = kind(None, **params)
        if detector.requires_fit:
            detector.fit_logits(data.tensors["learn/logits"], data.tensors["learn/labels"])
        return detector.predict_logits(data.tensors["test/logits"])

    return work


def _features(kind: Any, *head_arguments: str) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        parts = {"head": data.linear, "w": data.linear.weight.data, "b": data.linear.bias.data}
        detector = kind(None, **{name: parts[name] for name in head_arguments}, **params)
        detector.fit_features(data.tensors["learn/features"], data.tensors["learn/labels"])
        batches = data.tensors["test/features"].split(1024)
        return torch.cat([detector.predict_features(batch) for batch in batches])

    return work


def _maps(kind: Any) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        detector = kind(None, lambda x: data.linear(x.flatten(1)), **params)
        if detector.requires_fit:
            detector.fit_feature_maps(
                data.tensors["learn/features"][:, :, None, None], data.tensors["learn/labels"]
            )
        return detector.predict_feature_maps(data.tensors["test/features"][:, :, None, None])

    return work


def _fraction(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda params: {name: params[name] / 100}


def _same(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda params: {name: params[name] for name in names}


def _none(params: dict[str, Any]) -> dict[str, Any]:
    return {}


PEERS: dict[str, tuple[Callable[[Data, dict[str, Any]], Any], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "msp": (_logits(pytorch_ood.MaxSoftmax), _none),
    "mls": (_logits(pytorch_ood.MaxLogit), _none),
    "entropy": (_logits(pytorch_ood.Entropy), _none),
    "energy": (_logits(pytorch_ood.EnergyBased), lambda p: {"t": p["T"]}),
    "ts": (_logits(pytorch_ood.MaxSoftmax), lambda p: {"t": p["T"]}),
    "gen": (_logits(pytorch_ood.GEN), _same("gamma", "M")),
    "klm": (_logits(pytorch_ood.KLMatching), _none),
    "openmax": (_logits(pytorch_ood.OpenMax), lambda p: {"alpha": p["alpha"], "tailsize": p["tail"]}),
    "mahalanobis": (_features(pytorch_ood.Mahalanobis), _none),
    "rmds": (_features(pytorch_ood.RMD), _none),
    "knn": (_features(pytorch_ood.KNN), _same("k")),
    "nnguide": (_features(pytorch_ood.NNGuide, "head"), _same("k")),
    "she": (_features(pytorch_ood.SHE, "head"), _none),
    "fdbd": (_features(pytorch_ood.fDBD, "head"), _none),
    "nci": (_features(pytorch_ood.NCI, "head"), _same("alpha")),
    "vim": (_features(pytorch_ood.ViM, "w", "b"), lambda p: {"d": p["dim"]}),
    "dice": (_features(pytorch_ood.DICE, "w", "b"), _fraction("p")),
    "react": (_maps(pytorch_ood.ReAct), _fraction("percentile")),
    "ash": (_maps(pytorch_ood.ASH), lambda p: {"percentile": p["percentile"] / 100, "variant": "ash-b"}),
    "scale": (_maps(pytorch_ood.SCALE), _fraction("percentile")),
}
"""Detector -> pytorch-ood's on the same arrays, and its parameters from ours."""


def sweep(grid: list[ConfiguredDetector], data: Data) -> dict[int, Array]:
    """Fit and score every value as a sweep on validation images does, with shared computations done once."""
    states: dict[Any, Any] = {}
    scores: dict[int, Array] = {}
    for numbers in group_by_fit(grid):
        fitted = []
        for detector in (grid[i] for i in numbers):
            if detector.fit_key not in states:
                states[detector.fit_key] = fit(detector, data.learn, data.head).state
            fitted.append(Fitted(detector, detector.detector, states[detector.fit_key]))
        scores.update(zip(numbers, confidences(fitted, data.test), strict=True))
    return scores


def run(names: tuple[str, ...] = tuple(PEERS)) -> list[Row]:
    """Measure each detector with every value of its sweep, fitting included."""
    data = _data()
    rows = []
    for name in names:
        work, translate = PEERS[name]
        grid = list(sweep_grid(get_detector(name)))
        if name in SINGLE_VALUE:
            grid = grid[:1]
        peer_grid = [grid[i] for i in range(min(PEER_VALUES, len(grid)))]

        def ours(grid: Any = grid) -> Any:
            return sweep(grid, data)

        def peer(grid: Any = peer_grid, work: Any = work, translate: Any = translate) -> list[Any]:
            with torch.no_grad():
                return [work(data, translate(dict(detector.params))) for detector in grid]

        factor = len(grid) / len(peer_grid)
        rows.append(
            _row(
                f"{name}, {len(grid)} of its values",
                compare(ours, peer, ROUNDS, max_seconds=MAX_SECONDS),
                factor,
            )
        )
    ratios = [row.ratio for row in rows if row.ratio]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    total = f"geometric mean of {len(rows)} detectors"
    rows.append(Row(total, "", "", mean, f">= {GEOMETRIC_MEAN:g} x", mean >= GEOMETRIC_MEAN))
    return rows


def _row(name: str, pair: Pair, factor: float) -> Row:
    """Return the row of a detector; ``factor`` extrapolates the peer's time to the whole sweep."""
    ratio, peer = pair.ratio * factor, f"pytorch-ood {pair.peer * factor:.3f} s"
    return Row(name, f"{pair.ours:.3f} s", peer, ratio, f">= {MINIMUM:g} x", ratio >= MINIMUM)
