"""`name_unknowns`: answers of results in the benchmark's hierarchy, their errors, and one image in words.

If the detector accepts an image as known, the answer is the predicted class. If it rejects the image as
unknown, the answer is the inner node (not a class) that a stopping rule selects. `answered_images` explains
the detector's threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.hierarchy import RULES, Rule, balanced_means, compare_answers, parse_rule
from wordnet_splits.metrics.draws import resample_counts
from wordnet_splits.metrics.uncertainty import interval

from ..data.arrays import Array
from ..results.results import Results
from ..results.scores import MODEL, ResultTables
from ..results.table import Table, TableReport, interval_text, number_text
from .answered_images import AnsweredImages

MIX = "mean"
"""Role of the unweighted mean over ID, near and far."""
METRICS = ("distance", "under", "over", "exact", "correct", "specificity")
CLASS = "class"
"""Rule of the baseline that always answers with the predicted class."""
FALSE_ALARMS = 0.05


class Curve(NamedTuple):
    """Trade-off of a rule on the images of a role: shares of shape (values of the rule's parameter,)."""

    rule: str
    role: str
    specificity: Array
    correct: Array


@dataclass(frozen=True)
class AnswerRow(Jsonable):
    """A metric of a rule and a detector on the images of a role; edges, or shares in [0, 1]."""

    rule: str
    detector: str
    role: str
    metric: str
    value: float
    lo: float | None
    hi: float | None
    images: int


@dataclass(frozen=True)
class ImageAnswer(Jsonable):
    """The answer for one image.

    Attributes
    ----------
    text : the answer in words.
    verdict : "known", "unknown", or "" without a detector.
    wnid : the node.
    truth : name of the true node.
    distance : edges between both.
    path : (wnid, name, posterior) from the root down to the node.
    """

    image: str
    text: str
    verdict: str
    wnid: str
    truth: str
    distance: int
    path: tuple[tuple[str, str, float], ...]

    def __str__(self) -> str:
        steps = (f"{name} {_percent(posterior)}" for _, name, posterior in self.path)
        edges = f"{self.distance} edge{'s' * (self.distance != 1)}"
        return f"{self.text} ({' > '.join(steps)}; truth: {self.truth}, {edges} away)"


@dataclass(frozen=True, eq=False)
class HierarchyReport(TableReport):
    """The outcome of `name_unknowns`; printed, its tables.

    Attributes
    ----------
    images : the images with their probabilities and true nodes.
    answers : (rule, detector) -> (n,) node.
    unknown : detector -> (n,) whether it calls the image unknown.
    records : every metric.
    rules : the stopping rules.
    notes : sentences on how answers came about.
    """

    images: AnsweredImages
    answers: Mapping[tuple[str, str], Array]
    unknown: Mapping[str, Array]
    records: tuple[AnswerRow, ...]
    rules: tuple[Rule, ...]
    notes: tuple[str, ...] = ()

    def rows(self) -> Sequence[Mapping[str, Any]]:
        """Return a row for each rule, detector, role and metric."""
        return [asdict(record) for record in self.records]

    def as_dict(self) -> dict[str, Any]:
        """Return what ``unknown-eval hierarchy --json`` prints."""
        images = self.images
        facts = {"benchmark": images.benchmark, "model": images.network, "nodes": len(images.hierarchy)}
        return {**facts, "rows": list(self.rows()), "depths": self.at_depths(), "notes": list(self.notes)}

    def value(self, rule: str, detector: str, role: str, metric: str) -> AnswerRow:
        """Return the matching row; raise UnknownNameError if it does not exist."""
        rows = {(r.rule, r.detector, r.role, r.metric): r for r in self.records}
        if (rule, detector, role, metric) not in rows:
            raise unknown("row", f"{rule} {detector} {role} {metric}", map(" ".join, rows))
        return rows[rule, detector, role, metric]

    def tables(self) -> list[Table]:
        """Return the distances, the shares, and the accuracy at each depth."""
        roles = (*self.images.present, MIX)
        title = f"{self.images.benchmark}, {self.images.network}"
        with_intervals = self.records[0].lo is not None
        distances, shares = [], []
        for key in self.answers:
            distance, under, over, *of_answers = (self.value(*key, MIX, metric) for metric in METRICS)
            of_roles = [number_text(self.value(*key, role, "distance").value) for role in roles]
            ends = [interval_text(distance.lo, distance.hi)] if with_intervals else []
            distances.append((*key, *of_roles, *ends, number_text(under.value), number_text(over.value)))
            percent = [
                [number_text(row.value, 100), interval_text(row.lo, row.hi, 100)][: 1 + with_intervals]
                for row in of_answers
            ]
            shares.append((*key, *(text for texts in percent for text in texts)))
        by_depth = self.at_depths()
        depths = list(by_depth[0])[2:]
        names = [[metric, f"{metric} interval"][: 1 + with_intervals] for metric in METRICS[3:]]
        headings = [name for pair in names for name in pair]
        return [
            Table(
                f"{title}: hierarchical distance in edges, balanced over true nodes, lower is better",
                ("rule", "detector", *roles, *["interval"][:with_intervals], "under", "over"),
                tuple(distances),
                tuple(self.rows()),
            ),
            Table(
                f"{title}: answers at the truth, at or above it, and their specificity, {MIX}, in %",
                ("rule", "detector", *headings),
                tuple(shares),
            ),
            Table(
                f"{title}: accuracy at depth over all images whose truth is so deep, in %",
                ("rule", "detector", *(name.removeprefix("depth ") for name in depths)),
                tuple(
                    (row["rule"], row["detector"], *(number_text(row[name], 100) for name in depths))
                    for row in by_depth
                ),
            ),
        ]

    def at_depths(self) -> list[dict[str, Any]]:
        """Return the accuracy of every rule and detector at each depth, ``depth 1`` and so on.

        Of all images whose truth is so deep, balanced over true nodes.
        """
        images = self.images
        deepest = int(images.hierarchy.depths[images.truth].max())
        rows = []
        for (rule, detector), answers in self.answers.items():
            errors = compare_answers(images.hierarchy, images.truth, answers)
            values = np.column_stack([errors.at_depth(depth) for depth in range(1, deepest + 1)])
            by_depth = {
                f"depth {n}": float(v) for n, v in enumerate(balanced_means(values, images.truth)[0], 1)
            }
            rows.append({"rule": rule, "detector": detector, **by_depth})
        return rows

    def curves(self) -> list[Curve]:
        """Return specificity and accuracy of each rule alone, for each role, along its parameter."""
        points: dict[str, list[Array]] = {}
        for rule in self.rules:
            for value in rule.curve:
                try:
                    nodes = self.images.answers(rule.of(value))
                except DataError:  # too few calibration images for so small an error
                    continue
                errors = compare_answers(self.images.hierarchy, self.images.truth, nodes)
                values = np.column_stack([errors.specificity, errors.correct])
                points.setdefault(rule.name, []).append(self.images.means(values)[:-1, 0])
        return [
            Curve(name, role, *np.array(values)[:, n].T)
            for n, role in enumerate(self.images.present)
            for name, values in points.items()
        ]

    def explain(self, image: str, rule: str | None = None, detector: str | None = None) -> ImageAnswer:
        """Return the answer for one image in words, such as "a hoofed mammal, 93%; not one of the 40".

        Parameters
        ----------
        image : its id, ``SOURCE/IMAGE_ID``, or ``GROUP/SOURCE/IMAGE_ID`` where that is ambiguous.
        rule, detector : labels; by default the first of each.

        Raises
        ------
        UnknownNameError : no such image, rule or detector. DataError : several images of that id.
        """
        names = self.images.names()
        matches = [n for n, name in enumerate(names) if f"/{name}".endswith(f"/{image}")]
        if not matches:
            raise unknown("image", image, names, where=self.images.benchmark)
        if len(matches) > 1:
            raise DataError(f"{len(matches)} images are called {image}", hint=f"one is {names[matches[0]]}")
        rules = [label for label in dict.fromkeys(label for label, _ in self.answers) if label != CLASS]
        for kind, name, labels in (("rule", rule, rules), ("detector", detector, [*self.unknown, MODEL])):
            if name is not None and name not in labels:
                raise unknown(kind, name, labels, where=self.images.benchmark)
        rule, detector = rule or rules[0], detector or next(iter(self.unknown), MODEL)
        n, tree = matches[0], self.images.hierarchy
        node, truth = int(self.answers[rule, detector][n]), int(self.images.truth[n])
        posteriors = tree.posteriors(self.images.probabilities[n : n + 1])[0]
        count = len(tree.classes)
        verdict = ""
        if detector != MODEL:
            verdict = "unknown" if self.unknown[detector][n] else "known"
        open_ending = f"which of the {count} is open" if tree.inner[node] else f"one of the {count}"
        endings = {"known": f"one of the {count}", "unknown": f"not one of the {count}", "": open_ending}
        name = tree.name(node)
        article = "an" if name[0].lower() in "aeiou" else "a"
        return ImageAnswer(
            names[n],
            f"{article} {name}, {_percent(posteriors[node])}; {endings[verdict]}",
            verdict,
            tree.wnids[node],
            tree.name(truth),
            int(compare_answers(tree, [truth], [node]).distance[0]),
            tuple((tree.wnids[step], tree.name(step), float(posteriors[step])) for step in tree.path(node)),
        )


def name_unknowns(
    results: ResultTables | str | Path,
    *,
    rules: Sequence[str] = tuple(RULES),
    detectors: Sequence[str] | None = None,
    run: int | None = None,
    benchmark: Manifest | str | Path | None = None,
    store: str | Path | None = None,
    logits: Mapping[str, npt.ArrayLike] | None = None,
    tree: bool = False,
    false_alarms: float = FALSE_ALARMS,
    bootstrap: int = 0,
    seed_boot: int = 0,
) -> HierarchyReport:
    """Answer for every test image of some results at a node of the hierarchy, and measure them.

    Parameters
    ----------
    results : results on a benchmark, or their folder.
    rules : ``threshold[posterior=0.9]``, ``information[weight=0]``, ``conformal[error=0.1]``, or their names.
    detectors : labels, all by default.
    run : number of the network; by default the first of the only model.
    benchmark : manifest, name or folder; by default the name in the results.
    store : folder of activations of the evaluation.
    logits : in its place, group -> (n, K) in the order of
        the benchmark's test images. For results that `evaluate` has just returned neither is needed.
    tree : on ImageNet's tree, where a synset has one parent, in place of WordNet's graph; for benchmarks over
        WordNet alone.
    false_alarms : greatest acceptable share of ID images that a detector calls unknown.
    bootstrap, seed_boot : replicates behind intervals (0 for none), over the images of each set, and their
        seed.

    Raises
    ------
    DataError : results without logits or scores, or on sets given in Python; several models and no run, or
        no such run; ID classes without a synset; too few ID images. UnknownNameError : no such rule or
        detector.
    """
    results = results if isinstance(results, ResultTables) else Results.read(results)
    stopping_rules = tuple(dict.fromkeys(map(parse_rule, rules)))
    if not stopping_rules:
        raise DataError("no stopping rule is given", hint=", ".join(RULES))
    labels = [label for label in results.detectors if label != MODEL]
    for name in detectors or ():
        if name not in labels:
            raise unknown("detector of these results", name, labels, where=results.about.benchmark)
    network, run_notes = results.about.network(run)
    images = AnsweredImages.from_results(results, network, benchmark, store=store, logits=logits, tree=tree)
    selected = labels if detectors is None else list(dict.fromkeys(detectors))
    verdicts = dict(images.verdicts(results, network, selected, false_alarms))
    predicted = images.hierarchy.leaves[images.probabilities.argmax(axis=1)]
    answers = {(CLASS, MODEL): predicted}
    for rule in stopping_rules:
        answers[rule.label, MODEL] = images.answers(rule)
        for name, outside in verdicts.items():
            answers[rule.label, name] = np.where(outside, images.answers(rule, outside), predicted)
    notes = (
        f"{'Tree of ImageNet' if tree else f'Graph of {images.hierarchy.taxonomy.called}'}: "
        f"{len(images.hierarchy)} nodes at or above the {len(images.hierarchy.classes)} ID classes.",
        f"A detector calls {false_alarms:.1%} of ID images unknown, by thresholds of the other half of the "
        f"ID test images; {MODEL}: the rule alone, {CLASS}: the predicted class.",
        *run_notes,
    )
    records = tuple(_measured(images, answers, bootstrap, seed_boot))
    return HierarchyReport(images, answers, verdicts, records, stopping_rules, notes)


def _measured(
    images: AnsweredImages, answers: Mapping[tuple[str, str], Array], replicates: int, seed: int
) -> list[AnswerRow]:
    """Return every metric of every answer; all answers are resampled with the same draws."""
    values = {}
    for key, nodes in answers.items():
        errors = compare_answers(images.hierarchy, images.truth, nodes)
        values[key] = np.column_stack([getattr(errors, metric) for metric in METRICS]).astype(np.float64)
    resampled: dict[tuple[str, str], list[Array]] = {key: [] for key in answers}
    for counts in resample_counts(images.sizes, replicates=replicates, seed=seed):
        for key, of_images in values.items():
            resampled[key].append(images.means(of_images, counts))
    sizes = [int((images.roles == role).sum()) for role in images.present]
    rows = []
    for key, of_images in values.items():
        means = images.means(of_images)[:, 0]
        drawn = np.concatenate(resampled[key], axis=1) if replicates else None
        for n, role in enumerate((*images.present, MIX)):
            for column, metric in enumerate(METRICS):
                lo = hi = None
                if drawn is not None:
                    _, lo, hi = interval(float(means[n, column]), drawn[n, :, column])
                count = sum(sizes) if role == MIX else sizes[n]
                rows.append(AnswerRow(*key, role, metric, float(means[n, column]), lo, hi, count))
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"
