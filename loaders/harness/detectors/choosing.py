"""From text to detectors: ``msp,knn[k=100]``, ``preset:openood``, ``my_module:my_detector[T=2]``."""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any, Final

from wordnet_splits.base.errors import SplitsError, unknown

from ..plugins import imported, parse_named, split_list
from .foreign import pytorch_ood_method
from .registry import METHODS, Chosen, Method, choose, describe, get_method

WHERE = "--detectors"
FOREIGN: Final = (pytorch_ood_method,)
"""What makes a method of another package's detectors, or None of what is not one."""
PRESET = "preset:"


@dataclass(frozen=True)
class Preset:
    """The detectors of one paper with its values; ``absent`` are those not built yet.

    Attributes
    ----------
    only : pattern of benchmarks' names -> detectors in the place of ``detectors``.
    sweep : detector -> the paper's values of its parameters, which a sweep tries although one is given.
    """

    name: str
    paper: str
    detectors: tuple[str, ...]
    absent: tuple[str, ...]
    only: Mapping[str, tuple[str, ...]]
    sweep: Mapping[str, Mapping[str, tuple[Any, ...]]]

    def chosen(self, benchmark: str) -> list[Chosen]:
        """Return its detectors on a benchmark, each with the paper's grid, where that has one."""
        found = []
        for spec in self.for_benchmark(benchmark):
            one = _parse(spec)
            grid = self.sweep.get(one.method.name)
            found.append(dataclasses.replace(one, optional=True, grid=grid))
        return found

    def for_benchmark(self, benchmark: str) -> tuple[str, ...]:
        """Return its detectors on a benchmark: some papers select values on each."""
        for pattern, detectors in self.only.items():
            if fnmatchcase(benchmark, pattern):
                return detectors
        return self.detectors


@cache
def _presets() -> Mapping[str, Preset]:
    package = str(__package__)
    data = tomllib.loads((files(package) / "presets.toml").read_text(encoding="utf-8"))
    return {
        name: Preset(
            name,
            row["paper"],
            tuple(row["detectors"]),
            tuple(row["absent"]),
            {pattern: tuple(specs) for pattern, specs in row.get("only", {}).items()},
            {
                name: {key: tuple(values) for key, values in grid.items()}
                for name, grid in row.get("sweep", {}).items()
            },
        )
        for name, row in data.items()
    }


def preset_names() -> tuple[str, ...]:
    """Return the names of the presets, sorted."""
    return tuple(sorted(_presets()))


def preset(name: str) -> Preset:
    """Return a preset by name, or raise UnknownNameError."""
    if name not in _presets():
        raise unknown("preset", name, _presets(), where=WHERE)
    return _presets()[name]


def presets_of(method: Method) -> tuple[str, ...]:
    """Return the names of the presets that a detector is in, sorted."""
    return tuple(
        name
        for name in preset_names()
        if any(_parse(spec).method is method for spec in preset(name).detectors)
    )


def parse_detectors(text: str | Sequence[str], *, benchmark: str = "") -> list[Chosen]:
    """Return the detectors that a list names, in its order, each once.

    Parameters
    ----------
    text : ``NAME``, ``NAME[parameter=value,...]``, ``preset:NAME`` or ``module:attribute``, joined by commas
        or in a sequence.
    benchmark : the benchmark's name, for presets whose values depend on it.

    Raises
    ------
    SplitsError : malformed, unknown, not importable, or two of one label.
    """
    specs = [s for part in ([text] if isinstance(text, str) else text) for s in split_list(part)]
    found: list[Chosen] = []
    for spec in specs:
        if spec.startswith(PRESET):
            found += preset(spec.removeprefix(PRESET)).chosen(benchmark)
        else:
            found.append(_parse(spec))
    if not found:
        raise SplitsError("no detector is named", where=WHERE, hint="as in --detectors msp,knn[k=50]")
    return each_once(found)


def each_once(given: Iterable[Chosen]) -> list[Chosen]:
    """Return detectors in order, each label once; one that is named besides a preset is not optional.

    Raises
    ------
    SplitsError : two different detectors have the same label.
    """
    found: dict[str, Chosen] = {}
    for one in given:
        first = found.setdefault(one.label, one)
        if first != one:
            raise SplitsError(f"two detectors are called {one.label!r}", hint="give one another name")
        if not one.optional:
            found[one.label] = dataclasses.replace(first, optional=False)
    return list(found.values())


def _parse(spec: str) -> Chosen:
    name, parameters = parse_named(spec, where=WHERE)
    if ":" in name:
        method = method_of(imported(name, where=WHERE))
        return choose(method, parameters, label=method.name)
    return choose(get_method(name), parameters, label=name.lower())


def method_of(thing: Any) -> Method:
    """Return the method of a detector class or function.

    One that registered itself keeps what it declared; another is taken as it stands, with ``needs``,
    ``fit_on``, ``sweep`` and ``models`` read from attributes of those names.
    """
    for method in METHODS.values():
        if thing is method.made_of:
            return method
    for foreign in FOREIGN:
        found = foreign(thing)
        if found is not None:
            return found
    about = {
        key: getattr(thing, key) for key in ("needs", "fit_on", "sweep", "models") if hasattr(thing, key)
    }
    return describe(thing, **about)


def from_object(thing: Any) -> Chosen:
    """Return a detector given as an object: a class, a function, or an instance with its parameters.

    Raises
    ------
    SplitsError : it is not a detector.
    """
    if isinstance(thing, Chosen):
        return thing
    if inspect.isclass(thing) or not dataclasses.is_dataclass(thing):
        method = method_of(thing)
        return choose(method, {}, label=method.name)
    method = method_of(type(thing))
    params = {name: getattr(thing, name) for name in method.parameters}
    given = {name: value for name, value in params.items() if value != method.parameters[name]}
    return choose(method, given, label=method.name)
