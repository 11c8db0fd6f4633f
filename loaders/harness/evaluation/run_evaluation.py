"""Any detectors on the outputs of models: confidences of the test images, and every metric."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.manifest import Manifest

from ..activations.runs import GroupOutputs, ModelRun, predict
from ..arrays import Array, Head
from ..detectors import ConfiguredDetector, detector_from_object, parse_detectors
from ..detectors.parsing import without_duplicates
from .fitting import (
    Tried,
    choose_on_validation,
    fit_data,
    images_of,
    learn,
    passed_over,
    read_ahead,
    usable,
    validation_sets,
)
from .notes import accuracy_notes, run_notes, size_notes
from .results import Results
from .rows_from_scores import Derived, DetectorRun, derive
from .schema import (
    BY_CLASS,
    BY_NEARNESS,
    MODEL,
    PREDICTIONS,
    RESULTS,
    SCORES,
    About,
    ColumnsUsed,
    Coverage,
    MetricOptions,
    RunFacts,
    table_of,
)
from .scoring import HEAD, Data, Fitted, UnusableError, confidence, fit, narrowed, predicted, predicts
from .sets import EvaluatedSets
from .sweeps import sweeps_table


def evaluate_runs(
    manifest: Manifest,
    runs: Sequence[ModelRun],
    detectors: str | Sequence[Any],
    *,
    options: MetricOptions | None = None,
    sweep: bool = False,
    groups: Sequence[str] | None = None,
    left_out: Sequence[str] = (),
    own: Sequence[str] = (),
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Score every test image with every detector and compute every metric from those scores.

    Parameters
    ----------
    runs : outputs of networks; those of one ``model`` are its runs, each with rows of its own, and tables
        average over them. Ensembles join the runs of a model; for a model of one run they are left out, with
        a note.
    detectors : text (see `detectors.parse_detectors`), or texts, detector classes, functions and instances.
    sweep : choose the parameters that have a sweep, and were not given, on validation data, for each run.
    groups : the sets to evaluate besides ID; all by default. What is left out is named in the results.
    left_out : which images are missing, stored with the results.
    own : what the sets are called, where they were given in Python in place of a benchmark.
    notes : deviations from an undisturbed evaluation that are known already.

    Raises
    ------
    UnknownNameError : no such group or detector. DataError : something needed is absent, or a detector gives
        NaN or raises; it is named.
    """
    _refuse_equal_models(runs, manifest.name)
    chosen = chosen_detectors(detectors, manifest.name)
    work = _Work(EvaluatedSets.of(manifest, groups), list(runs), progress or Silent(), list(notes))
    many = [one for one in chosen if one.spec.models == "many"]
    for number in range(len(runs)):
        work.score_run(number, [one for one in chosen if one not in many], sweep=sweep)
    for model in dict.fromkeys(run.model for run in runs):
        numbers = [number for number, run in enumerate(runs) if run.model == model]
        if len(numbers) > 1:
            work.score_together(numbers, many)
        elif many:
            labels = ", ".join(one.label for one in many)
            work.notes.append(f"{model}: left out, as one run is not an ensemble: {labels}")
    return work.results(options or MetricOptions(), [one.label for one in chosen], left_out, own)


def _refuse_equal_models(runs: Sequence[ModelRun], benchmark: str) -> None:
    if not runs:
        raise DataError("no model is given", where=benchmark)
    first: dict[str, ModelRun] = {}
    for run in runs:
        if run.model_key and first.setdefault(run.model_key, run) is not run:
            names = " and ".join(dict.fromkeys((first[run.model_key].model, run.model)))
            raise DataError(
                f"one model is given twice: {names}, equal in architecture and weights",
                where=benchmark,
                hint="give each model once; runs of one model differ in their weights",
            )


def chosen_detectors(given: str | Sequence[Any], benchmark: str) -> list[ConfiguredDetector]:
    """Return the detectors that are named, and those that are given as objects, each label once."""
    items = [given] if isinstance(given, str) else given
    named = (
        parse_detectors(item, benchmark=benchmark) if isinstance(item, str) else [detector_from_object(item)]
        for item in items
    )
    return without_duplicates(one for several in named for one in several)


@dataclass(frozen=True)
class _Use:
    """The model and parameters that a detector was used with: the first columns of its rows."""

    model: str
    model_key: str
    transform_key: str
    params: Mapping[str, Any] = field(default_factory=dict)
    chosen_on: str = ""


@dataclass
class _Work:
    """An evaluation in progress: what has been scored so far."""

    sets: EvaluatedSets
    runs: list[ModelRun]
    progress: Progress
    notes: list[str] = field(default_factory=list)
    uses: dict[DetectorRun, _Use] = field(default_factory=dict)
    scores: dict[DetectorRun, pa.Table] = field(default_factory=dict)
    predictions: dict[DetectorRun, pa.Table] = field(default_factory=dict)
    tried: list[tuple[str, int, Tried]] = field(default_factory=list)
    scored: dict[str, int] = field(default_factory=dict)
    facts: list[RunFacts] = field(default_factory=list)

    def score_run(self, number: int, chosen: Sequence[ConfiguredDetector], *, sweep: bool) -> None:
        """Fit and score detectors of one run."""
        run = self.runs[number]
        chosen = self._usable(chosen, run)
        with run.reading(images_of(chosen, self.sets, sweep=sweep)):
            if sweep:
                if any(one.optional and "head" in one.spec.needs for one in chosen):
                    inside, _ = validation_sets(self.sets)
                    chosen = self._with_head(chosen, run.title, run.group("val", inside[0]).head)
                chosen = self._choose(chosen, number)
            needs: set[Any] = {name for one in chosen for name in one.needs}  # at once: one pass over images
            test = {group: run.group("test", group, needs) for group in self.sets.test}
            head = next(iter(test.values())).head
            chosen = self._with_head(chosen, run.title, head)
            read_ahead(chosen, self.sets, run)
        self.scored.update({group: seen.arrays.n for group, seen in test.items()})
        predictions = _prediction_table(("", number), test, self.sets.test, run.title)
        seen_on = run_notes({group: seen.notes for group, seen in test.items()})
        sizes = size_notes({group: seen.shape for group, seen in test.items()})
        self.notes += [f"{run.title}: {note}" for note in (*seen_on, *sizes, *accuracy_notes(predictions))]
        self.predictions["", number] = predictions
        self.facts.append(_facts(number, run, test))
        use = _Use(run.model, run.model_key, _joined(seen.transform_key for seen in test.values()))
        self.uses[MODEL, number] = use
        with self.progress.task(f"scoring {run.title}", len(chosen)) as task:
            for one in chosen:
                with self._unless_unusable(one, number, run.title):
                    fitted = learn(one, self.sets, run, head)
                    if fitted.probes:
                        needs.update(fitted.probes)
                        test = {group: run.group("test", group, needs) for group in self.sets.test}
                    seen_by_it = {group: (seen, seen.arrays) for group, seen in test.items()}
                    self._score((one.label, number), fitted, seen_by_it, use, run.title)
                task.advance()

    @contextmanager
    def _unless_unusable(self, one: ConfiguredDetector, number: int, name: str) -> Iterator[None]:
        """Leave out a detector of a preset that cannot be used on these data; any other is an error."""
        try:
            yield
        except UnusableError as error:
            if not one.optional:
                raise
            self.notes.append(f"{name}: {passed_over(one, error.what)}")
            self.tried = [each for each in self.tried if each[:2] != (one.label, number)]

    def _choose(self, chosen: Sequence[ConfiguredDetector], number: int) -> list[ConfiguredDetector]:
        """Choose the values of those that have a sweep, keeping all that were tried."""
        kept = []
        for one in chosen:
            if not one.sweep:
                kept.append(one)
                continue
            with self._unless_unusable(one, number, self.runs[number].name):
                best, tried = choose_on_validation(one, self.sets, self.runs[number])
                self.tried += [(one.label, number, each) for each in tried]
                kept.append(best)
        return kept

    def _usable(self, chosen: Sequence[ConfiguredDetector], run: ModelRun) -> list[ConfiguredDetector]:
        kept, notes = usable(chosen, self.sets, run)
        self.notes += [f"{run.title}: {note}" for note in notes]
        return kept

    def _with_head(
        self, chosen: Sequence[ConfiguredDetector], name: str, head: Head | None
    ) -> list[ConfiguredDetector]:
        """Leave out those of a preset that lack a linear head; others are refused when they are fitted."""
        if head is not None:
            return list(chosen)
        left = [one for one in chosen if one.optional and "head" in one.spec.needs]
        self.notes += [f"{name}: {passed_over(one, f'it {HEAD}')}" for one in left]
        return [one for one in chosen if one not in left]

    def score_together(self, numbers: Sequence[int], chosen: Sequence[ConfiguredDetector]) -> None:
        """Fit and score detectors of all runs of one model together; rows carry the number of the first."""
        runs = [self.runs[number] for number in numbers]
        for one in chosen:
            with self._unless_unusable(one, numbers[0], runs[0].model):
                self._score_together(numbers[0], runs, one)

    def _score_together(self, number: int, runs: Sequence[ModelRun], one: ConfiguredDetector) -> None:
        seen = {g: [run.group("test", g, one.needs) for run in runs] for g in self.sets.test}
        for group, several in seen.items():
            if any(not other.table.equals(several[0].table) for other in several[1:]):
                raise DataError("the runs of one model saw different images", where=group)
        learned: list[Any] = [fit_data(one, self.sets, run) for run in runs]
        heads = [own.head for own in next(iter(seen.values()))]
        fitted = fit(one, [data for data in learned if data is not None] or None, heads)
        use = _Use(
            runs[0].model,
            _joined(run.model_key for run in runs),
            _joined(own.transform_key for several in seen.values() for own in several),
        )
        first = {group: (several[0], [own.arrays for own in several]) for group, several in seen.items()}
        self._score((one.label, number), fitted, first, use, runs[0].model)

    def _score(
        self,
        key: DetectorRun,
        fitted: Fitted,
        groups: Mapping[str, tuple[GroupOutputs, Data]],
        use: _Use,
        name: str,
    ) -> None:
        """Keep the scores of a detector, and its predictions where it has its own; notes name the run."""
        given = {group: confidence(fitted, data, on=group) for group, (_, data) in groups.items()}
        found, notes = narrowed(given, fitted.chosen)
        own = {
            group: replace(seen, arrays=predicted(fitted, data))
            for group, (seen, data) in groups.items()
            if predicts(fitted)
        }
        if own:
            self.predictions[key] = _prediction_table(key, own, self.sets.test, key[0])
        self.scores[key] = _score_table(key, {group: seen for group, (seen, _) in groups.items()}, found)
        self.notes += [f"{name}: {note}" for note in notes]
        self.uses[key] = replace(use, params=fitted.chosen.params, chosen_on=fitted.chosen.chosen_on)

    def results(
        self, options: MetricOptions, order: Sequence[str], left_out: Sequence[str], own: Sequence[str]
    ) -> Results:
        """Compute every row of everything scored; detectors come in the order given."""
        keys = sorted(self.scores, key=lambda key: (order.index(key[0]), key[1]))
        if not keys:
            raise DataError("there is no detector to score", hint="; ".join(self.notes) or None)
        scores = pa.concat_tables([self.scores[key] for key in keys]).combine_chunks()
        predictions = pa.concat_tables(list(self.predictions.values())).combine_chunks()
        known = self.sets.similarity()
        found = derive(scores, predictions, known, options, self.facts, progress=self.progress)
        manifest = self.sets.manifest
        about = About(
            benchmark=manifest.name,
            version=manifest.version,
            images_fingerprint=manifest.fingerprint,
            evaluation_fingerprint=manifest.evaluation_fingerprint,
            sources_fingerprint=manifest.sources_fingerprint,
            options=options,
            composition=Coverage.model_validate(found.composition),
            missing=tuple(self.sets.missing(self.scored)),
            runs=tuple(self.facts),
            left_out=tuple(left_out),
            notes=tuple(dict.fromkeys(self.notes)),
            own_sets=tuple(own),
        )
        return Results(
            table_of(self._rows(about, found), RESULTS),
            scores,
            predictions,
            table_of([(*key, *row) for key, row in found.classes], BY_CLASS),
            table_of([(*key, *row) for key, row in found.bins], BY_NEARNESS),
            about,
            sweeps_table(self.tried),
        )

    def _rows(self, about: About, found: Derived) -> list[tuple[Any, ...]]:
        first = (about.benchmark, about.version, about.images_fingerprint)
        rows = []
        for (detector, number), row in found.results:
            use = self.uses[detector, number]
            params = json.dumps(dict(use.params), sort_keys=True)
            model = (use.model, use.model_key, use.transform_key, number)
            rows.append((*first, *model, detector, params, use.chosen_on or None, *row))
        return rows


def _facts(number: int, run: ModelRun, test: Mapping[str, GroupOutputs]) -> RunFacts:
    classes = next(iter(test.values())).classes
    known = 1 if classes is None else len(classes.columns) or len(classes.class_columns)
    return RunFacts(
        run=number,
        model=run.model,
        name=run.name,
        model_key=run.model_key,
        weights=run.weights,
        device=run.device,
        transforms={seen.transform_key: seen.transform for seen in test.values()},
        class_map=None if classes is None else ColumnsUsed.model_validate(classes.record()),
        known_classes=known,
        other_columns=classes is not None and len(classes.softmax_columns) > known,
        named=run.user_named or run.model != run.name,
    )


def _score_table(
    key: DetectorRun, test: Mapping[str, GroupOutputs], confidences: Mapping[str, Array]
) -> pa.Table:
    """Return `rows.SCORES` of the groups in their order, given the confidence of every image."""
    return pa.concat_tables(
        _rows_of(SCORES, key, group, seen, {"confidence": pa.array(confidences[group], pa.float32())})
        for group, seen in test.items()
    )


def _prediction_table(
    key: DetectorRun, test: Mapping[str, GroupOutputs], roles: Mapping[str, str], name: str
) -> pa.Table:
    """Return `rows.PREDICTIONS` of the groups in their order; nulls where the model gives no logits."""
    made = []
    for group, seen in test.items():
        n, said = seen.arrays.n, predict(seen, name)
        columns = {
            "role": pa.repeat(pa.scalar(roles[group]), n),
            "label": seen.table["label"],
            "class_id": seen.table["class_id"],
            "prediction": pa.nulls(n, pa.int32()),
            "target_probability": pa.nulls(n, pa.float32()),
            "max_probability": pa.nulls(n, pa.float32()),
        }
        if said is not None:
            columns["prediction"] = pa.array(said.label, pa.int32())
            columns["target_probability"] = pa.array(said.of_target, mask=np.isnan(said.of_target))
            columns["max_probability"] = pa.array(said.greatest, mask=np.isnan(said.greatest))
        made.append(_rows_of(PREDICTIONS, key, group, seen, columns))
    return pa.concat_tables(made)


def _rows_of(
    schema: pa.Schema, key: DetectorRun, group: str, seen: GroupOutputs, columns: Mapping[str, Any]
) -> pa.Table:
    n = seen.arrays.n
    known = {
        "detector": pa.repeat(pa.scalar(key[0]), n),
        "run": pa.repeat(pa.scalar(key[1], pa.int32()), n),
        "source": seen.table["source"],
        "image_id": seen.table["image_id"],
        "group": pa.repeat(pa.scalar(group), n),
        **columns,
    }
    return pa.table({name: known[name] for name in schema.names}).cast(schema)


def _joined(values: Iterable[str]) -> str:
    """Return the different ones of ``values`` in order, joined by ``+``."""
    return "+".join(dict.fromkeys(values))
