"""Probes by name, and the names their arrays are stored under.

A probe is a frozen dataclass; its fields are its parameters and part of its name::

    @register_probe("odin")
    @parameters
    class Odin:
        T: float = 1000.0
        eps: float = 0.0014
        ...

    probe_name(Odin())          # "odin[T=1000,eps=0.0014]"; its array: "odin[T=1000,eps=0.0014]/logits"
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.registry import Registry

from ..data.parameters import convert_parameters, format_named, parse_named

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from ..models.class_map import ClassMap
    from ..models.model import Model

ProbeClass = TypeVar("ProbeClass", bound=type[Any])

KIND: Final = re.compile(r"(?!forward$)[a-z][a-z0-9_]*")  # `forward` is the folder of features and logits
PROBES: Final = Registry[type[Any]]("probe", str(__package__), "wordnet_splits.probes", pattern=KIND)
PLAIN = re.compile(r"[\w.+\-]*")


class Probe(Protocol):
    """A computation on a batch in addition to its features and logits.

    Attributes
    ----------
    kind : registered name.
    gradients : whether it differentiates with respect to the input.
    passes : additional forward passes.
    layers : names of the layers whose outputs it reads from the forward pass of features and logits;
        ``stages`` selects all stages of the network.
    random : whether it draws random numbers. It then gets n CPU generators as a third argument, one per image
        and seeded by the image's id, so that results do not depend on the batch.

    The optional method ``require(model, x)`` raises UnusableError if a model cannot be probed on images x.
    """

    kind: ClassVar[str]
    gradients: ClassVar[bool]
    passes: ClassVar[int]
    random: ClassVar[bool]
    __dataclass_fields__: ClassVar[dict[str, dataclasses.Field[Any]]]

    @property
    def layers(self) -> Sequence[str]:
        """Names of the layers it reads."""

    def __call__(self, model: Model, x: Tensor, *generators: Sequence[Generator]) -> Mapping[str, Tensor]:
        """Return name -> tensor (n, ...) of a batch x (n, 3, h, w)."""


class ProbeDefaults:
    """Base of the shipped probes, with the declarations that most probes share."""

    kind: ClassVar[str]
    gradients: ClassVar[bool] = False
    passes: ClassVar[int] = 0
    random: ClassVar[bool] = False

    @property
    def layers(self) -> Sequence[str]:
        """Names of the layers it reads."""
        return ()


def register_probe(kind: str) -> Callable[[ProbeClass], ProbeClass]:
    """Register the decorated dataclass as probe ``kind``.

    Raises
    ------
    DataError : the name belongs to a shipped probe or is malformed, or the class is not a probe.
    """

    def add(cls: ProbeClass) -> ProbeClass:
        if not dataclasses.is_dataclass(cls) or not callable(cls) or "__call__" not in dir(cls):
            raise DataError("a probe is a dataclass with __call__(model, x)", where=cls.__qualname__)
        defaults = {"gradients": False, "passes": 0, "layers": (), "random": False}
        declared = {name: getattr(cls, name, value) for name, value in defaults.items()}
        for name, value in {**declared, "kind": kind}.items():
            setattr(cls, name, value)
        return PROBES.register(kind)(cls)

    return add


def list_probes(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the probes that match a wildcard pattern, sorted."""
    return PROBES.names(pattern)


def probe_name(probe: Any) -> str:
    """Return the name of a probe with its parameters, which is the folder of its arrays.

    Parameters with the value None are left out; numbers are written as ``%g``, sequences as eight digits (see
    `class_map.columns_key`), fitted state as its key.
    """
    from ..models.class_map import columns_key

    values = {item.name: getattr(probe, item.name) for item in dataclasses.fields(probe)}
    shown = {
        k: columns_key(v) if isinstance(v, tuple) else getattr(v, "key", v)
        for k, v in values.items()
        if v is not None
    }
    for name, value in shown.items():
        if not PLAIN.fullmatch(str(value)):
            raise DataError(f"{name}={value!r} cannot be part of a name", where=probe.kind)
    return format_named(probe.kind, shown)


def get_probe(kind: str, **params: Any) -> Probe:
    """Return a probe by name; other parameters have their defaults.

    Raises
    ------
    UnknownNameError : no such probe or parameter. DataError : a value of the wrong type or out of range.
    """
    cls = PROBES[kind]
    defaults = {item.name: item.default for item in dataclasses.fields(cls)}
    values = convert_parameters(cls, defaults, params, kind)
    for name, default in defaults.items():
        if default is dataclasses.MISSING and name not in values:
            raise DataError(f"parameter {name!r} is required", where=kind)
    probe: Probe = cls(**values)
    return probe


def parse_probe(text: str) -> Probe:
    """Return the probe with a given name; the name of any array that the probe stores works too.

    >>> probe_name(parse_probe("odin[T=10,eps=0.002]/logits"))
    'odin[T=10,eps=0.002]'
    """
    unit, slash, _ = text.partition("]/") if "[" in text else text.partition("/")
    kind, parameters = parse_named(f"{unit}]" if slash == "]/" else unit, where="probe")
    return get_probe(kind, **parameters)


def restrict_to_columns(probe: Probe, classes: ClassMap) -> Probe:
    """Return the probe for the columns of a benchmark's softmax.

    If the benchmark uses a subset of the model's columns, a probe with a parameter ``columns`` (gradients of
    the softmax depend on them) gets this subset; `ClassMap.arrays` then returns its arrays under the plain
    name.
    """
    if classes.identity or not any(item.name == "columns" for item in dataclasses.fields(probe)):
        return probe
    return dataclasses.replace(probe, columns=classes.softmax_columns)
