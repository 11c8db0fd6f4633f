"""Detectors of stored features and logits, each with its sweep, against pytorch-ood computing the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import torch
from pytorch_ood import detector as theirs

from loaders.harness.arrays import Array, Arrays, Head
from loaders.harness.detectors import ConfiguredDetector, get_detector
from loaders.harness.evaluation.fitting import group_by_fit, sweep_grid
from loaders.harness.evaluation.scoring import Fitted, confidences, fit

from .rows import Row, fastest

IMAGES, LEARN, WIDTH, CLASSES = 50_000, 10_000, 512, 100
FEW = {"openmax": 1}
"""Of how many of its values: pytorch-ood's OpenMax goes image by image, for many minutes."""
MINIMUM, GEOMETRIC_MEAN = 1.0, 5.0
PAIRS, LONG = 3, 20.0
"""How often both are timed, in turns; once where that takes more than so many seconds."""


class Data(NamedTuple):
    """Arrays to learn from and to score, the head, and the same as tensors."""

    learn: Arrays
    seen: Arrays
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

    learn, seen = arrays(LEARN), arrays(IMAGES)
    linear = torch.nn.Linear(WIDTH, CLASSES)
    linear.weight.data, linear.bias.data = torch.from_numpy(head.weight), torch.from_numpy(head.bias)
    tensors = {
        f"{name}/{key}": torch.from_numpy(np.asarray(data[key]))
        for name, data in (("learn", learn), ("seen", seen))
        for key in ("features", "logits", "labels")
    }
    return Data(learn, seen, head, linear.eval(), tensors)


def _logits(kind: Any) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        made = kind(None, **params)
        if made.requires_fit:
            made.fit_logits(data.tensors["learn/logits"], data.tensors["learn/labels"])
        return made.predict_logits(data.tensors["seen/logits"])

    return work


def _features(kind: Any, *given: str) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        parts = {"head": data.linear, "w": data.linear.weight.data, "b": data.linear.bias.data}
        made = kind(None, **{name: parts[name] for name in given}, **params)
        made.fit_features(data.tensors["learn/features"], data.tensors["learn/labels"])
        return torch.cat([made.predict_features(part) for part in data.tensors["seen/features"].split(1024)])

    return work


def _maps(kind: Any) -> Callable[[Data, dict[str, Any]], Any]:
    def work(data: Data, params: dict[str, Any]) -> Any:
        made = kind(None, lambda x: data.linear(x.flatten(1)), **params)
        if made.requires_fit:
            made.fit_feature_maps(
                data.tensors["learn/features"][:, :, None, None], data.tensors["learn/labels"]
            )
        return made.predict_feature_maps(data.tensors["seen/features"][:, :, None, None])

    return work


def _fraction(name: str, own: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda params: {name: params[own] / 100}


def _same(*names: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda params: {name: params[name] for name in names}


def _none(params: dict[str, Any]) -> dict[str, Any]:
    return {}


PEERS: dict[str, tuple[Callable[[Data, dict[str, Any]], Any], Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "msp": (_logits(theirs.MaxSoftmax), _none),
    "mls": (_logits(theirs.MaxLogit), _none),
    "entropy": (_logits(theirs.Entropy), _none),
    "energy": (_logits(theirs.EnergyBased), lambda p: {"t": p["T"]}),
    "ts": (_logits(theirs.MaxSoftmax), lambda p: {"t": p["T"]}),
    "gen": (_logits(theirs.GEN), _same("gamma", "M")),
    "klm": (_logits(theirs.KLMatching), _none),
    "openmax": (_logits(theirs.OpenMax), lambda p: {"alpha": p["alpha"], "tailsize": p["tail"]}),
    "mahalanobis": (_features(theirs.Mahalanobis), _none),
    "rmds": (_features(theirs.RMD), _none),
    "knn": (_features(theirs.KNN), _same("k")),
    "nnguide": (_features(theirs.NNGuide, "head"), _same("k")),
    "she": (_features(theirs.SHE, "head"), _none),
    "fdbd": (_features(theirs.fDBD, "head"), _none),
    "nci": (_features(theirs.NCI, "head"), _same("alpha")),
    "vim": (_features(theirs.ViM, "w", "b"), lambda p: {"d": p["dim"]}),
    "dice": (_features(theirs.DICE, "w", "b"), _fraction("p", "p")),
    "react": (_maps(theirs.ReAct), _fraction("percentile", "percentile")),
    "ash": (_maps(theirs.ASH), lambda p: {"percentile": p["percentile"] / 100, "variant": "ash-b"}),
    "scale": (_maps(theirs.SCALE), _fraction("percentile", "percentile")),
}
"""Detector -> pytorch-ood's over the same arrays, and our parameters as its own."""


def sweep(grid: list[ConfiguredDetector], data: Data) -> dict[int, Array]:
    """Fit and score every value as a sweep on validation images does: by number, what is shared once."""
    states: dict[Any, Any] = {}
    found: dict[int, Array] = {}
    for numbers in group_by_fit(grid):
        several = []
        for one in (grid[i] for i in numbers):
            if one.fit_key not in states:
                states[one.fit_key] = fit(one, data.learn, data.head).state
            several.append(Fitted(one, one.detector, states[one.fit_key]))
        found.update(zip(numbers, confidences(several, data.seen), strict=True))
    return found


def run(names: tuple[str, ...] = tuple(PEERS)) -> list[Row]:
    """Measure each detector with every value of its sweep, fitting included."""
    data = _data()
    rows = []
    for name in names:
        work, translated = PEERS[name]
        chosen = get_detector(name)
        grid = list(sweep_grid(chosen))[: FEW.get(name)]

        def ours(grid: Any = grid) -> Any:
            return sweep(grid, data)

        def other(grid: Any = grid, work: Any = work, translated: Any = translated) -> list[Any]:
            with torch.no_grad():
                return [work(data, translated(dict(one.params))) for one in grid]

        rows.append(_row(f"{name}, {len(grid)} of its values", ours, other))
    ratios = [row.ratio for row in rows if row.ratio]
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    total = f"geometric mean of {len(rows)} detectors"
    rows.append(Row(total, "", "", mean, f">= {GEOMETRIC_MEAN:g} x", mean >= GEOMETRIC_MEAN))
    return rows


def _row(name: str, ours: Callable[[], object], peer: Callable[[], object]) -> Row:
    """Time both in turns: the least time of each, and the median ratio."""
    pairs = [(fastest(ours, 1), fastest(peer, 1))]
    while len(pairs) < PAIRS and sum(map(sum, pairs)) < LONG:
        pairs.append((fastest(ours, 1), fastest(peer, 1)))
    ratio = median(theirs / mine for mine, theirs in pairs)
    mine, theirs = (min(times) for times in zip(*pairs, strict=True))
    return Row(
        name, f"{mine:.3f} s", f"pytorch-ood {theirs:.3f} s", ratio, f">= {MINIMUM:g} x", ratio >= MINIMUM
    )
