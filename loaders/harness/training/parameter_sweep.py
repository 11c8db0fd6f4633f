"""Train a method with several values of its parameters, and choose among them on validation images.

The criterion is the AURC of a detector's confidence (maximum softmax by default) for the weights that a run
keeps: `aurc_unknown`, the primary metric of Kim et al., on ID val pooled with external val, where
misclassified ID images and all external images are errors; without external val, `aurc` on ID val alone.
Seeds are averaged; the least value is chosen, the first of equal ones. No test image is read. Kim et al.
(section 4, "Hyperparameter search") choose on the same two sets, by accuracy or AUROC.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset, default_collate

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.parquet import write_table_file
from wordnet_splits.base.progress import choose_messages, choose_progress
from wordnet_splits.benchmark.manifest import Manifest

from ..detectors.parsing import one_detector
from ..evaluation.model_evaluation import evaluate
from ..models.transforms import Normalise
from .checkpoint import record_validation
from .data import Images, load_validation_data
from .fitting import TrainedRun
from .machine import choose_machine
from .methods.interface import Method
from .recipe import TrainingRecipe, load_recipe
from .runs import train_recipe

BATCH = 500


class TrainingSweep(NamedTuple):
    """A finished sweep.

    Attributes
    ----------
    rows : for each combination of values: ``series`` (name shared by its runs), the parameters, ``runs``
        (number of seeds), ``aurc`` (mean over the seeds, in [0, 1]), ``chosen`` and ``criterion``.
    criterion : metric, detector and sets that the choice is by.
    file : CSV table of the rows.
    runs : all runs; ``validation`` in ``model.json`` has the criterion and the AURC of the run.
    """

    rows: list[dict[str, Any]]
    criterion: str
    file: Path
    runs: list[TrainedRun]

    @property
    def chosen(self) -> dict[str, Any]:
        """The row with the least AURC."""
        return next(row for row in self.rows if row["chosen"])


def train_sweep(
    recipe: TrainingRecipe | str,
    benchmark: Manifest | str | Path,
    out: str | Path,
    values: Mapping[str, Sequence[Any]],
    *,
    method: str | Method | None = None,
    detector: str = "msp",
    **options: Any,
) -> TrainingSweep:
    """Train every combination of values of a method's parameters, and choose one on validation images.

    Each combination has its own runs in ``out/<benchmark>/``: killed runs resume, finished ones are kept. The
    table is written to ``out/<benchmark>/sweep-<recipe>-<parameters>-<digest>.csv``; the digest is of the
    names of the runs and the criterion.

    Parameters
    ----------
    values : parameter of the method -> values to try.
    detector : detector whose confidence ranks the images; it must not fit.
    recipe, benchmark, out, method, options : as of `train_recipe`.

    Raises
    ------
    UnknownNameError : no such parameter or detector. DataError : a value of the wrong type or given twice, a
        detector that fits, no ID validation images, or external images of ID classes. Errors of
        `train_recipe`.
    """
    progress = choose_progress(options.pop("progress", None))
    notify = options.pop("notify", None) or choose_messages(progress)
    if isinstance(recipe, str):
        recipe = load_recipe(recipe, trust_model=options.get("trust_model", False))
    recipe = recipe if method is None else recipe.with_method(method)
    spec = one_detector(detector).spec
    if spec.fit_on or spec.models == "many":
        raise DataError("needs a fit or several models, unlike msp", where=f"detector {detector}")
    number = len(recipe.swept(values))  # refuses bad values before images are read
    read = {name: options[name] for name in ("roots", "packed", "allow_leaks") if name in options}
    known, outliers, parts = load_validation_data(benchmark, **read, resize=recipe.resize, progress=progress)
    images = {"id": known} if outliers is None else {"id": known, "far": outliers}
    metric = "aurc" if outliers is None else "aurc_unknown"
    sets = "ID val alone (no external val)" if outliers is None else "ID val pooled with external val"
    groups = ", ".join(f"{part['group']} {part['rows']:,} images" for part in parts)
    criterion = f"{metric} of {detector} on {sets}: {groups}"
    machine = choose_machine(options.get("device"), options.get("precision", "auto"))
    if machine.ranks.first:
        notify(f"{number} values of {', '.join(values)}, chosen by the least {criterion}")
    options |= {"progress": progress, "notify": notify}
    trained = train_recipe(recipe, benchmark, out, sweep=values, **options)
    rows: dict[str, dict[str, Any]] = {}
    for run in trained:
        parameters = {name: run.metadata["recipe"]["method"][name] for name in values}
        aurc = _aurc(run, images, detector, metric, str(machine.device))
        record = {"parameters": parameters, "criterion": criterion, "parts": parts, "aurc": aurc}
        if machine.ranks.first:
            run.metadata.update(record_validation(run.folder, record))
        first = {"series": run.metadata["series"], **parameters, "runs": 0, "aurc": 0.0}
        row = rows.setdefault(first["series"], first)
        row["aurc"] = (row["aurc"] * row["runs"] + aurc) / (row["runs"] + 1)
        row["runs"] += 1
    best = min(rows.values(), key=lambda row: float(row["aurc"]))
    table = [{**row, "chosen": row is best, "criterion": criterion} for row in rows.values()]
    named = "\n".join([*(run.folder.name for run in trained), criterion])
    digest = hashlib.sha256(named.encode()).hexdigest()[:8]
    file = trained[0].folder.parent / f"sweep-{recipe.name}-{'-'.join(values)}-{digest}.csv"
    if machine.ranks.first:
        write_table_file(pa.Table.from_pylist(table), file)
    return TrainingSweep(table, criterion, file, trained)


def parse_sweep(texts: Sequence[str]) -> dict[str, list[str]]:
    """Return parameter -> values, as text, of several ``NAME=a,b,c``."""
    values: dict[str, list[str]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
        given = [value.strip() for value in listed.split(",")]
        if not re.fullmatch(r"\w+", name) or not all(given):
            raise DataError(f"must be NAME=a,b,c, got {text!r}", where="--sweep", hint="as in weight=0.1,1")
        if name in values:
            hint = f"as in {name}={','.join([*values[name], *given])}"
            raise DataError(f"{name} is given twice", where="--sweep", hint=hint)
        values[name] = given
    return values


def _aurc(run: TrainedRun, sets: Mapping[str, Images], detector: str, metric: str, device: str) -> float:
    """Return the AURC of a run on the validation images."""
    inputs = run.metadata["input"]
    normalise = Normalise.of(inputs["mean"], inputs["std"])

    def collate(items: list[Any]) -> tuple[Tensor, Tensor]:
        pixels, labels = default_collate(items)
        return normalise(pixels), labels

    results = evaluate(
        f"trained:{run.folder}",
        detectors=detector,
        sets={
            name: DataLoader(TensorDataset(images.pixels, images.labels), BATCH, collate_fn=collate)
            for name, images in sets.items()
        },
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
