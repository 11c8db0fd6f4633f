"""Detectors from text: ``msp,knn[k=100]``, ``preset:openood``, ``my_module:my_detector[T=2]``."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar

import numpy as np
from pydantic.dataclasses import dataclass as pydantic_dataclass

from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.base.jsonable import Jsonable
from wordnet_splits.base.names import printable
from wordnet_splits.base.untrusted import import_object

from ..data.arrays import Array
from ..data.parameters import parse_named, split_list
from .openood import openood_object
from .pytorch_ood import pytorch_ood_object, pytorch_ood_spec
from .registry import (
    DETECTORS,
    ConfiguredDetector,
    DetectorSpec,
    configure,
    detector_spec,
    find_spec,
    get_spec,
)

WHERE = "--detectors"
PRESET = "preset:"
IS_LEFT_OUT = " is left out: "


@pydantic_dataclass(frozen=True)
class Preset(Jsonable):
    """The detectors of a paper with the paper's values.

    Attributes
    ----------
    absent : detectors of the paper that are not implemented.
    only : pattern of benchmark names -> detectors that replace ``detectors`` there.
    sweep : detector -> the paper's values of its parameters, which a sweep tries even of explicit parameters.
    """

    omitted: ClassVar[tuple[str, ...]] = ("only",)

    name: str
    paper: str
    detectors: tuple[str, ...]
    absent: tuple[str, ...]
    only: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sweep: Mapping[str, Mapping[str, tuple[Any, ...]]] = field(default_factory=dict)

    def configured(self, benchmark: str) -> list[ConfiguredDetector]:
        """Return the detectors for a benchmark, each with the paper's grid, if any."""
        return [
            dataclasses.replace(detector, optional=True, grid=self.sweep.get(detector.spec.name))
            for detector in map(_parse_detector, self.for_benchmark(benchmark))
        ]

    def for_benchmark(self, benchmark: str) -> tuple[str, ...]:
        """Return the texts of the detectors for a benchmark: some papers select values on each."""
        for pattern, detectors in self.only.items():
            if fnmatchcase(benchmark, pattern):
                return detectors
        return self.detectors


@cache
def _presets() -> Mapping[str, Preset]:
    text = (files(str(__package__)) / "presets.toml").read_text(encoding="utf-8")
    return {name: Preset(name=name, **fields) for name, fields in tomllib.loads(text).items()}


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    return tuple(sorted(_presets()))


def get_preset(name: str) -> Preset:
    """Return a preset by name, or raise UnknownNameError."""
    if name not in _presets():
        raise unknown("preset", name, _presets(), where=WHERE)
    return _presets()[name]


def presets_of(spec: DetectorSpec) -> tuple[str, ...]:
    """Return the names of the presets that contain a detector, sorted."""
    return tuple(
        name
        for name in preset_names()
        if any(_parse_detector(text).spec is spec for text in get_preset(name).detectors)
    )


def parse_detectors(text: str | Sequence[str], *, benchmark: str = "") -> list[ConfiguredDetector]:
    """Return the detectors of a list, in its order, without duplicates.

    Parameters
    ----------
    text : ``NAME``, ``NAME[parameter=value,...]``, ``preset:NAME`` or ``module:attribute``, joined by commas
        or in a sequence.
    benchmark : the benchmark's name, for presets whose values depend on it.

    Raises
    ------
    SplitsError : malformed, unknown, not importable, or two different detectors with the same label.
    """
    names = [name for part in ([text] if isinstance(text, str) else text) for name in split_list(part)]
    detectors: list[ConfiguredDetector] = []
    for name in names:
        if name.startswith(PRESET):
            detectors += get_preset(name.removeprefix(PRESET)).configured(benchmark)
        else:
            detectors.append(_parse_detector(name))
    if not detectors:
        raise SplitsError("no detector is named", where=WHERE, hint="as in --detectors msp,knn[k=50]")
    return without_duplicates(detectors)


def one_detector(detector: Any) -> ConfiguredDetector:
    """Return the detector of a name or an object."""
    if not isinstance(detector, str):
        return detector_from_object(detector)
    detectors = parse_detectors(detector)
    if len(detectors) != 1:
        message = f"one detector must be named, {printable(detector)!r} names {len(detectors)}"
        raise SplitsError(message, where=WHERE)
    return detectors[0]


LOG_PROBABILITIES = frozenset({"msp", "ensemble", "mc_dropout"})
"""Detectors that return log probabilities, because floats cannot distinguish probabilities near 1."""


def is_log_probability(label: str) -> bool:
    """Return whether the confidences of a detector, by its label in results, are logs of probabilities."""
    name, bracket, parameters = label.partition("[")
    spec = find_spec(name)
    given = parse_named(label)[1] if bracket and parameters.endswith("]") else {}
    return spec is not None and spec.name in LOG_PROBABILITIES and given.get("confidence", "mcp") == "mcp"


def as_shown(label: str, confidences: Array) -> Array:
    """Return confidences for display: probabilities for `LOG_PROBABILITIES`, all others unchanged."""
    return np.exp(confidences) if is_log_probability(label) else confidences


def without_duplicates(detectors: Iterable[ConfiguredDetector]) -> list[ConfiguredDetector]:
    """Return detectors in order, each label once; one that is listed outside a preset is not optional."""
    by_label: dict[str, ConfiguredDetector] = {}
    for detector in detectors:
        earlier = by_label.setdefault(detector.label, detector)
        if earlier != detector:
            raise SplitsError(f"two detectors are called {detector.label!r}", hint="give one another name")
        if not detector.optional:
            by_label[detector.label] = dataclasses.replace(earlier, optional=False)
    return list(by_label.values())


def left_out_note(configured: ConfiguredDetector, reason: str) -> str:
    """Return a note that a detector of a preset is left out, with the reason."""
    return f"{configured.label}{IS_LEFT_OUT}{reason}"


def join_left_out(notes: Iterable[str]) -> list[str]:
    """Join the notes ``MODEL: LABEL is left out: REASON`` of equal model and reason; other notes stay."""
    labels: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        subject, found, reason = note.partition(IS_LEFT_OUT)
        model, _, label = subject.rpartition(": ")
        labels.setdefault((model, reason) if found else (note, ""), []).append(label)
    return [
        f"{model}: {', '.join(names)} are left out: {re.sub('^it ', 'each ', reason)}"
        if len(names) > 1
        else f"{model}: {names[0]}{IS_LEFT_OUT}{reason}"
        if reason
        else model
        for (model, reason), names in labels.items()
    ]


def _parse_detector(text: str) -> ConfiguredDetector:
    name, parameters = parse_named(text, where=WHERE)
    if ":" in name:
        imported = import_object(name, where=WHERE)
        if not inspect.isroutine(imported) and not inspect.isclass(imported):
            if parameters:
                hint = "set the values on the object"
                raise SplitsError(f"{name} is an object, with its own values", where=WHERE, hint=hint)
            return detector_from_object(imported)
        spec = spec_of(imported)
        return configure(spec, parameters, label=spec.name)
    return configure(get_spec(name), parameters, label=name.lower())


def spec_of(implementation: Any) -> DetectorSpec:
    """Return the `DetectorSpec` of a detector class or function, registered or not.

    For an unregistered detector, ``needs``, ``fit_on``, ``sweep`` and ``models`` are read from its
    attributes; for a class of pytorch-ood, its kind determines them.
    """
    for spec in DETECTORS.registered.values():
        if implementation is spec.implementation:
            return spec
    if (imported_spec := pytorch_ood_spec(implementation)) is not None:
        return imported_spec
    names = ("needs", "fit_on", "sweep", "models")
    attributes = {name: getattr(implementation, name) for name in names if hasattr(implementation, name)}
    return detector_spec(implementation, **attributes)


def detector_from_object(detector: Any) -> ConfiguredDetector:
    """Return a detector passed as an object: a class, a function, or an instance with its parameters.

    Detector objects of pytorch-ood and postprocessor objects of OpenOOD are used unmodified.

    Raises
    ------
    SplitsError : it is not a detector.
    """
    if isinstance(detector, ConfiguredDetector):
        return detector
    foreign = pytorch_ood_object(detector) or openood_object(detector)
    if foreign is not None:
        return foreign
    if inspect.isclass(detector) or not dataclasses.is_dataclass(detector):
        spec = spec_of(detector)
        return configure(spec, {}, label=spec.name)
    spec = spec_of(type(detector))
    params = {name: getattr(detector, name) for name in spec.parameters}
    explicit = {name: value for name, value in params.items() if value != spec.parameters[name]}
    return configure(spec, explicit, label=spec.name)


def resolve_detectors(detectors: str | Sequence[Any], benchmark: str) -> list[ConfiguredDetector]:
    """Return detectors from names and objects, each label once."""
    items = [detectors] if isinstance(detectors, str) or not isinstance(detectors, Iterable) else detectors
    configured = (
        parse_detectors(item, benchmark=benchmark) if isinstance(item, str) else [detector_from_object(item)]
        for item in items
    )
    return without_duplicates(detector for of_item in configured for detector in of_item)


def registered_label(label: str) -> str:
    """Return a label of results with the detector's registered name in place of an alias."""
    name, bracket, parameters = label.partition("[")
    spec = find_spec(name)
    return (name if spec is None else spec.name) + bracket + parameters


def find_label(name: str, labels: Iterable[str], *, where: str) -> str:
    """Return the label of a detector, given the label, an alias, or the name of the only one of its kind.

    >>> find_label("knn", ["msp", "knn[k=10]"], where="results")
    'knn[k=10]'

    Raises
    ------
    UnknownNameError : no label, or several, are meant.
    """
    labels = [*labels]
    if name in labels:
        return name
    registered = registered_label(name)
    same = [label for label in labels if registered_label(label) == registered]
    same = same or [label for label in labels if registered_label(label).partition("[")[0] == registered]
    if len(same) != 1:
        raise unknown("detector of these results", name, labels, where=where, near=same)
    return same[0]
