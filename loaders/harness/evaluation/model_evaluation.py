"""`evaluate`: models on a benchmark, or on sets given in Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from dataclasses import dataclass, field, replace
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.finding import load_manifest
from wordnet_splits.manifest import Manifest
from wordnet_splits.sources.roots import Roots

from ...opening import PackedFolders
from ..activations.on_benchmark import BenchmarkImages, model_run
from ..activations.store import Store
from ..backend.transforms import Transform, as_transform
from ..model import Model, load_model, open_models
from ..model.loading import Models
from .call import EvaluationCall, network_references
from .loader_outputs import UserImages, loader_runs, standard_deviations
from .results import Results
from .run_evaluation import evaluate_runs
from .schema import MetricOptions, metric_options
from .sets import EvaluatedSets

LOADING_OPTIONS = tuple(signature(load_model).parameters)[1:]
"""Options of `load_model`, which `evaluate` takes too."""


@dataclass(frozen=True, eq=False)
class EvaluationOptions:
    """Options of `evaluate` and of ``unknown-eval run``, besides the models and the benchmark.

    Attributes
    ----------
    metrics : options of the metrics. transform : in place of the models' and the benchmark's, or None.
    The remaining fields are arguments of `evaluate`.
    """

    detectors: str | Sequence[Any] = "preset:simple"
    groups: Sequence[str] | None = None
    sweep: bool = False
    metrics: MetricOptions = field(default_factory=MetricOptions)
    transform: Transform | None = None
    roots: Roots | None = None
    packed: PackedFolders | None = None
    allow_missing: bool = False
    store: str | Path | None = None
    batch_size: int = 128
    workers: int = 0
    progress: Progress = field(default_factory=Silent)


def evaluate(
    model: Any,
    benchmark: Manifest | str | Path | None = None,
    detectors: str | Sequence[Any] = "preset:simple",
    *,
    sets: Mapping[str, Any] | None = None,
    classes: int | None = None,
    std: float | Sequence[float] | None = None,
    transform: Any = None,
    transform_id: str | None = None,
    num_classes: int | None = None,
    roots: Roots | None = None,
    packed: PackedFolders | None = None,
    groups: Sequence[str] | None = None,
    sweep: bool = False,
    bootstrap: int = 0,
    seed_boot: int = 0,
    prevalences: Sequence[float] = (0.5,),
    store: str | Path | None = None,
    batch_size: int = 128,
    workers: int = 0,
    allow_missing: bool = False,
    progress: Progress | None = None,
    **loading: Any,
) -> Results:
    """Evaluate models on a benchmark's test images, or on sets given in Python, with every detector.

    Parameters
    ----------
    model : an nn.Module; a function x -> (features, logits); a specification such as ``timm:resnet50`` or
        ``trained:FOLDER``; the outcome of `load_model`; or ``{name: one of these}`` for several models, with
        a list of them for the runs (seeds, optimizers) of one, which tables average over.
    benchmark : a manifest, its name, or its folder.
    detectors : names as on the command line (``"msp,knn[k=50]"``, ``"preset:openood"``), or a sequence of
        names, detector classes, functions and instances.
    sets : in place of a benchmark: set -> dataset or loader of (images, labels), or such a pair of tensors,
        named ``ROLE``, ``ROLE:NAME`` or ``ROLE:NAME/SPLIT``: ``{"id": loader, "near": loader, "id/train":
        loader}``. They are read in their own order, one pass for each model, and one more where a detector
        needs gradients.
    classes : K, the number of ID classes of ``sets``; by default one more than the greatest ID label.
    std : the standard deviation that the tensors of ``sets`` were divided by, one or one for each channel, 1
        without normalisation, where their dataset has no transform with it. Steps along gradients need it.
    transform : of a PIL image (a `Transform` or a function), in place of the model's own and the benchmark's.
    transform_id : names a transform that is a function, for stored activations: change it with the function.
    num_classes : number of outputs, for specifications that can make a model with any number.
    roots, packed, allow_missing : as of `loaders.UnknownDetectionSet`.
    groups : the sets to evaluate besides ID; all by default.
    sweep : choose parameters that were not given on validation images, for each run.
    bootstrap, seed_boot : replicates behind intervals, and their seed.
    prevalences : shares of OOD at which `aurc_unknown` is computed too.
    store : folder that keeps activations, so that no forward pass is repeated; by default they are
        discarded.
    batch_size, workers : of the forward passes. Packed images are read fastest with 0 workers.
    loading : options of `load_model`: ``device``, ``mapping``, ``background``, ``preprocess``, ...

    Returns
    -------
    Results : ``print(results)`` shows the table of the benchmark's paper, ``results.to_pandas()`` every
        metric, ``results.write(folder)`` keeps all of it.

    Raises
    ------
    SplitsError : an unknown name, a model that does not fit the benchmark, missing images, a detector whose
        input is absent or that raises.
    """
    metrics = metric_options(bootstrap, seed_boot, prevalences)
    _check_arguments(benchmark, sets, loading)
    for_sets = {"classes": classes, "std": std}
    for_benchmark = {"roots": roots, "packed": packed, "store": store, "allow_missing": allow_missing or None}
    unused, owner = (for_sets, "sets of your own") if sets is None else (for_benchmark, "a benchmark")
    for name, value in unused.items():
        if value is not None:
            raise DataError(f"{name} belongs to {owner}, and would change nothing", where="evaluate")
    if transform is not None:  # a stored function needs a name
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
        progress=progress or Silent(),
    )
    if sets is not None:
        return _evaluate_sets(model, sets, options, classes, std, loading)
    assert benchmark is not None
    manifest = load_manifest(benchmark)
    EvaluatedSets.of(manifest, groups)  # refuses an unknown name before a model is loaded
    models = _opened_models(model, loading)
    networks = tuple(network_references(run) for runs in models.values() for run in runs)
    results = evaluate_models(models, manifest, options)
    return replace(results, call=EvaluationCall(networks, manifest, options, loading))


def _check_arguments(benchmark: object, sets: Mapping[str, Any] | None, loading: Mapping[str, Any]) -> None:
    if (benchmark is None) == (sets is None):
        raise DataError("give a benchmark, or sets of your own", where="evaluate")
    for name in loading:
        if name not in LOADING_OPTIONS:
            names = [*signature(evaluate).parameters, *LOADING_OPTIONS]
            raise unknown("option", name, names, where="evaluate")
    if not isinstance(benchmark, Manifest | str | Path | None):
        message = f"{type(benchmark).__name__} is not a benchmark"
        raise DataError(message, where="evaluate", hint='give your own data as sets={"id": ..., "near": ...}')


def evaluate_models(models: Models, manifest: Manifest, options: EvaluationOptions) -> Results:
    """Evaluate opened models on a benchmark; see `evaluate`."""
    test = EvaluatedSets.of(manifest, options.groups).test
    if options.transform is not None:
        transformed = {
            name: [_with_transform(run, options.transform) for run in runs] for name, runs in models.items()
        }
        models = Models(transformed, user_named=models.user_named)
    images = BenchmarkImages(manifest, options.roots, options.packed, options.allow_missing)
    counts = {name: len(opened) for name, opened in images.test(list(test)).items()}
    for name, role in test.items():
        if role == "id" and not counts[name]:
            hint = "; ".join(images.left_out) or None
            raise SourceError("there are no ID images", where=name, hint=hint)
    with TemporaryDirectory() if options.store is None else nullcontext(str(options.store)) as folder:
        runs = [
            model_run(
                model,
                images,
                Store(Path(folder)),
                of=name,
                user_named=models.user_named,
                batch_size=options.batch_size,
                workers=options.workers,
                progress=options.progress,
            )
            for name, of_model in models.items()
            for model in of_model
        ]
        return evaluate_runs(
            manifest,
            runs,
            options.detectors,
            options=options.metrics,
            sweep=options.sweep,
            groups=[name for name in test if counts[name]],
            left_out=images.left_out,
            progress=options.progress,
        )


def _evaluate_sets(
    model: Any,
    sets: Mapping[str, Any],
    options: EvaluationOptions,
    classes: int | None,
    std: float | Sequence[float] | None,
    loading: Mapping[str, Any],
) -> Results:
    images = UserImages(
        sets,
        options.batch_size,
        options.workers,
        options.transform,
        options.progress,
        classes,
        None if std is None else standard_deviations(std),
    )
    manifest, runs = loader_runs(images, _opened_models(model, loading))
    return evaluate_runs(
        manifest,
        runs,
        options.detectors,
        options=options.metrics,
        sweep=options.sweep,
        groups=options.groups,
        own_sets=list(sets),
        notes=images.notes(),
        progress=options.progress,
    )


def _with_transform(model: Model, transform: Transform) -> Model:
    """Return a copy of a model whose images go through a transform."""
    copied = copy(model)
    copied.preprocess = transform
    return copied


def _opened_models(model: Any, loading: Mapping[str, Any]) -> Models:
    """Return the runs of each model, opened."""
    if not isinstance(model, Mapping):
        if isinstance(model, Sequence) and not isinstance(model, str):
            raise DataError(
                "a list could mean several models, or runs of one",
                where="model",
                hint="give {name: model, ...}, or {name: [run, ...]} for seeds or optimizers of one model",
            )
        if isinstance(model, str):
            return open_models([model], **loading)
        loaded = _loaded(model, loading)
        return Models({loaded.name: [loaded]})
    models = Models({}, user_named=model.user_named if isinstance(model, Models) else True)
    for name, value in model.items():
        items = [value] if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
        runs = [run for item in items for run in _runs(item, loading)]
        if len(items) > 1 and len({run.name for run in runs}) < len(runs):
            runs = [copy(run) for run in runs]  # the caller's own models keep their names
            for number, run in enumerate(runs):
                run.name = f"{name} {number}"
        models[str(name)] = runs
    return models


def _runs(item: Any, loading: Mapping[str, Any]) -> list[Model]:
    if isinstance(item, str):
        return [run for runs in open_models([item], **loading).values() for run in runs]
    return [_loaded(item, loading)]


def _loaded(item: Any, loading: Mapping[str, Any]) -> Model:
    if not isinstance(item, Model):
        return load_model(item, **loading)
    if loading:
        raise DataError(
            f"{', '.join(loading)}: {item.name} is loaded already",
            where="evaluate",
            hint="load_model takes them",
        )
    return item
