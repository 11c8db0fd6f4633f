"""Classifiers with published weights: ``timm:NAME`` and ``torchvision:NAME``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pickle import UnpicklingError
from typing import Any
from urllib.error import URLError

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.lazy import need
from wordnet_splits.base.untrusted import describe_error, user_errors

from ..transforms import Normalise, Transform
from ..weights import (
    RANDOM,
    build_with_weights,
    download_error,
    is_weights_file,
    read_state,
    refuse_num_classes,
    tensors_only,
)
from .registry import LoadedModel, ModelRequest, register_model_source


@register_model_source("timm")
def timm_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a timm classifier with its published weights, a file's, or ``random`` ones.

    ``NAME`` may carry timm's tag of the weights (``resnet50.a1_in1k``) or be ``hf-hub:OWNER/NAME``.
    """
    where = f"timm:{name}"
    timm = need("timm", "models", where=where)
    architecture, _, tag = name.partition(".")
    if ":" not in name and not timm.is_model(architecture):
        raise unknown("timm model", architecture, timm.list_models())
    weights = request.weights
    if weights is not None and weights != RANDOM and not is_weights_file(weights):
        name, weights = f"{architecture}.{weights}", None  # weights by their tag

    if weights is None:
        refuse_num_classes(request.options, where)
    try:
        with tensors_only():
            module = _built(
                partial(timm.create_model, name, pretrained=weights is None), weights or RANDOM, request
            )
    except SplitsError:
        raise
    except RuntimeError as error:
        raise DataError(
            describe_error(error),
            where=where,
            hint=f"tags: {', '.join(timm.list_pretrained(architecture + '.*')[:8])}" if tag else None,
        ) from None
    except (OSError, ValueError) as error:
        raise download_error("the weights", error, where) from None
    facts = {} if weights is not None and weights != RANDOM else timm_facts(module)
    if weights is not None:  # random weights have no classes
        facts.pop("classes", None)
    return LoadedModel(where, module, repr(module), **facts)


def _built(build: Callable[..., Any], weights: str, request: ModelRequest) -> Any:
    """Return a network as it is built, or with the weights of a file."""
    if weights == RANDOM:
        return build(**request.options)
    return build_with_weights(build, read_state(weights), request.options, weights)


def timm_facts(module: Any) -> dict[str, Any]:
    """Return the preprocessing, normalisation and classes of a timm network's published weights.

    The classes are in its ``pretrained_cfg``, else the wnids of ImageNet or of a subset in timm.
    """
    timm = need("timm", "models", where="timm")
    stated = module.pretrained_cfg
    subset = timm.data.infer_imagenet_subset(module)
    names = stated.get("label_names") or ()
    if len(names) != module.num_classes or not isinstance(names, list | tuple):
        names = timm.data.ImageNetInfo(subset).label_names() if subset else ()
    classes = {"classes": tuple(map(str, names)) or None}
    if stated.get("mean") is None or stated.get("std") is None:  # timm would default to ImageNet's
        return classes
    with user_errors("its preprocessing cannot be made", where="pretrained_cfg"):
        config = timm.data.resolve_model_data_config(module)
        _, height, width = config["input_size"]
        function = timm.data.create_transform(**config, is_training=False)
        std = tuple(config["std"])
    spec = {"timm": {key: value for key, value in sorted(config.items()) if key != "crop_border_pixels"}}
    return {
        "preprocess": Transform(spec, function, std=std, size=(height, width)),
        "normalise": Normalise.of_options(config["mean"], config["std"]),
        **classes,
    }


IMAGENET = "imagenet1k"
TRANSFORM_INPUT = (
    "its inputs are transformed as for the published weights, since the file does not state it; give "
    "options={'transform_input': False} for weights trained without"
)


@register_model_source("torchvision")
def torchvision_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a torchvision classifier with published weights (by default), a file's, or ``random`` ones."""
    where = f"torchvision:{name}"
    models = need("torchvision.models", "models", where=where)
    if name not in models.list_models(module=models):
        raise unknown("torchvision model", name, models.list_models(module=models))
    builder = models.get_model_builder(name)
    published = models.get_model_weights(name)
    weights = request.weights
    if weights == RANDOM or is_weights_file(weights):
        module = _built(partial(builder, weights=None), str(weights), request)
        if weights == RANDOM:
            return LoadedModel(where, module, repr(module), **_torchvision_inputs(published.DEFAULT))
        return _with_input_transform(LoadedModel(where, module, repr(module)), request)
    names = list(published.__members__)
    weights_name = (weights or "DEFAULT").rpartition(".")[2]
    if weights_name not in names:
        raise unknown("weights", weights_name, [*names, RANDOM], where=where)
    entry = published[weights_name]
    refuse_num_classes(request.options, where)
    try:
        with tensors_only():
            module = builder(weights=entry, **request.options)
    except (URLError, OSError, UnpicklingError) as error:
        raise download_error(f"the weights {weights_name}", error, where) from None
    categories = tuple(entry.meta["categories"])
    imagenet = categories == tuple(published.DEFAULT.meta["categories"]) and len(categories) == 1000
    # names of ImageNet classes are not unique (crane, maillot), their order is: sorted wnids
    return LoadedModel(
        f"{where}/{weights_name}",
        module,
        repr(module),
        **_torchvision_inputs(entry),
        classes=None if imagenet else categories,
        source_of_classes=IMAGENET if imagenet else None,
    )


def _with_input_transform(loaded: LoadedModel, request: ModelRequest) -> LoadedModel:
    """Return a network with a file's weights that transforms its inputs as with the published weights.

    Inception v3 and GoogLeNet were trained with other means than ImageNet's; their published weights set
    ``transform_input``, which a file does not record.
    """
    module: Any = loaded.module
    if not hasattr(module, "transform_input"):
        return loaded
    module.transform_input = bool(request.options.get("transform_input", True))
    if not module.transform_input:  # the module's repr omits it
        return replace(loaded, architecture=f"{loaded.architecture}\ntransform_input=False")
    return loaded if "transform_input" in request.options else replace(loaded, notes=(TRANSFORM_INPUT,))


def _torchvision_inputs(weights: Any) -> dict[str, Any]:
    """Return the weights' evaluation preset as a transform, and its normalisation."""
    preset = weights.transforms()
    spec: dict[str, Any] = {
        "torchvision": type(preset).__name__,
        "resize": list(preset.resize_size),
        "crop": list(preset.crop_size),
        "interpolation": preset.interpolation.value,
        "antialias": preset.antialias,
        "mean": list(preset.mean),
        "std": list(preset.std),
    }
    side = preset.crop_size[0]
    return {
        "preprocess": Transform(spec, preset, std=tuple(preset.std), size=(side, side)),
        "normalise": Normalise.of(preset.mean, preset.std),
    }
