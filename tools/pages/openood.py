"""OpenOOD v1.5's table 1, CIFAR-100, compared with ours, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy.stats import kendalltau

from wordnet_splits.metrics import bootstrap_indices, interval

from .measured import Key, intervals, means, text_of

V = TypeVar("V")

FOLDER = "openood-cifar100-drawn"
# Table 1, CIFAR-100: near-OOD AUROC, far-OOD AUROC, in percent, means of three runs.
TABLE_1 = {
    "openmax": ("OpenMax", 76.41, 79.48),
    "msp": ("MSP", 80.27, 77.76),
    "tempscale": ("TempScale", 80.90, 78.74),
    "odin": ("ODIN", 79.90, 79.28),
    "mds": ("MDS", 58.69, 69.39),
    "mdsens": ("MDSEns", 46.31, 66.00),
    "rmds": ("RMDS", 80.15, 82.92),
    "gram": ("Gram", 51.66, 73.36),
    "energy": ("EBO", 80.91, 79.77),
    "opengan": ("OpenGAN", 65.98, 67.88),
    "gradnorm": ("GradNorm", 70.13, 69.14),
    "react": ("ReAct", 80.77, 80.39),
    "mls": ("MLS", 81.05, 79.67),
    "klm": ("KLM", 76.56, 76.24),
    "vim": ("VIM", 74.98, 81.70),
    "knn": ("KNN", 80.18, 82.40),
    "dice": ("DICE", 79.38, 80.01),
    "rankfeat": ("RankFeat", 61.88, 67.10),
    "ash": ("ASH", 78.20, 80.58),
    "she": ("SHE", 78.95, 76.92),
}


REPLICATES = 1000


def measured(folder: Path, on: str, metric: str = "auroc") -> Mapping[str, float]:
    """Return a metric of each detector, by the registry's name."""
    return _by_name(means(folder, on), metric)


def bounds(folder: Path, on: str, metric: str = "auroc") -> Mapping[str, tuple[float, float]]:
    """Return the interval of each detector, by the registry's name."""
    return _by_name(intervals(folder, on), metric)


def _by_name(values: Mapping[Key, V], metric: str) -> dict[str, V]:
    return {
        detector.partition("[")[0]: value
        for (_, detector, measured), value in values.items()
        if measured == metric and detector != "(model)"
    }


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield the rows by descending near-OOD AUROC of the paper, the agreement, MNIST and accuracies."""
    folder = results / FOLDER
    near, far = (measured(folder, on) for on in ("(mean) near", "(mean) far"))
    near_bounds, far_bounds = (bounds(folder, on) for on in ("(mean) near", "(mean) far"))
    order = sorted((name for name in TABLE_1 if name in near), key=lambda name: -TABLE_1[name][1])
    places = [sorted(values, key=lambda name: -values[name]) for values in (near, far)]
    yield [
        (
            TABLE_1[name][0],
            f"{TABLE_1[name][1]:.2f}",
            text_of(near[name], near_bounds[name]),
            str(places[0].index(name) + 1),
            f"{TABLE_1[name][2]:.2f}",
            text_of(far[name], far_bounds[name]),
            str(places[1].index(name) + 1),
        )
        for name in order
    ]
    published = {"near": [TABLE_1[name][1] for name in order], "far": [TABLE_1[name][2] for name in order]}
    yield [
        (on, str(len(order)), agreement(published[on], [computed[name] for name in order], on))
        for on, computed in (("near", near), ("far", far))
    ]
    mnist, mnist_bounds = measured(folder, "mnist"), bounds(folder, "mnist")
    yield [
        (TABLE_1[name][0], text_of(mnist[name], mnist_bounds[name]))
        for name in sorted(mnist, key=lambda name: -mnist[name])
    ]
    accuracy = measured(folder, "(pooled) id", "accuracy")
    accuracy_bounds = bounds(folder, "(pooled) id", "accuracy")
    yield [
        (TABLE_1[name][0], text_of(accuracy[name], accuracy_bounds[name]))
        for name in sorted(accuracy, key=lambda name: -accuracy[name])
        if name == "msp" or accuracy[name] != accuracy["msp"]
    ]


def agreement(published: Sequence[float], computed: Sequence[float], name: str) -> str:
    """Return Kendall's tau with its interval: the bootstrap draws methods, not images."""
    replicates = []
    for replicate in range(REPLICATES):
        index = bootstrap_indices(0, name, replicate, len(computed))
        replicates.append(kendalltau([published[n] for n in index], [computed[n] for n in index]).statistic)
    tau = interval(kendalltau(published, computed).statistic, np.array(replicates))
    return f"{tau.value:.2f} ({tau.lo:.2f} to {tau.hi:.2f})"
