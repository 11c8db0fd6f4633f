"""OpenOOD v1.5's table 1, CIFAR-100, compared with ours, from the committed results."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy.stats import kendalltau

from wordnet_splits.metrics import bootstrap_indices, interval

from .measured import Key, intervals, means, text_of

V = TypeVar("V")

FOLDER = "openood-cifar100-drawn"


def _table_1(benchmark: str) -> dict[str, tuple[str, float, float]]:
    """Return detector -> its name in table 1, near-OOD and far-OOD AUROC in percent, means of three runs."""
    rows = tomllib.loads((Path(__file__).parent / "published.toml").read_text("utf-8"))["openood"]
    near, far = (row["auroc"] for row in rows if row["benchmark"] == benchmark)
    return {{"EBO": "energy"}.get(name, name.lower()): (name, near[name], far[name]) for name in near}


TABLE_1 = _table_1("openood-cifar100")
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
