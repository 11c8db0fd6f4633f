"""What is compared: detectors on the runs of models, out of one or several folders of results.

Folders of one benchmark are read together: runs of one model that were evaluated apart are runs of one again
where somebody named that model; networks that share a default name (of a class, "arrays") stay two models.
What would be compared in silence though it differs is refused: another benchmark, version or list of images.
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
from wordnet_splits.base.names import printable
from wordnet_splits.finding import load_manifest
from wordnet_splits.manifest import Manifest
from wordnet_splits.metrics import ScoreSet

from ..evaluation.results import Results
from ..evaluation.rows_from_scores import DetectorRun, scored_images
from ..evaluation.schema import COMPARED, ResultTables

Given = ResultTables | str | Path
"""Results, or a folder of them."""


def plain_name(benchmark: str) -> str:
    """Return a benchmark's name without ``@seed=N``: what all its draws share."""
    return benchmark.partition("@")[0]


@dataclass(frozen=True, eq=False)
class Source:
    """Results and where they are from.

    Attributes
    ----------
    labels : model -> what a comparison calls it.
    """

    tables: ResultTables
    name: str
    labels: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Given, number: int = 0) -> Source:
        """Return results as they are, or read from a folder."""
        if isinstance(given, ResultTables):
            return cls(given, f"results {number + 1}")
        return cls(Results.read(given), str(given))

    @cached_property
    def roles(self) -> Mapping[str, str]:
        """Group -> role of the sets that were scored, in the benchmark's order."""
        columns = (self.tables.results[name].to_pylist() for name in ("group", "role"))
        ood = dict(zip(*columns, strict=True))
        return {group: ood.get(group, "id") for group in self.tables.about.composition.sets}

    def image_digests(self, group: str) -> set[str | None]:
        """Return what identifies the images of a group in each run: without scores, their number."""
        if self.tables.unscored_runs:
            return {f"{self.tables.about.composition.sets.get(group, 0)} images without scores"}
        return {run.images.get(group) for run in self.scored.values()}

    @cached_property
    def scored(self) -> Mapping[DetectorRun, ScoredRun]:
        """The confidences of every detector and run; DataError where they were left out."""
        self.tables.require_scores("an interval or a plot")
        return {
            key: ScoredRun(
                {group: images.by_name(group, confidence) for group in images.groups},
                {group: _digest(images.names(group)) for group in images.groups},
            )
            for key, images, confidence in scored_images(self.tables.scores, self.tables.predictions)
        }


@dataclass(frozen=True, eq=False)
class ScoredRun:
    """One detector on one network: its sets in the benchmark's order, each with its images sorted by name.

    Attributes
    ----------
    sets : group -> confidences. images : group -> SHA-256 of what names its images.
    """

    sets: Mapping[str, ScoreSet]
    images: Mapping[str, str]


@dataclass(frozen=True, eq=False)
class Entry:
    """One row of a comparison: a detector on the runs of one model, on one benchmark or draw of it.

    Attributes
    ----------
    model : without the benchmark's own name in front, and with its results where others of that name are
        other models. runs : the results that hold it, and its number there.
    """

    benchmark: str
    model: str
    detector: str
    runs: tuple[tuple[Source, int], ...]

    @property
    def label(self) -> tuple[str, str]:
        """(model, detector), what other draws of the benchmark call it too."""
        return self.model, self.detector

    def values(self, metric: str, group: str, role: str) -> list[float]:
        """Return the value of a metric in each run, NaN where there is none; runs without it are left out."""
        wanted = {"metric": metric, "group": group, "role": role, "detector": self.detector}
        rows = [source.tables.rows(**wanted, run=number) for source, number in self.runs]
        return [np.nan if row["value"] is None else row["value"] for found in rows for row in found]

    def scored(self) -> list[ScoredRun]:
        """Return the confidences of each run."""
        return [source.scored[self.detector, number] for source, number in self.runs]


@dataclass(frozen=True, eq=False)
class Draw:
    """All results on one benchmark, or on one resampled draw of it (``NAME@seed=N``).

    Attributes
    ----------
    notes : what differs and may matter.
    """

    benchmark: str
    sources: tuple[Source, ...]
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()

    @property
    def first(self) -> ResultTables:
        """The results given first: their sets and layout stand for all."""
        return self.sources[0].tables

    def manifest(self) -> Manifest:
        """Return the benchmark's manifest, for the names and synsets of its classes.

        Raises
        ------
        DataError : it is not here, or its version here is another one.
        """
        try:
            manifest = load_manifest(self.benchmark)
        except UnknownNameError as error:
            hint = "sets of one's own have no class table"
            raise DataError("no such benchmark here", where=self.benchmark, hint=hint) from error
        version = self.first.about.version
        if manifest.version != version:
            raise DataError(
                f"the results are of version {version}, and version {manifest.version} is here",
                where=self.benchmark,
            )
        return manifest

    def require_same_images(self, groups: Iterable[str]) -> None:
        """Raise DataError unless every entry was scored on the same images of ``groups``.

        Raises
        ------
        DataError : it names the group and two folders.
        """
        for group in groups:
            seen: dict[str | None, str] = {}
            for source in self.sources:
                for digest in source.image_digests(group):
                    seen.setdefault(digest, source.name)
            if len(seen) > 1:
                names = list(dict.fromkeys(seen.values()))
                where = " and ".join(names[:2])
                raise DataError(
                    f"not scored on the same images of {group}, so nothing that it is part of is compared",
                    where=where,
                    hint="compare `--on` a set that all of them hold whole",
                )


def draws_of(given: Sequence[Given], detectors: Sequence[str] | None = None) -> list[Draw]:
    """Read results and return them by draw, in the order given.

    Parameters
    ----------
    detectors : labels of those to compare; all by default.

    Raises
    ------
    DataError : no results; several benchmarks; several versions or lists of images of one; a network given
        twice; no such detector.
    """
    sources = [Source.of(one, number) for number, one in enumerate(given)]
    if not sources:
        raise DataError("no results are given", hint="give folders that `unknown-eval run` wrote")
    names = dict.fromkeys(plain_name(source.tables.about.benchmark) for source in sources)
    if len(names) > 1:
        raise DataError(
            f"results on different benchmarks: {', '.join(names)}",
            hint="their values are of other images; compare each benchmark's own",
        )
    by_draw: dict[str, list[Source]] = {}
    for source in sources:
        by_draw.setdefault(source.tables.about.benchmark, []).append(source)
    draws = [_draw(name, several, detectors) for name, several in by_draw.items()]
    evaluations = {source.tables.about.evaluation_fingerprint: source.name for source in sources}
    _require_one(COMPARED["evaluation"], next(iter(names)), evaluations)
    return draws


OWN_IDS: Final = ' on the same images; `evaluate_arrays` takes their names as "ids"'


def _require_one(what: str, benchmark: str, values: Mapping[str, str], hint: str = "") -> None:
    """Raise DataError where there are several values (value -> the results that have it)."""
    if len(values) > 1:
        listed = ", ".join(f"{name} ({value[:12]})" for value, name in values.items())
        what = f"results on different {what} of {benchmark}: {listed}"
        raise DataError(what, hint=f"evaluate again{hint}")


def _require_same_sets(benchmark: str, sources: Sequence[Source]) -> None:
    """Raise DataError where sets of one's own, whose names hold their roles, are not the same."""
    seen: dict[tuple[str, ...], str] = {}
    for source in sources:
        seen.setdefault(source.tables.about.own_sets, source.name)
    if len(seen) > 1:
        listed = "; ".join(f"{name} ({', '.join(texts) or 'no own sets'})" for texts, name in seen.items())
        what = f"results with other sets or roles of {benchmark}: {listed}"
        raise DataError(what, hint="give the same sets in the same order")


def _draw(benchmark: str, sources: Sequence[Source], detectors: Sequence[str] | None) -> Draw:
    abouts = [(source.name, source.tables.about) for source in sources]
    _require_one("versions", benchmark, {str(about.version): name for name, about in abouts})
    own = any(about.own_sets for _, about in abouts)
    _require_same_sets(benchmark, sources)
    for what, words in COMPARED.items():
        prints = {str(about.fingerprints[what]): name for name, about in abouts}
        _require_one(words, benchmark, prints, hint=OWN_IDS if own and what == "images" else "")
    sources = _labelled(benchmark, sources)
    runs: dict[tuple[str, str], dict[str, tuple[Source, int]]] = {}
    for source in sources:
        for model, detector, number, key in _keys(source.tables):
            if detectors is not None and detector not in detectors:
                continue
            if model not in source.labels:
                what = f"a row is of the model '{printable(model, 40)}', which about.json does not name"
                raise DataError(
                    what, where=source.name, hint="`unknown-eval check-results` says what differs"
                )
            several = runs.setdefault((source.labels[model], detector), {})
            if several.setdefault(key or f"{source.name} {number}", (source, number)) != (source, number):
                hint = "give each network's results once"
                raise DataError(f"{detector} on {model} is given twice", where=source.name, hint=hint)
    entries = tuple(Entry(benchmark, *label, runs=tuple(held.values())) for label, held in runs.items())
    if not entries:
        wanted = ", ".join(detectors or ())
        there = ", ".join(sources[0].tables.detectors)
        raise DataError(f"none of the detectors {wanted}", where=sources[0].name, hint=f"it holds {there}")
    return Draw(benchmark, tuple(sources), entries, tuple(_notes(benchmark, sources)))


def _labelled(benchmark: str, sources: Sequence[Source]) -> list[Source]:
    """Return the sources with labels of their models, which two have in common only if they are one model."""
    holders: dict[str, dict[str, Source]] = {}
    for source in sources:
        for model in source.tables.about.models:
            holders.setdefault(model, {}).setdefault(_identity(source, model), source)
    labelled = []
    for source in sources:
        labels = {}
        for model in source.tables.about.models:
            first, plain = holders[model], model.removeprefix(f"{benchmark}/")
            identity = _identity(source, model)
            labels[model] = plain if not identity or len(first) == 1 else f"{plain} ({first[identity].name})"
        labelled.append(replace(source, labels=labels))
    return labelled


def _identity(source: Source, model: str) -> str:
    """Return what tells a model from others of its name: nothing where it was named, else its keys."""
    runs = source.tables.about.runs_of(model)
    if any(run.named for run in runs):
        return ""
    return "+".join(run.model_key for run in runs) or source.name


def _keys(tables: ResultTables) -> list[tuple[str, str, int, str]]:
    """(model, detector, run, model_key) of everything scored."""
    columns = (tables.results[name].to_pylist() for name in ("model", "detector", "run", "model_key"))
    scored = set(tables.detectors)
    return [row for row in dict.fromkeys(zip(*columns, strict=True)) if row[1] in scored]


def _notes(benchmark: str, sources: Sequence[Source]) -> Iterable[str]:
    transforms: dict[str, str] = {}
    for source in sources:
        for run in source.tables.about.runs:
            words = " | ".join(dict.fromkeys(w or key for key, w in run.transforms.items()))
            transforms.setdefault(words, run.name)
    if len(transforms) > 1:
        told = "; ".join(f"{name}: {words}" for words, name in transforms.items())
        yield f"{benchmark}: the images went through different transforms ({told})"
    yield from _told_apart(sources)
    for source in sources:
        for missing in source.tables.about.missing:
            yield f"{source.name}: {missing.group} was not scored whole ({missing.scored:,} images)"


def _told_apart(sources: Sequence[Source]) -> Iterator[str]:
    """Say which models of one name are compared as several."""
    labels: dict[str, dict[str, None]] = {}
    for source in sources:
        for model, label in source.labels.items():
            labels.setdefault(model, {})[label] = None
    for model, several in labels.items():
        if len(several) > 1:
            yield (
                f"{', '.join(several)}: compared as {len(several)} models, since nobody said that they are "
                f"runs of one (name it: {{{model!r}: [run, run]}}, --runs, or model= of evaluate_arrays)"
            )


def _digest(names: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(names).encode()).hexdigest()
