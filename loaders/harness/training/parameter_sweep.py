"""Train a method with several values of its parameters, and choose among them on validation images.

The criterion is the area under risk and coverage (AURC) of a detector's confidence, the maximum softmax by
default, for the weights that a run keeps. It is computed on the benchmark's ID validation images pooled with
its external validation images, where misclassified ID images and all external images are errors:
`aurc_unknown`, the primary metric of Kim et al. Without external validation images it is `aurc`, on the ID
validation images alone. Seeds are averaged; the least value is chosen, the first of equal ones. No test image
is read.

Kim et al. (section 4, "Hyperparameter search") choose on the same two sets, by accuracy or AUROC.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import write_table_file
from wordnet_splits.base.progress import choose_messages, choose_progress
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest import Manifest

from ..detectors import parse_detectors
from ..evaluation.model_evaluation import evaluate
from ..models.transforms import Normalise
from .checkpoint import record_validation
from .data import Images, ValidationData, load_validation_data
from .fitting import TrainedRun
from .machine import choose_machine
from .recipe import TrainingRecipe, load_recipe
from .runs import train

BATCH = 500


@dataclass(frozen=True)
class TrainingSweep(Tabular):
    """A finished sweep.

    Attributes
    ----------
    combinations : a row for each combination of values, in the order given: ``series`` (name that its runs
        share, without ``-sN``), the parameters, ``runs`` (number of seeds), ``aurc`` (mean over the seeds, in
        [0, 1], lower is better), ``chosen`` and ``criterion``.
    criterion : metric, detector and sets that the choice is by.
    file : CSV table of the rows.
    runs : all runs; ``model.json`` of each has the criterion and its AURC.
    """

    combinations: Sequence[Mapping[str, Any]]
    criterion: str
    file: Path
    runs: list[TrainedRun]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the rows."""
        return self.combinations

    @property
    def chosen(self) -> Mapping[str, Any]:
        """The row with the least AURC."""
        return next(row for row in self.combinations if row["chosen"])


def train_sweep(
    benchmark: Manifest | str | Path,
    recipe: TrainingRecipe | str,
    out: str | Path,
    values: Mapping[str, Sequence[Any]],
    *,
    method: str | None = None,
    detector: str = "msp",
    **options: Any,
) -> TrainingSweep:
    """Train every combination of values of a method's parameters, and choose one on validation images.

    Each combination has its own runs in ``out/<benchmark>/``: killed runs resume, finished ones are kept. The
    table is written to ``out/<benchmark>/sweep-<recipe>-<parameters>.csv``.

    Parameters
    ----------
    benchmark, recipe, out, method : as of `train`.
    values : parameter of the method -> values to try.
    detector : detector whose confidence ranks the images, one that needs no fit: ``energy``,
        ``output[name=evidence]``.
    options : further options of `train`: ``seeds``, ``epochs``, ``roots``, ``packed``, ``device``, ...

    Raises
    ------
    UnknownNameError : the method has no such parameter. DataError : a value of the wrong type, one given
        twice, a detector that fits, or no ID validation images. Errors of `train`.
    """
    progress = choose_progress(options.pop("progress", None))
    notify = options.pop("notify", None) or choose_messages(progress)
    if isinstance(recipe, str):
        recipe = load_recipe(recipe, trust_model=options.get("trust_model", False))
    recipe = recipe if method is None else recipe.with_method(method)
    several = parse_detectors(detector)
    if len(several) != 1 or several[0].spec.fit_on:
        hint = "as in msp or energy"
        raise DataError("one detector that needs no fit must be given", where=detector, hint=hint)
    combinations = recipe.swept(values)
    sources = {name: options.get(name) for name in ("roots", "packed")}
    data = load_validation_data(benchmark, **sources, progress=progress)
    metric = "aurc" if data.outliers is None else "aurc_unknown"
    sets = "ID val alone (no external val)" if data.outliers is None else "ID val pooled with external val"
    groups = ", ".join(f"{part['group']} {part['rows']:,} images" for part in data.parts)
    criterion = f"{metric} of {detector} on {sets}: {groups}"
    machine = choose_machine(options.get("device"), options.get("precision", "auto"))
    if machine.ranks.first:
        notify(f"{len(combinations)} values of {', '.join(values)}; the least is chosen of {criterion}")
    options |= {"progress": progress, "notify": notify}
    trained = train(benchmark, recipe, out, sweep=values, **options)
    rows: dict[str, dict[str, Any]] = {}
    for run in trained:
        chosen = run.metadata["recipe"]["method"]
        parameters = {name: chosen[name] for name in values}
        aurc = _aurc(run, data, detector, metric, str(machine.device))
        record = {"parameters": parameters, "criterion": criterion, "parts": data.parts, "aurc": aurc}
        if machine.ranks.first:
            run.metadata.update(record_validation(run.folder, record))
        start = {"series": run.metadata["series"], **parameters, "runs": 0, "aurc": 0.0}
        row = rows.setdefault(start["series"], start)
        row["aurc"] = (row["aurc"] * row["runs"] + aurc) / (row["runs"] + 1)
        row["runs"] += 1
    best = min(rows.values(), key=lambda row: float(row["aurc"]))
    table = [{**row, "chosen": row is best, "criterion": criterion} for row in rows.values()]
    file = trained[0].folder.parent / f"sweep-{recipe.name}-{'-'.join(values)}.csv"
    swept = TrainingSweep(table, criterion, file, trained)
    if machine.ranks.first:
        write_table_file(swept.to_table(), file)
    return swept


def parse_sweep(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return parameter -> values, as text, of several ``NAME=a,b,c``."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
        given = [value.strip() for value in listed.split(",")]
        if not re.fullmatch(r"\w+", name) or not all(given) or name in values:
            hint = "as in weight=0.1,1, once for each parameter"
            raise DataError(f"must be NAME=a,b,c, got {text!r}", where="--sweep", hint=hint)
        values[name] = given
    return values


@dataclass(frozen=True)
class _Batches:
    """Normalised batches of images, with their labels."""

    images: Images
    normalise: Normalise

    def __len__(self) -> int:
        return -(-len(self.images) // BATCH)

    def __getitem__(self, number: int) -> tuple[Tensor, Tensor]:
        rows = slice(number * BATCH, (number + 1) * BATCH)
        return self.normalise(self.images.pixels[rows]), self.images.labels[rows]


def _aurc(run: TrainedRun, data: ValidationData, detector: str, metric: str, device: str) -> float:
    """Return the AURC of a run on the validation images."""
    inputs = run.metadata["input"]
    normalise = Normalise.of(inputs["mean"], inputs["std"])
    sets = {"id": data.known, "far": data.outliers}
    results = evaluate(
        f"trained:{run.folder}",
        detectors=detector,
        sets={name: _Batches(images, normalise) for name, images in sets.items() if images is not None},
        classes=len(run.metadata["classes"]),
        std=inputs["std"],
        mapping="identity",
        device=device,
        trust_model=True,
        progress=False,
    )
    rows = results.results.to_pylist()
    (value,) = (row["value"] for row in rows if (row["group"], row["metric"]) == ("(pooled)", metric))
    return float(value)
