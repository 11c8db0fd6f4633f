"""Classifiers of Hugging Face, ``hf:NAME``; zero-shot models, ``clip:NAME``, ``open_clip:NAME/WEIGHTS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from PIL import Image
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.lazy import need
from wordnet_splits.base.untrusted import USER_CODE_ERRORS, user_errors

from ..transforms import ONES, Normalise, Transform
from ..vision_language import EncodeText, zero_shot
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
    """Load an image classifier and its processor; no code of the repository runs, weights are safetensors."""
    where = f"hf:{name}"
    transformers = need("transformers", "models", where=where)
    classifier = transformers.AutoModelForImageClassification
    hint = "give a folder, or a repository on the Hub, with config.json and model.safetensors"
    with user_errors("no image classifier can be loaded", where=where, hint=hint):
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        if hasattr(config, "text_config") and hasattr(config, "vision_config"):
            raise DataError(
                "encodes images and text, and has no classifier", where=where, hint=f"clip:{name}"
            )
        _check_size(classifier, config, where)
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


def _check_size(network: Any, config: Any, where: str) -> None:
    """Raise DataError for a configuration whose network would take too long to build, or all memory."""
    settings = config.to_dict()
    pending: list[Any] = [settings]
    while pending:
        value = pending.pop()
        if isinstance(value, dict | list | tuple):
            pending += value.values() if isinstance(value, dict) else value
        elif isinstance(value, int) and not -1 <= value <= LARGEST_NUMBER:
            raise DataError(f"config.json holds the number {value}", where=where)
    layers = settings.get("num_hidden_layers")
    if isinstance(layers, int) and not 0 <= layers <= MOST_LAYERS:
        raise DataError(f"config.json asks for {layers:,} layers", where=where)
    with torch.device("meta"):  # shapes only
        parameters = sum(p.numel() for p in network.from_config(config).parameters())
    if parameters > MOST_PARAMETERS:
        raise DataError(f"config.json asks for {parameters:,} parameters", where=where)


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


OPTIONS = ("names", "negatives", "templates", "negative_templates", "rename", "language")
"""Options of these sources, as of `zero_shot`."""


class _Images(nn.Module):
    """The image encoder of a model that encodes images and text."""

    def __init__(self, model: nn.Module, encode: Callable[[Any, Tensor], Any]) -> None:
        super().__init__()
        self.model, self._encode = model, encode

    def forward(self, images: Tensor) -> Tensor:
        """Return embeddings (n, d)."""
        return _embeddings(self._encode(self.model, images))


@register_model_source("clip")
def clip_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a CLIP model, its tokenizer and processor; no code of the repository runs."""
    where = f"clip:{name}"
    transformers = need("transformers", "models", where=where)
    hint = (
        "give a folder, or a repository on the Hub, of a model with get_image_features and get_text_features"
    )
    with user_errors("no CLIP model can be loaded", where=where, hint=hint):
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        _check_size(transformers.AutoModel, config, where)
        model = transformers.AutoModel.from_pretrained(name, trust_remote_code=False, use_safetensors=True)
        tokenizer = transformers.AutoTokenizer.from_pretrained(name, trust_remote_code=False)
    if not hasattr(model, "get_text_features"):
        raise DataError(f"a {type(model).__name__} encodes no text", where=where, hint=hint)

    def encode_text(sentences: list[str]) -> Tensor:
        tokens = tokenizer(sentences, padding=True, truncation=True, return_tensors="pt")
        return _embeddings(model.get_text_features(**tokens))

    images = _Images(model, lambda clip, x: clip.get_image_features(pixel_values=x))
    return _loaded(where, images, encode_text, processor_facts(transformers, name), request)


@register_model_source("open_clip")
def open_clip_model(name: str, request: ModelRequest) -> LoadedModel:
    """Load a model of open_clip by architecture and weights, such as ``ViT-B-16/laion2b_s34b_b88k``."""
    where = f"open_clip:{name}"
    open_clip = need("open_clip", "open_clip", where=where)
    architecture, _, weights = name.partition("/")
    with user_errors("no open_clip model can be loaded", where=where, hint="open_clip.list_pretrained()"):
        model, _, transform = open_clip.create_model_and_transforms(architecture, pretrained=weights or None)
        tokenizer = open_clip.get_tokenizer(architecture)
    config = open_clip.get_model_preprocess_cfg(model)
    images = _Images(model, lambda clip, x: clip.encode_image(x))
    normalise = Normalise.of_options(config["mean"], config["std"])
    inputs = {
        "preprocess": Transform({"open_clip": repr(transform)}, transform, std=tuple(config["std"])),
        "normalise": normalise,
    }
    return _loaded(where, images, lambda texts: model.encode_text(tokenizer(texts)), inputs, request)


def _loaded(
    where: str,
    images: nn.Module,
    encode_text: EncodeText,
    inputs: Mapping[str, Any],
    request: ModelRequest,
) -> LoadedModel:
    """Return a zero-shot classifier with the options of a request; ``inputs`` has its preprocessing."""
    options: dict[str, Any] = dict(request.options)
    for option in options:
        if option not in OPTIONS:
            raise unknown("option", option, OPTIONS, where=where)
    if request.weights is not None:
        raise DataError("a zero-shot model has the weights of its name", where=where, hint="give no weights")
    if "names" not in options:
        raise DataError(
            "needs the names of the classes",
            where=where,
            hint="options={'names': BENCHMARK or a list} (--names BENCHMARK)",
        )
    names = options.pop("names")
    images.eval()
    module = zero_shot(images, encode_text, names, **options)
    return LoadedModel(where, module, repr(module), classes=module.classes, **inputs)


def _embeddings(output: Any) -> Tensor:
    """Return embeddings (n, d): ``output`` itself before transformers 5, its ``pooler_output`` since."""
    embeddings: Tensor = getattr(output, "pooler_output", output)
    return embeddings
