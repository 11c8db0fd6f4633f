"""The content of ``about.json``: benchmark, networks, detectors, options and notes of an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_serializer, model_validator

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.text_formats import BenchmarkName, Count, validate
from wordnet_splits.benchmark.clusters import LEVELS, Level
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import METRICS, get_metric, list_metrics
from wordnet_splits.metrics.registry import OTHER_VALUES

from ..detectors.parsing import join_left_out
from ..detectors.registry import Foreign
from ..models.origin import WeightsOrigin

Share = Annotated[float, Field(gt=0, lt=1)]
MAX_REPLICATES, MAX_PREVALENCES, MAX_BINS = 100_000, 100, 1000
"""Limits on the work that an untrusted results file can request."""

NOT_CHOSEN = "not chosen"
"""Status of a missing set that the call did not ask for (``groups=``, ``--group``)."""
DISJOINT = "disjoint subtrees"
"""Value of ``sweep`` and end of its criterion: without OOD validation classes in subtrees of test classes."""


def check_level(over: str, cut: int | None = None, replicates: int | None = None) -> Level:
    """Return ``over`` if it is a level; raise UnknownNameError otherwise.

    Raises
    ------
    DataError : the cut is unusable, or there are too few replicates (if given) for intervals over clusters.
    """
    for level in LEVELS:
        if level == over:
            if cut is not None and over != "subtrees":
                raise DataError("a cut requires the level subtrees", where="--cut", hint="--over subtrees")
            if cut is not None and not (isinstance(cut, int) and cut > 0):
                raise DataError(f"a cut must be at least 1 edge, got {cut}", where="--cut")
            if over != "images" and replicates is not None and replicates < 2:
                message = f"intervals over {over} need at least 2 bootstrap replicates, got {replicates}"
                raise DataError(message, where="--over", hint="bootstrap=1000 (--bootstrap 1000) is usual")
            return level
    raise unknown("level", over, LEVELS, where="--over")


class MetadataPart(BaseModel):
    """Base of the parts of ``about.json``."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())
    omitted: ClassVar[tuple[str, ...]] = ()
    """Fields that are written only if they differ from their default."""

    @model_serializer(mode="wrap")
    def _serialize(self, handler: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        defaults = {n for n in self.omitted if getattr(self, n) == type(self).model_fields[n].default}
        return {name: value for name, value in handler(self).items() if name not in defaults}


class MetricOptions(MetadataPart):
    """Options of the metrics.

    Attributes
    ----------
    replicates : bootstrap replicates behind ``lo`` and ``hi``; 0 for none.
    seed, level : seed and confidence level of the bootstrap.
    prevalences : additional shares of OOD for `aurc_unknown`.
    bins : number of equal bins of the similarity to the nearest ID class.
    over : the units that the bootstrap draws: ``images``, OOD ``classes``, or ``subtrees`` of these.
    cut : edges from the least common subsumer of a set's classes down to its subtrees; None for the default.
    """

    omitted = ("over", "cut")

    replicates: Annotated[int, Field(ge=0, le=MAX_REPLICATES)] = 0
    seed: Count = 0
    level: Share = 0.95
    prevalences: Annotated[tuple[Share, ...], Field(max_length=MAX_PREVALENCES)] = (0.5,)
    bins: Annotated[int, Field(ge=1, le=MAX_BINS)] = 10
    over: Level = "images"
    cut: int | None = None

    @model_validator(mode="after")
    def _level_fits(self) -> MetricOptions:
        check_level(self.over, self.cut, self.replicates)
        return self


def metric_options(
    bootstrap: int, seed_boot: int, prevalences: Sequence[float], over: str = "images", cut: int | None = None
) -> MetricOptions:
    """Return options from the arguments of `evaluate`; DataError for one that is out of range."""
    values = {"replicates": bootstrap, "seed": seed_boot, "prevalences": tuple(prevalences)}
    options = validate(MetricOptions, values, where="options of the evaluation")
    return options.model_copy(update={"over": check_level(over, cut, options.replicates), "cut": cut})


class Coverage(MetadataPart):
    """Numbers of pooled images, by ID, near and far set, and the share of OOD images among them."""

    sets: dict[str, Count]
    n_id: Count
    n_ood: Count
    prevalence: float


@dataclass(frozen=True)
class ClusterCount:
    """Number of classes or subtrees of a set, and of equal ones that they count as (`effective_number`)."""

    number: int
    effective: float


class MissingSet(MetadataPart):
    """A set with fewer scored test images than the benchmark has; unknown ``expected`` counts are None."""

    group: str
    role: str
    scored: Count
    expected: Count | None
    status: str


class ColumnsUsed(MetadataPart):
    """The columns of a model's output that are used: see `model.class_map.ClassMap.record`.

    ``order`` identifies the column of each label, or is None if not recorded.
    """

    restrict: Literal["columns", "full"]
    columns: Count
    of: Count
    background: Count | None
    mapping: Annotated[str, Field(pattern=r"^(identity|classes|given|source:[a-z0-9][a-z0-9-]{0,63})$")]
    order: Annotated[str, Field(pattern=r"^[0-9a-f]{8}$")] | None = None

    def is_of(self, record: Mapping[str, Any]) -> bool:
        """Return whether these are the columns of a class map's record."""
        ignored = "mapping" if self.order else "order"  # equal columns may be given in several ways
        return all(value == record[name] for name, value in self.model_dump().items() if name != ignored)


class RunFacts(MetadataPart):
    """One evaluated network.

    Attributes
    ----------
    run : its number in the tables.
    name : of the network, from its specification.
    model : name of its model; tables average over a model's runs.
    weights : where its weights come from.
    device : the device that it ran on, "" for arrays.
    transforms : transform_key -> description of the transform.
    known_classes : K, the number of the benchmark's classes that it has.
    other_columns : whether its softmax has other columns, too (a background class; all of a larger model).
    named : whether the user named the model; otherwise ``model`` is the network's name, or a default.
    prompts : start of the SHA-256 of a zero-shot model's class prompts (`ZeroShot.prompts`), "" without any.
    """

    omitted = ("prompts",)

    run: Count
    model: str
    name: str
    model_key: str
    weights: WeightsOrigin
    device: str
    transforms: dict[str, str]
    class_map: ColumnsUsed | None
    known_classes: Count
    other_columns: bool
    named: bool
    prompts: Annotated[str, Field(pattern=r"^([0-9a-f]{12})?$")] = ""

    @model_validator(mode="after")
    def _columns_fit(self) -> RunFacts:
        used = self.class_map
        if used is not None:
            softmax = used.columns + (used.background is not None)
            fit = self.known_classes <= used.columns and max(softmax, 1 + (used.background or 0)) <= used.of
            if not fit or self.other_columns != (softmax > self.known_classes):
                raise ValueError(
                    f"{self.known_classes} known classes do not fit {used.columns} columns of {used.of}"
                )
        return self


class DetectorFacts(MetadataPart):
    """One detector on one network, or on all runs of a model.

    Attributes
    ----------
    detector : its label.
    run : its number of the network in the tables, the first of several.
    runs : the networks that it combines.
    params : its parameters.
    chosen_on : the sweep's criterion for choosing them, None without a sweep.
    foreign : facts of an object of another library, None for other detectors.
    """

    detector: str
    run: Count
    runs: tuple[Count, ...]
    params: dict[str, Any]
    chosen_on: str | None = None
    foreign: Foreign | None = None


class MetricFacts(MetadataPart):
    """A user's metric that was computed.

    Attributes
    ----------
    name : in the ``metric`` column.
    higher_is_better : its direction.
    needs : its inputs, of "id", "correct" and "ood".
    summary : its first line of documentation.
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


def user_metrics() -> tuple[MetricFacts, ...]:
    """Return the facts of the users' metrics that are registered."""
    return tuple(
        MetricFacts(**{name: getattr(metric, name) for name in MetricFacts.model_fields})
        for metric in map(get_metric, list_metrics())
        if metric.origin
    )


class ResultsMetadata(MetadataPart):
    """The description of results: the content of ``about.json`` without the checksums.

    Attributes
    ----------
    images_fingerprint : of the benchmark's images, None while the source of a group is not available.
    evaluation_fingerprint : of its transforms, normalisation, roles and views.
    sources_fingerprint : of the datasets that the benchmark carries, None if it does not carry any.
    command : the command line, or the call in Python, that repeats the evaluation, without its bootstrap.
    runs : the networks.
    detectors : the detectors on each network, in the order of the scores.
    missing : ID, near and far sets that were not scored whole.
    left_out : sentences on images that a root lacked.
    notes : sentences on deviations.
    custom_sets : names of the sets given in Python instead of a benchmark.
    metrics : the users' metrics that were computed.
    unscored_runs : runs whose scores and predictions a leaderboard entry leaves out.
    clusters : OOD set -> the classes or subtrees that its intervals are over, or why it has none;
        empty if intervals are over images.
    software : versions, ``commit`` of a checkout and ``date``; empty if they were not recorded.
    """

    omitted = ("clusters",)

    benchmark: BenchmarkName
    version: int
    images_fingerprint: str | None
    evaluation_fingerprint: str
    sources_fingerprint: str | None
    command: str = ""
    options: MetricOptions
    composition: Coverage
    missing: tuple[MissingSet, ...]
    runs: tuple[RunFacts, ...]
    detectors: tuple[DetectorFacts, ...]
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    custom_sets: tuple[str, ...] = ()
    metrics: tuple[MetricFacts, ...] = ()
    unscored_runs: tuple[int, ...] = ()
    clusters: dict[str, ClusterCount | str] = {}
    software: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _runs_are_described(self) -> ResultsMetadata:
        numbers = [facts.run for facts in self.runs]
        keys = [(facts.detector, facts.run) for facts in self.detectors]
        used = {run for facts in self.detectors for run in (facts.run, *facts.runs)}
        if len(set(numbers)) < len(numbers) or len(set(keys)) < len(keys):
            raise ValueError("a run, or a detector of one run, is described twice")
        if undescribed := (used | {*self.unscored_runs}) - {*numbers}:
            raise ValueError(f"run {min(undescribed)} is not described")
        return self

    @property
    def fingerprints(self) -> dict[str, str | None]:
        """The fingerprints that all results on a benchmark share; see `fingerprints_of`."""
        return {name: getattr(self, f"{name}_fingerprint") for name in FINGERPRINT_SUBJECTS}

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models, in order."""
        return tuple(dict.fromkeys(run.model for run in self.runs))

    @property
    def foreign(self) -> tuple[str, ...]:
        """Sentences on the detectors of other libraries."""
        sentences = (
            f"{facts.detector} is {facts.foreign.object}, by the protocol of {facts.foreign.protocol}; "
            f"{facts.foreign.sign}."
            for facts in self.detectors
            if facts.foreign is not None
        )
        return tuple(dict.fromkeys(sentences))

    @property
    def remarks(self) -> tuple[str, ...]:
        """Sentences to print on images left out, detectors of other libraries, and deviations."""
        return (
            *(f"Left out: {line}" for line in self.left_out),
            *(f"Foreign: {line}" for line in self.foreign),
            *(f"Note: {line}" for line in join_left_out(self.notes)),
        )

    def higher_is_better(self, metric: str) -> bool:
        """Return the direction of a metric of these results, which record the direction of users' metrics."""
        name = metric.partition("[")[0]
        if name in OTHER_VALUES:
            return OTHER_VALUES[name]
        recorded = {facts.name: facts.higher_is_better for facts in self.metrics}
        return recorded[name] if name in recorded else get_metric(name).higher_is_better

    def runs_of(self, model: str) -> tuple[RunFacts, ...]:
        """Return the runs of a model."""
        return tuple(run for run in self.runs if run.model == model)

    def detector(self, label: str, run: int) -> DetectorFacts:
        """Return the facts of a detector on a run; raise DataError if it was not scored."""
        for facts in self.detectors:
            if (facts.detector, facts.run) == (label, run):
                return facts
        raise DataError(f"{label} was not scored in run {run}", where=self.benchmark)

    def model_key(self, detector: DetectorFacts) -> str:
        """Return the keys of the networks that a detector combines, joined by ``+``."""
        keys = {run.run: run.model_key for run in self.runs}
        return "+".join(dict.fromkeys(keys[run] for run in detector.runs))

    def network(self, number: int | None) -> tuple[RunFacts, tuple[str, ...]]:
        """Return a network by its number, and a note that identifies it among several runs.

        The default is the first run of the only model.
        """
        numbers = ", ".join(f"{run.run} ({run.model})" for run in self.runs)
        if number is not None:
            if of_number := [run for run in self.runs if run.run == number]:
                return of_number[0], ()
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
    "sources": "carried datasets or hierarchy",
}
"""Fingerprint of results -> its subject in errors."""


def fingerprints_of(manifest: Manifest) -> dict[str, str | None]:
    """Return the fingerprints of a benchmark that its results store."""
    return {
        "images": manifest.fingerprint,
        "evaluation": manifest.evaluation_fingerprint,
        "sources": manifest.sources_fingerprint,
    }


class ChecksummedMetadata(MetadataPart):
    """``about.json``: the metadata, and the SHA-256 of the file of every table."""

    schema_: Literal[2] = Field(alias="schema")
    about: ResultsMetadata
    files: dict[str, str]
