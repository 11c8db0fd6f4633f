"""Entries of a comparison: detectors on the runs of models, from one or several results.

Results on one benchmark are compared together. Separate evaluations of a model count as its runs if the user
named the model; networks that share a default name (a class's, or "arrays") stay separate models. Results
with a different benchmark, version or list of images are refused.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np

from wordnet_splits.base.errors import DataError, UnknownNameError
from wordnet_splits.benchmark.clusters import Level
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics import ScoreSet

from ..data.parameters import split_list
from ..detectors.parsing import find_label
from ..results.clusters import ImageClusters, image_clusters
from ..results.metadata import FINGERPRINT_SUBJECTS
from ..results.results import Results
from ..results.scores import (
    MODEL,
    DetectorRun,
    ImagesBySet,
    ResultTables,
    ScoredImages,
    confidences_of,
    scored_keys,
)

ResultsOrFolder = ResultTables | str | Path


def as_sequence(results: Sequence[ResultsOrFolder] | ResultsOrFolder) -> Sequence[ResultsOrFolder]:
    """Return results as a sequence, whether one or several are passed."""
    return [results] if isinstance(results, ResultsOrFolder) else results


def without_seed(benchmark: str) -> str:
    """Return a benchmark's name without ``@seed=N``, which all its draws share."""
    return benchmark.partition("@")[0]


@dataclass(frozen=True, eq=False)
class NamedResults:
    """Results with a name for messages, their folder if they have one.

    Attributes
    ----------
    labels : model -> its name in the comparison.
    clusters : the classes or subtrees of the images, to draw instead of images; or None.
    """

    results: ResultTables
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    clusters: ImageClusters | None = None

    @classmethod
    def from_results(cls, results: ResultsOrFolder, index: int = 0) -> NamedResults:
        """Return the given results, or read results from a folder."""
        if isinstance(results, ResultTables):
            return cls(results, f"results {index + 1}")
        return cls(Results.read(results), str(results))

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Group -> role of the sets that were scored, in the benchmark's order."""
        columns = (self.results.results[name].to_pylist() for name in ("group", "role"))
        ood = dict(zip(*columns, strict=True))
        return {group: ood.get(group, "id") for group in self.results.about.composition.sets}

    @cached_property
    def values(self) -> Mapping[tuple[str, int, str, str, str], Sequence[float]]:
        """(detector, run, metric, group, role) -> the values of those rows, NaN for null."""
        names = ("detector", "run", "metric", "group", "role", "value")
        values: dict[tuple[str, int, str, str, str], list[float]] = {}
        for *key, value in zip(*(self.results.results[name].to_pylist() for name in names), strict=True):
            values.setdefault(tuple(key), []).append(np.nan if value is None else value)
        return values

    @cached_property
    def class_aurocs(self) -> Mapping[DetectorRun, Mapping[tuple[str, str, str], tuple[int, float]]]:
        """(detector, run) -> (group, source, class_id) -> number of images and AUROC, without null AUROCs."""
        names = ("detector", "run", "group", "source", "class_id", "n_ood", "auroc")
        aurocs: dict[DetectorRun, dict[tuple[str, str, str], tuple[int, float]]] = {}
        for detector, run, *key, n_ood, auroc in zip(
            *(self.results.by_class[name].to_pylist() for name in names), strict=True
        ):
            if auroc is not None:
                aurocs.setdefault((detector, run), {})[tuple(key)] = n_ood, auroc
        return aurocs

    @cached_property
    def _images(self) -> ImagesBySet:
        self.results.require_scores("an interval or a plot")
        return ImagesBySet(self.results.scores, None if self.clusters is None else self.clusters.codes)

    def image_digest(self, group: str) -> str | None:
        """Return a digest of the images of a group; without scores, their number; None without the group."""
        if self.results.about.unscored_runs:
            return f"{self.results.about.composition.sets.get(group, 0)} images without scores"
        if group not in self._images.roles:
            return None
        return hashlib.sha256("\n".join(self._images.names(group)).encode()).hexdigest()

    @cached_property
    def scored(self) -> Mapping[DetectorRun, Mapping[str, ScoreSet]]:
        """Group -> confidences of every detector and run, images sorted by name; DataError without scores."""
        images, scores, predictions = self._images, self.results.scores, self.results.predictions
        runs = {}
        for key in scored_keys(scores):
            scored, confidence = ScoredImages(images, predictions, key), confidences_of(scores, key)
            runs[key] = {g: scored.score_set(g, confidence, by_name=True) for g in images.roles}
        return runs


@dataclass(frozen=True, eq=False)
class Entry:
    """Row of a comparison: a detector on the runs of a model, on one draw of a benchmark.

    Attributes
    ----------
    model : the model's name without the benchmark's name in front; if models share a name, with the name of
        the results.
    runs : for each run, its results and its number in these results.
    """

    benchmark: str
    model: str
    detector: str
    runs: tuple[tuple[NamedResults, int], ...]

    @property
    def label(self) -> tuple[str, str]:
        """(model, detector), the same in other draws of the benchmark."""
        return self.model, self.detector

    def values(self, metric: str, group: str, role: str) -> list[float]:
        """Return the value of a metric in each run, NaN for null; runs without a row are left out."""
        return [
            value
            for evaluation, number in self.runs
            for value in evaluation.values.get((self.detector, number, metric, group, role), ())
        ]

    def scored(self) -> list[Mapping[str, ScoreSet]]:
        """Return the confidences of each run by group."""
        return [evaluation.scored[self.detector, number] for evaluation, number in self.runs]


@dataclass(frozen=True, eq=False)
class BenchmarkResults:
    """All results on one benchmark or one resampled draw (``NAME@seed=N``).

    Attributes
    ----------
    notes : sentences on differences between the results that may matter.
    found_at : the benchmark or its folder, None if its name finds it.
    """

    benchmark: str
    results: tuple[NamedResults, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()
    found_at: Manifest | str | Path | None = None

    @property
    def first(self) -> ResultTables:
        """First results; all results share their sets and layout."""
        return self.results[0].results

    def of_models(self) -> BenchmarkResults:
        """Return the draw with an entry per model, for the metrics that do not depend on a detector."""
        runs: dict[str, list[tuple[NamedResults, int]]] = {}
        for entry in self.entries:
            of_model = runs.setdefault(entry.model, [])
            of_model += [run for run in entry.runs if run not in of_model]
        entries = (Entry(self.benchmark, model, MODEL, tuple(of_model)) for model, of_model in runs.items())
        return replace(self, entries=tuple(entries))

    def over(self, level: Level, cut: int | None = None) -> BenchmarkResults:
        """Return the draw with the classes or subtrees of its images (`image_clusters`), to draw these.

        Raises
        ------
        DataError : results without scores, or on another version of the benchmark; no hierarchy for subtrees.
        """
        if level == "images":
            return self
        manifest = self.manifest() if level == "subtrees" else None
        clustered = {}
        for held in self.results:
            instead = f", or rank AUROCs of {level}: `compare --across --over {level}`"
            held.results.require_scores(f"a comparison over {level}", instead=instead)
            clusters = image_clusters(held.results.scores, manifest, cut=cut)
            clustered[id(held)] = replace(held, clusters=clusters)
        entries = (
            replace(entry, runs=tuple((clustered[id(held)], number) for held, number in entry.runs))
            for entry in self.entries
        )
        return replace(self, results=tuple(clustered.values()), entries=tuple(entries))

    def manifest(self) -> Manifest:
        """Return the benchmark's manifest, for the names and synsets of its classes."""
        if self.found_at is not None:
            manifest = load_manifest(self.found_at)
        elif self.first.about.custom_sets:
            raise DataError("sets given in Python have no class table", where=self.benchmark)
        else:
            try:
                manifest = load_manifest(self.benchmark)
            except UnknownNameError as error:
                hint = f"set WORDNET_SPLITS_MANIFESTS to the folder that holds the folder {self.benchmark}"
                raise DataError("no such benchmark here", where=self.benchmark, hint=hint) from error
        version = self.first.about.version
        if manifest.name != without_seed(self.benchmark):
            message = f"the results are on {self.benchmark}, not on {manifest.name}"
            raise DataError(message, where=str(self.found_at))
        if manifest.version != version:
            raise DataError(
                f"the results are of version {version}, and version {manifest.version} is here",
                where=self.benchmark,
            )
        return manifest

    @property
    def shifted_sets(self) -> tuple[str, ...]:
        """The covariate-shifted ID sets that any of the results have."""
        return tuple(dict.fromkeys(g for held in self.results for g in held.results.shifted_sets))

    def require_same_images(self, groups: Iterable[str]) -> None:
        """Raise DataError unless every entry was scored on the same images of ``groups``."""
        for group in groups:
            holders: dict[str | None, str] = {}
            for evaluation in self.results:
                holders.setdefault(evaluation.image_digest(group), evaluation.name)
            if len(holders) > 1:
                raise DataError(
                    f"cannot compare: results are on different images of {group}",
                    where=" and ".join(list(dict.fromkeys(holders.values()))[:2]),
                    hint="compare `--on` a set that all of them have whole",
                )


def draws_of(
    results: Sequence[ResultsOrFolder], detectors: str | Sequence[str] | None = None, *, across: bool = False
) -> list[BenchmarkResults]:
    """Read results and return them by draw, in the order given.

    Parameters
    ----------
    detectors : labels of the detectors to compare or their aliases, also in one string; all by default.
    across : whether the results may be on several benchmarks.

    Raises
    ------
    DataError : no results; several benchmarks; several versions or image lists of a benchmark; a network
        given twice; no such detector.
    """
    every = [NamedResults.from_results(item, index) for index, item in enumerate(results)]
    if not every:
        raise DataError("no results are given", hint="give folders that `unknown-eval run` wrote")
    detectors = split_list(detectors) if isinstance(detectors, str) else detectors
    held = dict.fromkeys(name for evaluation in every for name in evaluation.results.detectors)
    if detectors is not None:
        detectors = [find_label(name, held, where="--detectors") for name in detectors]
    benchmarks = dict.fromkeys(without_seed(evaluation.results.about.benchmark) for evaluation in every)
    if len(benchmarks) > 1 and not across:
        raise DataError(
            f"results on different benchmarks: {', '.join(benchmarks)}",
            hint="compare the results of each benchmark separately, or rank across them (`compare --across`)",
        )
    by_draw: dict[str, list[NamedResults]] = {}
    for evaluation in every:
        by_draw.setdefault(evaluation.results.about.benchmark, []).append(evaluation)
    draws = [_draw(benchmark, in_draw, detectors) for benchmark, in_draw in by_draw.items()]
    for benchmark in benchmarks:
        abouts = ((held.name, held.results.about) for held in every)
        same = {a.evaluation_fingerprint: n for n, a in abouts if without_seed(a.benchmark) == benchmark}
        _require_same(FINGERPRINT_SUBJECTS["evaluation"], benchmark, same)
    return draws


OWN_IDS: Final = ' on the same images; `evaluate_arrays` takes their names as "ids"'


def _require_same(
    subject: str, benchmark: str, holders: Mapping[str, str], hint: str = "", *, shown: int | None = 12
) -> None:
    """Raise DataError if there are several values (value -> name of results that hold it)."""
    if len(holders) > 1:
        listed = "; ".join(f"{name} ({value[:shown]})" for value, name in holders.items())
        message = f"results on different {subject} of {benchmark}: {listed}"
        raise DataError(message, hint=f"evaluate again{hint}")


def _draw(
    benchmark: str, results: Sequence[NamedResults], detectors: Sequence[str] | None
) -> BenchmarkResults:
    abouts = [(evaluation.name, evaluation.results.about) for evaluation in results]
    _require_same("versions", benchmark, {str(about.version): name for name, about in abouts})
    sets = {", ".join(about.custom_sets) or "sets of the benchmark": name for name, about in abouts}
    _require_same("sets or roles", benchmark, sets, ", with the same sets in the same order", shown=None)
    on_user_sets = any(about.custom_sets for _, about in abouts)
    for key, subject in FINGERPRINT_SUBJECTS.items():
        holders = {str(about.fingerprints[key]): name for name, about in abouts}
        _require_same(subject, benchmark, holders, OWN_IDS if on_user_sets and key == "images" else "")
    results = _with_labels(benchmark, results)
    runs: dict[tuple[str, str], dict[str, tuple[NamedResults, int]]] = {}
    for evaluation in results:
        about = evaluation.results.about
        models = {run.run: run.model for run in about.runs}
        for facts in about.detectors:
            if detectors is not None and facts.detector not in detectors:
                continue
            model, run = models[facts.run], (evaluation, facts.run)
            of_entry = runs.setdefault((evaluation.labels[model], facts.detector), {})
            key = about.model_key(facts) or f"{evaluation.name} {facts.run}"
            if of_entry.setdefault(key, run) != run:
                hint = "give each network's results once"
                message = f"{facts.detector} on {model} is given twice"
                raise DataError(message, where=evaluation.name, hint=hint)
    entries = tuple(Entry(benchmark, *label, tuple(of_entry.values())) for label, of_entry in runs.items())
    if not entries:
        hint = f"it holds {', '.join(results[0].results.detectors)}"
        message = f"none of the detectors {', '.join(detectors or ())}"
        raise DataError(message, where=results[0].name, hint=hint)
    return BenchmarkResults(benchmark, tuple(results), entries, tuple(_notes(benchmark, results)))


def _with_labels(benchmark: str, results: Sequence[NamedResults]) -> list[NamedResults]:
    """Return the results with labels of their models; two results share a label only for the same model."""
    holders: dict[str, dict[str, NamedResults]] = {}
    for evaluation in results:
        for model in evaluation.results.about.models:
            holders.setdefault(model, {}).setdefault(_identity(evaluation, model), evaluation)
    labelled = []
    for evaluation in results:
        labels = {}
        for model in evaluation.results.about.models:
            by_identity, plain = holders[model], model.removeprefix(f"{benchmark}/")
            identity = _identity(evaluation, model)
            is_unique = not identity or len(by_identity) == 1
            labels[model] = plain if is_unique else f"{plain} ({by_identity[identity].name})"
        labelled.append(replace(evaluation, labels=labels))
    return labelled


def _identity(evaluation: NamedResults, model: str) -> str:
    """Return "" for a model that the user named, else the keys that separate it from its namesakes."""
    runs = evaluation.results.about.runs_of(model)
    if any(run.named for run in runs):
        return ""
    return "+".join(run.model_key for run in runs) or evaluation.name


def _notes(benchmark: str, results: Sequence[NamedResults]) -> Iterator[str]:
    transforms: dict[str, str] = {}
    prompts: dict[str, str] = {}
    networks: dict[str, dict[str, None]] = {}
    for evaluation in results:
        for run in evaluation.results.about.runs:
            label = evaluation.labels[run.model]
            words = " | ".join(dict.fromkeys(words or key for key, words in run.transforms.items()))
            name = label if run.name in (label, run.model) else f"{label} ({run.name})"
            transforms.setdefault(words, name)
            if run.prompts:
                prompts.setdefault(f"SHA-256 {run.prompts}", name)
            networks.setdefault(run.model_key, {})[label] = None
    differing = {"the images went through different transforms": transforms}
    differing["zero-shot models have different class prompts"] = prompts
    for subject, holders in differing.items():
        if len(holders) > 1:
            yield f"{benchmark}: {subject} ({'; '.join(f'{name}: {held}' for held, name in holders.items())})"
    for of_network in dict.fromkeys(tuple(of_network) for key, of_network in networks.items() if key):
        if len(of_network) > 1:
            yield f"{', '.join(of_network)} are the same network; it is ranked {len(of_network)} times"
    labels: dict[str, dict[str, None]] = {}
    for evaluation in results:
        for model, label in evaluation.labels.items():
            labels.setdefault(model, {})[label] = None
    for model, of_model in labels.items():
        if len(of_model) > 1:
            yield (
                f"{', '.join(of_model)} are treated as separate models; name the model to average its runs "
                f"({{{model!r}: [run, run]}}, --runs, or model= of evaluate_arrays)"
            )
    for evaluation in results:
        for missing in evaluation.results.about.missing:
            yield f"{evaluation.name}: {missing.group} was not scored whole ({missing.scored:,} images)"
