"""CLIP and its kin as zero-shot classifiers: ``clip:NAME`` of Hugging Face, ``open_clip:NAME/WEIGHTS``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError, unknown
from wordnet_splits.base.lazy import need
from wordnet_splits.base.user_code import user_errors

from ..transforms import Normalise, Transform
from ..vision_language import EncodeText, zero_shot
from .huggingface import MOST_PARAMETERS, processor_facts, refuse_absurd
from .registry import LoadedModel, ModelRequest, register_model_source

OPTIONS = ("names", "negatives", "templates", "negative_templates")
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
    """Load a CLIP model, its tokenizer and processor; no code of the repository runs.

    Raises
    ------
    DataError : it cannot be fetched, or encodes no text.
    """
    where = f"clip:{name}"
    transformers = need("transformers", "models", where=where)
    hint = (
        "give a folder, or a repository on the Hub, of a model with get_image_features and get_text_features"
    )
    with user_errors("no CLIP model can be loaded", where=where, hint=hint):
        config = transformers.AutoConfig.from_pretrained(name, trust_remote_code=False)
        refuse_absurd(config.to_dict(), where)
        with torch.device("meta"):
            parameters = sum(p.numel() for p in transformers.AutoModel.from_config(config).parameters())
        if parameters > MOST_PARAMETERS:
            raise DataError(f"config.json asks for {parameters:,} parameters", where=where)
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
    """Load a model of open_clip by architecture and weights, such as ``ViT-B-16/laion2b_s34b_b88k``.

    Raises
    ------
    DataError : no such model, or it cannot be fetched.
    """
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
