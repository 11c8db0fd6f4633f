"""Load models: by name, from Python objects, or all models of a command line."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import import_object, open_untrusted, user_errors

from ..data.parameters import file_identity
from .class_map import ClassMapping
from .head import features_and_logits
from .model import ClassChoice, Model
from .origin import origin_of_weights
from .reproducibility import get_device
from .sources.huggingface import class_facts
from .sources.published import timm_facts
from .sources.registry import (
    PREFIX,
    SOURCES,
    LoadedModel,
    ModelRequest,
    file_sources,
    trained_folders,
    training_facts,
)
from .transforms import Normalise, Transform
from .trial import DEADLINE
from .vision_language import ZeroShot
from .weights import LARGEST, archive_kind, is_weights_file, load_weights, read_state

LONGEST = 1e6
"""Largest deadline in seconds (eleven days)."""
WITHOUT_OPTIONS = ("demo", "exported", "onnx", "torchscript", "trained")
"""Model sources without options."""
ARCHIVES = (".pt", ".pth", ".bin")
"""Suffixes of files of torch that hold a program, or weights alone."""
WEIGHTS = (*ARCHIVES, ".safetensors")


def load_model(
    spec: Any,
    *,
    head: str | None = None,
    device: Any = None,
    weights: str | Path | None = None,
    trust_model: bool = False,
    restrict: str = "columns",
    background: int | str | None = None,
    mapping: ClassMapping | None = None,
    model_id: str | None = None,
    preprocess: Transform | None = None,
    mean: float | str | Sequence[float] | None = None,
    std: float | str | Sequence[float] | None = None,
    options: Mapping[str, Any] | None = None,
    deadline: float = DEADLINE,
) -> Model:
    """Load a classifier.

    Parameters
    ----------
    spec : an nn.Module; a function of images (n, 3, h, w), a tensor, that returns logits or (features,
        logits), as tensors or anything with ``__array__``; a path of a model: ``.onnx``, ``.pt2``
        (torch.export), ``.ts`` or ``.pt`` (TorchScript); ``timm:NAME``; ``torchvision:NAME``; ``hf:NAME`` (a
        Hugging Face image classifier, from the Hub or a folder); ``trained:FOLDER`` (of ``unknown-eval
        train``); ``MODULE:NAME`` (a module, or a function that makes one).
    head : name of the classifier head, by default found with a forward pass.
    device : by default the GPU where there is one.
    weights : a file of a state dict (.pt, .pth, .safetensors), read without unpickling objects, ``FILE#KEY``
        where it holds several; for torchvision and timm also the name of published weights, or ``random``. By
        default the publisher's.
    trust_model : needed for TorchScript and exported programs, which may run code when loaded, and for
        ``trained:FOLDER`` of a method or network ``MODULE:NAME``.
    restrict, background, mapping : which columns are which labels, see `class_map.class_map`.
    model_id : name of a model without one: a function (needed where its activations are kept), a module, or
        a file.
    preprocess : replaces the model's preprocessing.
    mean, std : normalisation of the inputs, (pixels in [0, 1] - mean) / std; one number, or three. By default
        the model's, else the benchmark's. If neither is stated, a model that is a file or a name needs
        them, and an object gets pixels in [0, 1], with a note.
    options : arguments of the constructor, e.g. ``{"num_classes": 40}``.
    deadline : most seconds for a batch of an ONNX, TorchScript or exported program with loops. The first
        batch is computed in a separate process, which is the only way to end an infinite loop; a later batch
        in a thread, which goes on after the refusal until the process ends.

    Raises
    ------
    UnknownNameError, DataError, UnsafeDataError : no such model or device, or it cannot be loaded.
    """
    spec = str(spec) if isinstance(spec, Path) else spec
    if options and (not isinstance(spec, str) or spec.partition(":")[0] in WITHOUT_OPTIONS):
        raise DataError(
            f"{', '.join(options)}: this model is made already",
            where=spec if isinstance(spec, str) else type(spec).__name__,
            hint="options are for models that a name makes, such as timm:resnet50",
        )
    if model_id is not None and has_name(spec):
        message = f"model_id = {model_id!r}: this model has a name"
        raise DataError(message, where=str(spec), hint="leave it out")
    if isinstance(deadline, bool) or not isinstance(deadline, int | float) or not 0 < deadline <= LONGEST:
        message = f"must be a number of seconds, at most {LONGEST:g}, got {printable(repr(deadline))}"
        raise DataError(message, where="deadline")
    torch_device = get_device(device)  # first: a missing device is reported at once
    request = ModelRequest(
        None if weights is None else str(weights),
        trust_model,
        model_id,
        dict(options or {}),
        torch_device.type,
        float(deadline),
    )
    normalise = Normalise.of_options(mean, std)
    is_file = weights is not None and is_weights_file(request.weights)
    origin = origin_of_weights(spec, request.weights, is_file=is_file, sources=SOURCES)
    loaded = _load(spec, request)
    if preprocess is not None:
        loaded.preprocess = preprocess
    choice = ClassChoice(restrict, loaded.background if background is None else background, mapping)
    model = Model(loaded, device=torch_device, head=head, choice=choice)
    model.normalise, model.in_python = normalise, not isinstance(spec, str)
    model.origin = origin
    return model


def has_name(spec: Any) -> bool:
    """Return whether a specification names a model (``timm:resnet50``); other models take ``model_id``."""
    prefix = str(spec).partition(":")[0]
    return isinstance(spec, str | Path) and prefix in SOURCES and prefix not in file_sources().values()


def names_code(spec: str) -> bool:
    """Return whether a specification is ``MODULE:NAME``, which is imported."""
    prefix, colon, name = spec.partition(":")
    return bool(colon) and prefix not in SOURCES and name.isidentifier()


def _load(spec: Any, request: ModelRequest) -> LoadedModel:
    if not isinstance(spec, str):
        return from_object(spec, request)
    prefix, colon, name = spec.partition(":")
    if colon and prefix in SOURCES:
        return SOURCES[prefix](name, request)
    suffix = Path(spec).suffix.lower()
    if suffix in file_sources() or suffix in WEIGHTS:
        return SOURCES[_source_of_file(Path(spec), suffix)](spec, request)
    if names_code(spec):
        try:
            return from_import(spec, request)
        except DataError as error:
            cause = error.__cause__
            if not isinstance(cause, ModuleNotFoundError) or cause.name != prefix:
                raise
            unknown_source = unknown("source of models", prefix, SOURCES, where=spec)
            raise (unknown_source if unknown_source.near else error) from None
    if not colon and Path(spec).is_file():
        known = ", ".join(sorted({*file_sources(), ".pt"}))
        raise DataError("is a file of an unknown kind", where=spec, hint=f"known: {known}")
    raise unknown("source of models", prefix, [*SOURCES, "MODULE"], where=spec)


def _source_of_file(path: Path, suffix: str) -> str:
    """Return the prefix of the source that loads a file; DataError for no file, or one of weights alone."""
    if source := file_sources().get(suffix):
        return source
    with open_untrusted(path, largest=LARGEST) as file:
        kind = archive_kind(file) if suffix in ARCHIVES else ""
    if not kind:
        raise DataError(
            "holds weights, and not the network that they belong to",
            where=str(path),
            hint="name the network: --model timm:resnet18 --weights FILE (evaluate(module, weights=FILE))",
        )
    return kind


class Models(dict[str, list[Model]]):
    """Model name -> its runs, which differ in seed or optimizer; most models have one."""

    def __init__(self, runs: Mapping[str, list[Model]], *, user_named: bool = False) -> None:
        super().__init__(runs)
        self.user_named = user_named


def open_models(
    specs: Sequence[str | Path],
    weights: Sequence[str | Path] | str | Path | None = None,
    *,
    runs: bool = False,
    **options: Any,
) -> Models:
    """Load models in order.

    Parameters
    ----------
    specs : as in `load_model`; ``trained:PATH`` may be a folder of runs or a pattern: runs that differ only
        in the seed belong to one model.
    weights : one or several files: for a single specification, one model per file; otherwise one file per
        specification.
    runs : whether all specifications are runs of the same model.
    options : other parameters of `load_model`.

    Raises
    ------
    DataError : no model, one twice, or not as many weights files as models. Errors of `load_model`.
    """
    models = Models({})
    model_id = options.pop("model_id", None)
    if model_id is not None and all(map(has_name, specs)):
        raise DataError(f"model_id = {model_id!r}: every model here has a name", hint="leave it out")
    files = [weights] if isinstance(weights, str | Path) else list(weights or ())
    expanded = [path for spec in specs for path in _expanded(str(spec))]
    pairs = _pairs(expanded, list(map(str, files)))
    for spec, file in pairs:
        name = model_id if model_id is None or len(pairs) == 1 else f"{model_id} {spec}"
        model = load_model(spec, weights=file, model_id=None if has_name(spec) else name, **options)
        if file is not None:
            model.name = f"{model.name} {file}"
        for earlier in [run for model_runs in models.values() for run in model_runs]:
            if model.name == earlier.name and model.key != earlier.key:
                model.name = spec  # two folders hold files of the same name
            if model.name == earlier.name:
                raise DataError(f"the model {model.name} is given twice", where="--model")
        models.setdefault(model.series or model.name, []).append(model)
    if not runs:
        return models
    every = [run for model_runs in models.values() for run in model_runs]
    return Models({"+".join(map(str, specs)): every}, user_named=True)


def _expanded(spec: str) -> list[str]:
    if not spec.startswith(PREFIX):
        return [spec]
    return [f"{PREFIX}{folder}" for folder in trained_folders(spec.removeprefix(PREFIX))]


def _pairs(specs: list[str], weights: list[str]) -> list[tuple[str, str | None]]:
    if not specs:
        raise DataError("no model is given", where="--model", hint="as in --model timm:resnet50")
    if not weights:
        return [(spec, None) for spec in specs]
    if len(specs) == 1:
        return [(specs[0], file) for file in weights]
    if len(specs) != len(weights):
        raise DataError(
            f"{len(weights)} weights files for {len(specs)} models",
            where="--weights",
            hint="give one file for each model, or one model for all files",
        )
    return list(zip(specs, weights, strict=True))


def open_runs(model: Any, loading: Mapping[str, Any]) -> Models:
    """Return the runs of each model, opened."""
    if not isinstance(model, Mapping):
        if isinstance(model, Sequence) and not isinstance(model, str):
            raise DataError(
                "a list could mean several models, or runs of one",
                where="model",
                hint="give {name: model, ...}, or {name: [run, ...]} for seeds or optimizers of one model",
            )
        if isinstance(model, str | Path):
            return open_models([model], **loading)
        loaded = _loaded(model, loading)
        return Models({loaded.name: [loaded]})
    models = Models({}, user_named=model.user_named if isinstance(model, Models) else True)
    items_by_name = {
        str(name): [value] if isinstance(value, str) or not isinstance(value, Sequence) else list(value)
        for name, value in model.items()
    }
    several = sum(map(len, items_by_name.values())) > 1
    for name, items in items_by_name.items():
        runs = []
        for number, item in enumerate(items):
            named = f"{name} {number}" if len(items) > 1 else name
            options = dict(loading)
            if several and loading.get("model_id") is not None:  # each model needs its own id
                options["model_id"] = None if has_name(item) else f"{loading['model_id']} {named}"
            if isinstance(item, str | Path):
                runs += [run for opened in open_models([item], **options).values() for run in opened]
            else:
                runs.append(_loaded(item, options))
        if len(items) > 1 and len({run.name for run in runs}) < len(runs):
            runs = [copy(run) for run in runs]  # the caller's own models keep their names
            for number, run in enumerate(runs):
                run.name = f"{name} {number}"
        models[name] = runs
    return models


def _loaded(item: Any, loading: Mapping[str, Any]) -> Model:
    if not isinstance(item, Model):
        return load_model(item, **loading)
    if loading:
        message = f"{', '.join(loading)}: {item.name} is loaded already"
        raise DataError(message, where="evaluate", hint="load_model takes them")
    return item


def from_object(model: Any, request: ModelRequest, name: str | None = None) -> LoadedModel:
    """Return the model of an nn.Module, or of a function x -> logits or (features, logits)."""
    name = name or str(getattr(model, "__name__", type(model).__name__))
    if isinstance(model, nn.Module):
        if request.weights is not None:
            model = load_weights(model, read_state(request.weights), request.weights)
        if isinstance(model, torch.jit.ScriptModule):  # its parts cannot be hooked: used as a function
            code = "\n".join(str(part.code) for part in model.modules() if hasattr(part, "code"))
            network = _FunctionNetwork(model, request.model_id or name)
            return LoadedModel(request.model_id or name, model, f"{model!r}\n{code}", network)
        facts = {"classes": model.classes} if isinstance(model, ZeroShot) else _stated_facts(model, request)
        return LoadedModel(request.model_id or name, model, repr(model), **facts)
    if isinstance(model, type) and issubclass(model, nn.Module):
        raise DataError("is a class, not a network", where=name, hint=f"give an instance, as in {name}()")
    if not callable(model):
        raise DataError(f"{type(model).__name__} is not a model", where=name, hint="give a module, or a name")
    if request.weights is not None:
        raise DataError("weights cannot be loaded into a function", where=name)
    network = _FunctionNetwork(model, request.model_id or name)
    if request.model_id is not None:
        return LoadedModel(request.model_id, None, f"function {request.model_id}", network)
    # weights and code of a function are unknown: only its module's file identifies one named MODULE:NAME
    identity = file_identity(name) if ":" in name else f"{name} {uuid4().hex}"
    return LoadedModel(name, None, f"function {identity}", network, identified=":" in name)


def _stated_facts(model: Any, request: ModelRequest) -> dict[str, Any]:
    """Return the classes and the preprocessing that a network states.

    Networks of `load_checkpoint` state both, and so do timm's if the head is as wide as in the published
    weights and no file of weights is loaded. Networks of Hugging Face state their classes.
    """
    if hasattr(model, "trained_by"):
        return training_facts(model)
    model = getattr(model, "_orig_mod", model)
    model = model.module if isinstance(model, nn.DataParallel) else model
    published, config = getattr(model, "pretrained_cfg", None), getattr(model, "config", None)
    if isinstance(published, Mapping) and request.weights is None:
        outputs = getattr(model, "num_classes", None)
        return timm_facts(model) if outputs and outputs == published.get("num_classes") else {}
    if isinstance(getattr(config, "id2label", None), Mapping):
        return class_facts(config)
    return {}


def from_import(path: str, request: ModelRequest) -> LoadedModel:
    """Import ``MODULE:NAME``.

    An nn.Module is used as it is; a class, or a function without required arguments, is called with the
    options to make one; any other function returns (features, logits).
    """
    imported = import_object(path, where="--model")
    if not isinstance(imported, nn.Module) and callable(imported) and _makes_a_module(imported):
        with user_errors("the model cannot be made", where=path):
            imported = imported(**request.options)
    elif request.options:
        hint = "options are for a class, or a function that makes a model"
        raise DataError(f"{', '.join(request.options)}: this model is made already", where=path, hint=hint)
    return from_object(imported, request, path)


def _makes_a_module(function: Callable[..., Any]) -> bool:
    if inspect.isclass(function):
        return True
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a builtin without a signature
        return False
    return not any(p.kind in kinds and p.default is p.empty for p in parameters)


class _FunctionNetwork:
    """A user's function or TorchScript module: its features (n, D), if any, and logits (n, K).

    Outputs may be tensors on any device, or arrays of NumPy or another library.
    """

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self.function, self.name = function, name

    def __call__(self, x: Tensor) -> tuple[Tensor | None, Tensor]:
        try:
            output = self.function(x)
        except TypeError as error:
            if x.device.type == "cpu" or "numpy" not in str(error):
                raise
            raise DataError(
                f"reads its images with NumPy, and they are on {x.device}",
                where=self.name,
                hint="--device cpu (device='cpu'), or images.cpu() inside it",
            ) from error
        return features_and_logits(output, self.name)
