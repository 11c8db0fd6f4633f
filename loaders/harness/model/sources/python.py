"""Models that are Python objects: modules, functions, and what ``MODULE:NAME`` names."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import nn

from wordnet_splits.errors import DataError, unknown

from .registry import Loaded, Request
from .weights import fill, read_state


def from_module(module: Any, request: Request, name: str) -> Loaded:
    """Take an nn.Module, with weights from a file where one is given."""
    if request.weights is not None:
        module = fill(module, read_state(Path(request.weights)), request.weights)
    return Loaded(request.model_id or name, module, repr(module))


def from_function(function: Callable[[Any], Any], request: Request, name: str) -> Loaded:
    """Take a function x -> (features, logits), which needs a name that its activations are found by."""
    if request.model_id is None:
        raise DataError(
            "a function has no weights that its activations could be found by",
            where=name,
            hint="add model_id='NAME' and change it whenever the function changes",
        )
    if request.weights is not None:
        raise DataError("weights cannot be loaded into a function", where=name)
    return Loaded(request.model_id, None, f"function {request.model_id}", _Pair(function, name))


def from_import(module: str, name: str, request: Request) -> Loaded:
    """Import ``module`` (the working folder included) and take its ``name``.

    An nn.Module is taken as it is; a class, or a function without required arguments, is called to make one
    (with the options); any other function gives (features, logits).
    """
    where = f"{module}:{name}"
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        raise DataError(f"cannot be imported: {error}", where=where) from None
    except AttributeError:
        raise unknown("name", name, dir(sys.modules[module]), where=module) from None
    if not isinstance(found, nn.Module) and (inspect.isclass(found) or _needs_nothing(found)):
        found = found(**request.options)
    if isinstance(found, nn.Module):
        return from_module(found, request, where)
    return from_function(found, request, where)


def _needs_nothing(function: Any) -> bool:
    if not callable(function):
        raise DataError(f"{type(function).__name__} is no model", hint="name an nn.Module or a function")
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return not any(p.kind in kinds and p.default is p.empty for p in parameters)


class _Pair:
    """A function's answer, checked to be features (n, D) and logits (n, K)."""

    def __init__(self, function: Callable[[Any], Any], name: str) -> None:
        self.function, self.name = function, name

    def __call__(self, x: Any) -> tuple[Any, Any]:
        answer = self.function(x)
        good = isinstance(answer, tuple | list) and len(answer) == 2
        if not good or not all(isinstance(a, torch.Tensor) and a.ndim == 2 for a in answer):
            raise DataError(
                "the function does not return two tensors, features (n, D) and logits (n, K)", where=self.name
            )
        return answer[0], answer[1]
