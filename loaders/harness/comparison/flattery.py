"""How much a choice on the test classes flatters: cross-validation over subtrees or classes of OOD images.

A parameter (or a detector) that is chosen on the unknown classes on which it is measured looks better than on
others. Each subtree of OOD classes is held out in turn: the choice is made on all others and measured on it.

Let S_cf be the AUROC of candidate c on fold f times the fold's share of the images; c* has the greatest sum
over folds, c_f the greatest over all folds but f. Flattery is the sum over f of S_c*f - S_(c_f)f, never
negative. Its interval is +- t(k - 1) (k/(k - 1))^1/2 sd of replicates, which draw k folds with replacement
and hold the copies of a fold out together. In simulations (2 to 30 candidates, 5 to 40 folds) flattery has no
bias, and the interval covers its expectation in 94 to 100%, or 82% if one candidate is so far ahead that
flattery is .0007. (Were the k differences taken as independent, in 23 to 88%.)

References
----------
Cawley and Talbot. On over-fitting in model selection and subsequent selection bias in performance evaluation.
JMLR 2010. Roberts et al. Cross-validation strategies for data with temporal, spatial, hierarchical, or
phylogenetic structure. Ecography 2017 (related units are held out together).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.benchmark.hierarchies import taxonomy_of
from wordnet_splits.metrics import ScoreSet, auroc_per_class
from wordnet_splits.metrics.draws import cluster_draws
from wordnet_splits.metrics.uncertainty import ClusterDesign, interval
from wordnet_splits.wordnet.taxonomy.subtrees import subtree_roots

from ..data.arrays import Array
from ..detectors.parsing import registered_label
from ..results.clusters import cut_text
from ..results.scores import ClassKey, ImagesBySet
from ..results.table import Table, interval_text, number_text, table_of_records
from .entries import BenchmarkResults, Entry
from .ranking import Scope, require_same_images

ALL = "all"
"""In place of a detector: the choice among all detectors."""
REPLICATES = 1000
"""Draws of folds behind the interval."""
FEW_FOLDS = 5
"""Fewest folds whose interval is not flagged."""


@dataclass(frozen=True)
class ChoiceFlattery:
    """How much a choice on the test classes flatters, in AUROC (fractions), mean over a model's runs.

    Attributes
    ----------
    detector : whose values are candidates; ``all`` for the choice among detectors.
    on, over : set or mean of the OOD images, and the unit that is held out.
    candidates, folds : numbers of both.
    chosen : label chosen on all classes, or labels, if it differs between runs.
    same : share of folds and runs in which the choice without the fold is the same.
    measured : value of the choice on the classes that it was made on.
    held_out : value on classes that the choice was made without.
    flattery, lo, hi : measured - held_out, and its 95% interval over folds, None if no choice ever changes.
    left_out : OOD images of no fold: of classes without a synset, or of sets with a single class.
    other_networks : labels without scores on all networks of the first label, left out.
    """

    benchmark: str
    model: str
    detector: str
    on: str
    over: str
    candidates: int
    folds: int
    chosen: str
    same: float
    measured: float
    held_out: float
    flattery: float
    lo: float | None
    hi: float | None
    left_out: int
    other_networks: tuple[str, ...]


def draw_flattery(
    draw: BenchmarkResults, detector: str, scope: Scope, over: str = "subtrees", cut: int | None = None
) -> list[ChoiceFlattery]:
    """Return how much a choice on the test classes flatters, for each model of a draw.

    Parameters
    ----------
    detector : whose parameters are chosen, of several values (``knn[k=10]``, ``knn[k=50]``), or ``all`` for
        the choice among all detectors.
    scope : of the OOD sets.
    over : the unit that is held out: ``subtrees`` of the classes of all these sets, or single ``classes``.
    cut : see `wordnet_splits.wordnet.taxonomy.subtrees.subtree_roots`.

    Raises
    ------
    DataError : results of different images, without scores or (for subtrees) a class table; fewer than two
        values of the detector, or than two folds. UnknownNameError : no such detector.
    """
    require_same_images(draw, "auroc", scope)
    by_model: dict[str, dict[str, Mapping[str, Mapping[str, ScoreSet]]]] = {}
    for entry in draw.entries:
        name = registered_label(entry.detector.partition("[")[0])
        if detector == ALL or registered_label(detector) == name:
            by_model.setdefault(entry.model, {})[entry.detector] = _by_network(entry)
    if not by_model:
        names = [*dict.fromkeys(entry.detector.partition("[")[0] for entry in draw.entries), ALL]
        raise unknown("detector of these results", detector, names, where=draw.benchmark)
    folds = _folds(draw, scope, over, cut)
    pools = [groups for groups in scope.pools if any((folds[group] >= 0).any() for group in groups)]
    rows = []
    for model, runs in by_model.items():
        networks = next(iter(runs.values()))
        labels = [label for label, of_label in runs.items() if of_label.keys() == networks.keys()]
        if len(labels) < 2:
            raise DataError(
                f"there is one {detector} on the same networks, so nothing is chosen",
                where=f"{draw.benchmark} {model}".strip(),
                hint=f"evaluate several values, as in --detectors 'knn[k=10],knn[k=50]', or give {ALL}",
            )
        weighted = [[_weighted(runs[label][key], pools, folds) for label in labels] for key in networks]
        parts: Array = np.array(weighted)[:, :, 0]
        best, without, measured, held_out = choices(parts)
        flattery, lo, hi = flattery_interval(parts, weighted[0][0][1])
        row = ChoiceFlattery(
            draw.benchmark,
            model,
            detector,
            scope.name,
            over,
            len(labels),
            parts.shape[2],
            " | ".join(dict.fromkeys(labels[n] for n in best)),
            float((without == best[:, None]).mean()),
            float(measured.mean()),
            float(held_out.mean()),
            flattery,
            lo,
            hi,
            sum(int((codes < 0).sum()) for codes in folds.values()),
            tuple(label for label in runs if label not in labels),
        )
        rows.append(row)
    return rows


def choices(parts: Array) -> tuple[Array, Array, Array, Array]:
    """Return the candidate chosen on all folds (...), without each (..., k), and the sums of both (...).

    Parameters
    ----------
    parts : (..., c, k) AUROC of each candidate on each fold, times the fold's share; the first of equal ones
        is chosen.
    """
    total = parts.sum(axis=-1)
    best, without = total.argmax(axis=-1), (total[..., None] - parts).argmax(axis=-2)
    chosen = best[..., None, None], without[..., None, :]
    return best, without, *(np.take_along_axis(parts, of, axis=-2).sum(axis=(-2, -1)) for of in chosen)


def flattery_interval(parts: Array, shares: Array) -> tuple[float, float | None, float | None]:
    """Return the flattery of the choices in runs, mean over runs, and its interval, None if nothing varies.

    Parameters
    ----------
    parts : (r, c, k) as of `choices`.
    shares : (k,) of the folds.
    """

    def flattery(of_run: Array) -> Array:
        *_, measured, held_out = choices(of_run)
        return np.asarray(measured - held_out)

    k = len(shares)
    counts = cluster_draws(0, "held out", REPLICATES, k)
    drawn = np.mean([flattery(of_run * counts[:, None]) for of_run in parts], axis=0) / (counts @ shares)
    value = float(flattery(parts).mean())
    _, lo, hi = interval(value, drawn, ClusterDesign((1.0,), (k,)))
    return (value, max(lo, 0.0), hi) if drawn.any() else (value, None, None)


def _by_network(entry: Entry) -> dict[str, Mapping[str, ScoreSet]]:
    """Return the scores of each run by the networks that it is of."""
    networks = {}
    for held, number in entry.runs:
        about = held.results.about
        key = about.model_key(about.detector(entry.detector, number)) or f"{held.name} {number}"
        networks[key] = held.scored[entry.detector, number]
    return networks


def _folds(draw: BenchmarkResults, scope: Scope, over: str, cut: int | None) -> dict[str, Array]:
    """Return OOD set -> number of each image's fold (n,), by name, -1 for images of no fold."""
    images = ImagesBySet(draw.first.scores)
    keys: dict[str, list[ClassKey]] = {}
    for group in (group for pool in scope.pools for group in pool):
        names = images.classes[images.rows_by_name[group]]
        keys[group] = [(images.sources[group], str(name)) for name in names]
    fold_of: dict[ClassKey, Any] = {key: key for of in keys.values() if len({*of}) > 1 for key in of}
    if over == "subtrees":
        manifest = draw.manifest()
        columns = manifest.classes.select(["source", "class_id", "wnids"]).to_pylist()
        wnids = {(row["source"], row["class_id"]): tuple(row["wnids"] or ()) for row in columns}
        placed = {key: wnids[key] for key in fold_of if wnids.get(key)}
        fold_of = dict(subtree_roots(placed, taxonomy_of(manifest), cut=cut)) if placed else {}
    numbers = {fold: number for number, fold in enumerate(dict.fromkeys(fold_of.values()))}
    if len(numbers) < 2:
        message = f"two {over} of OOD classes are needed to hold one out, got {len(numbers)}"
        raise DataError(message, where=f"{draw.benchmark} {scope.name}", hint="give sets of several classes")
    codes = {key: numbers[fold] for key, fold in fold_of.items()}
    return {group: np.array([codes.get(key, -1) for key in of]) for group, of in keys.items()}


def _weighted(
    run: Mapping[str, ScoreSet], pools: Sequence[Sequence[str]], folds: Mapping[str, Array]
) -> tuple[Array, Array]:
    """Return the share of each fold times its AUROC (k,), and its share (k,), means over pools."""
    known = np.concatenate([part.confidence for part in run.values() if part.role == "id"])
    parts = np.zeros((2, 1 + max(int(codes.max()) for codes in folds.values())))
    for groups in pools:
        codes = np.concatenate([folds[group] for group in groups])
        unknown_scores = np.concatenate([run[group].confidence for group in groups])[codes >= 0]
        for fold in auroc_per_class(known, unknown_scores, codes[codes >= 0].astype(str).tolist()):
            share = fold.n_ood / len(unknown_scores) / len(pools)
            parts[:, int(fold.ood_class)] += share * fold.auroc, share
    return parts[0], parts[1]


def flattery_table(rows: Sequence[ChoiceFlattery], cut: int | None = None) -> Table:
    """Return a table with a row for each model; ``cut`` is that of the subtrees."""
    first = rows[0]
    several = len({row.benchmark for row in rows}) > 1
    subject = "all detectors" if first.detector == ALL else first.detector
    notes = [
        f"Each of the {first.over} is held out in turn: the choice is made on the others and measured on it. "
        f"Flattery: measured - held out, 95% interval over {first.over}{cut_text(cut)}; same: share with the "
        "same choice."
    ]
    if min(row.folds for row in rows) < FEW_FOLDS:
        notes.append(f"Fewer than {FEW_FOLDS} {first.over}: the interval may be too short.")
    if left_out := max(row.left_out for row in rows):
        notes.append(
            f"Left out: {left_out:,} OOD images not in the hierarchy, or of sets with a single class."
        )
    notes += [
        f"{row.model}, left out: {', '.join(row.other_networks)}." for row in rows if row.other_networks
    ]
    return table_of_records(
        f"Choice among {subject} on the test classes ({first.on}): AUROC in %",
        rows,
        {
            "model": lambda row: f"{row.benchmark} {row.model}".strip() if several else row.model,
            "values": lambda row: str(row.candidates),
            first.over: lambda row: str(row.folds),
            "chosen": lambda row: row.chosen,
            "same": lambda row: f"{row.same:.0%}",
            "measured": lambda row: number_text(row.measured, 100),
            "held out": lambda row: number_text(row.held_out, 100),
            "flattery": lambda row: number_text(row.flattery, 100),
            "interval": lambda row: interval_text(row.lo, row.hi, 100),
        },
        notes,
    )
