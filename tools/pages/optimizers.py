"""Abdelzad et al.'s tables 4, 5, 6, 9 and 10 beside ours, and what they rest on, from committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from loaders.harness import compare
from tools.facts.abdelzad import TABLE_4, TABLE_5, TABLE_6, TABLE_9, TABLE_10
from wordnet_splits.metrics import robustness, run_moments
from wordnet_splits.metrics.robustness import EPSILON, WEIGHTS

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
Tables = Mapping[tuple[int, str], list[Mapping[str, Any]]]
"""(number, convention) -> rows; the convention of plain means ends in `UNWEIGHTED`."""
UNWEIGHTED = ", unweighted"
FPR95_PAPER = "fpr95_ood_positive_interpolated"
FPR95 = {
    "OOD positive, interpolated": FPR95_PAPER,
    "OOD positive": "fpr95_ood_positive",
    "ID positive, interpolated": "fpr95_id_positive_interpolated",
    "ID positive": "fpr95_id_positive",
}


def read(folder: Path) -> Tables:
    """Rebuild tables 4, 5, 6, 9 and 10."""
    rows: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for table in compare(folder, bootstrap=0, robustness=[4, 5, 6, 9, 10]).robustness:
        for row in table.rows:
            convention = row["convention"] + (UNWEIGHTED if row.get("unweighted") else "")
            rows.setdefault((row["table"], convention), []).append(row)
    return rows


def optimizer(model: str) -> str:
    """Return the paper's name for a model."""
    (name,) = (name for name in OPTIMIZERS if f"-{name.lower()}-" in model)
    return name


def beside(
    published: Mapping[str, Sequence[str]], by_convention: Mapping[str, Mapping[str, list[str]]]
) -> Iterator[Row]:
    """Yield for each name the row of the paper, ours in the paper's convention and ours in our convention."""
    for name, figures in published.items():
        yield (name, "paper", *figures)
        yield ("", "ours", *by_convention["paper"][name])
        yield ("", "ours, ID positive", *by_convention["ours"][name])


def values(row: Mapping[str, Any]) -> list[str]:
    """Return a row's five metrics as printed: scores, means with the sd, or those of a mixture."""
    cells = list(row.values())[-5:]
    if not isinstance(cells[0], tuple):
        return [f"{score:.3f}" for score in cells]
    power = 1 if row.get("unweighted") else 0.5  # a mixture has its variance
    return [f"{mean:.2f} ± {moment**power:.2f}" for mean, moment in cells]


def table_4(results_tables: Tables) -> Iterator[Row]:
    """Mixture over optimizers, and plain mean and sd of all runs, of each detector on Fashion-MNIST."""
    mixtures, plain = _of_detectors(results_tables, 4), _of_detectors(results_tables, 4, UNWEIGHTED)
    for name, row in zip(DETECTORS.values(), TABLE_4, strict=True):
        yield (name, "paper, mixture", *(f"{m:.2f} ± {v**0.5:.2f}" for m, v in row))
        for convention, title in (("paper", "ours"), ("ours", "ours, ID positive")):
            yield ("", f"{title}, mixture", *mixtures[convention][name])
            yield ("", f"{title}, plain mean", *plain[convention][name])


def weights(results: Path) -> Iterator[Row]:
    """FPR95 of the Mahalanobis distance on Fashion-MNIST by optimizer, and its weight in the mixture."""
    folder, detector = results / FOLDERS["MNIST"], "mahalanobis[on=logits]"
    rates = _by_optimizer(folder, "fashion-mnist", detector, FPR95_PAPER)
    moments = {name: run_moments(values) for name, values in rates.items()}
    confidence = np.array([1 / (variance**0.5 + EPSILON) for _, variance in moments.values()])
    shares = WEIGHTS["tables"](confidence, EPSILON)
    for (name, (mean, variance)), share in zip(moments.items(), shares, strict=True):
        seeds = ", ".join(f"{value:.2f}" for value in rates[name])
        yield (name, seeds, f"{mean:.2f}", f"{variance**0.5:.2f}", f"{100 * share:.1f}")


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


def table_5(results_tables: Tables) -> Iterator[Row]:
    """Robustness score of each detector, MNIST against Fashion-MNIST."""
    paper = {name: [f"{v:.3f}" for v in row] for name, row in zip(DETECTORS.values(), TABLE_5, strict=True)}
    yield from beside(paper, _of_detectors(results_tables, 5))


def _of_detectors(results_tables: Tables, number: int, suffix: str = "") -> dict[str, dict[str, list[str]]]:
    return {
        convention: {
            DETECTORS[row["detector"]]: values(row)
            for row in results_tables[number, convention + suffix]
            if row["group"] == "fashion-mnist"
        }
        for convention in ("paper", "ours")
    }


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
    """How many cells of table 6 agree with the paper, and how many between conventions."""
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


def table_9(results_tables: Tables) -> Iterator[Row]:
    """Robustness score of each optimizer over OOD sets, MNIST with max-softmax."""
    by_convention = {
        convention: {
            optimizer(row["model"]): values(row)
            for row in results_tables[9, convention]
            if row["detector"] == "msp_float32"
        }
        for convention in ("paper", "ours")
    }
    paper = {name: [f"{v:.3f}" for v in row] for name, row in zip(OPTIMIZERS, TABLE_9, strict=True)}
    yield from beside(paper, by_convention)


def table_10(each: Mapping[str, Tables]) -> Iterator[Row]:
    """The two most robust optimizers with each detector, by FPR95."""
    for trained, results_tables in each.items():
        for n, name in enumerate(DETECTORS):
            best = (
                next(", ".join(map(optimizer, row["best model"])) for row in rows if row["detector"] == name)
                for rows in (results_tables[10, "paper"], results_tables[10, "ours"])
            )
            yield (trained, DETECTORS[name], ", ".join(TABLE_10[trained][n]), *best)


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
    """Yield the accuracies, then the rows of tables 4, 5, 6, 9 and 10 with what they rest on."""
    yield accuracies(results)
    each = {trained: read(results / folder) for trained, folder in FOLDERS.items()}
    mnist = each["MNIST"]
    yield from (table_4(mnist), weights(results), conventions(results), table_5(mnist))
    yield from (table_6(results), agreement(results), table_9(mnist), table_10(each))
