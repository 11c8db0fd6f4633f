"""Models from Python objects: modules, functions, and ``MODULE:NAME``."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

import torch
from torch import Tensor, nn

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.user_code import import_object, user_errors

from ...data.parameters import file_identity
from ..head import features_and_logits
from ..vision_language import ZeroShot
from ..weights import load_weights, read_state
from .huggingface import class_facts
from .published import timm_facts
from .registry import LoadedModel, ModelRequest, training_facts


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
        if isinstance(model, ZeroShot):
            return LoadedModel(request.model_id or name, model, repr(model), classes=model.classes)
        return LoadedModel(request.model_id or name, model, repr(model), **_stated_facts(model, request))
    if not callable(model):
        hint = "give a module, a function or a name"
        raise DataError(f"{type(model).__name__} is not a model", where=name, hint=hint)
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
