"""Metrics by name: their directions and inputs, and the decorators that register them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast

import numpy as np

from wordnet_splits.base.errors import DataError
from wordnet_splits.base.registry import Registry, defined_in
from wordnet_splits.base.untrusted import import_object, user_errors
from wordnet_splits.metrics.counts import Array, RankCounts, Scores, as_counts, to_numpy

Kernel = Callable[[RankCounts], Array]
PublicFunction = TypeVar("PublicFunction", bound=Callable[..., float])

ID_OOD = ("id", "ood")
ID_CORRECT = ("id", "correct")
ID_CORRECT_OOD = ("id", "correct", "ood")

CALIBRATION: Final = ("ece", "ece_equal_mass", "brier_score", "nll")
GAMMAS: Final = ("gamma", "gamma_plus", "gamma_minus")
OTHER_VALUES: Final[Mapping[str, bool]] = {
    **dict.fromkeys((*GAMMAS, "nearness_trend"), True),
    **dict.fromkeys(CALIBRATION, False),
}
"""Values in results that are not metrics of scores -> whether higher is better."""

_SHAPE_HINT = (
    "leading axes of the counts hold bootstrap replicates: reduce the last axis alone, as in "
    "(counts.cum_id / counts.n_id[..., None]).max(axis=-1)"
)


@dataclass(frozen=True)
class Metric:
    """A registered metric, whose values are fractions.

    Attributes
    ----------
    name : the name in the ``metric`` column of results.
    higher_is_better : whether greater values are better.
    needs : required inputs, a subset of ("id", "correct", "ood").
    kernel : maps `RankCounts` to values of its leading shape; NaN where the metric is undefined.
    function : the public function of this metric.
    origin : ``MODULE:NAME`` of a user's metric, "" for a built-in one.
    """

    name: str
    higher_is_better: bool
    needs: tuple[str, ...]
    kernel: Kernel
    function: Callable[..., float]
    origin: str = ""

    @property
    def summary(self) -> str:
        """First line of the public function's docstring."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    @property
    def is_share(self) -> bool:
        """Whether all values are known to lie in [0, 1]: not of users' metrics and Geifman's excess."""
        return not self.origin and self.name != "e_aurc_geifman"

    @property
    def ood_tail(self) -> float | None:
        """Share of OOD images beyond the threshold of a built-in metric that is a quantile of OOD scores."""
        if self.name.startswith(("fpr95_ood_positive", "detection_error_ood_positive")) and not self.origin:
            return 0.05
        found = re.match(r"ccr_at_fpr_(0\.\d+)", self.name)
        return float(found[1]) if found and not self.origin else None

    def computable(self, counts: RankCounts) -> bool:
        """Return whether ``counts`` have every required input."""
        return not {*self.needs}.difference(available_inputs(counts))


def available_inputs(counts: RankCounts) -> tuple[str, ...]:
    """Return which inputs of metrics ("id", "ood", "correct") counts have."""
    available = (counts.n_id.all(), counts.n_ood.all(), counts.cum_correct is not None)
    return tuple(need for need, present in zip(("id", "ood", "correct"), available, strict=True) if present)


METRICS: Final = Registry[Metric](
    "metric", str(__package__), "wordnet_splits.metrics", pattern=re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
)


def register_metric(
    name: str, kernel: Callable[..., Array], *, higher_is_better: bool, needs: tuple[str, ...], **options: Any
) -> Callable[[PublicFunction], PublicFunction]:
    """Register the decorated function as the public function of metric ``name``.

    The metric is computed by ``kernel(counts, **options)``. A function may be registered under several names:
    variants of a metric with different options. A user's metric replaces an earlier one with the same name,
    with a warning.

    Raises
    ------
    DataError : a shipped metric has the name, or the name is not an identifier.
    """

    def compute(counts: RankCounts) -> Array:
        return kernel(counts, **options)

    def decorate(function: PublicFunction) -> PublicFunction:
        if name in OTHER_VALUES:
            raise DataError(f"two metrics are called {name!r}", hint="choose another name")
        if shipped := defined_in(function, METRICS.folder) and defined_in(kernel, METRICS.folder):
            metric = Metric(name, higher_is_better, needs, compute, function)
        else:
            origin = f"{function.__module__}:{getattr(function, '__qualname__', name)}"
            metric = Metric(name, higher_is_better, needs, _checked(name, compute), function, origin)
        METRICS.add(name, metric, shipped=shipped)
        return function

    return decorate


def _checked(name: str, compute: Kernel) -> Kernel:
    """Return a user's kernel with its errors in one line and its values checked."""
    where = f"metric {name!r}"

    def checked(counts: RankCounts) -> Array:
        with user_errors("raises", where=where, hint=_SHAPE_HINT), np.errstate(all="ignore"):
            values = to_numpy(compute(counts.copied()), where=where)  # which it may overwrite
        if values.dtype.kind not in "fiub":
            problem = f"gave values of type {values.dtype} instead of numbers"
            raise DataError(problem, where=where, hint=_SHAPE_HINT)
        values = values.astype(np.float64)
        if values.shape != counts.n_id.shape:
            problem = f"gave values of shape {values.shape} instead of {counts.n_id.shape}"
            raise DataError(problem, where=where, hint=_SHAPE_HINT)
        if np.isinf(values).any():
            raise DataError("gave infinity", where=where, hint="return NaN where the metric is undefined")
        if values.ndim and len(values) > 1:
            alone = checked(counts.replicate(0))
            if not np.isclose(values[0], alone, equal_nan=True):
                problem = f"gave {values[0]} for a replicate among others, and {alone} for it alone"
                raise DataError(problem, where=where, hint=_SHAPE_HINT)
        return values

    return checked


def _value(kernel: Callable[..., Array], counts: RankCounts, options: Mapping[str, Any]) -> float:
    """Return the value of a kernel, a user's checked as in evaluations."""
    compute: Kernel = partial(kernel, **options)
    if not defined_in(kernel, METRICS.folder):
        compute = _checked(kernel.__name__, compute)
    return float(compute(counts))


class PairMetric(Protocol):
    """A metric of ID scores against OOD scores, or of the `RankCounts` of both."""

    kernel: Callable[..., Array]

    def __call__(
        self,
        id_scores: Scores | RankCounts,
        ood_scores: Scores | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> float:
        """Return the value; ``name`` appears in error messages."""


class ClassifiedMetric(Protocol):
    """A metric of ID samples and whether each was classified correctly, or of their `RankCounts`."""

    kernel: Callable[..., Array]

    def __call__(
        self,
        confidence: Scores | RankCounts,
        correct: Scores | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> float:
        """Return the value; ``name`` appears in error messages."""


class PooledMetric(Protocol):
    """A metric of classified ID samples and OOD samples together, or of the `RankCounts` of both."""

    kernel: Callable[..., Array]

    def __call__(
        self,
        confidence: Scores | RankCounts,
        correct: Scores | None = None,
        ood_confidence: Scores | None = None,
        *,
        name: str | None = None,
        **options: Any,
    ) -> float:
        """Return the value; ``name`` appears in error messages."""


Variants = Mapping[str, Mapping[str, Any]]
"""Name of each further metric -> the options of the same kernel that define it."""


def pair_metric(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], PairMetric]:
    """Register the decorated kernel under its name, and return its public function, a `PairMetric`."""

    def decorate(kernel: Callable[..., Array]) -> PairMetric:
        def function(
            id_scores: Scores | RankCounts,
            ood_scores: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            counts = as_counts(id_scores, ood_scores, name=name)
            return _value(kernel, counts.require(*ID_OOD), options)

        return cast(PairMetric, _registered(function, kernel, higher_is_better, ID_OOD, variants))

    return decorate


def classified_metric(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], ClassifiedMetric]:
    """Register the decorated kernel under its name, and return its public function, a `ClassifiedMetric`."""

    def decorate(kernel: Callable[..., Array]) -> ClassifiedMetric:
        def function(
            confidence: Scores | RankCounts,
            correct: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            counts = as_counts(confidence, correct=correct, name=name)
            return _value(kernel, counts.require(*ID_CORRECT), options)

        return cast(ClassifiedMetric, _registered(function, kernel, higher_is_better, ID_CORRECT, variants))

    return decorate


def pooled_metric(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], PooledMetric]:
    """Register the decorated kernel under its name, and return its public function, a `PooledMetric`."""

    def decorate(kernel: Callable[..., Array]) -> PooledMetric:
        def function(
            confidence: Scores | RankCounts,
            correct: Scores | None = None,
            ood_confidence: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            counts = as_counts(confidence, ood_confidence, correct=correct, name=name)
            return _value(kernel, counts.require(*ID_CORRECT_OOD), options)

        return cast(PooledMetric, _registered(function, kernel, higher_is_better, ID_CORRECT_OOD, variants))

    return decorate


def _registered(
    function: Any,
    kernel: Callable[..., Array],
    higher_is_better: bool,
    needs: tuple[str, ...],
    variants: Variants | None = None,
) -> Any:
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        setattr(function, attribute, getattr(kernel, attribute))
    function.kernel = kernel
    for name, options in {kernel.__name__: {}, **(variants or {})}.items():
        register_metric(name, kernel, higher_is_better=higher_is_better, needs=needs, **options)(function)
    return function


def get_metric(name: str) -> Metric:
    """Return the metric called ``name``; UnknownNameError if it does not exist."""
    return METRICS[name]


def list_metrics(needs: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names of all metrics, or of those that require no inputs other than ``needs``, sorted.

    Metrics of installed packages are loaded first; one that cannot be loaded is left out with a warning.
    """
    inputs = {"id", "ood", "correct"} if needs is None else set(needs)
    entries = METRICS.entries().items()
    return tuple(name for name, entry in entries if inputs.issuperset(entry.needs))


def import_metric(path: str, *, where: str) -> tuple[str, ...]:
    """Import a user's metric ``MODULE:NAME`` and return the names that it is registered under.

    Raises
    ------
    DataError : it cannot be imported, or is not a metric.
    """
    function = import_object(path, where=where)
    names = tuple(name for name, entry in METRICS.registered.items() if entry.function is function)
    if not names:
        raise DataError(
            f"{path} is not a metric",
            where=where,
            hint="decorate a function of the counts with pair_metric, classified_metric or pooled_metric",
        )
    return names


def evaluate(counts: RankCounts, names: Iterable[str | Metric] | None = None) -> dict[str, float]:
    """Compute metrics of a score pair from its counts.

    Parameters
    ----------
    counts : from `rank_counts`.
    names : metrics, or their names; by default all that the counts allow.

    Returns
    -------
    name -> value, a fraction; NaN if the metric is undefined (e.g. misclassification AUROC without errors).

    Raises
    ------
    UnknownNameError : a metric does not exist.
    DataError : a metric requires an input that the counts lack.
    """
    if names is None:
        available = available_inputs(counts)
        metrics = [entry for entry in METRICS.entries().values() if not {*entry.needs}.difference(available)]
    else:
        metrics = [get_metric(name) if isinstance(name, str) else name for name in names]
    for needs in dict.fromkeys(entry.needs for entry in metrics):
        counts.require(*needs)
    return {entry.name: float(entry.kernel(counts)) for entry in metrics}
