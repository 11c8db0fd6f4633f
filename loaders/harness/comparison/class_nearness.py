"""Does semantic distance predict difficulty? Class nearness against class AUROC, by measure and detector.

For each OOD class: its similarity to the ID classes (to the nearest one, or the mean over all of them) and
the AUROC of all ID images against its own, averaged over runs. What is told is Spearman's rank correlation
of the two over classes: negative where nearer classes are harder to detect. Intervals are over classes: each
replicate of the bootstrap draws the same classes for every detector and measure, so that measures are
compared in pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.metrics import bootstrap_indices, interval, mean_ranks
from wordnet_splits.metrics.counts import ratio

from ..arrays import Array
from ..evaluation.metric_rows import UNKNOWN_ROLES
from ..evaluation.tables import Sets, Table
from ..semantics import ClassName, classes_of, similarities
from .entries import Draw, Entry, Given, draws_of
from .tables import PrintedTables, interval_text, number_text

MEASURES = ("path", "wup_wn", "wup", "wup_perl", "mean", "mean_nltk", "mean2")
"""Measures that can order classes differently; ``distance`` and every ``lch`` order them as ``path`` does."""
TO: Mapping[str, Callable[[Sequence[float]], float]] = {
    "nearest": max,
    "average": lambda values: sum(values) / len(values),
}
"""What a class is as near as: its nearest ID class, or all of them on average."""
OURS = ("mean", "nearest")
"""What the class tables hold and rules go by; the others are set beside it."""
FEWEST_CLASSES = 4
REPLICATES = 1000


@dataclass(frozen=True)
class Correlation:
    """Spearman's rank correlation of similarity and AUROC over OOD classes, in [-1, 1], and its interval.

    Attributes
    ----------
    rho, lo, hi : NaN where one side is constant. lo and hi are None without bootstrap.
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
    """A measure's mean correlation over detectors, and how much weaker (less negative) it is than ours.

    Attributes
    ----------
    weaker, weaker_lo, weaker_hi : this rho minus that of ``mean`` to the nearest class; None for that
        measure itself.
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
class Nearness(PrintedTables):
    """What `nearness` found; printed, its tables.

    Attributes
    ----------
    correlations : of each model, detector and measure. measures : over detectors, the strongest first.
    notes : what they are over, as sentences.
    """

    benchmark: str
    correlations: tuple[Correlation, ...]
    measures: tuple[MeasureMean, ...]
    notes: tuple[str, ...]

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return the correlations."""
        return [{"benchmark": self.benchmark, **asdict(one)} for one in self.correlations]

    def tables(self) -> list[Table]:
        """Return our measure by detector, strongest first, and the measures."""
        ours = sorted((c for c in self.correlations if (c.measure, c.to) == OURS), key=lambda one: one.rho)
        by_detector = Table(
            f"{self.benchmark}: rank correlation of nearness ({' to the '.join(OURS)} ID class) and AUROC",
            ("model", "detector", "classes", "rho", "interval"),
            tuple(
                (c.model, c.detector, str(c.classes), number_text(c.rho, 1, 3), _interval(c.lo, c.hi))
                for c in ours
            ),
            tuple(asdict(one) for one in ours),
        )
        by_measure = Table(
            f"Mean over {len(ours)} detectors and models, by measure",
            ("measure", "nearness to", "rho", "interval", "weaker by", "between"),
            tuple(
                (
                    one.measure,
                    one.to,
                    number_text(one.rho, 1, 3),
                    _interval(one.lo, one.hi),
                    number_text(one.weaker, 1, 3),
                    _interval(one.weaker_lo, one.weaker_hi),
                )
                for one in self.measures
            ),
            tuple(asdict(one) for one in self.measures),
        )
        return [by_detector, by_measure]

    def as_dict(self) -> dict[str, Any]:
        """Return it as ``nearness --json`` prints it."""
        return {
            "benchmark": self.benchmark,
            "correlations": [asdict(one) for one in self.correlations],
            "measures": [asdict(one) for one in self.measures],
            "notes": list(self.notes),
        }


def nearness(
    results: Sequence[Given] | Given,
    *,
    detectors: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    bootstrap: int = REPLICATES,
    seed: int = 0,
    level: float = 0.95,
) -> Nearness:
    """Correlate the nearness of OOD classes with how well each detector tells them from ID.

    Parameters
    ----------
    results : `Results` on one benchmark, or folders of them.
    detectors : labels, all by default. groups : OOD sets, by default all near and far ones.
    bootstrap, seed, level : of the bootstrap over OOD classes; 0 replicates for none.

    Raises
    ------
    DataError : several benchmarks or draws; fewer than `FEWEST_CLASSES` OOD classes with a synset.
    UnknownNameError : no such detector or set.
    """
    given = [results] if isinstance(results, Given) else list(results)
    draw, *others = draws_of(given, detectors)
    if others:
        raise DataError(
            f"results on {1 + len(others)} draws of {draw.benchmark}", hint="give one draw's; classes differ"
        )
    return nearness_of(draw, _sets(draw, groups), bootstrap=bootstrap, seed=seed, level=level)


def nearness_of(
    draw: Draw, groups: Sequence[str], *, bootstrap: int = REPLICATES, seed: int = 0, level: float = 0.95
) -> Nearness:
    """Do what `nearness` does, for results that were read (`entries.draws_of`) and the named OOD sets."""
    classes = _Classes.of(draw, groups)
    replicates = [classes.draw(seed, number) for number in range(bootstrap)]
    ranked = {key: _ranks(values, replicates) for key, values in classes.similarity.items()}
    found, table = [], []
    for entry in draw.entries:
        of_auroc = _ranks(classes.auroc(entry), replicates)
        rhos = {key: _correlations(of_similarity, of_auroc) for key, of_similarity in ranked.items()}
        table.append([rhos[key] for key in ranked])
        for (measure, to), values in rhos.items():
            held = _bounds(values, level)
            found.append(Correlation(*entry.label, measure, to, float(values[0]), *held, len(classes.keys)))
    rhos_of: Array = np.array(table)  # (entries, measures, 1 + replicates)
    means = ratio(np.nansum(rhos_of, axis=0), (~np.isnan(rhos_of)).sum(axis=0))
    return Nearness(
        draw.benchmark,
        tuple(found),
        _measures(list(ranked), means, level),
        _notes(classes, bootstrap, level),
    )


def _sets(draw: Draw, groups: Sequence[str] | None) -> tuple[str, ...]:
    """Return the near and far sets, or those asked for."""
    roles = Sets.of(draw.first).roles
    for name in groups or ():
        if name not in roles:
            raise unknown("set", name, roles, where="--group")
    return tuple(n for n, role in roles.items() if (role in UNKNOWN_ROLES if groups is None else n in groups))


@dataclass(frozen=True, eq=False)
class _Classes:
    """The OOD classes that have a synset, and how near they are.

    Attributes
    ----------
    keys : (group, source, class) of each. left_out : how many have no synset.
    similarity : (measure, to) -> (classes,).
    """

    keys: tuple[tuple[str, str, str], ...]
    left_out: int
    groups: tuple[str, ...]
    similarity: Mapping[tuple[str, str], Array]

    @classmethod
    def of(cls, draw: Draw, groups: Sequence[str]) -> _Classes:
        """Look the classes up in WordNet."""
        named, labels = classes_of(draw.manifest())
        known = [name for name in labels.values() if name.wnids]
        rows = draw.first.by_class.to_pylist()
        every = dict.fromkeys(
            (row["group"], row["source"], row["class_id"]) for row in rows if row["group"] in groups
        )
        keys = tuple(key for key in every if key[1:] in named and named[key[1:]].wnids)
        if len(keys) < FEWEST_CLASSES or not known:
            raise DataError(
                f"{len(keys)} OOD classes have a synset, and a rank correlation needs {FEWEST_CLASSES}",
                where=draw.benchmark,
            )
        near = [named[key[1:]] for key in keys]
        found = {
            (measure, to): values for measure in MEASURES for to, values in _nearness(near, known, measure)
        }
        return cls(keys, len(every) - len(keys), tuple(dict.fromkeys(key[0] for key in keys)), found)

    @cached_property
    def _row_of(self) -> Mapping[tuple[str, str, str], int]:
        return {key: row for row, key in enumerate(self.keys)}

    def draw(self, seed: int, replicate: int) -> Array:
        """Return the classes of one replicate."""
        return np.asarray(bootstrap_indices(seed, "classes", replicate, len(self.keys)))

    def auroc(self, entry: Entry) -> Array:
        """Return the AUROC of each class, averaged over the entry's runs.

        Raises
        ------
        DataError : a run was not scored on one of the classes.
        """
        total, seen = np.zeros(len(self.keys)), np.zeros(len(self.keys), dtype=np.int64)
        for source, number in entry.runs:
            for row in source.tables.by_class.to_pylist():
                place = self._row_of.get((row["group"], row["source"], row["class_id"]))
                mine = (row["detector"], row["run"]) == (entry.detector, number)
                if mine and place is not None and row["auroc"] is not None:
                    total[place] += row["auroc"]
                    seen[place] += 1
        if (seen != len(entry.runs)).any():
            group, source_name, class_id = self.keys[int(np.argmax(seen != len(entry.runs)))]
            raise DataError(
                f"{' '.join(entry.label)} was not scored on {source_name} {class_id} of {group} in every run",
                hint="compare results on the same sets, or name --group",
            )
        return total / len(entry.runs)


def _nearness(near: Sequence[ClassName], known: Sequence[ClassName], measure: str) -> list[tuple[str, Array]]:
    held = similarities(((a, b) for a in near for b in known), measure)
    # None is of a class without a synset: no number, and neither near nor known holds such a class
    table = [[value for b in known if (value := held[a, b]) is not None] for a in near]
    return [(to, np.array([reduce(row) for row in table])) for to, reduce in TO.items()]


def _ranks(values: Array, draws: Sequence[Array]) -> Array:
    """Return the centred ranks of all classes, then of each replicate's: (1 + replicates, classes)."""
    ranks = np.array([mean_ranks(values), *(mean_ranks(values[drawn]) for drawn in draws)])
    return np.asarray(ranks - ranks.mean(axis=1, keepdims=True))


def _correlations(a: Array, b: Array) -> Array:
    """Return Spearman's rho of each row of centred ranks."""
    return np.asarray(ratio(np.sum(a * b, axis=1), np.sqrt(np.sum(a**2, axis=1) * np.sum(b**2, axis=1))))


def _bounds(values: Array, level: float) -> tuple[float | None, float | None]:
    if len(values) == 1:
        return None, None
    found = interval(float(values[0]), values[1:], level=level)
    return found.lo, found.hi


def _measures(keys: Sequence[tuple[str, str]], means: Array, level: float) -> tuple[MeasureMean, ...]:
    ours = means[keys.index(OURS)]
    rows = []
    for key, values in zip(keys, means, strict=True):
        weaker = values - ours
        than_ours = (None, None, None) if key == OURS else (float(weaker[0]), *_bounds(weaker, level))
        rows.append(MeasureMean(*key, float(values[0]), *_bounds(values, level), *than_ours))
    return tuple(sorted(rows, key=lambda one: one.rho))


def _notes(classes: _Classes, bootstrap: int, level: float) -> tuple[str, ...]:
    notes = [
        f"Over {len(classes.keys)} classes of {', '.join(classes.groups)}.",
        "Negative: nearer classes are harder to detect.",
        "lch and distance order classes as path does.",
    ]
    if classes.left_out:
        notes.append(f"Without a synset, left out: {classes.left_out} classes.")
    if bootstrap:
        notes.append(
            f"Intervals: {level:.0%} of {bootstrap:,} replicates over classes, the same for every row."
        )
    return tuple(notes)


def _interval(lo: float | None, hi: float | None) -> str:
    return interval_text(lo, hi, 1, digits=3)
