"""The registry of model sources: ``PREFIX:NAME`` -> a loaded network."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from torch import nn

from wordnet_splits.errors import DataError, unknown

from ...transforms import Transform


@dataclass
class Loaded:
    """What a source gives of a model.

    Attributes
    ----------
    name : for messages and results.
    module : the nn.Module, None for a function.
    architecture : how its tensors are put together; part of the model's key.
    network : x -> (features, logits), where that is not the module with a hook at its head.
    preprocess : its own preprocessing.
    classes : class names or wnids, one per column.
    source_of_classes : the source whose classes, in label order, the columns are.
    """

    name: str
    module: Any = None
    architecture: str = ""
    network: Callable[[Any], tuple[Any, Any]] | None = None
    preprocess: Transform | None = None
    classes: tuple[str, ...] | None = None
    source_of_classes: str | None = None


@dataclass(frozen=True)
class Request:
    """What the user asked for besides the name: see `load_model`."""

    weights: str | None = None
    trust: bool = False
    model_id: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class ModelSource(Protocol):
    """Loads a model by the name after the prefix."""

    def __call__(self, name: str, request: Request) -> Loaded:
        """Load it, or raise a SplitsError."""


SOURCES: dict[str, ModelSource] = {}


def model_source(prefix: str) -> Callable[[ModelSource], ModelSource]:
    """Register the decorated function as the source of ``prefix:NAME``."""

    def add(function: ModelSource) -> ModelSource:
        if prefix in SOURCES:
            raise ValueError(f"two sources of models are called {prefix!r}")
        SOURCES[prefix] = function
        return function

    return add


def model_sources() -> tuple[str, ...]:
    """Return the prefixes, sorted."""
    return tuple(sorted(SOURCES))


def open_model(spec: Any, **asked: Any) -> Loaded:
    """Load a model from a specification or from an object: see `load_model`."""
    from . import python

    request = Request(**asked)
    if isinstance(spec, nn.Module):
        return python.from_module(spec, request, type(spec).__name__)
    if not isinstance(spec, str):
        if callable(spec):
            return python.from_function(spec, request, getattr(spec, "__name__", type(spec).__name__))
        raise DataError(f"{type(spec).__name__} is no model", hint="give an nn.Module, a function or a name")
    prefix, colon, name = spec.partition(":")
    if colon and prefix in SOURCES:
        return SOURCES[prefix](name, request)
    if colon and name.isidentifier():
        return python.from_import(prefix, name, request)
    raise unknown("source of models", prefix, [*SOURCES, "MODULE"], where=spec)
