"""timm's classifiers: ``timm:NAME``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wordnet_splits.base.errors import DataError, SplitsError, unknown
from wordnet_splits.base.lazy import need

from ...backend.transforms import Transform
from ...backend.weights import (
    RANDOM,
    build_to_fit,
    is_file,
    keep_published_head,
    not_fetched,
    read_state,
    tensors_only,
)
from ...plugins import describe_error
from .registry import Loaded, Request, model_source


@model_source("timm")
def timm_model(name: str, request: Request) -> Loaded:
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
    given = request.weights
    if given is not None and given != RANDOM and not is_file(given):
        name, given = f"{architecture}.{given}", None  # weights by their tag

    def build(**options: Any) -> Any:
        return timm.create_model(name, pretrained=given is None, **options)

    if given is None:
        keep_published_head(request.options, where)
    try:
        with tensors_only():
            if given is None or given == RANDOM:
                module = build(**request.options)
            else:
                module = build_to_fit(build, read_state(Path(given)), request.options, given)
    except SplitsError:
        raise
    except RuntimeError as error:
        raise DataError(
            describe_error(error),
            where=where,
            hint=f"tags: {', '.join(timm.list_pretrained(architecture + '.*')[:8])}" if tag else None,
        ) from None
    except (OSError, ValueError) as error:
        raise not_fetched("the weights", error, where) from None
    return Loaded(
        where,
        module,
        repr(module),
        preprocess=_preprocess(timm, module),
        classes=_wnids(timm, module) if given is None else None,
    )


def _preprocess(timm: Any, module: Any) -> Transform:
    """Return the model's own evaluation transform."""
    config = timm.data.resolve_model_data_config(module)
    spec = {"timm": {key: value for key, value in sorted(config.items()) if key != "crop_border_pixels"}}
    _, height, width = config["input_size"]
    function = timm.data.create_transform(**config, is_training=False)
    return Transform(spec, function, std=tuple(config["std"]), size=(height, width))


def _wnids(timm: Any, module: Any) -> tuple[str, ...] | None:
    """Return the wnid of each column where the weights are of ImageNet or a named part of it."""
    subset = timm.data.infer_imagenet_subset(module)
    return tuple(timm.data.ImageNetInfo(subset).label_names()) if subset else None
