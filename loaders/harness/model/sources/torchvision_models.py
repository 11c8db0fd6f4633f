"""torchvision's classifiers: ``torchvision:NAME``."""

from __future__ import annotations

from pathlib import Path
from pickle import UnpicklingError
from typing import Any
from urllib.error import URLError

from wordnet_splits.base.errors import unknown
from wordnet_splits.base.lazy import need

from ...backend.transforms import Transform, Triple
from ...backend.weights import (
    RANDOM,
    build_with_weights,
    download_error,
    is_weights_file,
    read_state,
    refuse_num_classes,
    tensors_only,
)
from .registry import LoadedModel, ModelRequest, register_model_source

IMAGENET = "imagenet1k"


@register_model_source("torchvision")
def torchvision_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a torchvision classifier with published weights (the default ones), a file's, or ``random`` ones.

    Raises
    ------
    UnknownNameError : no such model or weights. DataError : the weights cannot be fetched or do not fit.
    """
    where = f"torchvision:{name}"
    models = need("torchvision.models", "models", where=where)
    if name not in models.list_models(module=models):
        raise unknown("torchvision model", name, models.list_models(module=models))
    builder = models.get_model_builder(name)
    published = models.get_model_weights(name)
    weights = request.weights
    if weights == RANDOM or is_weights_file(weights):
        if weights == RANDOM:
            module = builder(weights=None, **request.options)
        else:
            module = build_with_weights(
                builder, read_state(Path(str(weights))), request.options, str(weights)
            )
        return LoadedModel(where, module, repr(module), preprocess=_preprocess(published.DEFAULT))
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
        preprocess=_preprocess(entry),
        classes=None if imagenet else categories,
        source_of_classes=IMAGENET if imagenet else None,
    )


def _preprocess(weights: Any) -> Transform:
    """Return the weights' evaluation preset as a transform."""
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
    std: Triple = tuple(preset.std)
    side = preset.crop_size[0]
    return Transform(spec, preset, std=std, size=(side, side))
