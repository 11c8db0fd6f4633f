"""Abdelzad et al.'s tables 4, 5, 6, 9 and 10 beside ours, from the committed results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from loaders.harness import compare
from tests.wordnet_splits.metrics.abdelzad import TABLE_4, TABLE_5, TABLE_6, TABLE_9, TABLE_10

from .measured import means

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
"""(number, convention) -> rows."""


def read(folder: Path) -> Tables:
    """Rebuild tables 4, 5, 6, 9 and 10."""
    found: dict[tuple[int, str], list[Mapping[str, Any]]] = {}
    for table in compare(folder, bootstrap=0, robustness=[4, 5, 6, 9, 10]).robustness:
        for row in table.numbers:
            found.setdefault((row["table"], row["convention"]), []).append(row)
    return found


def optimizer(model: str) -> str:
    """Return the paper's name for a model."""
    (name,) = (one for one in OPTIMIZERS if f"-{one.lower()}-" in model)
    return name


def beside(
    published: Mapping[str, Sequence[str]], ours: Mapping[str, Mapping[str, list[str]]]
) -> Iterator[Row]:
    """Yield of each name a row of the paper, one of ours in its convention and one in our own."""
    for name, figures in published.items():
        yield (name, "paper", *figures)
        yield ("", "ours", *ours["paper"][name])
        yield ("", "ours, ID positive", *ours["ours"][name])


def values(row: Mapping[str, Any]) -> list[str]:
    """Return a row's five metrics as printed."""
    cells = list(row.values())[-5:]
    return [f"{c[0]:.2f} ± {c[1] ** 0.5:.2f}" if isinstance(c, tuple) else f"{c:.3f}" for c in cells]


def table_4(found: Tables) -> Iterator[Row]:
    """Mean and standard deviation over optimizers and runs of each detector, MNIST against Fashion-MNIST."""
    paper = {
        name: [f"{m:.2f} ± {v**0.5:.2f}" for m, v in row]
        for name, row in zip(DETECTORS.values(), TABLE_4, strict=True)
    }
    yield from beside(paper, _of_detectors(found, 4))


def table_5(found: Tables) -> Iterator[Row]:
    """Robustness score of each detector, MNIST against Fashion-MNIST."""
    paper = {name: [f"{v:.3f}" for v in row] for name, row in zip(DETECTORS.values(), TABLE_5, strict=True)}
    yield from beside(paper, _of_detectors(found, 5))


def _of_detectors(found: Tables, number: int) -> dict[str, dict[str, list[str]]]:
    return {
        convention: {
            DETECTORS[row["detector"]]: values(row)
            for row in found[number, convention]
            if row["group"] == "fashion-mnist"
        }
        for convention in ("paper", "ours")
    }


def table_6(each: Mapping[str, Tables]) -> Iterator[Row]:
    """The most robust detector of each ID and OOD set, by FPR95."""
    for trained, found in each.items():
        ours, own = (
            {row["group"]: DETECTORS[row["best detector"][0]] for row in found[6, convention]}
            for convention in ("paper", "ours")
        )
        for group in ours:
            yield (trained, SETS[group], TABLE_6[trained][SETS[group]], ours[group], own[group])


def table_9(found: Tables) -> Iterator[Row]:
    """Robustness score of each optimizer over OOD sets, MNIST with max-softmax."""
    ours = {
        convention: {
            optimizer(row["model"]): values(row)
            for row in found[9, convention]
            if row["detector"] == "msp_float32"
        }
        for convention in ("paper", "ours")
    }
    yield from beside(
        {name: [f"{v:.3f}" for v in row] for name, row in zip(OPTIMIZERS, TABLE_9, strict=True)}, ours
    )


def table_10(each: Mapping[str, Tables]) -> Iterator[Row]:
    """The two most robust optimizers with each detector, by FPR95."""
    for trained, found in each.items():
        for n, name in enumerate(DETECTORS):
            ours, own = (
                next(", ".join(map(optimizer, row["best model"])) for row in rows if row["detector"] == name)
                for rows in (found[10, "paper"], found[10, "ours"])
            )
            yield (trained, DETECTORS[name], ", ".join(TABLE_10[trained][n]), ours, own)


def accuracies(results: Path) -> Iterator[Row]:
    """Accuracy on ID test images by optimizer, mean of the runs, in percent."""
    each = [means(results / folder, "(pooled) id") for folder in FOLDERS.values()]
    for name in OPTIMIZERS:
        found = [
            next(v for (model, *rest), v in one.items() if rest[1] == "accuracy" and optimizer(model) == name)
            for one in each
        ]
        yield (name, *(f"{value:.2f}" for value in found))


def tables(results: Path) -> Iterator[Iterable[Row]]:
    """Yield the accuracies, then the rows of tables 4, 5, 6, 9 and 10."""
    yield accuracies(results)
    each = {trained: read(results / folder) for trained, folder in FOLDERS.items()}
    mnist = each["MNIST"]
    yield from (table_4(mnist), table_5(mnist), table_6(each), table_9(mnist), table_10(each))
