"""Detectors of pytorch-ood by name, where that package is installed: ``pytorch_ood.detector:ViM[d=64]``.

What they are given is stored already: logits, features, or features as maps of 1 x 1 with the head behind
them. Those that need the network itself (gradients, several layers, dropout) say so.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError

from ..arrays import Array, Arrays, Head
from ..plugins import Value
from .paper import Paper
from .registry import Detector, Method

PACKAGE = "pytorch_ood"
NEEDS = {
    "LogitsDetector": ("logits",),
    "FeaturesDetector": ("features", "logits"),
    "FeatureMapsDetector": ("features", "logits"),
}
"""Kind of a pytorch-ood detector -> the arrays it gets. ``logits`` beside features, for predictions alone."""
OF_NETWORK = frozenset({"encoder", "backbone", "model"})
OF_HEAD = frozenset({"w", "b", "head"})
ON_VAL = frozenset({"KLMatching", "TemperatureScaling", "ReAct", "VRA"})
"""Those that fit on ID validation images, as ours of these names do; the others fit on training images."""
OF_POSITIONS = frozenset({"RankFeat"})
"""Those that work on the positions of feature maps, of which only the mean is stored."""
UNSAID: Mapping[str, Value] = {"float": 0.0, "int": 0, "str": "", "bool": False}
"""Type in an annotation -> the value that stands for none given."""


def pytorch_ood_method(thing: Any) -> Method | None:
    """Return the method of a detector class of pytorch-ood, None for anything else.

    Raises
    ------
    DataError : one that needs the network itself.
    """
    if not inspect.isclass(thing) or not thing.__module__.startswith(f"{PACKAGE}."):
        return None
    kinds = [parent.__name__ for parent in thing.__mro__]
    if "Detector" not in kinds:
        return None
    kind = next((kind for kind in kinds if kind in NEEDS), None)
    if kind is None:
        raise DataError(
            f"{thing.__name__} needs the network itself, and gets what is stored of it",
            where=f"{PACKAGE}.detector",
            hint="it can be a probe of yours: see register_probe",
        )
    if thing.__name__ in OF_POSITIONS:
        raise DataError(
            f"{thing.__name__} needs whole feature maps, and gets what is stored, their means",
            where=f"{PACKAGE}.detector",
            hint="take ours of that name, if there is one (unknown-eval detectors)",
        )
    taken = inspect.signature(thing).parameters
    more = [name for name, item in taken.items() if _is_required(item) and not _is_value(item)]
    lacking = [name for name in more if name not in OF_NETWORK | OF_HEAD]
    if lacking:
        raise DataError(
            f"{thing.__name__} needs {', '.join(lacking)}, which are neither logits nor features nor a value",
            where=f"{PACKAGE}.detector",
            hint="give a function of your own that calls it",
        )
    parameters = {
        name: _default(item) for name, item in taken.items() if _is_value(item) and name not in OF_HEAD
    }
    fits = bool(getattr(thing, "requires_fit", False))
    head = bool(OF_HEAD & set(taken))
    needs = (*NEEDS[kind], *(("labels",) if fits else ()), *(("head",) if head else ()))

    def build(**params: Value) -> Detector:
        given = {name: value for name, value in params.items() if value != _unsaid(taken[name])}
        for name in params:
            if name not in given and taken[name].default is inspect.Parameter.empty:
                raise DataError(
                    f"needs its {name}", where=thing.__name__, hint=f"{thing.__name__}[{name}=...]"
                )
        return _Foreign(thing, kind, given, fits)

    return Method(
        f"{PACKAGE}.{thing.__name__}".lower(),
        build,
        parameters,
        thing,
        needs=needs,
        fit_on=("val" if thing.__name__ in ON_VAL else "train") if fits else None,
        paper=_paper(thing),
    )


def foreign_methods() -> list[Method]:
    """Return the detectors of pytorch-ood that plug in, by the names that call them; [] without it."""
    if find_spec(PACKAGE) is None:
        return []
    module = import_module(f"{PACKAGE}.detector")
    found = []
    for name, thing in sorted(vars(module).items()):
        with suppress(DataError):
            method = None if name.startswith("_") else pytorch_ood_method(thing)
            if method is not None:
                found.append(replace(method, name=f"{module.__name__}:{name}"))
    return found


def _is_required(item: inspect.Parameter) -> bool:
    variable = item.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return not variable and item.default is inspect.Parameter.empty


def _is_value(item: inspect.Parameter) -> bool:
    """Whether a parameter is a number, text or truth value: what text can set."""
    said = str(item.annotation)
    other = any(word in said for word in ("Callable", "Tensor", "List", "Module"))
    plain = isinstance(item.default, int | float | str) or any(kind in said for kind in UNSAID)
    return plain and not other and item.name not in OF_NETWORK


def _unsaid(item: inspect.Parameter) -> Value | None:
    """Return the value that stands for none given, of a parameter whose default is None or absent."""
    if item.default is not inspect.Parameter.empty and item.default is not None:
        return None
    return next((value for kind, value in UNSAID.items() if kind in str(item.annotation)), None)


def _default(item: inspect.Parameter) -> Any:
    unsaid = _unsaid(item)
    return item.default if unsaid is None else unsaid


def _paper(thing: Any) -> Paper | None:
    paper = getattr(getattr(thing, "info", None), "paper", None)
    if paper is None:
        return None
    return Paper(
        thing.__name__.lower(), paper.title, f"as {PACKAGE} cites it", paper.venue, paper.year, paper.url
    )


@dataclass(frozen=True)
class _Foreign:
    """One of them with its parameters; its outlier scores with their sign changed."""

    kind_of: Any
    kind: str
    params: Mapping[str, Value]
    fits: bool

    def fit(self, data: Arrays, head: Head | None) -> Any:
        """Return the detector, fitted on ID training images where it fits."""
        import torch

        taken = inspect.signature(self.kind_of).parameters
        given: dict[str, Any] = dict.fromkeys(OF_NETWORK & set(taken))
        if head is not None:
            linear = torch.nn.Linear(*head.weight.shape[::-1])
            linear.weight.data = torch.from_numpy(np.array(head.weight))
            linear.bias.data = torch.from_numpy(np.array(head.bias))
            maps = self.kind == "FeatureMapsDetector"
            whole = torch.nn.Sequential(torch.nn.Flatten(), linear) if maps else linear
            parts = {"w": linear.weight.data, "b": linear.bias.data, "head": whole.eval()}
            given |= {name: part for name, part in parts.items() if name in taken}
        made = self.kind_of(**given, **self.params)
        if self.fits:
            with torch.no_grad():
                labels = torch.from_numpy(np.array(data["labels"]))
                known = labels >= 0
                getattr(made, f"fit_{self._called}")(self._input(data)[known], labels[known])
        return made

    def score(self, state: Any, data: Arrays) -> Array:
        """Return minus its outlier scores."""
        import torch

        with torch.no_grad():
            found = getattr(state, f"predict_{self._called}")(self._input(data))
        return -np.asarray(found.detach().cpu().numpy(), dtype=np.float64)

    @property
    def _called(self) -> str:
        return {"LogitsDetector": "logits", "FeaturesDetector": "features"}.get(self.kind, "feature_maps")

    def _input(self, data: Arrays) -> Any:
        import torch

        name = "logits" if self.kind == "LogitsDetector" else "features"
        tensor = torch.from_numpy(np.array(data[name], dtype=np.float32))
        return tensor[:, :, None, None] if self.kind == "FeatureMapsDetector" else tensor
