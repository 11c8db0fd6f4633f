"""The registry of detectors: one decorator; names, needs, sweeps and papers that a run iterates.

A detector turns stored arrays into confidence, higher = more in-distribution::

    @register(paper=Paper(...), needs=("features", "labels"), fit_on="train", sweep={"k": (50, 100)})
    @dataclass(frozen=True)
    class KNN:
        k: int = 50

        def fit(self, data: Arrays, head: Head | None) -> State: ...

        def score(self, state: State, data: Arrays) -> np.ndarray: ...  # (n,)

``fit`` sees the ID images of one split and the head, never a test image; ``score`` sees chunks of any size.
``fit_on=("train", "val", "ood-val")`` gives `fit` a dict of `Arrays` by those names. A need without a slash,
``"stages[statistic=mean]"``, is every array of that probe (`Arrays.under`). ``probes(state)``, where there is
one, gives probes that use what was fitted; their arrays are then among the data of ``score``, and of
``calibrate(state, data) -> State``, which sees ID validation images. ``score_each(several, state, data)``, a
static method where there is one, gives the scores of several of them that learned the same (values of a
sweep), for what they compute in common.

A function of the arrays, ``def confidence(data, *, T=1.0)``, is a detector without ``fit``. One of
``models="many"`` gets a sequence of arrays, one per model, in the place of each `Arrays`, and of heads in the
place of the head. ``predict(state, data) -> Arrays``, where it has that, gives the logits (and
``background``) that its predictions, and so its accuracy, are read from: of a detector that changes them
(ReAct), or of several models together (an ensemble without it has none). The model's own by default.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

from wordnet_splits.base.errors import SplitsError, unknown

from ..arrays import Array, Arrays
from ..plugins import Value, converted, show_named
from .paper import Paper

FitOn = Literal["train", "val", "ood-val"]
SPLITS = {"train": "ID train", "val": "ID val", "ood-val": "OOD validation"}
"""What a detector may fit on, in words. OOD validation images are external where a benchmark has such."""
OneOrMany = Literal["one", "many"]
NOT_SCORED = frozenset({"head", "labels"})  # needed to fit, if at all
Anything = TypeVar("Anything", bound=Callable[..., Any])


@runtime_checkable
class Detector(Protocol):
    """An object that scores, see the module; ``fit`` may be absent."""

    def score(self, state: Any, data: Any) -> Array:
        """Return the confidence (n,) of the images of ``data``, higher = more in-distribution."""


@dataclass(frozen=True)
class Method:
    """A registered detector.

    Attributes
    ----------
    name, aliases : the names that users give.
    build : makes the detector from parameters.
    made_of : the class or function that was registered.
    parameters : parameter -> default.
    needs : names of arrays, filled with parameters ("{on}", "odin[T={T:g},eps={eps:g}]/logits"); "head".
    fit_on : whose images `fit` sees, a key of `SPLITS`, or several of them, or None.
    sweep : parameter -> values tried on validation data.
    fit_uses : the parameters that `fit` reads, all by default; a sweep fits once for values of the others.
    threads : whether `score` may run in several threads at once, a chunk each: it changes nothing outside it.
    models : "one" or "many". paper : where it comes from, None for a user's own.
    """

    name: str
    build: Callable[..., Detector]
    parameters: Mapping[str, Value]
    made_of: Any
    needs: tuple[str, ...] = ()
    fit_on: FitOn | tuple[FitOn, ...] | None = None
    sweep: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    models: OneOrMany = "one"
    paper: Paper | None = None
    aliases: tuple[str, ...] = ()
    fit_uses: tuple[str, ...] | None = None
    threads: bool = False

    @property
    def splits(self) -> tuple[FitOn, ...]:
        """What it fits on, one by one."""
        return (self.fit_on,) if isinstance(self.fit_on, str) else self.fit_on or ()

    @property
    def summary(self) -> str:
        """First line of the detector's documentation."""
        return (inspect.getdoc(self.made_of) or "").partition("\n")[0]


@dataclass(frozen=True)
class Chosen:
    """A detector with its parameters set: what a run scores.

    Attributes
    ----------
    label : its name in results: name and parameters as they were given.
    params : every parameter's value.
    given : the parameters that were given; a sweep leaves them as they are.
    chosen_on : on what data the parameters were chosen, "" where they were given or are defaults.
    optional : whether a model or a benchmark that lacks what it needs is passed over, as of a preset's.
    grid : what a sweep tries, as of a preset's; by default the method's values of parameters not given.
    """

    label: str
    method: Method
    params: Mapping[str, Value]
    given: frozenset[str] = frozenset()
    chosen_on: str = ""
    optional: bool = field(default=False, compare=False)
    grid: Mapping[str, tuple[Value, ...]] | None = field(default=None, compare=False)

    @property
    def detector(self) -> Detector:
        """The detector itself."""
        return self.method.build(**self.params)

    @property
    def sweep(self) -> Mapping[str, tuple[Value, ...]]:
        """The values to try of each parameter: its grid, or the method's values of what was not given."""
        if self.grid is not None:
            return self.grid
        return {name: values for name, values in self.method.sweep.items() if name not in self.given}

    @property
    def needs(self) -> tuple[str, ...]:
        """Names of the arrays it scores, parameters filled in."""
        return tuple(n.format(**self.params) for n in self.method.needs if n not in NOT_SCORED)

    @property
    def fitted_by(self) -> tuple[Value, ...]:
        """The values of the parameters that fitting depends on."""
        uses = self.method.fit_uses
        return tuple(self.params[name] for name in (self.params if uses is None else uses))

    def with_params(self, params: Mapping[str, Value], chosen_on: str) -> Chosen:
        """Return it with some parameters replaced by values chosen on ``chosen_on``."""
        return dataclasses.replace(self, params={**self.params, **params}, chosen_on=chosen_on)


METHODS: dict[str, Method] = {}


def register(
    name: str | None = None,
    *,
    paper: Paper | None = None,
    needs: Sequence[str] = (),
    fit_on: FitOn | Sequence[FitOn] | None = None,
    sweep: Mapping[str, Sequence[Value]] | None = None,
    models: OneOrMany = "one",
    aliases: Sequence[str] = (),
    fit_uses: Sequence[str] | None = None,
    threads: bool = False,
) -> Callable[[Anything], Anything]:
    """Register the decorated class or function as a detector, by default under its own name in lower case.

    Raises
    ------
    SplitsError : the name is taken, a swept parameter does not exist, or the object is not a detector.
    """

    def add(thing: Anything) -> Anything:
        method = describe(
            thing,
            name=name,
            paper=paper,
            needs=tuple(needs),
            fit_on=fit_on if fit_on is None or isinstance(fit_on, str) else tuple(fit_on),
            sweep={key: tuple(values) for key, values in (sweep or {}).items()},
            models=models,
            aliases=tuple(aliases),
            fit_uses=None if fit_uses is None else tuple(fit_uses),
            threads=threads,
        )
        taken = sorted({method.name, *method.aliases} & {n for m in METHODS.values() for n in _names(m)})
        if taken:
            raise SplitsError(
                f"two detectors are called {taken[0]!r}", hint="register one under another name"
            )
        METHODS[method.name] = method
        return thing

    return add


def describe(thing: Any, *, name: str | None = None, **about: Any) -> Method:
    """Return the `Method` of a detector class or function without registering it."""
    called = name or str(getattr(thing, "__name__", type(thing).__name__)).lower()
    build, parameters = _class_of(thing) if inspect.isclass(thing) else _function_of(thing, called)
    for split in Method(called, build, parameters, thing, **about).splits:
        if split not in SPLITS:
            raise unknown("split to fit on", split, SPLITS, where=called)
    for parameter in (*(about.get("sweep") or {}), *(about.get("fit_uses") or ())):
        if parameter not in parameters:
            raise unknown("parameter", parameter, parameters, where=called)
    return Method(called, build, parameters, thing, **about)


def list_detectors(pattern: str = "*") -> tuple[str, ...]:
    """Return the names of the detectors that match a wildcard pattern (aliases match too), sorted."""
    return tuple(
        sorted(m.name for m in METHODS.values() if any(fnmatchcase(n, pattern.lower()) for n in _names(m)))
    )


def get_method(name: str) -> Method:
    """Return the detector registered as ``name`` or with that alias, or raise UnknownNameError."""
    for method in METHODS.values():
        if name.lower() in _names(method):
            return method
    raise unknown("detector", name, [n for m in METHODS.values() for n in _names(m)])


def get_detector(name: str, **params: Value) -> Chosen:
    """Return the detector registered as ``name`` with its parameters, those not given at their defaults.

    >>> get_detector("knn", k=100).params
    {'k': 100}
    """
    return choose(get_method(name), params, label=name.lower())


def choose(method: Method, params: Mapping[str, Value], *, label: str) -> Chosen:
    """Set a method's parameters, each converted to the type of its default.

    Raises
    ------
    UnknownNameError : no such parameter. SplitsError : a value of the wrong type or out of range.
    """
    values = dict(method.parameters)
    for key, value in params.items():
        if key not in values:
            raise unknown("parameter", key, values, where=label)
        values[key] = converted(value, values[key], f"{label}: {key}")
    shown = show_named(label, {key: values[key] for key in params})
    chosen = Chosen(shown, method, values, frozenset(params))
    _ = chosen.detector  # run its own checks now, not after hours of forward passes
    return chosen


def _names(method: Method) -> tuple[str, ...]:
    return (method.name, *method.aliases)


def _class_of(cls: Any) -> tuple[Callable[..., Detector], dict[str, Value]]:
    fits = bool(dataclasses.is_dataclass(cls)) and hasattr(cls, "score")
    if not fits:
        raise SplitsError(
            "a detector class is a dataclass with `score(state, data)`, and `fit(data, head)` where it fits",
            where=str(getattr(cls, "__qualname__", cls)),
        )
    found = {item.name: item.default for item in dataclasses.fields(cls)}
    return cls, _with_defaults(found, dataclasses.MISSING, cls.__qualname__)


def _function_of(function: Any, name: str) -> tuple[Callable[..., Detector], dict[str, Value]]:
    if not callable(function):
        raise SplitsError("neither a class nor a function", where=name)
    _, *others = inspect.signature(function).parameters.values()
    found = {item.name: item.default for item in others}
    return lambda **params: _FunctionDetector(function, params), _with_defaults(
        found, inspect.Parameter.empty, name
    )


def _with_defaults(found: dict[str, Any], absent: Any, where: str) -> dict[str, Value]:
    for name, default in found.items():
        if default is absent:
            raise SplitsError(f"parameter {name!r} has no default", where=where)
    return found


@dataclass(frozen=True)
class _FunctionDetector:
    """A function of the arrays as a detector."""

    function: Callable[..., Array]
    params: Mapping[str, Value]

    def score(self, state: Any, data: Arrays) -> Array:
        return self.function(data, **self.params)
