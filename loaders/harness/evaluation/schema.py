"""Schemas of results: their tables, and ``about.json`` (`About`), which describes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field, field_validator

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.parquet import schema_of
from wordnet_splits.base.schemas import BenchmarkName, Count, validate
from wordnet_splits.base.tabular import Tabular
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import METRICS, Metric, get_metric, list_metrics
from wordnet_splits.metrics.registry import OTHER_VALUES

from .run_facts import AboutPart
from .run_facts import ColumnsUsed as ColumnsUsed
from .run_facts import RunFacts as RunFacts

Share = Annotated[float, Field(gt=0, lt=1)]
MAX_REPLICATES, MAX_PREVALENCES, MAX_BINS = 100_000, 100, 1000
"""Limits of the work that untrusted results can request from whoever checks them."""


class MetricOptions(AboutPart):
    """Options of the metrics, stored in ``about.json`` as ``options``.

    Attributes
    ----------
    replicates : bootstrap replicates behind ``lo`` and ``hi``; 0 for none.
    seed, level : of the bootstrap.
    prevalences : shares of OOD at which `aurc_unknown` is computed too.
    bins : equal bins of the similarity to the nearest ID class.
    """

    replicates: Annotated[int, Field(ge=0, le=MAX_REPLICATES)] = 0
    seed: Count = 0
    level: Share = 0.95
    prevalences: Annotated[tuple[Share, ...], Field(max_length=MAX_PREVALENCES)] = (0.5,)
    bins: Annotated[int, Field(ge=1, le=MAX_BINS)] = 10


def metric_options(bootstrap: int, seed_boot: int, prevalences: Sequence[float]) -> MetricOptions:
    """Return options from the arguments of `evaluate`; DataError for one that is out of range."""
    values = {"replicates": bootstrap, "seed": seed_boot, "prevalences": tuple(prevalences)}
    return validate(MetricOptions, values, where="options of the evaluation")


class Coverage(AboutPart):
    """The images that pooled rows are over: of each ID, near and far set, and the share of OOD among them."""

    sets: dict[str, Count]
    n_id: Count
    n_ood: Count
    prevalence: float


class MissingSet(AboutPart):
    """A set with fewer scored test images than the benchmark has; ``expected`` is None where unknown."""

    group: str
    role: str
    scored: Count
    expected: Count | None
    status: str


class MetricFacts(AboutPart):
    """A user's metric that was computed.

    Attributes
    ----------
    name : in the ``metric`` column. higher_is_better : its direction.
    needs : its inputs, of "id", "correct" and "ood". summary : its first line of documentation.
    origin : ``MODULE:NAME`` of its function.
    """

    name: str
    higher_is_better: bool
    needs: tuple[str, ...]
    summary: str
    origin: str

    @field_validator("name")
    @classmethod
    def _is_free(cls, name: str) -> str:
        if name in OTHER_VALUES or METRICS.is_shipped(name):
            raise ValueError(f"the metric {name!r} is built in")
        return name

    @classmethod
    def of(cls, metric: Metric) -> MetricFacts:
        """Return the facts of a registered metric."""
        return cls(**{name: getattr(metric, name) for name in cls.model_fields})


def user_metrics() -> tuple[MetricFacts, ...]:
    """Return the facts of the users' metrics that are registered."""
    metrics = (get_metric(name) for name in list_metrics())
    return tuple(MetricFacts.of(metric) for metric in metrics if metric.origin)


class ForeignDetector(AboutPart):
    """A detector of another library that was used as it is.

    Attributes
    ----------
    detector : its label. protocol : the library whose protocol it follows. object : its class.
    sign : how its scores became confidences.
    """

    detector: str
    protocol: str
    object: str
    sign: str

    def __str__(self) -> str:
        return f"{self.detector} is {self.object}, by the protocol of {self.protocol}; {self.sign}."


class About(AboutPart):
    """Content of ``about.json`` besides checksums.

    Attributes
    ----------
    images_fingerprint : of the benchmark's images, None while a group awaits its source.
    evaluation_fingerprint : of its transforms, normalisation, roles and views.
    sources_fingerprint : of the datasets that it carries, None where it carries none.
    missing : ID, near and far sets not scored whole. left_out : sentences on images that a root lacked.
    notes : sentences on deviations from an undisturbed evaluation.
    own_sets : names of the sets given in Python in place of a benchmark.
    metrics : the users' metrics that were computed. foreign : the detectors of other libraries.
    software : what the evaluation ran with: versions, ``commit`` of a checkout, ``date``; {} in older files.
    """

    benchmark: BenchmarkName
    version: int
    images_fingerprint: str | None
    evaluation_fingerprint: str
    sources_fingerprint: str | None
    options: MetricOptions
    composition: Coverage
    missing: tuple[MissingSet, ...]
    runs: tuple[RunFacts, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    own_sets: tuple[str, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    foreign: tuple[ForeignDetector, ...] = ()
    software: dict[str, str] = Field(default_factory=dict)

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """The fingerprints that results of one benchmark share; see `fingerprints_of`."""
        return {
            "images": self.images_fingerprint,
            "evaluation": self.evaluation_fingerprint,
            "sources": self.sources_fingerprint,
        }

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in order."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences to print on what was left out and on deviations."""
        return (
            *(f"Left out: {line}" for line in self.left_out),
            *(f"Foreign: {row}" for row in self.foreign),
            *(f"Note: {line}" for line in self.notes),
        )

    def higher_is_better(self, metric: str) -> bool:
        """Return the direction of a metric of these results; that of a user's metric is recorded in them.

        Raises
        ------
        UnknownNameError : no such metric.
        """
        name = metric.partition("[")[0]
        if name in OTHER_VALUES:
            return OTHER_VALUES[name]
        recorded = {facts.name: facts.higher_is_better for facts in self.metrics}
        return recorded[name] if name in recorded else get_metric(name).higher_is_better

    def runs_of(self, model: str) -> tuple[RunFacts, ...]:
        """Return the runs of one model."""
        return tuple(run for run in self.runs if run.model == model)

    def network(self, number: int | None) -> tuple[RunFacts, tuple[str, ...]]:
        """Return a network by its number, and a note that says which of several runs it is.

        By default it is the first run of the only model.

        Raises
        ------
        DataError : no such run; no number although there are several models.
        """
        numbers = ", ".join(f"{run.run} ({run.model})" for run in self.runs)
        if number is not None:
            for run in self.runs:
                if run.run == number:
                    return run, ()
            raise DataError(f"there is no run {number}", where=self.benchmark, hint=f"there are {numbers}")
        if len(self.models) > 1:
            hint = f"choose one by run= (--run): {numbers}"
            raise DataError("the results are of several models", where=self.benchmark, hint=hint)
        first = self.runs[0]
        if len(self.runs) == 1:
            return first, ()
        which = f"run {first.run} of {len(self.runs)} of {first.model}"
        return first, (f"The network is {which}; run= (--run) takes another.",)


FINGERPRINT_SUBJECTS: Final = {
    "images": "images",
    "evaluation": "transforms, normalisation, roles or views",
    "sources": "carried datasets",
}
"""Fingerprint of results -> its subject in errors."""


def fingerprints_of(manifest: Manifest) -> dict[str, str | None]:
    """Return the fingerprints of a benchmark that its results store."""
    return {
        "images": manifest.fingerprint,
        "evaluation": manifest.evaluation_fingerprint,
        "sources": manifest.sources_fingerprint,
    }


class Sealed(AboutPart):
    """``about.json``, with the SHA-256 of the file of every table.

    ``unscored_runs`` are those whose scores and predictions a leaderboard entry leaves out.
    """

    schema_: Literal[1] = Field(alias="schema")
    about: About
    files: dict[str, str]
    unscored_runs: tuple[int, ...] = ()


MODEL = "(model)"
"""Detector of the rows that hold values of the model alone."""
RESULTS = schema_of(
    "benchmark version:int32 images_fingerprint model model_key transform_key run:int32 detector params "
    "chosen_on group role metric value:float64 lo:float64 hi:float64 n_id:int64 n_ood:int64"
)
SCORES = schema_of("detector run:int32 source image_id group confidence:float32")
CALIBRATION_COLUMNS = ("predicted_probability", "target_log_probability", "squared_probabilities")
"""Columns of predictions for calibration: the softmax of the predicted class, the logarithm of the label's,
and the sum of the squares of all. Null for images without a label; older files lack them."""
PREDICTIONS = schema_of(
    "detector run:int32 source image_id class_id group role label:int32 prediction:int32 "
    "target_probability:float32 max_probability:float32 "
    + " ".join(f"{name}:float32" for name in CALIBRATION_COLUMNS)
)
"""``detector`` is empty for predictions of the model itself, else a detector with predictions of its own."""
BY_CLASS = schema_of(
    "detector run:int32 group role source class_id similarity:float64 n_ood:int64 auroc:float64"
)
BY_NEARNESS = schema_of("detector run:int32 low:float64 high:float64 n_ood:int64 auroc:float64")
SCHEMAS = {
    "results": RESULTS,
    "scores": SCORES,
    "predictions": PREDICTIONS,
    "by_class": BY_CLASS,
    "by_nearness": BY_NEARNESS,
}
SWEEPS = schema_of("detector run:int32 params on auroc:float64 reason")
"""Values tried by a sweep; an own file, in results of a sweep only."""
MAY_BE_EMPTY = frozenset(
    {"images_fingerprint", "chosen_on", "value", "lo", "hi", "similarity", "low", "high", "auroc"}
    | {"prediction", "target_probability", "max_probability", "reason"}
    | set(CALIBRATION_COLUMNS)
)
"""Columns that may hold nulls."""


@dataclass(frozen=True, eq=False, repr=False)
class ResultTables(Tabular):
    """The tables of one evaluation and their description.

    Attributes
    ----------
    results : one row per detector, run, set and metric (`RESULTS`); values are fractions.
    scores : the confidence of every test image (`SCORES`); every metric is computed from this column.
    predictions : label, predicted label and softmax of every test image (`PREDICTIONS`).
    by_class, by_nearness : AUROC by OOD class and by bin of its similarity to the nearest ID class.
    about : benchmark, models, composition, missing sets, options and notes.
    sweeps : every value that a sweep tried, with its AUROC on the named validation sets, or the reason why
        it has none (`SWEEPS`); empty without a sweep.
    """

    results: pa.Table
    scores: pa.Table
    predictions: pa.Table
    by_class: pa.Table
    by_nearness: pa.Table
    about: About
    sweeps: pa.Table = field(default_factory=SWEEPS.empty_table)
    unscored_runs: tuple[int, ...] = ()

    @property
    def detectors(self) -> tuple[str, ...]:
        """Labels of the detectors, in the order of the rows."""
        labels = dict.fromkeys(self.results["detector"].to_pylist())
        return tuple(label for label in labels if label != MODEL)

    @property
    def has_scores(self) -> bool:
        """Whether the scores of any run are there: an entry of the leaderboard may keep its tables alone."""
        return bool(self.scores.num_rows)

    def require_scores(self, purpose: str) -> None:
        """Raise DataError where the scores of a run were left out, which ``purpose`` needs."""
        if self.unscored_runs:
            runs = ", ".join(map(str, self.unscored_runs))
            raise DataError(
                f"{purpose} needs the scores of images, which were left out for runs {runs}",
                where=self.about.benchmark,
                hint="compute them again with the commands in entry.json",
            )

    def values(
        self, metric: str, *, group: str, role: str | None = None, detector: str | None = None
    ) -> list[float]:
        """Return the values of a metric on a group, one per run (and detector, unless one is given).

        Raises
        ------
        UnknownNameError : no row has that metric, group, role or detector.
        """
        filters = {"metric": metric, "group": group, "role": role, "detector": detector}
        for name, value in filters.items():
            if value is not None and value not in (names := pc.unique(self.results[name]).to_pylist()):
                raise unknown(f"{name} of these results", value, names, where=self.about.benchmark)
        return [row["value"] for row in self.rows(**filters)]

    def rows(self, **filters: Any) -> list[dict[str, Any]]:
        """Return the rows of ``results`` whose columns have the given values (None: any), in order."""
        table = self.results
        for name, value in filters.items():
            if value is not None:
                table = table.filter(pc.equal(table[name], value))
        return list(table.to_pylist())

    def to_table(self) -> pa.Table:
        """Return ``results``: one row per detector, run, set and metric."""
        return self.results


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return rows (values in the schema's order) as a table."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(values, f.type) for values, f in zip(columns, schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
