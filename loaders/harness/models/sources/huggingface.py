"""Hugging Face image classifiers: ``hf:NAME`` on the Hub, or ``hf:FOLDER``."""

from __future__ import annotations

from typing import Any

import torch
from PIL import Image

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.lazy import need
from wordnet_splits.base.user_code import USER_CODE_ERRORS, user_errors

from ..transforms import ONES, Normalise, Transform
from ..weights import load_weights, read_state
from .registry import LoadedModel, ModelRequest, register_model_source

PLACEHOLDERS = (("LABEL_", 0), ("", 0), ("", 1))
"""Prefix and first number of placeholder names; only the first kind is certainly a placeholder."""
PLAIN = {
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "rescale_offset": False,
    "do_flip_channel_order": False,
    "include_top": False,
}
"""Settings of a processor that gives (pixels in [0, 1] - mean) / std."""
LARGEST_NUMBER, MOST_LAYERS, MOST_PARAMETERS = 10_000_000, 1_000, 20_000_000_000


@register_model_source("hf")
def huggingface_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load an image classifier and its processor; no code of the repository runs, weights are safetensors.

    Raises
    ------
    DataError : it cannot be fetched, is not an image classifier, or has no .safetensors weights.
    """
    where = f"hf:{name}"
    transformers = need("transformers", "models", where=where)
    classifier = transformers.AutoModelForImageClassification
    hint = "give a folder, or a repository on the Hub, with config.json and model.safetensors"
    with user_errors("no image classifier can be loaded", where=where, hint=hint):
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        refuse_absurd(config.to_dict(), where)
        if hasattr(config, "text_config") and hasattr(config, "vision_config"):
            raise DataError(
                "encodes images and text, and has no classifier", where=where, hint=f"clip:{name}"
            )
        with torch.device("meta"):  # shapes only: a config may have any size
            parameters = sum(p.numel() for p in classifier.from_config(config).parameters())
        if parameters > MOST_PARAMETERS:
            raise DataError(f"config.json asks for {parameters:,} parameters", where=where)
        module, report = classifier.from_pretrained(
            name, trust_remote_code=False, use_safetensors=True, output_loading_info=True, **request.options
        )
    random_tensors = sorted(map(str, [*report["missing_keys"], *report["mismatched_keys"]]))
    if random_tensors:
        raise DataError(
            f"{len(random_tensors)} tensors of the model are not in its weights "
            f"({', '.join(random_tensors[:3])}) and would be random",
            where=where,
        )
    if request.weights is not None:
        module = load_weights(module, read_state(request.weights), request.weights)
    facts = class_facts(module.config) | processor_facts(transformers, name)
    return LoadedModel(where, module, repr(module), **facts)


def class_facts(config: Any) -> dict[str, Any]:
    """Return the class names of a configuration; empty for Hugging Face's placeholders."""
    count = len(config.id2label)
    if missing := [i for i in range(count) if i not in config.id2label]:
        raise DataError(
            f"id2label has no class for column {missing[0]} of {count}",
            where="config.json",
            hint="number its classes 0 to K - 1, as the columns",
        )
    names = tuple(str(config.id2label[i]) for i in range(count))
    positions = [tuple(f"{prefix}{i + start}" for i in range(len(names))) for prefix, start in PLACEHOLDERS]
    if names in positions[:1]:
        return {}
    return {"classes": names, "numbered": names in positions}


def refuse_absurd(config: Any, where: str) -> None:
    """Raise for numbers that no classifier has: building the network would take too long or all memory."""
    pending = [config]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list | tuple):
            pending += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and not -1 <= value <= LARGEST_NUMBER:
            raise DataError(f"config.json holds the number {value}", where=where)
    layers = config.get("num_hidden_layers")
    if isinstance(layers, int) and not 0 <= layers <= MOST_LAYERS:
        raise DataError(f"config.json asks for {layers:,} layers", where=where)


class _Processor:
    """A processor on one image."""

    def __init__(self, processor: Any) -> None:
        self.processor = processor

    def __call__(self, image: Image.Image) -> Any:
        return self.processor(images=image.convert("RGB"), return_tensors="pt")["pixel_values"][0]


def processor_facts(transformers: Any, name: str) -> dict[str, Any]:
    """Return a model's processor as a transform, and its normalisation; empty without a processor."""
    try:
        processor = transformers.AutoImageProcessor.from_pretrained(name, trust_remote_code=False)
    except USER_CODE_ERRORS:  # no processor, or a malformed one, or one that this version does not support
        return {}
    config = {k: v for k, v in processor.to_dict().items() if _plain(v)}
    normalise: Normalise | None = Normalise()
    if config.get("do_normalize"):
        normalise = Normalise.of_options(config.get("image_mean"), config.get("image_std"))
    spec = {"huggingface": config, "processor": type(processor).__name__}
    std = ONES if normalise is None else normalise.std
    if any(config.get(key, plain) != plain for key, plain in PLAIN.items()):
        normalise = None
    return {"preprocess": Transform(spec, _Processor(processor), std=std), "normalise": normalise}


def _plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(_plain(v) for v in value.values())
    if isinstance(value, list | tuple):
        return all(_plain(v) for v in value)
    return value is None or isinstance(value, str | int | float | bool)
