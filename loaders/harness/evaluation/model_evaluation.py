"""`evaluate`: models on a benchmark, or on sets given in Python."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.progress import Progress, Silent, choose_progress
from wordnet_splits.benchmark.manifest import Manifest
from wordnet_splits.benchmark.resolve import load_manifest
from wordnet_splits.datasets.sources.roots import Roots

from ...opening import PackedFolders
from ..detectors.parsing import resolve_detectors
from ..extraction.array_jobs import ComputedPart, extract_part
from ..extraction.extractor import BenchmarkImages, Extractor, Plan, read_together
from ..extraction.outputs import ModelRun, Store
from ..models.loading import Models, load_model, open_runs
from ..models.model import Model
from ..models.transforms import (
    Normalise,
    Transform,
    as_transform,
    common_transform,
    with_transform,
)
from ..results.clusters import refuse_subtrees
from ..results.metadata import MetricOptions, metric_options
from ..results.results import Results
from ..results.rows_from_scores import EvaluatedSets
from .fitting import known_needs
from .loader_outputs import CustomImages, loader_runs, standard_deviations
from .run_evaluation import (
    check_sweep,
    evaluate_runs,
    refuse_equal_models,
    require_clusters,
)

LOADING_OPTIONS = tuple(signature(load_model).parameters)[1:]
"""Options of `load_model`, which `evaluate` takes too."""


@dataclass(frozen=True, eq=False)
class EvaluationOptions:
    """Options of `evaluate` and of ``unknown-eval run``, except the models and the benchmark.

    Attributes
    ----------
    metrics : options of the metrics.
    transform : replaces the models' and the benchmark's transform, or None;
        a name is read with the normalisation of each model.
    The remaining fields are arguments of `evaluate`.
    """

    detectors: str | Sequence[Any] = "preset:simple"
    groups: Sequence[str] | None = None
    sweep: bool | str = False
    metrics: MetricOptions = field(default_factory=MetricOptions)
    transform: Transform | str | None = None
    roots: Roots | None = None
    packed: PackedFolders | None = None
    allow_missing: bool = False
    store: str | Path | None = None
    batch_size: int | None = None
    workers: int = 0
    progress: Progress = field(default_factory=Silent)


def evaluate(
    model: Any,
    benchmark: Manifest | str | Path | None = None,
    detectors: str | Sequence[Any] = "preset:simple",
    *,
    sets: Mapping[str, Any] | None = None,
    classes: int | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    transform: Any = None,
    transform_id: str | None = None,
    num_classes: int | None = None,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    groups: Sequence[str] | None = None,
    sweep: bool | str = False,
    bootstrap: int = 0,
    seed_boot: int = 0,
    over: str = "images",
    cut: int | None = None,
    prevalences: Sequence[float] = (0.5,),
    store: str | Path | None = None,
    batch_size: int | None = None,
    workers: int = 0,
    allow_missing: bool = False,
    progress: Progress | bool | None = None,
    **loading: Any,
) -> Results:
    """Evaluate models on a benchmark's test images, or on sets given in Python, with every detector.

    Parameters
    ----------
    model : an nn.Module; a function of images (n, 3, h, w) that returns logits or (features, logits), as
        tensors, NumPy arrays or anything with ``__array__``; a path of a model (``.onnx``, ``.pt2``, ``.ts``,
        ``.pt``); a specification such as ``timm:resnet50`` or ``trained:FOLDER``; the outcome of
        `load_model`; or ``{name: model}`` for several models. ``{name: [run, ...]}`` gives the runs (seeds,
        optimizers) of the same model, and tables average over the runs.
    benchmark : a manifest, its name, or its folder.
    detectors : names as on the command line (``"msp,knn[k=50]"``, ``"preset:openood"``), or a sequence of
        names, detector classes, functions and instances, detector objects of pytorch-ood and postprocessor
        objects of OpenOOD among them.
    sets : in place of a benchmark: set -> dataset or loader of (images, labels), or such a pair of tensors,
        named ``ROLE``, ``ROLE:NAME`` or ``ROLE:NAME/SPLIT``: ``{"id": loader, "near": loader, "id/train":
        loader}``. They are read in their own order, one pass for each model, and one more where a detector
        needs gradients.
    classes : K, the number of ID classes of ``sets``; by default one more than the greatest ID label.
    mean, std : the models' inputs are (pixels in [0, 1] - mean) / std, in place of the benchmark's
        normalisation: one number, or one for each channel. Required if the model is a file or a name, and
        neither model nor benchmark states a normalisation. If ``sets`` is given, ``std`` is the standard
        deviation that the tensors were divided by (1 if not normalised), for datasets whose transform lacks
        it; steps along gradients need it.
    transform : of a PIL image, in place of the models' own and the benchmark's: a name (``"none"``,
        ``"resize-224"``, ``"resize-256-crop-224"``), a `Transform` or a function.
    transform_id : names a transform that is a function, for stored activations: change it with the function.
    num_classes : number of outputs, for specifications that can make a model with any number.
    roots, packed, allow_missing : as of `loaders.UnknownDetectionSet`.
    groups : the sets to evaluate in addition to ID; all by default.
    sweep : choose parameters that were not given on validation images, for each run; ``"disjoint subtrees"``
        leaves out the OOD validation classes that share a subtree of the hierarchy with OOD test classes.
    bootstrap, seed_boot : replicates behind intervals, and their seed.
    over : what the bootstrap draws: ``images``; OOD ``classes``, for conclusions about other unknown classes;
        or ``subtrees`` of these in the hierarchy.
    cut : edges from the least common subsumer of a set's classes down to the roots of its subtrees.
    prevalences : additional shares of OOD for `aurc_unknown`.
    store : folder that keeps activations, so that no forward pass is repeated; by default they are
        discarded.
    batch_size, workers : of the forward passes; by default the batch size is the stored activations', or else
        proposed for the model and its inputs. Packed images are read fastest with 0 workers.
    progress : by default a bar for work longer than two seconds, in a terminal or a notebook only; ``False``
        disables progress, ``True`` prints lines of text outside a terminal.
    loading : options of `load_model`: ``device``, ``mapping``, ``background``, ``preprocess``, ...

    Returns
    -------
    ``print(results)`` shows the table of the benchmark's paper, ``results.to_pandas()`` every metric,
    ``results.write(folder)`` keeps everything.

    Raises
    ------
    SplitsError : an unknown name, a model that does not fit the benchmark, missing images, a detector whose
        input is absent or that raises.
    """
    metrics = metric_options(bootstrap, seed_boot, prevalences, over, cut)
    check_sweep(sweep)
    if sets is not None:
        refuse_subtrees(metrics.over)
    _check_arguments(benchmark, sets, loading)
    for_sets = {"classes": classes}
    for_benchmark: dict[str, Any] = {
        "roots": roots,
        "packed": packed,
        "store": store,
        "allow_missing": allow_missing or None,
    }
    unused, owner = (for_sets, "custom sets") if sets is None else (for_benchmark, "a benchmark")
    for name, value in unused.items():
        if value is not None:
            raise DataError(f"{name} only applies with {owner}", where="evaluate")
    if sets is None or isinstance(transform, str):
        loading |= {name: value for name, value in (("mean", mean), ("std", std)) if value is not None}
    elif mean is not None:
        raise DataError("mean only applies with a benchmark or a named transform", where="evaluate")
    if transform is not None and not isinstance(transform, str):  # a stored function needs a name
        name = transform_id or ("" if store else "as given in this call")
        transform = as_transform(transform, transform_id=name)
    if num_classes is not None:
        loading["options"] = {**(loading.get("options") or {}), "num_classes": num_classes}
    options = EvaluationOptions(
        detectors=detectors,
        groups=groups,
        sweep=sweep,
        metrics=metrics,
        transform=transform,
        roots=roots,
        packed=packed,
        allow_missing=allow_missing,
        store=store,
        batch_size=batch_size,
        workers=workers,
        progress=choose_progress(progress),
    )
    if sets is not None:
        return _evaluate_sets(model, sets, options, classes, std, loading)
    assert benchmark is not None
    manifest = load_manifest(benchmark)
    require_clusters(manifest, groups, metrics, sweep=sweep)  # and known names of groups, before models load
    models = open_runs(model, loading)
    networks = [_references(run) for runs in models.values() for run in runs]
    results = evaluate_models(models, manifest, options)
    return replace(results, reopen=partial(_arguments, networks, manifest, options, loading))


def _references(model: Model) -> list[weakref.ref[Any]]:
    """Return weak references to a model and to its module or function; results do not keep them in memory."""
    references = []
    for part in (model, model.module, getattr(model.network, "function", None)):
        with suppress(TypeError):  # None, or an object that has no weak references
            references.append(weakref.ref(part))
    return references


def _arguments(
    networks: Sequence[Sequence[weakref.ref[Any]]],
    manifest: Manifest,
    options: EvaluationOptions,
    loading: Mapping[str, Any],
    run: int,
) -> dict[str, Any]:
    """Return the arguments that read the same images through the network of a run.

    If the network is not in memory any more, ``model`` has the value None.
    """
    alive = (reference() for reference in (networks[run] if run < len(networks) else ()))
    return {
        "model": next((network for network in alive if network is not None), None),
        "benchmark": manifest,
        "transform": options.transform,
        "roots": options.roots,
        "packed": options.packed,
        "store": options.store,
        "batch_size": options.batch_size,
        "workers": options.workers,
        **loading,
    }


def _check_arguments(benchmark: object, sets: Mapping[str, Any] | None, loading: Mapping[str, Any]) -> None:
    if (benchmark is None) == (sets is None):
        raise DataError("give a benchmark, or custom sets", where="evaluate")
    for name in loading:
        if name not in LOADING_OPTIONS:
            names = [*signature(evaluate).parameters, *LOADING_OPTIONS]
            raise unknown("option", name, names, where="evaluate")
    if not isinstance(benchmark, Manifest | str | Path | None):
        message = f"{type(benchmark).__name__} is not a benchmark"
        raise DataError(message, where="evaluate", hint='give your own data as sets={"id": ..., "near": ...}')


def evaluate_models(models: Models, manifest: Manifest, options: EvaluationOptions) -> Results:
    """Evaluate opened models on a benchmark; see `evaluate`."""
    with TemporaryDirectory() if options.store is None else nullcontext(str(options.store)) as folder:
        store = Store(Path(folder), permanent=options.store is not None)
        opened = _opened(models, manifest, options, store)
        if len(opened.runs) > 1:
            refuse_equal_models(opened.runs, manifest.name)
            plans = reading_plans(opened.runs, opened.sets, options)
            read_together(list(zip(opened.extractors, plans, strict=True)))
        return evaluate_runs(
            manifest,
            opened.runs,
            options.detectors,
            options=options.metrics,
            sweep=options.sweep,
            groups=options.groups,
            without=opened.empty,
            left_out=opened.left_out,
            inputs=_inputs(models, options.transform),
            progress=options.progress,
        )


def _inputs(models: Models, transform: Transform | str | None) -> dict[str, str]:
    """Return the transform and the normalisation that were given, as options of a command line."""
    inputs: dict[str, str] = {}
    normalisations = {run.normalise for runs in models.values() for run in runs}
    normalise = normalisations.pop() if len(normalisations) == 1 else None
    if isinstance(transform, str):
        inputs["transform"] = transform
    elif transform is not None:
        function = str(transform.spec.get("transform_id", "")).partition(" ")[0]
        if name := transform.spec.get("evaluation") or (function if ":" in function else ""):
            inputs["transform"] = name
        if "mean" in transform.spec:
            normalise = Normalise.of(transform.spec["mean"], transform.spec["std"])
    if normalise is not None:
        for name, values in (("mean", normalise.mean), ("std", normalise.std)):
            texts = [str(value).removesuffix(".0") for value in values]
            inputs[name] = texts[0] if len(set(texts)) == 1 else ",".join(texts)
    return inputs


def extract_share(
    models: Models, manifest: Manifest, options: EvaluationOptions, store: Store, index: int, count: int
) -> ComputedPart:
    """Compute job ``index`` of ``count`` of the activations that `evaluate_models` needs, and stop.

    See `activations.array_jobs.extract_part`.
    """
    opened = _opened(models, manifest, options, store)
    refuse_equal_models(opened.runs, manifest.name)
    plans = reading_plans(opened.runs, opened.sets, options)
    work = list(zip(opened.extractors, plans, strict=True))
    return extract_part(work, store, index, count, options.progress)


class _Opened(NamedTuple):
    """The sets, runs and images of an evaluation.

    `empty` are the test sets without an image; `left_out` has sentences on missing images.
    """

    sets: EvaluatedSets
    runs: list[ModelRun]
    extractors: list[Extractor]
    empty: list[str]
    left_out: Iterator[str]


def _opened(models: Models, manifest: Manifest, options: EvaluationOptions, store: Store) -> _Opened:
    """Open the test images and a run of every model."""
    test = EvaluatedSets.from_manifest(manifest, options.groups).test
    images = BenchmarkImages(manifest, options.roots, options.packed, options.allow_missing)
    counts = {name: len(opened) for name, opened in images.test(list(test)).items()}
    for name, role in test.items():
        if role == "id" and not counts[name]:
            hint = "; ".join(images.left_out) or None
            raise SourceError("there are no ID images", where=name, hint=hint)
    runs, extractors = [], []
    for name, model_runs in models.items():
        for run in model_runs:
            model = run
            if options.transform is not None:
                model = with_transform(run, options.transform, manifest.data.recipe)
            extractor = Extractor(model, images, store, options.batch_size, options.workers, options.progress)
            extractors.append(extractor)
            runs.append(extractor.run(name, user_named=models.user_named))
    empty = [name for name in test if not counts[name]]
    sets = EvaluatedSets.from_manifest(manifest, options.groups, without=empty)
    return _Opened(sets, runs, extractors, empty, images.left_out)


def reading_plans(runs: Sequence[ModelRun], sets: EvaluatedSets, options: EvaluationOptions) -> list[Plan]:
    """Return the arrays that an evaluation needs of each run, as far as is known before it."""
    detectors = resolve_detectors(options.detectors, sets.manifest.name)
    of_one = [detector for detector in detectors if detector.spec.models == "one"]
    sizes = Counter(run.model for run in runs)
    return [
        known_needs(detectors if sizes[run.model] > 1 else of_one, sets, run, sweep=bool(options.sweep))
        for run in runs
    ]


def _evaluate_sets(
    model: Any,
    sets: Mapping[str, Any],
    options: EvaluationOptions,
    classes: int | None,
    std: float | Sequence[float] | None,
    loading: dict[str, Any],
) -> Results:
    transform = options.transform
    normalise = None
    if isinstance(transform, str):
        normalise, std = Normalise.of_options(loading.pop("mean", None), loading.pop("std", None)), None
    models = open_runs(model, loading)
    inputs = _inputs(models, transform)
    if isinstance(transform, str):
        transform = common_transform(models, transform, normalise)
    images = CustomImages(
        sets,
        options.batch_size,
        options.workers,
        transform,
        options.progress,
        classes,
        None if std is None else standard_deviations(std),
    )
    manifest, runs = loader_runs(images, models)
    return evaluate_runs(
        manifest,
        runs,
        options.detectors,
        options=options.metrics,
        sweep=options.sweep,
        groups=options.groups,
        custom_sets=list(sets),
        inputs=inputs,
        notes=images.notes(),
        progress=options.progress,
    )
