"""Which models a command line names: several specifications, weights files, folders of trained runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from wordnet_splits.errors import SplitsError

from .model import Model, load_model
from .sources.trained import PREFIX, trained_background, trained_folders


def open_models(specs: Sequence[str], weights: Sequence[str] = (), **options: Any) -> list[Model]:
    """Load every model that is named, in order.

    Parameters
    ----------
    specs : as of `model.load_model`; ``trained:PLACE`` stands for every run at a place, a folder of runs or
        a pattern.
    weights : files; with one specification each makes one model of it, else one for each specification.
    options : of `model.load_model`, for all of them.

    Raises
    ------
    SplitsError : weights that cannot be told to models, or a model that cannot be loaded.
    """
    models = []
    for spec, file in _pairs(list(_expanded(specs)), list(weights)):
        chosen = dict(options)
        if spec.startswith(PREFIX) and chosen.get("background") is None:
            chosen["background"] = trained_background(spec.removeprefix(PREFIX))
        model = load_model(spec, weights=file, **chosen)
        if file is not None:
            model.name = f"{model.name} {Path(file).name}"
        models.append(model)
    return models


def _expanded(specs: Sequence[str]) -> Iterator[str]:
    for spec in specs:
        if spec.startswith(PREFIX):
            yield from (f"{PREFIX}{folder}" for folder in trained_folders(spec.removeprefix(PREFIX)))
        else:
            yield spec


def _pairs(specs: list[str], weights: list[str]) -> list[tuple[str, str | None]]:
    if not specs:
        raise SplitsError("no model is given", where="--model", hint="as in --model timm:resnet50")
    if not weights:
        return [(spec, None) for spec in specs]
    if len(specs) == 1:
        return [(specs[0], file) for file in weights]
    if len(specs) != len(weights):
        raise SplitsError(
            f"{len(weights)} weights files for {len(specs)} models",
            where="--weights",
            hint="give one file for each model, or one model for all files",
        )
    return list(zip(specs, weights, strict=True))
