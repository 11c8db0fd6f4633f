"""Unmodified postprocessor objects of OpenOOD: ``evaluate(..., detectors=[postprocessor])``.

The protocol is OpenOOD's: ``postprocess(net, data) -> (prediction, confidence)``, or ``inference(net,
loader)``, which returns the labels too, and optionally ``setup(net, id_loaders, ood_loaders)``. Confidence is
higher for in-distribution images. ``data`` are the stored features, and `StoredNetwork` replaces the network:
it returns their stored logits. A postprocessor that needs the network itself is refused.

Attributes of the object that may be set: ``name``; ``fit_on``, the splits whose loaders `setup` gets
("train", "val", "ood-val"; by default "train", and none if `setup` does nothing); ``needs`` (("logits",) for
a model without features).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from wordnet_splits.base.errors import DataError

from ..data.arrays import Array, Arrays, Head
from ..data.parameters import Value
from .registry import ConfiguredDetector, Detector, DetectorSpec, Foreign, configure

OPENOOD: Final = "OpenOOD"
SIGN: Final = "its conf is the confidence, higher for in-distribution images"
LOADERS: Final = {"train": ("id", "train"), "val": ("id", "val"), "ood-val": ("ood", "val")}
"""Split -> dictionary of loaders that `setup` gets, and key in it."""
METHODS: Final = ("postprocess", "inference")


def openood_object(postprocessor: Any) -> ConfiguredDetector | None:
    """Return a postprocessor object of OpenOOD's protocol as a detector, None for any other object.

    Raises
    ------
    DataError : it is a class, not an object.
    """
    if not any(callable(getattr(postprocessor, name, None)) for name in METHODS):
        return None
    if inspect.isclass(postprocessor):
        name = postprocessor.__name__
        raise DataError(f"{name} is a class", where="detectors", hint=f"give an object: {name}(config)")
    cls = type(postprocessor)
    fits = _does_something(getattr(postprocessor, "setup", None))
    default = ("train",) if fits else ()
    fit_on = getattr(postprocessor, "fit_on", default) if fits else ()
    splits: tuple[Any, ...] = (fit_on,) if isinstance(fit_on, str) else tuple(fit_on or ())
    if unknown_splits := [split for split in splits if split not in LOADERS]:
        hint = f"there are {', '.join(LOADERS)}"
        raise DataError(f"fit_on names {unknown_splits[0]!r}", where=cls.__name__, hint=hint)
    needs = tuple(getattr(postprocessor, "needs", ("features", "logits")))
    values = {k: v for k, v in vars(postprocessor).items() if not k.startswith("_") and _is_value(v)}
    name = str(getattr(postprocessor, "name", "") or cls.__name__.lower().removesuffix("postprocessor"))

    def build(**params: Value) -> Detector:
        return _Postprocessor(postprocessor, splits, "features" if "features" in needs else "logits")

    spec = DetectorSpec(
        f"openood.{name}",
        build,
        values,
        cls,
        needs=(*needs, *(("labels",) if splits else ())),
        fit_on=splits if len(splits) > 1 else (splits[0] if splits else None),
        foreign=Foreign(OPENOOD, f"{cls.__module__}.{cls.__qualname__}", SIGN),
    )
    return configure(spec, {}, label=spec.name)


def _is_value(value: Any) -> bool:
    return isinstance(value, int | float | str) and len(str(value)) < 100


def _does_something(setup: Callable[..., Any] | None) -> bool:
    """Return whether `setup` has a body after its docstring; in OpenOOD's base class the body is empty."""
    if setup is None:
        return False
    code = getattr(inspect.unwrap(getattr(setup, "__func__", setup)), "__code__", None)
    return code is None or bool(code.co_names) or len(code.co_code) > len(_empty.__code__.co_code)


def _empty(self: Any) -> None:
    pass


@dataclass(frozen=True)
class _Postprocessor:
    """A postprocessor with the stored outputs of the model as its network."""

    original: Any
    splits: tuple[str, ...]
    inputs: str

    def fit(self, data: Any, head: Head | None) -> Any:
        """Return a copy of the postprocessor after `setup`, and its network."""
        from ..models.stored_network import StoredNetwork

        postprocessor, network = deepcopy(self.original), StoredNetwork(head)
        if self.splits:
            by_split: Mapping[str, Arrays] = {self.splits[0]: data} if isinstance(data, Arrays) else data
            loaders: dict[str, _Loaders] = {side: _Loaders() for side in ("id", "ood")}
            for split, arrays in by_split.items():
                side, key = LOADERS[split]
                loaders[side][key] = _Loader(network, arrays, self.inputs)
            postprocessor.setup(network, loaders["id"], loaders["ood"])
        return postprocessor, network

    def score(self, state: Any, data: Arrays) -> Array:
        """Return the confidence (n,) as the postprocessor gives it."""
        postprocessor, network = state
        batch = network.remember(data, self.inputs)
        if _is_overridden(postprocessor):
            outputs = postprocessor.inference(network, [batch])
        else:
            outputs = postprocessor.postprocess(network, batch["data"])
        if not isinstance(outputs, Sequence) or len(outputs) not in (2, 3):
            raise DataError(
                f"gave {type(outputs).__name__} instead of (prediction, confidence)",
                where=type(postprocessor).__name__,
            )
        confidence = outputs[1]
        if hasattr(confidence, "detach"):
            confidence = confidence.detach().cpu().numpy()
        return np.asarray(confidence)


def _is_overridden(postprocessor: Any) -> bool:
    """Return whether `inference` is the method to call, which by default calls `postprocess`."""
    owners = [
        next((n for n, cls in enumerate(type(postprocessor).__mro__) if name in vars(cls)), None)
        for name in METHODS
    ]
    postprocess, inference = owners
    return postprocess is None or (inference is not None and inference < postprocess)


class _Loaders(dict[str, Any]):
    """Loaders by split; a request for another split raises an error that names it."""

    def __missing__(self, key: str) -> Any:
        raise DataError(
            f"setup asks for the images of {key!r}, and they are not among those it fits on",
            hint=f"set fit_on on the postprocessor, of {', '.join(LOADERS)}",
        )


class _Loader:
    """The images of a split, as batches {"data": features, "label": labels}; one pass after another."""

    def __init__(self, network: Any, arrays: Arrays, inputs: str) -> None:
        self._network, self._arrays, self._inputs = network, arrays, inputs
        self.dataset = range(arrays.n)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for chunk in self._arrays.chunks():
            yield self._network.remember(chunk, self._inputs)

    def __len__(self) -> int:
        return sum(1 for _ in self._arrays.chunks())
