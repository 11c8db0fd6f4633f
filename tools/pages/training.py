"""Training methods at equal image passes, compared with the papers' rows, from the committed results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev
from typing import Any, NamedTuple

import pyarrow.parquet as pq
from scipy.stats import t as student

from .measured import text_of
from .openood import agreement

LEVEL = 0.95
BASELINE, EPOCHS = "openood-short", 24
"""Recipe of plain cross-entropy, and epochs of the recipes NAME/short."""
ID = "(pooled) id"


@dataclass(frozen=True)
class Row:
    """A training method: its title, passes forward and backward per image, and the detector of its paper.

    Published values, where there are some: near-OOD AUROC of OpenOOD's table 1 (CIFAR-100); AURC x 1000 of
    misclassification and near-OOD AUROC of Kim et al.'s table 6.
    """

    title: str
    passes: int = 1
    detector: str = "msp"
    openood_cifar100: float | None = None
    kim_aurc: float | None = None
    kim_near: float | None = None


ROWS: Mapping[str, Row] = {
    "openood-short": Row("cross-entropy", 1, "msp", 80.27, 75.25, 72.16),
    "vos-short": Row("VOS", 1, "energy", 80.93),
    "mos-short": Row("MOS", 1, "output", 80.40),
    "logitnorm-short": Row("LogitNorm", 1, "msp", 78.47),
    "npos-short": Row("NPOS", 2, "knn", 78.35),
    "godin-short": Row("G-ODIN", 1, "output", 77.15),
    "rotpred-short": Row("RotPred", 4, "output", 76.43),
    "arpl-short": Row("ARPL", 1, "output", 74.94),
    "cider-short": Row("CIDER", 2, "knn", 73.10),
    "confbranch-short": Row("ConfBranch", 1, "output", 71.60),
    "crl-short": Row("CRL", 1, "msp", kim_aurc=68.53, kim_near=72.95),
    "edl-short": Row("EDL", 1, "output", kim_aurc=73.39, kim_near=72.72),
    "augmix-short": Row("AugMix", 1, "msp", None, 65.94, 73.12),
    "regmixup-short": Row("RegMixup", 2, "msp"),
}
"""Recipe -> its row: the methods of OpenOOD's table 1 in its order, then all other methods."""
ORDERS = {
    "openood_cifar100": ("OpenOOD, table 1, CIFAR-100", "near AUROC"),
    "kim_near": ("Kim et al., table 6", "near AUROC"),
    "kim_aurc": ("Kim et al., table 6", "AURC"),
}
"""Published value -> its table, and the metric that it is compared with."""
STUDIES: Mapping[str, tuple[str, str, int, tuple[str, ...]]] = {
    "CIFAR-40": ("unknown-cifar-tinyval-methods", "cifar-60", 12, tuple(ORDERS)),
    "CIFAR-100": ("openood-cifar100-drawn-methods", "(mean) near", 4, ("openood_cifar100",)),
}
"""ID classes -> folder of results, group of near-OOD AUROC, passes of each image in a training, and orders.

Results of detectors that not every method has are in sibling folders: ``-outputs`` and ``-knn``.
"""
SERIES = re.compile(r".*/(?P<recipe>.*)-plain-cnn(-e(?P<epochs>\d+))?")
Run = tuple[float, float, float]
"""(value, lo, hi)."""


class Model(NamedTuple):
    """A recipe, trained for a number of epochs."""

    recipe: str
    epochs: int


class Study:
    """A benchmark's results.

    Parameters
    ----------
    folders : the committed results, with separate folders for the methods' own outputs.
    near : group of near-OOD AUROC.
    budget : passes of each image forward and backward.

    Attributes
    ----------
    models : in the order of `ROWS`. equal : models within the budget. repeated : models with several seeds.
    """

    def __init__(self, folders: Iterable[Path], near: str, budget: int) -> None:
        self.near, self.runs = near, dict[tuple[Model, str, str, str], list[Run]]()
        for folder in folders:
            for row in pq.read_table(folder / "results.parquet").to_pylist():
                series = SERIES.fullmatch(row["model"])
                assert series, row["model"]
                model = Model(series["recipe"], int(series["epochs"] or EPOCHS))
                group = f"{row['group']} {row['role']}" if row["group"].startswith("(") else row["group"]
                key = model, row["detector"].partition("[")[0], group, row["metric"]
                self.runs.setdefault(key, []).append((row["value"], row["lo"], row["hi"]))
        models = {model for model, *_ in self.runs}
        self.models = sorted(models, key=lambda model: (list(ROWS).index(model.recipe), model.epochs))
        self.equal = [m for m in self.models if m.epochs * ROWS[m.recipe].passes == budget]
        self.repeated = [m for m in self.equal if self.seeds(m) > 1]
        self.baseline = Model(BASELINE, budget)

    def seeds(self, model: Model) -> int:
        """Return the number of runs of a method."""
        return len(self.runs[model, "msp", ID, "accuracy"])

    def value(self, *key: Any) -> float:
        """Return the mean over the seeds."""
        return mean(value for value, _, _ in self.runs[key])

    def cell(self, *key: Any, factor: float = 100) -> str:
        """Return a value with its interval: over seeds for a mean, over images for a single run."""
        values = [factor * value for value, _, _ in self.runs[key]]
        if len(values) > 1:
            return text_of(mean(values), mean_interval(values))
        ((_, lo, hi),) = self.runs[key]
        return text_of(values[0], (factor * lo, factor * hi))

    def difference(self, model: Model, detector: str, *where: str, factor: float = 100) -> str:
        """Return the mean difference from cross-entropy with MSP, seed by seed, with its interval."""
        pairs = zip(self.runs[model, detector, *where], self.runs[self.baseline, "msp", *where], strict=True)
        differences = [factor * (a[0] - b[0]) for a, b in pairs]
        return text_of(mean(differences), mean_interval(differences))

    def row(self, model: Model) -> tuple[str, ...]:
        """Return the cells of a method."""
        row = ROWS[model.recipe]
        return (
            row.title,
            str(model.epochs),
            str(self.seeds(model)),
            self.cell(model, "msp", ID, "accuracy"),
            self.cell(model, "msp", ID, "aurc", factor=1000),
            self.cell(model, "msp", self.near, "auroc"),
            row.detector,
            self.cell(model, row.detector, self.near, "auroc"),
        )

    def differences(self, model: Model) -> tuple[str, ...]:
        """Return the cells of the differences from cross-entropy."""
        row = ROWS[model.recipe]
        return (
            row.title,
            self.difference(model, "msp", ID, "accuracy"),
            self.difference(model, "msp", ID, "aurc", factor=1000),
            self.difference(model, "msp", self.near, "auroc"),
            row.detector,
            self.difference(model, row.detector, self.near, "auroc"),
        )

    def agreement(self, field: str, metric: str) -> tuple[str, str]:
        """Return the number of methods with a published value, and Kendall's tau of its order with ours."""
        published = {model: getattr(ROWS[model.recipe], field) for model in self.equal}
        models = [model for model, value in published.items() if value is not None]
        where = (ID, "aurc") if metric == "AURC" else (self.near, "auroc")
        ours = [self.value(model, ROWS[model.recipe].detector, *where) for model in models]
        return str(len(models)), agreement([published[model] for model in models], ours, field)


def mean_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return Student's interval of a mean over seeds."""
    half = student.ppf((1 + LEVEL) / 2, len(values) - 1) * stdev(values) / len(values) ** 0.5
    return mean(values) - half, mean(values) + half


def tables(results: Path) -> Iterator[Iterable[tuple[str, ...]]]:
    """Yield each benchmark's methods, and the differences of those with several seeds; then the taus."""
    taus = []
    for name, (folder, near, budget, orders) in STUDIES.items():
        study = Study([results / f"{folder}{part}" for part in ("", "-outputs", "-knn")], near, budget)
        yield [study.row(model) for model in study.models]
        if study.repeated:
            yield [study.differences(model) for model in study.repeated if model != study.baseline]
        for field in orders:
            table, metric = ORDERS[field]
            taus.append((name, table, metric, *study.agreement(field, metric)))
    yield taus
