"""The rows of ``docs/real-networks.parquet``, and the tables of the page that are made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.stats import binomtest, rankdata

from loaders.harness import Results, nearness
from tools.pages.measured import text_of
from wordnet_splits import similarity_matrix
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import ScoreSet, bootstrap, bootstrap_indices, interval

Row = Mapping[str, Any]
ByClass = Sequence[Mapping[str, float]]
"""Of each draw, a value by class."""
KEYS = ("benchmark", "network", "detector", "group", "metric")
FIGURES = ("value", "lo", "hi")
SCHEMA = pa.schema({name: pa.string() for name in KEYS} | {name: pa.float64() for name in FIGURES})
MEASURES = ("mean", "wup_wn")
REPLICATES = 500
BY_DRAW = "energy"
"""Detector whose correlation is shown for each draw and rung."""
CIFAR, *IMAGENET = "cifar-cnn", "squeezenet", "efficientnet-lite0", "efficientnet-lite2"
DRAWS = tuple(f"tiny-{seed}" for seed in range(5))
RUNGS = tuple(f"rung-{number}" for number in range(1, 6))
TABLES = (
    ("openood-cifar10-drawn", (CIFAR,), ("cifar100", "tin", "mnist", "textures")),
    ("cifar10-half", (CIFAR,), ("cifar100", "tin", "textures")),
    ("cifar10-few", (CIFAR,), ("cifar100",)),
    ("tiny-0", tuple(IMAGENET), ("(pooled)",)),
    ("tiny-few", tuple(IMAGENET), ("(pooled)",)),
)
"""(benchmark, networks, sets) of the tables by detector."""


def accuracy_row(benchmark: str, network: str, correct: int, images: int) -> Row:
    """Return the row of a network's accuracy, with Wilson's interval."""
    bounds = binomtest(correct, images).proportion_ci(method="wilson")
    key = (benchmark, network, "(model)", "(pooled)", "accuracy")
    return _row(key, (correct / images, bounds.low, bounds.high))


def result_rows(benchmark: str, network: str, results: Results) -> Iterator[Row]:
    """Yield accuracy, and the AUROC of each OOD set and of all pooled, with intervals over images."""
    images = results.scores.select(["group", "role"]).to_pylist()
    roles = {row["group"]: row["role"] for row in images}
    groups = np.array([row["group"] for row in images])
    (accuracy,) = results.rows(metric="accuracy", detector="msp", group="(pooled)", role="id")
    yield accuracy_row(benchmark, network, round(accuracy["value"] * accuracy["n_id"]), accuracy["n_id"])
    for detector in results.detectors:
        scores = results.scores[f"{detector}/0"].to_numpy()
        sets = {name: ScoreSet(name, role, scores[groups == name]) for name, role in roles.items()}
        known, unknown = ([each for each in sets.values() if each.is_id is side] for side in (True, False))
        for name, chosen in {**{each.name: [each] for each in unknown}, "(pooled)": unknown}.items():
            found = bootstrap([*known, *chosen], ["auroc"], replicates=REPLICATES)["auroc"]
            yield _row((benchmark, network, detector, name, "auroc"), found)


def correlation_rows(network: str, draws: Sequence[tuple[Results, Manifest]]) -> Iterator[Row]:
    """Yield Spearman's rho of nearness and AUROC over near classes: of each draw, and the mean over draws.

    The interval of a mean is a bootstrap over classes. A replicate draws the classes once for all draws of
    known classes, since a class is near in several.
    """
    aurocs: dict[str, list[dict[str, float]]] = {}
    nearest: dict[str, list[dict[str, float]]] = {measure: [] for measure in MEASURES}
    for results, manifest in draws:
        for each in nearness(
            results, detectors=[BY_DRAW], benchmark=manifest, bootstrap=REPLICATES
        ).correlations:
            if each.measure in MEASURES and each.to == "nearest":
                key = (results.about.benchmark, network, each.detector, "near", f"rho_{each.measure}")
                yield _row(key, (each.rho, each.lo, each.hi))
        of_draw: dict[str, dict[str, float]] = {}
        for row in results.by_class.to_pylist():
            of_draw.setdefault(row["detector"], {})[row["class_id"]] = row["auroc"]
        for detector, by_class in of_draw.items():
            aurocs.setdefault(detector, []).append(by_class)
        near = sorted(next(iter(of_draw.values())))
        known = [row["class_id"] for row in manifest.classes.to_pylist() if row["role"] == "id"]
        for measure in MEASURES:  # class ids of Tiny ImageNet are wnids
            similarity = similarity_matrix(measure, near, known).max(axis=1)
            nearest[measure].append(dict(zip(near, map(float, similarity), strict=True)))
    for detector, by_draw in aurocs.items():
        for measure in MEASURES if len(by_draw) == len(DRAWS) else ():
            key = ("tiny", network, detector, "near", f"rho_{measure}")
            yield _row(key, mean_rho(nearest[measure], by_draw))


def mean_rho(a: ByClass, b: ByClass) -> tuple[float, float, float]:
    """Return Spearman's rho of two values by class, mean over draws, with its interval over classes."""
    every = sorted(set().union(*a))
    pairs = zip(a, b, strict=True)
    samples = [np.array([[of.get(name, np.nan) for name in every] for of in pair]) for pair in pairs]
    indices = [np.arange(len(every))]
    indices += [bootstrap_indices(0, "classes", number, len(every)) for number in range(REPLICATES)]
    rhos = []
    for chosen in indices:
        drawn = [sample[:, chosen] for sample in samples]
        ranks = [rankdata(values[:, ~np.isnan(values).any(axis=0)], axis=1) for values in drawn]
        rhos.append(np.mean([np.corrcoef(pair)[0, 1] for pair in ranks]))
    value, lo, hi = interval(float(rhos[0]), np.array(rhos[1:]))
    return value, lo, hi


def _row(key: Sequence[str], figures: Sequence[float | None]) -> dict[str, Any]:
    return dict(zip((*KEYS, *FIGURES), (*key, *figures), strict=True))


def tables(table: pa.Table) -> Iterator[list[tuple[str, ...]]]:
    """Yield the tables of the page in order, detectors by their mean AUROC, the highest first."""
    rows = {
        tuple(row[key] for key in KEYS): tuple(row[name] for name in FIGURES) for row in table.to_pylist()
    }

    def text(*key: str, factor: float = 100) -> str:
        value, lo, hi = (factor * figure for figure in rows[key]) if key in rows else (None, None, None)
        return "-" if value is None else text_of(value, (lo, hi))

    def detectors(benchmark: str, group: str, metric: str) -> list[str]:
        found: dict[str, list[float]] = {}
        for key, figures in rows.items():
            if (key[0], key[3], key[4]) == (benchmark, group, metric):
                found.setdefault(key[2], []).append(figures[0])
        return sorted(found, key=lambda name: -np.mean(found[name]))

    accuracy = ("(model)", "(pooled)", "accuracy")
    here = {CIFAR: "openood-cifar10-drawn"}
    yield [
        (name, text("check", name, *accuracy), text(here.get(name, "tiny-0"), name, *accuracy))
        for name in (CIFAR, *IMAGENET)
    ]
    for benchmark, networks, groups in TABLES:
        places = [(network, group) for network in networks for group in groups]
        yield [
            (name, *(text(benchmark, network, name, group, "auroc") for network, group in places))
            for name in detectors(benchmark, groups[0], "auroc")
        ]
    yield [(rung, *(text("tiny-0", name, BY_DRAW, rung, "auroc") for name in IMAGENET)) for rung in RUNGS]
    for metric in (f"rho_{measure}" for measure in MEASURES):
        yield [
            (name, *(text("tiny", network, name, "near", metric, factor=1) for network in IMAGENET))
            for name in reversed(detectors("tiny", "near", metric))
        ]
    yield [
        (draw, *(text(draw, network, BY_DRAW, "near", "rho_wup_wn", factor=1) for network in IMAGENET))
        for draw in DRAWS
    ]
