"""Any detectors on any models of any benchmark: confidences of the test images, and every metric of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from wordnet_splits.errors import DataError
from wordnet_splits.manifest import Manifest, load_manifest
from wordnet_splits.progress import Progress, Silent

from ..activations.runs import ModelRun
from ..arrays import CHUNK, Arrays
from ..detectors import Chosen, from_object, parse_detectors
from ..detectors.choosing import each_once
from ..model.class_map import ClassMap
from .derive import MODEL, Classes, Derived, Key, derive
from .measure import Options
from .results import BY_CLASS, BY_NEARNESS, RESULTS, Results, table_of
from .score_tables import joined, prediction_table, score_table
from .scoring import confidence, fit
from .selection import Selection
from .sweep import choose_on_validation, fit_data


def evaluate(
    benchmark: Manifest | str | Path,
    runs: Sequence[ModelRun],
    detectors: str | Sequence[Any],
    *,
    options: Options | None = None,
    sweep: bool = False,
    groups: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    progress: Progress | None = None,
) -> Results:
    """Score every test image with every detector and compute every metric from those scores.

    Parameters
    ----------
    benchmark : a manifest, its name or its folder.
    runs : one model or several (seeds, optimizers), each with rows of its own. Detectors of many models
        (ensembles) use them all; they are left out, and said to be, where there is one.
    detectors : text (see `detectors.parse_detectors`), or texts, detector classes, functions and instances.
    sweep : choose the parameters that have a sweep, and were not given, on validation data, for each run.
    groups : the sets to evaluate beside ID; all by default. What is left out is named in the results.
    notes : kept with the results, e.g. what was left out of the images.

    Raises
    ------
    UnknownNameError : no such group or detector. DataError : something needed is absent, or a detector gives
        NaN; it is named.
    """
    manifest = benchmark if isinstance(benchmark, Manifest) else load_manifest(benchmark)
    keys = [run.model_key for run in runs if run.model_key]
    if not runs or len(set(keys)) < len(keys):
        raise DataError("one model is given twice" if runs else "no model is given", where=manifest.name)
    chosen = chosen_detectors(detectors, manifest.name)
    work = _Work(Selection.of(manifest, groups), list(runs), progress or Silent(), list(notes))
    many = [one for one in chosen if one.method.models == "many"]
    for number in range(len(runs)):
        work.score_run(number, [one for one in chosen if one not in many], sweep=sweep)
    if len(runs) > 1:
        work.score_together(many)
    elif many:
        work.notes.append(f"left out, as one model is no ensemble: {', '.join(one.label for one in many)}")
    return work.results(options or Options(), [one.label for one in chosen])


def chosen_detectors(given: str | Sequence[Any], benchmark: str) -> list[Chosen]:
    """Return the detectors that are named, and those that are given as objects, each label once."""
    items = [given] if isinstance(given, str) else given
    named = (
        parse_detectors(item, benchmark=benchmark) if isinstance(item, str) else [from_object(item)]
        for item in items
    )
    return each_once(one for several in named for one in several)


@dataclass(frozen=True)
class _Use:
    """With which model and parameters a detector was used: the head of its rows."""

    model: str
    model_key: str
    transform_key: str
    params: Mapping[str, Any] = field(default_factory=dict)
    chosen_on: str = ""


@dataclass
class _Work:
    """An evaluation under way: what was scored so far."""

    selection: Selection
    runs: list[ModelRun]
    progress: Progress
    notes: list[str] = field(default_factory=list)
    uses: dict[Key, _Use] = field(default_factory=dict)
    scores: dict[Key, pa.Table] = field(default_factory=dict)
    predictions: dict[Key, pa.Table] = field(default_factory=dict)
    scored: dict[str, int] = field(default_factory=dict)
    class_maps: list[ClassMap | None] = field(default_factory=list)

    def score_run(self, number: int, chosen: Sequence[Chosen], *, sweep: bool) -> None:
        """Fit and score detectors of one model."""
        run = self.runs[number]
        if sweep:
            chosen = [choose_on_validation(one, self.selection, run) if one.sweep else one for one in chosen]
        needs = {name for one in chosen for name in one.needs}  # all at once: one pass over the images
        test = {group: run.group("test", group, needs) for group in self.selection.test}
        self.scored.update({group: seen.arrays.n for group, seen in test.items()})
        self.notes += [f"{run.model}, {group}: {note}" for group, seen in test.items() for note in seen.notes]
        self.predictions["", number] = prediction_table(
            ("", number), test, self.selection.test, model=run.model
        )
        first = next(iter(test.values()))
        self.class_maps.append(first.classes)
        use = _Use(run.model, run.model_key, joined(seen.transform_key for seen in test.values()))
        self.uses[MODEL, number] = use
        with self.progress.task(f"scoring {run.model}", len(chosen)) as task:
            for one in chosen:
                fitted = fit(one, fit_data(one, self.selection, run), first.head)
                found = {group: confidence(fitted, seen.arrays, on=group) for group, seen in test.items()}
                key = (one.label, number)
                self.scores[key] = score_table(key, test, found)
                self.uses[key] = replace(use, params=one.params, chosen_on=one.chosen_on)
                task.advance()

    def score_together(self, chosen: Sequence[Chosen]) -> None:
        """Fit and score detectors of all models together, as run 0 of the models joined by ``+``."""
        for one in chosen:
            seen = {g: [run.group("test", g, one.needs) for run in self.runs] for g in self.selection.test}
            for group, several in seen.items():
                if any(not other.table.equals(several[0].table) for other in several[1:]):
                    raise DataError("the models saw different images", where=group)
            learned = [fit_data(one, self.selection, run) for run in self.runs]
            heads = [own.head for own in next(iter(seen.values()))]
            fitted = fit(one, [data for data in learned if data is not None] or None, heads)
            key = (one.label, 0)
            arrays = {group: [own.arrays for own in several] for group, several in seen.items()}
            first = {group: several[0] for group, several in seen.items()}
            found = {group: confidence(fitted, data, on=group) for group, data in arrays.items()}
            self.scores[key] = score_table(key, first, found)
            combine = getattr(fitted.detector, "combine", None)
            if combine is not None:
                joint = {g: replace(first[g], arrays=_combined(combine, arrays[g])) for g in first}
                self.predictions[key] = prediction_table(key, joint, self.selection.test, model=one.label)
            self.uses[key] = _Use(
                joined(run.model for run in self.runs),
                joined(run.model_key for run in self.runs),
                joined(own.transform_key for several in seen.values() for own in several),
                one.params,
            )

    def results(self, options: Options, order: Sequence[str]) -> Results:
        """Compute every row of everything scored; detectors come in the order asked for."""
        keys = sorted(self.scores, key=lambda key: (order.index(key[0]), key[1]))
        if not keys:
            raise DataError("no detector is left to score", hint="; ".join(self.notes) or None)
        scores = pa.concat_tables([self.scores[key] for key in keys]).combine_chunks()
        predictions = pa.concat_tables(list(self.predictions.values())).combine_chunks()
        classes = self._classes()
        similarity = self.selection.similarity()
        found = derive(scores, predictions, similarity, options, classes, progress=self.progress)
        return Results(
            table_of(self._rows(found), RESULTS),
            scores,
            predictions,
            table_of([(*key, *row) for key, row in found.classes], BY_CLASS),
            table_of([(*key, *row) for key, row in found.bins], BY_NEARNESS),
            self._about(options, classes, found),
        )

    def _rows(self, found: Derived) -> list[tuple[Any, ...]]:
        manifest = self.selection.manifest
        head = (manifest.name, manifest.version, manifest.fingerprint)
        rows = []
        for (detector, number), row in found.results:
            use = self.uses[detector, number]
            params = json.dumps(dict(use.params), sort_keys=True)
            model = (use.model, use.model_key, use.transform_key, number)
            rows.append((*head, *model, detector, params, use.chosen_on or None, *row))
        return rows

    def _classes(self) -> Classes:
        first = self.class_maps[0]
        if first is None:
            return Classes(1, False)
        known = len(first.columns) or len(first.kept)
        return Classes(known, len(first.softmax_columns) > known)

    def _about(self, options: Options, classes: Classes, found: Derived) -> dict[str, Any]:
        manifest = self.selection.manifest
        return {
            "benchmark": manifest.name,
            "version": manifest.version,
            "composition": found.composition,
            "missing": [row._asdict() for row in self.selection.missing(self.scored)],
            "options": options.as_dict(),
            "known_classes": classes.known,
            "other_columns": classes.others,
            "class_maps": [one.record() if one else None for one in self.class_maps],
            "models": [run.model for run in self.runs],
            "notes": list(dict.fromkeys(self.notes)),
        }


def _combined(combine: Any, arrays: Sequence[Arrays]) -> Arrays:
    """The arrays that several models give together, computed chunk by chunk."""
    parts = [combine(list(chunk)) for chunk in zip(*(one.chunks(CHUNK) for one in arrays), strict=True)]
    return Arrays.concat(parts) if parts else arrays[0]
