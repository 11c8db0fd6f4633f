"""`export_detector`: fit a detector of results again, and choose its threshold on ID validation images."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from wordnet_splits.base.digests import sampling_key
from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.progress import Progress, choose_progress
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots
from wordnet_splits.metrics.conformal import ConformalGuarantee

from ...opening import PackedFolders
from ..data.array_checks import tied_share
from ..data.arrays import Array, Arrays
from ..detectors import ConfiguredDetector
from ..detectors.parsing import find_label, one_detector
from ..evaluation.fitting import fit_on_benchmark, require_inputs
from ..evaluation.scoring import Fitted, confidence, detector_name, errors_of
from ..extraction.extractor import BenchmarkImages, Extractor
from ..extraction.outputs import GroupOutputs, ModelRun, Need, OutputSource, Store
from ..models.model import Model
from ..models.transforms import (
    Transform,
    as_transform,
    choose_transform,
    stated_normalisation,
    with_transform,
)
from ..results.metadata import RunFacts, fingerprints_of
from ..results.results import Results
from ..results.rows_from_scores import EvaluatedSets
from .detector_folder import (
    Benchmark,
    Calibration,
    Columns,
    Description,
    Examples,
    Network,
    NotStorableError,
    Preprocessing,
    pack_state,
    unpack_state,
)
from .shipped_detector import ShippedDetector, open_network

SOURCE = "source:"
"""Start of the mapping of a class map to a source's labels."""
PACKAGES = ("wordnet-splits", "torch", "numpy")
DRAW = "calibration"
"""Name of the draw that divides ID validation images into two halves."""
MANY = 1 << 30
MAX_TIED = 0.01
"""Share of equal pairs of calibration scores that is noted."""


def export_detector(
    results: Results | str | Path,
    detector: Any,
    *,
    false_alarms: float = 0.05,
    run: int | None = None,
    model: Any = None,
    benchmark: Manifest | str | Path | None = None,
    transform: Any = None,
    transform_id: str | None = None,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    store: str | Path | None = None,
    batch_size: int | None = None,
    workers: int | None = None,
    progress: Progress | bool | None = None,
    **loading: Any,
) -> ShippedDetector:
    """Return a detector of some results, fitted, with a threshold for a rate of false alarms.

    Results hold scores and no fitted state, so the detector is fitted again, with the parameters in the
    results, on the benchmark's training images. The threshold is chosen on its ID validation images by split
    conformal prediction (`wordnet_splits.metrics.conformal`). If the detector itself uses ID validation
    images, a hash of their names divides them: half for the detector, half for the threshold.

    For results that `evaluate` has just returned, arguments that are not given default to the arguments of
    that call, and the evaluated network is used, as long as it is in memory.

    Parameters
    ----------
    results : results on a benchmark, or their folder.
    detector : its label in the results, or the name of the only one of its kind, such as ``knn``; for an
        unregistered detector its class or function.
    false_alarms : greatest acceptable share of ID images that are flagged.
    run : number of the network in the results; by default the first of the only model.
    model : the network, as `load_model` takes it; by default the network named in the results.
    benchmark : manifest, name or folder; by default the name in the results.
    transform, transform_id : as given to `evaluate`, if the results come from a custom transform.
    roots, packed : of the benchmark's images.
    store : folder of activations, by default none.
    batch_size, workers, progress : of the forward passes.
    loading : options of `load_model`: ``device``, ``head``, ``mapping``, ``model_id``, ...

    Raises
    ------
    DataError : no such detector or run in the results; sets that were given in Python; a network, benchmark,
        transform or class map that differs from the results'; a detector whose state cannot be stored, or
        that combines several networks; too few validation images for the rate.
    """
    results = results if isinstance(results, Results) else Results.read(results)
    about = results.about
    if about.custom_sets:
        hint = "evaluate on a benchmark, with its training and validation images"
        raise DataError(
            "cannot be exported: its sets were given in Python and are not stored",
            where=about.benchmark,
            hint=hint,
        )
    facts, run_notes = about.network(run)
    configured = _configured(results, detector, facts)
    ConformalGuarantee.for_rate(false_alarms, MANY)  # a bad rate is refused before hours of work
    arguments: dict[str, Any] = {"model": model, "benchmark": benchmark, "roots": roots, "packed": packed}
    arguments |= {"store": store, "batch_size": batch_size, "workers": workers, **loading}
    named = transform is None or isinstance(transform, str)
    arguments["transform"] = transform if named else as_transform(transform, transform_id=transform_id)
    if results.reopen is not None:  # not given: as in the call that computed the results
        arguments = {
            **results.reopen(facts.run),
            **{name: value for name, value in arguments.items() if value is not None},
        }
    inputs = _Inputs(**{name: arguments.pop(name) for name in _Inputs._fields})
    manifest = load_manifest(about.benchmark if inputs.benchmark is None else inputs.benchmark)
    _check_benchmark(manifest, results)
    network, source = _network(facts, inputs.model, arguments)
    if inputs.transform is not None:
        network = with_transform(network, inputs.transform, manifest.data.recipe)
    images = BenchmarkImages(manifest, inputs.roots, inputs.packed)
    sets = EvaluatedSets.from_manifest(manifest)
    groups = sets.of_role("val", "id")
    if not groups:
        raise DataError("has no ID validation images to choose a threshold on", where=manifest.name)
    used_transform = _transform(network, images, groups, facts)
    with TemporaryDirectory() as temporary:
        used_store = Store(Path(inputs.store or temporary), permanent=inputs.store is not None)
        reading = inputs.batch_size, inputs.workers or 0, choose_progress(progress)
        extractor = Extractor(network, images, used_store, *reading)
        model_outputs = extractor.run(facts.model)
        to_fit, to_calibrate, halved = model_outputs, model_outputs, _uses_validation(configured)
        if halved:
            to_fit, to_calibrate = (
                replace(model_outputs, source=_Half(model_outputs.source, frozenset(groups), part))
                for part in (0, 1)
            )
        fitted, class_map = _fitted(configured, sets, to_fit, groups, facts)
        needs = {*configured.needs, *fitted.probes}
        data = Arrays.concat([to_calibrate.group("val", group, needs).arrays for group in groups])
        scores = np.asarray(confidence(fitted, data, on="ID validation images"), np.float32)
        calibration, examples = np.sort(scores), Examples.select(data, scores)
    guarantee = ConformalGuarantee.for_rate(false_alarms, len(calibration), where=manifest.name)
    hint = "the confidence of an image must not depend on other images"
    examples.check(fitted, calibration, where=fitted.where, hint=hint)
    description = Description(
        schema=1,
        detector=configured.label,
        name=configured.spec.name,
        params=dict(configured.params),
        chosen_on=configured.chosen_on,
        network=source,
        columns=Columns.from_class_map(class_map),
        view=_view(images, groups),
        transform=Preprocessing(
            key=used_transform.key, words=used_transform.description, spec=dict(used_transform.spec)
        ),
        benchmark=Benchmark(
            name=manifest.name, version=manifest.version, images_fingerprint=manifest.fingerprint
        ),
        calibration=Calibration(
            requested=guarantee.requested,
            false_alarms=guarantee.false_alarms,
            images=guarantee.images,
            rank=guarantee.rank,
            threshold=float(calibration[guarantee.rank - 1]),
            groups=groups,
        ),
        notes=[
            *run_notes,
            *_training_notes(network),
            *_notes(configured, halved=halved, calibration=calibration),
        ],
        software={package: version(package) for package in PACKAGES},
        state={},
    )
    return ShippedDetector(description, network, fitted, used_transform, calibration, examples)


class _Inputs(NamedTuple):
    """Network and images of an export; None for values that the results determine."""

    model: Any
    benchmark: Any
    transform: Transform | str | None
    roots: Roots | None
    packed: PackedFolders | None
    store: str | Path | None
    batch_size: int | None
    workers: int | None


def _configured(results: Results, detector: Any, facts: RunFacts) -> ConfiguredDetector:
    """Return a detector of the results with the parameters that it was scored with."""
    labels = results.detectors
    if isinstance(detector, str) and ":" not in detector:
        detector = find_label(detector, labels, where=results.about.benchmark)
    configured = one_detector(detector)
    if configured.label not in labels:
        raise unknown("detector of these results", configured.label, labels, where=results.about.benchmark)
    if configured.spec.models == "many":
        raise DataError("cannot be exported: it combines several networks", where=detector_name(configured))
    scored = results.about.detector(configured.label, facts.run)
    return configured.with_params(scored.params, scored.chosen_on or "")


def _check_benchmark(manifest: Manifest, results: Results) -> None:
    stored = results.about.fingerprints
    for subject, fingerprint in fingerprints_of(manifest).items():
        if None not in (fingerprint, stored[subject]) and fingerprint != stored[subject]:
            raise DataError(
                f"differs from the benchmark of the results: {subject}",
                where=manifest.name,
                hint="give the benchmark that was evaluated, as benchmark= (--benchmark)",
            )


def _network(facts: RunFacts, model: Any, loading: Mapping[str, Any]) -> tuple[Model, Network]:
    """Return the network of the results, with their columns and normalisation, and how it is loaded again."""
    if not facts.device:
        raise DataError("cannot be exported: the results come from arrays", where=facts.name)
    spec, weights = facts.weights.spec, facts.weights.weights
    if isinstance(model, str):
        spec, weights = model, str(loading.get("weights") or "")
    options = dict(loading)
    if facts.class_map is not None:
        options.setdefault("restrict", facts.class_map.restrict)
        options.setdefault("background", facts.class_map.background)
        if facts.class_map.mapping.startswith(SOURCE):
            options.setdefault("mapping", facts.class_map.mapping.removeprefix(SOURCE))
        elif facts.class_map.mapping == "identity":
            options.setdefault("mapping", "identity")
    network = open_network(spec, weights, model, options, where=facts.name)
    if not network.identified:
        raise DataError(
            "a function cannot be identified by its weights",
            where=facts.name,
            hint="evaluate it with model_id='NAME', and change the name whenever the function changes",
        )
    if network.key != facts.model_key:
        raise DataError(
            f"{network.name} is not the network of the results: fingerprint {network.key[:12]}, "
            f"not {facts.model_key[:12]}",
            where=facts.name,
            hint="give the network that was evaluated, as model= (--model, --weights, --head)",
        )
    if network.preprocess is None and (network.normalise or network.own_normalise) is None:
        network.normalise = stated_normalisation(facts.transforms.values())
    return network, Network(name=network.name, key=network.key, spec=spec, weights=weights)


def _transform(network: Model, images: BenchmarkImages, groups: list[str], facts: RunFacts) -> Transform:
    """Return the transform of the ID images, after checking that the results have the same."""
    transforms = [choose_transform(network, images.group("val", group)) for group in groups]
    if len({transform.key for transform in transforms}) > 1:
        message = "its ID sets must have one transform, got several"
        raise DataError(message, where=images.benchmark.name)
    if transforms[0].key not in facts.transforms:
        raise DataError(
            f"its images were evaluated with another transform than {transforms[0].description}",
            where=facts.name,
            hint=f"give the evaluation's transform as transform=: {'; '.join(facts.transforms.values())}",
        )
    return transforms[0]


def _view(images: BenchmarkImages, groups: list[str]) -> str:
    views = {view for group in groups for view in images.group("val", group).table["view"].to_pylist()}
    if len(views) != 1:
        message = f"its ID sets must have one view, got {', '.join(sorted(views))}"
        raise DataError(message, where=images.benchmark.name)
    return str(views.pop())


def _fitted(
    configured: ConfiguredDetector, sets: EvaluatedSets, run: ModelRun, groups: list[str], facts: RunFacts
) -> tuple[Fitted, Any]:
    """Return the fitted detector and the class map, both checked."""
    with errors_of(detector_name(configured)):
        require_inputs(configured, sets, run)
    outputs = run.group("val", groups[0], configured.needs)
    class_map = outputs.classes
    if facts.class_map is None or class_map is None or not facts.class_map.is_of(class_map.record()):
        raise DataError(
            "its output columns are used differently in the results",
            where=facts.name,
            hint="give the options of the evaluation: mapping=, restrict=, background=",
        )
    fitted = fit_on_benchmark(configured, sets, run, outputs.head)
    return _in_memory(fitted, len(class_map.class_columns)), class_map


def _in_memory(fitted: Fitted, classes: int) -> Fitted:
    """Return a detector without memory-mapped arrays, by way of the stored form of its state."""
    implementation = fitted.configured.spec.implementation
    try:
        tree, arrays = pack_state(fitted.state, implementation)
    except NotStorableError as error:
        raise DataError(f"cannot be exported: {error.what}", where=fitted.where) from None
    state = unpack_state(tree, arrays, implementation, classes=classes, where=fitted.where)
    return replace(fitted, state=state)


def _uses_validation(configured: ConfiguredDetector) -> bool:
    return "val" in configured.spec.splits or hasattr(configured.spec.implementation, "calibrate")


@dataclass(frozen=True)
class _Half:
    """Outputs with half 0 or 1 of the ID validation images, divided by a hash of their names."""

    source: OutputSource
    groups: frozenset[str]
    part: int

    def read(self, split: str, name: str, needs: frozenset[Need]) -> GroupOutputs:
        """Return the outputs on one set, of validation sets a half."""
        outputs = self.source.read(split, name, needs)
        if split != "val" or name not in self.groups:
            return outputs
        columns = (outputs.table[column].to_pylist() for column in ("source", "class_id", "image_id"))
        keys = [sampling_key(DRAW, 0, *names) for names in zip(*columns, strict=True)]
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = np.sort(np.array(order[self.part :: 2], dtype=np.int64))
        arrays = Arrays({name: view[rows] for name, view in outputs.arrays.items()})
        return replace(outputs, table=outputs.table.take(pa.array(rows)), arrays=arrays)

    def require(self, split: str, name: str, needs: frozenset[Need] = frozenset()) -> None:
        """Raise as for the whole sets."""
        self.source.require(split, name, needs)

    def reading(self, images: int) -> AbstractContextManager[None]:
        """Show reading as for the whole sets."""
        return self.source.reading(images)


def _training_notes(network: Model) -> list[str]:
    """Return a note on a network whose epoch was selected on the validation images."""
    recipe = (getattr(network.module, "metadata", None) or {}).get("recipe") or {}
    criterion = recipe.get("select", "last")
    if criterion == "last":
        return []
    return [
        f"the epoch of the network was selected on the validation images ({criterion}): the guarantee does "
        "not account for that choice"
    ]


def _notes(configured: ConfiguredDetector, *, halved: bool, calibration: Array) -> list[str]:
    """Return sentences on conditions that weaken the guarantee or otherwise concern the user."""
    notes = []
    if halved:
        notes.append(
            "the detector is fitted on one half of the ID validation images and its threshold chosen on the "
            "other half, so its confidences differ from those of the results"
        )
    if configured.chosen_on:
        notes.append(
            f"its parameters were chosen on the validation images ({configured.chosen_on}): the guarantee "
            "does not account for that choice"
        )
    tied = tied_share(calibration)
    if tied > MAX_TIED:
        notes.append(f"{tied:.1%} of the pairs of calibration scores are equal: false alarms may be fewer")
    return notes
