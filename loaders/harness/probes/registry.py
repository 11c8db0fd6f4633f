"""The registry of probes, and the names their arrays are stored under.

A probe is a frozen dataclass; its fields are its parameters and part of its name::

    @register_probe("odin")
    @dataclass(frozen=True)
    class Odin:
        T: float = 1000.0
        eps: float = 0.0014
        ...

    probe_name(Odin())          # "odin[T=1000,eps=0.0014]"; its array: "odin[T=1000,eps=0.0014]/logits"
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from wordnet_splits.base.errors import DataError, SplitsError, unknown

from ..plugins import convert, format_named, parse_named

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from ..model import Model
    from ..model.class_map import ClassMap

ProbeClass = TypeVar("ProbeClass", bound=type[Any])

PROBES: dict[str, type[Any]] = {}
KIND = re.compile(r"[a-z][a-z0-9_]*")
PLAIN = re.compile(r"[\w.+\-]*")


class Probe(Protocol):
    """A computation on a batch besides its features and logits.

    Attributes
    ----------
    kind : the name it is registered under.
    gradients : whether it differentiates with respect to the input.
    passes : forward passes of its own, besides the one that gives features and logits.
    layers : names of the layers whose outputs it reads from that one forward pass; ``stages`` is all stages
        of the network. ``lacks(model, x) -> str``, where it has that, says why a model cannot give it of
        images x.
    random : whether it draws. It then gets n CPU generators as a third argument, one per image and seeded by
        the image's id, and draws for image i from the i-th alone: runs repeat, and batches of any size give
        the same.
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


def register_probe(kind: str) -> Callable[[ProbeClass], ProbeClass]:
    """Register the decorated dataclass as probe ``kind``.

    Raises
    ------
    SplitsError : the name is taken or malformed, or the class is not a probe.
    """

    def add(cls: ProbeClass) -> ProbeClass:
        if kind in PROBES or not KIND.fullmatch(kind) or kind == "forward":
            raise SplitsError(f"{kind!r} is not available as a probe's name")
        if not dataclasses.is_dataclass(cls) or not callable(cls) or "__call__" not in dir(cls):
            raise SplitsError("a probe is a dataclass with __call__(model, x)", where=cls.__qualname__)
        defaults = {"gradients": False, "passes": 0, "layers": (), "random": False}
        declared = {name: getattr(cls, name, value) for name, value in defaults.items()}
        for name, value in {**declared, "kind": kind}.items():
            setattr(cls, name, value)
        PROBES[kind] = cls
        return cls

    return add


def list_probes(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the probes that match a wildcard pattern, sorted."""
    return tuple(sorted(kind for kind in PROBES if fnmatchcase(kind, pattern)))


def probe_name(probe: Any) -> str:
    """Return the name of a probe with its parameters: what its arrays are stored under.

    Parameters at None are left out, numbers are written as ``%g``, sequences as the eight digits that name
    them (see `class_map.columns_key`), fitted state as its key.
    """
    from ..model.class_map import columns_key

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
    """Return a probe by name; parameters not given are at their defaults.

    Raises
    ------
    UnknownNameError : no such probe or parameter. DataError : a value of the wrong type or out of range.
    """
    if kind not in PROBES:
        raise unknown("probe", kind, PROBES)
    fields = {item.name: item for item in dataclasses.fields(PROBES[kind])}
    for name in params:
        if name not in fields:
            raise unknown("parameter", name, fields, where=kind)
    values = {name: convert(value, fields[name].default, f"{kind}: {name}") for name, value in params.items()}
    try:
        probe: Probe = PROBES[kind](**values)
    except TypeError as error:
        raise DataError(str(error), where=kind, hint=str(inspect.signature(PROBES[kind]))) from None
    return probe


def parse_probe(text: str) -> Probe:
    """Return the probe that a name, or the name of one of its arrays, is of.

    >>> probe_name(parse_probe("odin[T=10,eps=0.002]/logits"))
    'odin[T=10,eps=0.002]'
    """
    unit, slash, _ = text.partition("]/") if "[" in text else text.partition("/")
    kind, parameters = parse_named(f"{unit}]" if slash == "]/" else unit, where="probe")
    return get_probe(kind, **parameters)


def restrict_to_columns(probe: Probe, classes: ClassMap) -> Probe:
    """Return the probe over the columns that a benchmark's softmax goes over.

    A probe with a parameter ``columns`` (a gradient of the softmax depends on them) gets them where they are
    not all of the model's; `ClassMap.arrays` then gives its arrays under the plain name.
    """
    if classes.identity or not any(item.name == "columns" for item in dataclasses.fields(probe)):
        return probe
    return dataclasses.replace(probe, columns=classes.softmax_columns)
