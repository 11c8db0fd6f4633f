"""The registry of metrics: one decorator; the names, directions and inputs that an evaluation iterates."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar, cast

from wordnet_splits.base.errors import unknown
from wordnet_splits.metrics.counts import Array, RankCounts, Scores, as_counts

Kernel = Callable[[RankCounts], Array]
PublicFunction = TypeVar("PublicFunction", bound=Callable[..., float])

ID_OOD = ("id", "ood")
ID_CORRECT = ("id", "correct")
ID_CORRECT_OOD = ("id", "correct", "ood")

METRICS: dict[str, Metric] = {}


@dataclass(frozen=True)
class Metric:
    """A registered metric; its value is always a fraction.

    Attributes
    ----------
    name : as in the ``metric`` column of the results.
    higher_is_better : the good direction.
    needs : what it consumes, a part of ("id", "correct", "ood").
    kernel : `RankCounts` -> values of its leading shape; NaN where a value does not exist.
    function : the public function of this metric, documented, for use alone.
    """

    name: str
    higher_is_better: bool
    needs: tuple[str, ...]
    kernel: Kernel
    function: Callable[..., float]

    @property
    def summary(self) -> str:
        """First line of the public function's documentation."""
        return (self.function.__doc__ or "").strip().partition("\n")[0]

    def computable(self, counts: RankCounts) -> bool:
        """Whether ``counts`` hold everything the metric needs."""
        held = {
            "id": bool(counts.n_id.all()),
            "ood": bool(counts.n_ood.all()),
            "correct": counts.cum_correct is not None,
        }
        return all(held[need] for need in self.needs)


def metric(
    name: str, kernel: Callable[..., Array], *, higher_is_better: bool, needs: tuple[str, ...], **options: Any
) -> Callable[[PublicFunction], PublicFunction]:
    """Register the decorated public function as metric ``name``, computed by ``kernel(counts, **options)``.

    A function may carry several decorators: named variants of one metric that differ in their options.
    """

    def compute(counts: RankCounts) -> Array:
        return kernel(counts, **options)

    def register(function: PublicFunction) -> PublicFunction:
        if name in METRICS:
            raise ValueError(f"two metrics are called {name!r}")
        METRICS[name] = Metric(name, higher_is_better, needs, compute, function)
        return function

    return register


class OfPair(Protocol):
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
        """Return the value; errors say ``name``."""


class OfClassified(Protocol):
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
        """Return the value; errors say ``name``."""


class OfPooled(Protocol):
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
        """Return the value; errors say ``name``."""


Variants = Mapping[str, Mapping[str, Any]]
"""Name of a further metric -> the options that make it of the same kernel."""


def of_pair(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], OfPair]:
    """Register the decorated kernel under its name, and return its public function."""

    def publish(kernel: Callable[..., Array]) -> OfPair:
        def function(
            id_scores: Scores | RankCounts,
            ood_scores: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            return float(kernel(as_counts(id_scores, ood_scores, name=name).require(*ID_OOD), **options))

        return cast(OfPair, _published(function, kernel, higher_is_better, ID_OOD, variants))

    return publish


def of_classified(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], OfClassified]:
    """Register the decorated kernel under its name, and return its public function."""

    def publish(kernel: Callable[..., Array]) -> OfClassified:
        def function(
            confidence: Scores | RankCounts,
            correct: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            counts = as_counts(confidence, correct=correct, name=name)
            return float(kernel(counts.require(*ID_CORRECT), **options))

        return cast(OfClassified, _published(function, kernel, higher_is_better, ID_CORRECT, variants))

    return publish


def of_pooled(
    *, higher_is_better: bool, variants: Variants | None = None
) -> Callable[[Callable[..., Array]], OfPooled]:
    """Register the decorated kernel under its name, and return its public function."""

    def publish(kernel: Callable[..., Array]) -> OfPooled:
        def function(
            confidence: Scores | RankCounts,
            correct: Scores | None = None,
            ood_confidence: Scores | None = None,
            *,
            name: str | None = None,
            **options: Any,
        ) -> float:
            counts = as_counts(confidence, ood_confidence, correct=correct, name=name)
            return float(kernel(counts.require(*ID_CORRECT_OOD), **options))

        return cast(OfPooled, _published(function, kernel, higher_is_better, ID_CORRECT_OOD, variants))

    return publish


def _published(
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
        metric(name, kernel, higher_is_better=higher_is_better, needs=needs, **options)(function)
    return function


def get_metric(name: str) -> Metric:
    """Return the metric called ``name``, or raise UnknownNameError with the nearest names."""
    if name not in METRICS:
        raise unknown("metric", name, METRICS)
    return METRICS[name]


def list_metrics(needs: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the names of all metrics, or of those computable from ``needs`` alone, sorted."""
    given = {"id", "ood", "correct"} if needs is None else set(needs)
    return tuple(sorted(name for name, entry in METRICS.items() if given.issuperset(entry.needs)))


def evaluate(counts: RankCounts, names: Iterable[str] | None = None) -> dict[str, float]:
    """Compute metrics of one score pair from its counts, all from the one sort.

    Parameters
    ----------
    counts : from `rank_counts`.
    names : the metrics wanted; by default every metric whose needs the counts meet.

    Returns
    -------
    name -> value, a fraction; NaN where a value does not exist (e.g. misclassification AUROC without errors).

    Raises
    ------
    UnknownNameError : a name that is not a metric.
    DataError : a named metric needs what the counts do not hold.
    """
    if names is None:
        chosen = [entry for _, entry in sorted(METRICS.items()) if entry.computable(counts)]
    else:
        chosen = [get_metric(name) for name in names]
    return {entry.name: float(entry.kernel(counts.require(*entry.needs))) for entry in chosen}
