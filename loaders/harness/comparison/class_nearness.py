"""Does semantic distance predict difficulty? Class nearness against class AUROC, by measure and detector.

The result is Spearman's rank correlation, over OOD classes, of a class's similarity to the ID classes (the
nearest, or the mean over all) and the AUROC of all ID images against its images, averaged over runs. It is
negative if nearer classes are harder to detect. Intervals are over classes: each replicate of the
bootstrap draws the same classes for every detector and measure, so that measures are compared in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import counted
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.metrics import bootstrap_indices, interval
from wordnet_splits.metrics.counts import ratio

from ..data.arrays import Array
from ..results.metric_rows import UNKNOWN_ROLES
from ..results.table import Table, TableReport, interval_text, number_text, table_of_records
from ..results.tables import ResultSets
from .entries import BenchmarkResults, Entry, ResultsOrFolder, as_sequence, draws_of
from .semantics import classes_of, similarities

MEASURES = ("path", "wup_wn", "wup", "wup_perl", "mean", "mean_nltk", "mean2")
"""Measures that can order classes differently; ``distance`` and every ``lch`` order them as ``path`` does."""
TO: Mapping[str, Callable[[Sequence[float]], float]] = {
    "nearest": max,
    "average": lambda values: sum(values) / len(values),
}
"""Reductions of the similarities of a class to all ID classes."""
REFERENCE = ("mean", "nearest")
"""Baseline (measure, to) pair, as in class tables and rules; other pairs are compared with it."""
MIN_CLASSES = 4
REPLICATES = 1000


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of similarity and AUROC over OOD classes, in [-1, 1], and its interval.

    Attributes
    ----------
    rho, lo, hi : NaN if either side is constant. Without bootstrap, lo and hi are None.
    """

    model: str
    detector: str
    measure: str
    to: str
    rho: float
    lo: float | None
    hi: float | None
    classes: int


@dataclass(frozen=True)
class MeasureMean:
    """A measure's mean correlation over detectors, and the difference from `REFERENCE`.

    Attributes
    ----------
    weaker, weaker_lo, weaker_hi : this rho minus `REFERENCE`'s rho; None for `REFERENCE` itself.
    """

    measure: str
    to: str
    rho: float
    lo: float | None
    hi: float | None
    weaker: float | None
    weaker_lo: float | None
    weaker_hi: float | None


@dataclass(frozen=True, eq=False)
class Nearness(TableReport):
    """The outcome of `nearness`; printed, its tables.

    Attributes
    ----------
    correlations : of each model, detector and measure.
    measures : over detectors, the strongest first.
    notes : sentences on the classes and the intervals.
    """

    benchmark: str
    correlations: tuple[Correlation, ...]
    measures: tuple[MeasureMean, ...]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the correlations."""
        return [{"benchmark": self.benchmark, **asdict(one)} for one in self.correlations]

    def tables(self) -> list[Table]:
        """Return the reference measure by detector, strongest first, and the means of all measures."""
        reference = [c for c in self.correlations if (c.measure, c.to) == REFERENCE]
        by_detector = table_of_records(
            f"{self.benchmark}: rank correlation of nearness (mean to the nearest ID class) and AUROC",
            sorted(reference, key=lambda correlation: correlation.rho),
            {
                "model": lambda row: row.model,
                "detector": lambda row: row.detector,
                "classes": lambda row: str(row.classes),
                "rho": lambda row: number_text(row.rho, digits=3),
                "interval": lambda row: interval_text(row.lo, row.hi, digits=3),
            },
        )
        by_measure = table_of_records(
            f"Mean over {len(reference)} detectors and models, by measure",
            self.measures,
            {
                "measure": lambda row: row.measure,
                "nearness to": lambda row: row.to,
                "rho": lambda row: number_text(row.rho, digits=3),
                "interval": lambda row: interval_text(row.lo, row.hi, digits=3),
                "weaker by": lambda row: number_text(row.weaker, digits=3),
                "between": lambda row: interval_text(row.weaker_lo, row.weaker_hi, digits=3),
            },
        )
        return [by_detector, by_measure]


def nearness(
    results: Sequence[ResultsOrFolder] | ResultsOrFolder,
    *,
    detectors: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    bootstrap: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
    benchmark: Manifest | str | Path | None = None,
) -> Nearness:
    """Correlate the nearness of OOD classes with each detector's AUROC on them.

    Parameters
    ----------
    results : `Results` on one benchmark, or their folders.
    detectors : labels, all by default.
    groups : OOD sets, by default all near and far ones.
    bootstrap, seed, level : of the bootstrap over OOD classes; 0 replicates for none.
    benchmark : the benchmark or its folder, by default the name in the results.

    Raises
    ------
    DataError : several benchmarks or draws, or a benchmark that differs from ``benchmark``; fewer than
        `MIN_CLASSES` OOD classes with a synset.
    UnknownNameError : no such detector or set.
    """
    draws = draws_of(as_sequence(results), detectors)
    if len(draws) > 1:
        raise DataError(
            f"results on {len(draws)} draws of {draws[0].benchmark}", hint="give one draw's; classes differ"
        )
    draw = replace(draws[0], found_at=benchmark)
    return nearness_of(draw, _ood_sets(draw, groups), bootstrap=bootstrap, seed=seed, level=level)


def nearness_of(
    draw: BenchmarkResults,
    groups: Sequence[str],
    *,
    bootstrap: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
) -> Nearness:
    """Compute `nearness` of results that were read (`entries.draws_of`), on the named OOD sets."""
    classes = _OodClasses.from_draw(draw, groups)
    replicates = [classes.draw(seed, number) for number in range(bootstrap)]
    similarity_ranks = {key: _ranks(values, replicates) for key, values in classes.similarity.items()}
    correlations, table = [], []
    for entry in draw.entries:
        auroc_ranks = _ranks(classes.auroc(entry), replicates)
        rhos = {}
        for key, ranks in similarity_ranks.items():  # Spearman's rho of each row of centred ranks
            lengths = np.sqrt(np.sum(ranks**2, axis=1) * np.sum(auroc_ranks**2, axis=1))
            rhos[key] = np.asarray(ratio(np.sum(ranks * auroc_ranks, axis=1), lengths))
        table.append(list(rhos.values()))
        for key, values in rhos.items():
            bounds = _bounds(values, level)
            correlations.append(Correlation(*entry.label, *key, float(values[0]), *bounds, len(classes.keys)))
    all_rhos: Array = np.array(table)  # (entries, measures, 1 + replicates)
    means = ratio(np.nansum(all_rhos, axis=0), (~np.isnan(all_rhos)).sum(axis=0))
    keys = list(similarity_ranks)
    reference = means[keys.index(REFERENCE)]
    measures = []
    for key, values in zip(keys, means, strict=True):
        weaker = values - reference
        difference = (None,) * 3 if key == REFERENCE else (float(weaker[0]), *_bounds(weaker, level))
        measures.append(MeasureMean(*key, float(values[0]), *_bounds(values, level), *difference))
    measures.sort(key=lambda row: row.rho)
    notes = _notes(classes, bootstrap, level)
    return Nearness(draw.benchmark, tuple(correlations), tuple(measures), notes)


def _ood_sets(draw: BenchmarkResults, groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the named sets, by default the near and far ones."""
    roles = ResultSets.from_results(draw.first).roles
    for name in groups or ():
        if name not in roles:
            raise unknown("set", name, roles, where="--group")
    return tuple(n for n, role in roles.items() if (role in UNKNOWN_ROLES if groups is None else n in groups))


@dataclass(frozen=True, eq=False)
class _OodClasses:
    """The OOD classes that have a synset, and their nearness.

    Attributes
    ----------
    keys : (group, source, class_id) of each.
    left_out : the number of classes without a synset.
    noun : noun for the nodes of the hierarchy.
    similarity : (measure, to) -> (classes,).
    """

    keys: tuple[tuple[str, str, str], ...]
    left_out: int
    noun: str
    groups: tuple[str, ...]
    similarity: Mapping[tuple[str, str], Array]

    @classmethod
    def from_draw(cls, draw: BenchmarkResults, groups: Sequence[str]) -> _OodClasses:
        """Look the classes up in the benchmark's hierarchy."""
        manifest = draw.manifest()
        taxonomy = taxonomy_of(manifest)
        by_key, labels = classes_of(manifest)
        id_classes = [name for name in labels.values() if name.wnids]
        keys = dict.fromkeys(
            (row["group"], row["source"], row["class_id"])
            for row in draw.first.by_class.to_pylist()
            if row["group"] in groups
        )
        mapped = tuple(key for key in keys if key[1:] in by_key and by_key[key[1:]].wnids)
        if len(mapped) < MIN_CLASSES or not id_classes:
            raise DataError(
                f"a rank correlation needs {MIN_CLASSES} OOD classes with a {taxonomy.noun}, "
                f"got {len(mapped)}",
                where=draw.benchmark,
            )
        ood_classes = [by_key[key[1:]] for key in mapped]
        pairs = [(a, b) for a in ood_classes for b in id_classes]
        similarity = {}
        for measure in MEASURES:
            by_pair = similarities(pairs, taxonomy, measure)
            # None belongs to classes without a synset, and all of these have one
            table = [[v for b in id_classes if (v := by_pair[a, b]) is not None] for a in ood_classes]
            for to, reduce in TO.items():
                similarity[measure, to] = np.array([reduce(row) for row in table])
        scored_groups = tuple(dict.fromkeys(key[0] for key in mapped))
        return cls(mapped, len(keys) - len(mapped), taxonomy.noun, scored_groups, similarity)

    def draw(self, seed: int, replicate: int) -> Array:
        """Return the indices of a replicate's classes."""
        return np.asarray(bootstrap_indices(seed, "classes", replicate, len(self.keys)))

    def auroc(self, entry: Entry) -> Array:
        """Return the AUROC of each class, averaged over the entry's runs."""
        by_run = [held.class_aurocs.get((entry.detector, number), {}) for held, number in entry.runs]
        table = np.array([[run[key][1] if key in run else np.nan for key in self.keys] for run in by_run])
        lacks = np.isnan(table).any(axis=0)
        if lacks.any():
            group, source, class_id = self.keys[int(np.argmax(lacks))]
            raise DataError(
                f"{' '.join(entry.label)} was not scored on {source} {class_id} of {group} in every run",
                hint="compare results on the same sets, or name --group",
            )
        return np.asarray(table.mean(axis=0))


def _ranks(values: Array, draws: Sequence[Array]) -> Array:
    """Return the centred ranks of all classes, then of each replicate's: (1 + replicates, classes)."""
    ranks = np.array([rankdata(values), *(rankdata(values[indices]) for indices in draws)])
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))


def _bounds(values: Array, level: float) -> tuple[float | None, float | None]:
    if len(values) == 1:
        return None, None
    _, lo, hi = interval(float(values[0]), values[1:], level=level)
    return lo, hi


def _notes(classes: _OodClasses, bootstrap: int, level: float) -> tuple[str, ...]:
    notes = [
        f"Over {len(classes.keys)} classes of {', '.join(classes.groups)}.",
        "Negative: nearer classes are harder to detect.",
        "lch and distance order classes as path does.",
    ]
    if classes.left_out:
        notes.append(f"Without a {classes.noun}, left out: {counted(classes.left_out, 'class')}.")
    if bootstrap:
        notes.append(
            f"Intervals: {level:.0%} of {bootstrap:,} replicates over classes, the same for every row."
        )
    return tuple(notes)
