"""`evaluate`: models on a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from copy import copy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wordnet_splits.errors import DataError, SourceError
from wordnet_splits.manifest import Manifest, load_manifest
from wordnet_splits.progress import Progress, Silent
from wordnet_splits.sources.roots import Roots
from wordnet_splits.untrusted import validated

from ...opening import PackedFolders
from ..activations.on_benchmark import BenchmarkImages, model_run
from ..activations.store import Store
from ..model import Model, load_model, open_models
from ..model.loading import Models
from .about import EvaluationOptions
from .of_runs import evaluate_runs
from .results import Results
from .sets import EvaluatedSets


def evaluate(
    model: Any,
    benchmark: Manifest | str | Path,
    detectors: str | Sequence[Any] = "preset:simple",
    *,
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
    """Evaluate models on a benchmark's test images, with every detector.

    Parameters
    ----------
    model : an nn.Module; a function x -> (features, logits); a specification such as ``timm:resnet50`` or
        ``trained:FOLDER``; what `load_model` gave; or ``{name: one of these}`` for several models, with a
        list of them for the runs (seeds, optimizers) of one, which tables average over.
    benchmark : a manifest, its name, or its folder.
    detectors : names as on the command line (``"msp,knn[k=50]"``, ``"preset:openood"``), or a sequence of
        names, detector classes, functions and instances.
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
    manifest = load_manifest(benchmark)
    given = {"replicates": bootstrap, "seed": seed_boot, "prevalences": tuple(prevalences)}
    options = validated(EvaluationOptions, given, where="options of the evaluation")
    sets = EvaluatedSets.of(manifest, groups)
    models = _opened(model, loading)
    images = BenchmarkImages(manifest, roots, packed, allow_missing)
    held = {name: len(opened) for name, opened in images.test(list(sets.test)).items()}
    unread = [name for name, role in sets.test.items() if role == "id" and not held[name]]
    if unread:
        raise SourceError("there are no ID images", where=unread[0], hint="; ".join(images.left_out) or None)
    watched = progress or Silent()
    with TemporaryDirectory() if store is None else nullcontext(str(store)) as folder:
        runs = [
            model_run(
                one,
                images,
                Store(Path(folder)),
                of=name,
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
            groups=[name for name in sets.test if held[name]],
            left_out=images.left_out,
            progress=watched,
        )


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
        return {one.name: [one]}
    models: Models = {}
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
    return item if isinstance(item, Model) else load_model(item, **loading)
