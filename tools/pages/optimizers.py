"""Table 6 of Abdelzad et al. compared with the committed results, and the conventions of FPR95."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from scipy import stats

from tools.facts.abdelzad import TABLE_6
from wordnet_splits.metrics import robustness

from .measured import means, runs

FOLDERS = {"MNIST": "optimizers-mnist-small", "Fashion-MNIST": "optimizers-fashion-small"}
DETECTORS = {  # in the order of the paper's tables
    "msp_float32": "max-softmax",
    "ts[T=1000]": "ODIN",
    "mahalanobis[on=logits]": "MD",
    "entropy": "Entropy",
    "margin": "Margin",
    "mc_dropout[passes=5]": "MC-D",
    "mutual_information[passes=5]": "MI",
}
OPTIMIZERS = ("Adam", "RMSprop", "Adamax", "Nadam", "SGD", "Adagrad", "Adadelta")
SETS = {
    "fashion-mnist": "Fashion-MNIST",
    "mnist": "MNIST",
    "omniglot": "Omniglot",
    "gaussian": "Gaussian",
    "uniform": "uniform",
}
Row = tuple[str, ...]
FPR95_PAPER = "fpr95_ood_positive_interpolated"
FPR95 = {
    "OOD positive, interpolated": FPR95_PAPER,
    "OOD positive": "fpr95_ood_positive",
    "ID positive, interpolated": "fpr95_id_positive_interpolated",
    "ID positive": "fpr95_id_positive",
}


def optimizer(model: str) -> str:
    """Return the paper's name for a model."""
    (name,) = (name for name in OPTIMIZERS if f"-{name.lower()}-" in model)
    return name


def conventions(results: Path) -> Iterator[Row]:
    """FPR95 of each detector on Fashion-MNIST, plain means of all runs, by orientation and interpolation."""
    for detector, title in DETECTORS.items():
        rates = {
            metric: np.array(
                list(_by_optimizer(results / FOLDERS["MNIST"], "fashion-mnist", detector, metric).values())
            )
            for metric in FPR95.values()
        }
        orientation = rates["fpr95_id_positive_interpolated"] - rates[FPR95_PAPER]
        cut = max(
            np.abs(rates[f"{metric}_interpolated"] - rates[metric]).max()
            for metric in ("fpr95_ood_positive", "fpr95_id_positive")
        )
        by_optimizer = orientation.mean(axis=1)
        half = stats.t.ppf(0.975, len(by_optimizer) - 1) * stats.sem(by_optimizer)
        mean = by_optimizer.mean()
        yield (
            title,
            *(f"{values.mean():.2f}" for values in rates.values()),
            f"{mean:.2f} ({mean - half:.2f} to {mean + half:.2f})",
            f"{cut:.2f}",
        )


def _by_optimizer(folder: Path, group: str, detector: str, metric: str) -> dict[str, list[float]]:
    by_name = {
        optimizer(model): values
        for (model, of, measured), values in runs(folder, group).items()
        if (of, measured) == (detector, metric)
    }
    return {name: by_name[name] for name in OPTIMIZERS}


def table_6(results: Path) -> Iterator[Row]:
    """The most robust detector of each ID and OOD set by FPR95 of each orientation and interpolation."""
    for trained, folder in FOLDERS.items():
        for group, published in TABLE_6[trained].items():
            key = next(name for name, title in SETS.items() if title == group)
            best = (most_robust(results / folder, key, metric) for metric in FPR95.values())
            yield (trained, group, published, *best)


def most_robust(folder: Path, group: str, metric: str) -> str:
    """Return the detector whose score over optimizers is lowest, by its name in the paper."""
    scores = {
        title: robustness(
            list(_by_optimizer(folder, group, detector, metric).values()), higher_is_better=False
        ).score
        for detector, title in DETECTORS.items()
    }
    return min(scores, key=lambda title: scores[title])


def agreement(results: Path) -> Iterator[Row]:
    """Numbers of cells of table 6 that agree with the paper, and that agree between conventions."""
    rows = list(table_6(results))
    of = {"the paper": [row[2] for row in rows]}
    of |= {name: [row[3 + n] for row in rows] for n, name in enumerate(FPR95)}
    pairs = (
        ("OOD positive, interpolated", "the paper"),
        ("OOD positive, interpolated", "OOD positive"),
        ("ID positive, interpolated", "ID positive"),
        ("OOD positive, interpolated", "ID positive, interpolated"),
    )
    for a, b in pairs:
        same = sum(cell == cell_b for cell, cell_b in zip(of[a], of[b], strict=True))
        share = stats.binomtest(same, len(rows)).proportion_ci()
        interval = f"{100 * share.low:.0f} to {100 * share.high:.0f}"
        yield (a, b, f"{same} of {len(rows)}", interval)


def accuracies(results: Path) -> Iterator[Row]:
    """Accuracy on ID test images by optimizer, mean of the runs, in percent."""
    each = [means(results / folder, "(pooled) id") for folder in FOLDERS.values()]
    for name in OPTIMIZERS:
        accuracy = [
            next(
                value
                for (model, _, metric), value in values.items()
                if metric == "accuracy" and optimizer(model) == name
            )
            for values in each
        ]
        yield (name, *(f"{value:.2f}" for value in accuracy))


def tables(results: Path) -> Iterator[Iterable[Row]]:
    """Yield the accuracies, the conventions, table 6, and the agreement of its columns."""
    yield from (accuracies(results), conventions(results), table_6(results), agreement(results))
