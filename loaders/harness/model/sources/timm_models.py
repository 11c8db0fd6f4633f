"""timm's classifiers: ``timm:NAME``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.lazy import need

from ...backend.transforms import Transform
from ...backend.weights import (
    RANDOM,
    build_with_weights,
    download_error,
    is_weights_file,
    read_state,
    refuse_num_classes,
    tensors_only,
)
from ...plugins import describe_error
from .registry import LoadedModel, ModelRequest, register_model_source


@register_model_source("timm")
def timm_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a timm classifier with its published weights, a file's, or ``random`` ones.

    ``NAME`` may carry timm's tag of the weights (``resnet50.a1_in1k``) or be ``hf-hub:OWNER/NAME``.

    Raises
    ------
    UnknownNameError : no such model. DataError : the weights cannot be fetched or do not fit.
    """
    where = f"timm:{name}"
    timm = need("timm", "models", where=where)
    architecture, _, tag = name.partition(".")
    if ":" not in name and not timm.is_model(architecture):
        raise unknown("timm model", architecture, timm.list_models())
    weights = request.weights
    if weights is not None and weights != RANDOM and not is_weights_file(weights):
        name, weights = f"{architecture}.{weights}", None  # weights by their tag

    def build(**options: Any) -> Any:
        return timm.create_model(name, pretrained=weights is None, **options)

    if weights is None:
        refuse_num_classes(request.options, where)
    try:
        with tensors_only():
            if weights is None or weights == RANDOM:
                module = build(**request.options)
            else:
                module = build_with_weights(build, read_state(Path(weights)), request.options, weights)
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
    return LoadedModel(
        where,
        module,
        repr(module),
        preprocess=_preprocess(timm, module),
        classes=_wnids(timm, module) if weights is None else None,
    )


def _preprocess(timm: Any, module: Any) -> Transform:
    """Return the model's evaluation transform."""
    config = timm.data.resolve_model_data_config(module)
    spec = {"timm": {key: value for key, value in sorted(config.items()) if key != "crop_border_pixels"}}
    _, height, width = config["input_size"]
    function = timm.data.create_transform(**config, is_training=False)
    return Transform(spec, function, std=tuple(config["std"]), size=(height, width))


def _wnids(timm: Any, module: Any) -> tuple[str, ...] | None:
    """Return the wnid of each column where the weights are of ImageNet or a subset known to timm."""
    subset = timm.data.infer_imagenet_subset(module)
    return tuple(timm.data.ImageNetInfo(subset).label_names()) if subset else None
