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
    build_to_fit,
    is_file,
    keep_published_head,
    not_fetched,
    read_state,
    tensors_only,
)
from .registry import Loaded, Request, model_source

IMAGENET = "imagenet1k"


@model_source("torchvision")
def torchvision_model(name: str, request: Request) -> Loaded:
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
    given = request.weights
    if given == RANDOM or is_file(given):
        if given == RANDOM:
            module = builder(weights=None, **request.options)
        else:
            module = build_to_fit(builder, read_state(Path(str(given))), request.options, str(given))
        return Loaded(where, module, repr(module), preprocess=_preprocess(published.DEFAULT))
    names = list(published.__members__)
    chosen = (given or "DEFAULT").rpartition(".")[2]
    if chosen not in names:
        raise unknown("weights", chosen, [*names, RANDOM], where=where)
    entry = published[chosen]
    keep_published_head(request.options, where)
    try:
        with tensors_only():
            module = builder(weights=entry, **request.options)
    except (URLError, OSError, UnpicklingError) as error:
        raise not_fetched(f"the weights {chosen}", error, where) from None
    categories = tuple(entry.meta["categories"])
    imagenet = categories == tuple(published.DEFAULT.meta["categories"]) and len(categories) == 1000
    # names of ImageNet classes are not unique (crane, maillot), their order is: sorted wnids
    return Loaded(
        f"{where}/{chosen}",
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
