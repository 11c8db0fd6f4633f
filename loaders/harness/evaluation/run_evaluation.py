"""Score test images with detectors on the outputs of models, and compute every metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordnet_splits.base.errors import DataError, UnusableError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import METRICS

from ..data.arrays import Array
from ..detectors import DETECTORS, ConfiguredDetector
from ..detectors.parsing import join_left_out, left_out_note, resolve_detectors
from ..extraction.outputs import GroupOutputs, ModelRun, outputs_key
from ..results.clusters import clusters_of_intervals
from ..results.metadata import (
    DISJOINT,
    Coverage,
    DetectorFacts,
    MetricOptions,
    ResultsMetadata,
    RunFacts,
    user_metrics,
)
from ..results.results import Results
from ..results.rows_from_scores import EvaluatedSets, compute_rows
from ..results.scores import (
    IMAGES,
    MODEL,
    SWEEPS,
    ClassKey,
    DetectorRun,
    check_scores,
    prediction_table,
    score_table,
    table_of,
)
from .fitting import (
    SweepTrial,
    choose_on_validation,
    count_images,
    disjoint_validation,
    fit_data,
    fit_needs,
    fit_on_benchmark,
    usable_detectors,
)
from .notes import (
    accuracy_notes,
    checked_outputs,
    predicted_table,
    rescoring_notes,
    run_notes,
    sign_notes,
    size_notes,
    training_accuracy_notes,
    undefined_notes,
)
from .provenance import command_line, python_call, run_facts, software
from .scoring import (
    Data,
    Fitted,
    confidence,
    fit,
    has_predictions,
    predicted,
    tie_notes,
)

for registry in (DETECTORS, METRICS):
    registry.load()  # with this module, not in the middle of the first evaluation
NO_DETECTOR = "there is no detector to score"


def evaluate_runs(
    manifest: Manifest,
    runs: Sequence[ModelRun],
    detectors: str | Sequence[Any],
    *,
    options: MetricOptions | None = None,
    sweep: bool | str = False,
    groups: Sequence[str] | None = None,
    without: Sequence[str] = (),
    left_out: Iterable[str] = (),
    custom_sets: Sequence[str] = (),
    inputs: Mapping[str, str] = MappingProxyType({}),
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Score every test image with every detector and compute every metric from those scores.

    Parameters
    ----------
    runs : outputs of networks. Networks with the same ``model`` are its runs: each has its own rows, and
        tables average over the runs. Ensembles combine the runs of a model; for a model with a single run,
        they are left out with a note.
    detectors : text (see `detectors.parse_detectors`), or texts, detector classes, functions and instances.
    sweep : for each run, choose on validation data the parameters that have a sweep and were not given;
        ``"disjoint subtrees"``: without the OOD validation classes that share a subtree with test classes.
    groups : the sets to evaluate in addition to ID; all by default. The results name the sets left out.
    without : sets without images.
    left_out : sentences on missing images, stored with the results; they are read after the images.
    custom_sets : names of the sets, if given in Python instead of a benchmark.
    inputs : ``transform``, ``mean`` and ``std`` as they were given, for the recorded command.
    notes : sentences on deviations from an undisturbed evaluation.

    Raises
    ------
    UnknownNameError : no such group or detector. DataError : a required input is absent, or a detector gives
        NaN or raises; it is named.
    """
    refuse_equal_models(runs, manifest.name)
    options = options or MetricOptions()
    check_sweep(sweep)
    require_clusters(manifest, groups, options, is_custom=bool(custom_sets))
    configured = resolve_detectors(detectors, manifest.name)
    evaluation = _Evaluation(
        EvaluatedSets.from_manifest(manifest, groups, without=without),
        list(runs),
        progress or Silent(),
        list(notes),
    )
    if sweep == DISJOINT:
        evaluation.kept, note = disjoint_validation(evaluation.sets)
        evaluation.notes.append(note)
    ensembles = [detector for detector in configured if detector.spec.models == "many"]
    of_one = [detector for detector in configured if detector not in ensembles]
    usable = evaluation.usable(of_one)  # of all runs, before the first forward pass
    if not ensembles and not any(usable):
        raise DataError(
            NO_DETECTOR, where=manifest.name, hint="; ".join(join_left_out(evaluation.notes)) or None
        )
    for number, detectors_of_run in enumerate(usable):
        evaluation.score_run(number, detectors_of_run, sweep=bool(sweep))
    for model in dict.fromkeys(run.model for run in runs):
        numbers = [number for number, run in enumerate(runs) if run.model == model]
        if len(numbers) > 1:
            evaluation.score_ensembles(numbers, ensembles)
        elif ensembles:
            labels = ", ".join(detector.label for detector in ensembles)
            evaluation.notes.append(f"{model}: left out, as one run is not an ensemble: {labels}")
    order = [detector.label for detector in configured]
    metadata = {"left_out": tuple(left_out), "custom_sets": tuple(custom_sets)}
    return evaluation.results(options, order, metadata, inputs)


def check_sweep(sweep: bool | str) -> None:
    """Raise UnknownNameError for a sweep on anything but disjoint subtrees."""
    if isinstance(sweep, str) and sweep != DISJOINT:
        raise unknown("sweep", sweep, [DISJOINT], where="sweep")


def require_clusters(
    manifest: Manifest,
    groups: Sequence[str] | None,
    options: MetricOptions,
    *,
    sweep: bool | str = False,
    is_custom: bool = False,
) -> None:
    """Check that the sets have the clusters that intervals (`clusters_of_intervals`) and a sweep are over."""
    sets = EvaluatedSets.from_manifest(manifest, groups)
    if sweep == DISJOINT:
        disjoint_validation(sets)
    if options.over == "images":
        return
    test = pa.array(sets.test)
    classes = manifest.classes.filter(pc.is_in(manifest.classes["group"], value_set=test))
    clusters_of_intervals(classes, options.over, options.cut, None if is_custom else manifest)


def refuse_equal_models(runs: Sequence[ModelRun], benchmark: str) -> None:
    """Raise DataError if no model is given or a model is given twice."""
    if not runs:
        raise DataError("no model is given", where=benchmark)
    by_key: dict[str, ModelRun] = {}
    for run in runs:
        if run.model_key and by_key.setdefault(run.model_key, run) is not run:
            names = " and ".join(dict.fromkeys((by_key[run.model_key].model, run.model)))
            raise DataError(
                f"one model is given twice: {names}, equal in architecture and weights",
                where=benchmark,
                hint="give each model once; runs of one model differ in their weights",
            )


@dataclass
class _Evaluation:
    """An evaluation in progress."""

    sets: EvaluatedSets
    runs: list[ModelRun]
    progress: Progress
    notes: list[str] = field(default_factory=list)
    images: pa.Table | None = None
    kept: frozenset[ClassKey] | None = None
    detectors: dict[DetectorRun, DetectorFacts] = field(default_factory=dict)
    scores: dict[DetectorRun, Array] = field(default_factory=dict)
    predictions: dict[DetectorRun, pa.Table] = field(default_factory=dict)
    trials: list[tuple[str, int, SweepTrial]] = field(default_factory=list)
    facts: list[RunFacts] = field(default_factory=list)
    of_users: set[DetectorRun] = field(default_factory=set)

    def usable(self, detectors: Sequence[ConfiguredDetector]) -> list[list[ConfiguredDetector]]:
        """Return the detectors that each run can be scored with; notes name those left out."""
        usable = []
        for run in self.runs:
            of_run, notes = usable_detectors(detectors, self.sets, run)
            usable.append(of_run)
            self.notes += [f"{run.title}: {note}" for note in notes]
        return usable

    def score_run(self, number: int, detectors: Sequence[ConfiguredDetector], *, sweep: bool) -> None:
        """Fit and score detectors on a run."""
        run = self.runs[number]
        with run.source.reading(count_images(detectors, self.sets, sweep=sweep)):
            if sweep:
                detectors = self._choose_parameters(detectors, number)
            # all at once: one pass over the images
            needs: set[Any] = {name for detector in detectors for name in detector.needs}
            test = {group: run.group("test", group, needs) for group in self.sets.test}
            head = next(iter(test.values())).head
            fit_parts = fit_needs(detectors, self.sets)
            fitted_on = {part: run.group(*part, names) for part, names in fit_parts.items()}
        if not run.model_key:
            run = self.runs[number] = replace(run, model_key=outputs_key(test.values()))
        self._add_images(test, run.title)
        predictions = pa.concat_tables(predicted_table(outputs, run.title) for outputs in test.values())
        self.predictions[MODEL, number] = predictions
        assert self.images is not None
        rows = {"role": self.images["role"], "label": self.images["label"]}
        of_accuracy = list(accuracy_notes(pa.table(rows | {"prediction": predictions["prediction"]})))
        of_accuracy = of_accuracy or list(training_accuracy_notes(fitted_on, run.title))
        notes = [
            *run_notes({group: checked_outputs(outputs, run) for group, outputs in test.items()}),
            *size_notes({group: outputs.shape for group, outputs in test.items()}),
            *of_accuracy,
        ]
        self.notes += [f"{run.title}: {note}" for note in notes]
        self.facts.append(run_facts(number, run, test))
        with self.progress.task(f"scoring {run.title}", len(detectors)) as task:
            for configured in detectors:
                with self._unless_unusable(configured, number, run.title):
                    fitted = fit_on_benchmark(configured, self.sets, run, head)
                    if fitted.probes:
                        needs.update(fitted.probes)
                        test = {group: run.group("test", group, needs) for group in self.sets.test}
                    inputs = {group: (outputs, outputs.arrays) for group, outputs in test.items()}
                    self._score((configured.label, number), fitted, inputs, (number,), run.title)
                task.advance()

    def _add_images(self, test: Mapping[str, GroupOutputs], name: str) -> None:
        """Keep the images of the first network; raise DataError if another network's images differ."""
        tables = []
        for group, outputs in test.items():
            named = {"group": group, "role": self.sets.test[group]}
            columns = {name: pa.repeat(pa.scalar(text), outputs.arrays.n) for name, text in named.items()}
            columns |= {name: outputs.table[name] for name in IMAGES.names if name not in named}
            tables.append(pa.table(columns).select(IMAGES.names).cast(IMAGES))
        images = pa.concat_tables(tables).combine_chunks()
        if self.images is not None and not images.equals(self.images):
            raise DataError("saw other images than the first network", where=name)
        self.images = images

    @contextmanager
    def _unless_unusable(self, configured: ConfiguredDetector, number: int, name: str) -> Iterator[None]:
        """Leave out a detector of a preset that cannot be used on these data; any other is an error."""
        try:
            yield
        except UnusableError as error:
            if not configured.optional:
                raise
            self.notes.append(f"{name}: {left_out_note(configured, error.what)}")
            self.trials = [trial for trial in self.trials if trial[:2] != (configured.label, number)]

    def _choose_parameters(
        self, detectors: Sequence[ConfiguredDetector], number: int
    ) -> list[ConfiguredDetector]:
        """Return the detectors with the values that sweeps chose, and record all trials."""
        with_values = []
        for configured in detectors:
            if not configured.sweep:
                with_values.append(configured)
                continue
            with self._unless_unusable(configured, number, self.runs[number].name):
                best, trials = choose_on_validation(configured, self.sets, self.runs[number], kept=self.kept)
                self.trials += [(configured.label, number, trial) for trial in trials]
                with_values.append(best)
        return with_values

    def score_ensembles(self, numbers: Sequence[int], ensembles: Sequence[ConfiguredDetector]) -> None:
        """Fit and score detectors on all runs of a model; rows carry the number of the first run."""
        runs = [self.runs[number] for number in numbers]
        for configured in ensembles:
            with self._unless_unusable(configured, numbers[0], runs[0].model):
                self._score_ensemble(numbers, runs, configured)

    def _score_ensemble(
        self, numbers: Sequence[int], runs: Sequence[ModelRun], configured: ConfiguredDetector
    ) -> None:
        outputs = {g: [run.group("test", g, configured.needs) for run in runs] for g in self.sets.test}
        data: list[Any] = [fit_data(configured, self.sets, run) for run in runs]
        heads = [run_outputs.head for run_outputs in next(iter(outputs.values()))]
        fitted = fit(configured, [part for part in data if part is not None] or None, heads)
        inputs = {
            group: (of_runs[0], [run_outputs.arrays for run_outputs in of_runs])
            for group, of_runs in outputs.items()
        }
        self._score((configured.label, numbers[0]), fitted, inputs, tuple(numbers), runs[0].model)

    def _score(
        self,
        key: DetectorRun,
        fitted: Fitted,
        inputs: Mapping[str, tuple[GroupOutputs, Data]],
        numbers: tuple[int, ...],
        name: str,
    ) -> None:
        """Store the scores of a detector, and its predictions if it has its own."""
        scores = {group: confidence(fitted, data, on=group) for group, (_, data) in inputs.items()}
        notes = tie_notes(scores, key[0])
        if not fitted.configured.spec.built_in:  # tests cover built-in detectors
            self.of_users.add(key)
            data_by_group = {group: data for group, (_, data) in inputs.items()}
            notes += rescoring_notes(fitted, data_by_group, scores)
        if has_predictions(fitted):
            self.predictions[key] = pa.concat_tables(
                predicted_table(replace(outputs, arrays=predicted(fitted, data)), key[0])
                for outputs, data in inputs.values()
            )
        self.scores[key] = np.concatenate(list(scores.values()))
        self.notes += [f"{name}: {note}" for note in notes]
        configured = fitted.configured
        self.detectors[key] = DetectorFacts(
            detector=key[0],
            run=key[1],
            runs=numbers,
            params=dict(configured.params),
            chosen_on=configured.chosen_on or None,
            foreign=configured.spec.foreign,
        )

    def results(
        self,
        options: MetricOptions,
        order: Sequence[str],
        metadata: Mapping[str, Any],
        inputs: Mapping[str, str],
    ) -> Results:
        """Compute every row of everything scored; detectors come in the order given."""
        keys = sorted(self.scores, key=lambda key: (order.index(key[0]), key[1]))
        if not keys or self.images is None:
            raise DataError(NO_DETECTOR, hint="; ".join(join_left_out(self.notes)) or None)
        scores = score_table(self.images, {key: self.scores[key] for key in keys})
        predictions = prediction_table(self.predictions)
        check_scores(scores, predictions, keys, [facts.run for facts in self.facts])
        is_custom, manifest = bool(metadata["custom_sets"]), self.sets.manifest
        inputs_of_rows = scores, predictions, self.sets.similarity(), options, self.facts
        benchmark = None if is_custom else manifest
        computed = compute_rows(*inputs_of_rows, manifest=benchmark, progress=self.progress)
        metrics = user_metrics()
        self.notes += undefined_notes(computed.results, metrics)
        self.notes += sign_notes(row for row in computed.results if row[0] in self.of_users)
        about = ResultsMetadata(
            benchmark=manifest.name,
            version=manifest.version,
            images_fingerprint=manifest.fingerprint,
            evaluation_fingerprint=manifest.evaluation_fingerprint,
            sources_fingerprint=manifest.sources_fingerprint,
            options=options,
            composition=Coverage.model_validate(computed.composition),
            missing=tuple(self.sets.missing(Counter(self.images["group"].to_pylist()))),
            runs=tuple(self.facts),
            detectors=tuple(self.detectors[key] for key in keys),
            notes=tuple(dict.fromkeys(self.notes)),
            metrics=metrics,
            clusters=computed.clusters,
            software=software(with_torch=any(run.device for run in self.facts)),
            **metadata,
        )
        command = python_call(about, inputs) if is_custom else command_line(about, manifest, inputs)
        return Results(
            computed.result_table({facts.run: facts.model for facts in self.facts}),
            scores,
            predictions,
            computed.by_class,
            computed.by_nearness,
            about.model_copy(update={"command": command}),
            table_of([(detector, number, *trial) for detector, number, trial in self.trials], SWEEPS),
        )
