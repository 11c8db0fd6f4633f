"""Detectors by name: `register`, and the specification of a registered detector.

A detector maps stored arrays to confidence, higher = more in-distribution::

    @register(paper=Paper(...), needs=("features", "labels"), fit_on="train", sweep={"k": (50, 100)})
    @dataclass(frozen=True)
    class KNN:
        k: int = 50

        def fit(self, data: Arrays, head: Head | None) -> State: ...

        def score(self, state: State, data: Arrays) -> np.ndarray: ...  # (n,)

``fit`` gets the ID images of a split and the head, never a test image; ``score`` gets chunks of any size.
With ``fit_on=("train", "val", "ood-val")``, `fit` gets a dict of `Arrays` by those names. A need without a
slash, ``"stages[statistic=mean]"``, is every array of that probe (`Arrays.under`).

Optional methods:

- ``probes(state)`` returns probes that use the fitted state; ``score`` then gets their arrays too.
- ``calibrate(state, data) -> State`` gets ID validation images, with those arrays.
- ``further_needs``, a property, are arrays that only some values of the parameters need.
- ``score_each(detectors, state, data)``, static, returns the scores of several detectors of equal state
  (values of a sweep), which share computations; `SharedScores` then provides ``score``.
- ``predict(state, data) -> Arrays`` returns the logits (and ``background``) for predictions and accuracy, by
  default the model's. Detectors that change the logits (ReAct) or combine several models define it; an
  ensemble without ``predict`` lacks an accuracy.
- ``splits``, a property: the part of ``fit_on`` that `fit` gets with the parameters as they are.

A function of the arrays, ``def confidence(data, *, T=1.0)``, is a detector without ``fit``. With
``models="many"`` a detector gets a sequence of arrays and of heads, one per model.
"""

from __future__ import annotations

import dataclasses
import inspect
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, ClassVar, Final, Literal, Protocol, TypeVar, cast, runtime_checkable

from pydantic import ConfigDict

from wordnet_splits.base.errors import SplitsError, unknown
from wordnet_splits.base.registry import Registry, defined_in

from ..data.arrays import Array, Arrays
from ..data.parameters import Value, convert_parameters, format_named

FitOn = Literal["train", "val", "ood-val"]
SPLITS = {"train": "ID train", "val": "ID val", "ood-val": "OOD validation"}
"""Splits that a detector may fit on, in words. OOD validation images are external images, if available."""
ModelCount = Literal["one", "many"]
FIT_ONLY = frozenset({"head", "labels"})
"""Needs that only ``fit`` gets."""
DetectorT = TypeVar("DetectorT", bound=Callable[..., Any])


@dataclass(frozen=True)
class Paper:
    """The publication of a method.

    Attributes
    ----------
    key : short name for citing, e.g. ``hendrycks2017``.
    title, authors, venue, year : as published.
    url : a lasting address.
    """

    key: str
    title: str
    authors: str
    venue: str
    year: int
    url: str

    def __str__(self) -> str:
        return f"{self.authors}. {self.title}. {self.venue}, {self.year}. {self.url}"


def _read_papers() -> dict[str, Paper]:
    text = (files(str(__package__)) / "papers.toml").read_text(encoding="utf-8")
    return {key: Paper(key, **fields) for key, fields in tomllib.loads(text).items()}


PAPERS: Final[Mapping[str, Paper]] = _read_papers()
"""Short name -> paper, from ``papers.toml``."""


@dataclass(frozen=True)
class Foreign:
    """The origin of an unmodified detector from another library.

    Attributes
    ----------
    protocol : the library whose protocol it follows.
    object : its class.
    sign : how its scores become confidences.
    """

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    protocol: str
    object: str
    sign: str


@runtime_checkable
class Detector(Protocol):
    """An object with ``score`` and, optionally, ``fit`` and the methods listed at the top of the module."""

    def score(self, state: Any, data: Any) -> Array:
        """Return the confidence (n,) of the images of ``data``, higher = more in-distribution."""


@dataclass(frozen=True)
class DetectorSpec:
    """A registered detector.

    Attributes
    ----------
    name, aliases : names accepted from users.
    build : makes the detector from parameters.
    parameters : parameter -> default.
    implementation : the class or function that was registered.
    needs : names of arrays with parameters in braces ("{on}", "odin[T={T:g},eps={eps:g}]/logits"); "head".
    fit_on : the split that `fit` gets, a key of `SPLITS`, or several, or None.
    sweep : parameter -> values tried on validation data.
    models : "one" or "many".
    paper : the publication, None for a user's detector.
    fit_parameters : the parameters that `fit` reads, all by default; a sweep fits once for all values of the
        others.
    threads : whether `score` may run in several threads, each on one chunk.
    foreign : the origin of a detector of another library, else None.
    """

    name: str
    build: Callable[..., Detector]
    parameters: Mapping[str, Value]
    implementation: Any
    needs: tuple[str, ...] = ()
    fit_on: FitOn | tuple[FitOn, ...] | None = None
    sweep: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    models: ModelCount = "one"
    paper: Paper | None = None
    aliases: tuple[str, ...] = ()
    fit_parameters: tuple[str, ...] | None = None
    threads: bool = False
    foreign: Foreign | None = None

    @property
    def built_in(self) -> bool:
        """Whether it is one of this package, not a user's or another library's."""
        return defined_in(self.implementation, DETECTORS.folder)

    @property
    def splits(self) -> tuple[FitOn, ...]:
        """The splits of `fit_on`, as a tuple."""
        return (self.fit_on,) if isinstance(self.fit_on, str) else self.fit_on or ()

    @property
    def names(self) -> tuple[str, ...]:
        """Name and aliases."""
        return (self.name, *self.aliases)

    @property
    def summary(self) -> str:
        """First line of the detector's documentation."""
        return (inspect.getdoc(self.implementation) or "").partition("\n")[0]


@dataclass(frozen=True)
class ConfiguredDetector:
    """A detector with its parameters set.

    Attributes
    ----------
    label : its name in results: the name and the parameters that were set explicitly.
    params : every parameter's value.
    explicit : the parameters that were set explicitly; a sweep does not change them.
    chosen_on : the data that parameters were chosen on, "" if they are explicit or defaults.
    optional : whether to skip it if the model or benchmark lacks its inputs, as for detectors of a preset.
    grid : a preset's values for a sweep; by default the spec's values of parameters that are not explicit.
    """

    label: str
    spec: DetectorSpec
    params: Mapping[str, Value]
    explicit: frozenset[str] = frozenset()
    chosen_on: str = ""
    optional: bool = field(default=False, compare=False)
    grid: Mapping[str, tuple[Value, ...]] | None = field(default=None, compare=False)

    @property
    def detector(self) -> Detector:
        """The detector itself."""
        return self.spec.build(**self.params)

    @property
    def sweep(self) -> Mapping[str, tuple[Value, ...]]:
        """Parameter -> values to try."""
        if self.grid is not None:
            return self.grid
        return {name: values for name, values in self.spec.sweep.items() if name not in self.explicit}

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the arrays that ``score`` gets, parameters filled in."""
        several = hasattr(self.spec.implementation, "further_needs")
        further = cast(Any, self.detector).further_needs if several else ()
        return (*(n.format(**self.params) for n in self.spec.needs if n not in FIT_ONLY), *further)

    @property
    def splits(self) -> tuple[FitOn, ...]:
        """The splits that `fit` gets: those of the spec, unless the parameters select some of them."""
        return tuple(getattr(self.detector, "splits", self.spec.splits))

    @property
    def fit_key(self) -> tuple[Value, ...]:
        """The values of the parameters that fitting depends on."""
        names = self.spec.fit_parameters
        return tuple(self.params[name] for name in (self.params if names is None else names))

    def with_params(self, params: Mapping[str, Value], chosen_on: str) -> ConfiguredDetector:
        """Return the detector with some parameters replaced by values chosen on ``chosen_on``."""
        return dataclasses.replace(self, params={**self.params, **params}, chosen_on=chosen_on)


DETECTORS: Final = Registry[DetectorSpec]("detector", str(__package__), "wordnet_splits.detectors")


def register(
    name: str | None = None,
    *,
    paper: Paper | None = None,
    needs: Sequence[str] = (),
    fit_on: FitOn | Sequence[FitOn] | None = None,
    sweep: Mapping[str, Sequence[Value]] | None = None,
    models: ModelCount = "one",
    aliases: Sequence[str] = (),
    fit_parameters: Sequence[str] | None = None,
    threads: bool = False,
) -> Callable[[DetectorT], DetectorT]:
    """Register the decorated class or function as a detector; see `DetectorSpec` for the parameters.

    ``name`` is by default the class's or function's name in lower case. A user's detector replaces an earlier
    user's detector with the same name, with a warning.

    Raises
    ------
    SplitsError : the name belongs to a shipped detector or is an alias, a swept parameter does not exist, or
        the object is not a detector.
    """

    def spec_of(implementation: Any) -> DetectorSpec:
        return detector_spec(
            implementation,
            name=name,
            paper=paper,
            needs=tuple(needs),
            fit_on=fit_on if fit_on is None or isinstance(fit_on, str) else tuple(fit_on),
            sweep={key: tuple(values) for key, values in (sweep or {}).items()},
            models=models,
            aliases=tuple(aliases),
            fit_parameters=None if fit_parameters is None else tuple(fit_parameters),
            threads=threads,
        )

    def add(implementation: DetectorT) -> DetectorT:
        label = name or implementation.__name__.lower()
        return DETECTORS.register(label, spec_of, aliases=aliases)(implementation)

    return add


def detector_spec(implementation: Any, *, name: str | None = None, **attributes: Any) -> DetectorSpec:
    """Return the `DetectorSpec` of a detector class or function without registering it."""
    name = name or str(getattr(implementation, "__name__", type(implementation).__name__)).lower()
    is_class = inspect.isclass(implementation)
    build, parameters = _from_class(implementation) if is_class else _from_function(implementation, name)
    spec = DetectorSpec(name, build, parameters, implementation, **attributes)
    for split in spec.splits:
        if split not in SPLITS:
            raise unknown("split to fit on", split, SPLITS, where=name)
    for parameter in (*spec.sweep, *(spec.fit_parameters or ())):
        if parameter not in parameters:
            raise unknown("parameter", parameter, parameters, where=name)
    return spec


def list_detectors(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the detectors whose name or an alias matches a wildcard pattern, sorted.

    Detectors of installed packages are included.
    """
    return DETECTORS.names(pattern.lower())


def get_spec(name: str) -> DetectorSpec:
    """Return the detector registered under a name or alias, or by an installed package.

    Raises
    ------
    UnknownNameError : no such detector. DataError : the package's detector cannot be loaded.
    """
    return DETECTORS[name.lower()]


def find_spec(name: str) -> DetectorSpec | None:
    """Return `get_spec`, or None for a name that is not registered, such as a user's own detector's."""
    try:
        return get_spec(name)
    except SplitsError:
        return None


def get_detector(name: str, **params: Value) -> ConfiguredDetector:
    """Return the detector registered as ``name`` with its parameters, by default their defaults.

    >>> get_detector("knn", k=100).params
    {'k': 100}
    """
    return configure(get_spec(name), params, label=name.lower())


def configure(spec: DetectorSpec, params: Mapping[str, Value], *, label: str) -> ConfiguredDetector:
    """Set parameters of a detector, each converted to the type of its default.

    Raises
    ------
    UnknownNameError : no such parameter. SplitsError : a value of the wrong type or out of range.
    """
    explicit = convert_parameters(spec.implementation, spec.parameters, params, label)
    values = {**spec.parameters, **explicit}
    configured = ConfiguredDetector(format_named(label, explicit), spec, values, frozenset(params))
    _ = configured.detector  # validates the parameters now, not after hours of forward passes
    return configured


class SharedScores:
    """Base of detectors with ``score_each``."""

    def score(self, state: Any, data: Any) -> Array:
        """Return the confidence (n,)."""
        scores: list[Array] = cast(Any, self).score_each([self], state, data)
        return scores[0]


def _from_class(cls: Any) -> tuple[Callable[..., Detector], dict[str, Value]]:
    is_detector = bool(dataclasses.is_dataclass(cls)) and hasattr(cls, "score")
    if not is_detector:
        raise SplitsError(
            "a detector class is a dataclass with `score(state, data)`, and `fit(data, head)` where it fits",
            where=str(getattr(cls, "__qualname__", cls)),
        )
    defaults = {item.name: item.default for item in dataclasses.fields(cls)}
    return cls, _checked_defaults(defaults, dataclasses.MISSING, cls.__qualname__)


def _from_function(function: Any, name: str) -> tuple[Callable[..., Detector], dict[str, Value]]:
    if not callable(function):
        raise SplitsError("neither a class nor a function", where=name)
    _, *parameters = inspect.signature(function).parameters.values()
    defaults = {item.name: item.default for item in parameters}
    return lambda **params: _FunctionDetector(function, params), _checked_defaults(
        defaults, inspect.Parameter.empty, name
    )


def _checked_defaults(defaults: dict[str, Any], missing: Any, where: str) -> dict[str, Value]:
    for name, default in defaults.items():
        if default is missing:
            raise SplitsError(f"parameter {name!r} has no default", where=where)
    return defaults


@dataclass(frozen=True)
class _FunctionDetector:
    """A function of the arrays as a detector."""

    function: Callable[..., Array]
    params: Mapping[str, Value]

    def score(self, state: Any, data: Arrays) -> Array:
        return self.function(data, **self.params)
