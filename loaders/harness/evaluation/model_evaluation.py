"""`evaluate`: models on a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wordnet_splits.base.errors import DataError, SourceError, unknown
from wordnet_splits.base.progress import Progress, Silent
from wordnet_splits.base.schemas import validate
from wordnet_splits.finding import load_manifest
from wordnet_splits.manifest import Manifest
from wordnet_splits.sources.roots import Roots

from ...opening import PackedFolders
from ..activations.on_benchmark import BenchmarkImages, model_run
from ..activations.store import Store
from ..backend.transforms import Transform, as_transform
from ..model import Model, load_model, open_models
from ..model.loading import Models
from .loader_outputs import OwnImages, deviations, loader_runs
from .results import Results
from .run_evaluation import evaluate_runs
from .schema import MetricOptions
from .sets import EvaluatedSets

OPTIONS = tuple(signature(load_model).parameters)[1:]
"""Of `load_model`, which `evaluate` takes too."""


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
    """Evaluate models on a benchmark's test images, or on sets of one's own, with every detector.

    Parameters
    ----------
    model : an nn.Module; a function x -> (features, logits); a specification such as ``timm:resnet50`` or
        ``trained:FOLDER``; what `load_model` gave; or ``{name: one of these}`` for several models, with a
        list of them for the runs (seeds, optimizers) of one, which tables average over.
    benchmark : a manifest, its name, or its folder.
    detectors : names as on the command line (``"msp,knn[k=50]"``, ``"preset:openood"``), or a sequence of
        names, detector classes, functions and instances.
    sets : in place of a benchmark: set -> dataset or loader of (images, labels), or such a pair of tensors,
        named ``ROLE``, ``ROLE:NAME`` or ``ROLE:NAME/SPLIT``: ``{"id": loader, "near": loader, "id/train":
        loader}``. They are read in the order they have, one pass for each model, and one more where a
        detector needs gradients.
    classes : K, the number of ID classes of ``sets``; by default one more than the greatest ID label.
    std : the standard deviation that the tensors of ``sets`` were divided by, one or one for each channel, 1
        without normalisation, where their dataset has no transform that says so. Steps along gradients need
        it.
    transform : of a PIL image (a `Transform` or a function), in place of the model's own and the benchmark's.
    transform_id : names a transform that is a function, for stored activations: change it with the function.
    num_classes : of the model, where a specification makes it with as many outputs as one asks for.
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
    SplitsError : a name that does not exist, a model that does not fit the benchmark, images that are not
        there, a detector that needs what is absent or raises.
    """
    given = {"replicates": bootstrap, "seed": seed_boot, "prevalences": tuple(prevalences)}
    options = validate(MetricOptions, given, where="options of the evaluation")
    if (benchmark is None) == (sets is None):
        raise DataError("give a benchmark, or sets of your own", where="evaluate")
    for name in loading:
        if name not in OPTIONS:
            raise unknown("option", name, [*signature(evaluate).parameters, *OPTIONS], where="evaluate")
    named_by: object = benchmark
    if not isinstance(named_by, Manifest | str | Path | None):
        what = f"{type(named_by).__name__} is no benchmark"
        raise DataError(what, where="evaluate", hint='give your own data as sets={"id": ..., "near": ...}')
    of_sets = {"classes": classes, "std": std}
    of_benchmark = {"roots": roots, "packed": packed, "store": store, "allow_missing": allow_missing or None}
    unused, of = (of_sets, "sets of your own") if sets is None else (of_benchmark, "a benchmark")
    for name, value in unused.items():
        if value is not None:
            raise DataError(f"{name} belongs to {of}, and would change nothing", where="evaluate")
    watched = progress or Silent()
    stored_id = transform_id or ("" if store else "as given in this call")  # what is stored needs a name
    chosen = None if transform is None else as_transform(transform, transform_id=stored_id)
    if num_classes is not None:
        loading["options"] = {**(loading.get("options") or {}), "num_classes": num_classes}
    if sets is not None:
        spread = None if std is None else deviations(std)
        own = OwnImages(sets, batch_size, workers, chosen, watched, classes, spread)
        manifest, runs = loader_runs(own, _opened(model, loading))
        return evaluate_runs(
            manifest,
            runs,
            detectors,
            options=options,
            sweep=sweep,
            groups=groups,
            own=list(sets),
            notes=own.notes(),
            progress=watched,
        )
    assert benchmark is not None
    manifest = load_manifest(benchmark)
    tested = EvaluatedSets.of(manifest, groups)
    models = _opened(model, loading)
    if chosen is not None:
        through = {name: [_through(one, chosen) for one in several] for name, several in models.items()}
        models = Models(through, user_named=models.user_named)
    images = BenchmarkImages(manifest, roots, packed, allow_missing)
    held = {name: len(opened) for name, opened in images.test(list(tested.test)).items()}
    unread = [name for name, role in tested.test.items() if role == "id" and not held[name]]
    if unread:
        raise SourceError("there are no ID images", where=unread[0], hint="; ".join(images.left_out) or None)
    with TemporaryDirectory() if store is None else nullcontext(str(store)) as folder:
        runs = [
            model_run(
                one,
                images,
                Store(Path(folder)),
                of=name,
                user_named=models.user_named,
                batch_size=batch_size,
                workers=workers,
                progress=watched,
            )
            for name, several in models.items()
            for one in several
        ]
        return evaluate_runs(
            manifest,
            runs,
            detectors,
            options=options,
            sweep=sweep,
            groups=[name for name in tested.test if held[name]],
            left_out=images.left_out,
            progress=watched,
        )


def _through(model: Model, transform: Transform) -> Model:
    """Return a model whose images go through a transform; the caller's own keeps its."""
    other = copy(model)
    other.preprocess = transform
    return other


def _opened(model: Any, loading: Mapping[str, Any]) -> Models:
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
        one = _one(model, loading)
        return Models({one.name: [one]})
    models = Models({}, user_named=model.user_named if isinstance(model, Models) else True)
    for name, value in model.items():
        several = [value] if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
        models[str(name)] = [run for item in several for run in _runs(item, loading)]
        if len(several) > 1 and len({run.name for run in models[name]}) < len(models[name]):
            models[name] = [copy(run) for run in models[name]]  # the caller's own models keep their names
            for number, run in enumerate(models[name]):
                run.name = f"{name} {number}"
    return models


def _runs(item: Any, loading: Mapping[str, Any]) -> list[Model]:
    if isinstance(item, str):
        return [run for several in open_models([item], **loading).values() for run in several]
    return [_one(item, loading)]


def _one(item: Any, loading: Mapping[str, Any]) -> Model:
    if not isinstance(item, Model):
        return load_model(item, **loading)
    if loading:
        raise DataError(
            f"{', '.join(loading)}: {item.name} is loaded already",
            where="evaluate",
            hint="load_model takes them",
        )
    return item
