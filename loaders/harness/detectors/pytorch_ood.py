"""Detectors of the package pytorch-ood, if installed: ``pytorch_ood.detector:ViM[d=64]``.

They get stored arrays: logits, features, or features as maps of 1 x 1 followed by the head. A detector that
needs the network itself (gradients, several layers, dropout) is refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import Value
from .registry import ConfiguredDetector, Detector, DetectorSpec, Foreign, Paper, configure

PACKAGE = "pytorch_ood"
NEEDS = {
    "LogitsDetector": ("logits",),
    "FeaturesDetector": ("features", "logits"),
    "FeatureMapsDetector": ("features", "logits"),
}
"""Kind of a pytorch-ood detector -> its input arrays; with features, ``logits`` serve for predictions."""
INPUTS = {"LogitsDetector": "logits", "FeaturesDetector": "features", "FeatureMapsDetector": "feature_maps"}
"""Kind -> ending of its methods ``fit_...`` and ``predict_...``."""
VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
NETWORK_PARAMETERS = frozenset({"encoder", "backbone", "model"})
HEAD_PARAMETERS = frozenset({"w", "b", "head"})
FIT_ON_VAL = frozenset({"KLMatching", "TemperatureScaling", "ReAct", "VRA"})
"""Detectors that fit on ID validation images, as ours of these names do; the rest fit on training images."""
NEED_POSITIONS = frozenset({"RankFeat"})
"""Detectors that need the spatial feature maps; only their mean is stored."""
SIGN = "its outlier score is negated: confidence is higher for in-distribution images"
UNSET: Mapping[str, Value] = {"float": 0.0, "int": 0, "str": "", "bool": False}
"""Type of an annotation -> the value that replaces None or a missing default."""


def pytorch_ood_spec(cls: Any) -> DetectorSpec | None:
    """Return the `DetectorSpec` of a detector class of pytorch-ood, None for any other object.

    Raises
    ------
    DataError : the detector needs the network itself.
    """
    if not inspect.isclass(cls) or not cls.__module__.startswith(f"{PACKAGE}."):
        return None
    bases = [base.__name__ for base in cls.__mro__]
    if "Detector" not in bases:
        return None
    where = f"{PACKAGE}.detector"
    kind = next((base for base in bases if base in NEEDS), None)
    if kind is None:
        raise DataError(
            f"{cls.__name__} needs the network itself, and gets what is stored of it",
            where=where,
            hint="it can be a probe of yours: see register_probe",
        )
    if cls.__name__ in NEED_POSITIONS:
        raise DataError(
            f"{cls.__name__} needs whole feature maps, and gets what is stored, their means",
            where=where,
            hint="take ours of that name, if there is one (unknown-eval list detectors)",
        )
    arguments = inspect.signature(cls).parameters
    objects = [
        name
        for name, item in arguments.items()
        if item.default is inspect.Parameter.empty and item.kind not in VARIABLE and not _is_value(item)
    ]
    if unavailable := [name for name in objects if name not in NETWORK_PARAMETERS | HEAD_PARAMETERS]:
        raise DataError(
            f"{cls.__name__} needs {', '.join(unavailable)}, which are neither arrays nor values",
            where=where,
            hint="give a function that calls it",
        )
    parameters = {
        name: item.default if (unset := _unset(item)) is None else unset
        for name, item in arguments.items()
        if _is_value(item) and name not in HEAD_PARAMETERS
    }
    fits = bool(getattr(cls, "requires_fit", False))
    head = bool(HEAD_PARAMETERS & set(arguments))
    paper = getattr(getattr(cls, "info", None), "paper", None)

    def build(**params: Value) -> Detector:
        explicit = {name: value for name, value in params.items() if value != _unset(arguments[name])}
        for name in params:
            if name not in explicit and arguments[name].default is inspect.Parameter.empty:
                raise DataError(f"needs its {name}", where=cls.__name__, hint=f"{cls.__name__}[{name}=...]")
        return _Adapter(lambda head: _configured(cls, kind, explicit, head), kind, fits)

    return DetectorSpec(
        f"{PACKAGE}.{cls.__name__}".lower(),
        build,
        parameters,
        cls,
        needs=(*NEEDS[kind], *(("labels",) if fits else ()), *(("head",) if head else ())),
        fit_on=("val" if cls.__name__ in FIT_ON_VAL else "train") if fits else None,
        paper=None
        if paper is None
        else Paper(
            cls.__name__.lower(), paper.title, f"as {PACKAGE} cites it", paper.venue, paper.year, paper.url
        ),
        foreign=Foreign("pytorch-ood", f"{cls.__module__}.{cls.__qualname__}", SIGN),
    )


def pytorch_ood_object(detector: Any) -> ConfiguredDetector | None:
    """Return a configured detector for a detector object of pytorch-ood, None for any other object.

    The object's values, weights and head are used; a copy is fitted, so the object does not change.
    """
    spec = None if inspect.isclass(detector) else pytorch_ood_spec(type(detector))
    if spec is None:
        return None
    values = {name: getattr(detector, name) for name in spec.parameters if hasattr(detector, name)}
    values = {name: value for name, value in values.items() if isinstance(value, int | float | str)}
    explicit = {name: value for name, value in values.items() if value != spec.parameters[name]}
    kind = next(base.__name__ for base in type(detector).__mro__ if base.__name__ in NEEDS)

    def build(**params: Value) -> Detector:
        networks = [getattr(detector, name, None) for name in NETWORK_PARAMETERS]  # not copied
        memo = {id(network): network for network in networks}
        return _Adapter(lambda head: deepcopy(detector, memo), kind, getattr(detector, "requires_fit", False))

    spec = replace(
        spec, build=build, parameters=values, needs=tuple(need for need in spec.needs if need != "head")
    )
    return configure(spec, explicit, label=spec.name)


def pytorch_ood_specs() -> list[DetectorSpec]:
    """Return the usable detectors of pytorch-ood by their full names; [] if it is not installed."""
    if find_spec(PACKAGE) is None:
        return []
    module = import_module(f"{PACKAGE}.detector")
    specs = []
    for name, cls in sorted(vars(module).items()):
        with suppress(DataError):
            spec = None if name.startswith("_") else pytorch_ood_spec(cls)
            if spec is not None:
                specs.append(replace(spec, name=f"{module.__name__}:{name}"))
    return specs


def _is_value(item: inspect.Parameter) -> bool:
    """Return whether a parameter is a number, text or truth value, which can be set by text."""
    annotation = str(item.annotation)
    is_object = any(word in annotation for word in ("Callable", "Tensor", "List", "Module"))
    plain = isinstance(item.default, int | float | str) or any(kind in annotation for kind in UNSET)
    return plain and not is_object and item.name not in NETWORK_PARAMETERS


def _unset(item: inspect.Parameter) -> Value | None:
    """Return the `UNSET` value of a parameter whose default is None or missing; else return None."""
    if item.default is not inspect.Parameter.empty and item.default is not None:
        return None
    return next((value for kind, value in UNSET.items() if kind in str(item.annotation)), None)


def _configured(cls: Any, kind: str, params: Mapping[str, Value], head: Head | None) -> Any:
    """Return a detector of a class, with the classifier's head in the form that it takes."""
    import torch

    names = inspect.signature(cls).parameters
    arguments: dict[str, Any] = dict.fromkeys(NETWORK_PARAMETERS & set(names))
    if head is not None:
        linear = torch.nn.Linear(*head.weight.shape[::-1])
        linear.weight.data = torch.from_numpy(np.array(head.weight))
        linear.bias.data = torch.from_numpy(np.array(head.bias))
        of_maps = kind == "FeatureMapsDetector"
        module = torch.nn.Sequential(torch.nn.Flatten(), linear) if of_maps else linear
        parts = {"w": linear.weight.data, "b": linear.bias.data, "head": module.eval()}
        arguments |= {name: part for name, part in parts.items() if name in names}
    return cls(**arguments, **params)


@dataclass(frozen=True)
class _Adapter:
    """A detector of pytorch-ood; confidence is minus its outlier score.

    Attributes
    ----------
    make : head -> a new detector.
    kind : a key of `INPUTS`.
    fits : whether it is fitted on ID images.
    """

    make: Callable[[Head | None], Any]
    kind: str
    fits: bool

    def fit(self, data: Arrays, head: Head | None) -> Any:
        """Return a detector, fitted on ID images if it has a fit."""
        import torch

        detector = self.make(head)
        if self.fits:
            with torch.no_grad():
                labels = torch.from_numpy(np.array(data["labels"]))
                labelled = labels >= 0
                fit = getattr(detector, f"fit_{INPUTS[self.kind]}")
                fit(self._input(data)[labelled], labels[labelled])
        return detector

    def score(self, state: Any, data: Arrays) -> Array:
        """Return minus the outlier scores."""
        import torch

        with torch.no_grad():
            scores = getattr(state, f"predict_{INPUTS[self.kind]}")(self._input(data))
        return -np.asarray(scores.detach().cpu().numpy(), dtype=np.float64)

    def _input(self, data: Arrays) -> Any:
        import torch

        name = "logits" if self.kind == "LogitsDetector" else "features"
        tensor = torch.from_numpy(np.array(data[name], dtype=np.float32))
        return tensor[:, :, None, None] if self.kind == "FeatureMapsDetector" else tensor
