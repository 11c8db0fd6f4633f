"""Variance components of paired differences, from committed results: ``python -m tools.power``.

Writes ``wordnet_splits/data/power.toml``, which `wordnet_splits.power` reads. Pairs are neighbours in the
ranking of a set by AUROC, within a run, above chance and not equal everywhere. Components: nested analysis of
variance with unequal sizes (Searle, Casella and McCulloch, Variance Components, 1992, section 3.6), the ID
part by a jackknife over `BLOCKS` blocks. Medians over pairs are kept; subtrees have the share of the part
between classes that they have in the sum over pairs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq

from wordnet_splits.base.files import write_text
from wordnet_splits.benchmark.clusters import subtree_clusters
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.metrics.counts import Array
from wordnet_splits.metrics.power import METRICS, TPR, Components, unpaired

ROOT = Path(__file__).resolve().parents[1]
OUT = ROOT / "wordnet_splits/data/power.toml"
RESULTS = sorted(file.parent for file in ROOT.glob("manifests/results/*/scores.parquet"))
BLOCKS, ROLES = 50, ("near", "far")
FEWEST_PAIRS, FEWEST_CLASSES, FEWEST_IMAGES = 3, 5, 500
HEADER = """\
# Variances of the paired difference of two detectors, in units of `wordnet_splits.metrics.power.unpaired`, by
# `python -m tools.power`: [between subtrees, classes of a subtree, images of a class, ID images].
# [default.ROLE]: medians over measured sets, for other sets. [[measured]]: results are in manifests/results;
# sizes are the numbers of images, classes and subtrees (1: not known); pairs are neighbours in the ranking,
# with auroc_range, and quartiles of the part between classes in AUROC.
"""
Pair = tuple[float, dict[str, Components]]  # mean AUROC, metric -> components


class Measured(NamedTuple):
    """The pairs of a set, the results that hold it, and its numbers of images, classes and subtrees."""

    role: str
    sizes: tuple[int, int, int]
    results: list[str]
    pairs: list[Pair]

    def typical(self, metric: str) -> tuple[float, Array]:
        """Return the share of subtrees, and the medians between classes in all, of images and ID images."""
        parts = np.array([parts[metric] for _, parts in self.pairs])
        classes = parts[:, 0] + parts[:, 1]
        share = np.clip(parts[:, 0].sum() / classes.sum(), 0, 1) if classes.sum() > 0 else 0
        return float(share), np.maximum(np.median(np.c_[classes, parts[:, 2:]], axis=0), 0)


def between(values: Array, classes: Array, subtrees: Array) -> tuple[float, float, float]:
    """Return the variances (between subtrees, classes in a subtree, images in a class) of values (n,)."""
    n, n_c, n_s = len(values), np.bincount(classes), np.bincount(subtrees)
    parent = subtrees[np.unique(classes, return_index=True)[1]]
    mean_c, mean_s = (np.bincount(by, values) / sizes for by, sizes in ((classes, n_c), (subtrees, n_s)))
    within = np.sum((values - mean_c[classes]) ** 2) / (n - len(n_c))
    nested = np.bincount(parent, n_c**2) / n_s
    of_class, free = 0.0, len(n_c) - len(n_s)
    if free:
        squares = np.sum(n_c * (mean_c - mean_s[parent]) ** 2) / free
        of_class = (squares - within) / ((n - nested.sum()) / free)
    if len(n_s) == 1:
        return 0.0, of_class, within
    free = len(n_s) - 1
    k2, k3 = (nested.sum() - np.sum(n_c**2) / n) / free, (n - np.sum(n_s**2) / n) / free
    squares = np.sum(n_s * (mean_s - values.mean()) ** 2) / free
    return (squares - within - k2 * of_class) / k3, of_class, within


def per_image(inside: Array, outside: Array) -> dict[str, Array]:
    """Return metric -> (n_ood,) parts of which the metric is the mean."""
    ranked = np.sort(inside)
    up_to = (np.searchsorted(ranked, outside) + np.searchsorted(ranked, outside, "right")) / 2
    threshold = ranked[::-1][int(np.ceil(TPR * len(inside) - 1e-9)) - 1]
    return {"auroc": 1 - up_to / len(inside), "fpr95": (outside >= threshold).astype(float)}


def pairs_of(inside: Array, outside: Array, classes: Array, subtrees: Array) -> Iterator[Pair]:
    """Yield the pairs of neighbours, given scores (detectors, images) and clusters (n_ood,)."""
    block = np.arange(inside.shape[1]) % BLOCKS
    parts, means = [], []
    for ours, others in zip(inside, outside, strict=True):
        parts.append(per_image(ours, others))
        without = [per_image(ours[block != b], others) for b in range(BLOCKS)]
        means.append({m: np.array([part[m].mean() for part in without]) for m in METRICS})
    for a, b in pairwise(sorted(range(len(parts)), key=lambda d: -parts[d]["auroc"].mean())):
        mean = float(parts[a]["auroc"].mean() + parts[b]["auroc"].mean()) / 2
        if mean > 0.5 and any((parts[a][m] != parts[b][m]).any() for m in METRICS):
            found = {}
            for m in METRICS:
                of_id = (BLOCKS - 1) * np.var(means[a][m] - means[b][m]) * inside.shape[1]
                variances = np.array([*between(parts[a][m] - parts[b][m], classes, subtrees), of_id])
                found[m] = Components(*(variances / unpaired(m, mean)).tolist())
            yield mean, found


def measure(folders: Iterable[Path]) -> dict[tuple[str, str], Measured]:
    """Return (benchmark, group) -> its pairs, of every set of results that is large enough."""
    measured: dict[tuple[str, str], Measured] = {}
    for folder in folders:
        of_results = json.loads((folder / "about.json").read_text("utf-8"))["about"]["benchmark"]
        benchmark, table = of_results.partition("@")[0], pq.read_table(folder / "scores.parquet")
        groups, sources, ids = (np.array(table[c].to_pylist()) for c in ("group", "source", "class_id"))
        roles = dict(zip(groups.tolist(), table["role"].to_pylist(), strict=True))
        runs: dict[str, list[Array]] = {}
        for name in table.column_names[6:]:
            runs.setdefault(name.rpartition("/")[2], []).append(table[name].to_numpy())
        of_group = subtree_clusters(load_manifest(benchmark))
        inside = np.isin(groups, [g for g, role in roles.items() if role == "id"])
        for group, role in roles.items():
            rows = groups == group
            names, classes = np.unique(ids[rows], return_inverse=True)
            if role not in ROLES or len(names) < FEWEST_CLASSES or rows.sum() < FEWEST_IMAGES:
                continue
            keys, clusters = zip(sources[rows].tolist(), ids[rows].tolist(), strict=True), of_group[group]
            roots = ["" if clusters.problem else clusters.of[key] for key in keys]
            subtrees = np.unique(roots, return_inverse=True)[1]
            new = Measured(role, (int(rows.sum()), len(names), len({*roots})), [], [])
            entry = measured.setdefault((benchmark, group), new)
            for scores in map(np.array, runs.values()):
                found = list(pairs_of(scores[:, inside], scores[:, rows], classes, subtrees))
                entry.pairs.extend(found)
                entry.results.extend({folder.name}.difference(entry.results) if found else [])
    return {key: entry for key, entry in sorted(measured.items()) if len(entry.pairs) >= FEWEST_PAIRS}


def lines_of(measured: Mapping[tuple[str, str], Measured]) -> Iterator[str]:
    """Yield the file: the medians over the sets of each role, then each set."""
    yield HEADER
    nested = [e for e in measured.values() if 1 < e.sizes[2] < e.sizes[1]]
    for role in ROLES:
        yield f"[default.{role}]"
        for m in METRICS:
            share = float(np.median([e.typical(m)[0] for e in nested]))
            medians = [e.typical(m)[1] for e in measured.values() if e.role == role]
            yield components(m, share, np.median(medians, axis=0))
    for (benchmark, group), entry in measured.items():
        aurocs = [auroc for auroc, _ in entry.pairs]
        quartiles = np.quantile([sum(parts["auroc"][:2]) for _, parts in entry.pairs], [0.25, 0.75])
        yield f'\n[[measured]]\nbenchmark = "{benchmark}"\ngroup = "{group}"'
        spread = f"auroc_range = [{min(aurocs):.3f}, {max(aurocs):.3f}], quartiles = [{{:.3g}}, {{:.3g}}]"
        sizes = f"sizes = {list(entry.sizes)}, pairs = {len(aurocs)}, {spread.format(*quartiles)}"
        yield f"origin = {{ results = {json.dumps(entry.results)}, {sizes} }}"
        yield from (components(m, *entry.typical(m)) for m in METRICS)


def components(metric: str, share: float, medians: Array) -> str:
    """Return the line of a metric's components."""
    parts = (share * medians[0], (1 - share) * medians[0], *medians[1:])
    return f"{metric} = [{', '.join(f'{part:.3g}' for part in parts)}]"


if __name__ == "__main__":
    write_text(OUT, "\n".join([*lines_of(measure(RESULTS)), ""]))
